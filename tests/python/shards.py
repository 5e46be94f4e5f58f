# SPDX-License-Identifier: Apache-2.0
"""Reads datasets back with third-party libraries: tarfile, tensorflow, h5py, numpy."""

import io
import json
import tarfile
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

import reference
from images import ANIMALS
from reference import DTYPES

FORMATS = ("tar", "tfrecord", "hdf5")


class Sample(NamedTuple):
    key: str
    array: np.ndarray
    label: int


def index_by_key(samples):
    by_key = {sample.key: sample for sample in samples}
    assert len(by_key) == len(samples), "two samples have the same key"
    return by_key


def arrays_of(samples):
    return {key: sample.array for key, sample in samples.items()}


def labels_of(samples):
    return {key: sample.label for key, sample in samples.items()}


def read_npy(data, dtype):
    """The .npy format has no bfloat16, so such arrays are stored as <u2."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if dtype != "bfloat16":
        return array
    assert array.dtype == np.dtype("<u2")
    return array.view(DTYPES["bfloat16"])


def read_tar(path, spec):
    with tarfile.open(path) as archive:
        entries = {member.name: archive.extractfile(member).read() for member in archive}
        assert len(entries) == len(archive.getmembers()), f"{path} has entries of the same name"
    keys = [name.removesuffix(".npy") for name in entries if name.endswith(".npy")]
    assert sorted(entries) == sorted(key + suffix for key in keys for suffix in (".npy", ".cls"))
    return [Sample(key, read_npy(entries[key + ".npy"], spec["dtype"]), int(entries[key + ".cls"])) for key in keys]


def parse_example(record):
    import tensorflow as tf

    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "key": tf.io.FixedLenFeature([], tf.string),
    }
    return tf.io.parse_single_example(record, features)


def read_tfrecord(path, spec):
    import tensorflow as tf

    def to_sample(example):
        array = np.frombuffer(example["image"], DTYPES[spec["dtype"]]).reshape(spec["shape"])
        return Sample(example["key"].decode(), array, int(example["label"]))

    return [to_sample(example) for example in tf.data.TFRecordDataset(str(path)).map(parse_example).as_numpy_iterator()]


def read_hdf5(path, spec):
    with h5py.File(path) as file:
        # h5py has no bfloat16 and widens it to float32, which loses nothing on the way back.
        images = file["images"][:].astype(DTYPES[spec["dtype"]])
        rows = zip(file["keys"][:], images, file["labels"][:], strict=True)
        return [Sample(key.decode(), image, int(label)) for key, image, label in rows]


READERS = {"tar": read_tar, "tfrecord": read_tfrecord, "hdf5": read_hdf5}


class Dataset:
    """A finished OUT."""

    def __init__(self, out):
        self.out = Path(out)

    @cached_property
    def manifest(self):
        return json.loads((self.out / "dataset.json").read_text(encoding="utf-8"))

    @property
    def spec(self):
        return self.manifest["spec"]

    @property
    def classes(self):
        return self.manifest["classes"]

    def shards(self, split="train"):
        """The shards, each with all of its columns."""
        entry = self.manifest["splits"][split]

        def columns(shard):
            own = shard.get("columns", {})
            return {name: {**column, **own.get(name, {})} for name, column in entry["columns"].items()}

        return [{**shard, "columns": columns(shard)} for shard in entry["shards"]]

    def shard_paths(self, split="train"):
        return [self.out / shard["file"] for shard in self.shards(split)]

    def read_shard(self, shard):
        return READERS[self.manifest["format"]](self.out / shard["file"], self.spec)

    def samples(self, split="train"):
        """All samples by key."""
        samples = [sample for shard in self.shards(split) for sample in self.read_shard(shard)]
        by_key = index_by_key(samples)
        assert len(samples) == self.manifest["splits"][split]["samples"]
        return by_key

    def arrays(self, split="train"):
        return arrays_of(self.samples(split))

    def labels(self, split="train"):
        return labels_of(self.samples(split))

    def raw_images(self, shard):
        """Offset and bytes of every image, found with the manifest and the file alone."""
        data = (self.out / shard["file"]).read_bytes()
        column = shard["columns"]["image"]
        size = int(np.prod(self.spec["shape"])) * DTYPES[self.spec["dtype"]].itemsize
        offsets = [column["base"] + row * column["stride"] for row in range(shard["samples"])]
        return offsets, [data[offset : offset + size] for offset in offsets]

    def skipped(self):
        """The text of skipped.tsv; nothing if no sample was skipped."""
        path = self.out / "skipped.tsv"
        return path.read_bytes() if path.exists() else b""

    def files(self):
        """The bytes of every file that belongs to the dataset, by name."""
        return {path.name: path.read_bytes() for path in self.out.iterdir() if path.is_file()}


def difference(expected, actual):
    """Describes how `actual` differs; None if it is equal bit for bit."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"is {actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}"
    if actual.tobytes() == expected.tobytes():
        return None
    distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return f"{np.count_nonzero(distance)} of {distance.size} values differ, by up to {distance.max():g}"


def assert_equal_arrays(expected, actual):
    """Compares all keys and reports all faults at once."""
    faults = [f"{key}: missing" for key in expected.keys() - actual.keys()]
    faults += [f"{key}: not expected" for key in actual.keys() - expected.keys()]
    for key in expected.keys() & actual.keys():
        fault = difference(expected[key], actual[key])
        if fault:
            faults.append(f"{key}: {fault}")
    assert not faults, f"{len(faults)} faults in {len(expected)} samples:\n" + "\n".join(sorted(faults))


def expected_animals(files, recipe):
    """The samples that images.draw_animals() must give."""
    classes = list(ANIMALS)
    arrays = reference.tensors(files, recipe)
    return {key: Sample(key, array, classes.index(key.split("/")[0])) for key, array in arrays.items()}


def assert_equal_samples(expected, actual):
    assert_equal_arrays(arrays_of(expected), arrays_of(actual))
    assert labels_of(actual) == labels_of(expected)
