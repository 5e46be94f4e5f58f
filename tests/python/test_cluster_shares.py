# SPDX-License-Identifier: Apache-2.0
"""A source that several machines list in shares: the plan is that of one machine, and shares that do not fit are named."""

import os
import re
import shutil

import pytest

import images
from cluster_steps import OPTIONS, work_folder
from tool import differing, files

pytest_plugins = ("tool_fixtures", "cluster_step_fixtures")


def prepare_in_shares(tool, source, out, count, *options):
    for share in reversed(range(count)):
        tool.run("build", source, out, *options, "--prepare", f"{share}/{count}")
    return tool.run("build", source, out, *options, "--prepare", "--json").json()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_folder_listed_in_shares_gives_the_same_plan(tool, source, tmp_path, whole, count):
    out = tmp_path / "out"
    prepare_in_shares(tool, source, out, count, *OPTIONS)
    tool.run("build", source, out, *OPTIONS)
    assert differing(files(out), whole) == []


@pytest.mark.parametrize("depth", [1, 3])
def test_folders_below_the_top_are_divided_into_shares(tool, tmp_path, depth):
    """SOURCE/train/class0 and so on, with files at each level and links to folders."""
    source, out = tmp_path / "source", tmp_path / "out"
    top = source.joinpath(*["train", "deep", "deeper"][:depth])
    for number in range(60):
        images.draw_unique(top / f"class{number % 20:02}" / f"{number:02}.png", number)
    for folder in {source / "train", top}:
        (folder / "notes.txt").write_text("x")
        images.draw_unique(folder / "zero.png", 100)
    (top / "link").symlink_to("class00")
    (top / "loop").symlink_to(source)
    (top / "empty").mkdir()
    in_shares = prepare_in_shares(tool, source, out, 3, *OPTIONS)
    shares = [path.stat().st_size for path in sorted(work_folder(out).glob("found-*"))]
    assert len(shares) == 3 and max(shares) < sum(shares) / 2, shares
    whole = tool.run("build", source, tmp_path / "whole", *OPTIONS, "--prepare", "--json").json()
    (plan,) = work_folder(out).glob("plan.*")
    assert plan.read_bytes() == (work_folder(tmp_path / "whole") / plan.name).read_bytes()
    for report in (in_shares, whole):
        del report["plan"]["bytes_free"]
    assert in_shares["plan"] == whole["plan"]


def test_a_csv_file_listed_in_shares_gives_the_same_plan(tool, source, tmp_path):
    table = tmp_path / "labels.csv"
    paths = sorted(path.relative_to(source) for path in source.rglob("*.png"))
    table.write_text("path,label\n" + "".join(f"{path},{number % 4}\n" for number, path in enumerate(paths)))
    options = (*OPTIONS, "--labels", table)
    tool.run("build", source, tmp_path / "whole", *options)
    prepare_in_shares(tool, source, tmp_path / "out", 3, *options)
    tool.run("build", source, tmp_path / "out", *options)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("file_format", ["tar", "tfrecord"])
def test_shards_listed_in_shares_give_the_same_plan(tool, source, tmp_path, file_format):
    packed = tmp_path / "packed"
    tool.run("pack", source, packed, "--shards", "5", "--format", file_format, "--quiet")
    tool.run("build", packed, tmp_path / "whole", *OPTIONS)
    prepare_in_shares(tool, packed, tmp_path / "out", 3, *OPTIONS)
    tool.run("build", packed, tmp_path / "out", *OPTIONS)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_a_missing_share_is_named(tool, source, tmp_path, whole):
    out = tmp_path / "out"
    for share in (0, 2, 3):
        tool.run("build", source, out, *OPTIONS, "--prepare", f"{share}/5")
    text = tool.refuse(source, out, *OPTIONS, "--prepare")
    assert "shares 1,4 of 5" in text
    other = tool.refuse(source, out, *OPTIONS, "--labels", "none", "--prepare")
    assert "shares 1,4 of 5" in other
    for share in (1, 4):
        tool.run("build", source, out, *OPTIONS, "--prepare", f"{share}/5")
    assert "other options" in tool.refuse(source, out, *OPTIONS, "--labels", "none", "--prepare")
    tool.run("build", source, out, *OPTIONS, "--prepare")
    tool.run("build", source, out, *OPTIONS)
    assert differing(files(out), whole) == []


def test_shares_of_another_number_are_named(tool, source, tmp_path, whole):
    out = tmp_path / "out"
    for share in ("0/2", "1/2", "0/3", "2/3"):
        tool.run("build", source, out, *OPTIONS, "--prepare", share)
    text = tool.refuse(source, out, *OPTIONS, "--prepare")
    assert f"'{work_folder(out)}' has 0-1 of 2, 0,2 of 3" in text and "found-I-of-N" in text
    for path in work_folder(out).glob("found-*-of-3"):
        path.unlink()
    tool.run("build", source, out, *OPTIONS, "--prepare")
    tool.run("build", source, out, *OPTIONS)
    assert differing(files(out), whole) == []


def change_a_class(folder):
    images.draw_unique(folder / "class1" / "new.png", 99)
    return "class1"


def remove_an_image(folder):
    (folder / "class2" / "05.png").unlink()
    return "class2"


def add_a_class(folder):
    images.draw_unique(folder / "class00" / "new.png", 99)
    return "source"


@pytest.mark.parametrize("below", ["", "train"])
@pytest.mark.parametrize("change", [change_a_class, remove_an_image, add_a_class])
def test_shares_of_an_earlier_state_of_a_folder_are_named(tool, source, tmp_path, change, below):
    root, out = tmp_path / "source", tmp_path / "out"
    changed = root / below
    shutil.copytree(source, changed, copy_function=shutil.copy2)
    for share in range(3):
        tool.run("build", root, out, *OPTIONS, "--prepare", f"{share}/3")
    name = change(changed)
    name = below if below and name == "source" else name
    text = tool.refuse(root, out, *OPTIONS, "--prepare")
    share = re.search(rf"share (\d) of 3 does not fit the source: '\S*{name}' has changed", text)[1]
    assert f"share {share}/3 again" in text
    prepare_in_shares(tool, root, out, 3, *OPTIONS)
    tool.run("build", root, out, *OPTIONS)
    tool.run("build", root, tmp_path / "whole", *OPTIONS)
    assert differing(files(out), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("change", ["content", "more", "fewer"])
def test_shares_of_an_earlier_state_of_shards_are_named(tool, source, tmp_path, change):
    packed, out = tmp_path / "packed", tmp_path / "out"
    tool.run("pack", source, packed, "--shards", "5", "--quiet")
    pattern = packed / "train-*.tar"
    for share in range(2):
        tool.run("build", pattern, out, *OPTIONS, "--prepare", f"{share}/2")
    victim = packed / "train-000003.tar"
    if change == "content":
        os.utime(victim, ns=(1, 1))
    elif change == "more":
        shutil.copy(victim, packed / "train-000005.tar")
    else:
        (packed / "train-000004.tar").unlink()
    text = tool.refuse(pattern, out, *OPTIONS, "--prepare")
    share = 0 if change == "fewer" else 1
    assert f"share {share} of 2 does not fit the source" in text
    assert ("train-000003.tar" in text) == (change == "content")
