# SPDX-License-Identifier: Apache-2.0
"""The order of samples and their draws, written again from docs/reader.md and docs/formats/permutation.md."""

import functools
import itertools
import re

from conftest import REPOSITORY

MASK = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


def combine(a, b):
    return mix(mix(a + G & MASK) ^ (b + G & MASK))


@functools.cache
def documented_permutation():
    """The function that the page shows."""
    page = (REPOSITORY / "docs" / "formats" / "permutation.md").read_text()
    scope = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], scope)
    return scope["permutation"]


def documented_order(samples, shuffle, block_rows, window_blocks, seed, epoch):
    permutation = documented_permutation()
    key = combine(seed, epoch)
    if shuffle == "none":
        return list(range(samples))
    if shuffle == "full":
        return [permutation(position, samples, key) for position in range(samples)]
    blocks = -(-samples // block_rows)
    order = [permutation(position, blocks, key) for position in range(blocks)]
    result = []
    for window in range(-(-blocks // window_blocks)):
        rows = [
            row
            for block in order[window * window_blocks : (window + 1) * window_blocks]
            for row in range(block * block_rows, min((block + 1) * block_rows, samples))
        ]
        result += [rows[permutation(place, len(rows), combine(key, window + 1))] for place in range(len(rows))]
    return result


def documented_crop(seed, epoch, sample, rows_free, columns_free):
    """Row and column of the crop, and whether it is flipped."""
    state = combine(combine(seed, epoch), ~sample & MASK)
    draws = []
    for largest in (rows_free, columns_free, 1):
        state = state + G & MASK
        draws.append(mix(state) * (largest + 1) >> 64)
    return draws


def documented_batches(order, batch_size, rank=0, world_size=1, last_batch="drop", position=0):
    """The batches of one rank in one epoch, starting at a position."""
    step = batch_size * world_size
    batches = []
    for first in range(position, len(order), step):
        left = min(len(order) - first, step)
        if left == step or last_batch == "pad":
            sizes = [batch_size] * world_size
        elif last_batch == "drop":
            break
        elif last_batch == "even":
            sizes = [-(-left // world_size)] * world_size
        else:
            sizes = [left // world_size + (each < left % world_size) for each in range(world_size)]
        first += sum(sizes[:rank])
        if sizes[rank]:
            batches.append([order[i % len(order)] for i in range(first, first + sizes[rank])])
    return batches


def documented_draws(weights, seed, epoch):
    """The samples of an epoch that are drawn by weights."""
    sums = list(itertools.accumulate(map(float, weights)))
    key = combine(seed, epoch)
    shares = [(combine(key, position) >> 11) / 2**53 for position in range(len(weights))]
    return [next(i for i, total in enumerate(sums) if total > share * sums[-1]) for share in shares]
