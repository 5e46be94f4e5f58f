#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds, and runs all tests.
#
#   tests/run.sh           C++ tests (release, then with sanitizers), fuzzing, and Python tests with the real clients
#   tests/run.sh --fast    only the C++ tests of the release build
#
# Works on a fresh Debian 12, as root or with sudo. A second run installs nothing and builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

fast=false
case "${1:-}" in
  "") ;;
  --fast) fast=true ;;
  *) echo "usage: tests/run.sh [--fast]" >&2; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }

packages=(catch2)
$fast || packages+=(busybox chromium clang libarchive-tools libclang-rt-dev llvm libjpeg-turbo-progs perl python3-dev python3-venv util-linux)
step "packages"
samples/install_packages.sh "${packages[@]}"

options=(-DPRECACHE_BUILD_TESTS=ON)
if ! $fast; then
  step "Python environment"
  venv=build/venv
  if ! cmp -s tests/requirements.txt "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt "$venv/requirements.txt"
  fi
  options+=(-DPRECACHE_BUILD_PYTHON=ON -DPython_EXECUTABLE="$PWD/$venv/bin/python")
fi

if ! $fast && ! command -v nvcc > /dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  step "CUDA toolkit"
  cuda=build/cuda
  if ! cmp -s tests/cuda_requirements.txt "$cuda/requirements.txt"; then
    rm -rf "$cuda"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$cuda" -r tests/cuda_requirements.txt
    ln -s libcudart.so.13 "$cuda/nvidia/cu13/lib/libcudart.so"  # CMake looks for it by this name
    cp tests/cuda_requirements.txt "$cuda/requirements.txt"
  fi
  export CUDAToolkit_ROOT="$PWD/$cuda/nvidia/cu13"
fi
# A toolkit that is not found ends the run: it would take the tests of the GPU with it, and nobody would notice.
cuda_option=()
$fast || cuda_option=(-DPRECACHE_WITH_CUDA=ON)

step "release build"
cmake --preset release "${options[@]}" "${cuda_option[@]}" > /dev/null
cmake --build --preset release

step "C++ tests"
ctest --preset release -j 2
$fast && exit 0

step "C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer"
cmake --preset asan -DPRECACHE_BUILD_SAMPLES=OFF "${cuda_option[@]}" > /dev/null
cmake --build --preset asan --target precache_tests precache_reader_tests all_device_tests
ctest --preset asan -j 2 -L 'unit|reader|device'

step "Reader and device tests under ThreadSanitizer"
cmake --preset tsan -DPRECACHE_BUILD_SAMPLES=OFF "${cuda_option[@]}" > /dev/null
cmake --build --preset tsan --target precache_reader_tests all_device_tests
ctest --preset tsan -j 2 -L 'reader|device'

step "Fuzz targets, a minute each"
tests/fuzz/run.sh 60

step "Python package"
# In the tree of the release build, so that nothing is compiled twice.
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings=build-dir=build/release \
  --config-settings=cmake.define.PRECACHE_BUILD_TESTS=ON --config-settings=cmake.define.PRECACHE_BUILD_SAMPLES=ON .

step "Python tests"
"$venv/bin/python" -m pytest -q --numprocesses=2 --dist=loadfile --basetemp=build/pytest tests/python
