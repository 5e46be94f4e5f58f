# SPDX-License-Identifier: Apache-2.0
"""Pre-transformed tensor shards: built once, read without a copy.

>>> dataset = precache.open(folder)
>>> image, label = dataset[0]
>>> for images, labels in precache.Loader(dataset, batch_size=4, shuffle="full"):
...     pass  # your step

`precache.torch` and `precache.tensorflow` return their tensors. `build`, `convert`, `pack`, `inspect`, `verify` and
`index` run the commands of the same names. `precache.cluster` spreads a build over machines. See docs/python.md.
"""

from . import _reader, cluster, transforms
from ._arrays import Column, Spec
from ._commands import build, convert, index, inspect, pack, verify
from ._dataset import Dataset, open
from ._errors import (
    CorruptDataError,
    DeviceError,
    Error,
    InvalidArgument,
    IoError,
    OutOfMemory,
    TooManyBadImages,
    Unsupported,
)
from ._loader import Loader
from ._options import Crop
from ._process import command_path
from ._progress import Progress

__version__ = _reader.version

__all__ = [
    "Column",
    "CorruptDataError",
    "Crop",
    "Dataset",
    "DeviceError",
    "Error",
    "InvalidArgument",
    "IoError",
    "Loader",
    "OutOfMemory",
    "Progress",
    "Spec",
    "TooManyBadImages",
    "Unsupported",
    "build",
    "cluster",
    "command_path",
    "convert",
    "index",
    "inspect",
    "open",
    "pack",
    "transforms",
    "verify",
]

for _public in [globals()[name] for name in __all__]:
    if isinstance(_public, type):  # tracebacks and repr() show the public name
        _public.__module__ = __name__
