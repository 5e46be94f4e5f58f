#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the loaders of precache with other loaders: the same samples, in the page cache, batches of 256.

    tests/bench/peers.py [FOLDER] [--images 10000] [--rounds 3] [--only NAME...] [--modes MODE...]
                         [--photos FOLDER] [--patience SECONDS] [--json FILE] [--keep]

Modes: sequential, shuffled, float32 and float16; the last two are shuffled and normalised. Each run of a peer is a separate
process. It makes the loader, takes the first batch (imports do not count), finishes that epoch, and is measured in the next
epochs, for at least a second.
A first round tries each number of workers and samples memory. In the other rounds the peers take turns, each with its best
number of workers; the table has medians. The consumer reads one word of each cache line of each batch.

On a shared machine use `--patience`: each run then waits until the processors are idle, up to so many seconds, and is repeated
if other programs used more than 5 % of the processor time while it was measured.

ImageFolder is the only peer that decodes: it reads JPEG photos (default: the ImageNet sample of the corpora) and resizes and
crops them in every epoch. The others read tensors that were stored once.

Memory is the peak of Pss_Anon and Pss_Shmem of the process and its children, so the page cache does not count. Peers that are
not installed are listed at the end, and runs that fail or hang are reported on stderr. `--json` writes the figures with machine,
date, command and versions, for plot_throughput.py. FOLDER (default: a temporary folder) needs 1.5 GB for each kind of file.
"""

import argparse
import contextlib
import datetime
import functools
import importlib
import importlib.metadata
import json
import os
import platform
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from build_bench import PHOTOS
from peer_data import BATCH, SHAPE, STORES, link_jpegs
from peer_loaders import MODES, PEERS, Ours

READ_WORDS = 8  # one word of eight: each cache line once
MEASURED_SECONDS = 1  # at least
MOST_OTHERS = 0.05  # share of the processor time that other programs may use
RUN_SECONDS = 600  # a run that takes longer is killed


# --- one run, in its own process ----------------------------------------------------------------------------------------------


def read(array):
    """Reads each cache line of each row; there may be gaps between rows."""
    rows = (
        array.reshape(len(array), -1)
        if array.flags.c_contiguous
        else np.lib.stride_tricks.as_strided(array, (len(array), array[0].size), (array.strides[0], array.itemsize))
    )
    return int(np.add.reduce(rows.view(np.uint64)[:, ::READ_WORDS], axis=None))


def read_batch(peer, batch):
    """Returns the size of the batch in bytes."""
    arrays = peer.arrays(batch[0])
    for array in arrays:
        read(array)
    return sum(array.nbytes for array in arrays)


def count_and_read(peer, batches):
    return sum(1 for batch in batches if read_batch(peer, batch))


def run_peer(name, mode, workers, folder):
    peer = PEERS[name](folder)
    for module in peer.modules:
        importlib.import_module(module)
    begin = time.perf_counter()
    epochs = peer.epochs(mode, workers)
    batches = iter(next(epochs))
    size = read_batch(peer, next(batches))
    first = time.perf_counter() - begin
    wanted = BATCH * int(np.prod(SHAPE)) * np.dtype(mode if mode.startswith("float") else "uint8").itemsize
    assert wanted <= size < wanted * 1.01, (
        f"a batch has {size} bytes, expected {wanted}"
    )  # DALI's samples include their headers
    count_and_read(peer, batches)
    images, begin, ticks = 0, time.perf_counter(), other_ticks()
    while images == 0 or time.perf_counter() - begin < MEASURED_SECONDS:
        images += BATCH * count_and_read(peer, next(epochs))
    seconds = time.perf_counter() - begin
    print(json.dumps({"rate": images / seconds, "first": first, "others": others_share(ticks, seconds)}), flush=True)
    os._exit(0)  # some peers take long to shut down


def other_ticks():
    """Processor time of all programs but this process and its children."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    own = 0
    for process in (os.getpid(), *children(os.getpid())):
        with contextlib.suppress(OSError):
            own += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return user + nice + system + irq + softirq + steal - own


def others_share(ticks_before, seconds):
    """Share of the processor time that other programs used in the last `seconds`."""
    ticks = other_ticks() - ticks_before
    return round(max(0, ticks / os.sysconf("SC_CLK_TCK") / seconds / os.cpu_count()), 3)


# --- all runs -------------------------------------------------------------------------------------------------------------


def children(pid):
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from children(child)


def held_bytes(pid):
    """Memory of a process and its children; pages that they share count once."""
    total = 0
    for process in (pid, *children(pid)):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def run(name, mode, workers, folder, with_memory=False):
    """Returns the result of a run, or None after printing the reason to stderr."""
    for pattern in STORES[PEERS[name].data][1]:
        for path in folder.glob(pattern):  # brings the file into the page cache
            subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    command = [sys.executable, __file__, "--run", json.dumps([name, mode, workers, str(folder)])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.communicate()))
        reader.start()
        peak, end, hangs = 0, time.monotonic() + RUN_SECONDS, False
        while reader.is_alive() and not hangs:
            peak = max(peak, held_bytes(process.pid)) if with_memory else 0
            reader.join(0.1)
            hangs = reader.is_alive() and time.monotonic() > end
        if hangs:
            os.killpg(process.pid, signal.SIGKILL)  # the workers too: they hold its pipes open
        reader.join()
    if hangs or process.returncode != 0 or not lines[0].strip():
        reason = f"killed after {RUN_SECONDS} s" if hangs else "".join(lines[1].strip().splitlines()[-1:])
        print(f"skipped {name} ({mode}, {workers} workers): {reason}", file=sys.stderr, flush=True)
        return None
    return json.loads(lines[0].splitlines()[-1]) | {"peak": peak, "workers": workers}


def wait_until_quiet(patience):
    """Waits until the processors are idle for a second; at most `patience` seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        ticks = other_ticks()
        time.sleep(1)
        if other_ticks() - ticks < MOST_OTHERS * os.sysconf("SC_CLK_TCK") * os.cpu_count():
            return


def undisturbed(name, mode, workers, folder, patience, with_memory=False):
    """Returns a run that other programs did not disturb, or the least disturbed one of five."""
    runs = []
    for _ in range(5 if patience else 1):
        wait_until_quiet(patience)
        runs.append(run(name, mode, workers, folder, with_memory))
        if runs[-1] is None or runs[-1].get("others", 0) <= MOST_OTHERS:
            return runs[-1]
    return min(runs, key=lambda result: result["others"])


def tuned(name, mode, folder, patience):
    """Returns the fastest run over the numbers of workers."""
    runs = [undisturbed(name, mode, workers, folder, patience, with_memory=True) for workers in PEERS[name].workers]
    return max(filter(None, runs), key=lambda result: result["rate"], default=None)


def ratio_text(runs, ours):
    """Median ratio of `runs` to those of precache.Loader, over the rounds that both finished."""
    ratios = [one["rate"] / other["rate"] for one, other in zip(runs, ours, strict=True) if one and other]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def measure(mode, names, folder, rounds, patience=0):
    best = {name: tuned(name, mode, folder, patience) for name in names if mode in PEERS[name].modes}
    best = {name: result for name, result in best.items() if result}
    results = {name: [] for name in best}  # one per round, None where the run failed
    for _ in range(rounds):
        for name in best:
            results[name].append(undisturbed(name, mode, best[name]["workers"], folder, patience))
    medians = {
        name: [statistics.median(run[key] for run in runs if run) for key in ("rate", "first")]
        for name, runs in results.items()
        if any(runs)
    }
    print(f"\n| {mode} | images/s | of {Ours.name} | first batch | memory | workers |\n|---|---|---|---|---|---|")
    rows = []
    for name, (rate, first) in sorted(medians.items(), key=lambda item: -item[1][0]):
        ratio = ratio_text(results[name], results.get(Ours.name, [None] * rounds))
        print(
            f"| {name} | {rate:,.0f} | {ratio} | {first * 1e3:.0f} ms | {best[name]['peak'] / 1e6:,.0f} MB | {best[name]['workers']} |",
            flush=True,
        )
        rows.append(
            {
                "loader": name,
                "images_per_second": round(rate),
                "relative": ratio,
                "first_batch_ms": round(first * 1e3),
                "memory_mb": round(best[name]["peak"] / 1e6),
                "workers": best[name]["workers"],
                "rounds": [result and round(result["rate"]) for result in results[name]],
                "others": [result and result.get("others") for result in results[name]],
            }
        )
    return rows


# --- the cost of Python and of reading ----------------------------------------------------------------------------------------


def print_costs():
    """Measures tiny batches, whose time is the cost of Python, and the consumer alone, which limits every loader.

    Returns the images/s of the consumer alone, or None if other programs disturbed the measurement.
    """
    import h5py
    import precache

    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(f"{folder}/tiny.h5", "w") as file:
            file["images"], file["labels"] = np.zeros((20000, 3, 8, 8), np.uint8), np.zeros(20000, np.int64)
        precache.convert(f"{folder}/tiny.h5", f"{folder}/tiny", format="tar", progress=False)

        def microseconds(make, **options):
            loader = make(f"{folder}/tiny", batch_size=4, prefetch=64, **options)
            times = []
            for _ in range(7):
                begin = time.perf_counter()
                for _ in loader:
                    pass
                times.append((time.perf_counter() - begin) / len(loader) * 1e6)
            return statistics.median(times)

        print(
            f"A batch of 4 tensors of 3x8x8 takes {microseconds(precache.Loader):.1f} µs as a view, "
            f"{microseconds(precache.Loader, shuffle='full'):.1f} µs shuffled",
            end="",
        )
        with contextlib.suppress(ImportError):
            import precache.torch

            print(f"; torch: {microseconds(precache.torch.Loader, shuffle='full'):.1f} µs", end="")
    batches = np.random.default_rng(0).integers(0, 256, (4, BATCH, int(np.prod(SHAPE))), np.uint8)
    times, start, ticks = [], time.perf_counter(), other_ticks()
    while len(times) < 9 or time.perf_counter() - start < MEASURED_SECONDS:
        begin = time.perf_counter()
        for batch in batches:
            read(batch)
        times.append((time.perf_counter() - begin) / len(batches) / BATCH)
    others, rate = others_share(ticks, time.perf_counter() - start), round(1 / statistics.median(times))
    print(f".\nReading alone, uint8: {rate:,} images/s; other programs used {others:.0%} of the processor time.")
    return rate if others <= MOST_OTHERS else None


@functools.cache
def can_import(module):
    """Tries the import in another process, because some of these modules cannot be loaded together."""
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def store_all(kinds, folder, images, photos):
    for kind in kinds:
        if (folder / f"{kind}.made").exists():
            continue
        if kind == "jpeg":
            link_jpegs(folder, images, photos)
        else:
            command = (
                f"import peer_data, pathlib; peer_data.STORES[{kind!r}][0](pathlib.Path({str(folder)!r}), {images})"
            )
            subprocess.run([sys.executable, "-c", command], check=True, stdout=sys.stderr, cwd=Path(__file__).parent)
        (folder / f"{kind}.made").touch()


# --- the record -----------------------------------------------------------------------------------------------------------


def machine():
    text = Path("/proc/cpuinfo").read_text()
    cpu = next(
        (line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), platform.machine()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu + (" (virtual machine)" if " hypervisor" in text else ""),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9),
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
    }


def versions(names):
    """Versions of Python, precache and the packages of the peers."""
    distributions = importlib.metadata.packages_distributions()
    modules = {module for name in names for module in PEERS[name].modules} | {"numpy"}
    found = {name for module in modules for name in distributions.get(module.split(".")[0], [])[-1:]}
    if "nvidia.dali" in modules:  # one of many packages in the namespace `nvidia`
        found |= {name for name in distributions["nvidia"] if name.startswith("nvidia-dali")}
    listed = {
        name: importlib.metadata.version(name) for name in found if not name.startswith("nvidia-") or "dali" in name
    }
    return {"Python": platform.python_version()} | dict(sorted(listed.items()))


def command(args):
    """The command that repeats the run, without the paths of this machine."""
    words = ["tests/bench/peers.py", "FOLDER", "--images", str(args.images), "--rounds", str(args.rounds)]
    words += ["--only", *args.only] if args.only else []
    words += ["--patience", str(args.patience)] if args.patience else []
    return shlex.join([*words, "--modes", *args.modes])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where to store the data (default: a temporary folder)")
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="only peers whose names contain one of these, and precache.Loader"
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--photos", type=Path, default=PHOTOS, help="folder of JPEG photos for ImageFolder")
    parser.add_argument(
        "--patience", type=int, default=0, metavar="SECONDS", help="wait so long for an idle machine (default: 0)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--keep", action="store_true", help="keep the data in FOLDER for the next run")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run_peer(*json.loads(args.run))

    with contextlib.ExitStack() as stack:
        folder = args.folder.resolve() if args.folder else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = folder / f"peers-{args.images}"
        folder.mkdir(parents=True, exist_ok=True)
        if not args.keep:
            stack.callback(shutil.rmtree, folder)
        names = [
            name for name in PEERS if name == Ours.name or not args.only or any(word in name for word in args.only)
        ]
        absent = [name for name in names if not all(map(can_import, PEERS[name].modules))]
        names = [name for name in names if name not in absent]
        if not args.photos.is_dir():
            names = [name for name in names if PEERS[name].data != "jpeg"]
        store_all(dict.fromkeys(["arrays", *(PEERS[name].data for name in names)]), folder, args.images, args.photos)
        print(
            f"{args.images} samples of {'x'.join(map(str, SHAPE))} uint8, batches of {BATCH}, {len(os.sched_getaffinity(0))} cores, "
            f"medians of {args.rounds} rounds."
        )
        record = {
            "date": f"{datetime.date.today()}",
            "machine": machine(),
            "command": command(args),
            "images": args.images,
            "shape": SHAPE,
            "batch_size": BATCH,
            "rounds": args.rounds,
            "versions": versions(names),
        }
        wait_until_quiet(args.patience)
        record["reading_alone"] = print_costs()
        record["modes"] = {}
        for mode in args.modes:
            record["modes"][mode] = measure(mode, names, folder, args.rounds, args.patience)
            if args.json:
                args.json.write_text(json.dumps(record, indent=1) + "\n")
        if not args.photos.is_dir():
            print(f"\nImageFolder was not measured: there is no folder {args.photos}.")
        if absent:
            print(f"\nNot installed: {', '.join(absent)}.")


if __name__ == "__main__":
    main()
