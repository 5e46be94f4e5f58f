# SPDX-License-Identifier: Apache-2.0
"""`precache index` and other commands do not run in one folder at the same time."""

import pytest

import images
from tool import files, finish

pytest_plugins = ("tool_fixtures",)


@pytest.fixture
def source(tmp_path):
    for number in range(6):
        path = tmp_path / "images" / "a" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        images.picture("RGB", 9, 9, number).save(path)
    return tmp_path / "images"


def test_no_index_is_written_while_another_process_writes(tool, interference, source, tmp_path):
    out = tmp_path / "out"
    tool.build(source, out, "--size", "8")
    before = files(out)
    val = ("build", source, out, "--quiet", "--size", "8", "--split", "val")
    with interference.hold(tool, *val, calls="fsync", path=out) as (process, gate):
        for path in (out, out / "train-000000.tar", out / "train-*.tar"):
            result = tool.run("index", path, expect=3)
            assert f"another process is writing to '{out}'" in result.err and "Wait" in result.err
        gate.open()
        assert finish(process).code == 0
    assert not (out / "train.wids.json").exists()
    tool.run("index", out, "--split", "train")
    assert {*files(out)} - {*before} == {"train.wids.json", "train-000000.idx", "val-000000.tar"}


def test_no_other_process_writes_while_indexes_are_written(tool, interference, source, tmp_path):
    out = tmp_path / "out"
    tool.build(source, out, "--size", "8")
    with interference.hold(tool, "index", out, calls="fsync", path=out) as (process, gate):
        assert f"another process is writing to '{out}'" in tool.run("index", out, expect=3).err
        tool.refuse(source, out, "--size", "8", "--overwrite", expect=3)
        gate.open()
        assert finish(process).code == 0
    assert {*files(out)} == {"dataset.json", "train-000000.tar", "train-000000.idx", "train.wids.json"}


def test_an_unfinished_build_is_left_alone(tool, interference, source, tmp_path):
    out = tmp_path / "out"
    tool.build(source, out, "--size", "8")
    val = ("build", source, out, "--quiet", "--size", "8", "--split", "val", "--shards", "2", "--jobs", "1")
    result = finish(tool.start(*val, env=interference.kill("rename", path=out / "val-000001.tar")))
    assert result.code == -9
    left = files(out / ".precache")
    assert left
    tool.run("index", out, "--split", "train")
    assert files(out / ".precache") == left
    tool.run(*val, "--index", "wids")
    assert (out / "val.wids.json").exists() and not (out / ".precache").exists()
    other = ("build", source, out, "--quiet", "--size", "8", "--split", "test", "--shards", "2", "--jobs", "1")
    finish(tool.start(*other, env=interference.kill("rename", path=out / "test-000001.tar")))
    tool.run(
        "build", source, out, "--quiet", "--size", "8", "--split", "more", "--index", "wids"
    )  # the folder stays locked
    assert (out / "more.wids.json").exists() and (out / ".precache" / "test").exists()
