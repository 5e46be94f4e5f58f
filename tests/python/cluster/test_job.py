# SPDX-License-Identifier: Apache-2.0
"""precache.cluster.Job with any map: a pool of processes, submitit and MPI."""

import inspect
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from engines import OPTIONS, PARTS, SAMPLES, WORDS, need

import precache
import precache.cluster
from conftest import TIMEOUT_SECONDS
from precache._keywords import BuildOptions
from tool import differing, files

pytest_plugins = ("cluster_fixtures",)


@pytest.fixture
def job(source, tmp_path):
    return precache.cluster.Job(source, tmp_path / "out", parts=PARTS, **OPTIONS)


def test_a_pool_of_processes_makes_the_bytes_of_a_single_build(job, whole, tmp_path):
    assert job.status()["status"] == "not prepared"
    assert job.prepare()["status"] == "prepared"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = [*pool.map(job.run, range(PARTS))]
    assert [result.part for result in results] == [*range(PARTS)]
    assert sum(result.images for result in results) == 24 and {result.shards for result in results} == {2}
    assert (job.status()["status"], job.status()["missing_parts"]) == ("parts done", "")
    report = job.finish()
    assert (report["status"], report["samples"]) == ("complete", 24)
    assert differing(files(tmp_path / "out"), whole) == []


def test_a_part_that_comes_after_the_end_counts_its_own_shards(source, tmp_path):
    broken = tmp_path / "source"
    shutil.copytree(source, broken)
    (broken / "class0" / "bad.png").write_bytes(b"not an image")
    job = precache.cluster.Job(broken, tmp_path / "out", parts=5, max_bad=50, **OPTIONS)
    job.prepare()
    in_time = [job.run(part) for part in range(5)]
    job.finish()
    late = [job.run(part) for part in range(5)]
    for name in ("part", "shards", "skipped", "bytes"):
        assert [getattr(each, name) for each in late] == [getattr(each, name) for each in in_time], name
    assert [each.shards for each in late] == [3, 3, 2, 2, 2] and sum(each.skipped for each in late) == 1
    assert {each.images for each in late} == {0}


def test_shares_of_the_source_are_listed_by_several_calls(source, whole, tmp_path):
    job = precache.cluster.Job(source, tmp_path / "out", parts=2, prepare_parts=3, **OPTIONS)
    for share in (2, 0):
        job.prepare_part(share)
    with pytest.raises(precache.InvalidArgument, match="shares 1 of 3"):
        job.prepare()
    job.prepare_part(1)
    assert job.prepare()["status"] == "prepared"
    for part in range(2):
        job.run(part)
    job.finish()
    assert differing(files(tmp_path / "out"), whole) == []
    with pytest.raises(precache.InvalidArgument):
        job.prepare_part(3)
    with pytest.raises(precache.InvalidArgument, match="prepare_parts cannot be combined with overwrite"):
        precache.cluster.Job(source, tmp_path / "out", parts=2, prepare_parts=3, overwrite=True)


def test_only_the_last_step_writes_indexes(source, tmp_path):
    precache.build(source, tmp_path / "whole", index="wids", **OPTIONS)
    job = precache.cluster.Job(source, tmp_path / "out", parts=2, index="wids", **OPTIONS)
    job.prepare()
    for part in range(2):
        job.run(part)
    assert job.status()["status"] == "parts done"
    job.finish()
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("kind", ["folder", "pattern"])
def test_relative_paths_are_those_of_the_program_that_makes_the_job(source, tmp_path, monkeypatch, kind):
    """Tasks of engines have other working folders."""
    monkeypatch.chdir(tmp_path)
    where = source
    if kind == "pattern":
        precache.pack(source, "packed", shards=2)
        where = Path("packed/*.tar")
    given = Path(os.path.relpath(where, tmp_path))
    Path("classes.txt").write_text("class0\nclass1\n")
    Path("splits.csv").write_text("*,all\n")
    options = {"classes": "classes.txt", "split_file": Path("splits.csv"), **OPTIONS}
    job = precache.cluster.Job(given, "out", parts=2, **options)
    precache.build(given, "whole", **options)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    job.prepare()
    for part in range(2):
        job.run(part)
    job.finish()
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("argument", ["labels", "mask", "proto"])
def test_paths_of_arguments_are_absolute(source, tmp_path, monkeypatch, argument):
    monkeypatch.chdir(tmp_path)
    job = precache.cluster.Job(source, "out", parts=2, **{argument: "some/file"})
    assert f"--{argument}={tmp_path}/some/file" in job._words
    assert "--labels=none" in precache.cluster.Job(source, "out", parts=2, labels="none")._words


@pytest.mark.parametrize("url", ["-", "s3://bucket/images", "https://example.com/a.tar"])
def test_what_is_not_a_path_stays_as_it_is(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    assert repr(precache.cluster.Job(url, "out", parts=2)) == f"Job({url!r}, {str(tmp_path / 'out')!r}, parts=2)"


def test_a_dataset_knows_its_recipe_however_it_was_built(job, source, tmp_path):
    job.prepare()
    for part in range(PARTS):
        job.run(part)
    job.finish()
    precache.build(source, tmp_path / "plain", **OPTIONS)
    in_parts, plain = (json.loads(precache.Dataset(tmp_path / out)._native.recipe) for out in ("out", "plain"))
    assert in_parts == plain == json.loads((tmp_path / "out" / "dataset.json").read_text())["recipe"]
    assert plain["size"] == [8, 8]


def test_missing_parts_are_named(job):
    job.prepare()
    for part in (0, 3):
        job.run(part)
    status = job.status()
    assert (status["status"], status["missing_parts"], status["shards_done"]) == ("running", "1-2,4-5", 4)
    with pytest.raises(precache.InvalidArgument, match="1-2,4-5"):
        job.finish()


def test_steps_can_be_repeated_and_parts_counted_again(job, source, whole, tmp_path):
    for _ in range(2):
        job.prepare()
        job.run(1)
    other = precache.cluster.Job(source, tmp_path / "out", parts=2, **OPTIONS)
    results = [other.run(part) for part in range(2)]
    assert sum(result.images for result in results) == 20  # the others were complete
    other.finish()
    assert differing(files(tmp_path / "out"), whole) == []
    other.run(0)  # late, and harmless
    assert differing(files(tmp_path / "out"), whole) == []


def test_all_parts_are_watched_in_one_bar(job):
    with ThreadPoolExecutor() as pool:
        seen = []
        watching = pool.submit(job.watch, seen.append, every=0.01)
        job.prepare()
        for part in range(PARTS):
            assert not watching.done()
            job.run(part)
        status = watching.result(TIMEOUT_SECONDS)
    assert (status["status"], status["shards_done"]) == ("parts done", 12)
    assert seen[-1].share == 1 and seen[-1].planned == 12 and seen[-1].unit == "shards"
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert any(0 < each.done < 12 and "parts missing" in each.text for each in seen), seen


def test_watching_ends_after_a_while_if_a_part_has_failed(job):
    assert job.watch(False, every=0.01, timeout=0.05)["status"] == "not prepared"
    job.prepare()
    job.run(0)
    assert job.watch(False, every=0.01, timeout=0.05)["missing_parts"] == "1-5"
    for wrong in ({"every": 0}, {"every": "1"}, {"timeout": -1}):
        with pytest.raises(precache.InvalidArgument, match=f"{min(wrong)} must be"):
            job.watch(**wrong)


def test_a_job_is_pickled_and_shows_itself(job, source, tmp_path):
    again = pickle.loads(pickle.dumps(job))
    assert repr(again) == f"Job({str(source)!r}, {str(tmp_path / 'out')!r}, parts={PARTS})"
    assert (again.parts, again.jobs) == (PARTS, 1)


@pytest.mark.parametrize("name", ["part", "finish", "prepare", "progress", "wait", "colour"])
def test_an_argument_that_a_job_does_not_take_is_refused(source, tmp_path, name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        precache.cluster.Job(source, tmp_path / "out", parts=2, **{name: 1})


@pytest.mark.parametrize("parts", [0, -1, 1_000_001])
def test_a_wrong_number_of_parts_is_refused(source, tmp_path, parts):
    with pytest.raises(precache.InvalidArgument, match="parts must be"):
        precache.cluster.Job(source, tmp_path / "out", parts=parts)


@pytest.mark.parametrize("part", [-1, PARTS])
def test_a_part_that_does_not_exist_is_refused(job, part):
    with pytest.raises(precache.InvalidArgument, match="part must be"):
        job.run(part)


def test_only_prepare_replaces_a_split(job, source, whole, tmp_path):
    precache.build(source, tmp_path / "out", size=16)
    changed = precache.cluster.Job(source, tmp_path / "out", parts=2, overwrite=True, **OPTIONS)
    changed.prepare()
    for part in range(2):
        changed.run(part)
    changed.finish()
    assert differing(files(tmp_path / "out"), whole) == []


def test_typed_options_are_those_of_build():
    steps = {"dry_run", "finish", "jobs", "part", "parts", "prepare", "progress", "status", "wait", "watch"}
    assert set(BuildOptions.__annotations__) == set(inspect.signature(precache.build).parameters) - steps - {
        "source",
        "out",
    }


def sample(name, *words, before=(sys.executable,), cwd=None):
    done = subprocess.run(
        [*before, SAMPLES / name, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_sample_for_submitit_makes_the_bytes_of_a_single_build(source, whole_of_sample, tmp_path):
    need(packages=("submitit",))
    words = ("--parts", 2, "--size", WORDS[1], "--cpus", 1, "--memory-gb", 0.1, "--cluster", "local")
    said = sample("submitit_build.py", source, tmp_path / "out", *words, cwd=tmp_path)
    assert said == "24 samples in 1 shards, made on 1 hosts\n"
    assert differing(files(tmp_path / "out"), whole_of_sample) == []


def test_the_sample_for_mpi_makes_the_bytes_of_a_single_build(source, whole_of_sample, tmp_path):
    need(programs=("mpiexec",), packages=("mpi4py",))
    as_root = ("--allow-run-as-root", "--oversubscribe")
    before = ("mpiexec", *as_root, "-n", "3", sys.executable, "-m", "mpi4py.futures")
    said = sample("mpi_build.py", source, tmp_path / "out", "--parts", 2, "--size", WORDS[1], before=before)
    assert said == "24 samples in 1 shards, 24 images in this run\n"
    assert differing(files(tmp_path / "out"), whole_of_sample) == []
