#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures our loaders side by side with those of others: the same samples, in the page cache, batches of 256.

    tests/bench/peers.py [FOLDER] [--images 10000] [--rounds 3] [--only NAME...] [--modes MODE...] [--keep]

Modes: sequential, shuffled, and shuffled and normalised to float32 and float16. Every run of a peer is a process of its own: it makes
its loader, takes the first batch (the time to it does not count imports), goes on to the end of that epoch, and is measured in
the next one. A first round tries each number of workers and samples memory; in the others, peers run by turns with
what served them best, and medians are taken. Every consumer reads a word of each cache line of each batch.

Memory is the peak of what the process and its children hold themselves (Pss_Anon and Pss_Shmem): not the page cache, mapped or not.
Peers that are not installed are named as such, and runs that fail or hang are left out with a line on stderr. FOLDER (a temporary one if not given) needs some 1.5 GB for each kind of file.
"""

import argparse
import contextlib
import functools
import importlib
import json
import os
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

from peer_data import BATCH, SHAPE, STORES
from peer_loaders import MODES, PEERS, Ours

READ_WORDS = 8  # one word of eight: each cache line once
RUN_SECONDS = 600  # a run that takes longer hangs


# --- one run, in its process ----------------------------------------------------------------------------------------------


def read(array):
    """Reads each cache line of each row; rows may lie apart."""
    rows = array.reshape(len(array), -1) if array.flags.c_contiguous else np.lib.stride_tricks.as_strided(
        array, (len(array), array[0].size), (array.strides[0], array.itemsize))
    return int(np.add.reduce(rows.view(np.uint64)[:, ::READ_WORDS], axis=None))


def read_batch(peer, batch):
    """How many bytes it had."""
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
    assert wanted <= size < wanted * 1.01, f"a batch of {size} bytes"  # DALI's have headers
    count_and_read(peer, batches)
    begin = time.perf_counter()
    images = BATCH * count_and_read(peer, next(epochs))
    print(json.dumps({"rate": images / (time.perf_counter() - begin), "first": first}), flush=True)
    os._exit(0)  # some peers take long to end


# --- all runs -------------------------------------------------------------------------------------------------------------


def children(pid):
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from children(child)


def held_bytes(pid):
    """What a process and its children hold, shared pages counted once in all."""
    total = 0
    for process in (pid, *children(pid)):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def run(name, mode, workers, folder, with_memory=False):
    """A run's result, or None with the reason on stderr."""
    for pattern in STORES[PEERS[name].data][1]:
        for path in folder.glob(pattern):  # all from the page cache
            subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    command = [sys.executable, __file__, "--run", json.dumps([name, mode, workers, str(folder)])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.communicate()))
        reader.start()
        peak, end, hangs = 0, time.monotonic() + RUN_SECONDS, False
        while reader.is_alive() and not hangs:
            peak = max(peak, held_bytes(process.pid)) if with_memory else 0
            reader.join(0.1)
            hangs = reader.is_alive() and time.monotonic() > end
        if hangs:
            os.killpg(process.pid, signal.SIGKILL)  # with its workers, who hold its pipes open
        reader.join()
    if hangs or process.returncode != 0 or not lines[0].strip():
        reason = f"killed, as it ran for {RUN_SECONDS} s" if hangs else "".join(lines[1].strip().splitlines()[-1:])
        print(f"{name}, {mode}, {workers} workers, left out: {reason}", file=sys.stderr, flush=True)
        return None
    return json.loads(lines[0].splitlines()[-1]) | {"peak": peak, "workers": workers}


def tuned(name, mode, folder):
    """The best run over the numbers of workers."""
    runs = [run(name, mode, workers, folder, with_memory=True) for workers in PEERS[name].workers]
    return max(filter(None, runs), key=lambda result: result["rate"], default=None)


def ratio_text(runs, ours):
    """How runs compare with those of ours, of the rounds that both have."""
    ratios = [one["rate"] / other["rate"] for one, other in zip(runs, ours, strict=True) if one and other]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def measure(mode, names, folder, rounds):
    best = {name: tuned(name, mode, folder) for name in names if mode in PEERS[name].modes}
    best = {name: result for name, result in best.items() if result}
    results = {name: [] for name in best}  # of each round, None where it failed
    for _ in range(rounds):
        for name in best:
            results[name].append(run(name, mode, best[name]["workers"], folder))
    medians = {name: [statistics.median(run[key] for run in runs if run) for key in ("rate", "first")]
               for name, runs in results.items() if any(runs)}
    print(f"\n| {mode} | images/s | of {Ours.name} | first batch | memory | workers |\n|---|---|---|---|---|---|")
    for name, (rate, first) in sorted(medians.items(), key=lambda item: -item[1][0]):
        ratio = ratio_text(results[name], results.get(Ours.name, [None] * rounds))
        print(f"| {name} | {rate:,.0f} | {ratio} | {first * 1e3:.0f} ms | {best[name]['peak'] / 1e6:,.0f} MB | {best[name]['workers']} |",
              flush=True)


# --- what Python adds, and what reading costs -------------------------------------------------------------------------------


def print_costs():
    """The time of a batch of next to nothing is what Python adds; the consumer alone bounds everybody."""
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

        print(f"A batch of 4 tensors of 3x8x8, all included: {microseconds(precache.Loader):.1f} µs as a view, "
              f"{microseconds(precache.Loader, shuffle='full'):.1f} µs shuffled", end="")
        with contextlib.suppress(ImportError):
            import precache.torch

            print(f"; torch: {microseconds(precache.torch.Loader, shuffle='full'):.1f} µs", end="")
    batches = np.random.default_rng(0).integers(0, 256, (4, BATCH, int(np.prod(SHAPE))), np.uint8)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        for batch in batches:
            read(batch)
        times.append((time.perf_counter() - begin) / len(batches) / BATCH)
    print(f".\nReading alone, uint8: {1 / statistics.median(times):,.0f} images/s.")


@functools.cache
def can_import(module):
    """Tried in another process: not all of them bear each other."""
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def store_all(kinds, folder, images):
    for kind in kinds:
        if not (folder / f"{kind}.made").exists():
            command = f"import peer_data, pathlib; peer_data.STORES[{kind!r}][0](pathlib.Path({str(folder)!r}), {images})"
            subprocess.run([sys.executable, "-c", command], check=True, stdout=sys.stderr, cwd=Path(__file__).parent)
            (folder / f"{kind}.made").touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the data is put (default: a temporary folder)")
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="peers whose names contain one of these; ours is always there")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--keep", action="store_true", help="leave the data in FOLDER, for the next run")
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
        names = [name for name in PEERS if name == Ours.name or not args.only or any(word in name for word in args.only)]
        absent = [name for name in names if not all(map(can_import, PEERS[name].modules))]
        names = [name for name in names if name not in absent]
        store_all(dict.fromkeys(["arrays", *(PEERS[name].data for name in names)]), folder, args.images)
        print(f"{args.images} samples of {'x'.join(map(str, SHAPE))} uint8, batches of {BATCH}, {len(os.sched_getaffinity(0))} cores, "
              f"medians of {args.rounds} rounds.")
        print_costs()
        for mode in args.modes:
            measure(mode, names, folder, args.rounds)
        if absent:
            print(f"\nNot installed: {', '.join(absent)}.")


if __name__ == "__main__":
    main()
