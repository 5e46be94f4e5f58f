#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws one picture under each operation: live with torchvision, and from a shard, with the same numbers.

    docs/images/augmentation.py [PICTURE] [--out augmentation.jpg]

Needs the package and torchvision. By default, PICTURE is one that build/release/samples/draw_dataset draws; the stored overview is of a photo (README.md here).
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import precache  # noqa: E402
from precache import transforms as t  # noqa: E402
from torchvision_redo import Redo, pixels  # noqa: E402

STORED, SIZE, SHOWN, GAP, LINE = 320, 224, 112, 8, 16
BILINEAR = "bilinear"
OPERATIONS = [
    [t.RandomResizedCrop(SIZE)],
    [t.RandomResizedCrop(SIZE), t.RandomHorizontalFlip(1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomCrop(SIZE, 40, padding_mode="reflect")],
    [t.Resize((SIZE, SIZE)), t.RandomVerticalFlip(1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomQuarterTurn()],
    [t.Resize((SIZE, SIZE)), t.RandomRotation(45, BILINEAR)],
    [t.Resize((SIZE, SIZE)), t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 20, BILINEAR)],
    [t.Resize((SIZE, SIZE)), t.ColorJitter(0.6, 0.6, 0.6, 0.3)],
    [t.Resize((SIZE, SIZE)), t.RandomGrayscale(1.0)],
    [t.Resize((SIZE, SIZE)), t.GaussianBlur(23, (4, 6))],
    [t.Resize((SIZE, SIZE)), t.RandomErasing(1.0, value=(255, 255, 255))],
    [t.Resize((SIZE, SIZE)), t.RandomSolarize(128, 1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomPosterize(2, 1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomEqualize(1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomAutocontrast(1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomInvert(1.0)],
    [t.Resize((SIZE, SIZE)), t.RandomAdjustSharpness(8, 1.0)],
    [t.Resize((SIZE, SIZE)), t.TrivialAugmentWide(interpolation=BILINEAR)],
    [t.Resize((SIZE, SIZE)), t.RandAugment(interpolation=BILINEAR)],
    [t.Resize((SIZE, SIZE)), t.AutoAugment(interpolation=BILINEAR)],
]
COLUMNS = 4
SEED = 5  # one whose draws can be seen


def scaled(draw, picture):
    """The draw for the picture itself: rectangles of the stored square, in the picture's pixels."""
    if "RandomResizedCrop" not in draw:
        return draw
    top, left, height, width = draw["RandomResizedCrop"]
    down, across = picture.height / STORED, picture.width / STORED
    rectangle = (round(top * down), round(left * across), round(height * down), round(width * across))
    return draw | {"RandomResizedCrop": rectangle}


def pair(picture, dataset, operations):
    loader = precache.Loader(dataset, 1, transform=operations, seed=SEED)
    images, _ = next(iter(loader))
    stored = Image.fromarray(images[0].transpose(1, 2, 0))
    live = Redo(operations, scaled(loader.draw(0, 0), picture))(picture)
    assert pixels(live).shape == images[0].shape
    return live, stored


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=HERE / "augmentation.jpg")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        if args.picture is None:
            subprocess.run([ROOT / "build/release/samples/draw_dataset", work / "drawn"], check=True)
            args.picture = work / "drawn" / "checker" / "000005.jpg"
        (work / "images" / "a").mkdir(parents=True)
        picture = Image.open(args.picture).convert("RGB")
        picture.save(work / "images" / "a" / "one.png")
        precache.build(work / "images", work / "shards", size=STORED, fit="stretch", progress=False)
        dataset = precache.open(work / "shards")

        cell = 2 * SHOWN + 2 * GAP, SHOWN + LINE + GAP
        rows = -(-len(OPERATIONS) // COLUMNS)
        sheet = Image.new("RGB", (COLUMNS * cell[0] + GAP, rows * cell[1] + GAP), "white")
        pen = ImageDraw.Draw(sheet)
        for number, operations in enumerate(OPERATIONS):
            x, y = GAP + number % COLUMNS * cell[0], GAP + number // COLUMNS * cell[1]
            pen.text((x, y), " + ".join(type(each).__name__ for each in operations[-1:]), "black")
            for image in pair(picture, dataset, operations):
                sheet.paste(image.resize((SHOWN, SHOWN), Image.Resampling.LANCZOS), (x, y + LINE))
                x += SHOWN + 1
        sheet.save(args.out, quality=88, optimize=True)
        print(f"{args.out.name}: {sheet.width}x{sheet.height}, {args.out.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
