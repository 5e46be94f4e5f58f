# SPDX-License-Identifier: Apache-2.0
"""Several splits of one source: by a fraction, and by a file."""

import csv
import json
import shutil
from collections import Counter

import pytest

import images
from shards import FORMATS, Dataset

pytest_plugins = ("tool_fixtures",)

SIZES = {"ant": 12, "bee": 7, "cat": 3}
SMALL = ("--size", "8", "--shards", "2")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    number = 0
    for name, count in SIZES.items():
        for i in range(count):
            images.draw_unique(folder / name / f"{i:02}.png", number)
            number += 1
    return folder


def keys_of(source):
    return {str(path.relative_to(source).with_suffix("")) for path in source.rglob("*.png")}


def contents(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def split_keys(out, *splits):
    return [set(Dataset(out).samples(split)) for split in splits]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_fraction_divides_each_class(tool, source, tmp_path, file_format):
    out = tmp_path / "out"
    words = ("--val-fraction", "0.25", "--format", file_format, *SMALL)
    report = tool.build(source, out, *words, "--json").json()
    train, val = split_keys(out, "train", "val")
    assert train.isdisjoint(val) and train | val == keys_of(source)
    assert Counter(key.split("/")[0] for key in val) == {"ant": 3, "bee": 2, "cat": 1}
    dataset = Dataset(out)
    assert dataset.classes == list(SIZES)
    for split in ("train", "val"):
        for key, sample in dataset.samples(split).items():
            assert dataset.classes[sample.label] == key.split("/")[0]
    assert report["split"] is None and report["samples"] == 22
    assert {name: (entry["samples"], entry["shards"]) for name, entry in report["splits"].items()} == {
        "train": (16, 2),
        "val": (6, 2),
    }
    assert tool.run("verify", out).code == 0
    assert "already complete" in tool.build(source, out, *words).out


def test_the_bytes_do_not_depend_on_threads_parts_or_the_form_of_the_source(tool, source, tmp_path):
    words = ("--val-fraction", "0.25", *SMALL)
    tool.build(source, tmp_path / "once", *words)
    expected = contents(tmp_path / "once")
    tool.build(source, tmp_path / "again", *words, "--jobs", "1")
    assert contents(tmp_path / "again") == expected
    for part in ("1/3", "0/3", "2/3"):
        tool.build(source, tmp_path / "parts", *words, "--part", part)
    assert not (tmp_path / "parts" / "dataset.json").exists()
    tool.build(source, tmp_path / "parts", *words, "--finish")
    assert contents(tmp_path / "parts") == expected
    shutil.make_archive(str(tmp_path / "images"), "tar", source)
    tool.build(tmp_path / "images.tar", tmp_path / "archive", *words)
    assert split_keys(tmp_path / "archive", "val") == split_keys(tmp_path / "once", "val")


def test_a_missing_part_is_named(tool, source, tmp_path):
    words = ("--val-fraction", "0.25", *SMALL)
    tool.build(source, tmp_path / "out", *words, "--part", "0/2")
    text = tool.refuse(source, tmp_path / "out", *words, "--finish")
    assert "1 of 2 shards are missing" in text and "Missing parts of 2: 1" in text


def test_the_seed_and_the_fraction_choose_the_samples(tool, source, tmp_path):
    tool.build(source, tmp_path / "out", "--val-fraction", "0.25", *SMALL)
    text = tool.refuse(source, tmp_path / "out", "--val-fraction", "0.25", "--seed", "1", *SMALL)
    assert "differs" in text
    before = split_keys(tmp_path / "out", "val")
    tool.build(source, tmp_path / "out", "--val-fraction", "0.25", "--seed", "1", "--overwrite", *SMALL)
    train, val = split_keys(tmp_path / "out", "train", "val")
    assert [val] != before and train | val == keys_of(source)
    # Both splits are replaced together, so the recipe may change too.
    tool.build(source, tmp_path / "out", "--val-fraction", "0.5", "--size", "16", "--overwrite")
    assert Dataset(tmp_path / "out").spec["shape"] == [3, 16, 16]
    assert len(split_keys(tmp_path / "out", "val")[0]) == 12


def test_a_dry_run_shows_both_splits_and_writes_nothing(tool, source, tmp_path):
    result = tool.build(source, tmp_path / "out", "--val-fraction", "0.25", "--dry-run")
    assert "train     16 samples in 1 tar shard of 16 samples" in result.out
    assert "val       6 samples in 1 tar shard of 6 samples" in result.out
    plan = tool.build(source, tmp_path / "out", "--val-fraction", "0.25", "--dry-run", "--json").json()
    assert plan["splits"] == {"train": {"samples": 16, "shards": 1}, "val": {"samples": 6, "shards": 1}}
    assert not (tmp_path / "out").exists()


def test_bad_images_are_listed_with_their_split(tool, source, tmp_path):
    copy = tmp_path / "images"
    shutil.copytree(source, copy)
    for name in ("ant/00", "ant/01", "bee/00", "cat/00", "cat/01", "cat/02"):
        (copy / f"{name}.png").write_bytes(b"no image")
    report = tool.build(copy, tmp_path / "out", "--val-fraction", "0.25", "--max-bad", "50%", "--json", *SMALL).json()
    with open(tmp_path / "out" / "skipped.tsv", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) == report["skipped"] == 6
    counts = {name: entry["skipped"] for name, entry in report["splits"].items()}
    assert counts == {"train": 0, "val": 0} | Counter(row["split"] for row in rows)
    assert counts["val"] >= 1  # one of the three cats
    train, val = split_keys(tmp_path / "out", "train", "val")
    assert len(train) + counts["train"] == 16 and len(val) + counts["val"] == 6
    # The limit is for the whole source.
    words = ("--val-fraction", "0.25", "--max-bad", "20%", *SMALL)
    result = tool.build(copy, tmp_path / "few", *words, expect=1)
    assert "too many bad samples" in result.err and not (tmp_path / "few" / "dataset.json").exists()


def test_a_split_file_names_the_splits(tool, source, tmp_path):
    splits = {"ant": "train", "bee": "dev", "cat": "test"}
    with open(tmp_path / "splits.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "split"))
        writer.writerows((path.relative_to(source), splits[path.parent.name]) for path in source.rglob("*.png"))
    out = tmp_path / "out"
    report = tool.build(source, out, "--split-file", tmp_path / "splits.csv", "--size", "8", "--json").json()
    assert {name: entry["samples"] for name, entry in report["splits"].items()} == {"dev": 7, "test": 3, "train": 12}
    for name, split in splits.items():
        assert {key.split("/")[0] for key in Dataset(out).samples(split)} == {name}
    assert "already complete" in tool.build(source, out, "--split-file", tmp_path / "splits.csv", "--size", "8").out


def test_a_split_file_may_name_one_split_for_the_rest(tool, source, tmp_path):
    (tmp_path / "splits.csv").write_text("*,train\nant/03.png,probe\n")
    tool.build(source, tmp_path / "out", "--split-file", tmp_path / "splits.csv", "--size", "8")
    assert split_keys(tmp_path / "out", "probe") == [{"ant/03"}]
    assert len(split_keys(tmp_path / "out", "train")[0]) == 21


@pytest.mark.parametrize(
    "text, telling",
    [
        ("ant/00.png,test\n", "has no line for 'ant/01.png'"),
        ("*,train\nant/99.png,test\n", "line 2: there is no sample 'ant/99.png'"),
        ("*,train\nant/00.png,a/b\n", "--split 'a/b' is not a valid name"),
        ("*,train\nant/00.png,test\n./ant/00.png,val\n", "line 3: './ant/00.png' is already in line 2"),
        ("*,train\n../x.png,test\n", "line 2: '../x.png' is not below SOURCE"),
        ("*,train\nant/00.png,\n", "line 2: the path or the split is empty"),
        ("file,set\nant/00.png,test\n", "has no line for"),
        ("path,set,split_of\nant/00.png,test,1\n", "line 1: there is no column 'split'"),
    ],
)
def test_a_wrong_split_file_is_refused(tool, source, tmp_path, text, telling):
    (tmp_path / "splits.csv").write_text(text)
    assert telling in tool.refuse(source, tmp_path / "out", "--split-file", tmp_path / "splits.csv")
    assert not (tmp_path / "out").exists()


def test_a_changed_split_file_is_another_job(tool, source, tmp_path):
    words = ("--split-file", tmp_path / "splits.csv", *SMALL)
    (tmp_path / "splits.csv").write_text("*,train\nant/03.png,test\nant/04.png,test\n")
    tool.build(source, tmp_path / "out", *words, "--part", "0/2")
    (tmp_path / "splits.csv").write_text("*,train\nant/05.png,test\nant/04.png,test\n")
    assert "split_file" in tool.refuse(source, tmp_path / "out", *words, "--part", "1/2")


def test_another_split_joins_with_the_same_classes(tool, source, tmp_path):
    out = tmp_path / "out"
    tool.build(source, out, "--val-fraction", "0.25", "--size", "8")
    other = tmp_path / "other"
    shutil.copytree(source / "bee", other / "bee")
    tool.build(other, out, "--split", "test", "--size", "8")
    assert {sample.label for sample in Dataset(out).samples("test").values()} == {1}
    assert sorted(json.loads((out / "dataset.json").read_text())["splits"]) == ["test", "train", "val"]
    text = tool.refuse(source, out, "--val-fraction", "0.25", "--size", "16", "--overwrite")
    assert "holds another dataset" in text
