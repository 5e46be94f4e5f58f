# SPDX-License-Identifier: Apache-2.0
"""Loaders for GPUs: on machines without one, in builds without CUDA, and, by on_fake_gpu.py, on a simulated one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import precache
import precache.torch
from conftest import TIMEOUT_SECONDS
from precache import _reader
from precache import transforms as t

pytest_plugins = ("package_fixtures",)

NO_CUDA = "this build of precache has no CUDA"

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


def device_loader(dataset):
    options = _reader.LoaderOptions(
        batch_size=4, shuffle="none", block_rows=1, window_blocks=1, seed=0, rank=0, world_size=1, last_batch="drop", crop=None,
        flip=False, normalize=None, augmentation=[], views=[], sizes=[], max_size=None, mask_fill=None, repeats=1, dtype=None, layout=None,
        threads=1, prefetch=1, writable=False, subset=None, weights=None, columns=[])  # fmt: skip
    return _reader.DeviceLoader(
        dataset._native, options, device=0, device_batches=1, path="auto", pin_shards_up_to=0, resident_up_to=0
    )


def why_not(folder):
    """Why the installed package cannot stream to a GPU here."""
    with pytest.raises(precache.Unsupported) as caught:
        device_loader(precache.open(folder))
    return caught.value.message


# Torch with a simulated GPU that the package cannot use.
MOVED_BY_TORCH = """
    import sys
    import torch, precache.torch
    torch.cuda.is_available, torch.cuda.current_device = lambda: True, lambda: 0
    moves = []
    torch.Tensor.pin_memory = lambda self: self
    torch.Tensor.to = lambda self, device, non_blocking: moves.append((str(device), non_blocking)) or self
    loader = precache.torch.Loader(sys.argv[1], 4, device="cuda")
    images, labels = next(iter(loader))
    print(moves, images.shape == (4, 3, 12, 10))
    print(loader.stats()["device"])
    try:
        precache.torch.Loader(sys.argv[1], 4, device="cuda", device_path="staged")
    except precache.Unsupported as error:
        print(error.message)
"""


def test_without_cuda_torch_moves_batches(stamps, in_child, package_with):
    lines = in_child(MOVED_BY_TORCH, stamps.out, **package_with("without_cuda"))
    reason = f"{NO_CUDA}, so it cannot load batches to a GPU"
    moves = [("cuda:0", True), ("cuda:0", True)]
    assert lines == [f"{moves} True", str({"reason": f"Moved by torch: {reason}."}), reason]


@needs_no_gpu
def test_without_a_gpu_a_device_loader_is_refused(stamps):
    with pytest.raises(precache.Unsupported, match="torch finds no CUDA device"):
        precache.torch.Loader(stamps.out, 4, device="cuda")
    reason = why_not(stamps.out)
    assert NO_CUDA in reason or "driver" in reason or "GPU" in reason


@needs_no_gpu
def test_without_a_gpu_torch_moves_batches(stamps, in_child):
    """For example with a GPU that torch supports and CUDA 13 does not."""
    lines = in_child(MOVED_BY_TORCH, stamps.out)
    reason = why_not(stamps.out)
    assert lines[1:] == [str({"reason": f"Moved by torch: {reason}."}), reason]


@needs_no_gpu
def test_batches_are_pinned_by_default_where_torch_has_a_gpu(stamps, in_child):
    """Checks the decision, with a torch that reports a GPU."""
    lines = in_child(
        """
        import sys
        import torch, precache.torch
        pinned, refused = [], []

        def pin(self):
            if refused:
                raise RuntimeError("no such memory")
            pinned.append(self.dtype)
            return self

        torch.Tensor.pin_memory = pin
        for available in (True, False):
            torch.cuda.is_available = lambda: available
            for options in ({}, {"device": "cpu"}, {"device": "meta"}, {"pin_memory": False}, {"pin_memory": True}):
                loader = precache.torch.Loader(sys.argv[1], 4, **options)
                pinned.clear()  # from the loader that was asked to pin and tried it
                next(iter(loader))
                print(available, options, len(pinned))
        torch.cuda.is_available = lambda: True
        asked, by_default = precache.torch.Loader(sys.argv[1], 4, pin_memory=True), precache.torch.Loader(sys.argv[1], 4)
        refused.append(True)
        print(len(list(by_default)))
        try:
            next(iter(asked))
        except RuntimeError as error:
            print(error)
    """,
        stamps.out,
    )
    there = ["{} 2", "{'device': 'cpu'} 0", "{'device': 'meta'} 0", "{'pin_memory': False} 0", "{'pin_memory': True} 2"]
    nowhere = ["{} 0", *there[1:]]
    assert lines == [*(f"True {line}" for line in there), *(f"False {line}" for line in nowhere), "6", "no such memory"]


@needs_no_gpu
def test_the_module_needs_no_driver():
    needed = subprocess.run(["readelf", "-d", _reader.__file__], capture_output=True, text=True, check=True).stdout
    assert "libcuda" not in needed, needed
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", _reader.__file__], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in exported.stdout.splitlines()]
    # Torch has its own CUDA runtime in the same process, maybe another version.
    assert "PyInit__reader" in names and not [name for name in names if name.lower().startswith(("cuda", "__cuda"))]


@needs_no_gpu
def test_on_a_fake_gpu(stamps, package_with):
    if NO_CUDA in why_not(stamps.out):
        pytest.skip("built without CUDA")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", Path(__file__).with_name("on_fake_gpu.py")]
    variables = os.environ | package_with("fake_cuda")
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=variables
    )
    assert done.returncode == 0, done.stdout + done.stderr


CHANGES = {
    "crop": {"crop": 7, "flip": True},
    "resized crop": {
        "transform": [t.RandomResizedCrop(7), t.RandomHorizontalFlip(), t.ColorJitter(0.4, 0.4, 0.4, 0.1)]
    },
    "padded crop": {"transform": [t.RandomCrop(9, 2), t.RandomRotation(30), t.RandomErasing(0.8)]},
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU, or CUDA_VISIBLE_DEVICES does not name it")
@pytest.mark.parametrize("path", ["staged", "strided", "gather", "resident"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_on_a_gpu(stamps, path, changes):
    for dtype in ("uint8", "float16", "bfloat16", "float32"):
        options = {"dtype": dtype, "channels_last": True, **changes}
        there = precache.torch.Loader(
            stamps.out, 4, device="cuda", device_path=path, pin_shards_up_to=1 << 30, **options
        )
        for (images, labels), (expected, expected_labels) in zip(
            there, precache.torch.Loader(stamps.out, 4, **options), strict=True
        ):
            assert images.device == labels.device == there.device
            assert torch.equal(images.cpu(), expected) and torch.equal(labels.cpu(), expected_labels)
