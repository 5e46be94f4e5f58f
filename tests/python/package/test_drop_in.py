# SPDX-License-Identifier: Apache-2.0
"""Loaders in place of torch's DataLoader: attributes, hooks, subsets, weights, pickling and process groups."""

import copy
import inspect
import itertools
import json
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, SequentialSampler, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms
from torchvision.transforms import v2

import precache
import precache.tensorflow
import precache.torch
from documented_order import documented_draws, documented_order

pytest_plugins = ("package_fixtures",)


def numbers_in(batches):
    """The numbers of the images in each batch of stamps."""
    return [images[:, 2, 0, 0].tolist() for images, _ in batches]


def full_order(stamps, seed=0, epoch=0):
    return [stamps.numbers[sample] for sample in documented_order(23, "full", 1, 1, seed, epoch)]


# --- attributes -------------------------------------------------------------------------------------------------------


def test_a_loader_has_the_attributes_of_a_dataloader(stamps):
    loader = precache.torch.Loader(stamps.out, 4, shuffle=True)
    peer = DataLoader(precache.torch.Dataset(stamps.out), 4, shuffle=True, drop_last=True)
    known = set(vars(peer)) - {"sampler", "batch_sampler", "dataset"}
    for name in (*(name for name in known if not name.startswith("_")), "multiprocessing_context"):
        assert getattr(loader, name) == getattr(peer, name)
    assert len(loader) == len(peer) and len(loader.batch_sampler) == len(peer.batch_sampler)
    assert len(loader.dataset) == len(peer.dataset)
    loader.sampler.set_epoch(3)
    assert loader.epoch == 3 and loader.batch_sampler.sampler is not None
    loader.batch_sampler.set_epoch(1)
    assert numbers_in(loader)[0] == full_order(stamps, epoch=1)[:4]


@pytest.mark.parametrize("last_batch", ["drop", "pad", "keep", "even"])
@pytest.mark.parametrize("batch_size, world_size", [(4, 1), (4, 3), (5, 2), (23, 1), (1, 7)])
def test_a_sampler_has_the_length_of_its_rank(stamps, last_batch, batch_size, world_size):
    for rank in range(world_size):
        loader = precache.Loader(stamps.out, batch_size, rank=rank, world_size=world_size, last_batch=last_batch)
        assert len(loader.sampler) == sum(len(labels) for _, labels in loader)
        assert [stamps.numbers[i] for i in loader.sampler] == sum(numbers_in(loader), [])


def test_a_sampler_is_one_of_torch(stamps):
    sampler = precache.torch.Loader(stamps.out, 4).sampler
    assert isinstance(sampler, SequentialSampler) and list(sampler) == list(range(23))
    sampler.set_epoch(2)
    for options in {"shuffle": True}, {"weights": [1] * 23}:
        sampler = precache.torch.Loader(stamps.out, 4, **options).sampler
        assert isinstance(sampler, Sampler) and not isinstance(sampler, SequentialSampler)
        with pytest.raises(precache.InvalidArgument, match="sampler of a shuffled loader does not list samples"):
            list(sampler)


def test_set_epoch_after_iter_changes_nothing_in_its_epoch(stamps):
    loader = precache.torch.Loader(stamps.out, 4, shuffle=True)
    batches = iter(loader)
    loader.set_epoch(0)  # as Lightning calls it
    assert numbers_in(batches) == numbers_in(precache.torch.Loader(stamps.out, 4, shuffle=True))


def test_a_loader_takes_a_dataset_of_torch(stamps):
    dataset = precache.torch.Dataset(stamps.out)
    for kind in precache.Loader, precache.torch.Loader:
        assert kind(dataset, 4).dataset is dataset.dataset
        with pytest.raises(precache.InvalidArgument, match="would ignore transform, pil of the precache.torch.Dataset"):
            kind(precache.torch.Dataset(stamps.out, len, pil=True), 4)
        with pytest.raises(precache.InvalidArgument, match="not take a Subset of torch") as raised:
            kind(Subset(dataset, [1, 2]), 4)
        assert "precache.open(..., indices=subset.indices)" in raised.value.hint


@pytest.mark.parametrize("batch_size, world_size", [(4, 2), (4, 3), (5, 2), (8, 4), (30, 4)])
def test_even_batches_are_those_of_a_distributed_sampler(stamps, batch_size, world_size):
    dataset = precache.torch.Dataset(stamps.out)
    for rank in range(world_size):
        sampler = DistributedSampler(dataset, world_size, rank)
        peer = [len(labels) for _, labels in DataLoader(dataset, batch_size, sampler=sampler)]
        loader = precache.Loader(stamps.out, batch_size, rank=rank, world_size=world_size, last_batch="even")
        assert [len(labels) for _, labels in loader] == peer and len(loader.sampler) == len(sampler)


def test_a_dataset_has_the_attributes_of_an_image_folder(stamps):
    for dataset in (precache.open(stamps.out), precache.torch.Dataset(stamps.out)):
        assert dataset.class_to_idx == {"a": 0, "b": 1, "c": 2} and dataset.num_classes == 3
        assert dataset.targets == stamps.labels.tolist() and type(dataset.targets[0]) is int
        assert (
            dataset.samples[5] == (precache.open(stamps.out).keys[5], stamps.labels[5]) and len(dataset.samples) == 23
        )


def test_integer_labels_have_a_number_of_classes(build, tmp_path, stamps):
    source = stamps.out.parent / "images"
    paths = sorted(path.relative_to(source) for path in source.rglob("*.png"))
    (tmp_path / "labels.csv").write_text("path,label\n" + "".join(f"{path},{i % 7}\n" for i, path in enumerate(paths)))
    dataset = precache.open(build(source, tmp_path / "out", "--size", "8", "--labels", tmp_path / "labels.csv").out)
    assert dataset.classes == [] and dataset.class_to_idx == {} and dataset.num_classes == 7


def test_a_split_is_chosen_by_name(build, animals, tmp_path):
    build(animals[0], tmp_path / "out", "--size", "8")
    build(animals[0], tmp_path / "out", "--size", "8", "--split", "val", "--no-shuffle")
    for kind in (precache.Loader, precache.torch.Loader):
        loader = kind(tmp_path / "out", 4, split="val")
        assert list(loader.dataset.keys) == list(precache.open(tmp_path / "out", "val").keys)
        with pytest.raises(precache.InvalidArgument, match="split cannot change an open dataset"):
            kind(loader.dataset, 4, split="val")


def test_shuffle_may_be_a_truth_value(stamps):
    assert numbers_in(precache.Loader(stamps.out, 4, shuffle=True)) == numbers_in(
        precache.Loader(stamps.out, 4, shuffle="full")
    )
    assert numbers_in(precache.Loader(stamps.out, 4, shuffle=np.False_)) == numbers_in(precache.Loader(stamps.out, 4))


@pytest.mark.parametrize(
    "options, samples",
    [({}, 23), ({"shuffle": True}, 20), ({"shuffle": "block"}, 20), ({"weights": [1] * 23}, 20)],
    ids=str,
)
def test_only_a_shuffled_epoch_drops_samples_by_default(stamps, options, samples):
    assert sum(len(labels) for _, labels in precache.Loader(stamps.out, 4, **options)) == samples


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_a_batch_transform_is_applied_to_each_batch(stamps):
    plain = list(precache.torch.Loader(stamps.out, 4, dtype="float32"))
    mix = v2.MixUp(num_classes=3, alpha=1.0)
    loader = precache.torch.Loader(stamps.out, 4, dtype="float32", batch_transform=mix)
    torch.manual_seed(0)
    mixed = list(loader)
    torch.manual_seed(0)
    for (images, labels), batch in zip(mixed, plain, strict=True):
        expected_images, expected_labels = mix(*batch)
        assert torch.equal(images, expected_images) and torch.equal(labels, expected_labels) and labels.shape[1] == 3
    assert len(loader) == 6 and loader.dataset.classes == ["a", "b", "c"]
    assert list(precache.Loader(stamps.out, 23, batch_transform=lambda images, labels: len(images))) == [23]


def test_batches_may_be_dicts(stamps):
    (batch,) = precache.torch.Loader(stamps.out, 23, as_dict=("pixel_values", "labels"))
    assert list(batch) == ["pixel_values", "labels"] and batch["pixel_values"].shape == (23, 3, 12, 10)
    (batch,) = precache.Loader(
        stamps.out, 23, as_dict=["x", "y"], batch_transform=lambda images, labels: (labels, images)
    )
    assert batch["x"].shape == (23,)


def test_forever(stamps):
    loader = precache.Loader(stamps.out, 10, shuffle=True)
    assert inspect.isgenerator(loader.forever())
    batches = numbers_in(itertools.islice(loader.forever(), 5))
    assert batches == [full_order(stamps, epoch=i // 2)[i % 2 * 10 :][:10] for i in range(5)]
    empty = precache.Loader(precache.open(stamps.out, indices=[]), 10, shuffle=True)
    with pytest.raises(precache.InvalidArgument, match="no batches"):
        empty.forever()


@pytest.mark.parametrize("kind", [transforms.Normalize, v2.Normalize])
def test_normalize_of_torchvision_is_accepted(stamps, kind, tmp_path):
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    ((images, _),) = precache.torch.Loader(stamps.out, 23, normalize=kind(mean, std))
    ((expected, _),) = precache.torch.Loader(stamps.out, 23, normalize="imagenet")
    assert torch.equal(images, expected)
    source = stamps.out.parent / "images"
    precache.build(source, tmp_path / "out", size=8, dtype="float32", normalize=kind(mean, std), progress=False)
    precache.build(source, tmp_path / "named", size=8, dtype="float32", normalize="imagenet", progress=False)
    assert (precache.open(tmp_path / "out")[:][0] == precache.open(tmp_path / "named")[:][0]).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda path, normalize: precache.Loader(path, 4, normalize=normalize),
        lambda path, normalize: precache.torch.Loader(path, 4, normalize=transforms.Normalize(*normalize)),
        lambda path, normalize: precache.build(path, "nowhere", dtype="float32", normalize=normalize),
        lambda path, normalize: precache.build(path.parent, "nowhere", dtype="float32", normalize="125.3/51"),
        lambda path, normalize: precache.convert(path, "nowhere", dtype="float32", normalize=normalize),
        lambda path, normalize: precache.convert(path, "nowhere", dtype="float32", normalize="125.3,0.5,0.5/51"),
        lambda path, normalize: precache.tensorflow.dataset(path, 4, normalize=normalize),
    ],
    ids=range(7),
)
def test_means_of_0_to_255_are_refused(stamps, call):
    with pytest.raises(
        precache.InvalidArgument, match=r"normalize=? has a mean of 125.3, but it applies to x/255"
    ) as refused:
        call(stamps.out, ((125.3, 122.9, 113.8), (51.5, 50.8, 51.2)))
    assert refused.value.hint == "Divide means and standard deviations by 255."


def test_pinning_without_a_gpu_is_a_warning(stamps):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.warns(UserWarning, match="pin_memory is True, but torch cannot pin memory") as warned:
        loader = precache.torch.Loader(stamps.out, 4, pin_memory=True)
    assert warned[0].filename == __file__ and loader.pin_memory is False and len(list(loader)) == 6


@pytest.mark.parametrize("color, mode", [("rgb", "RGB"), ("gray", "L")])
def test_a_dataset_may_give_pil_images(made, color, mode):
    built = made("--size", "17x23", "--color", color)
    steps = transforms.Compose([transforms.CenterCrop(9), transforms.ToTensor()])
    dataset = precache.torch.Dataset(built.out, steps, target_transform=lambda label: -label, pil=True)
    plain = precache.torch.Dataset(built.out)
    image, label = dataset[3]
    assert torch.equal(image, plain[3][0][:, 4:13, 7:16].float() / 255) and label == -plain[3][1]
    images, labels = next(iter(DataLoader(dataset, 4)))
    assert torch.equal(images[3], image) and labels[3] == label
    shown = precache.torch.Dataset(built.out, pil=True)[3][0]
    assert shown.mode == mode and shown.size == (23, 17)
    with pytest.raises(precache.InvalidArgument, match="pil needs uint8 tensors"):
        precache.torch.Dataset(made("--size", "17x23", "--dtype", "float32").out, pil=True)


# --- subsets and weights ----------------------------------------------------------------------------------------------


def test_a_subset_is_a_dataset(stamps):
    whole = precache.open(stamps.out)
    mask = np.arange(23) % 5 == 1
    for indices in ([1, 6, 11, 16, 21], np.array([1, 6, 11, 16, -2]), mask):
        part = precache.open(stamps.out, indices=indices)
        assert (
            len(part) == 5
            and list(part.keys) == whole.keys[1::5]
            and part.labels.tolist() == whole.labels[1::5].tolist()
        )
        assert (part[-1][0] == whole[21][0]).all() and (part[1:3][0] == whole[6:12:5][0]).all()
        assert (part.gather([4, 0])[0] == whole.gather([21, 1])[0]).all()
        again = pickle.loads(pickle.dumps(part))
        assert list(again.keys) == list(part.keys) and again.classes == whole.classes
        with pytest.raises(IndexError, match="no sample 5, the dataset has 5"):
            part[5]
    with pytest.raises(IndexError, match="no sample 23"):
        precache.open(stamps.out, indices=[23])
    with pytest.raises(TypeError, match="must be a sequence of whole numbers"):
        precache.open(stamps.out, indices=[0.5])


def test_only_some_classes(stamps):
    expected = [number for number, label in zip(stamps.numbers, stamps.labels, strict=True) if label in (0, 2)]
    for names in (["a", "c"], [0, 2], ["c", 0]):
        part = precache.open(stamps.out, only_classes=names)
        assert numbers_in([part[:]]) == [expected] and part.num_classes == 3
    both = precache.open(stamps.out, indices=range(10), only_classes=["b"])
    assert both.labels.tolist() == [1] * (stamps.labels[:10] == 1).sum()
    with pytest.raises(precache.InvalidArgument, match="only_classes has 'd', which is not a class"):
        precache.open(stamps.out, only_classes=["d"])
    with pytest.raises(precache.InvalidArgument, match="only_classes has 7, but the largest label is 2"):
        precache.open(stamps.out, only_classes=[1, 7])
    with pytest.raises(precache.InvalidArgument, match="only_classes must be a list of classes, got 'a'"):
        precache.open(stamps.out, only_classes="a")


def test_a_loader_reads_a_subset(stamps):
    indices = np.random.default_rng(0).permutation(23)[:11]
    part = precache.open(stamps.out, indices=indices)
    wanted = [stamps.numbers[i] for i in indices]
    assert numbers_in(precache.Loader(part, 4)) == [wanted[:4], wanted[4:8], wanted[8:]]
    loader = precache.Loader(part, 11, shuffle=True, seed=3, crop=7, flip=True)
    order = documented_order(11, "full", 1, 1, 3, 0)
    ((images, labels),) = loader
    assert images[:, 2, 0, 0].tolist() == [wanted[i] for i in order] and labels.tolist() == part.labels[order].tolist()
    crops = {
        images[2, 0, 0]: images.tobytes()
        for images in next(iter(precache.Loader(stamps.out, 23, seed=3, crop=7, flip=True)))[0]
    }
    assert all(crops[image[2, 0, 0]] == image.tobytes() for image in images)  # those of the whole dataset
    state = {**loader.state_dict(), "samples": 23}
    with pytest.raises(precache.InvalidArgument, match="dataset of 23 samples, but this one has 11"):
        loader.load_state_dict(state)


def test_weights_draw_the_documented_samples(stamps):
    weights = np.where(stamps.labels == 2, 8.0, 1.0)
    weights[:3] = 0
    for epoch in range(3):
        loader = precache.Loader(
            stamps.out, 5, weights=weights, seed=6, last_batch="keep", threads=2, shuffle=epoch == 1
        )
        loader.set_epoch(epoch)
        iterator = iter(loader)
        first = next(iterator)
        drawn = [stamps.numbers[i] for i in documented_draws(weights, 6, epoch)]
        resumed = precache.Loader(stamps.out, 9, weights=weights, last_batch="keep")
        resumed.load_state_dict(loader.state_dict())
        assert sum(numbers_in([first, *iterator]), []) == drawn == drawn[:5] + sum(numbers_in(resumed), [])
    assert len(set(drawn)) < 23
    with pytest.raises(precache.InvalidArgument, match="the state belongs to a loader with weights="):
        precache.Loader(stamps.out, 5).load_state_dict(loader.state_dict())


# --- pickling ---------------------------------------------------------------------------------------------------------


def double(images, labels):
    return images * 2, labels


@pytest.mark.parametrize(
    "again",
    [lambda loader: pickle.loads(pickle.dumps(loader)), copy.deepcopy, copy.copy],
    ids=["pickle", "deepcopy", "copy"],
)
@pytest.mark.parametrize("kind", [precache.Loader, precache.torch.Loader])
def test_a_loader_is_pickled_with_its_state(stamps, monkeypatch, tmp_path, kind, again):
    monkeypatch.chdir(stamps.out.parent)
    loader = kind(stamps.out.name, 4, shuffle=True, seed=5, crop=7, batch_transform=double, prefetch=2)
    list(loader)
    iterator = iter(loader)
    next(iterator)
    monkeypatch.chdir(tmp_path)
    copied = again(loader)
    assert copied.state_dict() == loader.state_dict() and repr(copied) == repr(loader)
    rest = [(images.tolist(), labels.tolist()) for images, labels in iterator]
    assert [(images.tolist(), labels.tolist()) for images, labels in copied] == rest and len(rest) == 4
    loader.close()
    with pytest.raises(precache.InvalidArgument, match="the loader is closed"):
        len(again(loader))


def test_a_dataloader_passes_batches_on(stamps):
    """As Accelerate and transformers make one, to skip the batches before a checkpoint."""
    loader = precache.torch.Loader(stamps.out, 4, shuffle=True, crop=7, normalize="imagenet")
    expected = [(images.clone(), labels) for images, labels in loader]
    loader.set_epoch(0)
    passed = DataLoader(loader.dataset, batch_sampler=loader.batch_sampler)
    for (images, labels), (expected_images, expected_labels) in zip(passed, expected, strict=True):
        assert torch.equal(images, expected_images) and torch.equal(labels, expected_labels)
    plain = DataLoader(loader.dataset, batch_sampler=BatchSampler(RandomSampler(loader.dataset), 4, False))
    assert len(list(plain)) == 6  # other samplers still give indices


# --- process groups ---------------------------------------------------------------------------------------------------

GROUP = """
    import json, sys, warnings
    import torch, torch.distributed as dist, torch.multiprocessing as mp
    import precache.torch

    def numbers(batches):
        return [images[:, 2, 0, 0].tolist() for images, _ in batches]

    def message(call):
        try:
            call()
        except precache.InvalidArgument as error:
            return error.message

    def work(rank, loader, folder, store, results):
        torch.set_num_threads(1)
        warnings.simplefilter("error")
        lengths = [len(loader)]
        early = precache.torch.Loader(folder, 3)
        next(iter(early))
        fixed = precache.torch.Loader(folder, 3, rank=0, world_size=1)
        next(iter(fixed))
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        lengths.append(len(loader))
        seen = numbers(loader)
        errors = [message(lambda: iter(early)), message(lambda: iter(fixed))]
        running = iter(loader)
        next(running)
        even = precache.torch.Loader(folder, 4)
        gathered = []
        for _, labels in even:
            parts = [torch.empty_like(labels) for _ in range(2)]
            dist.all_gather(parts, labels)
            gathered.append(sum(map(len, parts)))
        kept = [len(labels) for _, labels in precache.torch.Loader(folder, 4, last_batch="keep")]
        dist.destroy_process_group()
        errors += [message(lambda: next(running)), message(lambda: iter(loader))]
        results.put((rank, lengths, seen, errors, gathered, kept, loader.state_dict()["epoch"]))

    if __name__ == "__main__":
        loader = precache.torch.Loader(sys.argv[1], 3, shuffle=True, seed=1)
        results = mp.get_context("spawn").SimpleQueue()
        mp.spawn(work, args=(loader, sys.argv[1], sys.argv[2], results), nprocs=2)
        print(json.dumps(sorted(results.get() for _ in range(2))))
"""


def test_a_loader_that_is_made_before_the_process_group_follows_it(stamps, in_child, tmp_path):
    """It is sent to the processes by pickling, too, as mp.spawn does with its arguments."""
    ranks = json.loads(in_child(GROUP, stamps.out, tmp_path / "store", CUDA_VISIBLE_DEVICES="")[-1])
    order = full_order(stamps, seed=1)
    for rank, lengths, seen, errors, gathered, kept, epoch in ranks:
        assert lengths == [7, 3]
        assert seen == [order[first + 3 * rank :][:3] for first in (0, 6, 12)]
        appeared, fixed, *ended = errors
        assert appeared == f"this loader began as rank 0 of 1, and the process is now rank {rank} of 2"
        assert fixed is None  # rank and world_size were given
        assert ended == [f"this loader began as rank {rank} of 2, and the process is now rank 0 of 1"] * 2
        assert gathered == [8, 8, 8] and kept == [[4, 4, 4], [4, 4, 3]][rank] and epoch == 1
