# SPDX-License-Identifier: Apache-2.0
"""Operations that choose from others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from .. import _ranges
from .._errors import InvalidArgument
from ._colour import Normalize
from ._operation import WARPS, Fill, Interpolation, Operation, WithProbability


_MOST_BINS = 1000


class _Policy(Operation):
    interpolation: Interpolation
    fill: Fill

    def __post_init__(self) -> None:
        self._keep(
            interpolation=_ranges.interpolation(self._name("interpolation"), self.interpolation, WARPS),
            fill=_ranges.fill(self._name("fill"), self.fill),
        )


@dataclasses.dataclass(frozen=True)
class TrivialAugmentWide(_Policy):
    """One random operation of a random strength."""

    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            num_magnitude_bins=_ranges.whole(self._name("num_magnitude_bins"), self.num_magnitude_bins, 2, _MOST_BINS)
        )


@dataclasses.dataclass(frozen=True)
class RandAugment(_Policy):
    """`num_ops` random operations of one strength."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        bins = _ranges.whole(self._name("num_magnitude_bins"), self.num_magnitude_bins, 2, _MOST_BINS)
        self._keep(
            num_ops=_ranges.whole(self._name("num_ops"), self.num_ops, 0, 16),
            magnitude=_ranges.whole(self._name("magnitude"), self.magnitude, 0, bins - 1),
            num_magnitude_bins=bins,
        )


@dataclasses.dataclass(frozen=True)
class AutoAugment(_Policy):
    """One of the pairs of operations that were learnt on "imagenet", "cifar10" or "svhn"."""

    policy: Literal["imagenet", "cifar10", "svhn"] = "imagenet"
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(policy=_ranges.word(self._name("policy"), self.policy, ("imagenet", "cifar10", "svhn")))


@dataclasses.dataclass(frozen=True)
class RandomApply(WithProbability):
    """Runs a list of operations with probability `p`, or none of them."""

    transforms: Operation | Sequence[Operation]
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = (self.transforms,) if isinstance(self.transforms, Operation) else self.transforms
        if not isinstance(inner, Sequence) or isinstance(inner, str) or not inner:
            raise _ranges.refuse(self._name("transforms"), self.transforms, "a list of operations")
        for each in inner:
            if not isinstance(each, Operation) or isinstance(each, Normalize):
                raise InvalidArgument(
                    f"RandomApply has {each!r}", hint="It takes operations of precache.transforms except Normalize."
                )
        self._keep(transforms=tuple(inner))
