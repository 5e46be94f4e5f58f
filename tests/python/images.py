# SPDX-License-Identifier: Apache-2.0
"""Test images: each kind of JPEG and PNG that Pillow or a few lines of code can write."""

import os
import shutil
import struct
import zlib

import numpy as np
from PIL import Image

PNG_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by PNG colour type


def pixels(width, height, channels, seed, dtype=np.uint8):
    """A noisy gradient whose phase differs by channel: neither smooth nor random enough to hide a fault."""
    random = np.random.default_rng(seed)
    y, x, channel = np.ogrid[:height, :width, :channels]
    wave = 0.5 + 0.5 * np.sin(x / 7.0 + y / 11.0 + channel * 2.1 + seed)
    noisy = 0.7 * wave + 0.3 * random.random((height, width, channels))
    return (noisy * np.iinfo(dtype).max).astype(dtype)


def picture(mode, width, height, seed=0):
    """A Pillow image of any 8-bit mode, and of modes 1 and P."""
    channels = {"1": 1, "L": 1, "LA": 2, "P": 3, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    data = pixels(width, height, channels, seed)
    if mode == "1":
        return Image.fromarray(data[:, :, 0]).convert("1")
    if mode == "P":
        return Image.fromarray(data).quantize(200)
    return Image.frombytes(mode, (width, height), data.tobytes())


def png_chunk(name, data):
    body = name + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png_16_bit(color_type, width, height, seed):
    """Pillow writes 16-bit PNG only in gray."""
    data = pixels(width, height, PNG_CHANNELS[color_type], seed, np.uint16).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in data)
    header = struct.pack(">IIBBBBB", width, height, 16, color_type, 0, 0, 0)
    chunks = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def save_jpeg(mode="RGB", **options):
    def save(path, width, height, seed):
        picture(mode, width, height, seed).save(path.with_suffix(".jpg"), **{"quality": 88, **options})

    return save


def save_png(mode, **options):
    def save(path, width, height, seed):
        picture(mode, width, height, seed).save(path.with_suffix(".png"), **options)

    return save


def save_palette_png(colors):
    def save(path, width, height, seed):
        image = picture("RGB", width, height, seed).quantize(colors)
        image.save(path.with_suffix(".png"), bits=(colors - 1).bit_length())

    return save


def save_16_bit_png(color_type):
    def save(path, width, height, seed):
        path.with_suffix(".png").write_bytes(png_16_bit(color_type, width, height, seed))

    return save


KINDS = {
    "jpeg_444": save_jpeg(subsampling="4:4:4"),
    "jpeg_422": save_jpeg(subsampling="4:2:2"),
    "jpeg_420": save_jpeg(subsampling="4:2:0"),
    "jpeg_444_progressive": save_jpeg(subsampling="4:4:4", progressive=True),
    "jpeg_422_progressive": save_jpeg(subsampling="4:2:2", progressive=True),
    "jpeg_420_progressive": save_jpeg(subsampling="4:2:0", progressive=True),
    "jpeg_420_quality_5": save_jpeg(subsampling="4:2:0", quality=5, optimize=True),
    "jpeg_420_restarts": save_jpeg(subsampling="4:2:0", restart_marker_blocks=3),
    "jpeg_rgb": save_jpeg(keep_rgb=True),
    "jpeg_gray": save_jpeg("L"),
    "jpeg_gray_progressive": save_jpeg("L", progressive=True),
    "jpeg_cmyk": save_jpeg("CMYK"),
    "png_1": save_png("1"),
    "png_l": save_png("L"),
    "png_l_trns": save_png("L", transparency=7),
    "png_la": save_png("LA"),
    "png_p": save_png("P"),
    "png_p_trns_color": save_png("P", transparency=3),
    "png_p_trns_bytes": save_png("P", transparency=bytes(range(100, 180))),
    "png_p_1_bit": save_palette_png(2),
    "png_p_2_bit": save_palette_png(4),
    "png_p_4_bit": save_palette_png(16),
    "png_rgb": save_png("RGB"),
    "png_rgb_trns": save_png("RGB", transparency=(1, 2, 3)),
    "png_rgba": save_png("RGBA"),
    "png_16_gray": save_16_bit_png(0),
    "png_16_gray_alpha": save_16_bit_png(4),
    "png_16_rgb": save_16_bit_png(2),
    "png_16_rgba": save_16_bit_png(6),
}
PLAIN_KINDS = ("jpeg_420", "jpeg_422_progressive", "png_rgb")
SIZES = (
    *((1, 1), (1, 40), (40, 1), (2, 3), (8, 8), (17, 16)),
    *((32, 32), (96, 48), (48, 96), (224, 224), (223, 225), (320, 211)),
)
THIN_SIZES = ((2000, 3), (3, 2000), (900, 1))


def draw(folder, wanted):
    """Saves images of (kind, width, height) in `folder`; maps the key that each must get to its path."""
    folder.mkdir(parents=True)
    for seed, (kind, width, height) in enumerate(wanted):
        KINDS[kind](folder / f"{kind}_{width}x{height}", width, height, seed)
    return {f"{folder.name}/{path.stem}": path for path in sorted(folder.iterdir())}


def draw_all_kinds(folder):
    """Each kind in two sizes and each size in a few kinds."""
    wanted = {(kind, *size): None for kind in KINDS for size in ((61, 47), (40, 75))}
    wanted |= {(kind, *size): None for size in SIZES for kind in PLAIN_KINDS}
    return draw(folder, wanted)


def draw_thin_images(folder):
    return draw(folder, [(kind, *size) for size in THIN_SIZES for kind in PLAIN_KINDS])


def draw_long_jpegs(folder):
    """Lengths of every remainder modulo 16: where a crop begins and ends within a block differs from file to file."""
    kinds = ("jpeg_444", "jpeg_422", "jpeg_420", "jpeg_420_progressive", "jpeg_420_restarts", "jpeg_gray")
    sizes = [size for length in range(200, 217) for size in ((length, 61), (61, length))]
    return draw(folder, [(kind, *size) for kind in kinds for size in sizes])


def copy_with_plain_names(files, folder):
    """Copies files to NNNN.ext, so that odd names do not matter; maps the keys to the copies."""
    folder.mkdir(parents=True)
    copies = {}
    for number, file in enumerate(files):
        key = f"{folder.name}/{number:04d}"
        copies[key] = folder / f"{number:04d}{os.path.splitext(file)[1]}"
        shutil.copyfile(file, copies[key])
    return copies


def draw_unique(path, seed):
    """A unique image, PNG or JPEG depending on the file name."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = {b".png": "PNG", b".jpg": "JPEG"}[os.path.splitext(os.fsencode(path))[1]]
    with open(path, "wb") as file:
        picture("RGB", 30 + seed % 7, 40 - seed % 5, seed).save(file, kind)


ANIMALS = {"ant": 5, "bee": 9, "cat": 1, "dog": 8}  # images in each class folder


def draw_animals(source):
    """Fills a folder with class folders; maps the keys to the paths."""
    names = [f"{animal}/{number}" for animal, count in ANIMALS.items() for number in range(count)]
    files = {name: source / (name + (".png", ".jpg")[seed % 2]) for seed, name in enumerate(names)}
    for seed, path in enumerate(files.values()):
        draw_unique(path, seed)
    return files
