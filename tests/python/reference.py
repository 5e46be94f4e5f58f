# SPDX-License-Identifier: Apache-2.0
"""The reference pipeline: what a trainer computes with Pillow, torchvision and numpy."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from PIL import Image, ImageOps
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")
FITS = ("crop", "stretch", "pad")
LAYOUTS = ("chw", "hwc")
COLORS = ("rgb", "gray")
DTYPES = {
    "uint8": np.dtype(np.uint8),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}
IMAGENET = "0.485,0.456,0.406/0.229,0.224,0.225"

Image.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True)
class Recipe:
    """One choice of `precache build` options; the defaults are the tool's."""

    size: tuple[int, int] = (224, 224)  # height, width
    fit: str = "crop"
    resize: int | None = None  # only for crop; None: the size itself, the longer side of an oblong one
    filter: str = "bilinear"
    pad_value: int = 0
    color: str = "rgb"
    exif: str = "apply"
    dtype: str = "uint8"
    normalize: str | None = None
    layout: str = "chw"

    def options(self):
        height, width = self.size
        options = {
            "--size": str(height) if height == width else f"{height}x{width}",
            "--fit": self.fit,
            "--filter": self.filter,
            "--color": self.color,
            "--exif": self.exif,
            "--dtype": self.dtype,
            "--layout": self.layout,
        }
        if self.resize is not None:
            options["--resize"] = str(self.resize)
        if self.fit == "pad":
            options["--pad-value"] = str(self.pad_value)
        if self.normalize is not None:
            options["--normalize"] = self.normalize
        words = [word for option in options.items() for word in option]
        return [*words, "--no-size-column"] if self.fit == "stretch" else words


IMAGENET_PRESET = Recipe(size=(224, 224), resize=256, filter="bilinear", exif="ignore")
SMALL = Recipe(size=(16, 20), fit="stretch")  # 960 bytes: a multiple of 64, so that rows of HDF5 are aligned too
ODD = Recipe(size=(15, 17), fit="stretch")  # 765 bytes: a multiple of nothing


def high_byte(image):
    """Pillow clips 16-bit gray at 255; precache documents that it keeps the high byte."""
    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))


def open_image(path, recipe):
    with Image.open(path) as image:
        image.load()
        if recipe.exif == "apply":
            image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16"):
            image = high_byte(image)
        return image.convert("L" if recipe.color == "gray" else "RGB")


def fit(image, recipe):
    height, width = recipe.size
    pillow_filter = Image.Resampling[recipe.filter.upper()]
    if recipe.fit == "crop":
        shorter_side = recipe.resize or max(recipe.size)
        resized = F.resize(image, shorter_side, InterpolationMode[recipe.filter.upper()])
        return F.center_crop(resized, [height, width])
    if recipe.fit == "stretch":
        return image.resize((width, height), pillow_filter)
    color = recipe.pad_value if recipe.color == "gray" else (recipe.pad_value,) * 3
    return ImageOps.pad(image, (width, height), pillow_filter, color)


def as_floats(pixels, normalize):
    """HxWxC uint8 to float32, one rounding for each of the three operations."""
    scaled = pixels.astype(np.float32) / np.float32(255)
    if normalize is None:
        return scaled
    values = IMAGENET if normalize == "imagenet" else normalize
    mean, std = (np.array(part.split(","), dtype=np.float32) for part in values.split("/"))
    return (scaled - mean) / std


def tensor(path, recipe):
    """The tensor that `precache build` must store for the image at `path`."""
    pixels = np.asarray(fit(open_image(path, recipe), recipe))
    pixels = pixels.reshape(*recipe.size, -1)
    if recipe.dtype != "uint8":
        pixels = as_floats(pixels, recipe.normalize).astype(DTYPES[recipe.dtype])
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if recipe.layout == "chw" else pixels)


def tensors(images, recipe):
    """Takes a dict of keys to paths and returns a dict of keys to tensors."""
    return {key: tensor(path, recipe) for key, path in images.items()}
