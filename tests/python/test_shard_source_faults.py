# SPDX-License-Identifier: Apache-2.0
"""Shards of images as SOURCE that are broken, hostile or changed, and builds of them that are killed and resumed."""

import gzip
import io
import os
import random
import shutil
import signal
import subprocess
import tarfile

import numpy as np
import pytest

import images
from reference import SMALL
from shard_sources import OPTIONS, assert_same_dataset, gnu_tar
from shards import Dataset
from tool import files, finish, kill_after, run_and_measure, wait_until

pytest_plugins = ("tool_fixtures",)


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


def test_many_names_take_no_more_than_their_share_of_time(tool, tmp_path):
    """Either file took minutes when each name was compared with all others."""
    import tensorflow as tf

    image = io.BytesIO()
    images.picture("RGB", 20, 20, 1).save(image, "PNG")
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b""]))
    features = {f"feature{number}": feature for number in range(200_000)}
    features["image"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.getvalue()]))
    with tf.io.TFRecordWriter(str(tmp_path / "x.tfrecord")) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(100_000):
            archive.addfile(tarfile.TarInfo(f"sample.x{number}"))
        entry = tarfile.TarInfo("sample.png")
        entry.size = len(image.getvalue())
        archive.addfile(entry, io.BytesIO(image.getvalue()))
    for name in ("x.tfrecord", "x.tar"):
        tool.build(tmp_path / name, tmp_path / f"out of {name}", *SMALL.options(), "--labels", "none")


def test_classes_that_were_never_written_take_no_memory(tool, tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"] = np.zeros((3, 20, 20, 3), np.uint8)
        file.create_dataset("classes", (1_200_000_000,), "S4", chunks=(1_000_000,), compression="gzip")
        file["rest"] = np.random.default_rng(1).integers(
            0, 256, 6_000_000, np.uint8
        )  # which the file's size allows for
    result, peak_bytes = run_and_measure(
        tool, "build", tmp_path / "x.h5", tmp_path / "out", "--quiet", "--labels", "none"
    )
    assert result.code == 0 and "no labels" in result.out
    assert peak_bytes < 200_000_000


def test_names_command_no_terminal(tool, tmp_path):
    name = "a/\x1b]0;title\x07\x1b[31m\u202e.jpg"
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"\xff\xd8\xff\x00"))
    said = [
        tool.run("build", tmp_path / "x.tar", tmp_path / "out", "--max-bad", "100%").err,
        tool.refuse(tmp_path / "x.tar", tmp_path / "no", "--label-key", "cls"),
    ]
    for text in said:
        assert "title" in text and not {"\x1b", "\x07", "\u202e"} & set(text), text
    report = (tmp_path / "out" / "skipped.tsv").read_text()
    assert "\\x1b]0;title" in report and not {"\x1b", "\x07"} & set(report), report


def test_a_bomb_is_ended_by_the_disk_and_said(tool, animals, small_disk, tmp_path):
    """200 MB of zeros after an image, in 200 KB."""
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
            tool.build(quick_folder / "x", out, *options)  # killed after the last shard: little is left to do
        assert_same_dataset(out, quick_folder / "undisturbed")
        shutil.rmtree(out)
    tool.build(quick_folder / "x", out, *options)
    assert_same_dataset(out, quick_folder / "undisturbed")
    assert not (out / ".precache").exists()


def hold_at_second_shard(interference, tool, source, out, options, **more):
    """Kills a build when it opens its second shard; what was done is whole."""
    with interference.hold(
        tool, "build", source, out, "--quiet", *options, calls="open", path="train-000001.", **more
    ) as (process, _):
        wait_until(lambda: list(out.glob("train-000000.*")) != [], process)


def test_a_build_from_a_pipe_resumes_without_it(tool, interference, photos, tmp_path):
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


def test_a_build_resumes_only_with_the_same_shards(tool, interference, photos, tmp_path):
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
        tool, "build", tmp_path / "x.tar", out, "--quiet", *options, calls="open", path="train-000001."
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
    assert "is inside OUT" in text
    assert files(tmp_path / "out") == before


@pytest.mark.parametrize("content", (b"\0", b"no shard"), ids=("zeros", "text"))
@pytest.mark.parametrize("command", ("build", "verify"))
def test_a_packed_file_that_is_not_a_shard_is_not_unpacked_in_full(tool, tmp_path, command, content):
    with gzip.open(tmp_path / "x.gz", "wb", compresslevel=1) as file:
        file.write(content * ((64 << 20) // len(content)))
    out = (tmp_path / "out",) if command == "build" else ()
    limit = ("prlimit", f"--fsize={8 << 20}")  # a process that writes more to a file is ended by a signal
    result = tool.run(command, tmp_path / "x.gz", *out, before=limit, expect=5)
    assert "not a tar, TFRecord or HDF5 file" in result.out + result.err
