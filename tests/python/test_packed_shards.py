# SPDX-License-Identifier: Apache-2.0
"""`verify` and `inspect` on shards of encoded images, by precache and by h5py."""

import json

import h5py
import numpy as np
import pytest
from PIL import Image

import images
from inspection import inspect_one
from shards import FORMATS
from tool import EXTENSIONS

COUNTS = {"ant": 7, "bee": 6, "cat": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    for number, name in enumerate([*COUNTS] * 6 + ["ant"]):
        path = root / name / f"{number:02}{('.jpg', '.png')[number % 2]}"
        path.parent.mkdir(exist_ok=True)
        images.picture("RGB", 20 + number, 30, number).save(path)
    return root


@pytest.fixture
def packed(run, folder, tmp_path, request):
    run("pack", folder, tmp_path / "out", "--format", request.param, "--shards", "2", "--seed", "3", "--quiet")
    return request.param, tmp_path / "out"


@pytest.mark.parametrize("packed", FORMATS, indirect=True)
def test_packed_images_are_described_with_their_classes(run, packed, tmp_path):
    file_format, out = packed
    facts = inspect_one(run, out, "--sheet", tmp_path / "sheet.png")
    assert (facts["format"], facts["samples"], facts["files"]) == (file_format, 19, 2)
    encoded = facts["encoded"]
    assert (
        encoded["kinds"] == {"JPEG": 10, "PNG": 9} and encoded["width"]["min"] == 20 and encoded["width"]["max"] == 38
    )
    assert {row["name"]: row["samples"] for row in facts["classes"]["counts"]} == COUNTS
    assert {row["name"]: row["label"] for row in facts["classes"]["counts"]} == {"ant": 0, "bee": 1, "cat": 2}
    sheet = np.asarray(Image.open(tmp_path / "sheet.png").convert("L"))
    assert len(np.unique(sheet)) > 50
    (shard,) = sorted(out.glob("*000001*"))
    assert {row["name"] for row in inspect_one(run, shard)["classes"]["counts"]} == set(COUNTS)


@pytest.mark.parametrize("packed", FORMATS, indirect=True)
def test_any_changed_byte_is_detected(run, packed, tmp_path):
    file_format, out = packed
    assert (
        "whole     19 samples in 2 files" in (said := run("verify", out).stdout.decode())
        and "against the manifest" in said
    )
    shard = sorted(out.glob("train-*"))[1]
    whole = shard.read_bytes()
    for place in sorted({0, len(whole) - 1, *np.random.default_rng(1).integers(0, len(whole), 40).tolist()}):
        data = bytearray(whole)
        data[place] ^= 0x20
        shard.write_bytes(data)
        report = json.loads(run("verify", out, "--json", expect=4).stdout)
        assert {fault["file"] for fault in report["faults"]} == {str(shard)}, place
    shard.write_bytes(whole[:-1])
    assert "the manifest says" in run("verify", out, expect=4).stdout.decode()
    shard.unlink()
    assert "it does not exist" in run("verify", out, expect=4).stdout.decode()
    assert "it does not exist" in inspect_one(run, out, expect=4)["faults"][0]["reason"]


@pytest.mark.parametrize("packed", FORMATS, indirect=True)
def test_only_the_requested_split_counts(run, packed, folder):
    file_format, out = packed
    run("pack", folder, out, "--format", file_format, "--split", "val", "--quiet")
    (out / f"other.{EXTENSIONS[file_format]}").write_bytes(b"third-party")
    assert "38 samples in 3 files" in run("verify", out).stdout.decode()
    assert "19 samples in 1 file" in run("verify", out, "--split", "val").stdout.decode()
    assert inspect_one(run, out, "--split", "train")["files"] == 2
    assert b"no split 'test'" in run("verify", out, "--split", "test", expect=2).stderr


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "version": lambda text: text.replace("version", "versioo"),
    "newer": lambda text: text.replace('"version": 1', '"version": 7'),
    "crc": lambda text: text.replace("crc32c", "crc32d"),
    "elsewhere": lambda text: text.replace("train-", "../train-"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("packed", ["tar"], indirect=True)
def test_a_damaged_manifest_is_reported_as_damage(run, packed, damage):
    _, out = packed
    path = out / "encoded.json"
    path.write_text(DAMAGE[damage](path.read_text()))
    for command in ("verify", "inspect"):
        assert b"encoded.json" in run(command, out, expect=5 if damage == "newer" else 4).stderr


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 7, "splits": {}}', '{"version": 1, "splits": {"train": 3}}'])
@pytest.mark.parametrize("packed", ["tar"], indirect=True)
def test_a_third_party_manifest_is_ignored(run, packed, text):
    _, out = packed
    (out / "encoded.json").write_text(text)
    said = run("verify", out).stdout.decode()
    assert "whole     19 samples in 2 files" in said and "without a manifest" in said
    assert {row["name"] for row in inspect_one(run, out)["classes"]["counts"]} == {None}


def test_files_of_h5py_are_read_through_their_heaps(run, folder, tmp_path):
    """Contiguous and chunked, with rows written twice, which leaves holes in the heaps."""
    paths = sorted(folder.rglob("*.*"))
    for name, storage in {"plain": {}, "chunks": {"chunks": (5,)}}.items():
        with h5py.File(tmp_path / f"{name}.h5", "w", libver="latest" if storage else "earliest") as file:
            rows = file.create_dataset("images", (len(paths),), h5py.vlen_dtype(np.uint8), **storage)
            for _ in range(2):
                for row, path in enumerate(paths):
                    rows[row] = np.frombuffer(path.read_bytes(), np.uint8)
            file["labels"] = np.arange(len(paths)) % 3
        facts = inspect_one(run, tmp_path / f"{name}.h5", "--all")
        assert facts["samples"] == len(paths) and facts["encoded"]["kinds"] == {"JPEG": 10, "PNG": 9}
        sizes = [path.stat().st_size for path in paths]
        assert (facts["encoded"]["bytes"]["min"], facts["encoded"]["bytes"]["max"]) == (min(sizes), max(sizes))
        assert "whole     19 samples" in run("verify", tmp_path / f"{name}.h5").stdout.decode()
        data = bytearray((tmp_path / f"{name}.h5").read_bytes())
        for place in range(len(data)):  # all heaps
            if data[place : place + 5] == b"GCOL\1":
                data[place] = 0
        (tmp_path / f"{name}-broken.h5").write_bytes(data)
        assert "there is no heap" in run("verify", tmp_path / f"{name}-broken.h5", expect=4).stdout.decode()
