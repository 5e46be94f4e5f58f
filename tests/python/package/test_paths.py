# SPDX-License-Identifier: Apache-2.0
"""Dataset.paths: from keys back to the files of a folder."""

import os
import shutil

import numpy as np
import pytest
from PIL import Image

import precache
from precache._paths import key_of_path

LONG = "x" * 110
# As they are below the folder. The last ones differ only in what keys leave out.
NAMES = [
    "ants/F.pergan.28(f).jpg",
    "ants/a.b/c d.JPEG",
    "__top__/1.png",
    "____/1.png",
    "__not/1.png",
    "ants/line\nend.png",
    "an.ts/line\nend.png",
    "bees/.hidden/never.png",
    "bees/é.png",
    f"bees/{LONG}.1.png",
    f"bees/{LONG}.é.png",
    "bees/two.jpg",
    "bees/two.png",
    "bees/two~2.png",
    "bees/x.y.png",
    "bees/x_y.jpeg",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of one colour each, so that a sample shows which file it is."""
    folder = tmp_path_factory.mktemp("source") / "images"
    names = [os.fsencode(name) for name in NAMES] + [b"bees/\xff\xe2\x82.png"]
    for number, name in enumerate(names):
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        kind = "PNG" if name.endswith(b"png") else "JPEG"
        Image.new("L", (8, 8), 10 * number + 5).save(os.fsdecode(path), kind)
    (folder / "bees" / "notes.txt").write_text("not an image")
    (folder / "bees" / "two.webp").write_text("not an image that a build takes")
    (folder / "ants" / "loop").symlink_to("..")
    return folder


@pytest.fixture(scope="module", params=[{}, {"keys": "short"}, {"val_fraction": 0.4}], ids=str)
def out(request, folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "shards"
    precache.build(folder, out, size=4, color="gray", labels="none", shards=2, progress=False, **request.param)
    return out


def values_of(paths):
    return [np.asarray(Image.open(path)).mean() for path in paths]


def splits_of(out):
    return [name for name in ("train", "val") if list(out.glob(f"{name}-*"))]


def test_each_sample_has_its_file(folder, out):
    found = []
    for split in splits_of(out):
        dataset = precache.open(out, split)
        paths = dataset.paths(folder)
        values = dataset[:][0].reshape(len(dataset), -1).mean(axis=1)
        assert np.abs(values - values_of(paths)).max() < 2
        some = precache.open(out, split, indices=[2, 0])
        assert some.paths(os.path.relpath(folder)) == [paths[2], paths[0]]
        found += paths
    listed = [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
    assert sorted(found) == sorted(path for path in listed if path.endswith(("g", "G")) and "hidden" not in path)


def test_keys_follow_the_rules_of_a_build(folder, tmp_path):
    precache.build(folder, tmp_path / "out", size=4, labels="none", progress=False)
    dataset = precache.open(tmp_path / "out")
    keys = {key_of_path(os.path.relpath(os.fsencode(path), os.fsencode(folder))) for path in dataset.paths(folder)}
    assert keys | {"bees/two~3", "bees/x_y~2"} == set(dataset.keys)


@pytest.fixture
def copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "images", symlinks=True)
    precache.build(tmp_path / "images", tmp_path / "out", size=4, labels="none", progress=False)
    return tmp_path / "images", precache.open(tmp_path / "out")


def test_removed_files_are_named(copied):
    images, dataset = copied
    (images / "bees" / "é.png").unlink()
    with pytest.raises(precache.InvalidArgument, match=r"no file for 1 of 16 samples, the first with the key 'bees/é'"):
        dataset.paths(images)


def test_changed_files_are_named(copied):
    images, dataset = copied
    path = images / "bees" / "é.png"
    Image.new("L", (8, 8)).save(path)
    later = os.stat(images.parent / "out" / "dataset.json").st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    with pytest.raises(
        precache.InvalidArgument, match=r"1 of 16 files changed after the dataset was built, first .*é.png"
    ) as said:
        dataset.paths(images)
    assert "check_times=False" in said.value.hint
    assert str(path) in dataset.paths(images, check_times=False)


def test_a_new_file_of_the_same_key_is_refused(copied):
    images, dataset = copied
    shutil.copy(images / "bees" / "two.jpg", images / "bees" / "two.jpe")
    with pytest.raises(precache.InvalidArgument, match="could both be the sample with the key 'bees/two'"):
        dataset.paths(images)


def test_a_source_must_be_a_folder(copied):
    images, dataset = copied
    with pytest.raises(precache.InvalidArgument, match="which is not a folder"):
        dataset.paths(images / "bees" / "two.jpg")
    with pytest.raises(TypeError):
        dataset.paths(images, check_times="no")
