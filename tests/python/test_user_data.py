# SPDX-License-Identifier: Apache-2.0
"""Nothing that precache did not write is deleted, replaced or written through, whatever lies in OUT."""

import os
import shutil

import pytest

import images
from tool import EXTENSIONS, differing, files, finish, snapshot

pytest_plugins = ("tool_fixtures",)

OPTIONS = ("--size", "8", "--shards", "2")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(6):
        images.draw_unique(folder / f"class{number % 2}" / f"{number:02}.png", number)
    return folder


@pytest.fixture
def victim(tmp_path):
    """A folder of the user's, elsewhere."""
    folder = tmp_path / "victim"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id").write_text("key")
    (folder / "thesis").write_text("text")
    # Names that a work folder has, too.
    (folder / "train").mkdir()
    for name in ("job.json", "listing", "train-000000.tar.json"):
        (folder / name).write_text("precious")
        (folder / "train" / name).write_text("precious")
    return folder


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refuse(tool, *arguments):
    result = tool.run(*arguments, "--quiet", expect=2)
    assert result.err.startswith("precache: ")
    return result.err


# --- links in the work folder -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--overwrite",), ("--part", "0/2")], ids=" ".join)
@pytest.mark.parametrize("place", [".precache", ".precache/train"])
def test_a_build_follows_no_link_of_its_work_folder(tool, source, victim, tmp_path, place, options):
    out = tmp_path / "out"
    (out / place).parent.mkdir(parents=True)
    (out / place).symlink_to(victim)
    before = everything(victim)
    assert "symbolic link" in refuse(tool, "build", source, out, *OPTIONS, *options)
    assert everything(victim) == before
    (out / place).unlink()
    tool.build(source, out, *OPTIONS)


@pytest.mark.parametrize("options", [(), ("--overwrite",)], ids=" ".join)
def test_a_finished_dataset_survives_a_link_of_its_work_folder(tool, source, tmp_path, options):
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS)
    (out / ".precache").mkdir()
    (out / ".precache" / "train").symlink_to("../..")
    before = snapshot(out)
    assert "symbolic link" in refuse(tool, "build", source, out, *OPTIONS, *options)
    assert snapshot(out) == before


@pytest.mark.parametrize("place", [".precache", ".precache/.convert"])
def test_a_conversion_follows_no_link_of_its_work_folder(tool, source, victim, tmp_path, place):
    tool.build(source, tmp_path / "built", *OPTIONS)
    out = tmp_path / "out"
    (out / place).parent.mkdir(parents=True)
    (out / place).symlink_to(victim)
    before = everything(victim)
    for options in ((), ("--overwrite",)):
        assert "symbolic link" in refuse(tool, "convert", tmp_path / "built", out, "--format", "hdf5", *options)
    assert everything(victim) == before


def test_foreign_files_in_a_work_folder_are_left_alone(tool, source, victim, tmp_path):
    """A downloaded archive may hold anything there, links among it."""
    out = tmp_path / "out"
    work = out / ".precache" / "train"
    work.mkdir(parents=True)
    (work / "notes").write_text("precious")
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "file").write_text("precious")
    (work / "link").symlink_to(victim)
    (work / "unpacked.host.1.2.0123456789abcdef").symlink_to(victim)
    (work / "unpacked.XXXXXX").mkdir()
    (work / "unpacked.XXXXXX" / "file").write_text("precious")
    before = everything(victim)
    kept = {name: data for name, data in everything(out).items() if "precious" in data.decode()}
    tool.build(source, out, *OPTIONS)
    tool.build(source, out, *OPTIONS, "--seed", "1", "--overwrite")
    assert everything(victim) == before
    assert everything(out).items() >= kept.items()
    assert (work / "link").is_symlink()
    tool.run("verify", out)  # what is left there does not count as unfinished work


@pytest.mark.parametrize("name", ["dataset.json.tmp", "skipped.tsv.tmp", ".precache/train/job.json.tmp"])
def test_a_link_of_a_temporary_name_is_not_written_through(tool, source, tmp_path, name):
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("text")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(precious)
    tool.build(source, out, *OPTIONS)
    assert precious.read_text() == "text"
    assert not (out / "dataset.json").is_symlink()


# --- a source that lies in OUT ----------------------------------------------------------------------------------------


@pytest.fixture
def built(tool, source, tmp_path):
    tool.build(source, tmp_path / "built", *OPTIONS)
    return tmp_path / "built"


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_conversion_does_not_overwrite_what_links_lead_to(tool, built, tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in built.iterdir():
        link(path, elsewhere / path.name)
    before = snapshot(built)
    for out, shards in ((built, elsewhere), (elsewhere, built)):
        text = refuse(tool, "convert", shards, out, "--format", "tfrecord", "--overwrite")
        assert f"is also a file in OUT '{out}'" in text
    assert snapshot(built) == before


def test_a_pattern_that_includes_out_is_refused(tool, source, tmp_path):
    for name in ("a", "b"):
        tool.build(source, tmp_path / name, *OPTIONS)
        (tmp_path / name / "dataset.json").unlink()
    before = snapshot(tmp_path / "b")
    for options in (("convert", "--format", "hdf5"), ("pack",)):
        pattern = f"{tmp_path}/{{a,b}}/train-*.tar"
        refuse(tool, options[0], pattern, tmp_path / "b", *options[1:], "--overwrite")
        assert snapshot(tmp_path / "b") == before


@pytest.mark.parametrize("command", [("build", "--size", "8"), ("pack",)], ids=["build", "pack"])
def test_standard_input_from_out_is_refused(tool, source, tmp_path, command):
    out = tmp_path / "out"
    tool.run("pack", source, out, "--quiet")
    before = snapshot(out)
    with open(out / "train-000000.tar", "rb") as shard:
        process = tool.start(command[0], "-", out, *command[1:], "--overwrite", "--quiet", stdin=shard)
        result = finish(process)
    assert result.code == 2, result.err
    assert snapshot(out) == before


def test_hard_links_to_packed_shards_are_refused(tool, source, tmp_path):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    tool.run("pack", source, out, "--quiet")
    elsewhere.mkdir()
    os.link(out / "train-000000.tar", elsewhere / "x.tar")
    before = snapshot(out)
    text = refuse(tool, "pack", elsewhere / "x.tar", out, "--overwrite")
    assert "is also a file in OUT" in text
    assert snapshot(out) == before


# --- foreign files in OUT ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS.values())
def test_overwrite_does_not_delete_foreign_shards(tool, source, built, tmp_path, extension):
    out = tmp_path / "out"
    out.mkdir()
    for number in (0, 7):
        (out / f"train-{number:06}.{extension}").write_text("precious")
    before = snapshot(out)
    for command in (
        ("build", source, out, *OPTIONS),
        ("convert", built, out, "--format", "tar"),
        ("pack", source, out),
    ):
        for options in ((), ("--overwrite",)):
            text = refuse(tool, *command, *options)
            assert f"refusing to replace '{out}/train-000000.{extension}'" in text
            assert "--overwrite" not in text and "remove" not in text
            assert snapshot(out) == before


def test_overwrite_keeps_a_foreign_shard_next_to_its_own(tool, source, built):
    (built / "train-000009.tar").write_text("precious")
    before = snapshot(built)
    assert "train-000009.tar" in refuse(tool, "build", source, built, *OPTIONS, "--seed", "1", "--overwrite")
    assert snapshot(built) == before


def test_a_manifest_cannot_have_other_files_deleted(tool, source, built):
    """One that was edited, or came with a download, lists another file as a shard."""
    (built / "thesis.doc").write_text("precious")
    text = (built / "dataset.json").read_text()
    (built / "dataset.json").write_text(text.replace("train-000000.tar", "thesis.doc"))
    (built / "train-000000.tar").unlink()
    tool.build(source, built, *OPTIONS, "--overwrite")
    assert (built / "thesis.doc").read_text() == "precious"


@pytest.mark.parametrize("name", ["skipped.tsv", "classes.txt"])
def test_files_that_only_share_a_name_with_ours_are_kept(tool, source, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("precious\n")
    before = snapshot(out)
    text = refuse(tool, "pack", source, out, "--overwrite")
    assert f"refusing to replace '{out / name}'" in text
    assert snapshot(out) == before
    if name == "skipped.tsv":
        assert f"refusing to replace '{out / name}'" in refuse(tool, "build", source, out, *OPTIONS, "--overwrite")
    assert snapshot(out) == before


# --- --overwrite that was interrupted ---------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [(), ("--overwrite",)], ids=["without", "with"])
def test_an_interrupted_overwrite_continues_with_and_without_the_option(tool, interference, source, tmp_path, again):
    """Killed at each call that removes or renames something."""
    first = (*OPTIONS, "--jobs", "1")
    second = ("--size", "8", "--shards", "3", "--seed", "4", "--jobs", "1")
    old, new = tmp_path / "old", tmp_path / "new"
    tool.build(source, old, *first)
    tool.build(source, new, *second)
    for step in range(100):
        out = tmp_path / "out"
        shutil.copytree(old, out)
        env = interference.kill("unlink,rename", path=out, after=step)
        result = finish(tool.start("build", source, out, "--quiet", *second, "--overwrite", env=env))
        if result.code == 0:
            assert step > 8
            break
        tool.build(source, out, *second, *(again if (out / ".precache/train/job.json").exists() else ("--overwrite",)))
        assert differing(files(out), files(new)) == [], f"after a kill at call {step}"
        shutil.rmtree(out)
    assert result.code == 0


@pytest.mark.parametrize("again", [(), ("--overwrite",)], ids=["without", "with"])
def test_an_interrupted_overwrite_of_two_splits_continues(tool, interference, source, tmp_path, again):
    built, old, new = tmp_path / "built", tmp_path / "old", tmp_path / "new"
    for split in ("train", "val"):
        tool.build(source, built, *OPTIONS, "--split", split)
    tool.run("convert", built, old, "--quiet", "--shards", "1")
    options = ("--format", "hdf5", "--jobs", "1")
    tool.run("convert", built, new, "--quiet", *options)
    for step in range(100):
        out = tmp_path / "out"
        shutil.copytree(old, out)
        env = interference.kill("unlink,rename", path=out, after=step)
        result = finish(tool.start("convert", built, out, "--quiet", *options, "--overwrite", env=env))
        if result.code == 0:
            assert step > 8
            break
        begun = (out / ".precache/.convert/job.json").exists()
        tool.run("convert", built, out, "--quiet", *options, *(again if begun else ("--overwrite",)))
        assert differing(files(out), files(new)) == [], f"after a kill at call {step}"
        shutil.rmtree(out)
    assert result.code == 0


def test_a_split_whose_shards_are_lost_is_made_again(tool, interference, source, tmp_path):
    """Its manifest must not pass for a finished dataset while it is made again."""
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS)
    whole = files(out)
    for path in out.glob("train-*"):
        path.unlink()
    env = interference.kill("pwrite", path=".part")
    finish(tool.start("build", source, out, "--quiet", *OPTIONS, "--overwrite", env=env))
    assert not (out / "dataset.json").exists()
    tool.build(source, out, *OPTIONS)
    assert differing(files(out), whole) == []


def test_overwrite_lists_the_source_again(tool, source, tmp_path):
    """Files that were added after an interrupted build began are not ignored silently."""
    changed = tmp_path / "source"
    shutil.copytree(source, changed)
    tool.build(changed, tmp_path / "out", *OPTIONS, "--part", "0/2")
    images.draw_unique(changed / "class0" / "late.png", 99)
    tool.build(changed, tmp_path / "out", *OPTIONS, "--overwrite")
    tool.build(changed, tmp_path / "whole", *OPTIONS)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []
