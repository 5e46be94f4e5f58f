# SPDX-License-Identifier: Apache-2.0
"""The commands of precache as functions.

Their parameters are the options of the command, with underscores: `precache build --shard-size 1GiB` is
`build(..., shard_size="1GiB")`. `precache COMMAND --help` and docs/commands/ describe them in full.
"""

from __future__ import annotations

import inspect as _inspect
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Union

import numpy as np

from . import _options
from ._errors import IoError
from ._process import command_path as command_path
from ._process import run
from ._progress import ProgressOption, say

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Iterable[Path]]
Format = Literal["tar", "tfrecord", "hdf5"]
DType = Literal["uint8", "float16", "bfloat16", "float32"]
Layout = Literal["chw", "hwc"]
IndexKind = Literal["dali", "wids", "vds", "tfds"]
Channels = Union[float, Sequence[float]]
Normalization = Union[str, "tuple[Channels, Channels]"]

_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.3, 5.0
_SILENT_SECONDS = 10.0  # a wait that is worth a line
_FLAGS = {"all", "dry_run", "finish", "overwrite", "shuffle", "size_column", "status"}


def build(
    source: Path,
    out: Path,
    *,
    size: int | tuple[int, int] | str = 224,
    fit: Literal["crop", "stretch", "pad"] = "crop",
    resize: int | None = None,
    filter: Literal["nearest", "box", "bilinear", "bicubic", "lanczos"] = "bilinear",
    size_column: bool = True,
    pad_value: int = 0,
    dtype: DType | Any = "uint8",
    normalize: Normalization | None = None,
    layout: Layout = "chw",
    color: Literal["rgb", "gray"] = "rgb",
    exif: Literal["apply", "ignore"] | None = None,
    preset: Literal["imagenet", "imagenet-train"] | None = None,
    format: Format = "tar",
    split: str = "train",
    val_fraction: float | None = None,
    split_file: Path | None = None,
    labels: Path = "folder",
    path_column: str | None = None,
    label_column: str | None = None,
    label_regex: str | None = None,
    mask: Path | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    proto: Path | None = None,
    message: str | None = None,
    classes: Path | None = None,
    shard_size: int | str = "512MiB",
    shards: int | None = None,
    overwrite: bool = False,
    keys: Literal["full", "short"] = "full",
    seed: int = 0,
    shuffle: bool = True,
    on_error: Literal["skip", "fail"] = "skip",
    max_bad: float | str = 1,
    max_pixels: int = 178_956_970,
    index: IndexKind | Sequence[IndexKind] | None = None,
    prepare: bool | tuple[int, int] | str | None = None,
    part: tuple[int, int] | str | None = None,
    finish: bool = False,
    parts: int | None = None,
    status: bool = False,
    jobs: int | None = None,
    dry_run: bool = False,
    wait: bool = False,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Turns a folder of images, or shards of encoded images, into training-ready tensor shards.

    After an interruption or a kill the same call resumes; on a finished `out` it does nothing.

    Args:
        source: A folder with a subfolder for each class, shards of encoded images, or "-" for standard input.
        out: Folder for the dataset; created if missing.
        size: Height and width of the tensors: a number, (height, width) or "HxW".
        fit: "crop" resizes the shorter side to `resize`, then crops the centre; "stretch"; or "pad".
        resize: Shorter side before the crop; by default that of `size`.
        filter: How to resize, as Pillow defines it.
        size_column: With fit="stretch", store height and width of each image as column "size".
        pad_value: Value of the border that fit="pad" adds.
        dtype: Element type: a name, or the type of numpy, torch or JAX. "uint8" leaves normalisation to the reader.
        normalize: "imagenet", "MEAN/STD", (mean, std) or torchvision's Normalize; only for float dtypes.
        layout: Order of the tensor's axes.
        color: Channels of the tensors.
        exif: Whether to "apply" (the default) or "ignore" the orientation that a camera recorded.
        preset: "imagenet" is what torchvision's evaluation does: resize=256, size=224, exif="ignore". "imagenet-train"
            stores 320x320 with fit="stretch", for random crops of 224 while reading.
        format: File format of the shards.
        split: Name of the split. Another split can be added to a finished `out`.
        val_fraction: Make two splits of `source`, "train" and "val": val gets this share of each class, chosen by
            `seed`. The report has both in `splits`.
        split_file: Make the splits that this CSV file of path and split names. It lists all images; the path "*" stands
            for those that it does not list.
        labels: "folder", "none", or a CSV file of path and label. Columns with a type in the header ("age:float",
            "box:int[4]", "tags:multi") are stored as columns.
        path_column: Column of that CSV file with the paths, by its name in the first row; "path" by default.
        label_column: The same for the labels; "label" by default.
        label_regex: Takes the label from the path of each image in a folder: the first group of this regular expression.
        mask: A folder with a PNG mask for each image, at the same path; stored as column "mask".
        image_key: The TFRecord feature, HDF5 dataset or tar extension of the images, if it cannot be guessed.
        label_key: The same for labels.
        proto: For TFRecords of other messages than tf.train.Example: a descriptor set, as written by `protoc
            --descriptor_set_out --include_imports`. The keys are then paths of fields: "frame.images.image".
        message: With `proto`: the full name of the message in each record.
        classes: A file that fixes class names and their numbers.
        shard_size: Approximate size of a shard, in bytes or as text.
        shards: Number of shards, instead of `shard_size`.
        overwrite: Replace this split in `out`.
        keys: "short" cuts keys of more than 96 bytes, so that every tar reader sees the whole key.
        seed: Seed of the shuffle before sharding.
        shuffle: False keeps the order of the paths.
        on_error: "skip" lists bad samples in OUT/skipped.tsv, "fail" ends the build at the first one.
        max_bad: The build fails if more than this percentage of the images is bad.
        max_pixels: Images with more pixels are bad.
        index: Kinds of index files to write for other readers, as `index` does.
        prepare: True only lists the source and writes the plan for `part`. (i, n) or "I/N" only lists a share of the
            source; True then puts the shares together.
        part: (i, n) or "I/N", counted from 0: only every n-th shard, for several machines that share one `out`. "auto"
            takes both from the environment of Slurm, Kubernetes, AWS Batch, Cloud Run, PBS, LSF, Grid Engine or MPI.
        finish: Write the manifest once all parts are complete.
        parts: The number of parts, for "auto", and for what `finish` and `status` say about missing parts.
        status: Only return how many shards are done, and which parts are missing.
        jobs: Worker threads; by default one for each CPU of the process.
        dry_run: Return the plan without writing anything.
        wait: If another process is writing to `out`, wait for it. So all ranks of a training run may call `build`: one of
            them builds, the others find it done.
        progress: True shows a progress bar, False nothing; a function is called with each `Progress`. By default
            the bar is shown on a terminal and in a notebook; elsewhere a command that takes longer than 10 seconds
            prints a line every minute.

    Returns:
        The report (docs/reference/json.md lists its keys), or the plan with `dry_run`.

    Raises:
        InvalidArgument: An argument is wrong, or `out` holds another dataset.
        IoError: A path does not exist, the disk is full, or another process is writing to `out`.
        TooManyBadImages: More than `max_bad`; its `report` is the one that would have been returned.
        CorruptDataError, Unsupported: The shards in `source` are damaged or of an unknown kind.
        KeyboardInterrupt: The build was stopped; the same call resumes it. A second interruption kills it at once.

    >>> report = build("images", "shards", size=32, shards=2)
    >>> report["status"], report["samples"], report["shards_done"]
    ('complete', 12, 2)
    >>> try:
    ...     build("images", "shards", size="big")
    ... except ValueError as error:
    ...     print(error.hint)
    Give N for a square, or HEIGHTxWIDTH.
    """
    words, waits = _words(build, locals(), "source", "out"), _options.truth("wait", wait)
    began, delay, has_said = time.monotonic(), _FIRST_RETRY_SECONDS, progress is False
    while True:
        try:
            report = run(words, progress)
        except IoError as error:
            if not error.message.startswith("another process"):
                raise
            if not waits:
                raise IoError(error.message, f"{error.hint} wait=True waits for it.", error.path) from None
            if not has_said and time.monotonic() - began >= _SILENT_SECONDS:
                say(f"precache: {error.message}; waiting for it")
                has_said = True
            time.sleep(delay)
            delay = min(1.5 * delay, _LONGEST_RETRY_SECONDS)
            continue
        _say_what_differs(report, progress)
        return report


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
    """Rewrites shards in another format, precision, layout, size or order; anything not given stays as it is.

    Args:
        source: A dataset folder, a shard of any origin, or a pattern of shards.
        normalize: As in `build`; only for tensors that are not normalised yet.
        split: Only this split of a dataset.
        shards: Number of shards of each split.
        seed: Shuffle with this seed; without it the order stays the same.
        labels: "none" leaves out the labels of shards without a manifest.

    The other arguments, the errors, and `progress` are those of `build`.

    Returns:
        The report (docs/reference/json.md lists its keys), or the plan with `dry_run`.

    >>> convert("shards", "halves", format="hdf5", dtype="float16", normalize=(0.5, 0.25))["status"]
    'complete'
    """
    report = run(_words(convert, locals(), "source", "out"), progress)
    _say_dropped(report, progress)
    return report


def pack(
    source: Path,
    out: Path,
    *,
    format: Format = "tar",
    split: str = "train",
    labels: Path = "folder",
    path_column: str | None = None,
    label_column: str | None = None,
    label_regex: str | None = None,
    image_key: str | None = None,
    label_key: str | None = None,
    proto: Path | None = None,
    message: str | None = None,
    classes: Path | None = None,
    shard_size: int | str = "512MiB",
    shards: int | None = None,
    overwrite: bool = False,
    seed: int | None = None,
    image_name: str | None = None,
    jobs: int | None = None,
    dry_run: bool = False,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Packs JPEG and PNG files into shards unchanged, to decode and augment them while training.

    Args:
        seed: Shuffle with this seed; without it the images stay in the order of their paths, class by class.
        image_name: In a tar: one extension for all images, whatever their format.

    The other arguments, the errors, and `progress` are those of `build`.

    Returns:
        The report (docs/reference/json.md lists its keys), or the plan with `dry_run`.

    >>> pack("images", "packed", seed=0, shards=2)["samples"]
    12
    """
    report = run(_words(pack, locals(), "source", "out"), progress)
    _say_dropped(report, progress)
    return report


def index(
    path: Path,
    *,
    kind: IndexKind | Sequence[IndexKind] | None = None,
    split: str | None = None,
    jobs: int | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Writes index files next to shards for other readers.

    Args:
        path: A dataset folder, a shard, or a pattern of shards.
        kind: One or more of "dali", "wids", "vds" and "tfds"; by default all that fit the format.
        split: Only this split of a dataset.

    The other arguments, the errors, and `progress` are those of `build`.

    Returns:
        `written`, a list of kind, file and samples, and `missing`, a list of kind, of and reason.

    >>> [(entry["kind"], entry["samples"]) for entry in index("shards", kind="wids")["written"]]
    [('wids', 12)]
    """
    return run(_words(index, locals(), "path"), progress)


def inspect(
    path: Paths,
    *,
    split: str | None = None,
    all: bool = False,
    proto: Path | None = None,
    message: str | None = None,
    sheet: Path | None = None,
    html: Path | None = None,
    samples: int = 24,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Describes the contents of shards, written by precache or by other programs.

    Args:
        path: A dataset folder, a shard of any origin, a pattern of shards, or a list of these.
        split: Only this split of a dataset.
        all: Read every label, every value and every file without a manifest, instead of a selection.
        sheet: Write a contact sheet of samples to this PNG file.
        html: Write a page with facts, samples and histograms to this file.
        samples: Number of samples on the sheet and the page.

    The other arguments, the errors, and `progress` are those of `build`.

    Returns:
        The facts that docs/formats/inspect.schema.json specifies; facts["paths"] has an entry for each path. Damage is
        not an error: it is listed in `faults`.

    >>> facts, = inspect("shards")["paths"]
    >>> facts["samples"], facts["tensor"]["shape"]
    (12, [3, 32, 32])
    """
    return run(_words(inspect, locals(), "path"), progress, faults_are_results=True)


def verify(
    path: Paths,
    *,
    split: str | None = None,
    jobs: int | None = None,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Reads shards from end to end and reports whether they are whole.

    Args:
        path: A dataset folder, a shard of any origin, a pattern of shards, or a list of these.
        split: Only this split of a dataset.

    The other arguments, the errors, and `progress` are those of `build`.

    Returns:
        The report; check `report["whole"]`, because a report itself is always true. Damage is not an error: each entry
        of `faults` has file, offset, record and reason, as do those of `unsupported`, which could not be checked.

    >>> report = verify("shards")
    >>> report["whole"], report["files"], report["faults"]
    (True, 2, [])
    """
    return run(_words(verify, locals(), "path"), progress, faults_are_results=True)


def _words(function: Callable[..., Any], values: dict[str, Any], *positional: str) -> list[str]:
    """The command line for a function and the values of its parameters. Defaults are left to the command."""
    words = [function.__name__, "--json"]
    for name, parameter in _inspect.signature(function).parameters.items():
        value, option = values[name], "--" + name.replace("_", "-")
        if name in positional or name in ("progress", "wait") or value is None:
            continue
        if name in _FLAGS:
            is_set = _options.truth(name, value)
            if parameter.default is True:
                option, is_set = "--no-" + option[2:], not is_set
            words += [option] if is_set else []
            continue
        if type(value) is type(parameter.default) and value == parameter.default:
            continue
        if name == "prepare" and isinstance(value, (bool, np.bool_)):
            words += [option] if value else []
            continue
        text = _text(name, value)
        # After =, a value may begin with a dash; an empty one has to be its own word.
        words += [option, text] if text == "" else [f"{option}={text}"]
    words.append("--")
    for name in positional:
        words += _paths(name, values[name])
    return words


def _say_what_differs(report: dict[str, Any], progress: ProgressOption) -> None:
    """Says which files a build ignored and which images it turned: torchvision's ImageFolder would not."""
    is_new = report.get("shards_done", 0) > report.get("shards_resumed", 0)
    if not is_new or callable(progress) or progress is False:
        return
    if ignored := report.get("plan", {}).get("left_out", {}):
        total = sum(ignored.values())
        kinds = ", ".join(
            f"{count} {kind}{'s' if kind.endswith('link') and count != 1 else ''}" for kind, count in ignored.items()
        )
        say(f"precache: ignored {total} file{'s' if total != 1 else ''}: {kinds}")
    if turned := report.get("turned", 0):
        images, them = (f"{turned} images", "them") if turned != 1 else ("1 image", "it")
        say(f'precache: {images} rotated by EXIF; ImageFolder does not rotate {them}. Use exif="ignore" to match it.')


def _say_dropped(report: dict[str, Any], progress: ProgressOption) -> None:
    """Says which columns of the source the new shards do not have."""
    names = report.get("plan", report).get("dropped_columns", [])
    if names and not callable(progress) and progress is not False:
        say(f"precache: columns that are not kept: {', '.join(names)}")


def _paths(name: str, value: Any) -> list[str]:
    may_be_several = name == "path"
    if not isinstance(value, (str, bytes, os.PathLike)) and not (may_be_several and isinstance(value, Iterable)):
        raise TypeError(f"{name} must be a path, got {value!r}")
    return _options.paths(value)


def _text(name: str, value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a number, a text or a path, got {value!r}")
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if name == "normalize" and value != "imagenet" and not isinstance(value, str):
        _options.normalization(value)  # checks that it is for x/255
        value = _options.mean_and_std(value)
    if name == "dtype" and not isinstance(value, str):  # the type of numpy, torch or JAX
        return _options.dtype(value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    separator = {"size": "x", "normalize": "/", "part": "/", "prepare": "/"}.get(name, ",")
    return separator.join(_text(f"a part of {name}", item) for item in value)
