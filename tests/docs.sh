#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site of the documentation into build/site; a broken link or an unknown name ends it with an error.
#
#   tests/docs.sh           build
#   tests/docs.sh install   only install what the build needs
#   tests/docs.sh serve     show it at http://127.0.0.1:8000 and follow changes of the pages
#
# Needs python3-venv, and the command in build/release (or $PRECACHE), whose --help is shown.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/docs_venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r docs/requirements.txt
  cp docs/requirements.txt "$venv/requirements.txt"
fi

[[ ${1:-} != install ]] || exit 0

export NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1
if [[ ${1:-} == serve ]]; then
  exec "$venv/bin/mkdocs" serve
fi
# With --quiet, mkdocs would not count warnings, and --strict would have no effect.
if ! "$venv/bin/mkdocs" build --strict > build/docs.log 2>&1; then
  grep -v '^INFO' build/docs.log >&2
  exit 1
fi
echo "build/site/index.html"
