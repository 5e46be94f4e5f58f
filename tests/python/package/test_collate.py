# SPDX-License-Identifier: Apache-2.0
"""Batches that torch's DataLoader makes from precache.torch.Dataset, with and without a copy."""

import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, default_collate

import images

import precache
import precache.torch


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collate")
    images.draw_animals(folder / "images")
    precache.build(folder / "images", folder / "shards", size=16, shards=3)
    return precache.torch.Dataset(folder / "shards")


def same(batches, expected):
    return all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(batches, expected, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_single_samples(dataset, workers):
    expected = [
        (torch.stack([dataset[i][0] for i in part]), torch.tensor([dataset[i][1] for i in part]))
        for part in (range(9), range(9, 18), range(18, 23))
    ]
    assert same(DataLoader(dataset, 9, num_workers=workers), expected)
    assert same(DataLoader(Subset(dataset, range(23)), 9, num_workers=workers), expected)
    assert same(DataLoader(ConcatDataset([dataset]), 9, num_workers=workers), expected)  # reads single samples


def test_a_gathered_batch_is_not_copied_again(dataset):
    samples = dataset.__getitems__([3, 1, 2])
    batch, labels = default_collate(samples)
    assert batch.data_ptr() == samples[0][0].data_ptr() and labels.tolist() == [label for _, label in samples]
    some, _ = default_collate([samples[2], samples[0]])  # another order than the gathered one
    assert torch.equal(some, batch[[2, 0]]) and some.data_ptr() != batch.data_ptr()


def test_a_collate_function_gets_a_list_as_from_torch(dataset):
    def plain(samples):
        assert isinstance(samples, list)
        return default_collate(samples)

    def reversed_but_one(samples):
        samples.reverse()
        samples.pop()
        return default_collate(samples)

    assert same(DataLoader(dataset, 9, collate_fn=plain), DataLoader(dataset, 9))
    expected = [(images.flip(0)[:-1], labels.flip(0)[:-1]) for images, labels in DataLoader(dataset, 9)]
    assert same(DataLoader(dataset, 9, collate_fn=reversed_but_one), expected)


def test_batches_may_be_written_to_and_samples_are_plain(dataset):
    first, _ = next(iter(DataLoader(dataset, 9)))
    first.zero_()
    again, _ = next(iter(DataLoader(dataset, 9)))
    assert again.any()
    assert type(dataset[0]) is tuple


def test_a_subclass_may_have_its_own_getitem(dataset):
    class Darker(precache.torch.Dataset):
        def __getitem__(self, index):
            image, label = super().__getitem__(index)
            return image // 2, label + 10

    expected = [(images // 2, labels + 10) for images, labels in DataLoader(dataset, 9)]
    darker = Darker(dataset.dataset)
    for loaded in (darker, Subset(darker, range(23)), ConcatDataset([darker])):
        assert same(DataLoader(loaded, 9), expected)


def test_a_subclass_with_other_methods_is_still_gathered(dataset):
    class Named(precache.torch.Dataset):
        def name(self, index):
            return self.dataset.keys[index]

    samples = Named(dataset.dataset).__getitems__([3, 1])
    assert default_collate(samples)[0].data_ptr() == samples[0][0].data_ptr()
