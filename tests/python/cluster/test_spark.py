# SPDX-License-Identifier: Apache-2.0
"""Builds on Spark: a master and two workers with different addresses, because Spark puts speculative copies only on
another host."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines import OPTIONS, PARTS, WORDS, free_ports, need, run_sample, wait_until

from tool import differing, files

pytest_plugins = ("cluster_fixtures",)

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.network.timeout": "600s",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def spark(importable, tmp_path_factory):
    need(programs=("java",), packages=("pyspark",))
    import pyspark

    folder = tmp_path_factory.mktemp("spark")
    program = Path(pyspark.__path__[0]) / "bin" / "spark-class"
    package = "org.apache.spark.deploy"
    (port,) = free_ports(1)
    before = os.environ.copy()
    os.environ.update(
        PYSPARK_PYTHON=sys.executable, PYTHONPATH=importable["PYTHONPATH"], SPARK_LOCAL_DIRS=str(folder / "local")
    )
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: (os.environ.clear(), os.environ.update(before)))

        def start(name, host, *words):
            log = stack.enter_context(open(folder / f"{host}.log", "w"))
            process = subprocess.Popen(
                [program, f"{package}.{name}", "--host", host, "--webui-port", "0", *words],
                env={**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"},
                stdout=log,
                stderr=log,
                cwd=folder,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start("master.Master", "127.0.0.1", "--port", str(port))
        for host in ("127.0.0.2", "127.0.0.3"):
            words = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder / host))
            start("worker.Worker", host, *words, f"spark://127.0.0.1:{port}")
        builder = pyspark.sql.SparkSession.builder.master(f"spark://127.0.0.1:{port}").appName("precache")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        stack.callback(session.stop)
        wait_for_executors(session)
        yield session


def wait_for_executors(session):
    # The driver counts too.
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus
    wait_until(lambda: executors().size() == 3, "executors start")


def test_failures_and_speculative_copies_leave_the_bytes_of_a_single_build(spark, source, whole, tmp_path):
    import precache.cluster
    from scripted_job import ScriptedJob

    script = {0: "wait", 1: "fail"}  # part 0 ends only if Spark starts a second attempt meanwhile
    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", script, parts=PARTS, **OPTIONS)
    seen = []
    report = precache.cluster.run_on_spark(spark, job, progress=seen.append)
    assert report["status"] == "complete" and report["samples"] == 24
    assert job.attempts(0) > 1 and job.attempts(1) > 1
    assert differing(files(tmp_path / "out"), whole) == []
    assert seen[-1].done == PARTS


def test_an_error_that_stays_ends_the_build_early(spark, source, tmp_path):
    import precache.cluster
    from scripted_job import ScriptedJob

    parts = 200  # minutes of work for two executors
    spark.sparkContext.setJobGroup("mine", "of the caller")
    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", {1: "refuse"}, parts=parts, **OPTIONS)
    with pytest.raises(precache.InvalidArgument, match="an argument is wrong"):
        precache.cluster.run_on_spark(spark, job, progress=False)
    assert sum(job.attempts(part) > 0 for part in range(parts)) < parts, "the other parts were cancelled"
    assert job.attempts(1) == 1
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"


def test_the_loss_of_an_executor_leaves_the_bytes_of_a_single_build(spark, source, whole, tmp_path, every_cluster_test):
    import precache.cluster
    from scripted_job import ScriptedJob

    wait_for_executors(spark)
    job = ScriptedJob(source, tmp_path / "out", tmp_path / "attempts", {3: "lose java"}, parts=PARTS, **OPTIONS)
    precache.cluster.run_on_spark(spark, job, progress=False)
    assert job.attempts(3) > 1
    assert differing(files(tmp_path / "out"), whole) == []


def test_the_sample_makes_the_bytes_of_a_single_build(spark, source, whole_of_sample, tmp_path, monkeypatch, capsys):
    """The last of this file: the sample gets the session, and stops it."""
    run_sample(monkeypatch, "spark_build.py", source, tmp_path / "out", "--parts", 2, "--size", WORDS[1])
    assert capsys.readouterr().out == "24 samples in 1 shards, 0 skipped\n"
    assert differing(files(tmp_path / "out"), whole_of_sample) == []
