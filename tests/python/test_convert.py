# SPDX-License-Identifier: Apache-2.0
"""Converted shards equal those that a build would have made; unchanged tensors are copied byte for byte."""

import itertools
import json
import shutil
import signal

import numpy as np
import pytest

import images
from shards import FORMATS, Dataset
from tool import EXTENSIONS, differing, files, finish, signal_once, snapshot

pytest_plugins = ("tool_fixtures",)

DTYPES = ("uint8", "float16", "bfloat16", "float32")
LAYOUTS = ("chw", "hwc")
TINY = ("--size", "12x10", "--max-bad", "50%")
SMALL = (*TINY, "--shards", "3")
NORMALIZED = ("--normalize", "imagenet")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images of three classes. Some are bad, and one of these has the longest name and the largest label: the size of
    records does not follow from the remaining ones."""
    folder = tmp_path_factory.mktemp("source")
    for number in range(17):
        (folder / f"class{number % 2}").mkdir(exist_ok=True)
        images.picture("RGB", 20 + number, 30, number).save(folder / f"class{number % 2}" / f"{number:02}.png")
    (folder / "the last class").mkdir()
    (folder / "the last class" / ("x" * 180 + ".jpg")).write_bytes(b"no image")
    (folder / "class1" / "03.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return folder


@pytest.fixture(scope="module")
def built(tool, source, tmp_path_factory):
    """built(format, dtype, layout, options...): a dataset that build made, once."""
    made = {}

    def build(file_format, dtype="uint8", layout="chw", *options):
        key = (file_format, dtype, layout, *options)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("built") / "out"
            tool.build(
                source, made[key], *SMALL, "--format", file_format, "--dtype", dtype, "--layout", layout, *options
            )
        return made[key]

    return build


@pytest.fixture
def convert(tool, tmp_path):
    """convert(shards, options...): the folder of the conversion."""
    numbers = itertools.count()

    def run(shards, *options, **keywords):
        out = tmp_path / f"converted{next(numbers)}"
        tool.run("convert", shards, out, "--quiet", *options, **keywords)
        return out

    return run


def refuse(tool, shards, out, *options, expect=2):
    """The message of a conversion that must fail."""
    result = tool.run("convert", shards, out, "--quiet", *options, expect=expect)
    lines = result.err.splitlines()
    assert lines and lines[0].startswith("precache: ") and len(lines) <= 2, result.err
    assert result.out == ""
    return result.err


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_round_trip_through_all_formats_gives_the_same_bytes(built, convert, dtype, layout):
    first = built("tar", dtype, layout)
    tfrecord = convert(first, "--format", "tfrecord")
    hdf5 = convert(tfrecord, "--format", "hdf5")
    again = convert(hdf5, "--format", "tar")
    assert differing(files(first), files(again)) == []  # including the manifest and skipped.tsv
    assert differing(files(tfrecord), files(built("tfrecord", dtype, layout))) == []
    assert differing(files(hdf5), files(built("hdf5", dtype, layout))) == []


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_conversion_of_pixels_is_what_a_build_gives(built, convert, dtype, layout, file_format):
    options = ("--format", file_format, "--dtype", dtype, "--layout", layout)
    assert differing(files(convert(built("tar"), *options)), files(built(file_format, dtype, layout))) == []
    if dtype != "uint8":
        normalized = convert(built("tar"), *options, *NORMALIZED)
        assert differing(files(normalized), files(built(file_format, dtype, layout, *NORMALIZED))) == []


@pytest.mark.parametrize("options", [(), NORMALIZED], ids=["plain", "normalised"])
@pytest.mark.parametrize("from_dtype, to_dtype", list(itertools.product(DTYPES[1:], DTYPES)))
def test_every_conversion_of_floats_is_what_a_build_gives(built, convert, from_dtype, to_dtype, options):
    result = convert(built("tar", from_dtype, "hwc", *options), "--dtype", to_dtype, "--layout", "chw")
    kept = () if to_dtype == "uint8" else options  # pixels have no normalisation
    assert differing(files(result), files(built("tar", to_dtype, "chw", *kept))) == []


def test_floats_that_are_not_normalised_can_be(built, convert):
    for dtype in DTYPES[1:]:
        result = convert(built("tar", dtype), *NORMALIZED)
        assert differing(files(result), files(built("tar", dtype, "chw", *NORMALIZED))) == []


def test_any_number_of_jobs_gives_the_same_bytes(built, convert):
    one, seven = (convert(built("tar"), "--format", "hdf5", "--seed", "3", "--jobs", jobs) for jobs in ("1", "7"))
    assert differing(files(one), files(seven)) == []


def test_uneven_and_empty_shards_stay_as_they_are(tool, convert, tmp_path):
    source = tmp_path / "source" / "a"
    source.mkdir(parents=True)
    for number in range(8):
        images.draw_unique(source / f"{number}.png", number)
    (source / "0.png").write_bytes(b"bad")
    (source / "1.png").write_bytes(b"bad")
    (source / "2.png").write_bytes(b"bad")
    options = ("--size", "4", "--shards", "4", "--no-shuffle", "--max-bad", "50%")
    for file_format in FORMATS:
        tool.build(source.parent, tmp_path / file_format, *options, "--format", file_format)
    assert [shard["samples"] for shard in Dataset(tmp_path / "tar").shards()] == [0, 1, 2, 2]
    for before, after in itertools.product(FORMATS, FORMATS):
        out = convert(tmp_path / before, "--format", after)
        assert differing(files(out), files(tmp_path / after)) == [], f"{before} to {after}"


# --- options ----------------------------------------------------------------------------------------------------------


def keys_in_order(dataset, split="train"):
    return [sample.key for shard in dataset.shards(split) for sample in dataset.read_shard(shard)]


def test_the_number_of_shards_and_the_order_can_be_chosen(built, convert):
    before = Dataset(built("tar"))
    by_number = Dataset(convert(before.out, "--shards", "5"))
    assert [shard["samples"] for shard in by_number.shards()] == [4, 3, 3, 3, 3]
    assert keys_in_order(by_number) == keys_in_order(before)
    by_size = Dataset(convert(before.out, "--shard-size", "6000"))
    assert all(shard["bytes"] < 9000 for shard in by_size.shards())
    assert keys_in_order(by_size) == keys_in_order(before)
    shuffled = Dataset(convert(before.out, "--seed", "1"))
    assert [shard["samples"] for shard in shuffled.shards()] == [shard["samples"] for shard in before.shards()]
    assert keys_in_order(shuffled) != keys_in_order(before)
    assert shuffled.arrays().keys() == before.arrays().keys()
    for key, array in before.arrays().items():
        np.testing.assert_array_equal(shuffled.arrays()[key], array)
    assert shuffled.labels() == before.labels()
    assert shuffled.manifest["splits"]["train"]["seed"] == 1
    assert differing(files(convert(before.out)), files(before.out)) == []


@pytest.fixture
def two_splits(tool, source, tmp_path):
    out = tmp_path / "two"
    tool.build(source, out, *SMALL)
    tool.build(source, out, *TINY, "--split", "val", "--seed", "9", "--shards", "2")
    return out


def test_all_splits_or_one_are_converted(tool, two_splits, convert, tmp_path):
    both = convert(two_splits, "--format", "hdf5")
    assert differing(files(convert(both, "--format", "tar")), files(two_splits)) == []
    val = Dataset(convert(two_splits, "--split", "val"))
    assert list(val.manifest["splits"]) == ["val"]
    assert {line.split("\t")[0] for line in (val.out / "skipped.tsv").read_text().splitlines()[1:]} == {"val"}
    # Converting one after the other gives the same as both at once.
    train = convert(two_splits, "--split", "train")
    tool.run("convert", two_splits, train, "--quiet")
    assert differing(files(train), files(two_splits)) == []


def test_one_shard_and_a_pattern_of_them_are_converted(built, convert):
    folder = built("tar")
    one = Dataset(convert(folder / "train-000001.tar", "--format", "tfrecord"))
    assert (
        one.out.joinpath("train-000000.tfrecord").read_bytes()
        == built("tfrecord").joinpath("train-000001.tfrecord").read_bytes()
    )
    assert (
        Dataset(convert(folder / "train-00000[02].tar")).shards()[1]["crc32c"] == Dataset(folder).shards()[2]["crc32c"]
    )


def test_a_dry_run_describes_the_conversion_and_writes_nothing(tool, built, tmp_path):
    options = ("convert", built("tar"), tmp_path / "out", "--format", "hdf5", "--dtype", "float32", "--json")
    plan = tool.run(*options, "--dry-run").json()
    assert not (tmp_path / "out").exists()
    result = tool.run(*options, "--quiet").json()
    assert plan["bytes_needed"] == result["bytes"] == sum(s["bytes"] for s in Dataset(tmp_path / "out").shards())
    assert plan["samples"] == result["converted"] == 16
    assert plan["tensors_stay"] is False and plan["source"]["dtype"] == "uint8"
    text = tool.run("convert", built("tar"), tmp_path / "other", "--dry-run").out
    assert "tensors copied unchanged" in text and "16 samples in 3 tar shards" in text


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_wrong_requests_are_refused(tool, built, tmp_path):
    out = tmp_path / "out"
    assert "already normalised" in refuse(tool, built("tar", "float32", "chw", *NORMALIZED), out, *NORMALIZED)
    assert "needs a float" in refuse(tool, built("tar"), out, *NORMALIZED)
    assert "needs a float" in refuse(tool, built("tar", "float32"), out, *NORMALIZED, "--dtype", "uint8")
    assert "--shards must be at most 16, the number of samples of 'train'" in refuse(
        tool, built("tar"), out, "--shards", "17"
    )
    assert "no split 'test'" in refuse(tool, built("tar"), out, "--split", "test")
    assert "belongs to the split 'train'" in refuse(tool, built("tar") / "*.tar", out, "--split", "test")
    assert "is also a file in OUT" in refuse(tool, built("tar"), built("tar"))
    assert "shards without a manifest" in refuse(tool, built("tar"), out, "--labels", "none")
    assert "must be one of none" in refuse(tool, built("tar"), out, "--labels", "folder")
    assert "No such file" in refuse(tool, tmp_path / "nothing.tar", out, expect=3)
    assert not out.exists()


def test_existing_files_in_out_are_not_touched(tool, built, source, tmp_path):
    out = tmp_path / "out"
    tool.run("convert", built("tar"), out, "--quiet")
    before = snapshot(out)
    assert "already complete" in tool.run("convert", built("tar"), out, "--quiet").out
    for options, difference in (
        (("--dtype", "float32"), "recipe.dtype: uint8 in OUT, float32 here"),
        (("--format", "hdf5"), "format: tar in OUT, hdf5 here"),
        (("--seed", "1"), "seed: 0 in OUT, 1 here"),
    ):
        said = refuse(tool, built("tar"), out, *options)
        assert "finished split 'train' that differs: " in said and difference in said
    assert snapshot(out) == before
    tool.run("convert", built("tar"), out, "--quiet", "--format", "hdf5", "--overwrite")
    assert differing(files(out), files(built("hdf5"))) == []
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "train-000007.tar").write_bytes(b"precious")
    assert "refusing to replace" in refuse(tool, built("tar"), foreign)
    assert "refusing to replace" in refuse(tool, built("tar"), foreign, "--overwrite")
    assert list(files(foreign)) == ["train-000007.tar"]


@pytest.mark.parametrize("options", [(), ("--seed", "1"), ("--shards", "2")], ids=["kept", "shuffled", "resharded"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_flipped_byte_anywhere_is_detected(tool, built, tmp_path, file_format, options):
    random = np.random.default_rng(5)
    shard = f"train-000001.{EXTENSIONS[file_format]}"
    whole = built(file_format).joinpath(shard).read_bytes()
    places = {0, len(whole) - 1, *random.integers(len(whole), size=20).tolist()}
    damaged = tmp_path / "damaged"
    for place in sorted(places):
        shutil.copytree(built(file_format), damaged)
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        (damaged / shard).write_bytes(data)
        said = refuse(tool, damaged, tmp_path / "out", "--format", "tfrecord", *options, expect=4)
        assert shard in said, f"byte {place}"
        assert not (tmp_path / "out" / "dataset.json").exists()
        shutil.rmtree(damaged)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_a_shard_that_is_cut_or_written_to_meanwhile_ends_the_conversion(tool, interference, built, tmp_path):
    for number, change in enumerate((lambda file: file.truncate(5000), lambda file: file.write(b"x"))):
        shards = tmp_path / f"shards{number}"
        shutil.copytree(built("tar"), shards)
        out = tmp_path / f"out{number}"
        arguments = ("convert", shards, out, "--quiet", "--jobs", "1", "--format", "hdf5")
        with interference.hold(tool, *arguments, calls="fsync", path=out) as (process, gate):
            with open(shards / "train-000002.tar", "r+b") as file:
                change(file)
            gate.open()
            result = finish(process)
        # The shard may have been read completely before.
        if result.code != 0:
            assert result.code == 4 and "train-000002.tar" in result.err
            assert not (out / "dataset.json").exists()
        else:
            assert differing(files(out), files(built("hdf5"))) == []


# --- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--shards", "2", "--seed", "1")], ids=["kept", "shuffled"])
def test_a_kill_at_any_call_leaves_nothing_partial_and_the_rerun_gives_the_same_bytes(
    tool, interference, two_splits, convert, quick_folder, options
):
    options = (*options, "--format", "hdf5", "--quiet")
    final = files(convert(two_splits, *options))
    for step in range(10_000):
        out = quick_folder / str(step)
        env = interference.kill("mkdir,pwrite,fsync,rename,unlink", path=out, after=step)
        result = finish(tool.start("convert", two_splits, out, *options, env=env))
        if result.code == 0:
            break
        assert result.code == -signal.SIGKILL
        assert not (out / "dataset.json").exists() or (files(out).keys() >= final.keys())
        tool.run("convert", two_splits, out, *options)
        assert differing(files(out), final) == [], f"after a kill before call {step}"
        shutil.rmtree(out)
    assert step > 20


def test_an_interruption_is_tidy_and_another_request_does_not_continue_it(tool, interference, built, tmp_path):
    out = tmp_path / "out"
    arguments = ("convert", built("tar"), out, "--quiet", "--jobs", "1")
    with interference.hold(tool, *arguments, calls="fsync", path=out) as (process, gate):
        signal_once(process, signal.SIGINT)
        gate.open()
        result = finish(process)
    if result.code == 0:  # everything was written before
        return
    assert result.code == -signal.SIGINT and "run the same command again" in result.err
    assert "unfinished" in refuse(tool, built("tar"), out, "--seed", "4")
    tool.run(*arguments)
    assert differing(files(out), files(built("tar"))) == []


def test_a_full_disk_is_reported_before_the_work(tool, built, small_disk):
    disk = small_disk(16)
    said = refuse(tool, built("tar"), disk / "out", expect=3)
    assert "No space left" in said and "are free" in said


# --- third-party shards -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arrays():
    random = np.random.default_rng(1)
    return random.integers(0, 256, (7, 9, 11, 3), np.uint8)


def write_webdataset(path, arrays):
    import webdataset

    with webdataset.TarWriter(str(path)) as writer:
        for number, array in enumerate(arrays):
            writer.write({"__key__": f"some/{number:03}", "npy": array, "cls": number % 4})


def write_tensorflow(path, arrays):
    import tensorflow as tf

    def integers(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def text(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    with tf.io.TFRecordWriter(str(path)) as writer:
        for number, array in enumerate(arrays):
            features = {
                "image_raw": text(array.tobytes()),
                "label": integers(number % 4),
                "height": integers(array.shape[0]),
                "width": integers(array.shape[1]),
                "depth": integers(array.shape[2]),
                "age": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2])),
                "filename": text(f"some/{number:03}.JPEG".encode()),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def write_h5py(path, arrays):
    import h5py

    with h5py.File(path, "w") as file:
        file["images"] = arrays
        file["labels"] = np.arange(len(arrays)) % 4


def test_values_that_a_conversion_leaves_out_are_named(run, arrays, tmp_path):
    write_tensorflow(tmp_path / "x.tfrecord", arrays)
    said = run("convert", tmp_path / "x.tfrecord", tmp_path / "out", "--dry-run", "--json").stdout
    assert json.loads(said)["dropped_columns"] == ["age"]


WRITERS = {"tar": write_webdataset, "tfrecord": write_tensorflow, "hdf5": write_h5py}


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("origin", FORMATS)
def test_third_party_tensors_are_converted(convert, arrays, tmp_path, origin, target):
    path = tmp_path / f"foreign.{EXTENSIONS[origin]}"
    WRITERS[origin](path, arrays)
    dataset = Dataset(convert(path, "--format", target, "--layout", "chw"))
    samples = list(dataset.samples().values())
    assert [sample.label for sample in samples] == [number % 4 for number in range(len(arrays))]
    np.testing.assert_array_equal([sample.array for sample in samples], arrays.transpose(0, 3, 1, 2))
    if origin != "hdf5":  # that one has no keys, so samples get numbers
        assert list(dataset.samples()) == [f"some/{number:03}" for number in range(len(arrays))]
    floats = Dataset(convert(dataset.out, "--dtype", "float32", "--normalize", "0.5/0.25"))
    first = next(iter(floats.samples().values())).array
    expected = (arrays[0].transpose(2, 0, 1).astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
    np.testing.assert_array_equal(first, expected)
    assert differing(files(convert(floats.out, "--dtype", "uint8")), files(dataset.out)) == []


NAMES = ("owl", "a cat", "a cat", "owl", "bee", "bee", "owl")


def write_named_tar(path, arrays, names, kind):
    import webdataset

    label = {"cls": str.encode, "txt": str, "json": lambda name: {"label": name}}[kind]
    with webdataset.TarWriter(str(path)) as writer:
        for array, name in zip(arrays, names):
            writer.write({"__key__": f"{array[0, 0, 0]:03}", "npy": array, kind: label(name)})


def write_named_tfrecord(path, arrays, names, feature):
    import tensorflow as tf

    def text(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    with tf.io.TFRecordWriter(str(path)) as writer:
        for array, name in zip(arrays, names):
            shape = tf.train.Feature(int64_list=tf.train.Int64List(value=array.shape))
            features = {"image": text(array.tobytes()), "shape": shape, feature: text(name.encode())}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def write_named_hdf5(path, arrays, names, kind):
    import h5py

    with h5py.File(path, "w") as file:
        file["images"] = arrays
        file["labels"] = list(names) if kind == "various" else np.array(names, "S9")


NAMED = {
    "cls": (write_named_tar, "cls"),
    "json": (write_named_tar, "json"),
    "txt": (write_named_tar, "txt"),
    "label": (write_named_tfrecord, "label"),
    "image/class/text": (write_named_tfrecord, "image/class/text"),
    "various": (write_named_hdf5, "various"),
    "fixed": (write_named_hdf5, "fixed"),
}


@pytest.mark.parametrize("kind", NAMED)
def test_labels_that_are_names_become_classes(convert, arrays, tmp_path, kind):
    """In two files, each with names that the other lacks."""
    write, how = NAMED[kind]
    for number, part in enumerate((slice(0, 3), slice(3, 7))):
        write(tmp_path / f"x-{number}.shard", arrays[part], NAMES[part], how)
    dataset = Dataset(convert(tmp_path / "x-*.shard", "--format", "tar"))
    assert dataset.classes == sorted(set(NAMES))
    samples = list(dataset.samples().values())
    assert [dataset.classes[sample.label] for sample in samples] == list(NAMES)
    np.testing.assert_array_equal([sample.array for sample in samples], arrays)


LABELS = {
    "whole floats": lambda numbers: numbers.astype("f4"),
    "a row": lambda numbers: numbers[None],
    "more axes": lambda numbers: numbers[:, None, None, None].astype("u1"),
    "one-hot": lambda numbers: np.eye(7, dtype="u1")[numbers],
    "one-hot, int64": lambda numbers: np.eye(7, dtype="i8")[numbers],
    "one-hot floats": lambda numbers: np.eye(9, dtype=">f8")[numbers],
    "one-hot truth": lambda numbers: np.eye(7, dtype=bool)[numbers],
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("options", ({}, {"compression": "gzip"}), ids=("plain", "gzip"))
def test_labels_of_many_kinds_are_kept(tool, convert, arrays, tmp_path, kind, options):
    import h5py

    numbers = np.arange(len(arrays))[::-1]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = arrays
        file.create_dataset("labels", data=LABELS[kind](numbers), **options)
    assert [sample.label for sample in Dataset(convert(tmp_path / "x.h5")).samples().values()] == list(numbers)
    tool.build(tmp_path / "x.h5", tmp_path / "built", "--size", "8", "--no-shuffle")
    assert [sample.label for sample in Dataset(tmp_path / "built").samples().values()] == list(numbers)


def test_a_boolean_is_a_label(convert, arrays, tmp_path):
    import h5py

    truth = np.arange(len(arrays)) % 3 == 0
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = arrays
        file["y"] = truth
    assert [sample.label for sample in Dataset(convert(tmp_path / "x.h5")).samples().values()] == list(truth)


@pytest.mark.parametrize("value", (0, 0.5, 2, -1, np.nan, "no columns"))
def test_rows_that_are_not_one_hot_are_not_labels(tool, convert, arrays, tmp_path, value):
    import h5py

    rows = np.eye(len(arrays))
    if value == "no columns":
        rows = rows[:, :0]
    else:
        rows[3, 3] = value
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = arrays
        file["labels"] = rows
    assert "'labels' (7 x " in refuse(tool, tmp_path / "x.h5", tmp_path / "lost")
    assert set(Dataset(convert(tmp_path / "x.h5", "--labels", "none")).labels().values()) == {-1}
    assert "'labels' (7 x " in tool.refuse(tmp_path / "x.h5", tmp_path / "built", "--size", "8")


def test_shards_of_several_splits_are_converted_one_by_one(tool, convert, arrays, tmp_path):
    (tmp_path / "mixed").mkdir()
    for name in ("train-000000", "train-000001", "val-000000"):
        write_webdataset(tmp_path / "mixed" / f"{name}.tar", arrays)
    assert "--split" in refuse(tool, tmp_path / "mixed", tmp_path / "out")
    assert len(Dataset(convert(tmp_path / "mixed", "--split", "train")).shards()) == 2
    assert len(Dataset(convert(tmp_path / "mixed", "--split", "val")).shards("val")) == 1


def test_other_storage_is_refused_with_a_hint(tool, arrays, tmp_path):
    import h5py

    for name, data, options in (
        ("gzip", arrays, {"compression": "gzip"}),
        ("big-endian", arrays.astype(">u2"), {}),
        ("double", arrays / 255, {}),
    ):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("images", data=data, **options)
        assert "precache build" in refuse(tool, tmp_path / f"{name}.h5", tmp_path / "out", expect=5)
        tool.build(tmp_path / f"{name}.h5", tmp_path / name, "--size", "8", "--labels", "none")


def test_floats_of_unknown_meaning_are_only_cast(tool, convert, tmp_path):
    random = np.random.default_rng(2)
    floats = random.normal(size=(4, 3, 5, 6)).astype(np.float32)
    write_webdataset(tmp_path / "floats.tar", floats)
    halves = Dataset(convert(tmp_path / "floats.tar", "--dtype", "float16"))
    np.testing.assert_array_equal([s.array for s in halves.samples().values()], floats.astype(np.float16))
    assert halves.manifest["recipe"]["values"] == "unknown"
    for shards in (tmp_path / "floats.tar", halves.out):
        assert "cannot be recovered" in refuse(tool, shards, tmp_path / "out", "--dtype", "uint8")
        assert "cannot be normalised" in refuse(tool, shards, tmp_path / "out", *NORMALIZED)


def test_third_party_names_stay_below_the_folder(convert, tmp_path, arrays):
    import h5py

    with h5py.File(tmp_path / "names.h5", "w") as file:
        file["images"] = arrays[:5]
        names = [b"../../etc/passwd", b"/absolute.png", b"twice", b"twice", b"a.b/c.d.e"]
        file["keys"] = np.array(names, dtype="S20")
    dataset = Dataset(convert(tmp_path / "names.h5", "--format", "tar"))
    assert list(dataset.samples()) == ["etc/passwd", "absolute", "twice", "twice~2", "a.b/c_d_e"]
    assert len(set(dataset.samples())) == 5


def test_shards_that_do_not_belong_together_are_refused(tool, built, arrays, tmp_path):
    write_webdataset(tmp_path / "small.tar", arrays[:, :4])
    write_webdataset(tmp_path / "small2.tar", arrays)
    assert "not tensors of one shape" in refuse(tool, tmp_path / "small*.tar", tmp_path / "out", expect=5)
    shutil.copytree(built("tar"), tmp_path / "mixed")
    write_webdataset(tmp_path / "mixed" / "other.tar", arrays)
    assert "not from one dataset" in refuse(tool, tmp_path / "mixed" / "*.tar", tmp_path / "out")


def test_the_manifests_of_conversions_follow_the_schema(convert, built, arrays, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    from conftest import REPOSITORY

    schema = json.loads((REPOSITORY / "docs" / "formats" / "dataset.schema.json").read_text())
    write_webdataset(tmp_path / "floats.tar", arrays.astype(np.float32))
    for shards in (built("tar"), tmp_path / "floats.tar"):
        jsonschema.validate(Dataset(convert(shards, "--dtype", "float16")).manifest, schema)
