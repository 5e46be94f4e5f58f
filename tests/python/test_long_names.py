# SPDX-License-Identifier: Apache-2.0
"""Readers without support for pax headers, and keys that need no such header."""

import json
import tarfile

import numpy as np
import pytest

import images
from reference import SMALL
from shards import Dataset, read_npy

LONG = "a-very-long-name-" * 12  # 204 bytes


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Names with a common prefix of a hundred bytes, and a short name."""
    folder = tmp_path_factory.mktemp("long")
    for number in range(5):
        images.draw_unique(folder / f"class{number % 2}" / f"{LONG}{number}.png", number)
    images.draw_unique(folder / "class0" / "short.png", 5)
    return folder


def pixels(dataset):
    return sorted((sample.array.tobytes(), sample.label) for sample in dataset.samples().values())


def dali_without_index(paths, count):
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define():
        return tuple(
            fn.readers.webdataset(
                paths=[str(path) for path in paths], ext=["npy", "cls"], missing_component_behavior="empty"
            )
        )

    pipeline = define()
    pipeline.build()
    return [[np.asarray(output.at(0)).tobytes() for output in pipeline.run()] for _ in range(count)]


@pytest.mark.parametrize("keys", ("full", "short"))
def test_dali_without_an_index_reads_every_long_name(build, source, tmp_path, keys):
    dataset = build(source, tmp_path / "out", "--shards", "1", "--keys", keys, *SMALL.options())
    read = dali_without_index(dataset.shard_paths(), 6)
    assert sorted((read_npy(npy, "uint8").tobytes(), int(cls)) for npy, cls in read) == pixels(dataset)


@pytest.mark.parametrize("keys", ("full", "short"))
def test_wids_reads_every_long_name(build, source, tmp_path, keys):
    import wids

    dataset = build(source, tmp_path / "out", "--keys", keys, "--index", "wids", *SMALL.options())
    found = wids.ShardListDataset(str(tmp_path / "out" / "train.wids.json"), localname=lambda url: url)
    assert len(found) == 6
    assert sorted((sample[".npy"].tobytes(), sample[".cls"]) for sample in found) == pixels(dataset)


def test_short_keys_make_a_plain_ustar_archive(build, source, tmp_path):
    full = build(source, tmp_path / "full", *SMALL.options())
    short = build(source, tmp_path / "short", "--keys", "short", *SMALL.options())
    assert pixels(short) == pixels(full)
    assert "class0/short" in short.samples() and all(len(key) <= 96 for key in short.samples())
    with tarfile.open(short.shard_paths()[0]) as archive:
        assert all(member.pax_headers == {} for member in archive)
    assert short.shard_paths()[0].stat().st_size < full.shard_paths()[0].stat().st_size


def test_build_warns_of_pax_headers(run, source, tmp_path):
    done = run("build", source, tmp_path / "full", "--json", "--quiet", *SMALL.options())
    said = done.stderr.decode()
    assert "pax headers" in said and "--keys short" in said and "212 bytes" in said
    assert json.loads(done.stdout)["plan"]["pax_headers"] is True
    assert b"warning" in run("build", source, tmp_path / "none", "--dry-run", *SMALL.options()).stdout
    done = run("build", source, tmp_path / "short", "--keys", "short", "--json", "--quiet", *SMALL.options())
    assert done.stderr == b"" and json.loads(done.stdout)["plan"]["pax_headers"] is False
    done = run("build", source, tmp_path / "h5", "--format", "hdf5", "--quiet", *SMALL.options())
    assert done.stderr == b""


def test_the_length_of_keys_is_part_of_the_identity(build, run, source, tmp_path):
    build(source, tmp_path / "out", *SMALL.options())
    said = run("build", source, tmp_path / "out", "--keys", "short", *SMALL.options(), expect=2).stderr.decode()
    assert "already holds a finished split" in said
    assert len(Dataset(tmp_path / "out").samples()) == 6
