# SPDX-License-Identifier: Apache-2.0
"""Arguments of torch's DataLoader, given to precache.torch.Loader by a script that was not changed otherwise."""

import multiprocessing
import warnings

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler, default_collate

import precache
import precache.torch

pytest_plugins = ("package_fixtures",)

WITHOUT_EFFECT = {
    "persistent_workers": True,
    "prefetch_factor": 4,
    "worker_init_fn": print,
    "generator": torch.Generator(),
    "multiprocessing_context": multiprocessing.get_context("spawn"),
    "timeout": 60,
    "pin_memory_device": "cuda",
    "in_order": False,
}


def numbers_in(loader):
    return [images[:, 2, 0, 0].tolist() for images, _ in loader]


def test_common_arguments_are_taken_without_a_word(stamps):
    expected = numbers_in(precache.torch.Loader(stamps.out, 4, shuffle=True))
    unset = {"persistent_workers": False, "timeout": 0, "worker_init_fn": None, "generator": None, "in_order": True,
             "prefetch_factor": None, "collate_fn": None, "sampler": None, "batch_sampler": None}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = precache.torch.Loader(stamps.out, 4, shuffle=True, num_workers=8, pin_memory=False, **unset)
    assert numbers_in(loader) == expected and loader.num_workers == 0


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_arguments_without_effect_are_one_warning(stamps, name):
    with pytest.warns(UserWarning, match=f"^precache loaders ignore these arguments: {name}") as warned:
        loader = precache.torch.Loader(stamps.out, 4, num_workers=2, **{name: WITHOUT_EFFECT[name]})
    assert len(warned) == 1 and warned[0].filename == __file__
    assert ("seed" in str(warned[0].message)) == (name == "generator")
    assert numbers_in(loader) == numbers_in(precache.torch.Loader(stamps.out, 4))


def test_all_arguments_without_effect_are_one_warning(stamps):
    with pytest.warns(UserWarning) as warned:
        precache.torch.Loader(stamps.out, 4, **WITHOUT_EFFECT)
    assert len(warned) == 1 and all(name in str(warned[0].message) for name in WITHOUT_EFFECT)
    assert set(WITHOUT_EFFECT) | {"num_workers"} <= set(DataLoader.__init__.__code__.co_varnames)


def test_arguments_that_change_the_data_are_refused(stamps):
    dataset = precache.torch.Dataset(stamps.out)
    sampler = SequentialSampler(dataset)
    for name, value, hint in [
        ("collate_fn", default_collate, "batch_transform="),
        ("sampler", DistributedSampler(dataset, 2, 0), "shuffle= or weights="),
        ("batch_sampler", BatchSampler(sampler, 4, False), "batch_size="),
    ]:
        with pytest.raises(precache.InvalidArgument, match=f"a precache loader has no {name}") as refused:
            precache.torch.Loader(stamps.out, 4, **{name: value})
        assert hint in refused.value.hint
    with pytest.raises(TypeError, match="num_workers must be a whole number, got 'many'"):
        precache.torch.Loader(stamps.out, 4, num_workers="many")
    with pytest.raises(TypeError, match="nonsense"):
        precache.torch.Loader(stamps.out, 4, nonsense=1)
