# SPDX-License-Identifier: Apache-2.0
"""Encoded images are packed as they are, and the readers of others find them."""

import shutil
import signal

import h5py
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
        data, = (sample[name] for name in ("jpg", "png") if name in sample)
        yield sample["__key__"], data, int(sample["cls"]), ".jpg" if "jpg" in sample else ".png"


def read_tfrecord(path):
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature([], tf.string) for name in ("image/encoded", "image/format", "key", "image/class/text")}
    features["image/class/label"] = tf.io.FixedLenFeature([], tf.int64)
    for record in tf.data.TFRecordDataset(str(path)):
        example = {name: value.numpy() for name, value in tf.io.parse_single_example(record, features).items()}
        assert example["image/class/text"].decode() == f"class{example['image/class/label']}"
        tf.io.decode_image(example["image/encoded"])
        extension = {b"jpeg": ".jpg", b"png": ".png"}[example["image/format"]]
        yield example["key"].decode(), example["image/encoded"], int(example["image/class/label"]), extension


def read_hdf5(path):
    with h5py.File(path) as file:
        assert [name.decode() for name in file["classes"]] == ["class0", "class1", "class2"]
        for key, data, label in zip(file["keys"], file["images"], file["labels"], strict=True):
            yield key.decode(), data.tobytes(), int(label), ".jpg" if data.tobytes().startswith(b"\xff\xd8") else ".png"


READERS = {"tar": read_tar, "tfrecord": read_tfrecord, "hdf5": read_hdf5}


@pytest.mark.parametrize("file_format", FORMATS)
def test_other_readers_find_every_image_as_it_was(tool, source, tmp_path, file_format):
    folder, encoded = source
    options = ("--keep-encoded", "--quiet", "--format", file_format, "--shards", "4", "--seed", "1")
    tool.run("convert", folder, tmp_path / "out", *options)
    shards = sorted((tmp_path / "out").glob(f"*.{EXTENSIONS[file_format]}"))
    assert len(shards) == 4
    found = [sample for shard in shards for sample in READERS[file_format](shard)]
    assert {key: rest for key, *rest in found} == {key: list(rest) for key, rest in encoded.items()}
    assert len(found) == len(encoded)
    assert [key for key, *_ in found] != sorted(encoded)
    assert (tmp_path / "out" / "classes.txt").read_text() == "class0\nclass1\nclass2\n"
    tool.run("convert", folder, tmp_path / "again", *options, "--jobs", "1")
    assert differing(files(tmp_path / "out"), files(tmp_path / "again")) == []


def test_labels_come_from_where_build_takes_them(tool, source, tmp_path):
    folder, _ = source
    tool.run("convert", folder, tmp_path / "none", "--keep-encoded", "--quiet", "--labels", "none")
    assert {label for _, _, label, _ in read_tar(tmp_path / "none" / "train-000000.tar")} == {-1}
    (tmp_path / "labels.csv").write_text("class0/03.png,7\nclass1/01.png,9\n")
    tool.run("convert", folder, tmp_path / "csv", "--keep-encoded", "--quiet", "--labels", tmp_path / "labels.csv",
             "--split", "val")
    assert [(key, label) for key, _, label, _ in read_tar(tmp_path / "csv" / "val-000000.tar")] == \
        [("class0/03", 7), ("class1/01", 9)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_kill_at_any_call_leaves_nothing_partial(tool, interference, source, tmp_path, quick_folder, file_format):
    options = ("--keep-encoded", "--quiet", "--format", file_format, "--shards", "3")
    tool.run("convert", source[0], tmp_path / "out", *options)
    final = files(tmp_path / "out")
    for step in range(10_000):
        out = quick_folder / str(step)
        env = interference.kill("mkdir,pwrite,fsync,rename,unlink", path=out, after=step)
        result = finish(tool.start("convert", source[0], out, *options, env=env))
        if result.code == 0:
            break
        assert result.code == -signal.SIGKILL
        for shard in out.glob("train-*"):
            assert shard.read_bytes() == final[shard.name]
        tool.run("convert", source[0], out, *options)
        assert differing(files(out), final) == [], f"after a kill before call {step}"
        shutil.rmtree(out)
    assert step > 10


def test_what_has_no_meaning_is_refused(tool, source, tmp_path, build):
    folder, _ = source
    refused = [("--dtype", "uint8"), ("--normalize", "imagenet"), ("--layout", "hwc"), ("--shards", "22")]
    for options in refused:
        result = tool.run("convert", folder, tmp_path / "out", "--keep-encoded", *options, expect=2)
        assert result.err.startswith("precache: ")
    dataset = build(folder, tmp_path / "tensors", "--size", "8")
    result = tool.run("convert", dataset.out, tmp_path / "out", "--keep-encoded", "--quiet", expect=5)
    assert "holds tensors" in result.err
    result = tool.run("convert", folder, dataset.out, "--keep-encoded", "--quiet", expect=2)
    assert "holds a dataset of tensors" in result.err
    tool.run("convert", folder, tmp_path / "packed", "--keep-encoded", "--quiet")
    result = tool.run("convert", tmp_path / "packed", tmp_path / "out", "--quiet", expect=5)
    assert "--keep-encoded" in result.err
    assert not (tmp_path / "out").exists()
