# SPDX-License-Identifier: Apache-2.0
"""Arguments of torch's DataLoader that a training script passes, and the one way in which each is treated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _options
from ._errors import InvalidArgument

if TYPE_CHECKING:
    from ._keywords import HookOptions

# With the value that means nothing in a DataLoader either.
_DO_NOTHING: dict[str, Any] = {
    "persistent_workers": False,
    "prefetch_factor": None,
    "worker_init_fn": None,
    "generator": None,
    "multiprocessing_context": None,
    "timeout": 0,
    "pin_memory_device": "",
    "in_order": True,
}
_INSTEAD = {
    "collate_fn": "Use batch_transform=, a function of the images and labels of a batch, or as_dict= for dicts.",
    "sampler": "Use shuffle= or weights=, or precache.open(..., indices=...). Ranks share an epoch without a sampler.",
    "batch_sampler": "Use batch_size=, shuffle= and drop_last=.",
}


def without_arguments(given_options: Mapping[str, Any]) -> HookOptions:
    """The options without the arguments of a DataLoader. What would change the data is refused."""
    options: Any = dict(given_options)
    for name, hint in _INSTEAD.items():
        if options.pop(name, None) is not None:
            raise InvalidArgument(f"a precache loader has no {name}", hint=hint)
    # Nearly every script passes it, so it does not deserve a warning: threads do the work of workers.
    _options.count("num_workers", options.pop("num_workers", 0))
    given = [name for name, unset in _DO_NOTHING.items() if options.pop(name, unset) != unset]
    if given:
        order = "; the order follows from seed" if "generator" in given else ""
        warnings.warn(f"precache loaders ignore these arguments: {', '.join(given)}{order}", stacklevel=3)
    rest: HookOptions = options
    return rest
