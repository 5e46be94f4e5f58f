#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel that needs nothing of the system but its C and C++ libraries: `pip wheel`, then auditwheel, which puts
# all other libraries into it. Needs the packages of samples/install_packages.sh, python3-dev, auditwheel and patchelf.
# usage: reader/python/make_wheel.sh FOLDER [OPTION-OF-PIP-WHEEL...]
set -euo pipefail
if (($# == 0)); then
  echo "usage: reader/python/make_wheel.sh FOLDER [OPTION-OF-PIP-WHEEL...]" >&2
  exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."

bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT
"${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$bare" "$@" .
"${PYTHON:-python3}" -m auditwheel repair --wheel-dir "$folder" "$bare"/*.whl
