# SPDX-License-Identifier: Apache-2.0
"""`precache verify`: what it says, and what the shell sees."""

import json
import tarfile

import pytest

from shards import FORMATS


@pytest.fixture
def dataset(build, animals, tmp_path, request):
    return build(animals[0], tmp_path / "out", "--format", request.param, "--size", "16", "--shards", "3")


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
def test_what_was_built_is_whole(run, dataset):
    said = run("verify", dataset.out).stdout.decode()
    samples = dataset.manifest["splits"]["train"]["samples"]
    assert said.startswith("whole") and f"{samples} samples in 3 files" in said and "against the manifest" in said
    result = json.loads(run("verify", dataset.out, "--json").stdout)
    assert result["whole"] and result["files"] == result["files_in_manifest"] == 3 and result["samples"] == samples
    assert result["bytes"] == sum(path.stat().st_size for path in dataset.shard_paths())


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
def test_damage_is_named_and_ends_with_4(run, dataset):
    path = dataset.shard_paths()[1]
    offset = dataset.raw_images(dataset.shards()[1])[0][1]  # of the second image
    data = bytearray(path.read_bytes())
    data[offset + 5] ^= 1
    path.write_bytes(data)
    said = run("verify", dataset.out, expect=4).stdout.decode()
    first, last = said.splitlines()
    assert first.startswith(f"{path}: ") and last.startswith("damaged")
    if dataset.manifest["format"] == "tfrecord":
        assert "record 1, byte" in first and "CRC" in first
    fault, = json.loads(run("verify", dataset.out, "--json", expect=4).stdout)["faults"]
    assert fault["file"] == str(path)


def test_paths_that_are_none(run, tmp_path):
    assert b"No such file" in run("verify", tmp_path / "none.tar", expect=3).stderr
    assert b"matches no file" in run("verify", tmp_path / "*.tar", expect=2).stderr
    assert b"required" in run("verify", expect=2).stderr


def test_folders_of_shards_that_tensorflow_names(run, corpora, tmp_path):
    source = corpora / "tfrecord" / "tf-models" / "val-00000-of-00001.tfrecord"
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(3):
        (shards / f"train-{number:05}-of-00003").write_bytes(source.read_bytes())
    assert "9 samples in 3 files" in run("verify", shards).stdout.decode()
    assert "9 in 3 files" in run("inspect", shards).stdout.decode()
    run("build", shards, tmp_path / "out", "--quiet", "--size", "16", "--labels", "none")


def test_foreign_files(run, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "a.jpg", "a.jpg")
    assert "1 sample in 1 file" in run("verify", tmp_path / "a.tar").stdout.decode()
    with tarfile.open(tmp_path / "b.tar", "w:gz") as archive:
        archive.add(tmp_path / "a.jpg", "a.jpg")
    said = run("verify", tmp_path / "?.tar", expect=5).stdout.decode()
    assert "gzip" in said and "2 files" in said
