#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what Python adds to a batch, in microseconds: with hooks that are not used, without their code, and with hooks.

    tests/bench/hooks.py DATASET [--batches N] [--rounds N]     # the dataset is made by `precache build`

Rounds are interleaved, because the speed of a machine changes; the medians of rounds are printed. "native" is the time of
the C++ loader alone.
"""

import argparse
import statistics
import time

import precache
import precache.torch


class WithoutHooks:
    """A loader whose `_next` has no code for hooks and columns."""

    def _next(self, iteration):
        native = self._open(for_batches=True)
        if self._iteration is not iteration:
            raise RuntimeError(self._interruption)
        batch = native.next()
        self._was_read = batch is not None
        return None if batch is None else self._arrays(batch)


class Numpy(WithoutHooks, precache.Loader):
    pass


class Torch(WithoutHooks, precache.torch.Loader):
    pass


def microseconds(batches, count):
    """Of one batch."""
    for _ in range(50):
        next(batches)
    began = time.perf_counter()
    for _ in range(count):
        next(batches)
    return (time.perf_counter() - began) / count * 1e6


def native_batches(loader):
    native = loader._open(for_batches=True)
    while True:
        if (batch := native.next()) is not None:
            yield batch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    options = {"batch_size": 1, "threads": 1, "prefetch": 8}
    hooks = {"batch_transform": lambda images, labels: (images, labels), "as_dict": ("x", "y")}
    for name, kind, plain in (("numpy", precache.Loader, Numpy), ("torch", precache.torch.Loader, Torch)):
        cases = {
            "native": native_batches(kind(args.dataset, **options)),
            "without hooks": plain(args.dataset, **options).forever(),
            "unused hooks": kind(args.dataset, **options).forever(),
            "used hooks": kind(args.dataset, **options, **hooks).forever(),
        }
        times = {case: [] for case in cases}
        for _ in range(args.rounds):
            for case, batches in cases.items():
                times[case].append(microseconds(batches, args.batches))
        medians = {case: statistics.median(values) for case, values in times.items()}
        unused = medians["unused hooks"] - medians["without hooks"]
        print(name, *(f"{case} {value:.1f}" for case, value in medians.items()), f"unused cost {unused:.1f}", sep="\t")


if __name__ == "__main__":
    main()
