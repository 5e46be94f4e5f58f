# SPDX-License-Identifier: Apache-2.0
"""The image and the label of third-party samples are found, named or asked for; they are never lost silently."""

import io
import json
import tarfile

import h5py
import numpy as np
import pytest

import images
from shards import Dataset

pytest_plugins = ("tool_fixtures",)

ARRAYS = np.arange(12 * 8 * 8 * 3, dtype=np.uint8).reshape(12, 8, 8, 3)
NUMBERS = np.arange(12) % 5


def write_hdf5(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file[name] = data
    return path


def labels_of(out):
    return [sample.label for sample in Dataset(out).samples().values()]


def jpeg(number):
    data = io.BytesIO()
    images.picture("RGB", 16, 12, number).save(data, "JPEG")
    return data.getvalue()


def write_tar(path, texts, kind="txt"):
    """Writes an image and a text for each of `texts`, as img2dataset and webdataset do."""
    with tarfile.open(path, "w") as archive:
        for number, text in enumerate(texts):
            for name, data in ((f"{number:05}.jpg", jpeg(number)), (f"{number:05}.{kind}", text.encode())):
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return path


def write_examples(path, rows):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            features = {}
            for name, value in row.items():
                if isinstance(value, bytes):
                    features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
                elif isinstance(value[0], float):
                    features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
                else:
                    features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return path


# --- arrays in HDF5 files


def test_integers_called_classes_are_labels(tool, tmp_path):
    """Some CIFAR files have them."""
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, classes=NUMBERS)
    tool.run("convert", source, tmp_path / "out")
    assert labels_of(tmp_path / "out") == list(NUMBERS)
    tool.run("build", source, tmp_path / "built", "--size", "8", "--no-shuffle")
    assert labels_of(tmp_path / "built") == list(NUMBERS)


@pytest.mark.parametrize(
    "name, data, telling",
    [
        ("labels", np.zeros((12, 5), "f4"), "'labels' (12 x 5 of float32) does not have one integer or name"),
        ("labels", np.zeros(11, "i8"), "'labels' (11 of int64) does not have one integer or name"),
        ("species", NUMBERS, "'species' (12 of int64)"),
    ],
)
def test_convert_does_not_lose_labels_silently(tool, tmp_path, name, data, telling):
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, **{name: data})
    result = tool.run("convert", source, tmp_path / "out", expect=2)
    assert telling in result.err and "--label-key" in result.err and "--labels none" in result.err
    assert not (tmp_path / "out" / "dataset.json").exists()
    tool.run("convert", source, tmp_path / "out", "--labels", "none")
    assert labels_of(tmp_path / "out") == [-1] * 12


def test_keys_name_images_and_labels_of_hdf5(tool, tmp_path):
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, thumbs=ARRAYS[:, :4, :4], labels=NUMBERS, species=NUMBERS + 3)
    tool.run("convert", source, tmp_path / "out", "--image-key", "thumbs", "--label-key", "/species")
    dataset = Dataset(tmp_path / "out")
    assert [sample.label for sample in dataset.samples().values()] == list(NUMBERS + 3)
    np.testing.assert_array_equal([sample.array for sample in dataset.samples().values()], ARRAYS[:, :4, :4])
    for key, name in (("--image-key", "nothing"), ("--label-key", "nothing"), ("--image-key", "labels")):
        result = tool.run("convert", source, tmp_path / "other", key, name, expect=2)
        assert name in result.err and "It has: images, labels, species, thumbs." in result.err


def test_keys_are_part_of_the_identity_of_a_conversion(tool, tmp_path):
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, negatives=255 - ARRAYS, labels=NUMBERS)
    tool.run("convert", source, tmp_path / "out", "--image-key", "images")
    again = tool.run("convert", source, tmp_path / "out", "--image-key", "images")
    assert "nothing to do" in again.out
    other = tool.run("convert", source, tmp_path / "out", "--image-key", "negatives", expect=2)
    assert "already holds a finished split" in other.err


def test_keys_name_features_and_files(tool, tmp_path):
    rows = [
        {
            "image": array.tobytes(),
            "other": (255 - array).tobytes(),
            "shape": list(array.shape),
            "label": [1],
            "age": [int(number)],
        }
        for number, array in zip(NUMBERS, ARRAYS)
    ]
    write_examples(tmp_path / "x.tfrecord", rows)
    tool.run("convert", tmp_path / "x.tfrecord", tmp_path / "a", "--image-key", "other", "--label-key", "age")
    assert labels_of(tmp_path / "a") == list(NUMBERS)
    np.testing.assert_array_equal([sample.array for sample in Dataset(tmp_path / "a").samples().values()], 255 - ARRAYS)
    import webdataset

    with webdataset.TarWriter(str(tmp_path / "x.tar")) as writer:
        for number, array in zip(NUMBERS, ARRAYS):
            writer.write(
                {
                    "__key__": f"{array[0, 0, 0]:03}{number}",
                    "left.npy": array,
                    "right.npy": 255 - array,
                    "json": {"label": 1, "age": int(number)},
                }
            )
    tool.run("convert", tmp_path / "x.tar", tmp_path / "b", "--image-key", "right.npy", "--label-key", "json.age")
    assert labels_of(tmp_path / "b") == list(NUMBERS)
    np.testing.assert_array_equal([sample.array for sample in Dataset(tmp_path / "b").samples().values()], 255 - ARRAYS)
    for path, key in (("x.tfrecord", "nothing"), ("x.tar", "nothing"), ("x.tar", "json.nothing")):
        for option in ("--image-key", "--label-key"):
            tool.run("convert", tmp_path / path, tmp_path / "c", option, key, expect=2)


def test_keys_are_refused_where_a_manifest_names_the_columns(tool, tmp_path):
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, labels=NUMBERS)
    tool.run("convert", source, tmp_path / "out")
    for words in (("--image-key", "images"), ("--label-key", "labels"), ("--labels", "none")):
        result = tool.run("convert", tmp_path / "out", tmp_path / "other", *words, expect=2)
        assert "has a manifest" in result.err
    both = tool.run("convert", source, tmp_path / "other", "--labels", "none", "--label-key", "labels", expect=2)
    assert "cannot be combined with" in both.err


# --- arrays that MATLAB wrote


@pytest.mark.parametrize("command", ("build", "convert"))
def test_matlab_arrays_are_refused_with_a_way_to_transpose_them(tool, tmp_path, command):
    """MATLAB's H x W x C x N arrays are stored as N x C x W x H: each image is transposed."""
    source = write_hdf5(tmp_path / "x.mat", X=ARRAYS.transpose(0, 3, 2, 1), y=NUMBERS[None])
    with h5py.File(source, "a") as file:
        file["X"].attrs["MATLAB_class"] = np.bytes_("uint8")
    said = tool.run(command, source, tmp_path / "out", expect=5).err
    assert "MATLAB" in said and "12 x 3 x 8 x 8" in said and "transpose(0, 3, 2, 1)" in said
    assert "was written by MATLAB" in tool.run("inspect", source).out


def test_the_hint_for_matlab_works(tool, tmp_path):
    source = write_hdf5(tmp_path / "x.mat", X=ARRAYS.transpose(0, 3, 2, 1))
    with h5py.File(source) as old, h5py.File(tmp_path / "new.h5", "w") as new:
        new["images"] = old["X"][:].transpose(0, 3, 2, 1)
    tool.run("convert", tmp_path / "new.h5", tmp_path / "out")
    np.testing.assert_array_equal([sample.array for sample in Dataset(tmp_path / "out").samples().values()], ARRAYS)


# --- texts next to images


def test_captions_are_not_classes(tool, tmp_path):
    source = write_tar(tmp_path / "x.tar", [f"a photo of thing {number}" for number in range(12)])
    result = tool.run("build", source, tmp_path / "out", "--size", "8", expect=2)
    assert "12 .txt files hold 12 different texts" in result.err
    for way in ("--labels to none", "--label-key to txt", "json.FIELD", "CSV file"):
        assert way in result.err
    (facts,) = tool.run("inspect", source, "--json").json()["paths"]
    assert facts["classes"]["unlabelled"] == 12
    tool.run("build", source, tmp_path / "out", "--size", "8", "--labels", "none")
    tool.run("build", source, tmp_path / "all", "--size", "8", "--label-key", "txt")
    assert len(Dataset(tmp_path / "all").classes) == 12


def test_captions_of_several_lines_are_named(tool, tmp_path):
    source = write_tar(tmp_path / "x.tar", ["a cat\non a mat", "a dog", "a dog"])
    result = tool.run("build", source, tmp_path / "out", "--size", "8", expect=2)
    assert "1 of 3 .txt files hold several lines" in result.err
    assert "next to it" not in result.err and "--label-key to txt" not in result.err
    named = tool.run("build", source, tmp_path / "out", "--size", "8", "--label-key", "txt", expect=2)
    assert "'00000.txt' contains a text of 2 lines" in named.err


@pytest.mark.parametrize("texts, classes", [(["owl", "cat", "owl", "cat"], ["cat", "owl"]), (["3", "1", "2"], [])])
def test_build_and_inspect_agree_about_texts(tool, tmp_path, texts, classes):
    source = write_tar(tmp_path / "x.tar", texts)
    tool.run("build", source, tmp_path / "out", "--size", "8", "--no-shuffle")
    dataset = Dataset(tmp_path / "out")
    assert dataset.classes == classes
    labels = sorted({sample.label for sample in dataset.samples().values()})
    (facts,) = tool.run("inspect", source, "--json").json()["paths"]
    assert [(row["label"], row["name"]) for row in facts["classes"]["counts"]] == [
        (label, classes[label] if classes else None) for label in labels
    ]


@pytest.mark.parametrize(
    "value, telling",
    [
        ([1, 2, 3], "a list of 3 in 'label'"),
        (0.5, "the number 0.5 in 'label'"),
        ({"a": 1}, "a value of type object in 'label'"),
    ],
)
def test_json_values_that_are_not_labels_are_named(tool, tmp_path, value, telling):
    source = write_tar(tmp_path / "x.tar", [json.dumps({"label": value})] * 2, "json")
    result = tool.run("build", source, tmp_path / "out", "--size", "8", expect=2)
    assert f"'00000.json' contains {telling}" in result.err
    assert "next to it" not in result.err


# --- features with several values


@pytest.mark.parametrize(
    "label, telling",
    [
        ([4, 2, 7], "'label' has 3 values"),
        (list(range(9)), "'label' has more than 4 values"),
        ([0.5], "'label' holds floats"),
    ],
)
def test_several_labels_of_an_example_are_refused_by_all(tool, tmp_path, label, telling):
    encoded = write_examples(tmp_path / "x.tfrecord", [{"image": jpeg(0), "label": label, "age": [3]}] * 3)
    result = tool.run("build", encoded, tmp_path / "out", "--size", "8", expect=2)
    assert telling in result.err and "--label-key" in result.err
    tensors = [{"image": array.tobytes(), "shape": [8, 8, 3], "label": label, "age": [3]} for array in ARRAYS]
    source = write_examples(tmp_path / "y.tfrecord", tensors)
    result = tool.run("convert", source, tmp_path / "out", expect=2)
    assert telling in result.err and "--label-key" in result.err and "--labels none" in result.err
    tool.run("convert", source, tmp_path / "out", "--label-key", "age")
    assert labels_of(tmp_path / "out") == [3] * 12


# --- filters


def test_only_the_missing_filter_is_named(tool, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", data=ARRAYS, chunks=(4, 8, 8, 3), compression="lzf", shuffle=True)
        file["labels"] = NUMBERS
    result = tool.run("build", tmp_path / "x.h5", tmp_path / "out", "--size", "8", expect=5)
    assert "'images' is stored with filters (lzf) that this HDF5 library lacks" in result.err
    assert "shuffle" not in result.err


# --- summaries


def test_integers_without_names_are_called_labels(tool, tmp_path):
    source = write_hdf5(tmp_path / "x.h5", images=ARRAYS, labels=NUMBERS + 3)
    for command in ("build", "convert"):
        words = (command, source, tmp_path / command, *(("--size", "8") if command == "build" else ()))
        assert "labels 3 to 7, no names" in tool.run(*words, "--dry-run").out
        assert tool.run(*words, "--dry-run", "--json").json()["labels"] == [3, 7]
        assert "0 classes" not in tool.run(*words).out
    assert "labels 3 to 7, no names" in tool.run("inspect", source).out
    tool.run("build", source, tmp_path / "none", "--size", "8", "--labels", "none")
    assert "no labels" in tool.run("build", source, tmp_path / "none", "--size", "8", "--labels", "none").out


# --- images that cannot be read


@pytest.mark.parametrize("words", ((), ("--image-key", "image")))
def test_webp_images_are_named(tool, tmp_path, words):
    data = io.BytesIO()
    images.picture("RGB", 16, 12, 1).save(data, "WEBP")
    source = write_examples(tmp_path / "x.tfrecord", [{"image": data.getvalue(), "label": [1]}])
    result = tool.run("build", source, tmp_path / "out", *words, expect=5)
    assert "'image' of" in result.err and "contains WebP images" in result.err and "JPEG and PNG" in result.err
    assert "--image-key" not in result.err
