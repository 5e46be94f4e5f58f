# SPDX-License-Identifier: Apache-2.0
"""Builds on a Dask cluster of processes on this machine."""

import pytest
from engines import OPTIONS, PARTS, WORDS, need, run_sample

from tool import differing, files

pytest_plugins = ("cluster_fixtures",)


@pytest.fixture(scope="module")
def client(importable):
    need(packages=("distributed",))
    import dask
    from distributed import Client, LocalCluster

    # Workers start with this environment, which lets them import scripted_job.
    settings = {
        "distributed.nanny.pre-spawn-environ": {"PYTHONPATH": importable["PYTHONPATH"]},
        "distributed.scheduler.allowed-failures": 5,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_failures_and_the_loss_of_a_worker_leave_the_bytes_of_a_single_build(client, source, whole, tmp_path):
    import precache.cluster
    from scripted_job import ScriptedJob

    script = {1: "fail", 2: "lose python"}
    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", script, parts=PARTS, **OPTIONS)
    seen = []
    report = precache.cluster.run_on_dask(client, job, progress=seen.append)
    assert report["status"] == "complete" and report["samples"] == 24
    assert all(job.attempts(part) > 1 for part in script)
    assert differing(files(tmp_path / "out"), whole) == []
    assert [each.done for each in seen] == [*range(1, PARTS + 1)] and seen[-1].share == 1
    assert seen[-1].text.startswith(f"{PARTS}/{PARTS} parts, ")


def test_an_error_that_stays_ends_the_build_at_once(client, source, tmp_path):
    import precache.cluster
    from scripted_job import ScriptedJob

    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", {1: "refuse"}, parts=PARTS, **OPTIONS)
    with pytest.raises(precache.InvalidArgument, match="an argument is wrong"):
        precache.cluster.run_on_dask(client, job, progress=False)
    assert job.attempts(1) == 1
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_the_sample_makes_the_bytes_of_a_single_build(client, source, whole_of_sample, tmp_path, monkeypatch, capsys):
    words = ("--parts", 2, "--size", WORDS[1], "--scheduler", client.scheduler.address)
    run_sample(monkeypatch, "dask_build.py", source, tmp_path / "out", *words)
    assert capsys.readouterr().out == "24 samples in 1 shards, 0 skipped\n"
    assert differing(files(tmp_path / "out"), whole_of_sample) == []
