# SPDX-License-Identifier: Apache-2.0
"""Datasets that are built again, copied or extended while a dataset or a loader has them open."""

import shutil
import time

import numpy as np
import pytest

import precache
from shards import FORMATS

pytest_plugins = ("package_fixtures",)

SHARDS = 4
OPTIONS = ("--size", "8", "--shards", str(SHARDS))


def wait_for_the_next_look():
    """Waits until the reader checks the file again: it reads a mapped shard without a system call for at most 50 ms."""
    time.sleep(0.1)


def expect_replaced(folder, call):
    with pytest.raises(
        precache.CorruptDataError, match="the dataset was replaced or removed while it was open"
    ) as refused:
        call()
    assert refused.value.path == str(folder / "dataset.json") and "again" in refused.value.hint


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mapped", [0, 1, SHARDS])
def test_a_dataset_that_is_built_again_is_refused(build, animals, tmp_path, format, mapped):
    built = build(animals[0], tmp_path / "out", "--format", format, *OPTIONS)
    dataset = precache.open(built.out)
    starts = np.cumsum([0] + [shard["samples"] for shard in built.shards()])
    held = [dataset[start][0] for start in starts[:mapped]]
    before = [image.copy() for image in held]
    build(animals[0], tmp_path / "out", "--format", format, *OPTIONS, "--seed", "2", "--overwrite")
    wait_for_the_next_look()
    for i in range(len(dataset)):
        expect_replaced(built.out, lambda: dataset[i])
    for call in (
        lambda: dataset[0:2],
        lambda: dataset.gather([1, 20]),
        lambda: dataset.labels,
        lambda: dataset.keys[3],
        lambda: next(iter(precache.Loader(dataset, 4))),
    ):
        expect_replaced(built.out, call)
    for image, expected in zip(held, before, strict=True):  # arrays already returned do not change
        assert (image == expected).all()
    assert len(precache.open(built.out).keys[:]) == len(dataset)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shuffle", [None, "full"])
def test_a_loader_ends_when_its_dataset_is_built_again(build, animals, tmp_path, format, shuffle):
    built = build(animals[0], tmp_path / "out", "--format", format, *OPTIONS)
    expected = precache.open(built.out)[:][0].copy()
    loader = precache.Loader(built.out, 2, shuffle=shuffle, prefetch=1, threads=1)
    steps = iter(loader)
    rows = [next(steps)[0].copy()]
    build(animals[0], tmp_path / "out", "--format", format, *OPTIONS, "--seed", "2", "--overwrite")
    wait_for_the_next_look()
    expect_replaced(built.out, lambda: rows.extend(images.copy() for images, _ in steps))
    # Batches before the error are from the old dataset, each sample at most once.
    known = [image.tobytes() for image in expected]
    seen = [image.tobytes() for images in rows for image in images]
    assert len(rows) < 6 and set(seen) <= set(known) and len(set(seen)) == len(seen)
    expect_replaced(built.out, lambda: list(loader))


def test_a_dataset_that_is_gone_for_a_while(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", *OPTIONS)
    dataset = precache.open(built.out)
    dataset[0]
    shutil.copytree(built.out, tmp_path / "copy")
    shutil.rmtree(built.out)
    wait_for_the_next_look()
    for i in (0, 12):
        expect_replaced(built.out, lambda: dataset[i])
    (tmp_path / "copy").rename(built.out)
    assert len(dataset.keys[:]) == 23


def test_a_split_that_is_added_or_built_again_does_not_disturb_others(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", *OPTIONS)
    dataset = precache.open(built.out)
    first = dataset[0][0].copy()
    for options in ([], ["--seed", "2", "--overwrite"]):
        build(animals[0], tmp_path / "out", *OPTIONS, "--split", "val", *options)
        wait_for_the_next_look()
        assert (dataset[0][0] == first).all() and len(dataset.keys[:]) == 23
    build(animals[0], tmp_path / "out", *OPTIONS, "--seed", "0", "--overwrite")  # the same bytes again
    wait_for_the_next_look()
    assert (dataset[0][0] == first).all()


def test_several_shards_of_a_dataset_that_is_built_again(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", *OPTIONS)
    other = build(animals[0], tmp_path / "other", *OPTIONS)
    dataset = precache.open([other.shard_paths()[0], built.shard_paths()[1]])
    build(animals[0], tmp_path / "out", *OPTIONS, "--seed", "2", "--overwrite")
    expect_replaced(built.out, lambda: dataset[-1])
    assert dataset[0][0].any()
