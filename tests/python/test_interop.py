# SPDX-License-Identifier: Apache-2.0
"""Third-party libraries read precache shards: every pixel, label and key."""

import os
import subprocess
import tarfile
from typing import NamedTuple

import h5py
import numpy as np
import pytest
import webdataset

import images
import reference
from images import ANIMALS
from reference import DTYPES, ODD, SMALL, Recipe
from shards import (
    FORMATS,
    Sample,
    assert_equal_samples,
    expected_animals,
    index_by_key,
    labels_of,
    parse_example,
    read_npy,
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_every_format_holds_every_dtype(build, animals, tmp_path, file_format, dtype):
    source, files = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype, layout="hwc")
    dataset = build(source, tmp_path / "out", "--format", file_format, "--shards", "3", *recipe.options())
    assert dataset.manifest["format"] == file_format
    assert dataset.classes == list(ANIMALS)
    assert dataset.spec == {**dataset.spec, "dtype": dtype, "shape": [15, 17, 3], "layout": "hwc"}
    assert_equal_samples(expected_animals(files, recipe), dataset.samples())


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensorflow_decodes_the_images_itself(build, animals, tmp_path, dtype):
    import tensorflow as tf

    source, files = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype)
    dataset = build(source, tmp_path / "out", "--format", "tfrecord", "--shards", "2", *recipe.options())

    def decode(record):
        example = parse_example(record)
        raw = example["image"]
        if dtype == "bfloat16":  # decode_raw does not know it
            image = tf.bitcast(tf.io.decode_raw(raw, tf.uint16), tf.bfloat16)
        else:
            image = tf.io.decode_raw(raw, tf.as_dtype(dtype))
        return example["key"], tf.reshape(image, dataset.spec["shape"]), example["label"]

    records = tf.data.TFRecordDataset([str(path) for path in dataset.shard_paths()])
    samples = [Sample(key.decode(), image, int(label)) for key, image, label in records.map(decode).as_numpy_iterator()]
    assert_equal_samples(expected_animals(files, recipe), index_by_key(samples))


FEATURES = ("align", "image", "label", "key", "pad")


def test_tfrecord_features_come_in_the_order_of_the_contract(build, animals, tmp_path):
    import tensorflow as tf

    source, _ = animals
    dataset = build(source, tmp_path / "out", "--format", "tfrecord", *SMALL.options())
    for record in tf.data.TFRecordDataset([str(path) for path in dataset.shard_paths()]).as_numpy_iterator():
        assert len(record) % 64 == 48
        assert set(tf.train.Example.FromString(record).features.feature) == set(FEATURES)
        places = [record.index(b"\x0a" + bytes([len(name)]) + name.encode()) for name in FEATURES]
        assert places == sorted(places)


def webdataset_samples(dataset):
    urls = [str(path) for path in dataset.shard_paths()]
    samples = [
        Sample(sample["__key__"], sample["npy"], sample["cls"])
        for sample in webdataset.WebDataset(urls, shardshuffle=False, empty_check=False).decode()
    ]
    return index_by_key(samples)


def test_webdataset_decodes_arrays_and_labels(build, animals, tmp_path):
    source, files = animals
    dataset = build(source, tmp_path / "out", "--shards", "3", *ODD.options())
    samples = webdataset_samples(dataset)
    assert_equal_samples(expected_animals(files, ODD), samples)
    assert all(isinstance(sample.label, int) for sample in samples.values())


def test_h5py_finds_images_labels_keys_and_classes(build, animals, tmp_path):
    source, files = animals
    dataset = build(source, tmp_path / "out", "--format", "hdf5", "--shards", "2", *ODD.options())
    for shard in dataset.shards():
        with h5py.File(dataset.out / shard["file"]) as file:
            count = shard["samples"]
            assert file["images"].shape == (count, 3, 15, 17) and file["images"].dtype == np.uint8
            assert file["labels"].shape == (count,) and file["labels"].dtype == np.int64
            assert file["keys"].shape == (count,)
            assert file["images"].chunks is None and file["images"].id.get_offset() % 64 == 0
            assert [name.decode() for name in file["labels"].attrs["classes"]] == list(ANIMALS)
            assert {len(file[name]) for name in file} == {count}  # readers of rows want columns of one length
    assert sum(shard["samples"] for shard in dataset.shards()) == len(files)


def test_h5py_sees_true_half_precision(build, animals, tmp_path):
    source, _ = animals
    dataset = build(source, tmp_path / "out", "--format", "hdf5", "--dtype", "float16", "--size", "16")
    with h5py.File(dataset.shard_paths()[0]) as file:
        assert file["images"].dtype == np.float16


def test_short_names_make_a_plain_ustar_archive(build, animals, tmp_path):
    source, files = animals
    dataset = build(source, tmp_path / "out", *SMALL.options())
    with tarfile.open(dataset.shard_paths()[0]) as archive:
        members = archive.getmembers()
    assert len(members) == 2 * len(files)
    assert all(member.isreg() and member.pax_headers == {} for member in members)
    assert {(member.mtime, member.uid, member.gid) for member in members} == {(0, 0, 0)}


LONG = "long" * 30  # 120 bytes
DEEP = "/".join(["folder" * 15] * 6)  # 545 bytes

# Paths below SOURCE; the key where the contract fixes it, else None.
AWKWARD = {
    b"cat/plain.png": "cat/plain",
    b"cat/nested/plain.png": "cat/nested/plain",
    f"cat/{LONG}.png".encode(): f"cat/{LONG}",
    f"cat/{LONG}/{LONG}.png".encode(): f"cat/{LONG}/{LONG}",
    f"dog/{DEEP}/end.png".encode(): f"dog/{DEEP}/end",
    f"dog/{'ü' * 120}.jpg".encode(): f"dog/{'ü' * 120}",
    "dog/naïve 犬 🐕.png".encode(): "dog/naïve 犬 🐕",
    b"cat/one.two.three.png": "cat/one_two_three",
    b"cat/v1.5/pic.png": "cat/v1.5/pic",
    b"cat/two words.png": "cat/two words",
    b"cat/quotes'\".png": "cat/quotes'\"",
    b"cat/back\\slash.png": "cat/back\\slash",
    b"cat/line\nbreak.png": None,
    b"cat/-dash.png": "cat/-dash",
    b"cat/__x__/inner.png": "cat/__x__/inner",
    b"dot.one\nline two/pic.png": None,  # as it is, webdataset would drop it: its pattern stops at a line break
    b"dog/caf\xe9.png": None,
    b"dog/\xff\xfe/\x80.png": None,
    b"dog/surrogate\xed\xa0\x80.png": None,
    b"dog/overlong\xc0\xaf.png": None,
    b"__x__/meta.png": None,
    b"____/meta.png": None,
    b"cat/percent%41.png": None,
    b"cat/same.jpg": None,
    b"cat/same.png": None,
    b"cat/a.b.png": None,
    b"cat/a_b.png": None,
    b"cat/a.b.jpg": None,
}


class Expected(NamedTuple):
    name: bytes
    key: str | None
    label: int


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """A folder of files with awkward names, and the expected sample of each, by the bytes of its tensor."""
    source = tmp_path_factory.mktemp("awkward")
    paths = {name: os.path.join(os.fsencode(source), name) for name in AWKWARD}
    for seed, path in enumerate(paths.values()):
        images.draw_unique(path, seed)
    classes = sorted({name.split(b"/")[0] for name in AWKWARD})
    expected = {}
    for name, path in paths.items():
        content = reference.tensor(os.fsdecode(path), SMALL).tobytes()
        expected[content] = Expected(name, AWKWARD[name], classes.index(name.split(b"/")[0]))
    assert len(expected) == len(AWKWARD)
    return source, expected


@pytest.fixture(scope="module", params=FORMATS)
def awkward_dataset(request, build, awkward, tmp_path_factory):
    source, expected = awkward
    out = tmp_path_factory.mktemp("out") / request.param
    return build(source, out, "--format", request.param, "--shards", "3", *SMALL.options()), expected


def assert_awkward_samples(expected, samples):
    """Checks that all samples exist, with their labels and, where known, their keys."""
    by_content = {sample.array.tobytes(): sample for sample in samples.values()}
    lost = [expected[content].name for content in expected.keys() - by_content.keys()]
    assert lost == []
    assert len(samples) == len(expected)
    for content, (name, key, label) in expected.items():
        sample = by_content[content]
        assert sample.label == label, name
        assert key in (sample.key, None), name


def test_awkward_names_reach_every_client(awkward_dataset):
    dataset, expected = awkward_dataset
    samples = dataset.samples()
    assert_awkward_samples(expected, samples)
    for key in samples:
        assert key.encode("utf-8")


def test_the_image_column_holds_for_awkward_names(awkward_dataset):
    dataset, _ = awkward_dataset
    for shard in dataset.shards():
        offsets, payloads = dataset.raw_images(shard)
        assert payloads == [sample.array.tobytes() for sample in dataset.read_shard(shard)]
        assert [offset % 64 for offset in offsets] == [0] * shard["samples"]


def test_awkward_names_get_the_same_keys_in_every_format(build, awkward, tmp_path):
    source, _ = awkward
    keys = [build(source, tmp_path / name, "--format", name, *SMALL.options()).samples().keys() for name in FORMATS]
    assert keys[0] == keys[1] == keys[2]


@pytest.fixture(scope="module")
def awkward_tar(build, awkward, tmp_path_factory):
    source, expected = awkward
    return build(source, tmp_path_factory.mktemp("out") / "tar", *SMALL.options()), expected


def test_webdataset_drops_no_awkward_name(awkward_tar):
    dataset, expected = awkward_tar
    samples = webdataset_samples(dataset)
    assert_awkward_samples(expected, samples)
    assert samples.keys() == dataset.samples().keys()


def test_one_long_name_gives_every_entry_a_pax_header(awkward_tar):
    dataset, _ = awkward_tar
    with tarfile.open(dataset.shard_paths()[0]) as archive:
        assert all(member.pax_headers for member in archive)


def gnu_tar(*arguments):
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["tar", *map(str, arguments)], capture_output=True, check=True, env=environment)
    assert done.stderr == b""
    return done.stdout


def test_gnu_tar_lists_and_extracts_every_sample(awkward_tar, tmp_path):
    dataset, expected = awkward_tar
    extracted = {}
    for shard in dataset.shard_paths():
        assert len(gnu_tar("tvf", shard, "--quoting-style=escape").splitlines()) == 2 * len(expected)
        gnu_tar("xf", shard, "-C", tmp_path)
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            path = os.path.join(folder, name)
            stem, extension = os.path.splitext(os.path.relpath(path, tmp_path))
            with open(path, "rb") as file:
                extracted.setdefault(stem, {})[extension] = file.read()
    samples = [Sample(key, read_npy(parts[".npy"], "uint8"), int(parts[".cls"])) for key, parts in extracted.items()]
    assert_awkward_samples(expected, index_by_key(samples))


def write_csv(path, labels):
    """`labels` maps image files (below SOURCE) to labels."""
    path.write_text("path,label\n" + "".join(f"{name},{label}\n" for name, label in labels.items()))
    return path


def names_below(source, files):
    return {key: str(path.relative_to(source)) for key, path in files.items()}


@pytest.mark.parametrize("file_format", FORMATS)
def test_without_labels_every_label_is_minus_one(build, animals, tmp_path, file_format):
    source, files = animals
    dataset = build(source, tmp_path / "out", "--format", file_format, "--labels", "none", *SMALL.options())
    assert dataset.labels() == dict.fromkeys(files, -1)
    assert dataset.classes == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_csv_of_names_gives_sorted_classes(build, animals, tmp_path, file_format):
    source, files = animals
    colors = {key: ("red", "green", "blue")[number % 3] for number, key in enumerate(sorted(files))}
    table = write_csv(tmp_path / "labels.csv", {name: colors[key] for key, name in names_below(source, files).items()})
    dataset = build(source, tmp_path / "out", "--format", file_format, "--labels", table, *SMALL.options())
    assert dataset.classes == ["blue", "green", "red"]
    assert dataset.labels() == {key: dataset.classes.index(color) for key, color in colors.items()}


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_csv_of_integers_keeps_them_all(build, animals, tmp_path, file_format):
    source, files = animals
    numbers = [0, 1, -1, 127, 128, -(2**63), 2**63 - 1, 2**31, -(2**31) - 1, 999_999_999_999]
    labels = {key: numbers[place % len(numbers)] for place, key in enumerate(sorted(files))}
    table = write_csv(tmp_path / "labels.csv", {name: labels[key] for key, name in names_below(source, files).items()})
    dataset = build(source, tmp_path / "out", "--format", file_format, "--labels", table, *SMALL.options())
    assert dataset.labels() == labels
    if file_format == "tar":
        assert labels_of(webdataset_samples(dataset)) == labels


def test_a_class_file_fixes_the_numbers(build, animals, tmp_path):
    source, files = animals
    (tmp_path / "classes.txt").write_text("zebra\ndog\ncat\nbee\nant\n")
    dataset = build(source, tmp_path / "out", "--classes", tmp_path / "classes.txt", *SMALL.options())
    assert dataset.classes == ["zebra", "dog", "cat", "bee", "ant"]
    assert dataset.labels() == {key: dataset.classes.index(key.split("/")[0]) for key in files}


def test_an_unknown_class_is_an_error(run, animals, tmp_path):
    source, _ = animals
    (tmp_path / "classes.txt").write_text("ant\nbee\ncat\n")
    done = run("build", source, tmp_path / "out", "--classes", tmp_path / "classes.txt", *SMALL.options(), expect=2)
    assert b"dog" in done.stderr
    assert not (tmp_path / "out" / "dataset.json").exists()
