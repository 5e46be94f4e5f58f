# SPDX-License-Identifier: Apache-2.0
"""`precache bench`: its output and its errors. No test depends on a speed."""

import json
import re
from pathlib import Path

import pytest

HAS_GPU = Path("/dev/nvidiactl").exists()
# Without a driver, with a driver but no GPU (or none that may be seen), and of a build without CUDA.
NO_GPU = (
    "precache: there is no GPU for the batches: CUDA driver version is insufficient for CUDA runtime version "
    "(cudaErrorInsufficientDriver)\n  No NVIDIA driver is installed: this build needs r580 or later (CUDA 13).\n",
    "precache: there is no GPU for the batches: no CUDA-capable device is detected (cudaErrorNoDevice)\n"
    "  Run nvidia-smi to see the GPUs; a Loader needs none.\n",
    "precache: this build of precache has no CUDA, so it cannot load batches to a GPU\n"
    "  Build it where the CUDA Toolkit 13 is installed, with PRECACHE_WITH_CUDA=ON.\n",
)
SHORT = ("--seconds", "0.02", "--batch", "4")


@pytest.fixture(scope="module")
def dataset(build, animals, tmp_path_factory):
    return build(animals[0], tmp_path_factory.mktemp("bench") / "out", "--size", "32", "--shards", "3")


def samples_of(dataset):
    return dataset.manifest["splits"]["train"]["samples"]


def test_a_loader_is_measured(run, dataset):
    result = json.loads(run("bench", dataset.out, *SHORT, "--json").stdout)
    (row,) = result.pop("paths")
    assert result == {
        "device": "cpu",
        "samples": samples_of(dataset),
        "stored": "uint8 3x32x32 chw",
        "loaded": "uint8 3x32x32 chw",
        "batch": 4,
        "shuffle": "none",
        "step_seconds": 0,
    }
    assert row["path"] == "cpu" and "step" not in row and row["bytes_registered"] == 0
    assert row["batches"] >= 1 and row["images"] == 4 * row["batches"] and row["bytes"] == row["images"] * 3072
    assert row["seconds"] >= 0.02
    assert row["images_per_second"] == pytest.approx(row["images"] / row["seconds"])
    assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["seconds"])


def test_a_transform_and_a_step_are_measured(run, dataset):
    words = (
        "--crop",
        "24",
        "--flip",
        "--dtype",
        "float16",
        "--normalize",
        "imagenet",
        "--shuffle",
        "full",
        "--step",
        "2.5",
        "--jobs",
        "1",
        "--device",
        "cpu",
        "--split",
        "train",
    )
    result = json.loads(run("bench", dataset.out, *SHORT, *words, "--json").stdout)
    assert (result["loaded"], result["shuffle"], result["step_seconds"]) == ("float16 3x24x24 chw", "full", 0.0025)
    (row,) = result["paths"]
    assert row["bytes"] == row["images"] * 3 * 24 * 24 * 2
    step = row["step"]
    assert step["steps"] >= 1 and 0 < step["waited_seconds"] <= step["seconds"] - 0.0025 * step["steps"]
    assert step["waited_share"] == pytest.approx(step["waited_seconds"] / step["seconds"])


def test_the_text_output(run, dataset):
    data, row = run("bench", dataset.out, *SHORT, "--step", "2.5").stdout.decode().splitlines()
    assert data == (
        f"data      {samples_of(dataset)} samples of uint8 3x32x32 chw, loaded as uint8 3x32x32 chw in batches of 4, "
        "shuffle none"
    )
    assert re.fullmatch(r"cpu +[\d,]+ images/s +\d+\.\d\d GB/s   steps of 2.5 ms wait \d+\.\d% of the time", row)


def test_a_batch_may_be_larger_than_the_dataset(run, dataset):
    result = json.loads(run("bench", dataset.out, "--seconds", "0.01", "--batch", "1000", "--json").stdout)
    assert result["paths"][0]["images"] == 1000 * result["paths"][0]["batches"]


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU here")
@pytest.mark.parametrize("words", [("cuda",), ("cuda:1",), ("cuda", "--device-path", "gather", "--json")], ids=" ".join)
def test_without_a_gpu_it_says_so(run, dataset, words):
    done = run("bench", dataset.out, "--device", *words, expect=5)
    assert done.stdout == b"" and done.stderr.decode() in NO_GPU


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU here")
def test_with_a_gpu_all_paths_are_measured(run, dataset):
    result = json.loads(run("bench", dataset.out, *SHORT, "--device", "cuda", "--json").stdout)
    assert result["device"] == "cuda:0" and result["link_bytes_per_second"] > 0
    assert [row["path"] for row in result["paths"]] == ["staged", "strided", "gather"]
    assert all("refused" in row or row["images"] == 4 * row["batches"] > 0 for row in result["paths"])


@pytest.mark.parametrize(
    "words, says",
    [
        (("--device", "gpu"), "--device must be one of cpu, cuda, cuda:N, got 'gpu'"),
        (("--device", "cuda:x"), "--device cuda:N, N must be a whole number from 0 to 1023, got 'x'"),
        (("--device-path", "gather"), "--device-path needs --device cuda"),
        (("--device-path", "auto"), "--device-path must be one of all, staged, strided, gather, resident, got 'auto'"),
        (("--step", "0"), "--step must be a number from 0.01 to 1e+06, got '0'"),
        (("--seconds", "x"), "--seconds must be a number"),
        (("--pin-shards-up-to", "some"), "--pin-shards-up-to must be a number of bytes, got 'some'"),
        (("--crop", "33"), "crop"),
        (("--normalize", "imagenet", "--dtype", "uint8"), "normali"),
        (("--split", "val"), "no split 'val'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_invalid_options_are_refused(run, dataset, words, says):
    done = run("bench", dataset.out, *words, expect=2)
    assert done.stdout == b"" and says in done.stderr.decode()


def test_a_missing_dataset_is_an_error(run, tmp_path):
    assert "missing" in run("bench", tmp_path / "missing", expect=3).stderr.decode()
