# SPDX-License-Identifier: Apache-2.0
"""Has Accelerate treat a loader as torch's DataLoader, in programs that import Accelerate.

Accelerate prepares only instances of DataLoader, and it shards what it prepares; the batches of a loader are those of its
rank already. So `join` extends four of its methods, for precache's loaders alone.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import InvalidArgument
from ._imports import when_imported

if TYPE_CHECKING:
    from .torch import Loader


class Prepared:
    """A loader in the list of those that an Accelerator has prepared.

    Checkpoints of Accelerate get its epoch, but not the position in it: the scripts skip batches by themselves. With
    Accelerate's use_stateful_dataloader they get both.
    """

    use_stateful_dataloader = True

    def __init__(self, loader: Loader, keeps_position: bool):
        self.loader = loader
        self.dataset = loader.dataset
        self._keeps_position = keeps_position

    @property
    def batch_sampler(self) -> EvenBatches:
        return EvenBatches(self.loader)

    def state_dict(self) -> dict[str, Any]:
        state = self.loader.state_dict()
        return state if self._keeps_position else state | {"position": 0}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(state)


class EvenBatches:
    """The attribute that `join_uneven_inputs` of Accelerate reads and sets."""

    def __init__(self, loader: Loader):
        self._loader = loader

    @property
    def even_batches(self) -> bool:
        return self._loader.last_batch != "keep"

    @even_batches.setter
    def even_batches(self, value: bool) -> None:
        if value != self.even_batches:
            wanted = "even" if value else "keep"
            raise InvalidArgument(
                f"even_batches is {value}, but the loader has last_batch={self._loader.last_batch!r}",
                hint=f"Make it with last_batch={wanted!r}.",
            )


def join_when_imported(kind: type[Loader]) -> None:
    """Extends Accelerate now or when it is imported: a script may make its loaders before that."""
    when_imported("accelerate.accelerator", lambda: join(kind))


def join(kind: type[Loader]) -> None:
    """Extends Accelerate, if the program has imported it and this was not done before."""
    accelerator = getattr(sys.modules.get("accelerate.accelerator"), "Accelerator", None)
    sampler = getattr(sys.modules.get("accelerate.data_loader"), "BatchSamplerShard", None)
    if accelerator is None or sampler is None or hasattr(accelerator, "_knows_precache"):
        return
    accelerator._knows_precache = True

    def extend(owner: type, name: str, make: Callable[[Any], Any]) -> None:
        if (original := getattr(owner, name, None)) is not None:
            setattr(owner, name, functools.wraps(original)(make(original)))

    def prepare_one(original: Any) -> Any:
        def method(self: Any, obj: Any, *args: Any, **options: Any) -> Any:
            if isinstance(obj, kind):  # called twice for each object
                return self.prepare_data_loader(obj, device_placement=options.get("device_placement"))
            return original(self, obj, *args, **options)

        return method

    def prepare_data_loader(original: Any) -> Any:
        def method(self: Any, data_loader: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(data_loader, kind):
                return original(self, data_loader, *args, **options)
            _register(self, data_loader, args[0] if args else options.get("device_placement"))
            return data_loader

        return method

    def prepare_scheduler(original: Any) -> Any:
        def method(self: Any, scheduler: Any) -> Any:
            prepared = original(self, scheduler)
            _step_once(self)
            return prepared

        return method

    def of_rank(original: Any) -> Any:
        def method(self: Any) -> Any:
            batches = self.batch_sampler
            return getattr(batches, original.__name__)() if _is_of_loader(batches, kind) else original(self)

        return method

    extend(accelerator, "_prepare_one", prepare_one)
    extend(accelerator, "prepare_data_loader", prepare_data_loader)
    extend(accelerator, "prepare_scheduler", prepare_scheduler)
    for name in "__iter__", "__len__":
        extend(sampler, name, of_rank)


def _register(accelerator: Any, loader: Loader, device_placement: bool | None) -> None:
    if not any(getattr(known, "loader", None) is loader for known in accelerator._dataloaders):
        accelerator._dataloaders.append(Prepared(loader, accelerator.use_stateful_dataloader))
        if not accelerator.even_batches and loader._place[1] > 1 and loader.last_batch in ("even", "pad"):
            warnings.warn(
                f"Accelerate has even_batches=False, but with last_batch={loader.last_batch!r} the loader repeats samples; "
                "use last_batch='keep'",
                stacklevel=4,
            )
        ignored = [name for name in ("split_batches", "dispatch_batches") if getattr(accelerator, name, None)]
        if ignored and loader._place[1] > 1:
            warnings.warn(
                f"precache loaders ignore these arguments: {', '.join(ignored)}; each process reads its own batches, and "
                "batch_size is of one process",
                stacklevel=4,
            )
    places = accelerator.device_placement if device_placement is None else device_placement
    if places and loader.device is None and accelerator.device.type != "cpu":
        loader.device = accelerator.device
    _step_once(accelerator)


def _step_once(accelerator: Any) -> None:
    """Has schedules advance once for each update. Accelerate advances them once for each process, because the script counts
    the batches of a DataLoader before they are shared by the processes; a loader's batches are shared from the start."""
    loaders = [known.loader for known in accelerator._dataloaders if isinstance(known, Prepared)]
    is_alone = len(loaders) == len(accelerator._dataloaders)
    if loaders and (is_alone or any(loader._shuffled for loader in loaders)):  # the one that is trained on
        for scheduler in accelerator._schedulers:
            scheduler.split_batches = True


def _is_of_loader(batch_sampler: Any, kind: type[Loader]) -> bool:
    return isinstance(getattr(batch_sampler, "_loader", None), kind)


def gradient_state() -> Any:
    """Accelerate's record of the loaders that are being read, if the program uses Accelerate."""
    module = sys.modules.get("accelerate.state")
    return module.GradientState() if module is not None and module.GradientState._shared_state else None


def note_batch(loader: Loader, is_over: bool) -> None:
    """Tells Accelerate which loader is being read: at its last batch, gradients are synchronised and repeats dropped."""
    if (state := gradient_state()) is None:
        return
    known = state.dataloader_references
    if is_over:
        state._remove_dataloader(loader)
    elif not any(one is loader or _passes_on(one, loader) for one in known):
        state._add_dataloader(loader)


def _passes_on(reading: Any, loader: Loader) -> bool:
    """Whether a DataLoader of Accelerate reads this loader through its batch_sampler. It reads one batch ahead."""
    sampler = getattr(reading, "batch_sampler", None) if not isinstance(reading, type(loader)) else None
    while sampler is not None and getattr(sampler, "_loader", None) is not loader:
        sampler = getattr(sampler, "batch_sampler", None)
    return sampler is not None
