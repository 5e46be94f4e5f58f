# SPDX-License-Identifier: Apache-2.0
"""Random lists of operations: the pixels of torchvision for the same draws, in any order and of any size."""

import itertools
import random

import numpy as np
import pytest
from PIL import Image

import precache
from precache import transforms as t
from torchvision_redo import Redo, pil, pixels

pytest_plugins = ("package_fixtures",)

SIZES = [(1, 1), (5, 3), (31, 45), (64, 64), (20, 90)]
FILTERS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("constant", "edge", "reflect", "symmetric")
SAMPLES = 4


@pytest.fixture(scope="module", params=["rgb", "gray"])
def pictures(build, tmp_path_factory, request):
    """By size and layout: datasets of noise and of smooth pictures."""
    draw, datasets = np.random.default_rng(0), {}
    channels = {"rgb": (3,), "gray": ()}[request.param]
    for height, width in SIZES:
        folder = tmp_path_factory.mktemp("pictures")
        (folder / "images" / "a").mkdir(parents=True)
        for i in range(SAMPLES):
            image = Image.fromarray(draw.integers(0, 256, (height, width, *channels), np.uint8))
            if i % 2:
                image = image.resize((max(1, width // 4), max(1, height // 4))).resize((width, height))
            image.save(folder / "images" / "a" / f"{i}.png")
        for layout in ("chw", "hwc"):
            out = build(folder / "images", folder / layout, "--size", f"{height}x{width}", "--fit", "stretch",
                        "--color", request.param, "--layout", layout, "--no-shuffle").out  # fmt: skip
            datasets[height, width, layout] = precache.open(out)
    return datasets


class Lists:
    """Makes random operations for pictures of 1 or 3 channels."""

    def __init__(self, numbers, channels):
        self._numbers = numbers
        self._channels = channels

    def make(self):
        makers = [self.crops, self.crops, self.moves, self.warps, self.colours, self.changes, self.policies]
        return [self._numbers.choice(makers)() for _ in range(self._numbers.randint(1, 5))]

    def crops(self):
        numbers = self._numbers
        size = (numbers.randint(1, 60), numbers.randint(1, 60))
        scale = (numbers.choice((0, numbers.uniform(0.01, 0.5))), 1)
        return numbers.choice(
            (
                t.RandomResizedCrop(size, scale, (0.3, 3), numbers.choice(FILTERS)),
                t.Resize(numbers.choice((size, size[0])), numbers.choice(FILTERS)),
                t.CenterCrop(size),
                t.RandomCrop(size, numbers.randint(0, 6), True, self.fill() or 0, numbers.choice(PADDINGS)),
            )
        )

    def moves(self):
        p = self._numbers.random()
        return self._numbers.choice((t.RandomHorizontalFlip(p), t.RandomVerticalFlip(p), t.RandomQuarterTurn()))

    def warps(self):
        numbers = self._numbers
        center = numbers.choice((None, (numbers.uniform(-5, 20), numbers.uniform(-5, 20))))
        degrees = numbers.choice((numbers.uniform(0, 180), (90, 90), (-270, -270), 0))
        options = {"interpolation": numbers.choice(FILTERS[:2]), "fill": self.fill(), "center": center}
        scale = numbers.choice((None, (numbers.uniform(0.2, 1), numbers.uniform(1, 3))))
        shear = numbers.choice((None, numbers.uniform(0, 40), (-10, 20, -30, 5)))
        translate = numbers.choice((None, (numbers.random(), numbers.random())))
        affine = t.RandomAffine(degrees, translate, scale, shear, **options)
        return numbers.choice((t.RandomRotation(degrees, **options), affine))

    def colours(self):
        numbers = self._numbers
        factors = [numbers.choice((0, numbers.uniform(0, most))) for most in (2, 2, 3, 0.5)]
        p = numbers.random()
        erasing = t.RandomErasing(p, value=numbers.randint(0, 255))
        return numbers.choice((t.ColorJitter(*factors), t.RandomGrayscale(p), erasing))

    def changes(self):
        numbers, p = self._numbers, self._numbers.random()
        solarize, posterize = (
            t.RandomSolarize(numbers.uniform(0, 256), p),
            t.RandomPosterize(numbers.randint(1, 8), p),
        )
        others = (t.RandomEqualize(p), t.RandomAutocontrast(p), t.RandomInvert(p))
        return numbers.choice((solarize, posterize, *others, t.RandomAdjustSharpness(numbers.uniform(0, 4), p)))

    def policies(self):
        numbers = self._numbers
        options = {"interpolation": numbers.choice(FILTERS[:2]), "fill": self.fill()}
        rand = t.RandAugment(numbers.randint(0, 4), numbers.randint(0, 26), **options)
        return numbers.choice((t.TrivialAugmentWide(**options), t.AutoAugment(**options), rand))

    def fill(self):
        each = [self._numbers.randint(0, 255) for _ in range(self._channels)]
        return self._numbers.choice((None, each[0], tuple(each) if self._channels == 3 else each[0]))


def check(dataset, operations, seed):
    """Compares an epoch. Returns the number of samples: none if the operations do not fit the pictures."""
    try:
        loader = precache.Loader(dataset, SAMPLES, transform=operations, seed=seed, layout="chw", threads=1)
    except precache.InvalidArgument:
        return 0  # such as a turn of a picture that is not square
    images, _ = next(iter(loader))
    operations = loader.transforms.operations  # without a first Resize that build did
    for i in range(SAMPLES):
        stored = dataset[i][0] if dataset.spec.layout == "chw" else dataset[i][0].transpose(2, 0, 1)
        draw = loader.draw(i, 0)
        expected = pixels(Redo(operations, draw)(pil(stored)))
        assert images[i].shape == expected.shape and (images[i] == expected).all(), (operations, draw)
    return SAMPLES


@pytest.mark.filterwarnings("ignore:Resize.* is dropped")
def test_random_lists(pictures):
    numbers = random.Random(1)
    count = 0
    for seed, dataset in itertools.product(range(40), pictures.values()):
        channels = dataset.spec.shape[0 if dataset.spec.layout == "chw" else 2]
        count += check(dataset, Lists(numbers, channels).make(), seed)
    assert count > 800
