# SPDX-License-Identifier: Apache-2.0
"""Rank and world size of launchers, JAX and TensorFlow: no two processes read the same samples by mistake."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

import precache
import precache.torch
from conftest import TIMEOUT_SECONDS

pytest_plugins = ("package_fixtures",)

KINDS = (precache.Loader, precache.torch.Loader)


def numbers_in(loader):
    return [images[:, 2, 0, 0].tolist() for images, _ in loader]


@pytest.fixture
def launched(monkeypatch):
    """launched(rank, world_size): the variables that a launcher sets."""

    def launch(rank, world_size):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world_size))

    return launch


@pytest.fixture
def processes(tmp_path):
    """processes(program, environments..., arguments): what the processes of a program print, as JSON."""

    def run(program, environments, *arguments):
        (tmp_path / "place.py").write_text(textwrap.dedent(program))
        started = [
            subprocess.Popen(
                [sys.executable, tmp_path / "place.py", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"} | environment,
            )
            for environment in environments
        ]
        try:
            ended = [process.communicate(timeout=TIMEOUT_SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
        assert not any(process.returncode for process in started), b"\n".join(err for _, err in ended).decode()
        return [json.loads(out.splitlines()[-1]) for out, _ in ended]

    return run


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# --- the end of an epoch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"drop_last": False}, {"drop_last": False, "shuffle": True}], ids=str)
def test_several_ranks_have_equal_batches_and_drop_nothing(stamps, kind, options):
    ranks = [numbers_in(kind(stamps.out, 4, rank=rank, world_size=3, **options)) for rank in range(3)]
    assert [[len(batch) for batch in batches] for batches in ranks] == [[4, 4]] * 3  # 23 samples and one repeat
    seen = [number for batches in ranks for batch in batches for number in batch]
    assert len(seen) == 24 and set(seen) == set(range(23))
    assert kind(stamps.out, 4, rank=0, world_size=3, **options).last_batch == "even"
    assert kind(stamps.out, 4, **options).last_batch == "keep"


# --- launchers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_launcher_gives_rank_and_world_size(stamps, kind, launched):
    expected = [numbers_in(kind(stamps.out, 4, rank=rank, world_size=2)) for rank in range(2)]
    for rank in range(2):
        launched(rank, 2)
        assert numbers_in(kind(stamps.out, 4)) == expected[rank]
    assert len(numbers_in(kind(stamps.out, 4, rank=0, world_size=1))) == 6  # these were given


def test_a_launcher_that_changes_its_mind_is_an_error(stamps, launched):
    loader = precache.Loader(stamps.out, 4)
    launched(1, 2)
    assert len(loader) == 3  # nothing was read yet
    iterator = iter(loader)
    next(iterator)
    launched(0, 2)
    with pytest.raises(precache.InvalidArgument, match="began as rank 1 of 2, and the process is now rank 0 of 2"):
        next(iterator)


@pytest.mark.parametrize("rank, world_size", [("2", "2"), ("-1", "2"), ("one", "2"), ("0", "0"), ("0", "1.5")])
def test_nonsense_of_a_launcher_is_an_error(stamps, launched, rank, world_size):
    launched(rank, world_size)
    with pytest.raises(precache.InvalidArgument, match=f"RANK='{rank}' and WORLD_SIZE='{world_size}' are not") as found:
        precache.Loader(stamps.out, 4)
    assert "give the loader rank and world_size" in found.value.hint
    assert len(precache.Loader(stamps.out, 4, rank=0, world_size=1)) == 6


# --- JAX and TensorFlow -----------------------------------------------------------------------------------------------

JAX = """
    import json, os, sys
    import jax
    import precache

    folder, address = sys.argv[1:]
    before = precache.Loader(folder, 4)
    assert len(before) == 6  # and JAX is not initialised by this
    jax.distributed.initialize(address, 2, int(os.environ["PROCESS"]))
    numbers = [[images[:, 2, 0, 0].tolist() for images, _ in loader] for loader in (before, precache.Loader(folder, 4))]
    print(json.dumps(numbers))
"""


def test_processes_of_jax_read_their_own_samples(stamps, processes):
    pytest.importorskip("jax")
    ranks = processes(JAX, [{"PROCESS": "0"}, {"PROCESS": "1"}], stamps.out, f"127.0.0.1:{free_port()}")
    for rank, (before, after) in enumerate(ranks):
        assert before == after == numbers_in(precache.Loader(stamps.out, 4, rank=rank, world_size=2))


TENSORFLOW = """
    import json, sys
    import numpy as np
    import tensorflow as tf
    import precache.tensorflow

    def numbers(images):
        return images.numpy()[:, 2, 0, 0].tolist()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    dataset = precache.tensorflow.dataset(sys.argv[1], 4)
    read = [numbers(images) for images, _ in dataset]
    distributed = [numbers(strategy.experimental_local_results(images)[0])
                   for images, _ in strategy.experimental_distribute_dataset(dataset)]
    print(json.dumps([read, sum(distributed, [])]))
"""


def tf_config(kind, index, **cluster):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def test_workers_of_tensorflow_read_their_own_samples(stamps, processes):
    workers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    ranks = processes(TENSORFLOW, [tf_config("worker", i, worker=workers) for i in range(2)], stamps.out)
    for rank, (read, distributed) in enumerate(ranks):
        assert read == numbers_in(precache.Loader(stamps.out, 4, rank=rank, world_size=2))
        assert distributed == sum(read, [])  # tf.distribute did not shard it again


@pytest.mark.parametrize(
    "environment, place",
    [
        (tf_config("chief", 0, chief=["a"], worker=["b", "c"]), (0, 3)),
        (tf_config("worker", 1, chief=["a"], worker=["b", "c"]), (2, 3)),
        (tf_config("worker", 0, worker=["a"]), (0, 1)),
        (tf_config("evaluator", 0, chief=["a"], worker=["b"]), (0, 1)),
        (tf_config("chief", 0, chief=["a"], worker=["b"], ps=["c"]), (0, 1)),
    ],
)
def test_places_of_a_tensorflow_cluster(stamps, monkeypatch, environment, place):
    import precache.tensorflow

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    rank, world_size = place
    expected = numbers_in(precache.Loader(stamps.out, 4, rank=rank, world_size=world_size))
    assert numbers_of(precache.tensorflow.dataset(stamps.out, 4)) == expected
    assert len(list(precache.tensorflow.dataset(stamps.out, 4, rank=0, world_size=1))) == 6


@pytest.mark.parametrize("text", ["{", "[]", '{"task": 3}'])
def test_a_wrong_tf_config_is_an_error(stamps, monkeypatch, text):
    import precache.tensorflow

    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(precache.InvalidArgument, match="TF_CONFIG is not a cluster and a task"):
        precache.tensorflow.dataset(stamps.out, 4)


def numbers_of(dataset):
    return [images.numpy()[:, 2, 0, 0].tolist() for images, _ in dataset]
