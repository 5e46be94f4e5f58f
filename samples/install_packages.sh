#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a build of precache needs, and those that are named. Needs root only if one is
# missing.
# usage: samples/install_packages.sh [PACKAGE...]
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libcli11-dev libfmt-dev libhdf5-dev libhwy-dev libisal-dev
  libjpeg62-turbo-dev libpng-dev libprotobuf-dev libtbb-dev nlohmann-json3-dev zlib1g-dev "$@")

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null || true)
  [[ $'\n'$status$'\n' == *$'\n'installed$'\n'* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "install_packages: apt-get was not found; install the packages that Debian calls ${missing[*]}" >&2
  exit 3
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_packages: needs root or sudo to install ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi

echo "Installing with apt-get: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
if ! { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } \
  </dev/null >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "install_packages: apt-get failed; its last lines are above" >&2
  exit 3
fi
