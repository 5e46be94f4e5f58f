# SPDX-License-Identifier: Apache-2.0
"""The pixels of augmentations equal those of torchvision's path through Pillow, given the same numbers."""

import math
import random
import subprocess

import numpy as np
import pytest
import torchvision.transforms.autoaugment as policies
import torchvision.transforms.functional as torchvision_functional
from PIL import Image
from torchvision.transforms import InterpolationMode

INTERPOLATIONS = (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)
CHANGES = (
    "Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize "
    "AutoContrast Equalize Invert"
).split()


class Program:
    """tests/support/augment_pixels.cpp, which stays open."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, name, pixels, *arguments):
        words = (name, *pixels.shape, *(float(argument).hex() for argument in arguments))
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n" + pixels.tobytes())
        self.process.stdin.flush()
        changed = self.process.stdout.read(pixels.size)
        assert len(changed) == pixels.size, f"augment_pixels ended at {words}"
        return np.frombuffer(changed, np.uint8).reshape(pixels.shape)


@pytest.fixture(scope="module")
def change(precache):
    """change(name, pixels, arguments...): pixels that our function changed."""
    program = Program(precache.parent / "tests" / "augment_pixels")
    yield program
    program.process.stdin.close()
    assert program.process.wait(60) == 0


def picture(pixels):
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))


def pixels_of(picture):
    pixels = np.asarray(picture)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def random_pixels(numbers):
    """Grey or colour, from 1 pixel up: noise, slopes, two values, one value."""
    noise = np.random.default_rng(numbers.getrandbits(32))
    largest = numbers.choice((4, 20, 80, 80, 250))
    channels, height, width = numbers.choice((1, 3, 3)), numbers.randint(1, largest), numbers.randint(1, largest)
    if numbers.random() < 0.3:
        width = height
    shape = (channels, height, width)
    kind = numbers.choice(("noise", "noise", "slope", "two", "one", "narrow"))
    if kind == "slope":
        channel, y, x = np.mgrid[0:channels, 0:height, 0:width]
        pixels = (3 * x * (channel + 1) + 2 * y * (2 - channel) + noise.integers(0, 9, shape)) % 256
    elif kind == "two":
        pixels = noise.integers(0, 2, shape) * 255
    elif kind == "one":
        pixels = np.full(shape, numbers.randint(0, 255))
    else:
        pixels = noise.integers(*((90, 150) if kind == "narrow" else (0, 256)), shape)
    return pixels.astype(np.uint8)


def random_factor(numbers):
    magnitude = 0.99 * numbers.randint(-30, 30) / 30  # as the policies have them
    return numbers.choice((numbers.uniform(0, 2), numbers.uniform(0, 5), numbers.randint(0, 40) / 20, 1 + magnitude))


def random_fill(numbers, channels):
    """The fill for torchvision, and for us."""
    fill = [numbers.randint(0, 255) for _ in range(numbers.choice((1, channels)))]
    return numbers.choice(((None, []), (fill, fill)))


def random_center(numbers, height, width):
    """The centre for torchvision, and for us."""
    if numbers.random() < 0.5:
        return None, (0, 0, 0)
    center = [numbers.uniform(-5, width + 5), numbers.uniform(-5, height + 5)]
    return center, (1, *center)


def random_angle(numbers):
    policy = 135 * numbers.randint(-30, 30) / 30
    right = 90 * numbers.randint(-5, 5)
    return numbers.choice((numbers.uniform(-180, 180), numbers.uniform(-720, 720), policy, float(right)))


def check_equal(got, expected, case):
    expected = pixels_of(expected)
    wrong = np.argwhere(got != expected)
    assert not len(wrong), f"{case}: {len(wrong)} pixels differ, first at {wrong[0]}"


FACTORS = {
    "adjust_brightness": random_factor,
    "adjust_contrast": random_factor,
    "adjust_saturation": random_factor,
    "adjust_sharpness": random_factor,
    "adjust_hue": lambda numbers: numbers.choice((numbers.uniform(-0.5, 0.5), -0.5, 0.5)),
    "solarize": lambda numbers: numbers.choice((numbers.uniform(-5, 260), numbers.randint(0, 256))),
    "posterize": lambda numbers: numbers.randint(1, 8),
}


@pytest.mark.parametrize("name", FACTORS)
def test_changes_with_a_factor(change, name):
    numbers = random.Random(name)
    for _ in range(150):
        pixels, factor = random_pixels(numbers), FACTORS[name](numbers)
        expected = getattr(torchvision_functional, name)(picture(pixels), factor)
        check_equal(change(name, pixels, factor), expected, (pixels.shape, factor))


@pytest.mark.parametrize("name", ["invert", "equalize", "autocontrast"])
def test_changes_without_a_factor(change, name):
    numbers = random.Random(name)
    for _ in range(150):
        pixels = random_pixels(numbers)
        check_equal(change(name, pixels), getattr(torchvision_functional, name)(picture(pixels)), pixels.shape)


def test_grey(change):
    numbers = random.Random(1)
    for _ in range(150):
        pixels = random_pixels(numbers)
        expected = torchvision_functional.to_grayscale(picture(pixels), len(pixels))
        check_equal(change("to_grayscale", pixels), expected, pixels.shape)


def test_hue_of_all_colours(change):
    index = np.arange(1 << 24, dtype=np.uint32)
    pixels = np.stack([index >> 16, index >> 8, index]).astype(np.uint8).reshape(3, 4096, 4096)
    check_equal(change("adjust_hue", pixels, 0.3), torchvision_functional.adjust_hue(picture(pixels), 0.3), "all")


@pytest.mark.parametrize("bilinear", [0, 1], ids=["nearest", "bilinear"])
def test_rotations(change, bilinear):
    numbers = random.Random(bilinear)
    for _ in range(300):
        pixels, angle = random_pixels(numbers), random_angle(numbers)
        fill, our_fill = random_fill(numbers, len(pixels))
        center, our_center = random_center(numbers, *pixels.shape[1:])
        expected = torchvision_functional.rotate(
            picture(pixels), angle, INTERPOLATIONS[bilinear], center=center, fill=fill
        )
        got = change("rotate", pixels, angle, *our_center, bilinear, *our_fill)
        check_equal(got, expected, (pixels.shape, angle, center, fill))


@pytest.mark.parametrize("bilinear", [0, 1], ids=["nearest", "bilinear"])
def test_affine_maps(change, bilinear):
    numbers = random.Random(bilinear)
    for _ in range(400):
        pixels = random_pixels(numbers)
        height, width = pixels.shape[1:]
        angle = numbers.choice((0.0, random_angle(numbers)))
        shift = numbers.choice(([0, 0], [numbers.randint(-width, width), numbers.randint(-height, height)]))
        scale = numbers.choice((1.0, numbers.uniform(0.3, 3), numbers.uniform(0.001, 50)))
        shear_x, shear_y = numbers.uniform(-60, 60), numbers.uniform(-60, 60)
        shear = numbers.choice(([0.0, 0.0], [shear_x, 0.0], [shear_x, shear_y]))
        fill, our_fill = random_fill(numbers, len(pixels))
        center, our_center = random_center(numbers, height, width)
        expected = torchvision_functional.affine(
            picture(pixels), angle, shift, scale, shear, INTERPOLATIONS[bilinear], fill=fill, center=center
        )
        got = change("affine", pixels, angle, *shift, scale, *shear, *our_center, bilinear, *our_fill)
        check_equal(got, expected, (pixels.shape, angle, shift, scale, shear, center, fill))


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_policies(change, name):
    """Every magnitude of the policies' tables, with both signs."""
    numbers = random.Random(name)
    for bins in (31, 10):
        pixels = random_pixels(numbers)
        while pixels.shape[1] < 8:
            pixels = random_pixels(numbers)
        wide = policies.TrivialAugmentWide()._augmentation_space(bins)
        learned = policies.AutoAugment()._augmentation_space(bins, pixels.shape[1:])
        magnitudes = [0.0]
        for magnitude, signed in (space[name] for space in (wide, learned) if name in space):
            if magnitude.ndim:
                magnitudes += [*magnitude.tolist(), *((-magnitude).tolist() if signed else [])]
        fill, our_fill = random_fill(numbers, len(pixels))
        bilinear = numbers.randint(0, 1)
        for magnitude in magnitudes:
            if name == "Posterize" and magnitude == 0:
                continue  # Pillow refuses it
            expected = policies._apply_op(picture(pixels), name, magnitude, INTERPOLATIONS[bilinear], fill)
            got = change("policy", pixels, CHANGES.index(name), magnitude, bilinear, *our_fill)
            check_equal(got, expected, (pixels.shape, magnitude, bilinear, fill))


def test_blur_differs_by_one_at_most_and_rarely(change):
    """torchvision adds floats in an order that depends on the machine, so sums near a half may round otherwise."""
    numbers = random.Random(2)
    total = different = 0
    for _ in range(150):
        pixels = random_pixels(numbers)
        sizes = [numbers.choice((1, 3, 5, 9, 23)) for _ in range(2)]
        if sizes[0] // 2 >= pixels.shape[2] or sizes[1] // 2 >= pixels.shape[1]:
            continue
        sigma = numbers.choice((numbers.uniform(0.1, 2), numbers.uniform(0.1, 10)))
        expected = pixels_of(torchvision_functional.gaussian_blur(picture(pixels), sizes, sigma))
        distance = np.abs(change("gaussian_blur", pixels, *sizes, sigma).astype(int) - expected)
        assert distance.max() <= 1, (pixels.shape, sizes, sigma)
        total += distance.size
        different += np.count_nonzero(distance)
    assert total > 500_000
    assert different <= total / 10_000


def test_shear_names_the_angle_of_torchvision(change):
    """A policy's draw can be redone with torchvision: its ShearX is a shear by an angle."""
    pixels = random_pixels(random.Random(5))
    degrees = math.degrees(math.atan(0.3))
    expected = torchvision_functional.affine(picture(pixels), 0.0, [0, 0], 1.0, [degrees, 0.0], center=[0, 0])
    check_equal(change("policy", pixels, CHANGES.index("ShearX"), 0.3, 0), expected, pixels.shape)
