# SPDX-License-Identifier: Apache-2.0
"""One build by several machines, of which some die, repeat themselves or come late: the files are those of one machine.

Where locks are not shared between machines, and two attempts at every step: test_no_locks.py. Kills at every call:
test_kills.py. Shares of
the listing: test_cluster_shares.py. Disks and what a part reads: test_cluster_machines.py."""

import os
import re
import shutil
import time

import pytest

from cluster_steps import OPTIONS, RETRY, work_folder
from shards import FORMATS
from tool import differing, files, finish

pytest_plugins = ("tool_fixtures", "cluster_step_fixtures")

ENGINE_VARIABLES = ("SLURM_", "OMPI_", "PMI_", "AWS_BATCH_", "CLOUD_RUN_", "JOB_", "PBS_", "LSB_", "SGE_", "PRECACHE_")


# --- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
def test_steps_make_the_files_of_one_build(tool, source, tmp_path, file_format):
    options = (*OPTIONS, "--format", file_format)
    tool.run("build", source, tmp_path / "whole", *options)
    for words in (["--prepare"], *(["--part", f"{i}/4"] for i in (3, 1, 0, 2)), ["--finish"]):
        tool.run("build", source, tmp_path / "out", *options, *words)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


@pytest.mark.parametrize(
    "options",
    ["--no-shuffle", "--keys short --seed 9", "--labels none", "--shard-size 1K --format tfrecord"],
)
def test_any_plan_is_frozen_as_one_build_makes_it(tool, source, tmp_path, options):
    words = ("--size", "8", "--max-bad", "50%", "--quiet", *options.split())
    tool.run("build", source, tmp_path / "whole", *words)
    for step in ("--prepare", "--part 0/2", "--part 1/2", "--finish"):
        tool.run("build", source, tmp_path / "out", *words, *step.split())
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_a_prepared_part_reads_neither_listings_nor_files_of_other_parts(step, source, tmp_path, whole):
    step("--prepare")
    hidden = tmp_path / "hidden"
    plan = next(work_folder(tmp_path / "out").glob("plan.*")).read_bytes()
    # The files of other parts are away, and so is the folder's listing.
    own = {path for path in source.rglob("*.png") if step_makes(step, tmp_path, path, source)}
    assert plan and own
    moved = [path for path in source.rglob("*.png") if path not in own]
    assert moved
    hidden.mkdir()
    try:
        for path in moved:
            path.rename(hidden / path.name)
        step("--part", "0/6")
    finally:
        for path in moved:
            (hidden / path.name).rename(path)
    for part in range(1, 6):
        step("--part", f"{part}/6")
    step("--finish")
    assert differing(files(tmp_path / "out"), whole) == []


def step_makes(step, tmp_path, path, source):
    """Whether shard 0 has the image: its slice of the plan names it."""
    data = next(work_folder(tmp_path / "out").glob("plan.*")).read_bytes()
    facts = int.from_bytes(data[12:16], "little")
    index = int.from_bytes(data[32:40], "little")
    offset, size = (int.from_bytes(data[index + at : index + at + 8], "little") for at in (0, 8))
    assert offset == 80 + facts  # docs/internals/plan.md
    return os.fsencode(path.relative_to(source)) in data[offset : offset + size]


def test_a_part_without_a_preparation_lists_and_says_so(tool, source, tmp_path, whole):
    out = tmp_path / "out"
    first = finish(tool.start("build", source, out, *OPTIONS, "--part", "0/2"))
    assert first.code == 0 and "--prepare" in first.err
    second = finish(tool.start("build", source, out, *OPTIONS, "--part", "1/2"))
    assert second.code == 0 and "--prepare" not in second.err
    tool.run("build", source, out, *OPTIONS, "--finish")
    assert differing(files(out), whole) == []


def test_parts_know_themselves_by_their_engine(tool, source, tmp_path, whole):
    out = tmp_path / "out"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ENGINE_VARIABLES)}
    tool.run("build", source, out, *OPTIONS, "--prepare", env=plain)
    engines = [
        {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "0"},
        {"JOB_COMPLETION_INDEX": "1", "PRECACHE_PARTS": "3"},
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"},
    ]
    for variables in engines:
        tool.run("build", source, out, *OPTIONS, "--part", "auto", env={**plain, **variables})
    refused = finish(tool.start("build", source, out, *OPTIONS, "--part", "auto", env=plain))
    assert refused.code == 2 and "SLURM_ARRAY_TASK_ID" in refused.err
    tool.run("build", source, out, *OPTIONS, "--finish", env=plain)
    assert differing(files(out), whole) == []


# --- status -----------------------------------------------------------------------------------------------------------


def test_the_status_names_missing_parts(step, status):
    assert status()["status"] == "not prepared"
    step("--prepare")
    now = status()
    assert (now["status"], now["shards"], now["shards_done"], now["samples"]) == ("prepared", 6, 0, 13)
    step("--part", "1/6")
    now = status()
    assert (now["status"], now["shards_done"], now["parts"], now["missing_parts"]) == ("running", 1, 6, "0,2-5")
    assert now["missing_shards"] == "0,2-5"
    assert status("--parts", "2")["missing_parts"] == "0-1"
    for part in (0, 2, 3, 4, 5):
        step("--part", f"{part}/6")
    assert (status()["status"], status()["missing_parts"]) == ("parts done", "")
    step("--finish")
    assert (status()["status"], status()["shards_done"]) == ("complete", 6)


def test_the_status_counts_each_split(tool, source, tmp_path):
    out = tmp_path / "out"
    options = ("--size", "8", "--shards", "3", "--max-bad", "50%", "--quiet", "--val-fraction", "0.3")

    def status(*more):
        return tool.run("build", source, out, "--status", "--json", *more).json()

    def numbers(state):
        return {name: (split["shards_done"], split["missing_shards"]) for name, split in state["splits"].items()}

    assert status("--val-fraction", "0.3")["splits"] == {}
    tool.run("build", source, out, *options, "--prepare")
    tool.run("build", source, out, *options, "--part", "1/3")
    (out / "val-000001.tar").unlink()
    now = status("--val-fraction", "0.3")
    assert numbers(now) == {"train": (1, "0,2"), "val": (0, "0-2")}
    assert (now["split"], now["shards"], now["shards_done"], now["shards_missing"]) == (None, 6, 1, 5)
    assert (now["missing_shards"], now["missing_parts"]) == ("train 0,2; val 0-2", "0-2")
    text = tool.run("build", source, out, "--status", "--val-fraction", "0.3").out
    assert re.search(r"^train +1 of 3 shards done", text, re.MULTILINE)
    for part in range(3):
        tool.run("build", source, out, *options, "--part", f"{part}/3")
    tool.run("build", source, out, *options, "--finish")
    now = status("--val-fraction", "0.3")
    assert (now["status"], now["samples"], now["shards_done"]) == ("complete", 12, 6)
    assert numbers(now) == {"train": (3, ""), "val": (3, "")}
    assert numbers(status("--split", "val")) == {"val": (3, "")}


def test_a_part_that_comes_back_after_the_end_does_not_change_the_status(
    tool, interference, source, step, status, tmp_path
):
    step("--prepare")
    out = tmp_path / "out"
    with interference.hold(
        tool, "build", source, out, *OPTIONS, "--part", "1/2", calls="pwrite", path="train-000001.tar."
    ) as (process, gate):
        for part in ("0/2", "1/2"):
            step("--part", part)
        step("--finish")
        before = status()
        assert (before["status"], before["shards_done"], before["missing_shards"]) == ("complete", 6, "")
        gate.open()
        finish(process)
    step("--part", "1/2")
    assert status() == before


@pytest.mark.parametrize("path", ["/job.json", ".precache/train", "/parts"])
def test_a_status_that_meets_the_end_of_the_job_sees_the_dataset(tool, interference, source, step, tmp_path, path):
    """The last step removes the work folder while the status reads it."""
    step("--part", "0/1")
    words = ("--status", "--json")
    with interference.hold(tool, "build", source, tmp_path / "out", *words, path=path) as (process, gate):
        step("--finish")
        gate.open()
        result = finish(process)
    assert result.code == 0, result.err
    now = result.json()
    assert (now["status"], now["shards_done"], now["missing_shards"]) == ("complete", 6, "")


def test_watching_ends_when_all_parts_are_done(tool, source, tmp_path, step):
    step("--prepare")
    step("--part", "0/2")
    words = ("--status", "--watch", "--watch-seconds", "0.1")
    with tool.start("build", source, tmp_path / "out", *words) as watch:
        assert b"3 of 6" in watch.stdout.readline()
        step("--part", "1/2")
        text = watch.communicate(timeout=60)[0]
    assert watch.returncode == 0 and b"parts done" in text
    for wrong, telling in [(words[1:2], "--watch needs --status"), (words[2:], "--watch-seconds needs --watch")]:
        assert telling in tool.run("build", source, tmp_path / "out", *wrong, expect=2).err
    assert "from 0.1" in tool.run("build", source, tmp_path / "out", *words[:-1], "0", expect=2).err


def test_finish_names_missing_parts(step, tool, source, tmp_path):
    step("--prepare")
    step("--part", "2/3")
    text = tool.refuse(source, tmp_path / "out", *OPTIONS, "--finish")
    assert "4 of 6 shards are missing" in text and re.search(r"Missing parts of 3: 0-1\b", text)
    assert "parts of 6: 0-1,3-4" in tool.refuse(source, tmp_path / "out", *OPTIONS, "--finish", "--parts", "6")


# --- faults -----------------------------------------------------------------------------------------------------------


def test_killed_parts_are_run_again_with_another_number(step, interference, whole, tmp_path):
    step("--prepare")
    for part, call in ((0, "pwrite"), (1, "fsync"), (2, "rename")):
        env = interference.kill(call, path=".part" if call != "rename" else "/train-00000", after=part)
        step("--part", f"{part}/3", env=env, expect=-9)
    for part in range(4):
        step("--part", f"{part}/4")
    step("--finish")
    assert differing(files(tmp_path / "out"), whole) == []


@pytest.mark.parametrize("call", ["rename", "unlink"])
def test_a_finish_that_was_killed_is_run_again(step, interference, whole, tmp_path, call):
    step("--part", "0/1")
    path = "dataset.json" if call == "rename" else "job.json"
    step("--finish", env=interference.kill(call, path=path), expect=-9)
    step("--finish")
    assert differing(files(tmp_path / "out"), whole) == []


def test_two_attempts_at_a_part_share_its_work(tool, interference, source, step, whole, tmp_path):
    step("--prepare")
    out = tmp_path / "out"
    with interference.hold(
        tool, "build", source, out, *OPTIONS, "--part", "0/1", calls="pwrite", path="train-000002.tar."
    ) as (process, gate):
        second = step("--part", "0/1", "--json").json()
        assert second["shards_done"] == 6
        gate.open()
        assert finish(process).code == 0
    step("--finish")
    assert differing(files(out), whole) == []


def test_finish_does_not_wait_for_a_late_copy_of_a_part(tool, interference, source, step, whole, tmp_path):
    step("--prepare")
    out = tmp_path / "out"
    with interference.hold(
        tool, "build", source, out, *OPTIONS, "--part", "1/2", calls="pwrite", path="train-000001.tar."
    ) as (process, gate):
        for part in ("0/2", "1/2"):
            step("--part", part)
        step("--finish")
        assert differing(files(out), whole) == []
        gate.open()
        assert finish(process).code in (0, RETRY)
    step("--part", "1/2")
    assert differing(files(out), whole) == []


def test_a_part_that_comes_back_after_the_end_does_not_list_the_source(step, tool, source, whole, tmp_path):
    out = tmp_path / "out"
    step("--part", "0/1")
    step("--finish")
    source.rename(source.with_name("away"))
    try:
        late = finish(tool.start("build", source, out, *OPTIONS, "--part", "1/2"))
        assert late.code == 0 and "already complete" in late.out
        assert finish(tool.start("build", source, out, *OPTIONS, "--finish")).code == 0
        other = finish(tool.start("build", source, out, *OPTIONS, "--part", "1/2", "--seed", "5"))
        assert other.code == 2 and "seed: 0 in OUT, 5 here" in other.err
    finally:
        source.with_name("away").rename(source)
    again = finish(tool.start("build", source, out, *OPTIONS, "--prepare"))
    assert again.code == 0 and "the source was not read" in again.out
    assert differing(files(out), whole) == []


def test_a_source_that_changed_after_the_preparation_is_named(tool, source, tmp_path, whole):
    changed, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(source, changed, copy_function=shutil.copy2)
    tool.run("build", changed, out, *OPTIONS, "--prepare")
    victim = changed / "class1" / "04.png"
    data, times = victim.read_bytes(), victim.stat()
    victim.write_bytes(data + b"x")
    results = [finish(tool.start("build", changed, out, *OPTIONS, "--part", f"{part}/6")) for part in range(6)]
    failed = [result for result in results if result.code != 0]
    assert len(failed) == 1 and failed[0].code == RETRY, "only the part that has the file"
    assert str(victim) in failed[0].err and "has changed since it was listed" in failed[0].err
    victim.write_bytes(data)
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    tool.run("build", changed, out, *OPTIONS, "--part", "0/1")
    tool.run("build", changed, out, *OPTIONS, "--finish")
    assert differing(files(out), whole) == []


def test_two_preparations_at_once_agree(tool, interference, source, step, whole, tmp_path):
    out = tmp_path / "out"
    with interference.hold(tool, "build", source, out, *OPTIONS, "--prepare", calls="rename", path="/plan.") as (
        process,
        gate,
    ):
        second = tool.start("build", source, out, *OPTIONS, "--prepare")
        gate.open()
        assert finish(process).code == 0
        assert finish(second).code == 0
    for part in range(2):
        step("--part", f"{part}/2")
    step("--finish")
    assert differing(files(out), whole) == []


def test_a_full_disk_on_one_node_ends_its_part_alone(step, interference, whole, tmp_path):
    step("--prepare")
    result = step("--part", "0/2", env=interference.fail("fallocate,pwrite", 28, path=".part", after=1), expect=RETRY)
    assert "No space left on device" in result.err
    step("--part", "1/2")
    step("--part", "0/2")
    step("--finish")
    assert differing(files(tmp_path / "out"), whole) == []


def test_machines_with_other_clocks_do_no_harm(step, status, whole, tmp_path):
    out = tmp_path / "out"
    step("--prepare")
    step("--part", "0/2")
    day = 24 * 3600
    for number, path in enumerate(sorted(out.glob("train-*.tar"))):
        shift = time.time() + (day if number % 2 else -day)
        os.utime(path, (shift, shift))
    for path in work_folder(out).iterdir():
        os.utime(path, (1, 1))
    now = status()
    assert (now["status"], now["shards_done"], now["missing_parts"]) == ("running", 3, "1")
    assert now["seconds_left"] is None or now["seconds_left"] >= 0
    step("--part", "1/2")
    assert (status()["status"], status()["missing_parts"]) == ("parts done", "")
    step("--finish")
    assert differing(files(out), whole) == []


def test_a_job_of_an_earlier_version_is_refused(step, tool, source, whole, tmp_path):
    out = tmp_path / "out"
    step("--part", "0/2")
    job = work_folder(out) / "job.json"
    job.write_text(re.sub(r'\n *"version": 2,', "", job.read_text(), count=1))
    for words in (["--part", "1/2"], ["--finish"], ["--status"], []):
        text = tool.refuse(source, out, *OPTIONS, *words, expect=5)
        assert "an unfinished job of an earlier version" in text and "--overwrite" in text
    step("--overwrite")
    assert differing(files(out), whole) == []


def test_a_preparation_may_replace_a_dataset(step, source, tool, tmp_path, whole):
    out = tmp_path / "out"
    tool.run("build", source, out, *OPTIONS, "--seed", "4")
    step("--prepare", "--overwrite")
    assert not (out / "dataset.json").exists()
    for part in range(3):
        step("--part", f"{part}/3")
    step("--finish")
    assert differing(files(out), whole) == []


def test_skipped_samples_of_all_parts_are_reported(step, tmp_path, whole):
    for part in range(3):
        step("--part", f"{part}/3")
    step("--finish")
    assert files(tmp_path / "out")["skipped.tsv"] == whole["skipped.tsv"]
