#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `precache build` against decoding alone, on the same files and threads, in one run.

    tests/bench/build_bench.py [--photos FOLDER] [--images 6000] [--rounds 5] [--out FOLDER] [--listing 1300000] [--sources]

The photos (default: the ImageNet sample of the corpora) are linked until there are enough names. Each round runs every
contender once, so that a slow minute of the machine affects all of them; the table has medians over the rounds. `--listing N`
measures `--dry-run` on N files in 1,000 class folders instead; `--sources` compares builds from a folder, a tar and a tar.gz.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TOOL = BUILD / "precache"
DECODE_ALONE = BUILD / "tests" / "bench" / "decode_alone"
PHOTOS = ROOT.parent / "shared" / "corpora" / "imagenet-sample"
FORMATS = ("tar", "tfrecord", "hdf5")


def link_photos(photos, folder, count):
    """Fills class folders with `count` hard links to the photos."""
    files = sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{photos} has no JPEG files; name a folder of photos with --photos")
    local = folder.parent / "photos"
    local.mkdir()
    copies = [shutil.copy(f, local / f"{i}.jpg") for i, f in enumerate(files)]
    for i in range(count):
        target = folder / f"class{i * 1000 // count:04}" / f"photo{i:07}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        source = copies[i % len(copies)]
        try:
            os.link(source, target)
        except OSError:  # the file system limits the links of one file
            copies[i % len(copies)] = shutil.copy(source, local / f"copy{i}.jpg")
            os.link(copies[i % len(copies)], target)


def run(command):
    """Returns the seconds, the peak memory in MB and the standard output of a command."""
    begin = time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, output


def decode_alone(folder, threads):
    _, memory, output = run([DECODE_ALONE, folder, threads])
    result = json.loads(output)
    return result["images"] / result["seconds"], memory


def build(folder, out, file_format, threads):
    shutil.rmtree(out, ignore_errors=True)
    _, memory, output = run(
        [
            TOOL,
            "build",
            folder,
            out,
            "--preset",
            "imagenet",
            "--format",
            file_format,
            "--jobs",
            threads,
            "--quiet",
            "--json",
        ]
    )
    result = json.loads(output)
    shutil.rmtree(out)
    return result["images_per_second"], memory


def compare(contenders, arguments, bound_name):
    """Runs the contenders in turns and prints each next to the first."""
    results = {name: [] for name in contenders}
    for contender in contenders.values():  # warm the page cache and the CPU
        contender()
    for _ in range(arguments.rounds):
        for name, contender in contenders.items():
            results[name].append(contender())
    bound = list(results)[0]
    print(f"{arguments.images} photos, medians of {arguments.rounds} rounds, uint8, --preset imagenet\n")
    print(f"| what | images/s | of {bound_name} | peak memory |\n|---|---|---|---|")
    for name, values in results.items():
        rate = statistics.median(v[0] for v in values)
        ratio = statistics.median(v[0] / b[0] for v, b in zip(values, results[bound]))
        print(f"| {name} | {rate:.0f} | {ratio:.2f} | {max(v[1] for v in values):.0f} MB |")
    return results


def measure_sources(arguments, folder, out):
    tar = folder.parent / "images.tar"
    subprocess.run(["tar", "-cf", tar, "--hard-dereference", "-C", folder, "."], check=True)
    subprocess.run(["gzip", "-1", "-k", tar], check=True)
    sources = {"folder": folder, "tar": tar, "tar.gz": f"{tar}.gz"}
    contenders = {
        f"build from a {name}, {arguments.threads} threads": lambda path=path: build(
            path, out, "tar", arguments.threads
        )
        for name, path in sources.items()
    }
    compare(contenders, arguments, "the folder")


def measure_build(arguments, folder, out):
    threads = arguments.threads
    contenders = {f"decode alone, {threads} threads": lambda: decode_alone(folder, threads)}
    for name in FORMATS:
        contenders[f"build {name}, {threads} threads"] = lambda name=name: build(folder, out, name, threads)
    contenders["build tar, 1 thread"] = lambda: build(folder, out, "tar", 1)
    results = compare(contenders, arguments, "decode alone")
    scaling = statistics.median(
        a[0] / b[0] for a, b in zip(results[f"build tar, {threads} threads"], results["build tar, 1 thread"])
    )
    print(f"\nscaling of build tar from 1 to {threads} threads: {scaling:.2f}x")


def measure_listing(arguments, folder, out):
    values = [run([TOOL, "build", folder, out, "--dry-run", "--json"]) for _ in range(arguments.rounds + 1)][1:]
    seconds = statistics.median(v[0] for v in values)
    print(f"--dry-run on {arguments.listing} files: {seconds:.1f} s, peak memory {max(v[1] for v in values):.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=PHOTOS)
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, help="folder for the data (default: a temporary folder)")
    parser.add_argument("--listing", type=int, default=0)
    parser.add_argument("--sources", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.out) as temporary:
        folder = Path(temporary) / "images"
        link_photos(arguments.photos, folder, arguments.listing or arguments.images)
        measure = measure_listing if arguments.listing else measure_sources if arguments.sources else measure_build
        measure(arguments, folder, Path(temporary) / "out")


if __name__ == "__main__":
    main()
