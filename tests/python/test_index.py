# SPDX-License-Identifier: Apache-2.0
"""`precache index`: third-party readers read every pixel, label and key of precache shards by these files."""

import io
import json
import os
import shutil
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import webdataset
from PIL import Image

import images
from images import ANIMALS
from reference import DTYPES, LAYOUTS, SMALL, Recipe
from shards import Sample, assert_equal_samples, expected_animals, index_by_key, read_npy
from tool import differing, files, snapshot

SHARDS = ("--shards", "3")
SCRIPTS = Path(sysconfig.get_path("scripts"))


@pytest.fixture
def index(run):
    """index(path, options...): the report of written files."""

    def write(path, *options):
        return json.loads(run("index", path, *options, "--json").stdout)

    return write


@pytest.fixture(scope="session")
def partly_bad(tmp_path_factory):
    """Four images, one of which is bad: of four shards one is empty."""
    source = tmp_path_factory.mktemp("partly_bad")
    for number in range(3):
        images.draw_unique(source / "a" / f"{number}.png", number)
    (source / "a" / "bad.png").write_bytes(b"no image")
    return source


EMPTY_SHARD = (*SMALL.options(), "--shards", "4", "--max-bad", "50%")


def files_of(written, kind):
    return [Path(entry["file"]) for entry in written["written"] if entry["kind"] == kind]


# --- DALI -------------------------------------------------------------------------------------------------------------


def run_dali(define):
    """All samples of a pipeline without a GPU, each a list of arrays."""
    from nvidia.dali import pipeline_def

    pipeline = pipeline_def(define, batch_size=1, num_threads=1, device_id=None)()
    pipeline.build()
    (count,) = (meta["epoch_size"] for meta in pipeline.reader_meta().values())
    return [[np.asarray(output.at(0)) for output in pipeline.run()] for _ in range(count)]


def dali_webdataset(indexes, extensions, ending="tar", **options):
    from nvidia.dali import fn

    paths = [str(path.with_suffix(f".{ending}")) for path in indexes]
    arguments = {"paths": paths, "index_paths": [str(path) for path in indexes], "ext": extensions, **options}
    return run_dali(lambda: tuple(fn.readers.webdataset(**arguments)))


def dali_tfrecord(paths, indexes, features):
    from nvidia.dali import fn
    from nvidia.dali import tfrecord as tfrec

    kinds = {name: tfrec.FixedLenFeature([], *kind) for name, kind in features.items()}
    arguments = {"path": [str(path) for path in paths], "index_path": [str(path) for path in indexes]}

    def define():
        sample = fn.readers.tfrecord(**arguments, features=kinds)
        return tuple(sample[name] for name in features)

    return run_dali(define)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dali_reads_tars(build, index, animals, tmp_path, dtype):
    source, paths = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype, layout="hwc")
    dataset = build(source, tmp_path / "out", *SHARDS, *recipe.options())
    indexes = files_of(index(dataset.out, "--kind", "dali"), "dali")
    assert indexes == [path.with_suffix(".idx") for path in dataset.shard_paths()]
    keys = [sample.key for shard in dataset.shards() for sample in dataset.read_shard(shard)]
    read = dali_webdataset(indexes, ["npy", "cls"], missing_component_behavior="error")
    samples = [
        Sample(key, read_npy(npy.tobytes(), dtype), int(cls.tobytes()))
        for key, (npy, cls) in zip(keys, read, strict=True)
    ]
    assert_equal_samples(expected_animals(paths, recipe), index_by_key(samples))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dali_reads_tfrecords(build, index, animals, tmp_path, dtype):
    from nvidia.dali import tfrecord as tfrec

    source, paths = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype)
    dataset = build(source, tmp_path / "out", "--format", "tfrecord", *SHARDS, *recipe.options())
    indexes = files_of(index(dataset.out, "--kind", "dali"), "dali")
    features = {"image": (tfrec.string, ""), "label": (tfrec.int64, -7), "key": (tfrec.string, "")}
    samples = [
        Sample(key.tobytes().decode(), image.view(DTYPES[dtype]).reshape(dataset.spec["shape"]), int(label.item()))
        for image, label, key in dali_tfrecord(dataset.shard_paths(), indexes, features)
    ]
    assert_equal_samples(expected_animals(paths, recipe), index_by_key(samples))


@pytest.mark.parametrize("file_format", ["tar", "tfrecord"])
def test_index_files_equal_those_of_the_dali_tools(build, index, animals, tmp_path, file_format):
    dataset = build(animals[0], tmp_path / "out", "--format", file_format, *SHARDS, *SMALL.options())
    command = SCRIPTS / {"tar": "wds2idx", "tfrecord": "tfrecord2idx"}[file_format]
    for path, ours in zip(dataset.shard_paths(), files_of(index(dataset.out), "dali"), strict=True):
        theirs = tmp_path / "theirs.idx"
        subprocess.run([command, path, theirs], check=True, capture_output=True)
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("file_format", ["tar", "tfrecord"])
def test_a_shard_without_samples_has_no_index_for_dali(build, run, index, partly_bad, tmp_path, file_format):
    dataset = build(partly_bad, tmp_path / "out", "--format", file_format, *EMPTY_SHARD)
    (empty,) = (dataset.out / shard["file"] for shard in dataset.shards() if shard["samples"] == 0)
    empty.with_suffix(".idx").write_text(
        "v1.2 1\nnpy 512 1 a.npy\n" if file_format == "tar" else "0 64\n"
    )  # of old shards
    assert f"'{empty}': the shard is empty" in run("index", dataset.out, "--kind", "dali").stderr.decode()
    written = index(dataset.out, "--kind", "dali")
    assert [entry["of"] for entry in written["missing"]] == [str(empty)]
    assert not empty.with_suffix(".idx").exists()
    indexes = files_of(written, "dali")
    assert len(indexes) == 3
    if file_format == "tar":
        assert len(dali_webdataset(indexes, ["npy", "cls"])) == 3


# --- wids -------------------------------------------------------------------------------------------------------------


def wids_dataset(path):
    import wids

    return wids.ShardListDataset(str(path), localname=lambda url: url)


@pytest.mark.parametrize("dtype", DTYPES)
def test_wids_reads_tars(build, index, animals, tmp_path, dtype):
    source, paths = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype)
    dataset = build(source, tmp_path / "out", *SHARDS, *recipe.options())
    (path,) = files_of(index(dataset.out), "wids")
    assert path == dataset.out / "train.wids.json"
    shutil.move(dataset.out, tmp_path / "moved")
    read = wids_dataset(tmp_path / "moved" / path.name)
    assert len(read) == len(paths)
    entries = [read[i] for i in reversed(range(len(paths)))]
    samples = [Sample(entry["__key__"], entry[".npy"].view(DTYPES[dtype]), int(entry[".cls"])) for entry in entries]
    assert_equal_samples(expected_animals(paths, recipe), index_by_key(samples))


def test_wids_skips_a_shard_without_samples(build, index, partly_bad, tmp_path):
    dataset = build(partly_bad, tmp_path / "out", *EMPTY_SHARD)
    (path,) = files_of(index(dataset.out), "wids")
    assert sorted(shard["nsamples"] for shard in json.loads(path.read_text())["shardlist"]) == [0, 1, 1, 1]
    read = wids_dataset(path)
    assert sorted(read[i]["__key__"] for i in range(3)) == ["a/0", "a/1", "a/2"]


def deep_source(folder, names):
    for number, name in enumerate(names):
        images.draw_unique(folder / "class" / ("x" * 99) / f"{name}.png", number)
    return folder


def test_wids_reads_distinct_long_names(build, index, tmp_path):
    names = [f"{number:03}-{'n' * 40}" for number in range(6)]
    dataset = build(deep_source(tmp_path / "source", names), tmp_path / "out", *SMALL.options())
    read = wids_dataset(*files_of(index(dataset.out, "--kind", "wids"), "wids"))
    truth = {Path(key).name: sample for key, sample in dataset.samples().items()}
    assert len(read) == len(truth) == 6
    for i in range(6):
        assert (read[i][".npy"] == truth[Path(read[i]["__key__"]).name].array).all()


def test_wids_is_refused_if_it_would_mix_up_samples(build, run, index, tmp_path):
    source = tmp_path / "source"
    for number in range(4):
        images.draw_unique(source / "class" / (f"{number}" * 99) / "same.png", number)
    dataset = build(source, tmp_path / "out", *SMALL.options())
    said = run("index", dataset.out, "--kind", "wids", expect=5).stderr.decode()
    assert "wids cannot tell the samples" in said and "--kind dali" in said
    assert not (dataset.out / "train.wids.json").exists()
    written = index(dataset.out)  # kinds that were not requested by name do not stop it
    assert len(files_of(written, "dali")) == 1 and [entry["kind"] for entry in written["missing"]] == ["wids"]


# --- sizes of originals ------------------------------------------------------------------------------------------------


@pytest.fixture
def sized(build, tmp_path):
    """sized(format): a stretched dataset, and by key the height and width of each original."""

    def make(file_format):
        sizes = {}
        for number in range(7):
            key = f"a/{number}"
            sizes[key] = [10 + number, 40 - number]
            path = tmp_path / "source" / f"{key}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", sizes[key][::-1], (number, 0, 0)).save(path)
        options = ("--format", file_format, "--size", "8", "--fit", "stretch", *SHARDS)
        return build(tmp_path / "source", tmp_path / "out", *options), sizes

    return make


def test_tar_readers_see_the_sizes_of_originals(index, sized):
    dataset, sizes = sized("tar")
    written = index(dataset.out)
    read = dali_webdataset(files_of(written, "dali"), ["npy", "size.npy"], missing_component_behavior="error")
    of_dali = [[np.load(io.BytesIO(entry.tobytes())) for entry in sample] for sample in read]
    assert {f"a/{image[0, 0, 0]}": size.tolist() for image, size in of_dali} == sizes
    of_wids = wids_dataset(*files_of(written, "wids"))
    assert {of_wids[i]["__key__"]: of_wids[i][".size.npy"].tolist() for i in range(7)} == sizes
    paths = [str(path) for path in dataset.shard_paths()]
    samples = webdataset.WebDataset(paths, shardshuffle=False, empty_check=False).decode()
    assert {sample["__key__"]: sample["size.npy"].tolist() for sample in samples} == sizes


def test_h5py_sees_the_sizes_of_originals(index, sized):
    dataset, sizes = sized("hdf5")
    (path,) = files_of(index(dataset.out), "vds")
    with h5py.File(path) as file:
        assert file["size"].is_virtual and file["size"].dtype == np.int32
        keys = [key.decode() for key in file["keys"]]
        assert dict(zip(keys, file["size"][:].tolist(), strict=True)) == sizes


# --- HDF5 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_h5py_sees_all_shards_as_one(build, index, animals, tmp_path, dtype, layout, monkeypatch):
    source, paths = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype, layout=layout)
    dataset = build(source, tmp_path / "out", "--format", "hdf5", *SHARDS, *recipe.options())
    (path,) = files_of(index(dataset.out), "vds")
    first = dataset.shard_paths()[0].name
    shutil.move(dataset.out, tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    with h5py.File(f"moved/{path.name}") as file, h5py.File(f"moved/{first}") as shard:
        for name in ("images", "labels", "keys"):
            assert file[name].is_virtual and file[name].dtype == shard[name].dtype
        assert file["images"].attrs["layout"] == shard["images"].attrs["layout"]
        assert [name.decode() for name in file["labels"].attrs["classes"]] == list(ANIMALS)
        pixels = file["images"][:].astype(DTYPES[dtype])  # one slice across shards
        rows = zip(file["keys"][:], pixels, file["labels"][:], strict=True)
        samples = [Sample(key.decode(), image, int(label)) for key, image, label in rows]
    assert_equal_samples(expected_animals(paths, recipe), index_by_key(samples))


def test_the_virtual_file_leaves_out_a_shard_without_samples(build, index, partly_bad, tmp_path):
    dataset = build(partly_bad, tmp_path / "out", "--format", "hdf5", *EMPTY_SHARD)
    (path,) = files_of(index(dataset.out), "vds")
    with h5py.File(path) as file:
        keys = [key.decode() for key in file["keys"]]
        assert file["images"].shape == (3, *dataset.spec["shape"])
        for key, image in zip(keys, file["images"], strict=True):
            assert (image == dataset.samples()[key].array).all()


# --- TensorFlow Datasets ----------------------------------------------------------------------------------------------


def tfds_samples(builder, split):
    entries = builder.as_dataset(split=split).as_numpy_iterator()
    return index_by_key([Sample(entry["key"].decode(), entry["image"], int(entry["label"])) for entry in entries])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensorflow_datasets_reads_tfrecords(build, index, animals, tmp_path, dtype, layout):
    import tensorflow_datasets as tfds

    source, paths = animals
    recipe = Recipe(size=(15, 17), fit="stretch", dtype=dtype, layout=layout)
    dataset = build(source, tmp_path / "out", "--format", "tfrecord", *SHARDS, *recipe.options())
    assert [path.name for path in files_of(index(dataset.out), "tfds")] == ["dataset_info.json"]
    builder = tfds.builder_from_directory(dataset.out)
    assert builder.info.features["label"].names == list(ANIMALS)
    assert builder.info.features["image"].shape == tuple(dataset.spec["shape"])
    assert builder.info.splits["train"].num_examples == len(paths)
    assert_equal_samples(expected_animals(paths, recipe), tfds_samples(builder, "train"))
    assert builder.info.supervised_keys == ("image", "label")
    pairs = [
        (image.tobytes(), int(label))
        for image, label in tfds.as_numpy(builder.as_dataset(split="train", as_supervised=True, shuffle_files=False))
    ]
    assert sorted(pairs) == sorted((sample.array.tobytes(), sample.label) for sample in dataset.samples().values())


def test_tensorflow_datasets_reads_splits_without_classes_and_empty_shards(build, index, partly_bad, animals, tmp_path):
    import tensorflow_datasets as tfds

    options = ("--format", "tfrecord", "--labels", "none")
    build(partly_bad, tmp_path / "out", *options, *EMPTY_SHARD)
    dataset = build(animals[0], tmp_path / "out", *options, *SMALL.options(), "--split", "my-val")
    index(dataset.out)
    builder = tfds.builder_from_directory(dataset.out)
    for split, count in (("train", 3), ("my-val", len(animals[1]))):
        samples = tfds_samples(builder, split)
        assert len(samples) == count and {sample.label for sample in samples.values()} == {-1}
        assert_equal_samples(dataset.samples(split), samples)


# --- third-party shards -----------------------------------------------------------------------------------------------


def write_tar(path, entries, **options):
    with tarfile.open(path, "w", **options) as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


FOREIGN = [
    ("__meta__/about.txt", b"not a sample"),
    ("README", b"without extension"),
    ("a/1.jpg", b"jpeg one"),
    ("a/1.json", b'{"label": 3}'),
    ("a/1.seg.png", b"png one"),
    ("a/2.jpg", b"jpeg two" * 100),
    ("a/2.json", b"{}"),
    ("b b/3 3.jpg", b"jpeg three"),
    ("b b/3 3.json", b"[]"),
    (f"{'long' * 30}/4.jpg", b"jpeg four"),
    (f"{'long' * 30}/4.json", b"null"),
]


TAR_FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def webdataset_truth(path):
    return [
        {name: data for name, data in sample.items() if not name.startswith("__")}
        for sample in webdataset.WebDataset(str(path), shardshuffle=False)
    ]


@pytest.mark.parametrize("tar_format", TAR_FORMATS)
def test_dali_reads_third_party_tars_as_webdataset_does(index, tmp_path, tar_format):
    path = tmp_path / "shard-7.tar"
    write_tar(path, FOREIGN, format=TAR_FORMATS[tar_format])
    indexes = files_of(index(path), "dali")
    assert indexes == [tmp_path / "shard-7.idx"]
    truth = webdataset_truth(path)
    assert [len(sample) for sample in truth] == [3, 2, 2, 2]
    read = dali_webdataset(indexes, ["jpg", "json", "seg.png"], missing_component_behavior="empty")
    assert [[part.tobytes() for part in sample] for sample in read] == [
        [sample["jpg"], sample["json"], sample.get("seg.png", b"")] for sample in truth
    ]


@pytest.mark.parametrize("tar_format", TAR_FORMATS)
def test_wids_reads_third_party_tars(index, tmp_path, tar_format):
    import wids

    path = tmp_path / "shard-7.tar"
    entries = FOREIGN if tar_format == "ustar" else FOREIGN[:-2]  # the rest is cut to the same 100 bytes
    write_tar(path, entries, format=TAR_FORMATS[tar_format])
    (listing,) = files_of(index(path), "wids")
    assert listing == tmp_path / "shard.wids.json"
    (shard,) = json.loads(listing.read_text())["shardlist"]
    assert shard == {
        "url": path.name,
        "nsamples": wids.wids.compute_num_samples(str(path)),
        "filesize": path.stat().st_size,
    }
    dataset = wids.ShardListDataset(str(listing), localname=lambda url: url, transformations=lambda sample: sample)
    samples = [dataset[i] for i in range(len(dataset))]
    assert [sample[".jpg"].read() for sample in samples if ".jpg" in sample] == [
        s["jpg"] for s in webdataset_truth(path)
    ]
    if tar_format != "ustar":
        write_tar(path, FOREIGN, format=TAR_FORMATS[tar_format])
        assert [entry["kind"] for entry in index(path)["missing"]] == ["wids"]
        assert not listing.exists()


def test_dali_reads_third_party_tfrecords(index, tmp_path):
    import tensorflow as tf
    from nvidia.dali import tfrecord as tfrec

    truth = [(bytes([65 + i]) * (i * i + 1), i) for i in range(9)]
    for part in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"data.tfrecord-0000{part}-of-00002")) as writer:
            for data, number in truth[part::2]:
                features = {
                    "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                    "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    indexes = files_of(index(tmp_path / "data.tfrecord-*-of-00002"), "dali")
    assert [path.name for path in indexes] == [f"data.tfrecord-0000{part}-of-00002.idx" for part in range(2)]
    features = {"image/encoded": (tfrec.string, ""), "image/class/label": (tfrec.int64, -7)}
    read = dali_tfrecord([path.with_suffix("") for path in indexes], indexes, features)
    assert [(data.tobytes(), int(label.item())) for data, label in read] == truth[::2] + truth[1::2]


# Archives for which wds2idx uses other bytes or names than they have.
OTHERWISE = {
    "7z_long_path.tar": "it puts the data of an empty file before a header",
    "latin1.tar": "white space in a name, which DALI would read as the next field",
    "zip-slip.tar": "GNU tar leaves ../ out of names",
}


def test_tars_of_the_corpora_get_the_indexes_of_wds2idx(precache, corpora, tmp_path):
    from wds2idx import IndexCreator

    equal = 0
    for path in sorted(path for path in (corpora / "tar").rglob("*.tar") if path.is_file()):
        copy = tmp_path / path.name
        shutil.copyfile(path, copy)
        code = subprocess.run([precache, "index", copy, "--kind", "dali"], capture_output=True).returncode
        assert code in (0, 4, 5), path
        ours, theirs = copy.with_suffix(".idx"), tmp_path / "theirs"
        assert code == 0 or not ours.exists(), path
        if ours.exists() and path.name not in OTHERWISE:
            with IndexCreator(str(copy), str(theirs), verbose=False) as creator:
                creator.create_index()
            assert ours.read_bytes() == theirs.read_bytes(), path
            equal += 1
        ours.unlink(missing_ok=True)
    assert equal > 30


def test_tfrecords_of_the_corpora_get_an_index_of_all_records(precache, corpora, tmp_path):
    import tensorflow as tf

    for path in sorted(path for path in (corpora / "tfrecord").rglob("*record*") if path.is_file()):
        copy = tmp_path / path.name
        shutil.copyfile(path, copy)
        code = subprocess.run([precache, "index", copy], capture_output=True).returncode
        assert code in (0, 4, 5), path
        (index,) = [*tmp_path.glob("*.idx")] or [None]
        assert code == 0 or index is None, path
        if index is None:
            continue
        data = copy.read_bytes()
        records = [
            data[int(begin) + 12 : int(begin) + int(size) - 4]
            for begin, size in (line.split() for line in index.read_text().splitlines())
        ]
        if path.stem not in ("data-crc-flip", "payload-flip"):  # an index does not cover the data
            assert records == list(tf.data.TFRecordDataset(str(copy)).as_numpy_iterator()), path
        index.unlink()


def test_a_third_party_folder_gets_an_index_for_each_split(index, tmp_path):
    for name in ("train-000000", "train-000001", "val-000000"):
        write_tar(tmp_path / f"{name}.tar", [(f"{name}.txt", b"1")])
    assert [path.name for path in files_of(index(tmp_path), "wids")] == ["train.wids.json", "val.wids.json"]
    urls = [shard["url"] for shard in json.loads((tmp_path / "train.wids.json").read_text())["shardlist"]]
    assert urls == ["train-000000.tar", "train-000001.tar"]
    assert [path.name for path in files_of(index(tmp_path, "--split", "val"), "wids")] == ["val.wids.json"]


# --- in an OUT --------------------------------------------------------------------------------------------------------

ALL_KINDS = {"tar": "dali,wids", "tfrecord": "tfds,dali", "hdf5": "vds"}


@pytest.fixture(params=ALL_KINDS)
def indexed(build, animals, tmp_path, request):
    """A dataset with all indexes that fit it."""
    options = ("--format", request.param, *SHARDS, *SMALL.options(), "--index", ALL_KINDS[request.param])
    dataset = build(animals[0], tmp_path / "out", *options)
    dataset.options = options
    return dataset


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_build_also_writes_indexes(build, run, indexed, animals, tmp_path):
    plain = build(animals[0], tmp_path / "plain", *indexed.options[:-2])
    run("index", plain.out)
    assert differing(files(indexed.out), files(plain.out)) == []
    before = snapshot(indexed.out)
    run("index", indexed.out)
    summary = json.loads(run("build", animals[0], indexed.out, "--quiet", "--json", *indexed.options).stdout)
    assert {entry["kind"] for entry in summary["indexes"]["written"]} == set(indexed.options[-1].split(","))
    assert snapshot(indexed.out) == before
    build(animals[0], tmp_path / "parts", *indexed.options[:-2], "--part", "0/1")
    build(animals[0], tmp_path / "parts", *indexed.options, "--finish")
    assert differing(files(tmp_path / "parts"), files(plain.out)) == []


def test_indexes_are_made_for_a_finished_dataset(build, indexed, animals):
    before = files(indexed.out)
    for name in names(indexed.out) - {"dataset.json"} - {path.name for path in indexed.shard_paths()}:
        (indexed.out / name).unlink()
    build(animals[0], indexed.out, *indexed.options)
    assert differing(files(indexed.out), before) == []


def test_indexes_do_not_disturb_precache(run, indexed):
    whole = json.loads(run("verify", indexed.out, "--json").stdout)
    assert whole["files"] == whole["files_in_manifest"] == 3
    if indexed.manifest["format"] == "hdf5":
        assert "is in other files" in run("verify", indexed.out / "train.vds", expect=5).stdout.decode()
    (indexed.out / "dataset.json").unlink()
    assert json.loads(run("verify", indexed.out, "--json").stdout)["files"] == 3


def test_overwriting_removes_stale_indexes(build, indexed, partly_bad):
    fewer = build(
        partly_bad,
        indexed.out,
        *indexed.options[:2],
        *SMALL.options(),
        "--shards",
        "1",
        "--max-bad",
        "50%",
        "--overwrite",
    )
    assert names(fewer.out) == {"dataset.json", "skipped.tsv", fewer.shard_paths()[0].name}
    again = build(
        partly_bad,
        indexed.out,
        *indexed.options[:2],
        *SMALL.options(),
        "--shards",
        "1",
        "--max-bad",
        "50%",
        "--overwrite",
        *indexed.options[-2:],
    )
    assert len(names(again.out)) == 3 + {"tar": 2, "tfrecord": 4, "hdf5": 1}[again.manifest["format"]]


def test_overwriting_a_split_leaves_the_indexes_of_other_splits(build, run, indexed, animals):
    dataset = build(animals[0], indexed.out, *indexed.options, "--split", "val")
    before = files(dataset.out)
    build(animals[0], indexed.out, *indexed.options[:-2], "--split", "val", "--overwrite")
    after = files(dataset.out)
    gone = set(before) - set(after)
    assert gone and all(name.startswith("val") for name in gone)
    if dataset.manifest["format"] == "tfrecord":
        infos = [json.loads(data["dataset_info.json"]) for data in (before, after)]
        assert [[split["name"] for split in info["splits"]] for info in infos] == [["train", "val"], ["train"]]
        del before["dataset_info.json"], after["dataset_info.json"]
    assert differing({name: before[name] for name in after}, after) == []


def test_a_file_with_the_name_of_an_index_is_never_replaced(build, run, animals, tmp_path):
    in_the_way = {
        "tar": ("train-000001.idx", "train.wids.json"),
        "tfrecord": ("train-000001.idx", "dataset_info.json", "features.json"),
        "hdf5": ("train.vds",),
    }
    for file_format, blocked in in_the_way.items():
        dataset = build(animals[0], tmp_path / file_format, "--format", file_format, *SHARDS, *SMALL.options())
        for name in blocked:
            path = dataset.out / name
            path.write_text('{"mine": 1}\n')
            said = run("index", dataset.out, expect=2).stderr.decode()
            assert (
                f"refusing to replace '{path}': it is not an index of this kind" in said
                and "Move the file away" in said
            )
            assert path.read_text() == '{"mine": 1}\n'
            build(animals[0], dataset.out, "--format", file_format, *SHARDS, *SMALL.options(), "--overwrite")
            assert path.read_text() == '{"mine": 1}\n'
            path.unlink()
        run("index", dataset.out)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_kinds_that_do_not_fit_are_refused(build, run, animals, tmp_path):
    dataset = build(animals[0], tmp_path / "out", *SMALL.options())
    said = run("index", dataset.out, "--kind", "dali,tfds", expect=2).stderr.decode()
    assert "'tfds' indexes do not exist for the tar shards" in said and "can have dali and wids" in said
    assert b"'x' is not a kind of index" in run("index", dataset.out, "--kind", "dali,x", expect=2).stderr
    assert names(dataset.out) == {"dataset.json", "train-000000.tar"}
    said = run("build", animals[0], tmp_path / "new", "--index", "vds", "--quiet", expect=2).stderr.decode()
    assert "'vds' indexes do not exist for tar shards" in said
    said = run("build", animals[0], tmp_path / "new", "--index", "dali", "--part", "1/2", expect=2).stderr.decode()
    assert "--index cannot be combined with --part" in said and "--finish" in said
    assert not (tmp_path / "new").exists()


def test_paths_that_cannot_be_indexed_are_refused(build, run, animals, tmp_path):
    assert b"No such file" in run("index", tmp_path / "none.tar", expect=3).stderr
    assert b"matches no file" in run("index", tmp_path / "*.tar", expect=2).stderr
    assert b"required" in run("index", expect=2).stderr
    dataset = build(animals[0], tmp_path / "out", "--format", "hdf5", *SMALL.options())
    assert b"has no split 'x'" in run("index", dataset.out, "--split", "x", expect=2).stderr
    (dataset.out / "dataset.json").unlink()
    assert b"a 'vds' index needs dataset.json" in run("index", dataset.out, expect=2).stderr
    with tarfile.open(tmp_path / "a.tar", "w:gz") as archive:
        archive.add(dataset.out / "train-000000.h5", "a.h5")
    assert b"compressed by gzip" in run("index", tmp_path / "a.tar", expect=5).stderr


@pytest.mark.parametrize(
    "file_format, kind", [("tar", "dali"), ("tar", "wids"), ("tfrecord", "dali"), ("tfrecord", "tfds"), ("hdf5", "vds")]
)
def test_cut_or_missing_shards_get_no_index(build, run, animals, tmp_path, file_format, kind):
    dataset = build(animals[0], tmp_path / "out", "--format", file_format, *SMALL.options())
    (shard,) = dataset.shard_paths()
    before = names(dataset.out)
    os.truncate(shard, shard.stat().st_size - 1500)
    assert str(shard) in run("index", dataset.out, "--kind", kind, expect=4).stderr.decode()
    shard.unlink()
    assert "No such file" in run("index", dataset.out, "--kind", kind, expect=3).stderr.decode()
    assert names(dataset.out) == before - {shard.name}
