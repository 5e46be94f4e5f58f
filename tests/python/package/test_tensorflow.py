# SPDX-License-Identifier: Apache-2.0
"""precache.tensorflow: a tf.data.Dataset of the loader's batches."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
import torch
from torchvision.transforms import v2

import precache
import precache.tensorflow
from precache import transforms
from resources import comes_true

pytest_plugins = ("package_fixtures",)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": "full", "seed": 3},
        {"dtype": "float32", "normalize": "imagenet", "layout": "hwc"},
        {"dtype": "float16"},
        {"dtype": "bfloat16", "crop": 7, "flip": True},
        {"last_batch": "keep"},
        {"last_batch": "pad", "rank": 1, "world_size": 2},
    ],
    ids=str,
)
def test_batches_are_the_loaders(stamps, options):
    dataset = precache.tensorflow.dataset(stamps.out, 4, **options)
    loader = precache.Loader(stamps.out, 4, **options)
    assert int(dataset.cardinality()) == len(loader)
    images_spec, labels_spec = dataset.element_spec
    drops = "shuffle" in options or options.get("last_batch") == "pad"
    rows = 4 if drops else None  # the last batch is shorter
    assert images_spec.shape.as_list() == [rows, *loader.spec.shape] and images_spec.dtype.name == loader.spec.dtype
    assert labels_spec.shape.as_list() == [rows] and labels_spec.dtype == tf.int64
    for epoch in range(2):  # each iteration is the next epoch
        for (images, labels), (expected, expected_labels) in zip(dataset, loader, strict=True):
            assert images.dtype.name == loader.spec.dtype
            assert (
                images.numpy().tobytes() == expected.tobytes() and labels.numpy().tolist() == expected_labels.tolist()
            )


def test_epochs_differ_and_repeat(stamps):
    dataset = precache.tensorflow.dataset(precache.open(stamps.out), 23, shuffle="full")
    epochs = [images.numpy()[:, 2, 0, 0].tolist() for images, _ in dataset.repeat(3)]
    expected = precache.Loader(stamps.out, 23, shuffle="full")
    assert epochs == [images[:, 2, 0, 0].tolist() for _ in range(3) for images, _ in expected]
    assert len(set(map(tuple, epochs))) == 3
    assert len(list(dataset.take(1))) == 1


def test_it_may_begin_with_any_epoch(stamps):
    loader = precache.Loader(stamps.out, 4, shuffle="full", crop=7)
    loader.set_epoch(5)
    dataset = precache.tensorflow.dataset(stamps.out, 4, shuffle="full", crop=7, epoch=5)
    for _ in range(2):
        for (images, _), (expected, _) in zip(dataset, loader, strict=True):
            assert images.numpy().tobytes() == expected.tobytes()


def test_batches_that_are_kept_never_change(stamps):
    dataset = precache.tensorflow.dataset(stamps.out, 4, shuffle="full")
    kept = [(images, images.numpy().copy()) for images, _ in dataset]
    for _ in range(5):
        for _ in dataset:
            pass
    assert all((images.numpy() == copy).all() for images, copy in kept)


def test_it_joins_a_pipeline(stamps):
    dataset = (
        precache.tensorflow.dataset(stamps.out, 4, last_batch="keep").unbatch().map(lambda image, label: image[2, 0, 0])
    )
    assert sorted(int(number) for number in dataset) == list(range(23))


def test_iterations_that_are_left_early_keep_no_batches(stamps, monkeypatch):
    made = []

    class Watched(precache.Loader):
        def _arrays(self, batch):
            images, labels = super()._arrays(batch)
            made.append(weakref.ref(images))
            return images, labels

    monkeypatch.setattr(precache.tensorflow, "Loader", Watched)
    dataset = precache.tensorflow.dataset(stamps.out, 2)
    for _ in range(3):
        list(dataset.take(1))
    assert len(made) > 3
    assert comes_true(lambda: gc.collect() >= 0 and not any(images() is not None for images in made))


def test_wrong_options_are_refused_at_once(stamps):
    with pytest.raises(ValueError, match="shuffle must be one of .*got 'x'"):
        precache.tensorflow.dataset(stamps.out, 4, shuffle="x")
    with pytest.raises(FileNotFoundError):
        precache.tensorflow.dataset("/nowhere")
    with pytest.raises(ValueError, match="rank= must be below world_size=, got rank 3"):
        precache.tensorflow.dataset(stamps.out, 4, rank=3)
    with pytest.raises(TypeError, match=r"has no as_dict: use the map\(\) of tf.data"):
        precache.tensorflow.dataset(stamps.out, 4, as_dict=("x", "y"))
    with pytest.raises(ValueError, match="epoch must be .*got -1"):
        precache.tensorflow.dataset(stamps.out, 4, epoch=-1)


@pytest.mark.parametrize(
    "options, sizes",
    [
        ({"drop_last": True}, [10, 10]),
        ({"drop_last": False}, [10, 10, 3]),
        ({"writable": False}, [10, 10, 3]),
        ({"shuffle": True}, [10, 10]),
    ],
    ids=str,
)
def test_options_that_every_loader_has(stamps, options, sizes):
    assert [len(labels) for _, labels in precache.tensorflow.dataset(stamps.out, 10, **options)] == sizes


def test_an_error_ends_the_iteration(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "3")
    dataset = precache.tensorflow.dataset(built.out, 4)
    built.shard_paths()[2].unlink()
    with pytest.raises(tf.errors.OpError, match=built.shard_paths()[2].name):
        list(dataset)


def test_a_model_learns_from_it(stamps):
    dataset = precache.tensorflow.dataset(stamps.out, 4, dtype="float32", layout="hwc", shuffle="full")
    weights = tf.Variable(tf.zeros((360, 3)))
    losses = []
    for _ in range(20):
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                logits = tf.reshape(images, (-1, 360)) @ weights
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            losses.append(float(loss))
    assert len(losses) == 100 and np.isfinite(losses).all()


def test_views_and_sizes_by_epoch(stamps):
    lists = [[transforms.RandomResizedCrop(8)], [transforms.RandomResizedCrop(4)]]
    dataset = precache.tensorflow.dataset(stamps.out, 8, views=lists, layout="hwc")
    (large, small), labels = next(iter(dataset))
    assert large.shape == (8, 8, 8, 3) and small.shape == (8, 4, 4, 3) and labels.dtype == tf.int64
    expected, _ = next(iter(precache.Loader(stamps.out, 8, views=lists, layout="hwc")))
    assert (large.numpy() == expected[0]).all() and (small.numpy() == expected[1]).all()
    sizes = precache.tensorflow.dataset(stamps.out, 8, transform=lists[0], size={0: 5, 1: 8}, layout="hwc")
    assert sizes.element_spec[0].shape == (None, None, None, 3)
    assert [next(iter(sizes))[0].shape[1] for _ in range(2)] == [5, 8]


def test_a_compose_of_torchvision(stamps):
    steps = v2.Compose(
        [
            v2.RandomResizedCrop(8),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4)),
        ]
    )
    dataset = precache.tensorflow.dataset(stamps.out, 8, transform=steps, layout="hwc")
    images, _ = next(iter(dataset))
    assert images.shape == (8, 8, 8, 3) and images.dtype == tf.float32
    (expected, _), *_ = precache.Loader(stamps.out, 8, transform=steps, layout="hwc")
    assert (images.numpy() == expected).all()
