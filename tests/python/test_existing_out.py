# SPDX-License-Identifier: Apache-2.0
"""An existing OUT is resumed, left alone or replaced on request, and a refused command never changes it."""

import json
import shutil
import signal
import tarfile

import google_crc32c
import pytest

import images
from reference import ODD, SMALL, Recipe
from shards import FORMATS, Dataset
from tool import EXTENSIONS, differing, files, finish, snapshot

pytest_plugins = ("tool_fixtures",)

OPTIONS = (*SMALL.options(), "--shards", "3")
NOT_ORIENTED = (*Recipe(size=(16, 20), fit="stretch", exif="ignore").options(), "--shards", "3")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(12):
        images.draw_unique(folder / f"class{number % 3}" / f"{number:02}.png", number)
    return folder


@pytest.fixture(scope="module")
def other_source(tmp_path_factory):
    """Other images of the same classes, one of which is bad."""
    folder = tmp_path_factory.mktemp("other")
    for number in range(9):
        images.draw_unique(folder / f"class{number % 3}" / f"{number:02}.jpg", 50 + number)
    (folder / "class0" / "bad.png").write_bytes(b"no image")
    return folder


@pytest.fixture
def finished(tool, source, tmp_path):
    """An OUT with a finished split."""
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS)
    return out


@pytest.fixture
def unfinished(tool, source, tmp_path):
    """An OUT with one of two parts."""
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS, "--part", "0/2")
    return out


def assert_refused_untouched(tool, source, out, *options, expect=2):
    before = snapshot(out)
    text = tool.refuse(source, out, *options, expect=expect)
    assert snapshot(out) == before
    return text


# --- finished ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_same_build_again_does_nothing(tool, source, tmp_path, file_format):
    options = (*OPTIONS, "--format", file_format)
    tool.build(source, tmp_path / "out", *options)
    before = snapshot(tmp_path / "out")
    assert "already complete" in tool.build(source, tmp_path / "out", *options, "--jobs", "7", "--max-bad", "3%").out
    summary = tool.build(source, tmp_path / "out", *options, "--json").json()
    assert (summary["status"], summary["samples"], summary["converted"]) == ("complete", 12, 0)
    assert snapshot(tmp_path / "out") == before


OTHER_OPTIONS = {
    "size": ODD.options(),
    "shards": [*SMALL.options(), "--shards", "4"],
    "format": [*OPTIONS, "--format", "hdf5"],
    "seed": [*OPTIONS, "--seed", "1"],
    "shuffle": [*OPTIONS, "--no-shuffle"],
    "labels": [*OPTIONS, "--labels", "none"],
}


@pytest.mark.parametrize("options", OTHER_OPTIONS.values(), ids=OTHER_OPTIONS)
def test_a_finished_split_is_not_replaced_by_another(tool, source, finished, options):
    text = assert_refused_untouched(tool, source, finished, *options)
    assert str(finished) in text and "--overwrite" in text


def test_a_finished_split_is_not_replaced_from_another_source(tool, other_source, finished):
    assert "--overwrite" in assert_refused_untouched(tool, other_source, finished, *OPTIONS)


def test_a_finished_split_is_not_replaced_with_other_classes(tool, source, finished, tmp_path):
    (tmp_path / "classes").write_text("class0\nclass1\nclass2\nclass3\n")
    assert_refused_untouched(tool, source, finished, *OPTIONS, "--classes", tmp_path / "classes")


DIFFERENCES = {
    "size": (ODD.options(), ["recipe.size[0]: 16 in OUT, 15 here"]),
    "shards": ([*SMALL.options(), "--shards", "4"], ["shards: 3 in OUT, 4 here"]),
    "format": ([*OPTIONS, "--format", "hdf5"], ["format: tar in OUT, hdf5 here"]),
    "seed": ([*OPTIONS, "--seed", "1"], ["seed: 0 in OUT, 1 here"]),
    "shuffle": ([*OPTIONS, "--no-shuffle"], ["shuffled: true in OUT, false here"]),
    "exif": (NOT_ORIENTED, ["recipe.exif: apply in OUT, ignore here"]),
    "pixels": ([*OPTIONS, "--max-pixels", "5000"], ["max_pixels: 178956970 in OUT, 5000 here"]),
    "two": ([*OPTIONS, "--seed", "1", "--format", "hdf5"], ["seed: 0 in OUT, 1 here", "format: tar in OUT"]),
    "labels": ([*OPTIONS, "--labels", "none"], ["classes: 3 in OUT, 0 here", "other sizes or labels"]),
}


@pytest.mark.parametrize(("options", "expected"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_refusal_names_each_field_that_differs(tool, source, finished, options, expected):
    text = tool.refuse(source, finished, *options)
    message = text.splitlines()[0]
    assert "already holds a finished split 'train' that differs: " in message
    assert all(part in message for part in expected), message
    if options[: len(OPTIONS)] == list(OPTIONS):
        assert "recipe.size" not in message and "shards" not in message.split("differs: ")[1]


@pytest.mark.parametrize("command", ["build", "pack"])
def test_the_refusal_names_new_and_missing_samples(tool, source, tmp_path, command):
    copy, out = tmp_path / "copy", tmp_path / "out"
    shutil.copytree(source, copy)
    (copy / "class0" / "bad.png").write_bytes(b"no image")  # skipped, so not in the shards
    words = (command, copy, out, "--quiet", *(OPTIONS if command == "build" else ()))
    tool.run(*words, *(["--max-bad", "50%"] if command == "build" else []))
    images.draw_unique(copy / "class1" / "new.png", 99)
    text = tool.run(*words, expect=2).err
    assert "differs: 1 sample is new in the source: 'class1/new.png'\n" in text
    images.draw_unique(copy / "class2" / "newer.png", 98)
    assert "2 samples are new in the source, such as 'class1/new.png'" in tool.run(*words, expect=2).err
    (copy / "class1" / "new.png").unlink()
    (copy / "class0" / "00.png").unlink()
    text = tool.run(*words, expect=2).err
    assert (
        "1 sample is new in the source: 'class2/newer.png'; 1 sample is missing from the source: 'class0/00'\n" in text
    )


def test_the_refusal_of_a_split_of_another_recipe_names_the_field(tool, source, finished):
    text = tool.refuse(source, finished, *NOT_ORIENTED, "--split", "val")
    assert "holds another dataset: recipe.exif: apply in OUT, ignore here\n" in text


def test_the_refusal_of_a_conversion_names_the_field(tool, finished, tmp_path):
    words = ("convert", finished, tmp_path / "converted", "--quiet")
    tool.run(*words)
    assert "differs: shards: 3 in OUT, 2 here\n" in tool.run(*words, "--shards", "2", expect=2).err
    text = tool.run(*words, "--dtype", "float32", expect=2).err
    assert "differs: recipe.dtype: uint8 in OUT, float32 here\n" in text


def test_as_many_shards_of_other_sizes_are_another_split(tool, tmp_path):
    for number in range(5):
        path = tmp_path / "source" / "class" / f"{number}.png"
        images.draw_unique(path, number)
        path.write_bytes(path.read_bytes().ljust(4000, b"\0"))
    words = ("pack", tmp_path / "source", tmp_path / "out", "--format", "tfrecord", "--quiet", "--shard-size")
    tool.run(*words, "14K")  # three images and two
    assert (
        "differs: shards[0]: 3 in OUT, 4 here; shards[1]: 2 in OUT, 1 here\n" in tool.run(*words, "18K", expect=2).err
    )
    assert "already complete" in tool.run(*words, "14K").out


# --- unfinished -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OTHER_OPTIONS.values(), ids=OTHER_OPTIONS)
def test_an_unfinished_build_is_not_continued_by_another(tool, source, unfinished, options):
    text = assert_refused_untouched(tool, source, unfinished, *options)
    assert str(unfinished) in text and "--overwrite" in text


def test_the_refusal_of_an_unfinished_build_names_the_option(tool, source, unfinished):
    text = tool.refuse(source, unfinished, *OPTIONS, "--seed", "1", "--max-pixels", "5000")
    assert "seed: 0 in OUT, 1 here" in text and "max_pixels: 178956970 in OUT, 5000 here" in text
    assert "format" not in text


def test_jobs_and_tolerance_are_not_part_of_the_identity(tool, source, unfinished, tmp_path):
    tool.build(source, unfinished, *OPTIONS, "--jobs", "1", "--max-bad", "7%", "--on-error", "fail")
    tool.build(source, tmp_path / "whole", *OPTIONS)
    assert differing(files(unfinished), files(tmp_path / "whole")) == []


def test_overwrite_discards_an_unfinished_build(tool, source, unfinished, tmp_path):
    options = (*SMALL.options(), "--shards", "2", "--format", "tfrecord")
    tool.build(source, unfinished, *options, "--overwrite")
    tool.build(source, tmp_path / "whole", *options)
    assert differing(files(unfinished), files(tmp_path / "whole")) == []


# --- third-party ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS.values())
def test_third_party_shards_are_not_touched(tool, source, tmp_path, extension):
    out = tmp_path / "out"
    out.mkdir()
    (out / f"train-000007.{extension}").write_bytes(b"precious")
    text = assert_refused_untouched(tool, source, out, *OPTIONS)
    assert f"train-000007.{extension}" in text


def test_other_files_next_to_the_shards_are_left_alone(tool, source, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    others = {"notes.txt": b"precious", "train-notes.tar": b"1", "val-000000.tar": b"2", "train.tar": b"3"}
    for name, data in others.items():
        (out / name).write_bytes(data)
    tool.build(source, out, *OPTIONS, "--overwrite")
    assert files(out).items() >= others.items()
    assert len(files(out)) == len(others) + 4  # 3 shards and the manifest


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1}', '{"version": 99}', "\0"], ids=repr)
@pytest.mark.parametrize("options", [(), ("--overwrite",)], ids=["plain", "overwrite"])
def test_an_invalid_manifest_is_not_touched(tool, source, tmp_path, text, options):
    out = tmp_path / "out"
    out.mkdir()
    (out / "dataset.json").write_text(text)
    before = snapshot(out)
    result = finish(tool.start("build", source, out, "--quiet", *OPTIONS, *options))
    assert result.code in (4, 5)
    assert result.err.startswith("precache: ") and str(out / "dataset.json") in result.err
    assert snapshot(out) == before


@pytest.mark.parametrize("name", ["job.json", "plan.*", "train-000000.tar.json"])
def test_the_error_for_a_damaged_work_folder_names_the_file(tool, source, unfinished, name):
    (path,) = (unfinished / ".precache" / "train").glob(name)
    path.write_bytes(path.read_bytes()[:-5])
    assert str(path) in assert_refused_untouched(tool, source, unfinished, *OPTIONS, expect=4)
    tool.build(source, unfinished, *OPTIONS, "--overwrite")


def test_a_shard_that_was_removed_is_built_again(tool, source, unfinished, tmp_path):
    (unfinished / "train-000000.tar").unlink()
    tool.build(source, unfinished, *OPTIONS)
    tool.build(source, tmp_path / "whole", *OPTIONS)
    assert differing(files(unfinished), files(tmp_path / "whole")) == []


# --- splits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_splits(tool, other_source, finished):
    tool.build(other_source, finished, *OPTIONS, "--split", "val", "--max-bad", "50%")
    return finished


def test_overwrite_replaces_only_its_split(tool, source, two_splits):
    names, times = snapshot(two_splits)
    tool.build(source, two_splits, *SMALL.options(), "--shards", "2", "--seed", "5", "--overwrite")
    new_names, new_times = snapshot(two_splits)
    kept = [name for name in names if name.startswith("val-")]
    assert len(kept) == 3 and all(new_times[name] == times[name] for name in kept)
    assert new_names["skipped.tsv"] == names["skipped.tsv"]
    manifest = json.loads(new_names["dataset.json"])
    assert manifest["splits"]["val"] == json.loads(names["dataset.json"])["splits"]["val"]
    listed = [shard["file"] for shard in manifest["splits"]["train"]["shards"]]
    assert listed == sorted(path.name for path in two_splits.glob("train-*")) and len(listed) == 2


def test_a_split_of_another_recipe_is_refused(tool, source, finished):
    assert "one format and recipe" in assert_refused_untouched(tool, source, finished, *ODD.options(), "--split", "val")


def test_a_refused_overwrite_removes_nothing(tool, source, two_splits):
    assert_refused_untouched(tool, source, two_splits, *ODD.options(), "--split", "val", "--overwrite")


def test_an_overwrite_from_an_empty_source_removes_nothing(tool, finished, tmp_path):
    (tmp_path / "empty").mkdir()
    assert_refused_untouched(tool, tmp_path / "empty", finished, *OPTIONS, "--overwrite")


def test_an_overwrite_with_an_unknown_class_removes_nothing(tool, source, finished, tmp_path):
    (tmp_path / "classes").write_text("class0\nclass1\n")
    assert_refused_untouched(tool, source, finished, *OPTIONS, "--overwrite", "--classes", tmp_path / "classes")


def test_overwrite_and_finish_together_remove_nothing(tool, source, finished):
    assert_refused_untouched(tool, source, finished, *OPTIONS, "--overwrite", "--finish")


def assert_manifest_is_true(out):
    """If there is a manifest, all shards that it lists exist and are complete."""
    if not (out / "dataset.json").exists():
        return
    for split in Dataset(out).manifest["splits"].values():
        for shard in split["shards"]:
            assert f"{google_crc32c.value((out / shard['file']).read_bytes()):08x}" == shard["crc32c"]


def test_a_kill_at_any_moment_of_an_overwrite_leaves_a_valid_manifest(
    tool, interference, source, two_splits, tmp_path, quick_folder
):
    options = (*SMALL.options(), "--shards", "2", "--seed", "5", "--overwrite")
    shutil.copytree(two_splits, tmp_path / "replaced")
    tool.build(source, tmp_path / "replaced", *options)
    final = files(tmp_path / "replaced")
    for step in range(10_000):
        out = quick_folder / str(step)
        shutil.copytree(two_splits, out)
        env = interference.kill("mkdir,pwrite,fsync,rename,unlink", path=out, after=step)
        result = finish(tool.start("build", source, out, "--quiet", *options, env=env))
        if result.code == 0:
            break
        assert result.code == -signal.SIGKILL
        assert_manifest_is_true(out)
        tool.build(source, out, *options)
        assert differing(files(out), final) == [], f"after a kill before call {step}"
        shutil.rmtree(out)
    assert step > 20


def label(shard, key):
    with tarfile.open(shard) as archive:
        return int(archive.extractfile(f"{key}.cls").read())


def test_a_split_adopts_the_classes_of_the_first(tool, finished, tmp_path):
    images.draw_unique(tmp_path / "late" / "class2" / "x.png", 77)
    tool.build(tmp_path / "late", finished, *SMALL.options(), "--split", "val")
    assert label(finished / "val-000000.tar", "class2/x") == 2
    assert Dataset(finished).classes == ["class0", "class1", "class2"]


def test_a_split_with_a_class_that_the_first_does_not_know_is_refused(tool, finished, tmp_path):
    images.draw_unique(tmp_path / "late" / "class9" / "x.png", 77)
    assert "class9" in assert_refused_untouched(tool, tmp_path / "late", finished, *SMALL.options(), "--split", "val")


def test_a_split_cannot_number_the_classes_differently(tool, source, finished, tmp_path):
    (tmp_path / "classes").write_text("class2\nclass1\nclass0\n")
    options = (*OPTIONS, "--split", "val", "--classes", tmp_path / "classes")
    assert_refused_untouched(tool, source, finished, *options)


def test_classes_and_labels_agree_when_the_first_split_had_none(tool, source, tmp_path):
    """The build is refused or the manifest has the names; labels without names would be wrong."""
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS, "--labels", "none")
    result = finish(tool.start("build", source, out, "--quiet", *OPTIONS, "--split", "val"))
    assert result.code == 2 or Dataset(out).classes == ["class0", "class1", "class2"]


@pytest.mark.parametrize("split", ["lock", "prepare.lock", "dataset", "a-000000", "x" * 100])
def test_a_split_may_have_any_plain_name(tool, source, tmp_path, split):
    tool.build(source, tmp_path / "out", *OPTIONS, "--split", split)
    assert files(tmp_path / "out").keys() == {"dataset.json", *(f"{split}-00000{number}.tar" for number in range(3))}


def test_an_unfinished_build_is_not_finished_from_another_source(tool, source, other_source, tmp_path):
    out = tmp_path / "out"
    tool.build(source, out, *OPTIONS, "--part", "0/1")
    text = assert_refused_untouched(tool, other_source, out, *OPTIONS, "--finish")
    assert "another source" in text
    assert_refused_untouched(tool, other_source, out, *OPTIONS)


def test_a_build_resumes_with_the_same_source_at_another_path(tool, source, unfinished, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(source)
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, copy_function=shutil.copy2)
    tool.build(copy, unfinished, *OPTIONS, "--part", "1/2")
    tool.build(elsewhere, unfinished, *OPTIONS, "--finish")
    tool.build(source, tmp_path / "whole", *OPTIONS)
    assert differing(files(unfinished), files(tmp_path / "whole")) == []


def test_a_split_begun_before_another_keeps_its_classes(tool, source, tmp_path):
    """The second split is finished first and has fewer classes, which the first must not take over."""
    out = tmp_path / "out"
    fewer = tmp_path / "fewer"
    first_class = min(path for path in source.iterdir() if path.is_dir())
    shutil.copytree(first_class, fewer / first_class.name)
    tool.build(source, out, *OPTIONS, "--part", "0/1")
    tool.build(fewer, out, *OPTIONS, "--split", "val")
    assert "other classes" in assert_refused_untouched(tool, source, out, *OPTIONS)


def test_another_limit_of_pixels_is_another_build(tool, source, finished):
    assert_refused_untouched(tool, source, finished, *OPTIONS, "--max-pixels", "100000000")


def test_overwrite_removes_nothing_if_the_new_split_does_not_fit_the_disk(tool, source, small_disk):
    out = small_disk(400) / "out"
    tool.build(source, out, *OPTIONS)
    text = assert_refused_untouched(tool, source, out, "--size", "512", "--overwrite", expect=3)
    assert "free" in text
