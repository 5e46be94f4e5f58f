# SPDX-License-Identifier: Apache-2.0
"""A build on many machines, by any engine that can call a function on them.

>>> job = precache.cluster.Job(images, out, parts=3, size=32, shards=6)
>>> job.prepare()["status"]
'prepared'
>>> results = [*map(job.run, range(job.parts))]  # or the map of an engine
>>> sum(result.images for result in results) == job.status()["samples"]
True
>>> job.finish()["status"]
'complete'

`run_on_spark`, `run_on_ray` and `run_on_dask` do all of it with a session of the caller. All machines must see the
source and the shards under the same paths, and must have this package. See docs/guides/cluster.md.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from . import _options
from ._commands import Path, _words, build
from ._errors import CorruptDataError, Error, InvalidArgument, TooManyBadImages, Unsupported
from ._process import run
from ._progress import Display, Progress, ProgressOption, make_display

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

    from ._keywords import BuildOptions

__all__ = ["Job", "PartResult", "run_on_dask", "run_on_ray", "run_on_spark"]

_MOST_PARTS = 1_000_000
_POLL_SECONDS = 0.5
# The properties that setJobGroup() sets for the thread of the caller.
_SPARK_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_STEPS = {"dry_run", "finish", "part", "parts", "prepare", "progress", "status", "wait", "watch"}
_PATHS = {"classes", "labels", "mask", "proto", "split_file"}
_NOT_PATHS = {"source": ("-",), "labels": ("folder", "none")}
# Another attempt would end the same way, so engines are not asked for one.
_FINAL = (InvalidArgument, CorruptDataError, Unsupported, TooManyBadImages)

Result = TypeVar("Result")


@dataclass(frozen=True)
class PartResult:
    """The outcome of one attempt at a part."""

    part: int
    """The number of the part, from 0."""
    shards: int
    """Shards of this part that are complete, earlier attempts included."""
    images: int
    """Images that this attempt wrote."""
    skipped: int
    """Bad images of this part, earlier attempts included."""
    bytes: int
    """Size of the complete shards."""
    seconds: float
    """How long the attempt took."""
    host: str
    """Name of the machine."""


class Job:
    """A build in steps: `prepare` once, `run` for each part, then `finish`.

    A job can be pickled, and holds nothing but the command line: all state is in `out`. Calls can be repeated, and two
    attempts at one part may run at the same time, because both write the same bytes.
    """

    def __init__(
        self,
        source: Path,
        out: Path,
        *,
        parts: int,
        prepare_parts: int = 1,
        jobs: int = 1,
        **options: Unpack[BuildOptions],
    ) -> None:
        """Checks the names of the arguments, but does not look at the source.

        Args:
            source: As in `precache.build`. All machines must see it under this path; a relative one, as that of the
                options, is below the working folder of this call.
            out: The same, for the shards.
            parts: How many calls of `run` make the dataset: 4 to 10 for each slot of the cluster is a good number.
            prepare_parts: How many calls of `prepare_part` list the source before `prepare`: for millions of files, or
                thousands of tars. Cannot be combined with `overwrite`.
            jobs: Threads of each part: as many CPUs as the engine gives to a task.
            options: The other arguments of `precache.build`. Only `prepare` uses `overwrite`, and only `finish` `index`.
        """
        unknown = _STEPS & options.keys()
        if unknown:
            raise TypeError(f"Job() got an unexpected keyword argument '{min(unknown)}'")
        self.parts = _options.count("parts", parts, _MOST_PARTS, least=1)
        self.prepare_parts = _options.count("prepare_parts", prepare_parts, _MOST_PARTS, least=1)
        self.jobs = _options.count("jobs", jobs, 1024, least=1)
        if self.prepare_parts > 1 and options.get("overwrite"):
            raise InvalidArgument(
                "prepare_parts cannot be combined with overwrite", "Remove the dataset first, or list it by one call."
            )
        # Tasks run in other working folders.
        source, out = _absolute("source", source), _absolute("out", out)
        for name in _PATHS & options.keys():
            options[name] = _absolute(name, options[name])  # type: ignore[literal-required]
        self._words = _build_words(source, out, **{**options, "overwrite": False, "index": None})
        self._words_to_prepare = _build_words(source, out, **{**options, "index": None})
        self._words_to_finish = _build_words(source, out, **{**options, "overwrite": False})

    def __repr__(self) -> str:
        source, out = self._words[-2:]
        return f"Job({source!r}, {out!r}, parts={self.parts})"

    def prepare(self, progress: ProgressOption = False) -> dict[str, Any]:
        """Lists the source once for all parts and writes the plan; does nothing if that was done before.

        Returns:
            The report of `precache.build`, with the status "prepared".
        """
        return run(_with_step(self._words_to_prepare, "--prepare"), progress)

    def prepare_part(self, part: int) -> dict[str, Any]:
        """Lists a share of the source; `prepare` puts the shares together.

        Returns:
            The report of `precache.build`.
        """
        number = _options.count("part", part, self.prepare_parts - 1)
        return run(_with_step(self._words, f"--prepare={number}/{self.prepare_parts}", f"--jobs={self.jobs}"), False)

    def run(self, part: int) -> PartResult:
        """Makes the shards of a part. Shards that are complete already stay.

        Raises:
            IoError: The system refused; another attempt may succeed, perhaps on another machine.
            InvalidArgument, TooManyBadImages, CorruptDataError, Unsupported: Another attempt ends the same way.
        """
        number = _options.count("part", part, self.parts - 1)
        begin = time.monotonic()
        report = run(_with_step(self._words, f"--part={number}/{self.parts}", f"--jobs={self.jobs}"), False)
        return PartResult(
            part=number,
            shards=report["shards_done"],
            images=report["converted"],
            skipped=report["skipped"],
            bytes=report["bytes"],
            seconds=time.monotonic() - begin,
            host=socket.gethostname(),
        )

    def status(self) -> dict[str, Any]:
        """How far the job is, by the names of the files in `out`: shards, missing parts, speed, remaining time.

        docs/reference/json.md lists the keys.
        """
        return run(_with_step(self._words, "--status", f"--parts={self.parts}"), False)

    def watch(
        self, progress: ProgressOption = None, *, every: float = 2.0, timeout: float | None = None
    ) -> dict[str, Any]:
        """Shows the progress of all parts in one bar until they are done: whatever runs them, and from any machine.

        Args:
            progress: As in `precache.build`; counts shards.
            every: Seconds between two checks.
            timeout: Stop after so many seconds, because a part that failed for good never ends.

        Returns:
            The last `status`.
        """
        begin, pause = time.monotonic(), _seconds("every", every)
        end = None if timeout is None else begin + _seconds("timeout", timeout)
        with contextlib.closing(make_display(progress)) as display:
            while True:
                status = self.status()
                display.show(_progress_of(status, time.monotonic() - begin))
                is_over = end is not None and time.monotonic() + pause > end
                if is_over or status["status"] in ("parts done", "complete"):
                    return status
                time.sleep(pause)

    def finish(self, progress: ProgressOption = False) -> dict[str, Any]:
        """Writes the manifest when all parts are done.

        Returns:
            The report of `precache.build`.

        Raises:
            InvalidArgument: Shards are missing; the message names the parts that make them.
        """
        return run(_with_step(self._words_to_finish, "--finish", f"--parts={self.parts}"), progress)


def run_on_spark(spark: Any, job: Job, *, progress: ProgressOption = None) -> dict[str, Any]:
    """Runs all steps of a job as tasks of a Spark session.

    Spark repeats a failed task as `spark.task.maxFailures` says. An error that another attempt would meet again ends
    all parts. Speculative copies are harmless. Set `spark.task.cpus` to the `jobs` of the job. Spark Connect is not
    supported: it has no `sparkContext`.

    Args:
        spark: A `pyspark.sql.SparkSession`.
        progress: As in `precache.build`; counts parts.

    Returns:
        The report of `job.finish`.
    """
    context = spark.sparkContext

    def call(function: Callable[..., Result], items: range) -> list[Result | Error]:
        if not items:
            return []
        collected: list[Result | Error] = (
            context.parallelize(items, len(items)).map(functools.partial(_outcome, function)).collect()
        )
        return collected

    for listed in call(job.prepare_part, _shares(job)):
        _value(listed)
    _value(call(functools.partial(_ignoring, job.prepare), range(1))[0])
    parts, images = context.accumulator(0), context.accumulator(0)
    errors = context.accumulator([], _make_list_accumulator())
    group = f"precache-{uuid.uuid4()}"

    def run_part(part: int) -> PartResult | Error:
        result = _outcome(job.run, part)
        if isinstance(result, Error):
            errors.add([result])
            return result
        parts.add(1)  # the driver learns of it when the task has ended
        images.add(result.images)
        return result

    def look() -> None:
        bar.show(parts.value, images.value)
        if errors.value:
            context.cancelJobGroup(group)

    with contextlib.closing(make_display(progress)) as display:
        bar = _Bar(job, display)
        before = {name: context.getLocalProperty(name) for name in _SPARK_GROUP}
        context.setJobGroup(group, f"precache: {job!r}", interruptOnCancel=True)
        try:
            with _repeating(look):
                outcomes = call(run_part, range(job.parts))
        except Exception as exception:
            if errors.value:  # why the parts were cancelled
                raise errors.value[0] from exception
            raise
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, value)
        for outcome in outcomes:
            _value(outcome)
        bar.show(job.parts, images.value)
    return _value(call(functools.partial(_ignoring, job.finish), range(1))[0])


def _make_list_accumulator() -> Any:
    """Joins lists that tasks add to an accumulator of Spark."""
    parameter: Any = importlib.import_module("pyspark.accumulators").AccumulatorParam

    class Lists(parameter):  # type: ignore[misc]
        def zero(self, _: list[Any]) -> list[Any]:
            return []

        def addInPlace(self, one: list[Any], other: list[Any]) -> list[Any]:
            return one + other

    return Lists()


def run_on_ray(job: Job, *, retries: int = 4, progress: ProgressOption = None) -> dict[str, Any]:
    """Runs all steps of a job as tasks of the Ray cluster that this process is connected to.

    Args:
        retries: How often Ray repeats a task that failed or whose machine was lost.
        progress: As in `precache.build`; counts parts.

    Returns:
        The report of `job.finish`.

    Raises:
        InvalidArgument: `ray.init` was not called.
    """
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        raise InvalidArgument("ray is not connected to a cluster", "Call ray.init() first.")
    task = ray.remote(num_cpus=job.jobs, max_retries=retries, retry_exceptions=True)(_outcome)

    def get(reference: Any) -> Any:
        try:
            return _value(ray.get(reference))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error

    for reference in [task.remote(job.prepare_part, share) for share in _shares(job)]:
        get(reference)
    get(task.remote(job.prepare))
    with contextlib.closing(make_display(progress)) as display:
        bar = _Bar(job, display)
        pending = [task.remote(job.run, part) for part in range(job.parts)]
        try:
            while pending:
                ready, pending = ray.wait(pending, num_returns=len(pending), timeout=_POLL_SECONDS)
                for reference in ready:
                    bar.add(get(reference))
        finally:
            for reference in pending:
                ray.cancel(reference)
    report: dict[str, Any] = get(task.remote(job.finish))
    return report


def run_on_dask(client: Any, job: Job, *, retries: int = 4, progress: ProgressOption = None) -> dict[str, Any]:
    """Runs all steps of a job as tasks of a Dask cluster.

    Args:
        client: A `distributed.Client`.
        retries: How often Dask repeats a task that failed.
        progress: As in `precache.build`; counts parts.

    Returns:
        The report of `job.finish`.
    """
    as_completed = importlib.import_module("distributed").as_completed
    submit = functools.partial(client.submit, _outcome, pure=False, retries=retries)
    for future in [submit(job.prepare_part, share) for share in _shares(job)]:
        _value(future.result())
    _value(submit(job.prepare).result())
    with contextlib.closing(make_display(progress)) as display:
        bar = _Bar(job, display)
        futures = client.map(
            functools.partial(_outcome, job.run), range(job.parts), pure=False, retries=retries, batch_size=1000
        )
        try:
            for _, outcome in as_completed(futures, with_results=True):
                bar.add(_value(outcome))
        finally:
            client.cancel(futures)
    report: dict[str, Any] = _value(submit(job.finish).result())
    return report


class _Bar:
    """The progress of all parts as one bar."""

    def __init__(self, job: Job, display: Display) -> None:
        self._parts, self._display, self._begin = job.parts, display, time.monotonic()
        self._done = self._images = 0

    def add(self, result: PartResult) -> None:
        self.show(self._done + 1, self._images + result.images)

    def show(self, done: int, images: int) -> None:
        self._done, self._images = done, images
        seconds = max(time.monotonic() - self._begin, 1e-9)
        text = f"{done:,}/{self._parts:,} parts"
        if done:
            left = seconds * (self._parts - done) / done
            text += f", {images / seconds:,.0f} images/s, {_clock(left)} left"
        self._display.show(Progress(done / self._parts, done, self._parts, "parts", text, seconds))


def _progress_of(status: dict[str, Any], seconds: float) -> Progress:
    """A status as a bar shows it."""
    done, planned = status["shards_done"], status["shards"]
    text = f"{status['status']}: {done:,}/{planned:,} shards" if planned else str(status["status"])
    if status["parts"] and status["status"] == "running":
        text += f", {status['parts_missing']:,} of {status['parts']:,} parts missing"
    rate, left = status["samples_per_second"], status["seconds_left"]
    if rate is not None and left is not None:
        text += f", {rate:,.0f} images/s, {_clock(left)} left"
    return Progress(done / planned if planned else None, done, planned, "shards", text, seconds)


def _seconds(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise InvalidArgument(f"{name} must be a number of seconds, more than 0, got {value!r}")
    return float(value)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


@contextlib.contextmanager
def _repeating(show: Callable[[], None]) -> Iterator[None]:
    """Calls a function again and again while its body runs."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(_POLL_SECONDS):
            show()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _outcome(function: Callable[..., Result], *arguments: Any) -> Result | Error:
    """Returns errors that another attempt would meet again; engines repeat what raises."""
    try:
        return function(*arguments)
    except _FINAL as error:
        return error


def _value(outcome: Result | Error) -> Result:
    if isinstance(outcome, Error):
        raise outcome
    return outcome


def _shares(job: Job) -> range:
    return range(job.prepare_parts) if job.prepare_parts > 1 else range(0)


def _ignoring(function: Callable[[], Result], _: Any) -> Result:
    return function()


def _build_words(source: Path, out: Path, **options: Any) -> list[str]:
    given = inspect.signature(build).bind(source, out, **options)
    given.apply_defaults()
    return _words(build, given.arguments, "source", "out")


def _absolute(name: str, value: Any) -> Any:
    """A path as it is below the working folder of this process; what is not a path, as it is."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        return value  # build refuses it, or it is not given
    text = os.fsdecode(value)
    if not text or text in _NOT_PATHS.get(name, ()) or (name == "source" and "://" in text):
        return value
    return os.path.join(os.getcwd(), text)  # abspath() would replace .. without a look at links


def _with_step(words: list[str], *step: str) -> list[str]:
    return [words[0], *step, *words[1:]]
