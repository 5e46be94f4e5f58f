# SPDX-License-Identifier: Apache-2.0
"""precache.torch: tensors, torch's DataLoader, distributed processes and checkpoints."""

import io
import json
import os
import warnings

import numpy as np
import pytest
import torch

import precache
import precache.torch
from documented_order import documented_batches, documented_order
from shards import FORMATS

pytest_plugins = ("package_fixtures",)

DTYPES = ("uint8", "float16", "bfloat16", "float32")


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as: the given NumPy array is not writable
        yield


@pytest.mark.parametrize("channels_last", [None, False, True])
@pytest.mark.parametrize("layout", ["chw", "hwc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_the_arrays(made, dtype, layout, channels_last):
    built = made("--size", "17x23", "--shards", "3", "--layout", layout)
    last = layout == "hwc" if channels_last is None else channels_last
    for options in ({}, {"shuffle": "full", "seed": 2}, {"crop": 9, "flip": True}, {"views": True}, {"writable": True}):
        tensors = precache.torch.Loader(built.out, 4, dtype=dtype, channels_last=channels_last, **options)
        common = {key: value for key, value in options.items() if key != "views"}
        arrays = precache.Loader(built.out, 4, dtype=dtype, layout="hwc" if last else "chw", **common)
        for (images, labels), (expected, expected_labels) in zip(tensors, arrays, strict=True):
            assert images.dtype == getattr(torch, dtype) and labels.dtype == torch.int64
            shown = images.permute(0, 2, 3, 1) if last else images
            assert shown.contiguous().view(torch.uint8).numpy().tobytes() == expected.tobytes()
            assert labels.tolist() == expected_labels.tolist()
            if "views" not in options:
                format = torch.channels_last if last else torch.contiguous_format
                assert images.is_contiguous(memory_format=format)


@pytest.mark.parametrize("writable", [False, True])
def test_every_batch_may_be_written_to(made, writable):
    """Torch has no read-only tensors, so `writable` makes no difference; only `views` are the shard's pages."""
    built = made("--size", "17x23")
    loader = precache.torch.Loader(built.out, 4, writable=writable)
    for images, _ in loader:
        images.zero_()
    assert loader.stats()["views"] == 0
    assert (next(iter(precache.torch.Loader(built.out, 4)))[0].numpy() == precache.open(built.out)[:4][0]).all()


def test_views_are_asked_for(made):
    built = made("--size", "17x23")
    loader = precache.torch.Loader(built.out, 4, views=True)
    assert len(list(loader)) == loader.stats()["views"] > 0
    with pytest.raises(ValueError, match="writable cannot be combined with views"):
        precache.torch.Loader(built.out, 4, views=True, writable=True)
    with pytest.raises(TypeError, match="views must be .*got 1"):
        precache.torch.Loader(built.out, 4, views=1)


@pytest.mark.parametrize("drop_last, batches", [(True, 2), (False, 3)])
def test_drop_last_is_as_torch_has_it(made, drop_last, batches):
    built = made("--size", "17x23")
    samples = len(precache.open(built.out))
    size = samples // 2 - 1  # two batches, and a rest
    sizes = [len(labels) for _, labels in precache.torch.Loader(built.out, size, drop_last=drop_last)]
    peer = torch.utils.data.DataLoader(precache.torch.Dataset(built.out), size, drop_last=drop_last)
    assert sizes == [len(labels) for _, labels in peer] and len(sizes) == batches


@pytest.mark.parametrize("stored", DTYPES)
def test_every_stored_type(made, stored):
    built = made("--size", "17x23", "--shards", "3", "--dtype", stored)
    expected = np.stack([image for image, _ in precache.open(built.out)])
    for views in (True, False):
        images = torch.cat(
            [images for images, _ in precache.torch.Loader(built.out, 4, last_batch="keep", views=views)]
        )
        assert images.dtype == getattr(torch, stored)
        assert images.contiguous().view(torch.uint8).numpy().tobytes() == expected.tobytes()
    image, label = precache.torch.Dataset(built.out)[5]
    assert image.dtype == getattr(torch, stored) and image.view(torch.uint8).numpy().tobytes() == expected[5].tobytes()
    assert label == precache.open(built.out)[5][1]


@pytest.mark.parametrize("dtype", [torch.float16, np.float16, np.dtype("float16"), "float16"], ids=repr)
def test_types_of_numpy_and_torch_are_accepted(made, dtype):
    images, _ = next(iter(precache.torch.Loader(made("--size", "8").out, 2, dtype=dtype)))
    assert images.dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.float64, np.int64, float, 7], ids=repr)
def test_other_element_types_are_refused(made, dtype):
    with pytest.raises(ValueError, match="dtype must be one of"):
        precache.torch.Loader(made("--size", "8").out, 2, dtype=dtype)


@pytest.mark.parametrize("options", [{}, {"shuffle": "full"}, {"dtype": "bfloat16", "normalize": "imagenet"}], ids=str)
def test_tensors_may_be_written_to(stamps, options):
    untouched, written = (precache.torch.Loader(stamps.out, 4, **options) for _ in range(2))
    for _ in range(5):
        for (images, labels), (mine, my_labels) in zip(untouched, written, strict=True):
            assert torch.equal(images, mine) and torch.equal(labels, my_labels)
            mine.add_(1).mul_(2)
            my_labels.zero_()
    kept = [images for images, _ in written]
    copies = [images.clone() for images in kept]
    for _ in range(5):
        for images, _ in written:
            images.zero_()
    assert all(torch.equal(images, copy) for images, copy in zip(kept, copies, strict=True))


def test_devices(stamps):
    images, labels = next(iter(precache.torch.Loader(stamps.out, 4, device="cpu")))
    assert images.device == labels.device == torch.device("cpu")
    images, _ = next(iter(precache.torch.Loader(stamps.out, 4, device=torch.device("meta"))))
    assert images.device.type == "meta"
    with pytest.raises(RuntimeError, match="nonsense"):
        precache.torch.Loader(stamps.out, 4, device="nonsense")
    if not torch.cuda.is_available():
        for options in ({"device": "cuda"}, {"device": "cuda", "pin_memory": False}):
            with pytest.raises(precache.Unsupported, match="NVIDIA|CUDA|accelerator"):
                precache.torch.Loader(stamps.out, 4, **options)


def test_bad_options(stamps):
    for options, kind, words in (
        ({"layout": "chw"}, TypeError, "use channels_last"),
        ({"rank": 1}, ValueError, "rank 1"),
        ({"dtype": "int8"}, ValueError, "int8"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank 2"),
        ({"nonsense": 1}, TypeError, "nonsense"),
        ({"pin_memory": "yes"}, TypeError, "pin_memory must be True or False, got 'yes'"),
        ({"channels_last": "no"}, TypeError, "channels_last must be True or False, got 'no'"),
    ):
        with pytest.raises(kind, match=words):
            precache.torch.Loader(stamps.out, 4, **options)


def test_states_pass_through_torch_save(stamps):
    first = precache.torch.Loader(stamps.out, 4, shuffle="full", seed=3)
    whole = [images[:, 2, 0, 0].tolist() for images, _ in first]
    first.set_epoch(0)
    iterator = iter(first)
    next(iterator), next(iterator)
    file = io.BytesIO()
    torch.save({"loader": first.state_dict()}, file)
    file.seek(0)
    second = precache.torch.Loader(stamps.out, 4, drop_last=True)
    second.load_state_dict(torch.load(file, weights_only=True)["loader"])
    assert [images[:, 2, 0, 0].tolist() for images, _ in second] == whole[2:]


# --- torch's own DataLoader -------------------------------------------------------------------------------------------


def test_torchs_loader(stamps, in_child):
    """In a child process: JAX and TensorFlow, which other tests import, do not support forks."""
    lines = in_child(
        """
        import multiprocessing, sys, warnings
        import torch
        import precache.torch

        def halved(image):  # spawned workers need a function with a name
            return image.float() / 2

        if __name__ == "__main__":
            warnings.simplefilter("error")
            dataset = precache.torch.Dataset(sys.argv[1], transform=halved)
            expected, expected_labels = precache.open(sys.argv[1], writable=True)[:]
            iterator = iter(precache.Loader(sys.argv[1], 2, shuffle="full"))  # runs meanwhile, in this process
            for workers, method in ((0, None), (2, "fork"), (2, "spawn")):
                next(iterator)
                context = multiprocessing.get_context(method) if method else None
                loader = torch.utils.data.DataLoader(dataset, batch_size=5, num_workers=workers, multiprocessing_context=context)
                images, labels = zip(*loader, strict=True)
                assert torch.equal(torch.cat(images), torch.from_numpy(expected) / 2)
                assert torch.cat(labels).tolist() == expected_labels.tolist()
                print(workers, method, len(images))
            print(sum(1 for _ in iterator))
    """,
        stamps.out,
    )
    assert lines == ["0 None 5", "2 fork 5", "2 spawn 5", "8"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_errors_of_workers(build, animals, tmp_path, in_child, method):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "3")
    built.shard_paths()[0].unlink()
    os.truncate(built.shard_paths()[1], 600)
    lines = in_child(
        """
        import sys
        import torch
        import precache.torch

        if __name__ == "__main__":
            dataset = precache.torch.Dataset(sys.argv[1])
            for first, kind in ((0, FileNotFoundError), (9, precache.CorruptDataError), (23, IndexError)):
                loader = torch.utils.data.DataLoader(dataset, sampler=range(first, first + 1), num_workers=1, timeout=120,
                                                     multiprocessing_context=sys.argv[2])
                try:
                    list(loader)
                except kind as error:
                    print(type(error).__name__, isinstance(error, precache.Error), "train-00000" in str(error))
    """,
        built.out,
        method,
    )
    assert lines == ["IoFileNotFoundError True True", "CorruptDataError True True", "IndexError False False"]


def test_a_shard_that_is_cut_under_a_worker(build, animals, tmp_path, in_child):
    """Torch replaces the reader's handler of SIGBUS when a worker starts."""
    cases = [
        f"{format}-{method}" for format, method in ((FORMATS[0], "spawn"), *((format, "fork") for format in FORMATS))
    ]
    for case in cases:
        build(animals[0], tmp_path / case, "--format", case.split("-")[0], "--size", "40", "--shards", "1")
    lines = in_child(
        """
        import os, pathlib, sys
        import torch
        import precache.torch

        if __name__ == "__main__":
            for folder in map(pathlib.Path, sys.argv[1:]):
                dataset = precache.torch.Dataset(folder)
                dataset[0]  # mapped before a fork
                loader = iter(torch.utils.data.DataLoader(dataset, num_workers=1, prefetch_factor=1, timeout=120,
                                                          multiprocessing_context=folder.name.split("-")[1]))
                next(loader)  # mapped by the worker
                (shard,) = folder.glob("train-*")
                os.truncate(shard, 4096)
                try:
                    print(len(list(loader)))
                except precache.CorruptDataError as error:
                    print("the file was truncated" in str(error))
    """,
        *(tmp_path / case for case in cases),
    )
    assert lines == ["True"] * 4


def test_a_map_style_dataset(stamps):
    dataset = precache.torch.Dataset(stamps.out)
    assert dataset.classes == ["a", "b", "c"] and len(dataset) == 23
    image, label = dataset[-1]
    assert torch.equal(image, torch.tensor(stamps.images[-1])) and label == stamps.labels[-1] and type(label) is int
    image.zero_()
    assert torch.equal(dataset[22][0], torch.tensor(stamps.images[-1]))
    with pytest.raises(IndexError, match="no sample 23"):
        dataset[23]
    for index in (None, 1.0, "1", [1]):
        with pytest.raises(TypeError, match="must be a whole number"):
            dataset[index]
    with pytest.raises(TypeError, match=r"index must be a whole number, got slice\(0, 3, None\)"):
        dataset[0:3]
    assert torch.equal(dataset[np.int64(3)][0], dataset[torch.tensor(3)][0])
    assert sum(1 for _ in dataset) == 23
    shared = precache.open(stamps.out)
    assert precache.torch.Dataset(shared).dataset is shared
    assert len(precache.torch.Dataset(stamps.out, split="train")) == 23
    with pytest.raises(ValueError, match="no split"):
        precache.torch.Dataset(stamps.out, split="val")
    with pytest.raises(ValueError, match="split cannot change an open dataset"):
        precache.torch.Dataset(shared, split="val")


def test_a_dataset_of_hwc_is_shown_as_chw(made):
    built = made("--size", "17x23", "--shards", "3", "--layout", "hwc")
    image, _ = precache.torch.Dataset(built.out)[0]
    assert image.shape == (3, 17, 23)
    assert (image.permute(1, 2, 0).numpy() == precache.open(built.out)[0][0]).all()


# --- several processes ------------------------------------------------------------------------------------------------


def test_distributed_processes_share_an_epoch(stamps, in_child, tmp_path):
    lines = in_child(
        """
        import json, sys
        import torch, torch.distributed as dist, torch.multiprocessing as mp
        import precache.torch

        def work(rank, folder, store, results):
            torch.set_num_threads(1)
            alone = precache.torch.Loader(folder, 4)
            dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
            loader = precache.torch.Loader(folder, 3, shuffle="full", seed=1, last_batch="pad", normalize="imagenet")
            plain = precache.torch.Loader(folder, 3, shuffle="full", seed=1, last_batch="pad")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(360, 3)))
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            seen = []
            for (images, labels), (pixels, _) in zip(loader, plain):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
                seen.append(pixels[:, 2, 0, 0].tolist())
            weights = model.module[1].weight.detach()
            others = [torch.empty_like(weights) for _ in range(2)]
            dist.all_gather(others, weights)
            given = precache.torch.Loader(folder, 4, rank=0, world_size=1)
            results.put((rank, seen, torch.equal(*others), len(alone), len(given), loader.state_dict()))
            dist.destroy_process_group()

        if __name__ == "__main__":
            results = mp.get_context("spawn").SimpleQueue()
            mp.spawn(work, args=(sys.argv[1], sys.argv[2], results), nprocs=2)
            print(json.dumps(sorted(results.get() for _ in range(2))))
    """,
        stamps.out,
        tmp_path / "store",
        CUDA_VISIBLE_DEVICES="",
    )
    order = documented_order(23, "full", 1, 1, 1, 0)
    ranks = json.loads(lines[-1])
    for rank, seen, same_weights, alone, given, state in ranks:
        expected = documented_batches(order, 3, rank, 2, "pad")
        assert seen == [[stamps.numbers[sample] for sample in batch] for batch in expected]
        assert same_weights and (alone, given) == (3, 6) and state == ranks[0][5]
