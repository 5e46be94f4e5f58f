# SPDX-License-Identifier: Apache-2.0
"""Operations as the C++ library takes them: (name, fields by their names in C++)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from . import transforms
from ._translate import Translation

Named = tuple[str, dict[str, Any]]


def augmentation(translation: Translation) -> list[Named]:
    """All operations of a list."""
    named = [_named(each) for each in translation.operations]
    for _, fields in named[len(named) - translation.after_normalize :]:
        fields["after_normalize"] = True
    return named


def _named(operation: transforms.Operation) -> Named:
    fields = {each.name: getattr(operation, each.name) for each in dataclasses.fields(operation)}  # type: ignore[arg-type]
    if "fill" in fields:
        fields["fill"] = _values(fields["fill"])
    change = _CHANGES.get(type(operation))
    if change is not None:
        change(fields)
    return type(operation).__name__, fields


def _values(value: Any) -> list[Any]:
    """None, one number or several, as a list."""
    return [] if value is None else list(value) if isinstance(value, tuple) else [value]


def _size(fields: dict[str, Any]) -> None:
    size = fields.pop("size")
    fields["height"], fields["width"] = (size, 0) if isinstance(size, int) else size  # width 0: the shorter side


def _padded_size(fields: dict[str, Any]) -> None:
    _size(fields)
    fields["padding"] = fields["padding"] or (0, 0, 0, 0)


def _shear(fields: dict[str, Any]) -> None:
    shear = fields["shear"]
    fields["shear"] = (*shear, 0.0, 0.0) if shear is not None and len(shear) == 2 else shear


def _erased(fields: dict[str, Any]) -> None:
    fields["random"] = fields["value"] == "random"
    fields["value"] = [0.0] if fields["random"] else _values(fields["value"])
    fields["after_normalize"] = False


def _factor(fields: dict[str, Any]) -> None:
    fields["factor"] = fields.pop("sharpness_factor")


def _inner(fields: dict[str, Any]) -> None:
    fields["operations"] = [_named(each) for each in fields.pop("transforms")]


_CHANGES: dict[type, Callable[[dict[str, Any]], None]] = {
    transforms.RandomResizedCrop: _size,
    transforms.Resize: _size,
    transforms.CenterCrop: _size,
    transforms.RandomCrop: _padded_size,
    transforms.RandomAffine: _shear,
    transforms.RandomErasing: _erased,
    transforms.RandomAdjustSharpness: _factor,
    transforms.RandomApply: _inner,
}
