# SPDX-License-Identifier: Apache-2.0
"""Unfinished jobs in an OUT that other commands have changed since: nothing is mixed up or lost."""

import shutil

import pytest

import images
from tool import differing, files, finish, snapshot

pytest_plugins = ("tool_fixtures",)

OPTIONS = ("--size", "8", "--shards", "4", "--jobs", "1", "--quiet")


def draw(folder, first):
    for number in range(first, first + 8):
        images.draw_unique(folder / f"class{number % 2}" / f"{number:02}.png", number)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("source"), 0)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("other"), 20)


@pytest.fixture
def built(tool, other, tmp_path):
    tool.run("build", other, tmp_path / "built", *OPTIONS)
    return tmp_path / "built"


def kill_at(tool, interference, calls, path, *command, after=0):
    env = interference.kill(calls, path=path, after=after)
    assert finish(tool.start(*command, env=env)).code == -9


def kill_after_two_shards(tool, interference, *command):
    kill_at(tool, interference, "rename", "/train-000002.", *command, after=1)  # the first rename is that of the result


def test_a_job_that_another_command_has_replaced_is_not_resumed(tool, interference, source, built, tmp_path):
    out = tmp_path / "out"
    words = ("build", source, out, *OPTIONS)
    kill_after_two_shards(tool, interference, *words)
    tool.run("convert", built, out, "--quiet", "--overwrite")
    tool.run("verify", out)
    tool.run(*words, "--overwrite")
    tool.run("build", source, tmp_path / "whole", *OPTIONS)
    assert differing(files(out), files(tmp_path / "whole")) == []


def test_a_conversion_that_a_build_has_replaced_is_not_resumed(tool, interference, source, built, tmp_path):
    out = tmp_path / "out"
    words = ("convert", built, out, "--dtype", "float16", "--jobs", "1", "--quiet")
    kill_after_two_shards(tool, interference, *words)
    tool.run("build", source, out, *OPTIONS, "--overwrite")
    tool.run("verify", out)
    tool.run(*words, "--overwrite")
    tool.run(*words[:2], tmp_path / "whole", *words[3:])
    assert differing(files(out), files(tmp_path / "whole")) == []


def test_a_file_that_was_added_since_is_not_replaced(tool, interference, source, tmp_path):
    out = tmp_path / "out"
    words = ("build", source, out, *OPTIONS)
    kill_after_two_shards(tool, interference, *words)
    (out / "train-000003.tar").write_text("precious")
    assert f"refusing to replace '{out}/train-000003.tar'" in tool.run(*words, expect=2).err
    assert (out / "train-000003.tar").read_text() == "precious"
    (out / "train-000003.tar").unlink()
    (out / "train-000003.tar").symlink_to("nowhere")
    assert "refusing to replace" in tool.run(*words, expect=2).err
    (out / "train-000003.tar").unlink()
    tool.run(*words)
    tool.run("verify", out)


def test_a_damaged_split_does_not_remove_a_finished_one(tool, source, other, tmp_path):
    two, out = tmp_path / "two", tmp_path / "out"
    tool.run("build", source, two, *OPTIONS, "--split", "a")
    tool.run("build", other, two, *OPTIONS, "--split", "b")
    tool.run("convert", two, out, "--split", "a", "--shards", "8", "--quiet")
    finished = {name: data for name, data in files(out).items() if name.startswith("a-")}
    with open(two / "b-000003.tar", "r+b") as shard:
        shard.seek(700)
        shard.write(b"\xff\xff\xff")
    for _ in range(2):
        tool.run("convert", two, out, "--shards", "8", "--quiet", expect=4)
        assert (out / "dataset.json").exists()
        assert files(out).items() >= finished.items()


def test_a_split_that_another_command_finished_is_not_erased(tool, interference, source, built, tmp_path):
    out = tmp_path / "out"
    tool.run("build", source, out, *OPTIONS)
    words = ("build", source, out, *OPTIONS, "--seed", "7")
    kill_at(tool, interference, "unlink", out / "dataset.json", *words, "--overwrite")
    tool.run("convert", built, out, "--quiet", "--overwrite")
    before = snapshot(out)
    assert "finished split" in tool.run(*words, expect=2).err
    assert snapshot(out) == before


def test_out_may_be_a_link_to_a_folder(tool, source, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tool.run("build", source, tmp_path / "link", *OPTIONS)
    assert "already complete" in tool.run("build", source, tmp_path / "link/", *OPTIONS).out
    tool.run("index", tmp_path / "link")
    tool.run("verify", tmp_path / "real")


def test_new_data_in_a_pipe_is_not_ignored(tool, interference, tmp_path):
    """Names and sizes are equal, so the plans of both streams are equal, too."""
    import tarfile

    def make(name, first):
        folder = tmp_path / name
        for number in range(8):
            path = folder / f"class{number % 2}" / f"{number:02}.png"
            images.draw_unique(path, first + number)
            path.write_bytes(path.read_bytes().ljust(2000, b"\0"))
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            archive.add(folder, ".")
        return tmp_path / f"{name}.tar"

    one, two = make("one", 0), make("two", 50)
    words = ("build", "-", tmp_path / "out", *OPTIONS)
    with open(one, "rb") as stream:
        env = interference.kill("rename", path="/train-000002.", after=1)
        finish(tool.start(*words, env=env, stdin=stream))
    with open(two, "rb") as stream:
        tool.run(*words, "--overwrite", stdin=stream)
    tool.run("build", two, tmp_path / "whole", *OPTIONS)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_a_list_of_classes_that_overwrite_removes_is_refused(tool, source, tmp_path):
    out = tmp_path / "out"
    tool.run("build", source, out, *OPTIONS)
    before = snapshot(out)
    text = tool.run("build", source, out, *OPTIONS, "--classes", out / "dataset.json", "--overwrite", expect=2).err
    assert "which this build reads" in text
    assert snapshot(out) == before


def test_packed_splits_share_their_classes(tool, source, tmp_path):
    out = tmp_path / "out"
    tool.run("pack", source, out, "--quiet")
    renamed = tmp_path / "renamed"
    shutil.copytree(source, renamed)
    (renamed / "class1").rename(renamed / "zebra")
    before = snapshot(out)
    text = tool.run("pack", renamed, out, "--split", "val", "--quiet", expect=2).err
    assert "have other classes" in text
    assert "holds encoded images" in tool.run("build", source, out, *OPTIONS, "--split", "val", expect=2).err
    assert snapshot(out) == before


def test_odd_entries_in_out_are_named_before_anything_is_removed(tool, source, tmp_path):
    out = tmp_path / "out"
    tool.run("build", source, out, *OPTIONS)
    (out / "train-000001.tar").unlink()
    (out / "train-000001.tar").mkdir()
    (out / "train-000001.tar" / "file").write_text("precious")
    before = snapshot(out)
    assert "it is a folder" in tool.run("build", source, out, *OPTIONS, "--overwrite", expect=2).err
    assert snapshot(out) == before
    shutil.rmtree(out / "train-000001.tar")
    (out / "train-000001.tar").symlink_to("nowhere")  # a shard that was moved away and lost
    tool.run("build", source, out, *OPTIONS, "--overwrite")
    tool.run("verify", out)
    folder = tmp_path / "other"
    (folder / "skipped.tsv").mkdir(parents=True)
    assert "skipped.tsv" in tool.run("build", source, folder, *OPTIONS, expect=2).err
