# SPDX-License-Identifier: Apache-2.0
"""TFRecords of images as SOURCE, written by TensorFlow: a build of them equals one of the folder."""

import pytest

from shard_sources import OPTIONS, assert_same_samples, key_of
from shards import Dataset

pytest_plugins = ("tool_fixtures", "source_fixtures")

SCHEMAS = {
    "slim": ("image/encoded", "image/class/label", "image/filename"),
    "plain": ("image", "label", "key"),
    "raw": ("image_raw", "label", "id"),
    "webdataset": ("jpg", "cls", "__key__"),
    "own": ("photo", "species", None),
}


def write_records(path, rows, schema, compression="", label=lambda name, number: number):
    import tensorflow as tf

    def feature(value):
        if isinstance(value, int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        data = value.encode() if isinstance(value, str) else value
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))

    image_key, label_key, name_key = schema
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for name, data, class_name, number in rows:
            fields = {image_key: data, label_key: label(class_name, number), "caption": "x" * 5000}
            if name_key is not None:
                fields[name_key] = name
            example = tf.train.Example(
                features=tf.train.Features(feature={key: feature(value) for key, value in fields.items()})
            )
            writer.write(example.SerializeToString())


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_tfrecords_give_the_folder_s_tensors(tool, listed, expected, tmp_path, schema, compression):
    for shard in range(2):
        path = tmp_path / f"train-{shard:05}-of-00002"
        write_records(path, listed[shard::2], SCHEMAS[schema], compression)
    options = [*OPTIONS]
    if schema == "own":
        text = tool.refuse(tmp_path / "train-*", tmp_path / "no", *options)
        assert "--label-key" in text
        options += ["--image-key", "photo", "--label-key", "species"]
    tool.build(tmp_path / "train-*", tmp_path / "out", *options)
    if schema != "own":
        assert_same_samples(tmp_path / "out", expected)
        return
    # Without keys, samples are called after their places.
    order = {key_of(row[0]): f"train-{i % 2:05}-of-00002/{i // 2:08}" for i, row in enumerate(listed)}
    assert_same_samples(tmp_path / "out", expected, rename=order.get)


def test_labels_of_tfrecords_may_be_names(tool, listed, expected, tmp_path):
    write_records(tmp_path / "x.tfrecord", listed, SCHEMAS["plain"], label=lambda name, number: name)
    tool.build(tmp_path / "x.tfrecord", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", expected)
    assert Dataset(tmp_path / "out").manifest["classes"] == expected.manifest["classes"]


def test_a_wrong_crc_ends_the_build_and_says_where(tool, listed, tmp_path):
    path = tmp_path / "x.tfrecord"
    write_records(path, listed, SCHEMAS["plain"])
    data = bytearray(path.read_bytes())
    at = data.find(listed[3][1]) + 50
    data[at] ^= 1
    path.write_bytes(data)
    text = tool.refuse(path, tmp_path / "out", *OPTIONS, expect=4)
    assert str(path) in text and "CRC" in text
