# SPDX-License-Identifier: Apache-2.0
"""The stored pixels equal what Pillow and torchvision compute, bit for bit."""

import csv
import hashlib
import io
import itertools
import shutil
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo
from torchvision.transforms import functional as F

import images
import reference
from reference import COLORS, DTYPES, FILTERS, FITS, IMAGENET_PRESET, LAYOUTS, Recipe
from shards import assert_equal_arrays

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{warning}")
    for warning in ("Palette images with Transparency", "Image appears to be a malformed MPO", "Corrupt EXIF data")
]

CORPORA = ("imagenet-sample", "jpeg-good", "png-good", "folders")
DECODED_BY_PRECACHE = ("JPEG", "MPO", "PNG")  # an MPO file is a JPEG file followed by more pictures
HALF = "0.5,0.5,0.5/0.5,0.5,0.5"


def rows_of(table):
    with open(table, newline="", encoding="utf-8") as lines:
        without_comments = (line for line in lines if not line.startswith("#"))
        return list(csv.DictReader(without_comments, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def reference_rows(corpora):
    """The rows of reference.tsv: Pillow's result for each valid file."""
    return rows_of(corpora / "reference.tsv")


@pytest.fixture(scope="module", params=CORPORA)
def corpus(request, corpora, reference_rows, tmp_path_factory):
    """One kind of the corpora: its folder, its rows by key, its files by key."""
    manifest = rows_of(corpora / request.param / "MANIFEST.tsv")
    described = {f"{request.param}/{row['file']}": row["peculiar"] for row in manifest}
    rows = [{**row, "peculiar": described[row["file"]]} for row in reference_rows if row["file"] in described]
    source = tmp_path_factory.mktemp("corpus")
    files = images.copy_with_plain_names([corpora / row["file"] for row in rows], source / "class")
    return source, dict(zip(files, rows, strict=True)), files


def decodable(rows, files):
    """The files that Pillow and precache decode. libjpeg-turbo 2, unlike 3, does not decode lossless JPEG."""
    return {
        key: files[key]
        for key, row in rows.items()
        if row["format"] in DECODED_BY_PRECACHE and " lossless " not in row["peculiar"]
    }


def chosen(arrays, keys):
    return {key: arrays[key] for key in keys if key in arrays}


def crop_hash(array):
    return hashlib.sha256(array.transpose(1, 2, 0).tobytes()).hexdigest()


def test_a_corpus_with_the_imagenet_preset_equals_pillow_and_torchvision(build, corpora, corpus, tmp_path):
    source, rows, files = corpus
    dataset = build(source, tmp_path / "out", "--preset", "imagenet", "--max-bad", "100%")
    arrays = dataset.arrays()
    wanted = decodable(rows, files)
    assert_equal_arrays(reference.tensors(wanted, IMAGENET_PRESET), chosen(arrays, wanted))

    pillow_agrees = [key for key in wanted if rows[key]["mode"] != "I;16"]  # Pillow clips 16-bit gray
    hashed = [key for key in pillow_agrees if len(rows[key]["crop224_sha256"]) == 64]  # else "skipped: ..."
    assert len(hashed) > 0.7 * len(rows)
    assert [rows[key]["file"] for key in hashed if crop_hash(arrays[key]) != rows[key]["crop224_sha256"]] == []
    for key in (key for key in pillow_agrees if rows[key]["npy"].endswith(".npy")):
        assert np.array_equal(arrays[key].transpose(1, 2, 0), np.load(corpora / rows[key]["npy"])), rows[key]["file"]


def test_a_corpus_with_orientation_applied_equals_pillow_and_torchvision(build, corpus, tmp_path):
    source, rows, files = corpus
    recipe = replace(IMAGENET_PRESET, exif="apply")
    arrays = build(source, tmp_path / "out", "--resize", "256", "--max-bad", "100%").arrays()
    wanted = decodable(rows, files)
    assert_equal_arrays(reference.tensors(wanted, recipe), chosen(arrays, wanted))


def test_files_that_pillow_does_not_decode_are_skipped_or_whole(build, corpus, tmp_path):
    source, rows, files = corpus
    dataset = build(source, tmp_path / "out", "--size", "32", "--max-bad", "100%")
    stored, skipped = dataset.arrays(), dataset.skipped()
    for key in rows.keys() - decodable(rows, files).keys():
        name = files[key].name.encode()
        assert (key in stored) != (name in skipped) or files[key].suffix == ".gif"
    assert stored.keys() >= decodable(rows, files).keys()


def test_an_image_folder_of_class_folders_equals_torchvision(build, corpora, tmp_path):
    """The unchanged folder, names and labels included, at a size that crops all sides."""
    source = corpora / "folders" / "hymenoptera" / "val"
    recipe = Recipe(size=(200, 180), resize=210, filter="bicubic")
    dataset = build(source, tmp_path / "out", *recipe.options())
    files = {str(path.relative_to(source).with_suffix("")): path for path in source.glob("*/*.jpg")}
    assert_equal_arrays(reference.tensors(files, recipe), dataset.arrays())
    assert dataset.classes == ["ants", "bees"]
    assert dataset.labels() == {key: dataset.classes.index(key.split("/")[0]) for key in files}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    source = tmp_path_factory.mktemp("drawn")
    return source, images.draw_all_kinds(source / "class")


@pytest.fixture(scope="module")
def thin(tmp_path_factory):
    source = tmp_path_factory.mktemp("thin")
    return source, images.draw_thin_images(source / "class")


@pytest.fixture(scope="module")
def long_jpegs(tmp_path_factory):
    source = tmp_path_factory.mktemp("long")
    return source, images.draw_long_jpegs(source / "class")


def check(build, drawing, out, recipe):
    source, files = drawing
    dataset = build(source, out, *recipe.options())
    assert dataset.spec["dtype"] == recipe.dtype
    assert dataset.spec["layout"] == recipe.layout
    assert_equal_arrays(reference.tensors(files, recipe), dataset.arrays())


SHAPES = {"32": ((32, 32), None), "224": ((224, 224), None), "48x96": ((48, 96), None), "130x50": ((130, 50), 70)}


def shaped(shape, **choices):
    """A recipe of one of SHAPES; the shorter side before the crop is given only where there is a crop."""
    size, resize = SHAPES[shape]
    return Recipe(size=size, resize=resize if choices["fit"] == "crop" else None, **choices)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("filter_name", FILTERS)
def test_every_kind_of_image_in_every_fit_filter_and_size(build, drawn, tmp_path, filter_name, fit, shape):
    recipe = shaped(shape, fit=fit, filter=filter_name, pad_value=93)
    check(build, drawn, tmp_path / "rgb", recipe)
    check(build, drawn, tmp_path / "gray", replace(recipe, color="gray", layout="hwc"))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("filter_name", FILTERS)
def test_thin_images_in_every_fit_and_filter(build, thin, tmp_path, filter_name, fit):
    """2000x3 and similar: crops from a band of up to 21,000 pixels, and padding that leaves nothing of the image."""
    for shape in ("32", "48x96"):
        check(build, thin, tmp_path / shape, shaped(shape, fit=fit, filter=filter_name, pad_value=255))


@pytest.mark.parametrize("filter_name", FILTERS)
def test_crops_that_need_a_part_of_a_jpeg(build, long_jpegs, tmp_path, filter_name):
    for resize in (61, 40, 97):  # as it is, smaller, larger
        check(build, long_jpegs, tmp_path / str(resize), Recipe(size=(33, 32), resize=resize, filter=filter_name))


@pytest.fixture(scope="module")
def odd_samplings(tmp_path_factory):
    """JPEGs whose components are sampled as Pillow never writes them, from libjpeg-turbo's cjpeg."""
    if shutil.which("cjpeg") is None:
        pytest.skip("cjpeg not found (Debian: libjpeg-turbo-progs)")
    source = tmp_path_factory.mktemp("sampled")
    folder = source / "class"
    folder.mkdir()
    samplings = ("1x2", "4x1", "1x4", "4x2", "2x4", "3x1", "1x3", "2x2,1x1,2x1", "2x2,2x1,1x2", "1x1,2x2,1x1")
    modes = ((), ("-progressive",), ("-arithmetic",), ("-restart", "2"))
    for seed, (sampling, mode) in enumerate(itertools.product(samplings, modes)):
        picture = tmp_path_factory.getbasetemp() / "picture.ppm"
        images.picture("RGB", *((131, 60), (59, 143))[seed % 2], seed).save(picture)
        command = ["cjpeg", "-quality", "85", "-sample", sampling, *mode, "-outfile", folder / f"{seed}.jpg", picture]
        subprocess.run(command, check=True)
    return source, {f"class/{path.stem}": path for path in folder.iterdir()}


@pytest.mark.parametrize("filter_name", FILTERS)
def test_odd_samplings_of_jpeg(build, odd_samplings, tmp_path, filter_name):
    for resize in (60, 37, 80):
        check(build, odd_samplings, tmp_path / str(resize), Recipe(size=(31, 30), resize=resize, filter=filter_name))


@pytest.fixture(scope="module")
def unfinished_progressive(tmp_path_factory):
    """Progressive JPEGs that end after some of their scans: decoders smooth the result."""
    source = tmp_path_factory.mktemp("progressive")
    folder = source / "class"
    folder.mkdir()
    for seed in range(4):
        buffer = io.BytesIO()
        images.picture("RGB", 200, 90, seed).save(buffer, "JPEG", quality=80, progressive=True, subsampling=0)
        whole = buffer.getvalue()
        scans = [at for at in range(len(whole) - 1) if whole[at : at + 2] == b"\xff\xda"]
        for count in range(1, len(scans)):
            (folder / f"{seed}-{count}.jpg").write_bytes(whole[: scans[count]] + b"\xff\xd9")
    return source, {f"class/{path.stem}": path for path in folder.iterdir()}


@pytest.mark.parametrize("resize", (90, 60, 120))
def test_crops_of_progressive_jpegs_that_lack_scans(build, unfinished_progressive, tmp_path, resize):
    check(build, unfinished_progressive, tmp_path / "out", Recipe(size=(31, 40), resize=resize))


@pytest.mark.parametrize("color, layout, fit", list(itertools.product(COLORS, LAYOUTS, FITS)))
def test_every_color_and_layout(build, drawn, tmp_path, color, layout, fit):
    check(build, drawn, tmp_path / "out", Recipe(size=(40, 40), fit=fit, color=color, layout=layout))


@pytest.mark.parametrize("resize", (8, 40, 41, 64, 300))
def test_a_crop_smaller_equal_or_larger_than_the_resized_image(build, drawn, tmp_path, resize):
    """Odd and even margins on all sides, and zero padding where the image is smaller than the crop."""
    check(build, drawn, tmp_path / "square", Recipe(size=(40, 40), resize=resize))
    check(build, drawn, tmp_path / "oblong", Recipe(size=(41, 56), resize=resize, filter="lanczos"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("normalize", (None, "imagenet", HALF, "0.1,0.25,0.77/1.5,0.013,0.3"))
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "uint8"])
def test_every_float_dtype_normalisation_and_layout(build, drawn, tmp_path, dtype, normalize, layout):
    check(build, drawn, tmp_path / "out", Recipe(size=(40, 40), dtype=dtype, normalize=normalize, layout=layout))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "uint8"])
def test_gray_floats_take_one_mean_and_one_deviation(build, drawn, tmp_path, dtype):
    check(build, drawn, tmp_path / "plain", Recipe(size=(32, 32), dtype=dtype, color="gray"))
    check(build, drawn, tmp_path / "normal", Recipe(size=(32, 32), dtype=dtype, color="gray", normalize="0.45/0.226"))


def test_normalisation_needs_a_float_dtype(run, drawn, tmp_path):
    source, _ = drawn
    run("build", source, tmp_path / "out", "--normalize", "imagenet", expect=2)
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_the_reference_floats_are_those_of_torchvision(drawn):
    _, files = drawn
    recipe = Recipe(size=(40, 40), dtype="float32", normalize="imagenet")
    mean, std = (list(map(float, part.split(","))) for part in reference.IMAGENET.split("/"))
    for path in files.values():
        image = reference.fit(reference.open_image(path, recipe), recipe)
        assert np.array_equal(F.normalize(F.to_tensor(image), mean, std).numpy(), reference.tensor(path, recipe))


def exif(orientation, byte_order):
    """An EXIF block with nothing but the orientation."""
    mark = {"<": b"II", ">": b"MM"}[byte_order]
    entry = struct.pack(byte_order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0" + mark + struct.pack(byte_order + "HIH", 42, 8, 1) + entry + struct.pack(byte_order + "I", 0)


@pytest.fixture(scope="module")
def oriented(tmp_path_factory):
    """Orientations 1 to 8, and the undefined 0 and 9, in JPEG and PNG, wide and tall, in both byte orders."""
    source = tmp_path_factory.mktemp("oriented")
    folder = source / "class"
    folder.mkdir()
    for seed, (orientation, (width, height)) in enumerate(itertools.product(range(10), ((90, 61), (50, 77)))):
        name = f"{orientation}_{width}x{height}"
        block = exif(orientation, "<>"[seed // 2 % 2])
        image = images.picture("RGB", width, height, seed)
        image.save(folder / f"{name}_420.jpg", exif=block, quality=90, subsampling="4:2:0")
        image.save(folder / f"{name}_progressive.jpg", exif=block, quality=90, subsampling="4:2:2", progressive=True)
        image.convert("L").save(folder / f"{name}_gray.jpg", exif=block)
        image.save(folder / f"{name}_rgb.png", exif=block)
        image.quantize(32).save(folder / f"{name}_p.png", exif=block)
    return source, {f"class/{path.stem}": path for path in folder.iterdir()}


@pytest.mark.parametrize(
    "recipe",
    (
        Recipe(size=(48, 48)),
        Recipe(size=(40, 56), resize=64, filter="lanczos"),
        Recipe(size=(33, 47), fit="stretch", filter="bicubic", layout="hwc"),
        Recipe(size=(64, 40), fit="pad", filter="box", pad_value=17),
        Recipe(size=(48, 48), filter="nearest", color="gray"),
    ),
    ids=lambda recipe: f"{recipe.fit}-{recipe.filter}",
)
def test_every_orientation_is_applied_or_ignored(build, oriented, tmp_path, recipe):
    check(build, oriented, tmp_path / "applied", recipe)
    check(build, oriented, tmp_path / "ignored", replace(recipe, exif="ignore"))


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>"""


def test_an_orientation_is_found_where_pillow_finds_it(build, tmp_path):
    """In XMP, in the text chunk that ImageMagick writes, and in EXIF even if XMP differs."""
    folder = tmp_path / "source" / "class"
    folder.mkdir(parents=True)
    image = images.picture("RGB", 50, 33, seed=1)
    xmp_chunk, profile_chunk = PngInfo(), PngInfo()
    xmp_chunk.add_itxt("XML:com.adobe.xmp", XMP)
    profile_chunk.add_text("Raw profile type exif", f"\nexif\n {len(exif(8, '>'))}\n{exif(8, '>').hex()}\n", zip=True)
    image.save(folder / "jpeg_xmp.jpg", xmp=XMP.encode())
    image.save(folder / "jpeg_both.jpg", xmp=XMP.encode(), exif=exif(3, "<"))
    image.save(folder / "png_xmp.png", pnginfo=xmp_chunk)
    image.save(folder / "png_both.png", pnginfo=xmp_chunk, exif=exif(3, "<"))
    image.save(folder / "png_profile.png", pnginfo=profile_chunk)
    files = {f"class/{path.stem}": path for path in folder.iterdir()}
    for path in files.values():
        with Image.open(path) as opened:
            assert ImageOps.exif_transpose(opened).tobytes() != opened.tobytes(), path.name
    check(build, (tmp_path / "source", files), tmp_path / "out", Recipe(size=(33, 47), fit="stretch"))


def test_the_orientations_of_the_test_images_are_what_pillow_sees(oriented):
    _, files = oriented
    for key, path in files.items():
        with Image.open(path) as image:
            assert image.getexif()[0x0112] == int(path.name[0]), key
