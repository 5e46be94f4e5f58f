# SPDX-License-Identifier: Apache-2.0
"""The order of samples and their draws, written again from docs/reader.md and docs/formats/permutation.md."""

import fractions
import functools
import itertools
import math
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


class DocumentedDraws:
    """The numbers of an operation for one sample."""

    def __init__(self, name, seed, epoch, sample, before=0, repeat=0, view=0):
        """`before` is the number of operations of the same name before it."""
        hashed = 0xCBF29CE484222325
        for byte in name.encode():
            hashed = (hashed ^ byte) * 0x100000001B3 & MASK
        of_sample = combine(combine(combine(seed, epoch), ~sample & MASK), view << 32 | repeat)
        self._state = combine(of_sample, hashed + before & MASK)

    def bits(self):
        self._state = self._state + G & MASK
        return mix(self._state)

    def uniform(self, begin=0.0, end=1.0):
        return begin + (end - begin) * ((self.bits() >> 11) / 2**53)

    def below(self, n):
        return self.bits() * n >> 64

    def chance(self, p):
        return self.uniform() < p

    def permute(self, n):
        order = list(range(n))
        for i in range(n, 1, -1):
            other = self.below(i)
            order[i - 1], order[other] = order[other], order[i - 1]
        return tuple(order)

    def sign(self, change, magnitude):
        return -magnitude if change in SIGNED and self.below(2) else magnitude


CHANGES = (
    "Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize "
    "AutoContrast Equalize"
).split()
SIGNED = CHANGES[1:10]


def documented_jitter(draws, *ranges):
    """(order, brightness, contrast, saturation, hue); None for a factor without a range."""
    order = draws.permute(4)
    numbers = [draws.uniform() for _ in range(4)]
    factors = [None if span is None else span[0] + (span[1] - span[0]) * x for span, x in zip(ranges, numbers)]
    return (order, *factors)


def documented_affine(draws, operation, height, width):
    """(degrees, (x, y), scale, (shear of x, shear of y)) of a RandomAffine."""
    degrees, shift, scale, shear = draws.uniform(*operation.degrees), (0, 0), 1.0, (0.0, 0.0)
    if operation.translate is not None:
        most = operation.translate[0] * width, operation.translate[1] * height
        shift = tuple([round(draws.uniform(-each, each)) for each in most])
    if operation.scale is not None:
        scale = draws.uniform(*operation.scale)
    if operation.shear is not None:
        x_from, x_to, y_from, y_to = (*operation.shear, 0, 0)[:4]
        shear = draws.uniform(x_from, x_to), draws.uniform(y_from, y_to)
    return degrees, shift, scale, shear


def _sides(draws, area, scale, ratio):
    """The square roots of area times ratio and of area by ratio."""
    area *= draws.uniform(*scale)
    ratio = math.exp(draws.uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))


def documented_rectangle(draws, scale, ratio, height, width):
    """(top, left, height, width) of a RandomResizedCrop."""
    for _ in range(10):
        w, h = _sides(draws, height * width, scale, ratio)
        if 1 <= w <= width and 1 <= h <= height:
            return draws.below(height - h + 1), draws.below(width - w + 1), h, w
    h, w = height, width
    if width / height < ratio[0]:
        h = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]:
        w = max(1, round(height * ratio[1]))
    return (height - h) // 2, (width - w) // 2, h, w


def documented_rectangle_of_original(rectangle, original, stored):
    """The same rectangle in the stored pixels."""
    sides = []
    for axis in range(2):
        begin, end = (
            round(fractions.Fraction(edge * stored[axis], original[axis]))
            for edge in (rectangle[axis], rectangle[axis] + rectangle[axis + 2])
        )
        begin = min(begin, stored[axis] - 1)
        sides.append((begin, max(end - begin, 1)))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


def documented_erasing(draws, p, scale, ratio, height, width):
    """(top, left, height, width), or None."""
    if not draws.chance(p):
        return None
    for _ in range(10):
        h, w = _sides(draws, height * width, scale, ratio)
        if h < height and w < width:
            return draws.below(height - h + 1), draws.below(width - w + 1), h, w
    return None


def documented_noise(noise, elements, *, normalized):
    """The numbers of RandomErasing's noise, for the numbers of elements."""
    keys = [mix(noise + (element + 1) * G & MASK) for element in elements]
    if not normalized:
        return [key & 255 for key in keys]
    between = [(mix(key) >> 11) / 2**53 - 0.5 for key in keys]
    return [(key.bit_count() - 32 + rest) / math.sqrt(64 / 4 + 1 / 12) for key, rest in zip(keys, between)]
