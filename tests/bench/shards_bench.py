#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `precache convert` with `cat` of the same shards and `precache verify` with reading them, and times `precache inspect`.

    tests/bench/shards_bench.py [--photos FOLDER] [--images 10500] [--rounds 5] [--out FOLDER]

`convert` syncs its shards before it exits. So there are two bounds: `cat SHARD > OTHER`, which leaves the data in memory, and
the same followed by `sync OTHER`, which waits until the data is on the disk. Debian's `eatmydata` removes the syncs from a
program; if it is installed, `convert` also runs without syncs, as `cat` does. Each round runs every contender once, in a
different order, on shards in the page cache and with nothing left to write. The table has medians over the rounds, and medians
of the ratios of the rounds.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build_bench import PHOTOS, TOOL, link_photos

FORMATS = ("tar", "tfrecord", "hdf5")


def seconds_of(command, **options):
    begin = time.monotonic()
    if subprocess.run([str(word) for word in command], **options).returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return time.monotonic() - begin


def shards_of(folder):
    return sorted(path for path in folder.iterdir() if path.suffix in (".tar", ".tfrecord", ".h5"))


def size_of(folder):
    return sum(path.stat().st_size for path in shards_of(folder))


class Bench:
    def __init__(self, folder, images, threads):
        self.folder = folder
        self.out = folder / "out"
        self.threads = threads
        self.datasets = {name: folder / name for name in FORMATS}
        seconds_of([TOOL, "build", images, self.datasets["tar"], "--quiet"], stdout=subprocess.DEVNULL)
        for name in FORMATS[1:]:
            seconds_of(
                [TOOL, "convert", self.datasets["tar"], self.datasets[name], "--format", name, "--quiet"],
                stdout=subprocess.DEVNULL,
            )

    def cat(self, source, synced):
        self.out.mkdir()
        sync = ' && sync "$1"' if synced else ""
        begin = time.monotonic()
        for shard in shards_of(source):
            seconds_of(["sh", "-c", f'cat "$0" > "$1"{sync}', shard, self.out / shard.name])
        return size_of(source) / (time.monotonic() - begin)

    def convert(self, source, file_format, threads, *options, wrapper=()):
        seconds = seconds_of(
            [
                *wrapper,
                TOOL,
                "convert",
                source,
                self.out,
                "--format",
                file_format,
                "--jobs",
                threads,
                "--quiet",
                *options,
            ],
            stdout=subprocess.DEVNULL,
        )
        return size_of(self.out) / seconds

    def read(self, source):
        with open(os.devnull, "wb") as sink:
            return size_of(source) / seconds_of(["cat", *shards_of(source)], stdout=sink)

    def verify(self, source):
        return size_of(source) / seconds_of(
            [TOOL, "verify", source, "--quiet", "--jobs", self.threads], stdout=subprocess.DEVNULL
        )

    def print_inspect(self, rounds):
        print("\n| what | ms |\n|---|---|")
        for name, folder in self.datasets.items():
            words = [TOOL, "inspect", folder, "--quiet"]
            times = [seconds_of(words, stdout=subprocess.DEVNULL) for _ in range(rounds)]
            print(f"| inspect {name} | {statistics.median(times) * 1e3:.0f} |")

    def clean(self):
        shutil.rmtree(self.out, ignore_errors=True)
        os.sync()

    def writers(self):
        tar = self.datasets["tar"]
        yield "cat SHARD > OTHER", lambda: self.cat(tar, False)
        yield "cat SHARD > OTHER && sync OTHER", lambda: self.cat(tar, True)
        for source in FORMATS:
            for target in FORMATS:
                yield (
                    f"convert {source} to {target}",
                    lambda source=source, target=target: self.convert(self.datasets[source], target, self.threads),
                )
        for source, target in zip(FORMATS, (*FORMATS[1:], FORMATS[0])) if shutil.which("eatmydata") else ():
            yield (
                f"convert {source} to {target}, not synced",
                lambda source=source, target=target: self.convert(
                    self.datasets[source], target, self.threads, wrapper=["eatmydata"]
                ),
            )
        yield "convert tar to tfrecord, 1 thread", lambda: self.convert(tar, "tfrecord", 1)
        yield "convert tar to tar, --seed 1", lambda: self.convert(tar, "tar", self.threads, "--seed", "1")
        yield (
            "convert tar to tar, float16",
            lambda: self.convert(tar, "tar", self.threads, "--dtype", "float16", "--normalize", "imagenet"),
        )

    def readers(self):
        yield "cat SHARDS > /dev/null", lambda: self.read(self.datasets["tar"])
        for name in FORMATS:
            yield f"verify {name}", lambda name=name: self.verify(self.datasets[name])


def measure(contenders, bounds, rounds, clean):
    contenders = dict(contenders)
    names = list(contenders)
    results = {name: [] for name in names}
    for i in range(rounds + 1):  # the first warms the page cache and the CPU
        # In a different order each time: a virtual machine may lose the memory that a run frees, which slows later runs.
        for name in random.Random(i).sample(names, len(names)):
            clean()
            rate = contenders[name]()
            if i > 0:
                results[name].append(rate)
    print(f"\n| what | MB/s |{''.join(f' of {name} |' for name in names[:bounds])}\n|---|---|{'---|' * bounds}")
    for name, rates in results.items():
        ratios = [statistics.median(a / b for a, b in zip(rates, results[bound])) for bound in names[:bounds]]
        print(f"| {name} | {statistics.median(rates) / 1e6:.0f} |{''.join(f' {ratio:.2f} |' for ratio in ratios)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=PHOTOS)
    parser.add_argument("--images", type=int, default=10500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, help="folder for the data (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.out) as temporary:
        images = Path(temporary) / "images"
        link_photos(arguments.photos, images, arguments.images)
        bench = Bench(Path(temporary), images, arguments.threads)
        sizes = ", ".join(f"{name} {size_of(folder) / 1e9:.2f} GB" for name, folder in bench.datasets.items())
        print(f"{sizes}; {arguments.threads} threads, medians of {arguments.rounds} rounds")
        measure(bench.writers(), 2, arguments.rounds, bench.clean)
        bench.clean()
        measure(bench.readers(), 1, arguments.rounds, lambda: None)
        bench.print_inspect(arguments.rounds)


if __name__ == "__main__":
    main()
