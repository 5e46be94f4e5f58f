# SPDX-License-Identifier: Apache-2.0
"""Batches on a simulated GPU, byte for byte. Run by test_device.py, with a module of the package that is linked with a fake
CUDA runtime. Without a driver torch rejects such tensors, so fake_gpu.py has a consumer that replaces it."""

import gc
import pickle

from fake_gpu import Stream, fresh_machine, machine, report, take  # first: it decides how the package is loaded

import numpy as np
import pytest
import torch

import precache
import precache.torch
from precache import transforms
from precache._device import DeviceTensor

pytest_plugins = ("package_fixtures",)

DTYPES = ("uint8", "float16", "bfloat16", "float32")
BUDGET = 1 << 30


@pytest.fixture
def stream():
    """Runs each test on a clean machine and checks it afterwards."""
    with fresh_machine(), Stream() as stream:
        yield stream
        gc.collect()


class Torch:
    """Replaces the functions of torch that the package uses. Tensors are copied on the stream and released at once."""

    def __init__(self, stream):
        self.stream, self.facts = stream, []

    def from_dlpack(self, tensor):
        taken = take(tensor, self.stream)
        self.facts.append(taken.facts)
        copy = taken.copy_on(self.stream)
        taken.drop()
        dtype = getattr(torch, taken.facts.dtype)
        return torch.frombuffer(bytearray(copy.bytes()), dtype=dtype).reshape(taken.facts.shape)


@pytest.fixture(autouse=True)
def torch_has_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


@pytest.fixture
def as_torch(stream, monkeypatch):
    consumer = Torch(stream)
    monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", consumer.from_dlpack)
    return consumer


def tensors(loader):
    """The DLPack tensors of a loader's next batch."""
    batch = loader._open().next()
    return DeviceTensor(batch, labels=False), DeviceTensor(batch, labels=True)


@pytest.fixture
def batches(stamps):
    """batches(**options): the tensors of a loader, and the bytes that a loader without a GPU returns."""

    def make(**options):
        options = {"shuffle": "full", "dtype": "float16", "crop": 7, "flip": True, **options}
        on_host = precache.torch.Loader(stamps.out, 4, **{k: v for k, v in options.items() if k != "device_batches"})
        loader = precache.torch.Loader(stamps.out, 4, device="cuda", **options)
        expected = [(images.numpy().tobytes(), labels.numpy().tobytes()) for images, labels in on_host]
        return loader, expected

    return make


# --- precache.torch.Loader --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["auto", "staged", "strided", "gather", "resident"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_are_those_without_a_gpu(made, as_torch, dtype, channels_last, path):
    built = made("--size", "17x23", "--shards", "3")
    for options in (
        {},
        {"crop": 9, "flip": True, "last_batch": "keep"},
        {"shuffle": "full", "seed": 2, "last_batch": "pad"},
    ):
        if path == "strided" and "shuffle" in options:
            continue
        common = {"dtype": dtype, "channels_last": channels_last, **options}
        here = precache.torch.Loader(built.out, 4, **common)
        there = precache.torch.Loader(built.out, 4, device="cuda", device_path=path, pin_shards_up_to=BUDGET, **common)
        assert len(there) == len(here) and there.spec == here.spec
        count = 0
        for (images, labels), (expected, expected_labels) in zip(there, here, strict=True):
            assert images.dtype == getattr(torch, dtype)
            assert torch.equal(images, expected) and torch.equal(labels, expected_labels)
            assert images.stride() == expected.stride()
            count += 1
        stats = there.stats()
        assert stats["batches"] == count > 0
        device = stats["device"]
        by_path = {name: device[name] for name in ("staged", "strided", "gathered", "resident")}
        assert sum(by_path.values()) >= count
        if path != "auto":
            assert by_path["gathered" if path == "gather" else path] == sum(by_path.values())
        assert (device["bytes_registered"] > 0) == (path not in ("staged", "resident"))
        assert (device["bytes_resident"] > 0) == (path == "resident")
    assert all(facts.device == (2, 0) for facts in as_torch.facts)


LISTS = {
    "crop": [transforms.RandomResizedCrop(9), transforms.RandomHorizontalFlip()],
    "colour": [transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomGrayscale(0.5), transforms.RandomErasing()],
    "warp": [transforms.RandomRotation(30), transforms.RandomCrop(12, padding=3, padding_mode="reflect")],
}


@pytest.mark.parametrize("path", ["staged", "gather", "resident"])
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_operations_are_those_without_a_gpu(made, as_torch, name, path):
    built = made("--size", "17x23", "--shards", "3")
    options = {"transform": LISTS[name], "shuffle": "full", "seed": 4, "normalize": "imagenet", "repeats": 2}
    here = precache.torch.Loader(built.out, 4, **options)
    there = precache.torch.Loader(built.out, 4, device="cuda", device_path=path, pin_shards_up_to=BUDGET, **options)
    assert there.draw(3, epoch=2, repeat=1) == here.draw(3, epoch=2, repeat=1)
    for _ in range(2):
        for (images, labels), (expected, expected_labels) in zip(there, here, strict=True):
            assert torch.equal(images, expected) and torch.equal(labels, expected_labels)


@pytest.mark.parametrize("path", ["staged", "resident"])
def test_views_and_sizes_are_those_without_a_gpu(made, as_torch, path):
    built = made("--size", "17x23", "--shards", "3")
    views = [[transforms.RandomResizedCrop(9), transforms.RandomHorizontalFlip()], [transforms.RandomResizedCrop(5)]]
    options = {"views": views, "size": {0: 6, 1: 9}, "dtype": "float16"}
    here = precache.torch.Loader(built.out, 4, **options)
    there = precache.torch.Loader(built.out, 4, device="cuda", device_path=path, **options)
    for size in (6, 9, 9):
        for (images, labels), (expected, expected_labels) in zip(there, here, strict=True):
            assert images[0].shape[-2:] == (size, size)
            assert len(images) == len(expected) == 2
            assert all(torch.equal(*pair) for pair in zip(images, expected, strict=True))
            assert torch.equal(labels, expected_labels)


def test_operations_that_the_gpu_lacks_are_moved_or_refused(stamps, as_torch, monkeypatch):
    options = {"transform": [transforms.GaussianBlur(3)], "device": "cuda"}
    with pytest.raises(precache.Unsupported, match="GaussianBlur is not supported on a GPU"):
        precache.torch.Loader(stamps.out, 4, device_path="staged", **options)
    loader = precache.torch.Loader(stamps.out, 4, **options)
    assert "GaussianBlur" in loader.stats()["device"]["reason"]


def test_nothing_is_registered_unasked(stamps, as_torch):
    loader = precache.torch.Loader(stamps.out, 4, device="cuda:0")
    assert len(list(loader)) == 6
    device = loader.stats()["device"]
    assert device["bytes_registered"] == 0 and device["staged"] >= 6 and device["reason"].startswith("Staged")


def test_epochs_and_states(stamps, as_torch):
    options = {"shuffle": "full", "seed": 3, "normalize": "imagenet"}
    here = precache.torch.Loader(stamps.out, 4, **options)
    there = precache.torch.Loader(stamps.out, 4, device=torch.device("cuda"), **options)
    assert there.device == torch.device("cuda", 0)
    for epoch in range(2):
        assert there.epoch == here.epoch == epoch
        for (images, _), (expected, _) in zip(there, here, strict=True):
            assert torch.equal(images, expected)
            assert there.state_dict() == here.state_dict()
    there.set_epoch(5)
    iterator = iter(there)
    next(iterator), next(iterator)
    state = there.state_dict()
    here.set_epoch(5)
    rest = [images for images, _ in here][2:]
    for loader in (precache.torch.Loader(stamps.out, 4, device="cuda", **options), here):
        loader.load_state_dict(state)
        assert all(torch.equal(images, one) for (images, _), one in zip(loader, rest, strict=True))
    there.close()
    with pytest.raises(precache.InvalidArgument, match="closed"):
        next(iterator)


@pytest.mark.parametrize("path", ["staged", "resident"])
def test_sizes_by_epoch(stamps, as_torch, path):
    options = {"shuffle": "full", "crop": 9, "normalize": "imagenet", "size": {0: 5, 1: (4, 9), 3: 9}}
    here = precache.torch.Loader(stamps.out, 4, **options)
    there = precache.torch.Loader(stamps.out, 4, device="cuda", device_path=path, **options)
    for epoch in (0, 1, 2, 3, 1):
        there.set_epoch(epoch)
        here.set_epoch(epoch)
        assert there.spec == here.spec
        for (images, _), (expected, _) in zip(there, here, strict=True):
            assert torch.equal(images, expected)
    copied = pickle.loads(pickle.dumps(there))
    copied.set_epoch(0)
    assert next(iter(copied))[0].shape == (4, 3, 5, 5)


def test_a_second_device(stamps, monkeypatch):
    with fresh_machine(devices=2):
        machine.cudaSetDevice(1)
        with Stream() as stream:
            machine.cudaSetDevice(0)
            consumer = Torch(stream)
            monkeypatch.setattr(torch.utils.dlpack, "from_dlpack", consumer.from_dlpack)
            loader = precache.torch.Loader(stamps.out, 4, device="cuda:1")
            machine.cudaSetDevice(1)  # for the consumer's copies
            for (images, _), (expected, _) in zip(loader, precache.torch.Loader(stamps.out, 4), strict=True):
                assert torch.equal(images, expected)
            assert {facts.device for facts in consumer.facts} == {(2, 1)}
            with pytest.raises(precache.InvalidArgument, match="device"):
                precache.torch.Loader(stamps.out, 4, device="cuda:2")
            loader.close()
        machine.cudaSetDevice(0)


def test_bad_options(stamps, as_torch):
    for options, words in (
        ({"device_batches": 0}, "device_batches must be .*got 0"),
        ({"device_batches": 1 << 20}, "device_batches must be"),
        ({"device_path": "nonsense"}, "device_path must be .*got 'nonsense'"),
        ({"device_path": "strided", "shuffle": "full", "pin_shards_up_to": BUDGET}, "strided"),
        ({"device_path": "gather", "pin_shards_up_to": 1}, "more than the 1 that may be pinned"),
        ({"device_path": "resident", "resident_up_to": 1}, "resident_up_to= is 1"),
        ({"device_path": "staged", "device": "cpu"}, "device_path='staged' needs a CUDA device, got device='cpu'"),
        ({"pin_shards_up_to": -1}, "pin_shards_up_to must be .*got -1"),
        ({"rank": 2, "world_size": 2}, "rank"),
    ):
        with pytest.raises(ValueError, match=words):
            precache.torch.Loader(stamps.out, 4, **{"device": "cuda", **options})


def test_without_a_driver_torch_moves_batches(stamps, as_torch):
    machine.machine_set_driver(0)
    loader = precache.torch.Loader(stamps.out, 4, device="cuda")
    reason = loader.stats()["device"]["reason"]
    assert reason.startswith("Moved by torch: ") and "driver" in reason
    with pytest.raises(precache.Unsupported, match="driver"):
        precache.torch.Loader(stamps.out, 4, device="cuda", device_path="staged")
    machine.machine_set_driver(13000)


def test_failures_are_device_errors(stamps, as_torch):
    for call in (b"cudaMalloc", b"cudaHostAlloc", b"cudaStreamCreateWithPriority"):
        machine.machine_fail(call, 1)
        with pytest.raises(precache.DeviceError, match=call.decode()) as caught:
            precache.torch.Loader(stamps.out, 4, device="cuda")
        assert isinstance(caught.value, RuntimeError)
    loader = precache.torch.Loader(stamps.out, 4, device="cuda", dtype="float32")
    iterator = iter(loader)
    machine.machine_fail(b"cudaLaunchKernel", 1)
    for _ in range(2):  # the error persists
        with pytest.raises(precache.DeviceError, match="cudaLaunchKernel"):
            next(iterator)


# --- the hand-over ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [False, True])
def test_a_consumer_sees_device_shape_and_type(stamps, stream, versioned):
    loader = precache.torch.Loader(stamps.out, 4, device="cuda", dtype="bfloat16", crop=(8, 5))
    images, labels = tensors(loader)
    assert images.__dlpack_device__() == labels.__dlpack_device__() == (2, 0)
    taken = take(images, stream, versioned=versioned)
    assert taken.facts == ((2, 0), "bfloat16", (4, 3, 8, 5), (120, 40, 5, 1))
    other = take(labels, stream, versioned=versioned)
    assert other.facts == ((2, 0), "int64", (4,), (1,))
    assert other.copy_on(stream).bytes() == np.asarray(stamps.labels[:4], np.int64).tobytes()
    taken.drop()
    other.drop()


def test_memory_is_reused_only_after_the_consumers_stream(batches, stream):
    """The stream is blocked while the whole epoch is requested: nothing may be overwritten meanwhile."""
    loader, expected = batches(device_batches=2)
    copies = []
    machine.machine_hold(stream.handle)
    for _ in expected:
        pair = [take(tensor, stream) for tensor in tensors(loader)]
        copies.append([one.copy_on(stream) for one in pair])
        for one in pair:
            one.drop()
        if len(copies) == 4:  # the third and fourth wait for the memory of the first two; a fifth would wait here
            machine.machine_let_go(stream.handle)
    assert [tuple(copy.bytes() for copy in pair) for pair in copies] == expected


def test_a_batch_that_is_held_stays(batches, stream):
    loader, expected = batches(device_batches=3)
    held = [take(tensor, stream) for tensor in tensors(loader)]
    for others in expected[1:]:
        images, labels = tensors(loader)
        taken = take(images, stream)
        assert taken.copy_on(stream).bytes() == others[0]
        taken.drop()
        del images, labels
    assert tuple(one.copy_on(stream).bytes() for one in held) == expected[0]
    for one in held:
        one.drop()


def test_tensors_outlive_their_loader(batches, stream):
    loader, expected = batches()
    pair = [take(tensor, stream) for tensor in tensors(loader)]
    loader.close()
    del loader
    assert tuple(one.copy_on(stream).bytes() for one in pair) == expected[0]
    for one in pair:
        one.drop()


def test_holding_all_batches_is_an_error_and_not_the_end(batches, stream):
    loader, expected = batches(device_batches=2)
    held = [take(tensors(loader)[0], stream) for _ in range(2)]
    with pytest.raises(precache.InvalidArgument, match="all 2 batches on the device are in use"):
        tensors(loader)
    held.pop(0).drop()
    held.append(take(tensors(loader)[0], stream))
    assert [one.copy_on(stream).bytes() for one in held] == [images for images, _ in expected[1:3]]
    for one in held:
        one.drop()


def test_capsules_that_are_never_consumed(batches, stream):
    loader, expected = batches(device_batches=1)
    for images, _ in expected:
        tensor = tensors(loader)[0]
        for _ in range(3):
            tensor.__dlpack__(stream=stream.handle.value)
            tensor.__dlpack__(stream=stream.handle.value, max_version=(1, 1))
        taken = take(tensor, stream)
        del tensor
        assert taken.copy_on(stream).bytes() == images
        taken.drop()


def use_on_two_streams(loader, *, in_order):
    """Takes a batch on one stream and uses it on another while the next batch arrives. Returns the bytes that were read."""
    with Stream() as taker, Stream() as other:
        taken = take(tensors(loader)[0], taker)
        other.wait_stream(taker)
        machine.machine_hold(other.handle)
        copy = taken.copy_on(other)
        if in_order:
            taker.wait_stream(other)
        taken.drop()
        take(tensors(loader)[0], taker).drop()  # reuses the same memory
        machine.machine_let_go(other.handle)
        return copy.bytes()


def test_other_streams_can_use_a_batch(batches, stream):
    """As docs/python.md describes."""
    loader, expected = batches(device_batches=1)
    assert use_on_two_streams(loader, in_order=True) == expected[0][0]


def test_other_streams_must_be_waited_for(batches):
    """Shows that the fake runtime detects a missing wait."""
    machine.machine_start(1)
    loader, _ = batches(device_batches=1)
    use_on_two_streams(loader, in_order=False)
    assert "race" in report()
    del loader
    machine.machine_start(1)


def test_invalid_streams_are_refused(batches, stream):
    loader, _ = batches()
    images, _ = tensors(loader)
    for number in (-1, 2):
        with pytest.raises(BufferError, match="needs one stream"):
            images.__dlpack__(stream=number)
    for number in (0, -2):
        with pytest.raises(precache.InvalidArgument, match=f"stream must be .*got {number}"):
            images.__dlpack__(stream=number)
    with pytest.raises(BufferError, match="cannot be copied"):
        images.__dlpack__(stream=1, copy=True)
    with pytest.raises(BufferError, match="exported"):
        images.__dlpack__(stream=1, dl_device=(1, 0))
    for default in (None, 1):
        images.__dlpack__(stream=default, dl_device=(2, 0), copy=False)
