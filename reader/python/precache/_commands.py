# SPDX-License-Identifier: Apache-2.0
"""The commands of precache as functions.

Their parameters are the options of the command, with underscores: `precache build --shard-size 1GiB` is
`build(..., shard_size="1GiB")`. What is None is not given. `precache COMMAND --help` and docs/cli.md say what they mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Union

import numpy as np

from . import _options
from ._process import command_path as command_path
from ._process import run
from ._progress import ProgressOption

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Iterable[Path]]
Format = Literal["tar", "tfrecord", "hdf5"]
DType = Literal["uint8", "float16", "bfloat16", "float32"]
Layout = Literal["chw", "hwc"]
IndexKind = Literal["dali", "wids", "vds", "tfds"]
Channels = Union[float, Sequence[float]]
Normalization = Union[str, "tuple[Channels, Channels]"]

_FLAGS = {"all", "dry_run", "finish", "overwrite", "shuffle"}


def build(
    source: Path,
    out: Path,
    *,
    size: int | tuple[int, int] | str | None = None,
    fit: Literal["crop", "stretch", "pad"] | None = None,
    resize: int | None = None,
    filter: Literal["nearest", "box", "bilinear", "bicubic", "lanczos"] | None = None,
    pad_value: int | None = None,
    dtype: DType | Any | None = None,
    normalize: Normalization | None = None,
    layout: Layout | None = None,
    color: Literal["rgb", "gray"] | None = None,
    exif: Literal["apply", "ignore"] | None = None,
    preset: Literal["imagenet"] | None = None,
    format: Format | None = None,
    split: str | None = None,
    labels: Path | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    proto: Path | None = None,
    message: str | None = None,
    classes: Path | None = None,
    shard_size: int | str | None = None,
    shards: int | None = None,
    overwrite: bool = False,
    keys: Literal["full", "short"] | None = None,
    seed: int | None = None,
    shuffle: bool = True,
    on_error: Literal["skip", "fail"] | None = None,
    max_bad: float | str | None = None,
    max_pixels: int | None = None,
    index: IndexKind | Sequence[IndexKind] | None = None,
    part: tuple[int, int] | str | None = None,
    finish: bool = False,
    jobs: int | None = None,
    dry_run: bool = False,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Turns a folder of images, or shards of them, into training-ready tensor shards.

    After an interruption or a kill the same call resumes; on a finished `out` it does nothing.

    Args:
        source: A folder with a subfolder for each class, shards of encoded images, or "-" for standard input.
        out: Folder for the dataset; made if missing.
        size: Of the tensors: a side, (height, width) or "HxW"; 224 if not given.
        fit: "crop" (as it is if not given): shorter side to `resize`, then centre crop; "stretch"; or "pad".
        resize: Shorter side before the crop; the size.
        filter: How to resize, as Pillow defines it; "bilinear".
        pad_value: Of the border that fit="pad" adds; 0.
        dtype: "uint8", which leaves it to the reader to normalise. The same of numpy, torch or JAX will do.
        normalize: "imagenet", "MEAN/STD" or (mean, std), only for float dtypes.
        layout: Order of the tensor's axes; "chw".
        color: "rgb".
        exif: What to do with the orientation a camera noted; "apply".
        preset: "imagenet" stands for what torchvision's evaluation does.
        format: File format of the shards; "tar".
        split: Name of the split; "train". A further one may join a finished `out`.
        labels: "folder", "none", or a CSV file of path and label.
        image_key: What of a shard is the image, where that cannot be guessed.
        label_key: The same of labels.
        proto: For TFRecords of other messages than tf.train.Example: a descriptor set, as `protoc
            --descriptor_set_out --include_imports` writes it. The keys are paths of fields: "frame.images.image".
        message: With `proto`: the full name of the message that each record is.
        classes: A file that fixes class names and their numbers.
        shard_size: About how large a shard is: bytes, or such as "1GiB"; "512MiB".
        shards: How many shards, instead.
        overwrite: Replace what `out` holds of this split.
        keys: "short" cuts keys of more than 96 bytes, so that every tar reader sees the whole key; "full".
        seed: Of the shuffle before sharding; 0.
        shuffle: False keeps the order of the paths.
        on_error: What a bad image does: "skip" lists it in OUT/skipped.tsv, "fail" ends the build.
        max_bad: More bad images than this, in percent, fail the build; 1.
        max_pixels: Larger images are bad.
        index: Kinds of files for other readers to write as well, as `index` does.
        part: (i, n) or "I/N", counted from 0: only every n-th shard, for many machines on one `out`.
        finish: Write the manifest when all parts are there.
        jobs: Worker threads; as many as the process may use.
        dry_run: Return the plan, write nothing.
        progress: True or False: show it, or be silent; a function is called with each `Progress`. If None, it is
            shown on a terminal and in a notebook.

    Returns:
        The report (docs/commands/build.md has its keys), or with `dry_run` the plan.

    Raises:
        InvalidArgument: A value is wrong, or `out` holds another dataset.
        IoError: The system refused: no such source, a full disk, another process at work in `out`.
        TooManyBadImages: More than `max_bad`; its `report` is what would have been returned.
        CorruptDataError, Unsupported: Of shards as a source.
        KeyboardInterrupt: The build stopped tidily; the same call resumes it. A second interruption ends it at once.

    >>> report = build("images", "shards", size=32, shards=2)
    >>> report["status"], report["samples"], report["shards_done"]
    ('complete', 12, 2)
    >>> try:
    ...     build("images", "shards", size="big")
    ... except ValueError as error:
    ...     print(error.hint)
    Give N for a square, or HEIGHTxWIDTH.
    """
    return run(_words("build", locals(), "source", "out"), progress)


def convert(
    source: Path,
    out: Path,
    *,
    format: Format | None = None,
    dtype: DType | Any | None = None,
    normalize: Normalization | None = None,
    layout: Layout | None = None,
    split: str | None = None,
    shard_size: int | str | None = None,
    shards: int | None = None,
    seed: int | None = None,
    labels: Literal["none"] | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    overwrite: bool = False,
    jobs: int | None = None,
    dry_run: bool = False,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Rewrites shards in another format, precision, layout, size or order; what is not asked for stays.

    Args:
        source: A dataset folder, a shard of any origin, or a pattern of them.
        out: Folder for the dataset; made if missing.
        format: File format of the shards.
        dtype: Element type of the tensors.
        normalize: As of `build`; only for what is not normalised yet.
        layout: Order of the tensor's axes.
        split: Only this split of a dataset.
        shard_size: As of `build`.
        shards: How many shards a split has.
        seed: Shuffle with it; without it the order stays.
        labels: "none" leaves out the labels of shards without a manifest.
        image_key: What of shards without a manifest is the image, where that cannot be guessed.
        label_key: The same of labels.
        overwrite: Replace what `out` holds of these splits.
        jobs: Worker threads.
        dry_run: Return the plan, write nothing.
        progress: As of `build`.

    Returns:
        The report (docs/commands/convert.md has its keys), or with `dry_run` the plan.

    Raises:
        InvalidArgument, IoError, CorruptDataError, Unsupported, KeyboardInterrupt: As `build` does.

    >>> convert("shards", "halves", format="hdf5", dtype="float16", normalize=(0.5, 0.25))["status"]
    'complete'
    """
    return run(_words("convert", locals(), "source", "out"), progress)


def pack(
    source: Path,
    out: Path,
    *,
    format: Format | None = None,
    split: str | None = None,
    labels: Path | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    proto: Path | None = None,
    message: str | None = None,
    classes: Path | None = None,
    shard_size: int | str | None = None,
    shards: int | None = None,
    overwrite: bool = False,
    seed: int | None = None,
    image_name: str | None = None,
    jobs: int | None = None,
    dry_run: bool = False,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Packs JPEG and PNG files into shards as they are, to decode and distort them while training.

    Args:
        source: As of `build`.
        out: Folder for the shards; made if missing.
        format: File format of the shards; "tar".
        split: Name of the split; "train".
        labels: As of `build`.
        image_key: As of `build`.
        label_key: As of `build`.
        proto: As of `build`.
        message: As of `build`.
        classes: As of `build`.
        shard_size: About how large a shard is; "512MiB".
        shards: How many shards, instead.
        overwrite: Replace what `out` holds of this split.
        seed: Shuffle with it; without it the order of the paths stays, class by class.
        image_name: In a tar: one extension for all images, whatever they are.
        jobs: Worker threads.
        dry_run: Return the plan, write nothing.
        progress: As of `build`.

    Returns:
        The report (docs/commands/pack.md has its keys), or with `dry_run` the plan.

    Raises:
        InvalidArgument, IoError, CorruptDataError, Unsupported, KeyboardInterrupt: As `build` does.

    >>> pack("images", "packed", seed=0, shards=2)["samples"]
    12
    """
    return run(_words("pack", locals(), "source", "out"), progress)


def index(
    path: Path,
    *,
    kind: IndexKind | Sequence[IndexKind] | None = None,
    split: str | None = None,
    jobs: int | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Writes what other readers want to find next to shards.

    Args:
        path: A dataset folder, a shard, or a pattern of them.
        kind: One or more of "dali", "wids", "vds" and "tfds"; all that fit.
        split: Only this split of a dataset.
        jobs: Threads.
        progress: As of `build`; there is only the end of it.

    Returns:
        `written`, a list of kind, file and samples, and `missing`, a list of kind, of and reason.

    Raises:
        InvalidArgument, IoError, CorruptDataError, Unsupported: As `build` does.

    >>> [(entry["kind"], entry["samples"]) for entry in index("shards", kind="wids")["written"]]
    [('wids', 12)]
    """
    return run(_words("index", locals(), "path"), progress)


def inspect(
    path: Paths,
    *,
    split: str | None = None,
    all: bool = False,
    proto: Path | None = None,
    message: str | None = None,
    sheet: Path | None = None,
    html: Path | None = None,
    samples: int | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Describes what is in shards, written by precache or by other programs.

    Args:
        path: A dataset folder, a shard of any origin, a pattern of them, or a list of these.
        split: Only this split of a dataset.
        all: Read every label, value and foreign file, not just some.
        proto: A descriptor set, as `protoc --descriptor_set_out --include_imports` writes it: names the fields of TFRecords.
        message: With `proto`: the full name of the message that each record is.
        sheet: Write a contact sheet of samples to this PNG file.
        html: Write a page with facts, samples and histograms to this file.
        samples: How many are on the sheet and the page; 24.
        progress: As of `build`.

    Returns:
        What docs/formats/inspect.schema.json specifies: facts["paths"] has an entry for each path. Damage is a fact,
        too, and listed there in `faults`.

    Raises:
        InvalidArgument, IoError: As `build` does.

    >>> facts, = inspect("shards")["paths"]
    >>> facts["samples"], facts["tensor"]["shape"]
    (12, [3, 32, 32])
    """
    return run(_words("inspect", locals(), "path"), progress, faults_are_results=True)


def verify(
    path: Paths,
    *,
    split: str | None = None,
    jobs: int | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Reads shards from end to end and says whether they are whole.

    Args:
        path: A dataset folder, a shard of any origin, a pattern of them, or a list of these.
        split: Only this split of a dataset.
        jobs: Threads.
        progress: As of `build`.

    Returns:
        The report; `whole` is the answer (the report itself is always true). Damage is no exception: each of `faults`
        has file, offset, record and reason, and so has what could not be checked, in `unsupported`.

    Raises:
        InvalidArgument, IoError: As `build` does.

    >>> report = verify("shards")
    >>> report["whole"], report["files"], report["faults"]
    (True, 2, [])
    """
    return run(_words("verify", locals(), "path"), progress, faults_are_results=True)


def _words(command: str, parameters: dict[str, Any], *positional: str) -> list[str]:
    """The command line of a function's parameters, by their names."""
    words = [command, "--json"]
    for name, value in parameters.items():
        option = "--" + name.replace("_", "-")
        if name in positional or name == "progress" or value is None:
            continue
        if name in _FLAGS:
            is_set = _options.truth(name, value)
            if name == "shuffle":
                option, is_set = "--no-shuffle", not is_set
            words += [option] if is_set else []
            continue
        text = _text(name, value)
        # With = a value may begin with a dash; an empty one has to be a word.
        words += [option, text] if text == "" else [f"{option}={text}"]
    words.append("--")
    for name in positional:
        words += _paths(name, parameters[name])
    return words


def _paths(name: str, value: Any) -> list[str]:
    may_be_some = name == "path"
    if not isinstance(value, (str, bytes, os.PathLike)) and not (may_be_some and isinstance(value, Iterable)):
        raise TypeError(f"{name} is {value!r}, not a path")
    return _options.paths(value)


def _text(name: str, value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, which is not a value that it takes")
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if name == "dtype" and not isinstance(value, str):  # as numpy, torch or JAX have it
        return _options.dtype(value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    separator = {"size": "x", "normalize": "/", "part": "/"}.get(name, ",")
    return separator.join(_text(f"a part of {name}", item) for item in value)
