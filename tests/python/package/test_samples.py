# SPDX-License-Identifier: Apache-2.0
"""The Python samples, run as a user runs them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import images

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
PROGRAMS = Path(__file__).resolve().parents[3] / "build" / "release" / "samples"  # in C++
TIMEOUT_SECONDS = 300  # ends what hangs; no test depends on how long a run takes
CLASSES = {"dark": 0, "grey": 80, "light": 160}  # least brightness of their pictures, so that they can be learned


@pytest.fixture
def folder(tmp_path):
    """40 pictures of each class."""
    for name, least in CLASSES.items():
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(40):
            noise = images.pixels(40 + i % 5, 36, 3, seed=least + i) // 3
            Image.fromarray((noise + least).astype(np.uint8)).save(tmp_path / "images" / name / f"{i}.png")
    return tmp_path / "images"


def start(sample, *arguments, **options):
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, SAMPLES / sample, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )


def run(sample, *arguments, **options):
    process = start(sample, *arguments, **options)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, err
    return out


def train(folder, checkpoint):
    """Arguments that have runs end with the same bits: 15 steps an epoch, a checkpoint after each."""
    return (
        "train_torch.py",
        folder,
        "--cache",
        folder.parent / "cache",
        "--checkpoint",
        checkpoint,
        "--checkpoint-every",
        1,
        "--size",
        32,
        "--batch-size",
        8,
        "--threads",
        1,
        "--epochs",
        3,
    )


def test_training_with_torch_learns_and_builds_its_cache_once(folder):
    out = run("train_torch.py", folder, "--size", 32, "--batch-size", 8, "--epochs", 4)
    losses = [float(loss) for loss in re.findall(r"^epoch \d+: loss ([\d.]+), accuracy [\d.]+%$", out, re.MULTILINE)]
    assert len(losses) == 4 and losses[-1] < losses[0]
    manifest = folder.with_name("images.cache") / "dataset.json"
    made = manifest.stat()
    out = run("train_torch.py", folder, "--size", 32, "--batch-size", 8, "--epochs", 5)
    assert re.search(r"^resuming after step 60, in epoch 4\nepoch 4: ", out)
    assert manifest.stat().st_mtime_ns == made.st_mtime_ns


def test_training_with_torch_that_is_killed_ends_with_the_same_weights(folder):
    import torch

    whole, killed = folder.parent / "whole.pt", folder.parent / "killed.pt"
    run(*train(folder, whole))

    def position():
        with contextlib.suppress(FileNotFoundError):
            state = torch.load(killed)["loader"]
            return state["epoch"], state["position"]
        return 0, 0

    places = []
    for least in (0, 3 * 8), (1, 9 * 8):  # killed there or a few steps later
        process = start(*train(folder, killed))
        end = time.monotonic() + TIMEOUT_SECONDS
        while position() < least:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "it hangs"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        places.append(position())
    assert any(0 < at < 120 for _, at in places), f"never in the middle of an epoch: {places}"

    out = run(*train(folder, killed))
    assert out.startswith("resuming after step ")
    one, other = torch.load(whole), torch.load(killed)
    assert one["loader"] == other["loader"] and one["loader"]["epoch"] == 3
    assert one["model"].keys() == other["model"].keys()
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])
    assert one["counts"] == other["counts"] == (45, 0, 0, 0.0)


def test_training_with_tensorflow_learns_and_resumes(folder):
    words = ("train_tensorflow.py", folder, "--size", 32, "--batch-size", 8, "--checkpoint", folder.parent / "k.keras")
    out = run(*words, "--epochs", 2)
    assert re.findall(r"^Epoch (\d)/2$", out, re.MULTILINE) == ["1", "2"]
    out += run(*words, "--epochs", 5)
    assert re.findall(r"^Epoch (\d)/5$", out, re.MULTILINE) == ["3", "4", "5"]
    losses = [float(loss) for loss in re.findall(r"loss: ([\d.e-]+)$", out, re.MULTILINE)]
    assert len(losses) == 5 and losses[-1] < losses[1] < losses[0]
    assert re.search(r"^all 120 images, centre crops: loss [\d.]+, accuracy [\d.]+%$", out, re.MULTILINE)


def test_jax_gets_batches_without_a_copy(folder):
    import precache

    precache.build(folder, folder.parent / "cache", size=40)
    out = run("jax_batches.py", folder.parent / "cache", "--batch-size", 50).splitlines()
    assert len(out) == 2
    assert all(f"batch {i}: (50, 3, 40, 40) float32, not copied, means " in line for i, line in enumerate(out))


def test_pictures_are_shown_as_they_are_stored_and_as_a_trainer_gets_them(folder):
    import precache

    cache, sheet = folder.parent / "cache", folder.parent / "sheet.png"
    precache.build(folder, cache, size=40)
    out = run("look_at_pictures.py", cache, "--out", sheet, "--columns", 5)
    assert all(f"    40 {name}\n" in out for name in CLASSES)
    dataset = precache.open(cache)
    drawn = np.asarray(Image.open(sheet))
    assert drawn.shape == (4 * 44 + 4, 5 * 44 + 4, 3)
    for i in range(5):  # the first row is what is stored
        assert (drawn[4:44, 4 + 44 * i : 44 + 44 * i] == dataset[i][0].transpose(1, 2, 0)).all()
    crops = drawn[48:83, 4:39]  # the one below is somewhere in the first, perhaps mirrored
    stored = drawn[4:44, 4:44]
    places = [stored[y : y + 35, x : x + 35] for y in range(6) for x in range(6)]
    assert any((crops == place).all() or (crops == place[:, ::-1]).all() for place in places)
    assert Image.open(folder.parent / "sheet-labels.png").width > 100


# (sample, epochs, arguments, pattern of a line for each epoch)
AUGMENTED = [
    ("train_imagenet.py", 4, ("--size", 32), r"^epoch \d: 120 images of \d+x\d+, loss ([\d.]+)$"),
    ("train_cifar.py", 4, (), r"^epoch \d: loss ([\d.]+)$"),
    ("train_views.py", 2, ("--size", 32, "--small-views", 3), r"^epoch \d: 5 views, loss ([\d.]+)$"),
    ("train_mixup.py", 4, ("--size", 32), r"^epoch \d: labels of \(8, 3\), loss ([\d.]+)$"),
]


@pytest.mark.parametrize("sample, epochs, arguments, line", AUGMENTED, ids=[case[0] for case in AUGMENTED])
def test_training_with_augmentation_learns(folder, sample, epochs, arguments, line):
    import precache

    precache.build(folder, folder.parent / "shards", size=40, fit="stretch")
    out = run(sample, folder.parent / "shards", "--batch-size", 8, "--epochs", epochs, *arguments)
    losses = [float(loss) for loss in re.findall(line, out, re.MULTILINE)]
    assert len(losses) == epochs and losses[-1] < losses[0]
    if sample == "train_imagenet.py":
        assert re.findall(r"images of (\S+),", out) == ["16x16", "16x16", "24x24", "24x24"]


# (recipe, sizes of the views, operations that draw something for each sample)
RECIPES = [
    ("imagenet", "28x28", ["RandomResizedCrop", "RandomHorizontalFlip"]),
    ("cifar", "32x32", ["RandomCrop", "RandomHorizontalFlip"]),
    ("dino", "32x32 32x32 13x13 13x13 13x13 13x13", ["RandomResizedCrop", "GaussianBlur", "RandomSolarize"]),
]


@pytest.mark.parametrize("recipe, sizes, drawn", RECIPES, ids=[case[0] for case in RECIPES])
def test_recipes_of_the_cpp_sample_read_every_image(folder, recipe, sizes, drawn):
    import precache

    precache.build(folder, folder.parent / "shards", size=32, fit="stretch")
    command = [PROGRAMS / "recipes", recipe, folder.parent / "shards", "2"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS).stdout
    line = r"epoch (\d): (\d+) images, mean (\S+), views of ([^;]+); sample 0 drew (.*)"
    epochs = [re.fullmatch(line, text).groups() for text in out.splitlines()]
    assert [(epoch, images, views) for epoch, images, _, views, _ in epochs] == [
        ("0", "96", sizes),  # 120 images are three whole batches
        ("1", "96", sizes),
    ]
    assert all(name in names.split() for *_, names in epochs for name in drawn)
    assert epochs[0][2] != epochs[1][2]  # other crops in another epoch


def test_the_cpp_trainer_learns_and_resumes_with_the_same_weights(folder):
    import precache

    shards = folder.parent / "shards"
    precache.build(folder, shards, size=32)

    def train(checkpoint, epochs):
        command = [PROGRAMS / "train_loop", shards, folder.parent / checkpoint, str(epochs)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS).stdout

    whole = train("whole", 4)
    losses = [float(loss) for loss in re.findall(r"^epoch \d: 96 images, loss ([\d.]+)$", whole, re.MULTILINE)]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert train("halves", 2) + train("halves", 4) == whole
    assert (folder.parent / "halves").read_bytes() == (folder.parent / "whole").read_bytes()
