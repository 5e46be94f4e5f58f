# SPDX-License-Identifier: Apache-2.0
"""HDF5 files of images as SOURCE, written by h5py: a build of them equals one of the folder."""

import io

import h5py
import numpy as np
import pytest
from PIL import Image

from reference import SMALL, tensors
from shard_sources import OPTIONS, assert_same_samples, key_of
from shards import Dataset, arrays_of, assert_equal_arrays, labels_of

pytest_plugins = ("tool_fixtures", "source_fixtures")


@pytest.fixture(scope="module")
def squares(listed):
    """All images as one array, N x H x W x 3."""
    size = (36, 28)
    return np.stack([np.asarray(Image.open(io.BytesIO(row[1])).convert("RGB").resize(size)) for row in listed])


@pytest.fixture(scope="module")
def of_squares(tool, squares, listed, tmp_path_factory):
    """The build of those images as PNG files in class folders."""
    folder = tmp_path_factory.mktemp("squares")
    for array, (path, _, _, _) in zip(squares, listed):
        target = (folder / "in" / path).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(target)
    tool.build(folder / "in", folder / "out", *OPTIONS)
    return Dataset(folder / "out")


CHUNKED = {"chunks": (4, 28, 36, 3)}
ARRAYS = {
    "uint8": (lambda a: a, {}),
    "gzip": (lambda a: a, {**CHUNKED, "compression": "gzip", "shuffle": True}),
    "fletcher32": (lambda a: a, {**CHUNKED, "compression": "gzip", "fletcher32": True}),
    "split rows": (lambda a: a, {"chunks": (3, 10, 10, 1), "compression": "gzip"}),
    "unfiltered chunks": (lambda a: a, CHUNKED),
    "big-endian int32": (lambda a: a.astype(">i4"), {}),
    "int64": (lambda a: a.astype("i8"), {}),
    "uint16": (lambda a: a.astype("u2") * 257, {}),
    "big-endian uint16": (lambda a: a.astype(">u2") * 257, {}),
    "float32 to 255": (lambda a: a.astype("f4"), {}),
    "float64 to 1": (lambda a: a.astype("f8") / 255, {}),
    "float32 to 1, gzip": (lambda a: (a / 255).astype("f4"), {**CHUNKED, "compression": "gzip"}),
    "chw": (lambda a: a.transpose(0, 3, 1, 2), {}),
    "alpha": (lambda a: np.concatenate([a, a[..., :1]], axis=3), {}),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_any_type_give_the_tensors_of_their_images(tool, squares, listed, of_squares, tmp_path, kind):
    change, options = ARRAYS[kind]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", data=change(squares), **options)
        file["labels"] = [row[3] for row in listed]
        file["keys"] = [key_of(row[0]) for row in listed]
        file["classes"] = sorted({row[2] for row in listed})
    tool.build(tmp_path / "x.h5", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", of_squares)
    assert Dataset(tmp_path / "out").manifest["classes"] == of_squares.manifest["classes"]
    assert not (tmp_path / "out" / ".precache").exists()


@pytest.mark.parametrize("names", ("x_{}, y_{}", "{}_images, {}_labels", "X_{}, Y_{}"))
@pytest.mark.parametrize("part", ("train", "test", "val"))
def test_labels_are_those_of_the_part_that_the_images_are_of(tool, squares, tmp_path, names, part):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for number, other in enumerate(("train", "test", "val")):
            images, labels = names.format(other, other).split(", ")
            file[images] = squares[:6]
            file[labels] = np.full(6, number)
    images = names.split(", ")[0].format(part)
    tool.build(tmp_path / "x.h5", tmp_path / "out", *SMALL.options(), "--image-key", images)
    labels = {sample.label for sample in Dataset(tmp_path / "out").samples().values()}
    assert labels == {("train", "test", "val").index(part)}


def test_labels_of_another_part_or_number_are_none(tool, squares, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x_test"] = squares[:6]
        file["y_train"] = np.arange(6)
    assert "no dataset with a usual name for labels" in tool.refuse(tmp_path / "x.h5", tmp_path / "out")
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["labels"] = np.arange(5)
    text = tool.refuse(tmp_path / "x.h5", tmp_path / "out")
    assert "'labels' (5 of int64)" in text and "6 images in 'x_test'" in text and "--label-key" in text


def expected_of(arrays):
    """The tensors of arrays that are called after their places in x.h5."""

    def png(array):
        file = io.BytesIO()
        Image.fromarray(array).save(file, "PNG")
        return file

    return tensors({f"x/{number:08}": png(array) for number, array in enumerate(arrays)}, SMALL)


def test_gray_arrays_give_gray_images(tool, squares, listed, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"] = squares[..., 1]
        file["y"] = np.array([[row[3]] for row in listed], "f4")
    tool.build(tmp_path / "x.h5", tmp_path / "out", *SMALL.options())
    found = Dataset(tmp_path / "out").samples()
    assert_equal_arrays(expected_of(squares[..., 1]), arrays_of(found))
    assert labels_of(found) == {f"x/{i:08}": row[3] for i, row in enumerate(listed)}


def encoded_rows(file, rows, kind):
    longest = max(len(row[1]) for row in rows)
    padded = [row[1].ljust(longest, b"\0") for row in rows]
    if kind == "various lengths":
        data = file.create_dataset("images", (len(rows),), h5py.vlen_dtype(np.uint8))
        for number, row in enumerate(rows):
            data[number] = np.frombuffer(row[1], np.uint8)
    elif kind == "packed":
        data = file.create_dataset("images", (len(rows),), h5py.vlen_dtype(np.uint8), chunks=(4,), compression="gzip")
        for number, row in enumerate(rows):
            data[number] = np.frombuffer(row[1], np.uint8)
    elif kind == "rows":
        file["images"] = np.stack([np.frombuffer(data, np.uint8) for data in padded])
    elif kind == "opaque":
        file["images"] = np.array(padded, f"V{longest}")
    else:
        file["images"] = np.array(padded, f"S{longest}")


@pytest.mark.parametrize("kind", ["various lengths", "packed", "rows", "opaque", "strings"])
def test_encoded_images_in_hdf5_give_the_folder_s_tensors(tool, listed, expected, tmp_path, kind):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        encoded_rows(file, listed, kind)
        file["label"] = [row[2] for row in listed]  # as names
        file.create_dataset("keys", data=np.array([key_of(row[0]).encode() for row in listed]))
    tool.build(tmp_path / "x.h5", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", expected)


def test_numbers_outside_the_range_of_pixels_reject_their_sample_alone(tool, squares, tmp_path):
    floats = squares.astype("f4")
    floats[3, 0, 0, 0] = np.nan
    floats[5, 9, 9, 1] = -1
    floats[6, 9, 9, 1] = 300
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = floats
    tool.build(tmp_path / "x.h5", tmp_path / "out", *SMALL.options(), "--labels", "none", "--max-bad", "50%")
    rows = [line.split("\t") for line in (tmp_path / "out" / "skipped.tsv").read_text().splitlines()[1:]]
    assert sorted(row[1] for row in rows) == [f"x.h5:x/{number:08}" for number in (3, 5, 6)]
    assert all("is not between 0 and 255" in row[3] for row in rows)


def test_filters_that_the_library_lacks_are_named(tool, squares, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", data=squares, compression="lzf")
    assert "lzf" in tool.refuse(tmp_path / "x.h5", tmp_path / "out", "--labels", "none", expect=5)


def test_floats_of_no_known_range_are_refused(tool, squares, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = squares.astype("f4") / 100
    text = tool.refuse(tmp_path / "x.h5", tmp_path / "out", "--labels", "none", expect=5)
    assert "2.55" in text


def test_datasets_are_named_where_they_cannot_be_guessed(tool, squares, listed, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/left"], file["g/right"] = squares, squares[:, ::-1]
        file["what"] = [row[3] for row in listed]
    text = tool.refuse(tmp_path / "x.h5", tmp_path / "out")
    assert "g/left, g/right" in text and "--image-key" in text
    text = tool.refuse(tmp_path / "x.h5", tmp_path / "out", "--image-key", "g/right")
    assert "--label-key" in text
    tool.build(tmp_path / "x.h5", tmp_path / "out", *SMALL.options(), "--image-key", "/g/right", "--label-key", "what")
    samples = Dataset(tmp_path / "out").samples()
    assert_equal_arrays(expected_of(squares[:, ::-1]), arrays_of(samples))
    for name in ("what", "none"):
        assert name in tool.refuse(tmp_path / "x.h5", tmp_path / "no", "--image-key", name)
