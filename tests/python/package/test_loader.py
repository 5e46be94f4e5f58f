# SPDX-License-Identifier: Apache-2.0
"""precache.Loader: order, values, iterations and states, compared with docs/reader.md and numpy."""

import inspect
import itertools
import json

import numpy as np
import pytest

import precache
from documented_order import documented_batches, documented_crop, documented_order
from reference import DTYPES, as_floats

pytest_plugins = ("package_fixtures",)

SHUFFLES = (None, "full", "block")
LAST_BATCHES = ("drop", "pad", "keep", "even")
BLOCKS = {"block_rows": 3, "window_blocks": 2}


def loader_of(stamps, batch_size=4, **options):
    return precache.Loader(stamps.out, batch_size, **{"threads": 1, **BLOCKS, **options})


def numbers_in(batches):
    """The numbers of the images in each batch."""
    return [images[:, 2, 0, 0].tolist() for images, _ in batches]


def expected_numbers(stamps, shuffle, seed, epoch, *slicing, **more):
    order = documented_order(len(stamps.numbers), shuffle or "none", 3, 2, seed, epoch)
    return [[stamps.numbers[sample] for sample in batch] for batch in documented_batches(order, *slicing, **more)]


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("last_batch", LAST_BATCHES)
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("batch_size", [1, 4, 23, 30])
def test_every_rank_gets_its_slices_of_the_documented_order(stamps, shuffle, last_batch, world_size, batch_size):
    seen = []
    options = {"shuffle": shuffle, "last_batch": last_batch, "world_size": world_size, "seed": 5}
    if last_batch == "drop" and batch_size * world_size > 23:
        with pytest.raises(ValueError, match="fewer than one batch of"):
            loader_of(stamps, batch_size, **options)
        return
    for rank in range(world_size):
        loader = loader_of(stamps, batch_size, rank=rank, **options)
        loader.set_epoch(2)
        batches = numbers_in(loader)
        assert batches == expected_numbers(stamps, shuffle, 5, 2, batch_size, rank, world_size, last_batch)
        assert len(batches) == len(loader)
        seen += itertools.chain(*batches)
    if last_batch == "drop":
        assert len(seen) == len(set(seen)) == 23 // (batch_size * world_size) * batch_size * world_size
    else:
        assert set(seen) == set(range(23))
    if last_batch == "keep":
        assert len(seen) == 23
    if last_batch == "even":
        assert len(seen) - 23 < world_size


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_order_depends_on_seed_and_epoch_alone(stamps, shuffle):
    for seed, epoch in ((0, 0), (1, 0), (0, 1), (2**64 - 1, 2**63)):
        expected = list(itertools.chain(*expected_numbers(stamps, shuffle, seed, epoch, 23)))
        for options in (
            {"batch_size": 23},
            {"batch_size": 2, "last_batch": "keep", "threads": 3, "prefetch": 7},
            {"batch_size": 5, "last_batch": "keep", "writable": True, "dtype": "float32"},
        ):
            loader = loader_of(stamps, shuffle=shuffle, seed=seed, **options)
            loader.set_epoch(epoch)
            got = np.concatenate([images[:, 2, 0, 0] for images, _ in loader])
            assert (got * (255 if "dtype" in options else 1)).round().astype(int).tolist() == expected


def test_labels_match_the_images(stamps):
    labels_by_number = dict(zip(stamps.numbers, stamps.labels.tolist(), strict=True))
    for images, labels in loader_of(stamps, shuffle="full", last_batch="pad"):
        assert labels.dtype == np.int64
        assert labels.tolist() == [labels_by_number[number] for number in images[:, 2, 0, 0].tolist()]


# --- values -----------------------------------------------------------------------------------------------------------


def expected_batch(
    images, samples, *, seed=0, epoch=0, crop=None, flip=False, normalize=None, dtype="uint8", layout="chw"
):
    """The batch that docs/reader.md specifies, computed by numpy; `images` are HxWxC."""
    rows = []
    for sample in samples:
        image = images[sample]
        height, width = crop or image.shape[:2]
        y, x, mirrored = documented_crop(seed, epoch, sample, image.shape[0] - height, image.shape[1] - width)
        image = image[y : y + height, x : x + width]
        rows.append(image[:, ::-1] if flip and mirrored else image)
    batch = np.stack(rows)
    if dtype != "uint8":
        batch = as_floats(batch, normalize) if batch.dtype == np.uint8 else batch.astype(np.float32)
        batch = batch.astype(DTYPES[dtype])
    return np.ascontiguousarray(batch if layout == "hwc" else batch.transpose(0, 3, 1, 2))


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


def stored_images(built, layout):
    images = np.stack([sample.array for shard in built.shards() for sample in built.read_shard(shard)])
    return images if layout == "hwc" else images.transpose(0, 2, 3, 1)


@pytest.mark.parametrize(
    "dtype, normalize",
    [
        ("uint8", None),
        *itertools.product(("float16", "bfloat16", "float32"), (None, "imagenet", "0.5,0.5,0.5/0.25,0.25,0.25")),
    ],
)
@pytest.mark.parametrize("layout", ["chw", "hwc"])
@pytest.mark.parametrize("stored_layout", ["chw", "hwc"])
def test_pixels_are_those_that_numpy_computes(made, stored_layout, layout, dtype, normalize):
    built = made("--size", "17x23", "--shards", "3", "--layout", stored_layout)
    images = stored_images(built, stored_layout)
    given = {None: None, "imagenet": "imagenet"}.get(normalize, (0.5, (0.25, 0.25, 0.25)))
    order = documented_order(23, "full", 1, 1, 9, 0)
    for crop, flip in ((None, False), ((11, 8), True), ((17, 9), False)):
        loader = precache.Loader(
            built.out, 5, shuffle="full", seed=9, crop=crop, flip=flip, normalize=given, dtype=dtype, layout=layout
        )
        assert loader.spec == (dtype, layout, (3, *(crop or (17, 23))) if layout == "chw" else (*(crop or (17, 23)), 3))
        for (batch, _), samples in zip(loader, documented_batches(order, 5), strict=True):
            expected = expected_batch(
                images, samples, seed=9, crop=crop, flip=flip, normalize=normalize, dtype=dtype, layout=layout
            )
            assert_same_bits(batch, expected)


@pytest.mark.parametrize("stored", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16", "float32"])
def test_stored_floats_are_cropped_and_cast(made, stored, dtype):
    built = made("--size", "17x23", "--shards", "3", "--dtype", stored)
    images = stored_images(built, "chw")
    for options in ({}, {"crop": (5, 20), "flip": True}, {"layout": "hwc"}):
        batch, _ = next(iter(precache.Loader(built.out, 23, seed=4, dtype=dtype, **options)))
        assert_same_bits(batch, expected_batch(images, range(23), seed=4, dtype=dtype or stored, **options))


def test_crops_differ_between_epochs(stamps):
    loader = loader_of(stamps, 23, crop=precache.Crop(7, 5), flip=True, seed=1)
    for epoch in range(3):
        ((images, _),) = loader
        for sample, (rows, columns, _) in enumerate(images):
            y, x, flip = documented_crop(1, epoch, sample, 5, 5)
            across = np.arange(x, x + 5)
            assert (rows == np.arange(y, y + 7)[:, None]).all() and (
                columns == (across[::-1] if flip else across)
            ).all()


@pytest.mark.parametrize("height, width", [(12, 10), (6, 4), (7, 5), (1, 1), (11, 9)])
def test_the_centre_is_torchvisions(stamps, height, width):
    import torch
    from torchvision.transforms import functional

    batch, _ = next(iter(loader_of(stamps, 23, crop=precache.Crop(height, width, "center"))))
    expected = functional.center_crop(torch.tensor(stamps.images), [height, width]).numpy()
    assert_same_bits(batch, np.ascontiguousarray(expected))


def test_normalisation_of_one_number_is_for_every_channel(stamps):
    one, three, plain = (
        next(iter(loader_of(stamps, 23, normalize=normalize)))[0]
        for normalize in ((0.5, 0.25), (np.full(3, 0.5), [0.25] * 3), ([0.5], np.float32(0.25)))
    )
    assert one.dtype == np.float32
    assert_same_bits(one, three)
    assert_same_bits(one, plain)


def test_gray_images(made):
    built = made("--size", "17x23", "--color", "gray")
    batch, _ = next(iter(precache.Loader(built.out, 23, normalize=(0.5, 0.25), dtype="float16")))
    assert batch.shape == (23, 1, 17, 23)
    assert_same_bits(
        batch, expected_batch(stored_images(built, "chw"), range(23), normalize="0.5/0.25", dtype="float16")
    )


# --- iterations -------------------------------------------------------------------------------------------------------


def test_each_for_is_the_next_epoch(stamps):
    loader = loader_of(stamps, shuffle="full")
    assert loader.epoch == 0
    for epoch in range(3):
        assert numbers_in(loader) == expected_numbers(stamps, "full", 0, epoch, 4)
        assert loader.epoch == epoch + 1


def test_an_iteration_that_was_left_early_is_followed_by_the_next_epoch(stamps):
    loader = loader_of(stamps, shuffle="full")
    first = [numbers_in(itertools.islice(loader, 2)) for _ in range(3)]
    assert first == [expected_numbers(stamps, "full", 0, epoch, 4)[:2] for epoch in range(3)]
    assert loader.epoch == 2  # the epoch that is being read
    iterator = iter(loader)
    assert numbers_in(iterator) == expected_numbers(stamps, "full", 0, 3, 4)
    assert list(iterator) == []  # it does not continue with the next epoch
    iter(loader), iter(loader)  # no batch was read
    assert loader.epoch == 4
    loader.set_epoch(8)
    assert loader.epoch == 8
    assert numbers_in(loader) == expected_numbers(stamps, "full", 0, 8, 4)
    assert loader.epoch == 9


def test_an_iteration_that_gave_all_batches_need_not_look_for_the_end(stamps):
    loader = loader_of(stamps, shuffle="full", crop=5)
    for epoch in range(3):
        assert len(list(itertools.islice(loader, len(loader)))) == len(loader) and loader.epoch == epoch
    again, iterator = loader_of(stamps, shuffle="full", crop=5), iter(loader)
    again.set_epoch(3)
    assert [next(iterator)[0].tobytes() for _ in range(len(loader))] == [images.tobytes() for images, _ in again]


def test_two_iterations_at_once_are_refused(stamps):
    loader = loader_of(stamps)
    first = iter(loader)
    next(first)
    second = iter(loader)
    with pytest.raises(precache.InvalidArgument, match="another iteration") as refused:
        next(first)
    assert "two loaders" in refused.value.hint
    assert len(list(second)) == 6
    third = iter(loader)
    next(third)
    loader.set_epoch(0)
    with pytest.raises(ValueError, match=r"set_epoch\(\) was called during this iteration"):
        next(third)
    third = iter(loader)
    next(third)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match=r"load_state_dict\(\) was called during this iteration"):
        next(third)
    with pytest.raises(ValueError):
        loader.set_epoch(-1)
    fourth = iter(loader)
    with pytest.raises(ValueError):
        loader.load_state_dict({})
    with pytest.raises(TypeError):
        loader.set_epoch("1")
    assert len(list(fourth)) == 5  # a refused call changes nothing


@pytest.mark.parametrize("last_batch, sizes", [("pad", [100]), ("keep", [23])])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_batch_larger_than_the_dataset(stamps, last_batch, sizes, shuffle):
    loader = loader_of(stamps, 100, last_batch=last_batch, shuffle=shuffle)
    for _ in range(2):
        assert [len(labels) for _, labels in loader] == sizes and len(loader) == len(sizes)
    for rank in range(3):
        of_three = loader_of(stamps, 100, last_batch=last_batch, shuffle=shuffle, rank=rank, world_size=3)
        assert numbers_in(of_three) == expected_numbers(stamps, shuffle, 0, 0, 100, rank, 3, last_batch)


@pytest.mark.parametrize("options, step", [({"batch_size": 24}, "24"), ({"batch_size": 8, "world_size": 3}, "3 x 8")])
def test_an_epoch_without_a_batch_is_refused(stamps, options, step):
    with pytest.raises(precache.InvalidArgument, match=f"the dataset has 23 samples, fewer than one batch of {step}"):
        loader_of(stamps, last_batch="drop", **options)


def test_a_closed_loader(stamps):
    with loader_of(stamps) as loader:
        state, (images, labels), iterator = loader.state_dict(), next(iter(loader)), iter(loader)
    kept = images.copy()
    for use in (
        lambda: next(iterator),
        lambda: iter(loader),
        lambda: len(loader),
        loader.state_dict,
        loader.stats,
        lambda: loader.epoch,
        lambda: loader.set_epoch(1),
        lambda: loader.load_state_dict(state),
    ):
        with pytest.raises(precache.InvalidArgument, match="the loader is closed"):
            use()
    loader.close()
    assert (images == kept).all() and len(labels) == 4 and loader.spec.dtype == "uint8" and len(loader.dataset) == 23


def test_repr(stamps):
    import precache.torch

    loader = loader_of(stamps, normalize="imagenet", layout="hwc", crop=7)
    assert repr(loader) == "<precache.Loader: 6 batches of 4, float32 7x7x3 hwc, epoch 0>"
    list(loader)
    assert repr(loader).endswith(", epoch 1>")
    loader.close()
    assert repr(loader).endswith(", the loader is closed>")
    assert repr(precache.torch.Loader(stamps.out, 8)).startswith("<precache.torch.Loader: 3 batches of 8, uint8 ")


def test_stats_and_warnings(stamps):
    loader = loader_of(stamps, 3)
    list(loader)
    stats = loader.stats()
    assert (
        stats["batches"] == 8
        and 0 < stats["views"] < 8
        and stats["bytes_touched"] > 0
        and "wait" in stats["bottleneck"]
    )
    with pytest.warns(UserWarning, match="cannot move") as warned:
        loader_of(stamps, crop=(12, 10))
    assert warned[0].filename == __file__


# --- states -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("last_batch", LAST_BATCHES)
@pytest.mark.parametrize("before, after", [((2, 1), (5, 1)), ((3, 2), (2, 3)), ((1, 4), (4, 1)), ((4, 1), (3, 2))])
def test_a_state_resumes_with_other_batches_and_ranks(stamps, shuffle, last_batch, before, after):
    batch_size, world_size = before
    states = []
    for rank in range(world_size):
        loader = loader_of(
            stamps, batch_size, shuffle=shuffle, last_batch=last_batch, seed=6, rank=rank, world_size=world_size
        )
        list(loader)  # epoch 0
        iterator = iter(loader)
        taken = [next(iterator) for _ in range(2)]
        assert (
            numbers_in(taken) == expected_numbers(stamps, shuffle, 6, 1, batch_size, rank, world_size, last_batch)[:2]
        )
        states.append(json.loads(json.dumps(loader.state_dict())))
    assert all(state == states[0] for state in states)
    assert states[0]["position"] == 2 * batch_size * world_size and states[0]["epoch"] == 1
    batch_size, world_size = after
    for rank in range(world_size):
        loader = loader_of(
            stamps,
            batch_size,
            shuffle=shuffle,
            last_batch=last_batch,
            seed=99,
            rank=rank,
            world_size=world_size,
            threads=2,
        )
        loader.load_state_dict(states[0])
        assert loader.state_dict() == states[0]
        slicing = (batch_size, rank, world_size, last_batch)
        assert numbers_in(loader) == expected_numbers(stamps, shuffle, 6, 1, *slicing, position=states[0]["position"])
        assert numbers_in(loader) == expected_numbers(stamps, shuffle, 6, 2, *slicing)


def test_states_are_of_batches_returned_not_filled(stamps):
    loader = loader_of(stamps, 4, prefetch=5)
    iterator = iter(loader)
    for step in range(1, 6):
        next(iterator)
        assert loader.state_dict()["position"] == 4 * step
    assert len(next(iterator)[1]) == 3
    assert loader.epoch == 0
    state = loader.state_dict()  # after the last batch: the beginning of the next epoch
    assert (state["epoch"], state["position"]) == (1, 0)
    assert next(iterator, None) is None
    assert loader.state_dict() == state
    other = loader_of(stamps, 4)
    other.load_state_dict(state)
    assert len(list(other)) == 6 and other.epoch == 2
    other.load_state_dict({**state, "epoch": 0, "position": 23})  # as version 0.1 wrote it
    assert len(list(other)) == 6 and other.epoch == 2
    other.load_state_dict({**state, "position": 8})
    for _ in other:
        break
    assert other.state_dict()["position"] == 12
    assert len(list(other)) == 6 and other.epoch == 3  # left early, so the next epoch follows
    dropping = loader_of(stamps, 4, last_batch="drop")
    dropping.load_state_dict({**state, "position": 20})  # three samples are left, fewer than a batch
    assert len(list(dropping)) == 5 and dropping.epoch == 3


def test_crops_after_a_state_are_those_of_its_seed(stamps):
    options = {"shuffle": "full", "crop": 5, "flip": True}
    whole = [images.copy() for images, _ in loader_of(stamps, 4, seed=3, **options)]
    first = loader_of(stamps, 4, seed=3, **options)
    iterator = iter(first)
    next(iterator), next(iterator)
    second = loader_of(stamps, 4, seed=0, **options)
    second.load_state_dict(first.state_dict())
    for got, expected in zip((images for images, _ in second), whole[2:], strict=True):
        assert_same_bits(got, expected)


def test_setting_the_epoch_of_a_state_keeps_its_place(stamps):
    """Programs with a DistributedSampler call it before every epoch."""
    loader = loader_of(stamps, 4, shuffle="full")
    list(loader)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    other = loader_of(stamps, 4, last_batch="drop")
    other.load_state_dict(state)
    for epoch in (1, 2):
        other.set_epoch(epoch)
        assert numbers_in(other) == expected_numbers(stamps, "full", 0, epoch, 4)[2 if epoch == 1 else 0 :]
    other.load_state_dict(state)
    next(iter(other))
    other.set_epoch(1)  # after a batch was read, the epoch restarts
    assert numbers_in(other) == expected_numbers(stamps, "full", 0, 1, 4)
    other.load_state_dict(state)
    other.set_epoch(2)
    other.set_epoch(1)
    assert numbers_in(other) == expected_numbers(stamps, "full", 0, 1, 4)


def bad_states(state):
    yield from (None, [], "x", 3, {}, {"a": object()}, {**state, 1: {2}})
    for name in state:
        yield {key: value for key, value in state.items() if key != name}
        yield from ({**state, name: value} for value in (None, -1, 1.5, "x", [], float("nan"), 2**64, 10**400 + 1))
    yield from (
        {**state, "samples": 22},
        {**state, "position": 24},
        {**state, "version": 2},
        {**state, "block_rows": 0},
    )


def test_bad_states_are_refused(stamps):
    loader = loader_of(stamps, shuffle="block")
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    for bad in bad_states(state):
        with pytest.raises(precache.InvalidArgument):
            loader.load_state_dict(bad)
    assert loader.state_dict() == state and len(list(iterator)) == 4


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda state: {}, "the loader state has no 'version'"),
        (lambda state: {"a": 1}, "the loader state has no 'version'"),
        (lambda state: {key: value for key, value in state.items() if key != "seed"}, "the loader state has no 'seed'"),
        (lambda state: {**state, "shuffle": 3}, "loader state: 'shuffle' must be a string"),
        (lambda state: {**state, "epoch": "1"}, "loader state: 'epoch' must be a non-negative integer"),
    ],
    ids=range(5),
)
def test_messages_about_bad_states(stamps, change, words):
    loader = loader_of(stamps)
    with pytest.raises(precache.InvalidArgument) as refused:
        loader.load_state_dict(change(loader.state_dict()))
    assert refused.value.message == words


@pytest.mark.parametrize("drop_last, last_batch", [(True, "drop"), (False, "keep"), (np.False_, "keep"), (None, None)])
def test_drop_last_is_another_name(stamps, drop_last, last_batch):
    sizes = [len(labels) for _, labels in precache.Loader(stamps.out, 10, drop_last=drop_last)]
    assert sizes == [len(labels) for _, labels in precache.Loader(stamps.out, 10, last_batch=last_batch)]
    assert sizes == ([10, 10] if last_batch == "drop" else [10, 10, 3])


def test_writable_is_the_same_in_every_loader(stamps):
    import precache.torch

    for loader in (precache.Loader, precache.torch.Loader, precache.open):
        assert inspect.signature(loader).parameters["writable"].default is False


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, kind, words",
    [
        ({"batch_size": 0}, ValueError, "batch_size must be ... got 0"),
        ({"batch_size": -1}, ValueError, "batch_size must be ... got -1"),
        ({"batch_size": "4"}, TypeError, "batch_size must be ... got '4'"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be ... got 2.5"),
        ({"batch_size": None}, TypeError, "batch_size must be ... got None"),
        ({"batch_size": 2**32}, ValueError, "4294967296"),
        ({"batch_size": 2**64}, ValueError, "batch_size"),
        (
            {"batch_size": 2**32 - 1, "last_batch": "pad"},
            ValueError,
            "batch_size= must be at most 1048576 to pad a dataset of 23 samples, got 4294967295",
        ),
        ({"shuffle": 1}, ValueError, "shuffle must be ... got 1"),
        ({"shuffle": "block", "weights": [1] * 23}, ValueError, "weights= cannot be combined with shuffle= block"),
        ({"weights": [1] * 22}, ValueError, "weights= must have one entry for each of 23 samples, got 22"),
        ({"weights": [0] * 23}, ValueError, "the sum of weights= must be finite and above 0, got 0"),
        ({"weights": [1] * 22 + [-1]}, ValueError, "weights= must be finite and not negative, got -1"),
        ({"weights": []}, ValueError, "weights must have ... got []"),
        ({"weights": "heavy"}, ValueError, "weights must have ... got 'heavy'"),
        ({"batch_transform": 3}, TypeError, "batch_transform must be ... got 3"),
        ({"as_dict": True}, ValueError, "as_dict must be ... got True"),
        ({"as_dict": ("a", "b", "c")}, ValueError, "as_dict must be ... got ('a', 'b', 'c')"),
        ({"split": "val"}, ValueError, "no split 'val'"),
        ({"normalize": ((125.3, 122.9, 113.8), (51.5, 50.8, 51.2))}, ValueError, "normalize has a mean of 125.3"),
        ({"normalize": (0, 255)}, ValueError, "normalize has a standard deviation of 255"),
        ({"normalize": (0.5, (0.5, 127.5, 0.5))}, ValueError, "normalize has a standard deviation of 127.5"),
        ({"shuffle": "blocks"}, ValueError, "shuffle must be ... got 'blocks'"),
        ({"shuffle": "block", "block_rows": 0}, ValueError, "block_rows must be ... got 0"),
        ({"shuffle": "block", "window_blocks": 0}, ValueError, "window_blocks must be ... got 0"),
        ({"block_rows": -1}, ValueError, "block_rows must be ... got -1"),
        ({"seed": -1}, ValueError, "seed must be ... got -1"),
        ({"seed": 2**64}, ValueError, "seed must be"),
        ({"seed": "a"}, TypeError, "seed must be ... got 'a'"),
        ({"rank": 1}, ValueError, "rank= must be below world_size=, got rank 1 of 1"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank= must be below world_size=, got rank 2 of 2"),
        ({"rank": -1, "world_size": 2}, ValueError, "rank must be ... got -1"),
        ({"world_size": 0}, ValueError, "world_size must be ... got 0"),
        ({"world_size": 2**63}, ValueError, "world_size must be"),
        ({"last_batch": "truncate"}, ValueError, "last_batch must be ... got 'truncate'"),
        ({"last_batch": 1}, ValueError, "last_batch must be ... got 1"),
        ({"drop_last": 1}, TypeError, "drop_last must be ... got 1"),
        ({"drop_last": True, "last_batch": "drop"}, ValueError, "last_batch cannot be combined with drop_last"),
        ({"crop": 0}, ValueError, "crop= must fit tensors of 12x10, got 0x0"),
        ({"crop": 13}, ValueError, "crop= must fit tensors of 12x10, got 13x13"),
        ({"crop": -3}, ValueError, "-3"),
        ({"crop": "8"}, TypeError, "'8'"),
        ({"crop": 8.5}, TypeError, "8.5"),
        ({"crop": (8,)}, ValueError, "crop must be ... got (8,)"),
        ({"crop": (8, 8, "left")}, ValueError, "'left'"),
        ({"crop": (8, 8, "center", 1)}, ValueError, "crop must be"),
        ({"crop": 2**40}, ValueError, "crop must be ... got 1099511627776"),
        ({"flip": "yes"}, TypeError, "flip must be ... got 'yes'"),
        ({"normalize": "cifar"}, ValueError, "normalize must be ... got 'cifar'"),
        ({"normalize": 0.5}, ValueError, "normalize must be ... got 0.5"),
        ({"normalize": (0.5, 0.5, 0.5)}, ValueError, "normalize must be"),
        ({"normalize": ((0.5, 0.5), 0.2)}, ValueError, "normalize must be"),
        ({"normalize": ((0.5,) * 4, 0.2)}, ValueError, "normalize must be"),
        ({"normalize": (0.5, "a")}, ValueError, "normalize must be"),
        ({"normalize": (0.5, None)}, ValueError, "normalize must be"),
        ({"normalize": (0.5, 0)}, ValueError, "standard deviation of 0"),
        ({"normalize": (float("nan"), 1)}, ValueError, "got mean nan"),
        ({"normalize": (1e300, 1)}, ValueError, "normalize has a mean of 1e+300"),
        ({"normalize": (float("inf"), 1)}, ValueError, "got mean inf"),
        (
            {"normalize": (0.5, 0.2), "dtype": "uint8"},
            ValueError,
            "dtype= must be a float type with normalize=, got uint8",
        ),
        ({"dtype": "float64"}, ValueError, "dtype must be ... got 'float64'"),
        ({"dtype": np.float64}, ValueError, "dtype must be"),
        ({"layout": "nhwc"}, ValueError, "layout must be ... got 'nhwc'"),
        ({"threads": -1}, ValueError, "threads must be ... got -1"),
        ({"threads": 10**6}, ValueError, "threads must be ... got 1000000"),
        ({"threads": 1.5}, TypeError, "threads must be ... got 1.5"),
        ({"prefetch": 0}, ValueError, "prefetch must be ... got 0"),
        ({"prefetch": 2**63}, ValueError, "prefetch must be"),
        ({"writable": "no"}, TypeError, "writable must be ... got 'no'"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
    ids=str,
)
def test_bad_options(stamps, options, kind, words):
    with pytest.raises(kind) as refused:
        precache.Loader(stamps.out, **{"batch_size": 4, **options})
    text = str(refused.value)
    assert all(part in text for part in words.split("... ")) and "incompatible function arguments" not in text


@pytest.mark.parametrize(
    "options, least, largest",
    [
        ({"batch_size": 0}, 1, 2**32 - 1),
        ({"batch_size": 2**32}, 1, 2**32 - 1),
        ({"prefetch": 0}, 1, 2**20),
        ({"world_size": 0}, 1, 2**24),
        ({"world_size": 2**24 + 1}, 1, 2**24),
        ({"block_rows": 0}, 1, 2**64 - 1),
        ({"window_blocks": 0}, 1, 2**64 - 1),
        ({"threads": -1}, 0, 4096),
        ({"seed": -1}, 0, 2**64 - 1),
    ],
    ids=str,
)
def test_the_error_for_a_number_out_of_range_has_the_range(stamps, options, least, largest):
    with pytest.raises(precache.InvalidArgument) as refused:
        precache.Loader(stamps.out, **{"batch_size": 4, **options})
    [(name, value)] = options.items()
    assert refused.value.message == f"{name} must be from {least} to {largest}, got {value}"


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": np.int64(4)},
        {"crop": np.int64(5)},
        {"crop": [5, 6]},
        {"flip": np.bool_(True)},
        {"seed": 2**64 - 1},
        {"shuffle": "block", "block_rows": 2**63, "window_blocks": 2**63},
        {"shuffle": "none"},
        {"threads": 16, "prefetch": 1},
        {"prefetch": 100},
        {"dtype": "uint8", "layout": "chw"},
        {"normalize": np.full((2, 3), 0.5)},
    ],
    ids=str,
)
def test_good_options(stamps, options):
    batches = list(precache.Loader(stamps.out, **{"batch_size": 4, **options}))
    assert [len(labels) for _, labels in batches][:5] == [4] * 5


def test_more_memory_than_there_is(stamps, in_child):
    lines = in_child(
        """
        import resource, sys
        import precache
        resource.setrlimit(resource.RLIMIT_AS, (1400 << 20, 1400 << 20))
        loader = precache.Loader(sys.argv[1], 2**20, last_batch="pad", dtype="float32")  # 1440 MiB a batch
        try:
            list(loader)
        except MemoryError:
            print("no memory")
        print(len(loader), len(loader.dataset[:][0]))
    """,
        stamps.out,
    )
    assert lines == ["no memory", "1 23"]


def test_more_threads_than_the_system_starts(stamps, in_child):
    lines = in_child(
        """
        import errno, resource, sys
        import precache
        dataset = precache.open(sys.argv[1])
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), resource.RLIM_INFINITY))
        try:
            precache.Loader(dataset, 4, threads=4096)  # the stack of each takes 8 MiB of addresses
        except OSError as error:
            print(isinstance(error, precache.IoError), error.errno == errno.EAGAIN, error.filename)
            print(error.message, "fewer threads" in error.hint)
        print(len(list(precache.Loader(dataset, 4, threads=2))))
    """,
        stamps.out,
    )
    assert lines == ["True True None", "cannot start a thread: Resource temporarily unavailable True", "6"]


@pytest.mark.parametrize("dataset", [None, 3, 1.5, [None]], ids=str)
def test_other_types_are_not_datasets(dataset):
    with pytest.raises(TypeError):
        precache.Loader(dataset)
