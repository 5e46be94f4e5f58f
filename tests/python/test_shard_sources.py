# SPDX-License-Identifier: Apache-2.0
"""Shards of images as SOURCE, written by other people's libraries: a build of them equals one of the folder."""

import csv
import gzip
import io
import json
import os
import random
import shutil
import signal
import subprocess
import tarfile

import h5py
import numpy as np
import pytest
import webdataset
from PIL import Image

import images
from reference import SMALL, tensors
from shards import Dataset, arrays_of, assert_equal_arrays, labels_of
from tool import differing, files, finish, kill_after, wait_until

pytest_plugins = ("tool_fixtures",)

OPTIONS = (*SMALL.options(), "--shards", "3")
AWKWARD = [
    b"cat/a.jpg",
    b"cat/a.png",
    b"cat/a.b.c.JPG",
    b"cat/deep/er/x.jpeg",
    b"dog/\xff\xfe.jpg",
    b"dog/1.PNG",
    b"dog/z z.png",
    b"dog/line\nend.png",
    b"__x__/a.png",
    b"long/" + b"l" * 120 + b"/" + b"n" * 150 + b".jpg",
    "ümlaut/é.jpg".encode(),
]


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """A folder whose names try what tars can hold, with a bad image, an empty class and files that are no images."""
    folder = os.fsencode(tmp_path_factory.mktemp("awkward") / "folder")
    for number, name in enumerate(AWKWARD):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        image = io.BytesIO()
        kind = "PNG" if name.lower().endswith(b"png") else "JPEG"
        images.picture("RGB", 40 + number, 30 + 2 * number, number).save(image, kind)
        with open(path, "wb") as file:
            file.write(image.getvalue())
    folder = os.fsdecode(folder)
    os.mkdir(os.path.join(folder, "empty"))
    for name, data in {"cat/notes.txt": b"x", "cat/._a.jpg": b"x", "dog/bad.jpg": b"\xff\xd8\xffrubbish"}.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return folder


@pytest.fixture(scope="module")
def built(tool, awkward, tmp_path_factory):
    """What the build of the folder gives."""
    out = tmp_path_factory.mktemp("built") / "out"
    tool.build(awkward, out, *OPTIONS, "--max-bad", "50%")
    return out


def without_report(folder):
    """All files but the list of bad samples, which names where they came from."""
    return {name: data for name, data in files(folder).items() if name != "skipped.tsv"}


def assert_same_dataset(out, other):
    assert differing(without_report(out), without_report(other)) == []


# --- a tar of the folder ----------------------------------------------------------------------------------------------


def gnu_tar(target, folder, *options):
    subprocess.run(["tar", *options, "-cf", target, "-C", folder, "."], check=True)


def gnu_tar_of_parent(target, folder, *options):
    subprocess.run(["tar", *options, "-cf", target, "-C", os.path.dirname(folder), os.path.basename(folder)], check=True)


def python_tar(target, folder, *_):
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, arcname=".")


def bare_tar(target, folder, *_):
    """Entries in no order, without folders and without ./"""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        names = [os.path.relpath(os.path.join(top, name), folder) for top, _, found in os.walk(folder) for name in found]
        random.Random(1).shuffle(names)
        for name in names:
            archive.add(os.path.join(folder, name), arcname=name)
        empty = tarfile.TarInfo("empty")
        empty.type = tarfile.DIRTYPE
        archive.addfile(empty)


WRITERS = {
    "gnu": (gnu_tar,),
    "pax": (gnu_tar, "--format=pax"),
    "v7-like": (gnu_tar_of_parent,),
    "tarfile": (python_tar,),
    "bare": (bare_tar,),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_tar_of_the_folder_gives_the_same_bytes(tool, awkward, built, tmp_path, writer):
    write, *options = WRITERS[writer]
    write(tmp_path / "x.tar", awkward, *options)
    tool.build(tmp_path / "x.tar", tmp_path / "out", *OPTIONS, "--max-bad", "50%")
    assert_same_dataset(tmp_path / "out", built)
    report = (tmp_path / "out" / "skipped.tsv").read_text()
    assert report == (built / "skipped.tsv").read_text().replace("\tdog/bad.jpg", "\tx.tar:dog/bad.jpg")


@pytest.mark.parametrize("file_format", ["tfrecord", "hdf5"])
def test_so_it_does_in_other_formats(tool, awkward, tmp_path, file_format):
    gnu_tar(tmp_path / "x.tar", awkward)
    options = (*OPTIONS, "--max-bad", "50%", "--format", file_format)
    tool.build(awkward, tmp_path / "folder", *options)
    tool.build(tmp_path / "x.tar", tmp_path / "tar", *options)
    assert_same_dataset(tmp_path / "tar", tmp_path / "folder")


def test_hard_links_in_a_tar_are_files(tool, tmp_path):
    folder = tmp_path / "folder"
    images.draw_unique(folder / "a" / "1.png", 1)
    (folder / "b").mkdir()
    os.link(folder / "a" / "1.png", folder / "b" / "2.png")
    gnu_tar(tmp_path / "x.tar", folder)
    tool.build(folder, tmp_path / "one", *SMALL.options())
    tool.build(tmp_path / "x.tar", tmp_path / "other", *SMALL.options())
    assert_same_dataset(tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", ["file", "pipe", "redirected", "named pipe"])
def test_packed_and_piped_tars_give_the_same_bytes(tool, awkward, built, tmp_path, packed, way):
    path = tmp_path / "x"
    gnu_tar(path, awkward, *(["-z"] if packed else []))
    out = tmp_path / "out"
    options = (*OPTIONS, "--max-bad", "50%")
    if way == "file":
        tool.build(path, out, *options)
    elif way == "redirected":
        with open(path, "rb") as file:
            tool.build("-", out, *options, stdin=file)
    elif way == "pipe":
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            tool.build("-", out, *options, stdin=cat.stdout)
    else:
        os.mkfifo(tmp_path / "pipe")
        with subprocess.Popen(["dd", f"if={path}", f"of={tmp_path / 'pipe'}", "status=none"]):
            tool.build(tmp_path / "pipe", out, *options)
    assert_same_dataset(out, built)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in built.iterdir())


def test_parts_of_a_packed_tar_make_the_same_dataset(tool, awkward, built, tmp_path):
    gnu_tar(tmp_path / "x.tgz", awkward, "-z")
    command = (tmp_path / "x.tgz", tmp_path / "out", *OPTIONS, "--max-bad", "50%")
    for part in ("1/3", "2/3", "3/3"):
        tool.build(*command, "--part", part)
    assert list((tmp_path / "out" / ".precache" / "train").glob("unpacked.*/*")) != []
    tool.build(*command, "--finish")
    assert_same_dataset(tmp_path / "out", built)


def test_the_same_build_again_changes_nothing_whatever_the_source(tool, awkward, built, tmp_path):
    gnu_tar(tmp_path / "x.tar", awkward)
    before = files(built)
    assert "complete already" in tool.build(tmp_path / "x.tar", built, *OPTIONS, "--max-bad", "50%").out
    assert differing(files(built), before) == []


def test_a_dry_run_counts_what_is_unpacked_and_leaves_nothing(tool, awkward, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    gnu_tar(tmp_path / "x.tar", awkward)
    gnu_tar(tmp_path / "x.tgz", awkward, "-z")
    plain = tool.run("build", tmp_path / "x.tar", tmp_path / "out", *OPTIONS, "--dry-run", "--json").json()
    packed = tool.run("build", tmp_path / "x.tgz", tmp_path / "out", *OPTIONS, "--dry-run", "--json").json()
    assert plain["bytes_unpacked"] == 0
    assert packed["bytes_unpacked"] == (tmp_path / "x.tar").stat().st_size
    assert packed["bytes_needed"] == plain["bytes_needed"] + packed["bytes_unpacked"]
    assert packed["samples"] == plain["samples"] == len(AWKWARD) + 1
    assert files(scratch) == {} and not (tmp_path / "out").exists()
    text = tool.run("build", tmp_path / "x.tgz", tmp_path / "out", *OPTIONS, "--dry-run").out
    assert "to unpack the source" in text


# --- webdataset -------------------------------------------------------------------------------------------------------


def key_of(path):
    return path.removesuffix(".jpg").removesuffix(".png")


@pytest.fixture(scope="module")
def listed(animals):
    """(path, bytes, class, label) of every image of the folder, by path."""
    source, _ = animals
    found = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in (".jpg", ".png"))
    classes = sorted(path.name for path in source.iterdir())
    return [(path, (source / path).read_bytes(), path.split("/")[0], classes.index(path.split("/")[0])) for path in found]


@pytest.fixture(scope="module")
def expected(tool, animals, tmp_path_factory):
    """The samples of the folder's build."""
    out = tmp_path_factory.mktemp("animals") / "out"
    tool.build(animals[0], out, *OPTIONS)
    return Dataset(out)


def assert_same_samples(out, expected, rename=lambda key: key):
    """Equal tensors and labels under the same keys, or under those that `rename` makes of them."""
    found, wanted = Dataset(out).samples(), expected.samples()
    assert_equal_arrays({rename(key): array for key, array in arrays_of(wanted).items()}, arrays_of(found))
    assert labels_of(found) == {rename(key): label for key, label in labels_of(wanted).items()}


def flat_key(key):
    return key.replace("/", "_")


LABELS = {
    "cls": lambda name, number: number,
    "cls as names": lambda name, number: name,
    "json": lambda name, number: {"label": number, "other": [1, {"deep": 2}]},
    "json as names": lambda name, number: {"class": name},
    "txt": lambda name, number: name,
}


@pytest.mark.parametrize("labels", LABELS)
def test_shards_of_webdataset_give_the_folder_s_tensors(tool, listed, expected, tmp_path, labels):
    # Flat keys: where there are class folders, notes beside images are no classes.
    extension = labels.split()[0]
    with webdataset.ShardWriter(str(tmp_path / "wds-%06d.tar"), maxcount=5, verbose=0) as writer:
        for path, data, name, number in listed:
            label = LABELS[labels](name, number)
            if extension == "cls" and isinstance(label, str):
                label = label.encode()
            writer.write({"__key__": flat_key(key_of(path)), path.rsplit(".")[-1]: data, extension: label})
    assert len(list(tmp_path.glob("wds-*.tar"))) > 1
    # With names as labels, numbers are those of the sorted names, as of folders.
    tool.build(tmp_path / "wds-*.tar", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", expected, rename=flat_key)
    names_given = labels.endswith("names") or labels == "txt"
    assert Dataset(tmp_path / "out").manifest["classes"] == (sorted({row[2] for row in listed}) if names_given else [])


def test_a_folder_of_packed_shards_is_a_source(tool, listed, expected, tmp_path):
    (tmp_path / "shards").mkdir()
    for number in range(3):
        with webdataset.TarWriter(str(tmp_path / "shards" / f"s-{number}.tar.gz")) as writer:
            for path, data, _, label in listed[number::3]:
                writer.write({"__key__": key_of(path), "jpg": data, "cls": label})
    tool.build(tmp_path / "shards", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", expected)


def test_captions_beside_class_folders_are_no_classes(tool, animals, expected, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(animals[0], folder)
    for path in list(folder.rglob("*.*")):
        path.with_suffix(".txt").write_text(f"a photo of {path.name}")
        path.with_suffix(".json").write_text(json.dumps({"label": 5}))
    gnu_tar(tmp_path / "x.tar", folder)
    tool.build(tmp_path / "x.tar", tmp_path / "out", *OPTIONS)
    assert_same_samples(tmp_path / "out", expected)


def test_classes_and_csv_labels_work_as_with_folders(tool, animals, listed, tmp_path):
    gnu_tar(tmp_path / "x.tar", animals[0])
    names = sorted({row[2] for row in listed}, reverse=True)
    (tmp_path / "classes.txt").write_text("\n".join(names))
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows((path, 100 + number) for number, (path, *_) in enumerate(listed[:4]))
    for options in (("--classes", tmp_path / "classes.txt"), ("--labels", tmp_path / "labels.csv"), ("--labels", "none")):
        outs = tmp_path / f"folder{options[1]}".replace("/", "_"), tmp_path / f"tar{options[1]}".replace("/", "_")
        for source, out in zip((animals[0], tmp_path / "x.tar"), outs):
            tool.build(source, out, *SMALL.options(), *options)
        assert_same_dataset(*outs)


def test_tensors_are_refused_with_the_way_to_convert_them(tool, animals, tmp_path):
    for file_format, extension in (("tar", "tar"), ("tfrecord", "tfrecord")):
        out = tmp_path / file_format
        tool.build(animals[0], out, *SMALL.options(), "--format", file_format)
        assert "precache convert" in tool.refuse(out, tmp_path / "no", expect=2)
        assert "precache convert" in tool.refuse(out / f"train-000000.{extension}", tmp_path / "no", expect=2)
    assert not (tmp_path / "no").exists()


# --- TFRecord ---------------------------------------------------------------------------------------------------------

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


# --- HDF5 -------------------------------------------------------------------------------------------------------------


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


def test_numbers_that_are_no_brightness_reject_their_sample_alone(tool, squares, tmp_path):
    floats = squares.astype("f4")
    floats[3, 0, 0, 0] = np.nan
    floats[5, 9, 9, 1] = -1
    floats[6, 9, 9, 1] = 300
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = floats
    tool.build(tmp_path / "x.h5", tmp_path / "out", *SMALL.options(), "--labels", "none", "--max-bad", "50%")
    rows = [line.split("\t") for line in (tmp_path / "out" / "skipped.tsv").read_text().splitlines()[1:]]
    assert sorted(row[1] for row in rows) == [f"x.h5:x/{number:08}" for number in (3, 5, 6)]
    assert all("outside of 0 to 255" in row[3] for row in rows)


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


# --- broken and hostile -----------------------------------------------------------------------------------------------


def test_a_tar_cut_anywhere_is_corrupt(tool, animals, tmp_path):
    gnu_tar(tmp_path / "whole.tar", animals[0])
    whole = (tmp_path / "whole.tar").read_bytes()
    with tarfile.open(tmp_path / "whole.tar") as archive:
        places = [member.offset_data for member in archive if member.size > 1000][:4]
    for place in places:
        (tmp_path / "x.tar").write_bytes(whole[: place + 700])
        text = tool.refuse(tmp_path / "x.tar", tmp_path / "out", *OPTIONS, expect=4)
        assert "x.tar" in text and "byte" in text
        (tmp_path / "x.tgz").write_bytes(gzip.compress(whole)[: -place // 2])
        tool.refuse(tmp_path / "x.tgz", tmp_path / "out", *OPTIONS, expect=4)
    assert not (tmp_path / "out").exists()


def test_names_in_a_tar_are_never_paths(tool, tmp_path):
    image = io.BytesIO()
    images.picture("RGB", 20, 20, 1).save(image, "PNG")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name in ("../../up/1.png", "/etc/2.png", "a/../../3.png", "a/./4.png"):
            entry = tarfile.TarInfo(name)
            entry.size = len(image.getvalue())
            archive.addfile(entry, io.BytesIO(image.getvalue()))
    before = set(tmp_path.parent.rglob("*"))
    tool.build(tmp_path / "x.tar", tmp_path / "out", *SMALL.options(), "--labels", "none")
    made = set(tmp_path.parent.rglob("*")) - before
    assert all((tmp_path / "out") in (path, *path.parents) for path in made)
    keys = set(Dataset(tmp_path / "out").samples())
    assert keys == {"%2E%2E/%2E%2E/up/1", "etc/2", "a/%2E%2E/%2E%2E/3", "a/4"}


def test_a_bomb_is_ended_by_the_disk_and_said(tool, animals, small_disk, tmp_path):
    """200 MB of zeros behind an image, in 200 KB."""
    gnu_tar(tmp_path / "x.tar", animals[0])
    with tarfile.open(tmp_path / "x.tar", "a") as archive:
        entry = tarfile.TarInfo("zeros.bin")
        entry.size = 200_000_000
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    packed = tmp_path / "x.tgz"
    packed.write_bytes(gzip.compress((tmp_path / "x.tar").read_bytes(), 9))
    disk = small_disk(20_000)
    text = tool.refuse(packed, disk / "out", *OPTIONS, expect=3)
    assert "No space left on device" in text and "unpacked" in text and str(packed) in text
    assert files(disk) == {}


# Samples and rejected ones of the files that hold images.
BUILT = {
    "tar": {
        "aistore/single-png-cls.tar": (1, 0),
        "pytorch-data/101_ObjectCategories.tar.gz": (10, 0),
        "pytorch-data/256_ObjectCategories.tar": (6, 0),
        "tfds/00000.tar": (3, 0),
        "tfds/ILSVRC2012_img_train.tar": (100, 0),
        "tfds/Images256.tar": (3, 0),
        "tfds/aircraft.tar": (4, 0),
        "tfds/data512x512.tar": (3, 0),
        "tfds/dummy.1.tar": (2, 0),
        "tfds/dummy_data__3__ILSVRC2012_img_val.tar": (10, 0),
        "tfds/flower_photos.tgz": (5, 0),
        "tfds/s3-tar_train_sha1_0.tar": (32, 0),
        "tfds/test_256.tar": (2, 0),
        "tfds/valid_32x32.tar": (2, 0),
        "tfds/wake-vision-train-dummy-2.tar.gz": (6, 0),
        "webdataset/sample.tgz": (90, 0),
    },
    "tfrecord": {
        "aistore/single-png-cls-transformed.tfrecord": (1, 0),
        "csv2tfrecord/test.record": (25, 0),
        "custom-obj/test.record": (8, 0),
        "derived/duplicate-records.tfrecord": (4, 0),
        "derived/gzip-two-members.tfrecord": (2, 0),
        "derived/gzip.tfrecord": (2, 0),
        "derived/payload-not-protobuf.tfrecord": (1, 1),
        "derived/zero-length-record.tfrecord": (2, 1),
        "derived/zlib.tfrecord": (2, 0),
        "domino/test.record": (2, 0),
        "food-detection/val.tfrecord": (34, 0),
        "tf-models/pets_examples.record": (10, 0),
        "tf-models/val-00000-of-00001.tfrecord": (3, 0),
        "tfds/bridge-train.tfrecord-00000-of-00001": (0, 1),
        "tfds/dmlab-train.tfrecord-00000-of-00001": (2, 0),
        "tfds/dmlab-validation.tfrecord-00000-of-00001": (2, 0),
        "tfds/mt_opt_sd-train.tfrecord-00000-of-00001": (2, 0),
    },
    "hdf5": {
        "catvnoncat/test_catvnoncat.h5": (50, 0),
        "h5wasm/array.h5": (2, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_a.h5": (5, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_b.h5": (5, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_c.h5": (5, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_d.h5": (5, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_e.h5": (5, 0),
        "hdfgroup/tools/test/h5dump/testfiles/vds/1_f.h5": (5, 0),
        "hdfgroup/tools/test/h5import/testfiles/binfp64.h5": (5, 0),
        "hdfgroup/tools/test/h5import/testfiles/binin16.h5": (2, 0),
        "hdfgroup/tools/test/h5import/testfiles/binin32.h5": (5, 0),
        "hdfgroup/tools/test/h5import/testfiles/binuin16.h5": (2, 0),
        "hdfgroup/tools/test/h5import/testfiles/txtfp64.h5": (2, 2),
        "hdfgroup/tools/test/h5import/testfiles/txtin16.h5": (2, 0),
        "pyfive/filter_pipeline_v2.hdf5": (10, 0),
        "tfds/00001.h5": (3, 0),
        "tfds/3dshapes.h5": (5, 0),
        "tfds/camelyonpatch_level_2_split_train_x.h5": (5, 0),
    },
}


@pytest.mark.parametrize("kind", BUILT)
def test_every_file_of_the_corpora_is_built_or_refused_in_words(tool, corpora, tmp_path, kind):
    with open(corpora / kind / "MANIFEST.tsv") as file:
        names = [row["file"] for row in csv.DictReader(file, delimiter="\t")]
    built = {}
    for number, name in enumerate(names):
        out = tmp_path / str(number)
        options = ("--size", "16", "--labels", "none", "--max-bad", "100%", "--json")
        result = finish(tool.start("build", corpora / kind / name, out, "--quiet", *options))
        if result.code == 0:
            built[name] = (result.json()["samples"], result.json()["skipped"])
        else:
            assert result.code in (2, 3, 4, 5) and result.err.startswith("precache: "), f"{name}: {result}"
            assert not (out / "dataset.json").exists(), name
        shutil.rmtree(out, ignore_errors=True)
    assert built == BUILT[kind]


# --- killed, resumed, changed -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    source = tmp_path_factory.mktemp("photos")
    for number in range(60):
        folder = source / f"class{number % 3}"
        folder.mkdir(exist_ok=True)
        images.picture("RGB", 320, 240, number).save(folder / f"{number:03}.jpg")
    return source


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_kills_at_random_moments_change_no_byte(tool, photos, quick_folder, packed):
    options = (*SMALL.options(), "--shards", "20", "--jobs", "1")
    gnu_tar(quick_folder / "x", photos, *(["-z"] if packed else []))
    tool.build(photos, quick_folder / "undisturbed", *options)
    out = quick_folder / "out"
    moments = random.Random(packed)
    kills = 0
    while kills < 15:
        process = tool.start("build", quick_folder / "x", out, "--quiet", *options)
        if kill_after(process, moments.uniform(0, 0.15)):
            kills += 1
            if not (out / "dataset.json").exists():
                continue
            tool.build(quick_folder / "x", out, *options)  # killed behind the last shard: little is left to do
        assert_same_dataset(out, quick_folder / "undisturbed")
        shutil.rmtree(out)
    tool.build(quick_folder / "x", out, *options)
    assert_same_dataset(out, quick_folder / "undisturbed")
    assert not (out / ".precache").exists()


def hold_at_second_shard(interference, tool, source, out, options, **more):
    """Kills a build when it opens its second shard; what was done is whole."""
    with interference.hold(
        tool, "build", source, out, "--quiet", *options, calls="open", path="000001.part", **more
    ) as (process, _):
        wait_until((out / ".precache" / "train" / "000000.json").exists, process)


def test_a_build_from_a_pipe_goes_on_without_it(tool, interference, photos, tmp_path):
    options = (*SMALL.options(), "--shards", "4", "--jobs", "1")
    tool.build(photos, tmp_path / "undisturbed", *options)
    gnu_tar(tmp_path / "x.tgz", photos, "-z")
    out = tmp_path / "out"
    with open(tmp_path / "x.tgz", "rb") as file:
        hold_at_second_shard(interference, tool, "-", out, options, stdin=file)
    summary = tool.build("-", out, *options, "--json").json()  # with nothing to read
    assert summary["shards_resumed"] == 1
    assert_same_dataset(out, tmp_path / "undisturbed")


def test_a_signal_while_unpacking_leaves_nothing(tool, photos, tmp_path):
    """The pipe has no end: only the signal ends it."""
    gnu_tar(tmp_path / "x.tar", photos)
    out = tmp_path / "out"
    process = tool.start("build", "-", out, "--quiet", stdin=subprocess.PIPE)
    process.stdin.write((tmp_path / "x.tar").read_bytes()[:100_000])
    process.stdin.flush()
    wait_until(lambda: list(out.glob(".precache/train/unpacked.*/000000")) != [], process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    text = process.stderr.read().decode()
    process.stdin.close()
    assert "interrupted" in text and "no shard is complete" in text
    assert not out.exists()


def test_a_build_goes_on_only_with_the_same_shards(tool, interference, photos, tmp_path):
    options = (*SMALL.options(), "--shards", "4", "--jobs", "1")
    gnu_tar(tmp_path / "x.tgz", photos, "-z")
    out = tmp_path / "out"
    hold_at_second_shard(interference, tool, tmp_path / "x.tgz", out, options)
    for other in (tmp_path / "other.tgz", "-", photos):
        if other == tmp_path / "other.tgz":
            gnu_tar(other, photos, "-z")
        assert "another source" in tool.refuse(other, out, *options)
    assert "other options" in tool.refuse(tmp_path / "x.tgz", out, *options, "--image-key", "jpg")
    (tmp_path / "x.tgz").rename(tmp_path / "moved.tgz")
    assert tool.build(tmp_path / "moved.tgz", out, *options, "--json").json()["shards_resumed"] == 1
    tool.build(photos, tmp_path / "undisturbed", *options)
    assert_same_dataset(out, tmp_path / "undisturbed")


def test_a_shard_that_changes_under_a_build_ends_it(tool, interference, photos, tmp_path):
    options = (*SMALL.options(), "--shards", "4", "--jobs", "1")
    gnu_tar(tmp_path / "x.tar", photos)
    out = tmp_path / "out"
    with interference.hold(
        tool, "build", tmp_path / "x.tar", out, "--quiet", *options, calls="open", path="000001.part"
    ) as (process, gate):
        os.utime(tmp_path / "x.tar", (1, 1))
        gate.open()
        result = finish(process)
    assert result.code == 3 and "has changed since it was listed" in result.err and "x.tar" in result.err


def test_read_errors_of_a_shard_are_tried_again_and_then_end_the_build(tool, interference, photos, tmp_path):
    options = (*SMALL.options(), "--shards", "4", "--jobs", "1")
    gnu_tar(tmp_path / "x.tar", photos)
    tool.build(photos, tmp_path / "undisturbed", *options)
    env = interference.fail("pread", 5, path="x.tar", times=2, after=5)
    tool.build(tmp_path / "x.tar", tmp_path / "out", *options, env=env)
    assert_same_dataset(tmp_path / "out", tmp_path / "undisturbed")
    env = interference.fail("pread", 5, path="x.tar", after=5)
    text = tool.refuse(tmp_path / "x.tar", tmp_path / "no", *options, "--max-bad", "100%", env=env, expect=3)
    assert "x.tar" in text and "Input/output error" in text


def test_a_source_within_out_is_refused(tool, photos, tmp_path):
    (tmp_path / "out").mkdir()
    gnu_tar(tmp_path / "out" / "train-000000.tar", photos)
    before = files(tmp_path / "out")
    text = tool.refuse(tmp_path / "out" / "train-000000.tar", tmp_path / "out", "--overwrite")
    assert "lies inside OUT" in text
    assert files(tmp_path / "out") == before
