#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How fast several processes build parts at a time, compared with one process that has as many threads. Runs in turns,
# because the speed of a shared machine changes; processor time changes less.
#
#   tests/bench/parts_bench.sh SOURCE FOLDER [PROCESSES=3] [ROUNDS=3]
set -euo pipefail
source=$1 folder=$2 processes=${3:-3} rounds=${4:-3}
precache=${PRECACHE:-build/release/precache}
options=(--shards 24 --quiet)
TIMEFORMAT='%R %U %S'

# parts NAME COUNT JOBS: makes all parts at a time.
parts() {
  local part
  for ((part = 0; part < $2; ++part)); do
    "$precache" build "$source" "$folder/$1" "${options[@]}" --part "$part/$2" --jobs "$3" > /dev/null 2>&1 &
  done
  wait
}

# build NAME COUNT JOBS: prints the seconds that the parts take together, in all, of users and of the system.
build() {
  rm -rf "${folder:?}/$1"
  "$precache" build "$source" "$folder/$1" "${options[@]}" --prepare > /dev/null 2>&1
  { time parts "$@"; } 2>&1
  "$precache" build "$source" "$folder/$1" "${options[@]}" --finish > /dev/null 2>&1
}

mkdir -p "$folder"
echo "| round | 1 process, $processes threads: s, processor s | $processes processes, 1 thread each | speed | work |"
echo "|---|---|---|---|---|"
for ((round = 1; round <= rounds; ++round)); do
  one=$(build one 1 "$processes")
  several=$(build several "$processes" 1)
  echo "$round $one $several" |
    awk '{ a = $3 + $4; b = $6 + $7
           printf "| %d | %.2f, %.2f | %.2f, %.2f | %.2f | %.2f |\n", $1, $2, a, $5, b, $2 / $5, a / b }'
done
diff -r "$folder/one" "$folder/several"
