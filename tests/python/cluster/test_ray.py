# SPDX-License-Identifier: Apache-2.0
"""Builds on a Ray cluster: a head and two nodes on this machine."""

import os

import pytest
from engines import OPTIONS, PARTS, WORDS, need, run_sample

from tool import differing, files

pytest_plugins = ("cluster_fixtures",)


@pytest.fixture(scope="module")
def ray_cluster(importable):
    need(packages=("ray",))
    before = os.environ.copy()
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=importable["PYTHONPATH"])
    import ray
    import ray._private.services
    from ray.cluster_utils import Cluster

    # Otherwise Ray replaces 127.0.0.1 by an address that other machines reach.
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(ray._private.services, "get_node_ip_address", lambda *_: "127.0.0.1")
    small = {"object_store_memory": 80_000_000, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, **small)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        monkeypatch.undo()
        os.environ.clear()
        os.environ.update(before)


def test_failures_and_the_loss_of_a_worker_leave_the_bytes_of_a_single_build(ray_cluster, source, whole, tmp_path):
    import precache.cluster
    from scripted_job import ScriptedJob

    script = {1: "fail", 2: "lose ray::_outcome"}
    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", script, parts=PARTS, **OPTIONS)
    seen = []
    report = precache.cluster.run_on_ray(job, progress=seen.append)
    assert report["status"] == "complete" and report["samples"] == 24
    assert all(job.attempts(part) > 1 for part in script)
    assert differing(files(tmp_path / "out"), whole) == []
    assert [each.done for each in seen] == [*range(1, PARTS + 1)]


def test_an_error_that_stays_ends_the_build_at_once(ray_cluster, source, tmp_path, every_cluster_test):
    import precache.cluster
    from scripted_job import ScriptedJob

    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", {1: "refuse"}, parts=PARTS, **OPTIONS)
    with pytest.raises(precache.InvalidArgument, match="an argument is wrong"):
        precache.cluster.run_on_ray(job, progress=False)
    assert job.attempts(1) == 1
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_the_loss_of_a_node_leaves_the_bytes_of_a_single_build(
    ray_cluster, source, whole, tmp_path, every_cluster_test
):
    import precache.cluster
    from scripted_job import ScriptedJob

    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", {3: "lose raylet"}, parts=PARTS, **OPTIONS)
    precache.cluster.run_on_ray(job, progress=False)
    assert job.attempts(3) > 1
    assert differing(files(tmp_path / "out"), whole) == []


def test_the_sample_makes_the_bytes_of_a_single_build(
    ray_cluster, source, whole_of_sample, tmp_path, monkeypatch, capsys
):
    """It connects this process, which must not be connected."""
    import precache.cluster
    import ray

    ray.shutdown()
    with pytest.raises(precache.InvalidArgument, match="ray is not connected to a cluster"):
        precache.cluster.run_on_ray(precache.cluster.Job(source, tmp_path / "out", parts=PARTS))
    words = ("--parts", 2, "--size", WORDS[1], "--address", ray_cluster.address)
    run_sample(monkeypatch, "ray_build.py", source, tmp_path / "out", *words)
    assert capsys.readouterr().out.endswith("24 samples in 1 shards, 0 skipped\n")
    assert differing(files(tmp_path / "out"), whole_of_sample) == []
