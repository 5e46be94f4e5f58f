#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets and runs each for some time, two at once.
#
# tests/fuzz/run.sh [SECONDS [TARGET...]] the default is 60 seconds, and all targets
#
# Fails if code of precache crashes, hangs, leaks or allocates as much as a file claims; the input is kept in
# build/fuzz/crashes. Inputs with new coverage stay in build/fuzz/corpus for the next run. First inputs come from
# fuzz_seeds and, if it exists, from ../shared/corpora.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
targets=("${@:2}")
((${#targets[@]})) || targets=(csv hdf5 inflate manifest npy tar tfrecord)
bin=$PWD/build/asan/tests/fuzz
seeds=$PWD/build/fuzz/seeds
corpus=$PWD/build/fuzz/corpus
crashes=$PWD/build/fuzz/crashes
logs=$PWD/build/fuzz/logs

[[ -f build/asan/CMakeCache.txt ]] || cmake --preset asan > /dev/null
cmake --build --preset asan --target all_fuzz

largest_input=16384  # bytes: small inputs run faster and can trigger the same faults
rm -rf "$seeds" "$logs"
mkdir -p "$crashes" "$logs"
"$bin/fuzz_seeds" "$seeds"
for kind in tar tfrecord hdf5; do
  [[ -d ../shared/corpora/$kind ]] || continue
  find "../shared/corpora/$kind" -type f ! -name MANIFEST.tsv -size -$((largest_input / 1024 + 1))k \
    -exec cp --no-preserve=mode --backup=numbered -t "$seeds/$kind" {} +
done

mkdir -p "$seeds/inflate"  # the first byte is the size of pieces
{ printf '\x05'; gzip -c "$seeds/tar/own"; gzip -c "$seeds/tfrecord/own"; } > "$seeds/inflate/members"
printf '\x05\x78\x9c\x03\x00\x00\x00\x00\x01' > "$seeds/inflate/zlib"

export UBSAN_OPTIONS=print_stacktrace=1

# fuzz TARGET OPTION...: callers set -malloc_limit_mb, so that an allocation of the size that a file claims is a
# fault.
fuzz() {
  local target=$1
  mkdir -p "$corpus/$target"
  "$bin/fuzz_$target" -max_total_time="$seconds" -max_len=$largest_input -timeout=20 -rss_limit_mb=2048 \
    -artifact_prefix="$crashes/$target-" -print_final_stats=1 "${@:2}" "$corpus/$target" "$seeds/$target" \
    > "$logs/$target" 2>&1
}

# Whether the first frame of the stack in this log that is neither the sanitizer's nor the C library's is one of libhdf5.
is_of_libhdf5() {
  local frame
  frame=$(grep -E '^ *#[0-9]+ ' "$1" | grep -E -m 1 'libhdf5|precache::|LLVMFuzzerTestOneInput' || true)
  [[ $frame == *libhdf5* ]]
}

# The HDF5 library has known faults, so the target continues after a crash, and each crash is examined afterwards.
fuzz_hdf5() {
  local options=(-malloc_limit_mb=128)  # a chunk of labels may take half of it
  # Leaks and failed allocations of libhdf5 are not faults of precache.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
  rm -f "$crashes"/hdf5-*
  fuzz hdf5 "${options[@]}" -fork=1 -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1 || true  # exits with 1 after crashes
  grep -q 'INFO: exiting:' "$logs/hdf5" || return 1
  local crash library=0 unclear=0 ours=0
  again() { "$bin/fuzz_hdf5" "${options[@]}" -timeout=20 -rss_limit_mb="$1" "$crash" > "$crash.log" 2>&1; }
  for crash in "$crashes"/hdf5-*; do
    [[ -e $crash ]] || continue
    # First without a limit on all memory, because a run that the limit stops has no stack to examine.
    if again 0 && again 2048; then
      unclear=$((unclear + 1))  # alone it does not crash: an earlier input corrupted the memory of the library
    elif is_of_libhdf5 "$crash.log"; then
      library=$((library + 1))
    else
      ours=$((ours + 1))
      continue
    fi
    rm "$crash" "$crash.log"
  done
  echo "hdf5: faults in libhdf5: $library, only after other inputs: $unclear, in precache: $ours" >> "$logs/hdf5"
  ((ours == 0))
}

run_target() {
  local fuzz=(fuzz "$1" -malloc_limit_mb=16)
  [[ $1 != hdf5 ]] || fuzz=(fuzz_hdf5)
  if "${fuzz[@]}"; then
    echo "$1: $(grep -E -o '(number_of_executed_units: +[0-9]+|^#[0-9]+: cov: [0-9]+|^hdf5: .*)' "$logs/$1" | tail -n 2 |
      sed 's/^hdf5: //' | paste -s -d ' ' | tr -s ' ')"
  else
    echo "$1: FAILED"
    grep -v NEW_FUNC "$logs/$1" | tail -n 60
    touch "$logs/failed"
  fi
}

for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= 2)); do wait -n; done
  run_target "$target" &
done
wait

if [[ -e $logs/failed ]]; then
  echo "The inputs are kept. To run one again:"
  for crash in "$crashes"/*; do
    name=${crash##*/}
    [[ $crash == *.log ]] || echo "  $bin/fuzz_${name%%-*} $crash"
  done
  exit 1
fi
