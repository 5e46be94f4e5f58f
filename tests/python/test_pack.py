# SPDX-License-Identifier: Apache-2.0
"""Encoded images are packed unchanged, and third-party readers find them."""

import json
import shutil
import signal
import subprocess

import h5py
import numpy as np
import pytest

import images
from shards import FORMATS
from tool import EXTENSIONS, differing, files, finish

pytest_plugins = ("tool_fixtures",)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder of images of two classes, one with a long name; and their bytes by key."""
    folder = tmp_path_factory.mktemp("encoded")
    encoded = {}
    for number in range(21):
        extension = (".jpg", ".png")[number % 2]
        name = f"{number:02}" if number else "x" * 190
        path = folder / f"class{number % 3}" / (name + extension)
        path.parent.mkdir(exist_ok=True)
        images.picture("RGB", 30 + number, 40, number).save(path)
        encoded[f"class{number % 3}/{name}"] = (path.read_bytes(), number % 3, extension)
    return folder, encoded


def read_tar(path):
    import webdataset

    for sample in webdataset.WebDataset(str(path), shardshuffle=False):
        (data,) = (sample[name] for name in ("jpg", "png") if name in sample)
        yield sample["__key__"], data, int(sample["cls"]), ".jpg" if "jpg" in sample else ".png"


def read_tfrecord(path):
    import tensorflow as tf

    features = {
        name: tf.io.FixedLenFeature([], tf.string)
        for name in ("image/encoded", "image/format", "key", "image/class/text")
    }
    features["image/class/label"] = tf.io.FixedLenFeature([], tf.int64)
    for record in tf.data.TFRecordDataset(str(path)):
        example = {name: value.numpy() for name, value in tf.io.parse_single_example(record, features).items()}
        assert example["image/class/text"].decode() == f"class{example['image/class/label']}"
        tf.io.decode_image(example["image/encoded"])
        extension = {b"jpeg": ".jpg", b"png": ".png"}[example["image/format"]]
        yield example["key"].decode(), example["image/encoded"], int(example["image/class/label"]), extension


def read_hdf5(path):
    with h5py.File(path) as file:
        assert [name.decode() for name in file["labels"].attrs["classes"]] == ["class0", "class1", "class2"]
        for key, data, label in zip(file["keys"], file["images"], file["labels"], strict=True):
            yield key.decode(), data.tobytes(), int(label), ".jpg" if data.tobytes().startswith(b"\xff\xd8") else ".png"


READERS = {"tar": read_tar, "tfrecord": read_tfrecord, "hdf5": read_hdf5}


@pytest.mark.parametrize("file_format", FORMATS)
def test_other_readers_find_every_image_unchanged(tool, source, tmp_path, file_format):
    folder, encoded = source
    options = ("--quiet", "--format", file_format, "--shards", "4", "--seed", "1")
    tool.run("pack", folder, tmp_path / "out", *options)
    shards = sorted((tmp_path / "out").glob(f"*.{EXTENSIONS[file_format]}"))
    assert len(shards) == 4
    found = [sample for shard in shards for sample in READERS[file_format](shard)]
    assert {key: rest for key, *rest in found} == {key: list(rest) for key, rest in encoded.items()}
    assert len(found) == len(encoded)
    assert [key for key, *_ in found] != sorted(encoded)
    assert (tmp_path / "out" / "classes.txt").read_text() == "class0\nclass1\nclass2\n"
    tool.run("pack", folder, tmp_path / "again", *options, "--jobs", "1")
    assert differing(files(tmp_path / "out"), files(tmp_path / "again")) == []


def test_labels_come_from_the_same_places_as_for_build(tool, source, tmp_path):
    folder, _ = source
    tool.run("pack", folder, tmp_path / "none", "--quiet", "--labels", "none")
    assert {label for _, _, label, _ in read_tar(tmp_path / "none" / "train-000000.tar")} == {-1}
    (tmp_path / "labels.csv").write_text("class0/03.png,7\nclass1/01.png,9\n")
    tool.run("pack", folder, tmp_path / "csv", "--quiet", "--labels", tmp_path / "labels.csv", "--split", "val")
    assert [(key, label) for key, _, label, _ in read_tar(tmp_path / "csv" / "val-000000.tar")] == [
        ("class0/03", 7),
        ("class1/01", 9),
    ]


def pack_tar(folder, path):
    subprocess.run(
        ["tar", "-czf" if path.suffix == ".gz" else "-cf", path, "--sort=name", "-C", folder, "."], check=True
    )
    return path


def write_tfrecord(encoded, path, compression=""):
    """As TensorFlow writes it, in the order of `encoded`."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for key, (data, label, _) in encoded.items():
            features = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "key": tf.train.Feature(bytes_list=tf.train.BytesList(value=[key.encode()])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return path


def write_hdf5(encoded, path, **storage):
    """As h5py writes it."""
    with h5py.File(path, "w") as file:
        rows = file.create_dataset("images", (len(encoded),), h5py.vlen_dtype(np.uint8), **storage)
        for row, (data, _, _) in enumerate(encoded.values()):
            rows[row] = np.frombuffer(data, np.uint8)
        file["labels"] = [label for _, label, _ in encoded.values()]
        file["keys"] = np.array([key.encode() for key in encoded])
    return path


@pytest.mark.parametrize("packed", ["x.tar", "x.tar.gz", "-"])
def test_a_tar_of_a_folder_gives_the_shards_of_the_folder(tool, source, tmp_path, packed):
    folder, _ = source
    options = ("--quiet", "--shards", "3", "--seed", "5")
    tool.run("pack", folder, tmp_path / "of-folder", *options)
    tar = pack_tar(folder, tmp_path / ("x.tar.gz" if packed == "-" else packed))
    if packed == "-":
        with subprocess.Popen(["cat", tar], stdout=subprocess.PIPE) as cat:
            tool.run("pack", "-", tmp_path / "of-tar", *options, stdin=cat.stdout)
    else:
        tool.run("pack", tar, tmp_path / "of-tar", *options)
    found = files(tmp_path / "of-tar")
    assert differing(found, files(tmp_path / "of-folder")) == []
    assert "classes.txt" in found


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda encoded, folder: write_tfrecord(encoded, folder / "x.tfrecord"), id="TFRecord"),
        pytest.param(
            lambda encoded, folder: write_tfrecord(encoded, folder / "x.tfrecord.gz", "GZIP"), id="TFRecord, gzip"
        ),
        pytest.param(
            lambda encoded, folder: write_tfrecord(encoded, folder / "x.tfrecord", "ZLIB"), id="TFRecord, zlib"
        ),
        pytest.param(lambda encoded, folder: write_hdf5(encoded, folder / "x.h5"), id="HDF5"),
        pytest.param(
            lambda encoded, folder: write_hdf5(encoded, folder / "x.h5", chunks=(4,), compression="gzip"),
            id="HDF5, chunks",
        ),
    ],
)
def test_third_party_shards_are_packed_image_by_image(tool, source, tmp_path, make):
    _, encoded = source
    path = make(encoded, tmp_path)
    tool.run("pack", path, tmp_path / "out", "--quiet")
    assert {key: tuple(rest) for key, *rest in read_tar(tmp_path / "out" / "train-000000.tar")} == encoded
    preview = tool.run("pack", path, tmp_path / "other", "--dry-run", "--json").json()
    assert preview["samples"] == len(encoded)
    is_copied = path.read_bytes()[:1] in (b"\x1f", b"\x78", b"\x89")
    assert (preview["bytes_unpacked"] != 0) == is_copied
    assert not (tmp_path / "other").exists()


def test_features_are_named_as_for_build(tool, source, tmp_path):
    import tensorflow as tf

    _, encoded = source
    with tf.io.TFRecordWriter(str(tmp_path / "x.tfrecord")) as writer:
        for data, label, _ in encoded.values():
            features = {
                "left": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\xff\xd8\xff\xe0 of another kind"])),
                "right": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                "kind": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"abc"[label : label + 1]])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    tool.run(
        "pack", tmp_path / "x.tfrecord", tmp_path / "out", "--quiet", "--image-key", "right", "--label-key", "kind"
    )
    found = [(data, label) for _, data, label, _ in read_tar(tmp_path / "out" / "train-000000.tar")]
    assert found == [(data, label) for data, label, _ in encoded.values()]
    assert (tmp_path / "out" / "classes.txt").read_text() == "a\nb\nc\n"
    result = tool.run("pack", tmp_path / "x.tfrecord", tmp_path / "none", "--quiet", expect=2)
    assert "--label-key" in result.err


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_build_from_packed_images_equals_that_from_the_folder(tool, source, tmp_path, file_format):
    folder, _ = source
    tool.run("pack", folder, tmp_path / "packed", "--quiet", "--format", file_format, "--shards", "2")
    tool.build(folder, tmp_path / "of-folder", "--size", "8")
    tool.build(tmp_path / "packed", tmp_path / "of-packed", "--size", "8")
    # Keys have no extension, so the fingerprint of such a source differs from that of the files.
    allowed = [] if file_format == "tar" else ["dataset.json"]
    assert differing(files(tmp_path / "of-folder"), files(tmp_path / "of-packed")) == allowed
    first, second = (json.loads((tmp_path / name / "dataset.json").read_text()) for name in ("of-folder", "of-packed"))
    assert first["classes"] == second["classes"] == ["class0", "class1", "class2"]


def test_arrays_of_pixels_are_not_encoded_images(tool, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
        file["labels"] = np.zeros(4, np.int64)
    result = tool.run("pack", tmp_path / "x.h5", tmp_path / "out", "--quiet", expect=5)
    assert "arrays of pixels" in result.err and "precache convert" in result.err
    assert not (tmp_path / "out").exists()


def test_a_skipped_file_in_a_shard_is_listed_with_the_shard(tool, source, tmp_path):
    folder, encoded = source
    shutil.copytree(folder, tmp_path / "images")
    (tmp_path / "images" / "class1" / "bad.jpg").write_text("none")
    tool.run("pack", pack_tar(tmp_path / "images", tmp_path / "x.tar.gz"), tmp_path / "out", "--quiet")
    lines = (tmp_path / "out" / "skipped.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == ["x.tar.gz:class1/bad.jpg"]
    assert len([*read_tar(tmp_path / "out" / "train-000000.tar")]) == len(encoded)


def test_an_interrupted_pipe_resumes_from_its_copy(tool, interference, source, tmp_path):
    options = ("--quiet", "--shards", "3", "--jobs", "1")
    tar = pack_tar(source[0], tmp_path / "x.tar")
    tool.run("pack", tar, tmp_path / "whole", *options)
    with tar.open() as file:
        env = interference.kill("rename", path=tmp_path / "out" / "train-000001.tar")
        result = finish(tool.start("pack", "-", tmp_path / "out", *options, env=env, stdin=file))
    assert result.code == -signal.SIGKILL
    tool.run("pack", "-", tmp_path / "out", *options)  # standard input is empty now
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []
    assert not (tmp_path / "out" / ".precache").exists()


@pytest.mark.parametrize("file_format, is_packed", [*((name, False) for name in FORMATS), ("tar", True)])
def test_a_kill_at_any_call_leaves_nothing_partial(
    tool, interference, source, tmp_path, quick_folder, file_format, is_packed
):
    options = ("--quiet", "--format", file_format, "--shards", "3")
    images_path = pack_tar(source[0], tmp_path / "x.tar.gz") if is_packed else source[0]
    tool.run("pack", images_path, tmp_path / "out", *options)
    final = files(tmp_path / "out")
    for step in range(10_000):
        out = quick_folder / str(step)
        env = interference.kill("mkdir,pwrite,fsync,rename,unlink", path=out, after=step)
        result = finish(tool.start("pack", images_path, out, *options, env=env))
        if result.code == 0:
            break
        assert result.code == -signal.SIGKILL
        for shard in out.glob("train-*"):
            assert shard.read_bytes() == final[shard.name]
        tool.run("pack", images_path, out, *options)
        assert differing(files(out), final) == [], f"after a kill before call {step}"
        shutil.rmtree(out)
    assert step > 10


def test_wrong_requests_are_refused(tool, source, tmp_path, build):
    folder, _ = source
    refused = [("--dtype", "uint8"), ("--normalize", "imagenet"), ("--layout", "hwc"), ("--shards", "22")]
    for options in refused:
        result = tool.run("pack", folder, tmp_path / "out", *options, expect=2)
        assert result.err.startswith("precache: ")
    dataset = build(folder, tmp_path / "tensors", "--size", "8")
    result = tool.run("pack", dataset.out, tmp_path / "out", "--quiet", expect=5)
    assert "holds tensors" in result.err
    result = tool.run("pack", folder, dataset.out, "--quiet", expect=2)
    assert "holds a dataset of tensors" in result.err
    tool.run("pack", folder, tmp_path / "packed", "--quiet")
    result = tool.run("convert", tmp_path / "packed", tmp_path / "out", "--quiet", expect=5)
    assert "precache pack" in result.err
    assert not (tmp_path / "out").exists()


def test_all_images_may_have_one_name(tool, source, tmp_path):
    """Readers that make a column of each extension then have one for JPEG and PNG; decoders detect the content."""
    import webdataset

    folder, encoded = source
    tool.run("pack", folder, tmp_path / "out", "--image-name", "jpg", "--quiet")
    url = str(tmp_path / "out" / "train-000000.tar")
    samples = list(webdataset.WebDataset(url, shardshuffle=False))
    assert {tuple(sorted(name for name in sample if not name.startswith("__"))) for sample in samples} == {
        ("cls", "jpg")
    }
    assert {sample["__key__"]: sample["jpg"] for sample in samples} == {key: row[0] for key, row in encoded.items()}
    decoded = list(webdataset.WebDataset(url, shardshuffle=False).decode("pil"))
    assert len(decoded) == 21 and all(sample["jpg"].mode == "RGB" for sample in decoded)
    tool.run("build", tmp_path / "out", tmp_path / "tensors", "--size", "8", "--quiet")
    assert json.loads((tmp_path / "tensors" / "dataset.json").read_text())["splits"]["train"]["samples"] == 21
    other = tool.run("pack", folder, tmp_path / "out", "--quiet", expect=2)
    assert "already holds a finished split" in other.err


@pytest.mark.parametrize(
    "options, words",
    [
        (("--image-name", "img", "--format", "hdf5"), "--image-name applies only to the --format tar"),
        (("--image-name", "cls"), "cannot be the extension"),
        (("--image-name", "a.b"), "cannot be the extension"),
    ],
)
def test_an_invalid_name_for_images_is_refused(tool, source, tmp_path, options, words):
    assert words in tool.run("pack", source[0], tmp_path / "out", *options, expect=2).err
