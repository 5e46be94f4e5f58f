# SPDX-License-Identifier: Apache-2.0
"""Objects of torchvision.transforms, of the first and the second version, as operations of this package.

Nothing here imports torchvision: an object is recognised by the module and the name of its class, so it is only read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from . import transforms as ours
from ._errors import InvalidArgument

KEEP = (
    "Leave it out, change whole batches with batch_transform=, or keep torch's DataLoader with "
    "precache.torch.Dataset(path, transform=...)."
)


class Step:
    """A step of a list that is not an operation."""


@dataclasses.dataclass(frozen=True)
class ToFloat(Step):
    """Makes floats from 0 to 1, as ToTensor does; `dtype` is their type."""

    name: str
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Pad(Step):
    """A border, for the RandomCrop that follows."""

    padding: tuple[int, int, int, int]
    fill: Any
    padding_mode: Literal["constant", "edge", "reflect", "symmetric"]


@dataclasses.dataclass(frozen=True)
class Grayscale(Step):
    """Grey values in one or three channels."""

    channels: int


@dataclasses.dataclass(frozen=True)
class Nothing(Step):
    """A step that changes no pixel of a precache shard, and the reason."""

    name: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Note(Step):
    """Says what differs in the operation before it."""

    text: str


@dataclasses.dataclass(frozen=True)
class ResizeByFilter(Step):
    """A Resize with a filter that only build has, such as lanczos."""

    size: int | tuple[int, int]
    interpolation: str


@dataclasses.dataclass(frozen=True)
class PaddedTwice(Step):
    """A crop of the first version that adds what an image lacks to the border it has added before.

    It mirrors the mirrored border then, where the second version mirrors the image.
    """

    crop: ours.RandomCrop


def refused(what: str, hint: str = KEEP) -> InvalidArgument:
    """The error for a step that cannot run."""
    return InvalidArgument(f"transform has {what}, which precache cannot run", hint=hint)


def module_of(value: Any) -> str:
    """The module of an object's class; that of a function, for functions."""
    kind = value if isinstance(value, type) or not hasattr(type(value), "__mro__") else type(value)
    return str(getattr(kind, "__module__", ""))


def is_torchvision(value: Any) -> bool:
    """Whether the object's class, not just a base of it, is one of torchvision's transforms."""
    return module_of(value).startswith("torchvision.transforms")


def children(value: Any) -> list[Any] | None:
    """The steps of a Compose of torchvision, of the transforms of its weights, or of a Sequential of torch; else None."""
    if is_torchvision(value) and type(value).__name__ == "Compose":
        return list(value.transforms)
    if is_torchvision(value) and type(value).__name__ == "ImageClassification":
        resize = ours.Resize(value.resize_size, value.interpolation)
        return [resize, ours.CenterCrop(value.crop_size), ToFloat("ToTensor"), ours.Normalize(value.mean, value.std)]
    if module_of(value) == "torch.nn.modules.container" and type(value).__name__ == "Sequential":
        return list(value)
    return None


def operation(value: Any, inner: Callable[[Any], list[Any]]) -> Any:
    """The operation of this package that does the same, or one of the steps above. `inner` reads the list of a RandomApply.

    Raises InvalidArgument if there is none.
    """
    name = type(value).__name__
    if name == "RandomApply":
        return ours.RandomApply(inner(list(value.transforms)), value.p)
    if name not in _MAKERS:
        raise refused(name, _HINTS.get(name, KEEP))
    return _MAKERS[name](value)


def notes(value: Any) -> list[Note]:
    """The differences between an object and the operation that operation() makes of it."""
    name = type(value).__name__
    if name not in ("TrivialAugmentWide", "RandAugment", "AutoAugment") or ".v2" not in module_of(value):
        return []
    return [
        Note(
            f"{name}: Solarize has the thresholds of torchvision.transforms. Those of v2 are larger by less than "
            "0.0001, which keeps one grey level at some strengths."
        )
    ]


def _same(kind: Any, *fields: str) -> Callable[[Any], Any]:
    """Makes the operation of attributes that have the same names."""
    return lambda value: kind(**{field: getattr(value, field) for field in fields})


def _resized_crop(value: Any) -> Any:
    _refuse_aliasing(value)
    return _same(ours.RandomResizedCrop, "size", "scale", "ratio", "interpolation")(value)


def _resize(value: Any) -> Any:
    _refuse_aliasing(value)
    if value.max_size is not None:
        raise refused(f"Resize with max_size={value.max_size}", "Give both sides: Resize((height, width)).")
    if value.size is None:
        raise refused("Resize without a size", "Give both sides: Resize((height, width)).")
    found = getattr(value.interpolation, "value", value.interpolation)
    if found in ("box", "hamming", "lanczos"):
        return ResizeByFilter(ours.Resize(value.size).size, found)  # type: ignore[arg-type]
    return ours.Resize(value.size, value.interpolation)


def _refuse_aliasing(value: Any) -> None:
    if value.antialias is False:
        name = type(value).__name__
        raise refused(f"{name} with antialias=False", "Use antialias=True, which is what happens to PIL images.")


def _crop(value: Any) -> Any:
    padding = value.padding
    is_second = module_of(value).startswith("torchvision.transforms.v2")
    if padding is not None and is_second:
        left, right, top, bottom = padding  # the second version keeps them in this order
        padding = (left, top, right, bottom)
    crop = ours.RandomCrop(value.size, padding, value.pad_if_needed, value.fill, value.padding_mode)
    mirrors = crop.padding_mode in ("reflect", "symmetric") and crop.padding is not None
    return PaddedTwice(crop) if mirrors and crop.pad_if_needed and not is_second else crop


def _pad(value: Any) -> Pad:
    same = ours.RandomCrop(1, value.padding, fill=value.fill, padding_mode=value.padding_mode)
    assert isinstance(same.padding, tuple)
    left, top, right, bottom = same.padding
    return Pad((left, top, right, bottom), same.fill, same.padding_mode)


def _rotation(value: Any) -> Any:
    if value.expand:
        raise refused("RandomRotation with expand=True", "Use expand=False: all samples of a batch have one size.")
    return _same(ours.RandomRotation, "degrees", "interpolation", "center", "fill")(value)


def _dtype(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _to_dtype(value: Any) -> Any:
    dtype = value.dtype
    if isinstance(dtype, dict):
        raise refused("ToDtype with a dict", "Give one type: ToDtype(torch.float32, scale=True).")
    if _dtype(dtype) == "uint8":
        return Nothing("ToDtype(uint8)", "Stored pixels are uint8.")
    if not value.scale:
        raise refused(
            f"ToDtype({_dtype(dtype)}) without scale=True",
            "Use scale=True: precache divides pixels by 255 when they become floats.",
        )
    return _to_float("ToDtype", dtype)


def _convert_dtype(value: Any) -> Any:
    if _dtype(value.dtype) == "uint8":
        return Nothing("ConvertImageDtype(uint8)", "Stored pixels are uint8.")
    return _to_float("ConvertImageDtype", value.dtype)


def _to_float(name: str, dtype: Any) -> ToFloat:
    if _dtype(dtype) not in ("float16", "bfloat16", "float32"):
        raise refused(f"{name}({_dtype(dtype)})", "Use torch.float32, torch.float16 or torch.bfloat16.")
    return ToFloat(name, _dtype(dtype))


def _is_array(name: str) -> Callable[[Any], Nothing]:
    return lambda value: Nothing(name, "Batches are tensors.")


# By the name of the class, which is the same in both versions of torchvision.
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "RandomResizedCrop": _resized_crop,
    "Resize": _resize,
    "CenterCrop": _same(ours.CenterCrop, "size"),
    "RandomCrop": _crop,
    "Pad": _pad,
    "RandomHorizontalFlip": _same(ours.RandomHorizontalFlip, "p"),
    "RandomVerticalFlip": _same(ours.RandomVerticalFlip, "p"),
    "RandomRotation": _rotation,
    "RandomAffine": _same(
        ours.RandomAffine, "degrees", "translate", "scale", "shear", "interpolation", "fill", "center"
    ),
    "ColorJitter": _same(ours.ColorJitter, "brightness", "contrast", "saturation", "hue"),
    "Grayscale": lambda value: Grayscale(value.num_output_channels),
    "RandomGrayscale": _same(ours.RandomGrayscale, "p"),
    "RandomErasing": lambda value: ours.RandomErasing(
        value.p, value.scale, value.ratio, "random" if value.value is None else value.value
    ),
    "GaussianBlur": _same(ours.GaussianBlur, "kernel_size", "sigma"),
    "RandomSolarize": _same(ours.RandomSolarize, "threshold", "p"),
    "RandomPosterize": _same(ours.RandomPosterize, "bits", "p"),
    "RandomEqualize": _same(ours.RandomEqualize, "p"),
    "RandomAutocontrast": _same(ours.RandomAutocontrast, "p"),
    "RandomInvert": _same(ours.RandomInvert, "p"),
    "RandomAdjustSharpness": _same(ours.RandomAdjustSharpness, "sharpness_factor", "p"),
    "TrivialAugmentWide": _same(ours.TrivialAugmentWide, "num_magnitude_bins", "interpolation", "fill"),
    "RandAugment": _same(ours.RandAugment, "num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"),
    "AutoAugment": _same(ours.AutoAugment, "policy", "interpolation", "fill"),
    "Normalize": _same(ours.Normalize, "mean", "std"),
    "ToTensor": lambda value: ToFloat("ToTensor"),
    "ToDtype": _to_dtype,
    "ConvertImageDtype": _convert_dtype,
    "ToImage": _is_array("ToImage"),
    "PILToTensor": _is_array("PILToTensor"),
    "ToPureTensor": _is_array("ToPureTensor"),
    "ToPILImage": lambda value: Nothing("ToPILImage", "Operations run as they do on PIL images."),
    "Identity": lambda value: Nothing("Identity", "It does nothing."),
    "RGB": lambda value: Grayscale(0),
}

_BATCHES = "It changes whole batches: give it as batch_transform=."
_HINTS = {
    "MixUp": _BATCHES,
    "CutMix": _BATCHES,
    "Lambda": f"precache does not run Python code for single images. {KEEP}",
    "RandomChoice": f"Choose one of its operations, or a policy such as TrivialAugmentWide. {KEEP}",
    "RandomOrder": f"Give its operations in one order. {KEEP}",
    "RandomApply": KEEP,
    "FiveCrop": "Use one loader per crop, or views=.",
    "TenCrop": "Use one loader per crop, or views=.",
}
