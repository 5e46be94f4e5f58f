# SPDX-License-Identifier: Apache-2.0
"""Loaders prepared by Accelerate, in one process and in two: schedules, metrics, skipped batches and checkpoints."""

import math
import pickle
import warnings

import pytest
import torch

import precache
import precache.torch
from torchrun import torchrun

pytest.importorskip("accelerate")

pytest_plugins = ("package_fixtures",)

PROGRAM = """
    import torch
    import precache.torch

    folder, out = sys.argv[2:]


    def numbers(batches):
        return [images[:, 2, 0, 0].tolist() for images, _ in batches]


    def make(**options):
        return precache.torch.Loader(folder, 2, shuffle=True, seed=3, last_batch="even", **options)


    train, check = make(num_workers=4), precache.torch.Loader(folder, 4)

    import accelerate  # after the loaders were made
    from accelerate.data_loader import prepare_data_loader

    accelerator = accelerate.Accelerator(cpu=True)
    found = {"processes": accelerator.num_processes}

    # A script that counts batches before prepare(), as those of Accelerate do.
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, epochs=2, steps_per_epoch=len(train))
    model, optimizer, train, check, schedule = accelerator.prepare(model, optimizer, train, check, schedule)
    found["lengths"] = [len(train), len(check)]
    rates, seen, ends = [], [], []
    for epoch in range(2):
        for images, labels in train:
            rates.append(schedule.get_last_lr()[0])
            accelerator.backward(model(images[:, 2, 0, :1].float()).mean())
            optimizer.step()
            schedule.step()
            seen.append(images[:, 2, 0, 0].tolist())
            ends.append(accelerator.gradient_state.end_of_dataloader)
    found |= {"rates": rates, "seen": seen, "ends": ends}
    found["gathered"] = [accelerator.gather_for_metrics(images[:, 2, 0, 0]).tolist() for images, _ in check]

    # The functions that prepare() calls.
    whole = numbers(make())
    prepared = prepare_data_loader(make(), torch.device("cpu"))
    found["prepared"] = [len(prepared), numbers(prepared) == whole]
    again = prepare_data_loader(precache.torch.Loader(folder, 4), torch.device("cpu"))
    gathered = [accelerator.gather_for_metrics(images[:, 2, 0, 0]).tolist() for images, _ in again]
    found["gathered again"] = gathered == found["gathered"]
    found["skipped"] = numbers(accelerator.skip_first_batches(make(), 3)) == whole[3:]
    shard = prepare_data_loader(make(), torch.device("cpu"))
    found["skipped again"] = numbers(accelerator.skip_first_batches(shard, 3)) == whole[3:]
    found["left open"] = accelerator.gradient_state.in_dataloader

    # A checkpoint in the middle of an epoch, and a script that skips what was done of it.
    train.set_epoch(5)
    batches = iter(train)
    next(batches), next(batches)
    accelerator.save_state(out)
    accelerator.wait_for_everyone()
    rest = numbers(batches)
    train.set_epoch(9)
    accelerator.load_state(out)
    found["resumed"] = [train.epoch, numbers(accelerator.skip_first_batches(train, 2)) == rest, len(rest)]
    found["once"] = [len(accelerator._dataloaders), accelerator.prepare(train) is train, len(accelerator._dataloaders)]
    report(found)
    accelerator.end_training()
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_script_of_accelerate_needs_no_change(stamps, tmp_path, processes):
    ranks = torchrun(PROGRAM, tmp_path, stamps.out, tmp_path / "state", processes=processes)
    steps = math.ceil(23 / (2 * processes))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0), 1.0, epochs=2, steps_per_epoch=steps
    )
    expected = []
    for _ in range(2 * steps):
        expected.append(schedule.get_last_lr()[0])
        schedule.optimizer.step()
        schedule.step() if len(expected) < 2 * steps else None
    seen = []
    for rank, found in enumerate(ranks):
        assert found["processes"] == processes
        assert found["lengths"] == [steps, math.ceil(23 / (4 * processes))]
        assert found["rates"] == expected  # one step of the schedule for each update, to its end
        assert found["ends"] == [i % steps == steps - 1 for i in range(2 * steps)]
        loader = precache.torch.Loader(
            stamps.out, 2, shuffle=True, seed=3, last_batch="even", rank=rank, world_size=processes
        )
        mine = [images[:, 2, 0, 0].tolist() for _ in range(2) for images, _ in loader]
        assert found["seen"] == mine
        seen += sum(mine[:steps], [])
        assert sum(found["gathered"], []) == list(stamps.numbers)  # each sample once, in the stored order
        assert found["prepared"] == [steps, True]
        assert found["gathered again"] and found["skipped"] and found["skipped again"] and not found["left open"]
        assert found["resumed"] == [5, True, steps - 2]
        assert found["once"] == [2, True, 2]
    assert set(seen) == set(range(23)) and len(seen) == 23 + (processes == 2)


def test_a_prepared_loader_is_on_the_device_of_accelerate(stamps):
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    own = accelerator.device
    try:
        accelerator.state.device = torch.device("meta")
        images, labels = next(iter(accelerator.prepare(precache.torch.Loader(stamps.out, 4))))
        assert images.device.type == labels.device.type == "meta"
        loader = accelerator.prepare_data_loader(precache.torch.Loader(stamps.out, 4), device_placement=False)
        images, labels = next(iter(loader))
        assert images.device.type == labels.device.type == "cpu"
    finally:
        accelerator.state.device = own


def test_a_loader_from_another_process_is_prepared(stamps, in_child, tmp_path):
    (tmp_path / "loader").write_bytes(pickle.dumps(precache.torch.Loader(stamps.out, 4)))
    program = """
        import pickle, sys
        import accelerate

        loader = pickle.loads(open(sys.argv[1], "rb").read())
        accelerator = accelerate.Accelerator(cpu=True)
        print(accelerator.prepare(loader) is loader, len(accelerator._dataloaders))
    """
    assert in_child(program, tmp_path / "loader")[-1] == "True 1"


def test_uneven_inputs_are_those_of_the_loader(stamps):
    """`join_uneven_inputs` of Accelerate reads and sets this, on GPUs."""
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    even, keep = (precache.torch.Loader(stamps.out, 4, last_batch=last_batch) for last_batch in ("even", "keep"))
    accelerator.prepare(even, keep)
    samplers = [prepared.batch_sampler for prepared in accelerator._dataloaders]
    assert [sampler.even_batches for sampler in samplers] == [True, False]
    samplers[0].even_batches = True
    with pytest.raises(precache.InvalidArgument, match="even_batches is False, but the loader has last_batch='even'"):
        samplers[0].even_batches = False
    with pytest.raises(precache.InvalidArgument, match="even_batches is True, but the loader has last_batch='keep'"):
        samplers[1].even_batches = True


def test_repeats_that_were_not_wanted_are_a_warning(stamps):
    import accelerate

    configuration = accelerate.DataLoaderConfiguration(even_batches=False)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=configuration)
    with pytest.warns(UserWarning, match="even_batches=False, but with last_batch='even' the loader repeats samples"):
        accelerator.prepare(precache.torch.Loader(stamps.out, 4, rank=0, world_size=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accelerator.prepare(precache.torch.Loader(stamps.out, 4, rank=0, world_size=2, last_batch="keep"))
        accelerator.prepare(precache.torch.Loader(stamps.out, 4))


def test_options_of_accelerate_without_effect_are_a_warning(stamps):
    import accelerate

    configuration = accelerate.DataLoaderConfiguration(split_batches=True, dispatch_batches=True)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=configuration)
    with pytest.warns(
        UserWarning, match="precache loaders ignore these arguments: split_batches, dispatch_batches; each"
    ):
        accelerator.prepare(precache.torch.Loader(stamps.out, 4, rank=0, world_size=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accelerator.prepare(precache.torch.Loader(stamps.out, 4))  # one process has all batches anyway


def test_schedules_follow_the_loader_that_is_trained_on(stamps):
    import accelerate
    from torch.utils.data import DataLoader

    def is_stepped_once(*objects, later=()):
        accelerator = accelerate.Accelerator(cpu=True)
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), 1.0)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
        schedule = accelerator.prepare(optimizer, schedule, *objects)[1]
        for one in later:
            accelerator.prepare(one)
        return schedule.split_batches

    shuffled = precache.torch.Loader(stamps.out, 4, shuffle=True)
    stored = precache.torch.Loader(stamps.out, 4)
    theirs = DataLoader(precache.torch.Dataset(stamps.out), 4, shuffle=True)
    assert is_stepped_once(shuffled) and is_stepped_once(stored) and is_stepped_once(later=[stored])
    assert is_stepped_once(shuffled, theirs)
    assert not is_stepped_once(theirs) and not is_stepped_once(theirs, stored)
