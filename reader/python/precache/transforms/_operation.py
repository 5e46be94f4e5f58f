# SPDX-License-Identifier: Apache-2.0
"""The base of all operations, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .. import _ranges

Interpolation = Literal["nearest", "bilinear", "bicubic"]
Size = int | Sequence[int]
Range = float | Sequence[float]
Fill = int | Sequence[int] | None

WARPS = ("nearest", "bilinear")  # of rotations and what is made of them


class Operation:
    """Base of all operations."""

    def _keep(self, **checked: Any) -> None:
        """Sets fields to their checked values."""
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    def _name(self, field: str) -> str:
        return f"{field} of {type(self).__name__}"


class WithProbability(Operation):
    p: float

    def __post_init__(self) -> None:
        self._keep(p=_ranges.probability(self._name("p"), self.p))
