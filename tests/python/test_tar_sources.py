# SPDX-License-Identifier: Apache-2.0
"""Tars of images as SOURCE, written by GNU tar, Python and webdataset: a build of them equals one of the folder."""

import csv
import io
import json
import os
import random
import shutil
import subprocess
import tarfile

import pytest
import webdataset

import images
from reference import SMALL
from shard_sources import OPTIONS, assert_same_dataset, assert_same_samples, gnu_tar, key_of
from shards import Dataset
from tool import differing, files

pytest_plugins = ("tool_fixtures", "source_fixtures")

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
    """A folder whose names try what tars can hold, with a bad image, an empty class and files that are not images."""
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
    """The build of the folder."""
    out = tmp_path_factory.mktemp("built") / "out"
    tool.build(awkward, out, *OPTIONS, "--max-bad", "50%")
    return out


def gnu_tar_of_parent(target, folder, *options):
    subprocess.run(
        ["tar", *options, "-cf", target, "-C", os.path.dirname(folder), os.path.basename(folder)], check=True
    )


def python_tar(target, folder, *_):
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, arcname=".")


def bare_tar(target, folder, *_):
    """Entries in no order, without folders and without ./"""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        names = [
            os.path.relpath(os.path.join(top, name), folder) for top, _, found in os.walk(folder) for name in found
        ]
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
    for part in ("0/3", "1/3", "2/3"):
        tool.build(*command, "--part", part)
    assert list((tmp_path / "out" / ".precache" / "train").glob("unpacked.*/*")) != []
    tool.build(*command, "--finish")
    assert_same_dataset(tmp_path / "out", built)


def test_the_same_build_again_changes_nothing_whatever_the_source(tool, awkward, built, tmp_path):
    gnu_tar(tmp_path / "x.tar", awkward)
    before = files(built)
    assert "already complete" in tool.build(tmp_path / "x.tar", built, *OPTIONS, "--max-bad", "50%").out
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
    # Flat keys: with class folders, notes next to images are not classes.
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


def test_captions_next_to_class_folders_are_not_classes(tool, animals, expected, tmp_path):
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
    for options in (
        ("--classes", tmp_path / "classes.txt"),
        ("--labels", tmp_path / "labels.csv"),
        ("--labels", "none"),
    ):
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
