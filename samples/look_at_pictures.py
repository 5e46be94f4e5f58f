#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the images of a cache as they are stored and as a trainer gets them. Editors that support `# %%` run it cell by cell.

samples/look_at_pictures.py CACHE --out sheet.png     # CACHE is made by `precache build`
"""

# %% Choose the cache
import argparse

import numpy as np
from PIL import Image

import precache

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("cache")
parser.add_argument("--out", default="sheet.png")
parser.add_argument("--columns", type=int, default=8)
args = parser.parse_args()  # in a notebook: parse_args(["shards"])

# %% List its content
dataset = precache.open(args.cache)
print(dataset)
names, counts = np.unique(dataset.labels, return_counts=True)
for label, count in zip(names, counts):
    print(f"{count:6} {dataset.classes[label] if label >= 0 and dataset.classes else label}")

# %% Take one sample: it is a view of the file, and only the pages that are used are read
image, label = dataset[0]
print(
    f"{dataset.keys[0]}: {image.dtype} {image.shape}, label {label}, mean {image.mean():.1f}, writable: {image.flags.writeable}"
)


# %% Take a row of stored images, and three rows that are cropped and flipped as for training
def first_batch(**options):
    size = min(args.columns, len(dataset))
    images, _ = next(iter(precache.Loader(dataset, size, layout="hwc", **options)))
    return images


height, width = first_batch().shape[1:3]
crop = (height * 7 // 8, width * 7 // 8)
rows = [first_batch(), *(first_batch(crop=crop, flip=True, seed=seed) for seed in range(3))]

# %% Draw the sheet
gap = 4
sheet = np.full((len(rows) * (height + gap) + gap, len(rows[0]) * (width + gap) + gap, 3), 255, np.uint8)
for y, row in enumerate(rows):
    for x, picture in enumerate(row):
        top, left = gap + y * (height + gap), gap + x * (width + gap)
        sheet[top : top + picture.shape[0], left : left + picture.shape[1]] = (
            picture  # grey images fill all three channels
        )
Image.fromarray(sheet).save(args.out)
print(f"{args.out}: {sheet.shape[1]}x{sheet.shape[0]} pixels")

# %% `inspect` draws a sheet with labels, for any shards
precache.inspect(args.cache, sheet=f"{args.out.removesuffix('.png')}-labels.png", samples=24)
