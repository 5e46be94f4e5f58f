#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds, and runs all tests.
#
#   tests/run.sh           everything: lint, C++ tests (release, and with sanitizers), fuzzing, and Python tests with
#                          the real clients
#   tests/run.sh --middle  lint, the release build, its C++ tests and the Python tests; no sanitizers
#   tests/run.sh --fast    only the C++ tests of the release build
#   tests/run.sh --cluster the release build and all tests of clusters: each engine with each fault
#
# tests/README.md says which to run for which change. Works on a fresh Debian 12, as root or with sudo. A second run
# installs nothing and builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

tier=all
case "${1:-}" in
  "") ;;
  --fast) tier=fast ;;
  --middle) tier=middle ;;
  --cluster) tier=cluster ;;
  *) echo "usage: tests/run.sh [--fast | --middle | --cluster]" >&2; exit 2 ;;
esac

# Each step says how long the one before it took.
current=
began=0
step() {
  [[ -z $current ]] || printf -- '-- %s: %d s\n' "$current" $((SECONDS - began))
  current=$*
  began=$SECONDS
  [[ -z $current ]] || printf '\n== %s\n' "$current"
}
total() {
  step
  printf -- '-- total: %d s\n' "$SECONDS"
}

packages=(catch2)
[[ $tier == fast ]] ||
  packages+=(busybox chromium clang-format libarchive-tools libjpeg-turbo-progs perl protobuf-compiler python3-dev python3-venv util-linux)
# Engines of tests/python/cluster.
[[ $tier == fast ]] || packages+=(munge openjdk-17-jre-headless openmpi-bin slurm-client slurmctld slurmd strace)
[[ $tier != all ]] || packages+=(clang libclang-rt-dev llvm)
step "packages"
samples/install_packages.sh "${packages[@]}"

# A build of everything compiles each folder as one, which takes half the time.
if [[ $tier == fast ]]; then
  step "release build"
  cmake --preset release -DPRECACHE_BUILD_TESTS=ON -DPRECACHE_UNITY=ON > /dev/null
  cmake --build --preset release
  step "C++ tests"
  ctest --preset release -j 2
  total
  exit 0
fi

step "lint"
tests/lint.sh

# Downloads and unpacks gigabytes, which leaves the cores to the compiler.
venv=build/venv
make_environment() {
  cmp -s tests/requirements.txt "$venv/requirements.txt" && return
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
  cp tests/requirements.txt "$venv/requirements.txt"
}
mkdir -p build
{ make_environment && tests/docs.sh install; } > build/venv.log 2>&1 &
environment=$!

if ! command -v nvcc > /dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  step "CUDA toolkit"
  cuda=$PWD/build/cuda
  if ! cmp -s tests/cuda_requirements.txt "$cuda/requirements.txt"; then
    rm -rf "$cuda" build/cuda_pip
    python3 -m venv build/cuda_pip
    build/cuda_pip/bin/pip install --quiet --disable-pip-version-check --no-deps --target "$cuda" -r tests/cuda_requirements.txt
    ln -s libcudart.so.13 "$cuda/nvidia/cu13/lib/libcudart.so"  # CMake looks for it by this name
    cp tests/cuda_requirements.txt "$cuda/requirements.txt"
  fi
  export CUDAToolkit_ROOT="$cuda/nvidia/cu13"
fi
# A toolkit that is not found ends the run: without it, the tests of the GPU would be left out silently.
options=(-DPRECACHE_WITH_CUDA=ON -DPRECACHE_UNITY=ON)

if [[ $tier == all ]]; then
  step "build with AddressSanitizer and UndefinedBehaviorSanitizer"
  cmake --preset asan -DPRECACHE_BUILD_SAMPLES=OFF "${options[@]}" > /dev/null
  cmake --build --preset asan --target precache_tests precache_reader_tests all_device_tests all_fuzz
fi

step "Python environment"
wait "$environment" || { cat build/venv.log >&2; exit 1; }

step "release build"
# Kernels for the oldest and the newest architecture stand for all of them.
cmake --preset release -DPRECACHE_BUILD_TESTS=ON -DPRECACHE_BUILD_PYTHON=ON -DPython_EXECUTABLE="$PWD/$venv/bin/python" \
  "-DPRECACHE_CUDA_ARCHITECTURES=75;120" "${options[@]}" > /dev/null
cmake --build --preset release

if [[ $tier == all ]]; then
  step "C++ tests with AddressSanitizer and UndefinedBehaviorSanitizer"
  ctest --preset asan -j 2 -L 'unit|reader|device'

  step "fuzz targets, 20 seconds each"
  tests/fuzz/run.sh 20

  step "build with ThreadSanitizer"
  cmake --preset tsan -DPRECACHE_BUILD_SAMPLES=OFF "${options[@]}" > /dev/null
  cmake --build --preset tsan --target precache_reader_tests all_device_tests

  step "reader and device tests with ThreadSanitizer"
  # Left out: long loops in one thread, or of what other tests do with threads.
  ctest --preset tsan -j 2 -L 'reader|device' \
    -E 'any flipped byte|casts round every number|every normalisation is exact|a million names|files of the corpora are inspected'
fi

if [[ $tier != cluster ]]; then
  step "C++ tests"
  ctest --preset release -j 2
fi

step "Python package"
# In the tree of the release build, so that nothing is compiled twice.
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings=build-dir=build/release --config-settings=cmake.define.PRECACHE_UNITY=ON \
  --config-settings=cmake.define.PRECACHE_BUILD_TESTS=ON --config-settings=cmake.define.PRECACHE_BUILD_SAMPLES=ON .

export PRECACHE_NEED_CLUSTERS=1  # an engine that is missing fails its tests; elsewhere they skip
if [[ $tier == cluster ]]; then
  step "tests of clusters"
  "$venv/bin/python" -m pytest -q --durations=20 --cluster --basetemp=build/pytest tests/python/cluster
  total
  exit 0
fi

step "documentation site"
PRECACHE=$PWD/build/release/precache tests/docs.sh

step "Python tests"
# In the order of their names: the slow files of the package begin, and short ones fill the rest.
"$venv/bin/python" -m pytest -q --numprocesses=2 --dist=loadfile --no-loadscope-reorder --durations=20 \
  --basetemp=build/pytest tests/python
total
