# SPDX-License-Identifier: Apache-2.0
"""Random changes of samples as they are read, named and parameterised as in torchvision.

A list of them is the `transform` of a loader. They run in the loader's threads, and give the pixels that torchvision gives
for PIL images.

>>> from precache import transforms
>>> steps = [transforms.RandomResizedCrop(24), transforms.RandomHorizontalFlip(), transforms.Normalize("imagenet")]
>>> loader = precache.Loader(folder, batch_size=4, shuffle=True, transform=steps)
>>> next(iter(loader))[0].shape
(4, 3, 24, 24)
>>> sorted(loader.draw(0, epoch=0))
['RandomHorizontalFlip', 'RandomResizedCrop']

Operations are immutable, can be compared and pickled, and check their arguments when they are made.
"""

from ._colour import (
    ColorJitter,
    GaussianBlur,
    Normalize,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from ._geometry import (
    CenterCrop,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomQuarterTurn,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)
from ._operation import Operation
from ._policies import AutoAugment, RandAugment, RandomApply, TrivialAugmentWide

__all__ = [
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "GaussianBlur",
    "Normalize",
    "Operation",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomPosterize",
    "RandomQuarterTurn",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TrivialAugmentWide",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
