# SPDX-License-Identifier: Apache-2.0
"""Which parts of third-party shards `precache.open` takes as image and label."""

import pickle

import h5py
import numpy as np
import pytest

import precache

ARRAYS = np.arange(4 * 8 * 8 * 3, dtype=np.uint8).reshape(4, 8, 8, 3)


@pytest.fixture
def shard(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = ARRAYS
        file["negatives"] = 255 - ARRAYS
        file["labels"] = np.zeros((4, 5))
        file["ages"] = np.arange(4) + 20
    return tmp_path / "x.h5"


def test_keys_choose_images_and_labels(shard):
    dataset = precache.open(shard, image_key="negatives", label_key="ages")
    for opened in (dataset, pickle.loads(pickle.dumps(dataset))):
        images, labels = opened[0:4]
        np.testing.assert_array_equal(images, 255 - ARRAYS)
        assert labels.tolist() == [20, 21, 22, 23]
    assert "no class names" in repr(dataset)
    assert precache.open(shard, label_key="ages", image_key="images")[3][1] == 23


def test_rows_of_several_numbers_are_not_labels(shard):
    assert precache.open(shard)[0:4][1].tolist() == [-1] * 4


def test_unknown_keys_are_refused(shard):
    with pytest.raises(ValueError, match="no dataset 'nothing'"):
        precache.open(shard, label_key="nothing")
    with pytest.raises(ValueError, match="labels must be 'none' or None, got 'all'"):
        precache.open(shard, labels="all")
    with pytest.raises(TypeError, match="must be strings"):
        precache.open(shard, image_key=3)


def test_an_example_of_several_labels_is_refused_or_opened_without(tmp_path):
    tf = pytest.importorskip("tensorflow")

    def integers(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[ARRAYS[0].tobytes()]))
    features = {"image": image, "shape": integers(8, 8, 3), "label": integers(1, 2, 3), "age": integers(4)}
    path = tmp_path / "x.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    with pytest.raises(ValueError, match="'label' has 3 values in record 0") as error:
        precache.open(path)
    assert "label_key" in error.value.hint
    assert precache.open(path, label_key="age")[0][1] == 4
    assert precache.open(path, labels="none")[0][1] == -1
