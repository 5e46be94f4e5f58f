# SPDX-License-Identifier: Apache-2.0
"""A changed source is noticed, even if a finished dataset of its former content exists."""

import os
import shutil
import subprocess
import tarfile

import h5py
import numpy as np
import pytest

import images
from tool import differing, files, snapshot

pytest_plugins = ("tool_fixtures",)

OPTIONS = ("--size", "8", "--shards", "2", "--quiet")


@pytest.fixture
def source(tmp_path):
    for number in range(6):
        images.draw_unique(tmp_path / "source" / f"class{number % 2}" / f"{number:02}.png", number)
    return tmp_path / "source"


def change_one(source):
    """Replaces one image by another that is padded to the same size."""
    path = source / "class0" / "02.png"
    other = source / "class0" / "04.png"
    size = max(path.stat().st_size, other.stat().st_size)
    path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    return path, other.read_bytes().ljust(size, b"\0")


def forget_times(out):
    for path in out.iterdir():
        if path.is_file() and "user.precache.plan" in os.listxattr(path):
            os.removexattr(path, "user.precache.plan")


def commands(source, out):
    return {"build": ("build", source, out, *OPTIONS), "pack": ("pack", source, out, "--quiet")}


@pytest.mark.parametrize("command", ["build", "pack"])
def test_an_image_that_was_replaced_by_one_of_its_size_is_noticed(tool, source, tmp_path, command):
    path, other = change_one(source)
    out = tmp_path / "out"
    words = commands(source, out)[command]
    tool.run(*words)
    assert "the same names, sizes, labels and modification times" in tool.run(*words).out
    path.write_bytes(other)
    before = snapshot(out)
    text = tool.run(*words, expect=2).err
    assert "the source has changed" in text and "--overwrite" in text
    assert snapshot(out) == before
    tool.run(*words, "--overwrite")
    tool.run(*commands(source, tmp_path / "whole")[command])
    assert differing(files(out), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("command", ["build", "pack"])
def test_content_is_compared_where_times_are_unknown(tool, source, tmp_path, command):
    out = tmp_path / "out"
    words = commands(source, out)[command]
    tool.run(*words)
    before = files(out)
    for path in source.rglob("*.png"):
        os.utime(path, ns=(0, 0))
    assert "the same names, labels and content" in tool.run(*words).out
    assert "modification times" in tool.run(*words).out  # it has remembered the new ones
    forget_times(out)
    assert "the same names, labels and content" in tool.run(*words).out
    assert files(out) == before


def test_modification_times_do_not_change_a_dataset(tool, source, tmp_path):
    """A copy of the source, a tar of it and the source give equal bytes."""
    tool.run("build", source, tmp_path / "one", *OPTIONS)
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    with tarfile.open(tmp_path / "source.tar", "w") as archive:
        archive.add(source, ".")
    for other in (copy, tmp_path / "source.tar"):
        tool.run("build", other, tmp_path / "other", *OPTIONS, "--overwrite")
        assert differing(files(tmp_path / "one"), files(tmp_path / "other")) == []


@pytest.mark.parametrize("options", [("build", "--size", "8"), ("convert",)], ids=["build", "convert"])
def test_an_array_of_other_images_is_noticed(tool, tmp_path, options):
    """The other images have the same shape, so the file keeps its size."""

    def write(seed):
        with h5py.File(tmp_path / "data.h5", "w") as file:
            file["images"] = np.random.default_rng(seed).integers(0, 256, (12, 8, 8, 3), np.uint8)
            file["labels"] = np.arange(12)

    write(0)
    words = (options[0], tmp_path / "data.h5", tmp_path / "out", *options[1:], "--quiet")
    tool.run(*words)
    assert "modification times" in tool.run(*words).out
    write(1)
    assert "the source has changed" in tool.run(*words, expect=2).err
    write(0)
    assert "the same names, labels and content" in tool.run(*words).out


def test_a_stream_of_other_images_is_noticed(tool, source, tmp_path):
    path, other = change_one(source)

    def run(expect=0):
        with tarfile.open(tmp_path / "x.tar", "w") as archive:
            archive.add(source, ".")
        with open(tmp_path / "x.tar", "rb") as pipe:
            words = ("build", "-", tmp_path / "out", *OPTIONS)
            return tool.run(*words, stdin=subprocess.Popen(["cat"], stdin=pipe, stdout=-1).stdout, expect=expect)

    run()
    assert "content (all of it was read)" in run().out
    path.write_bytes(other)
    assert "the source has changed" in run(expect=2).err


def test_a_dataset_that_was_built_again_is_noticed_by_convert(tool, source, tmp_path):
    path, other = change_one(source)
    tool.run("build", source, tmp_path / "built", *OPTIONS)
    words = ("convert", tmp_path / "built", tmp_path / "out", "--format", "hdf5", "--quiet")
    tool.run(*words)
    assert "the same manifest" in tool.run(*words).out
    path.write_bytes(other)
    tool.run("build", source, tmp_path / "built", *OPTIONS, "--overwrite")
    assert "finished split" in tool.run(*words, expect=2).err
