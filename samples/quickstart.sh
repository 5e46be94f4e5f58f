#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone on Debian 12 to a first dataset: installs what the build needs (as root or with
# sudo), builds precache, draws some images and turns them into shards. Everything it makes is below
# build/; a second run only does what is left to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=build/quickstart
log=$work/build.log

# Runs a command silently; if it fails, shows the end of its output.
quietly() {
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "quickstart: '$*' failed; its full output is in $log" >&2
    exit 3
  fi
}

# Shows a precache command as you would type it, and runs it.
precache() {
  printf '\n$ precache %s\n' "$*"
  build/release/precache "$@"
}

# The same for any other command.
show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

samples/install_packages.sh
installed=$SECONDS

mkdir -p "$work"
: >"$log"
echo "Building precache (takes a while the first time) ..."
# Compiling by folder, and only the two programs that run below, takes half the time of a full build.
quietly cmake --preset release -DPRECACHE_BUILD_TESTS=OFF -DPRECACHE_UNITY=ON
quietly cmake --build --preset release --target precache draw_dataset
echo "Built build/release/precache in $((SECONDS - installed)) s; installing took $installed s."

# Images of an earlier run would mix with the new ones.
rm -rf "$work/images"
build/release/samples/draw_dataset "$work/images"

precache build "$work/images" "$work/shards" --size 224 --overwrite
show ls -l "$work/shards"
show cat "$work/shards/skipped.tsv"
printf '\n$ tar tf %s | head -n 6\n' "$work/shards/train-000000.tar"
tar tf "$work/shards/train-000000.tar" | sed -n 1,6p # head would stop tar with SIGPIPE

cat <<EOF

Done in $SECONDS s. The shard is a plain tar: per image a .npy tensor, decoded and resized to 224x224,
and a .cls file with its class number. dataset.json lists the classes and every setting of the build.
The truncated JPEG is listed in skipped.tsv. Now try your own folder, one subfolder per class:

  build/release/precache build FOLDER OUT
EOF
