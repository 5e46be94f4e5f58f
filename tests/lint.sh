#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that need no build: the format of C++, the rules for Python, spelling, plain English, and includes between
# libraries.
#
#   tests/lint.sh                  all of them, in seconds
#   tests/lint.sh --tidy [FILE...] clang-tidy on these sources or all: half an hour on two idle cores
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --tidy ]]; then
  shift
  # All but the bindings, which need the headers of nanobind.
  (($#)) || mapfile -t < <(git ls-files 'formats/*.cpp' 'reader/*.cpp' 'convert/*.cpp' 'cli/*.cpp' ':!reader/python')
  (($#)) || set -- "${MAPFILE[@]}"
  # Its own configuration: clang-tidy can read neither a unity build nor the precompiled headers of GCC.
  cmake -S . -B build/tidy -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DPRECACHE_UNITY=OFF \
    -DPRECACHE_BUILD_TESTS=OFF -DPRECACHE_BUILD_SAMPLES=OFF > /dev/null
  printf '%s\0' "$@" | xargs -0 -n 1 -P 2 clang-tidy -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option
  exit
fi

# The files that git tracks below these patterns; in a tree without git, all but those of builds.
sources() {
  git -c safe.directory='*' ls-files -z "$@" 2> /dev/null && return
  find . -path ./build -prune -o -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' \) -print0
}

tools=build/lint
if ! cmp -s tests/lint_requirements.txt "$tools/requirements.txt"; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r tests/lint_requirements.txt
  cp tests/lint_requirements.txt "$tools/requirements.txt"
fi

sources '*.cpp' '*.hpp' '*.cu' | xargs -0 clang-format --dry-run --Werror
"$tools/bin/ruff" check --quiet
"$tools/bin/ruff" format --check --quiet
sources ':!LICENSE' ':!tests/data' ':!tests/cli/cases' | xargs -0 "$tools/bin/codespell" --quiet-level 3
python3 tests/plain_english.py
cmake -P formats/cmake/check_includes.cmake
