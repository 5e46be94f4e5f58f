# SPDX-License-Identifier: Apache-2.0
"""Kills, signals, full disks, failing calls, changing sources: no partial files, no lost data, and the same bytes in the end."""

import contextlib
import errno
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import images
from reference import SMALL
from shards import FORMATS
from tool import EXTENSIONS, differing, files, finish, kill_after, signal_once, snapshot, wait_until

pytest_plugins = ("tool_fixtures",)

KILLS = 30  # for each format
PHOTOS = 300
OPTIONS = (*SMALL.options(), "--shards", "60", "--max-bad", "5%")
# One worker that takes the images in order of their names, so a test knows how far it is at the third.
ORDERED = (*SMALL.options(), "--shards", "6", "--no-shuffle", "--jobs", "1")
FEW = 12
# The name of an attempt: host, process namespace, process, random number.
TEMPORARY = re.compile(r"(dataset\.json|skipped\.tsv)\.[\w-]+\.\d+\.\d+\.[0-9a-f]{16}\.tmp")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Images that take some time to decode, and a few bad ones."""
    source = tmp_path_factory.mktemp("photos")
    for number in range(PHOTOS):
        folder = source / f"class{number % 5}"
        folder.mkdir(exist_ok=True)
        images.picture("RGB", 320, 240, number).save(folder / f"{number:03}{('.jpg', '.png')[number % 2]}")
    for number in (7, 8, 150):
        (source / "class0" / f"bad{number}.jpg").write_bytes(bytes(number))
    return source


def draw_few(source):
    """12 images; ORDERED makes 6 shards of two."""
    for number in range(FEW):
        images.draw_unique(source / f"class{number // 6}" / f"{number:02}.png", number)
    return source


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return draw_few(tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def undisturbed(tool, few, tmp_path_factory):
    """The files of an undisturbed build of `few`, by format."""

    def build(file_format):
        out = tmp_path_factory.mktemp("undisturbed") / file_format
        tool.build(few, out, *ORDERED, "--format", file_format)
        return files(out)

    return {file_format: build(file_format) for file_format in FORMATS}


def shard_names(out):
    return sorted(path.name for path in out.glob("train-*"))


def temporaries(out):
    return sorted(path.name for path in out.rglob("*.part"))


def wait_for_first_shards(process, out):
    """Waits until another thread has written the first two shards. A build that is held at an image of the third
    writes nothing after that."""
    wait_until(lambda: list(out.glob("train-000001.*")) and not list(out.rglob("train-000001.*.lock")), process)


def fill(disk):
    """Uses up the remaining space."""
    with open(disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))


def assert_nothing_partial(out, final):
    """A file with a final name in OUT equals that of the finished dataset, and the manifest comes last."""
    allowed = {*final, ".precache"}
    there = {path.name: path for path in out.iterdir()} if out.exists() else {}
    there = {name: path for name, path in there.items() if not TEMPORARY.fullmatch(name)}
    assert there.keys() <= allowed
    assert [name for name in there if name in final and there[name].read_bytes() != final[name]] == []
    if "dataset.json" in there:
        assert final.keys() <= there.keys()


# --- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", FORMATS)
def test_kills_at_random_moments_change_no_byte(tool, photos, quick_folder, file_format):
    options = (*OPTIONS, "--format", file_format)
    begin = time.monotonic()
    tool.build(photos, quick_folder / "undisturbed", *options)
    duration = time.monotonic() - begin
    final = files(quick_folder / "undisturbed")
    assert len(final) == 62  # the manifest, 60 shards, skipped.tsv

    out = quick_folder / "out"
    moments = random.Random(file_format)
    kills = 0
    while kills < KILLS:
        if kill_after(tool.start("build", photos, out, "--quiet", *options), moments.uniform(0, duration / 2)):
            kills += temporaries(out) != []  # those that hit a shard
            assert_nothing_partial(out, final)
        else:  # it was done before: start over, for the kills that are left
            assert differing(files(out), final) == []
            shutil.rmtree(out)
    tool.build(photos, out, *options)
    assert differing(files(out), final) == []


def test_a_kill_leaves_nothing_in_the_folder_for_temporary_files(tool, interference, few, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    options = (*ORDERED, "--format", "hdf5")
    for step in range(4):
        env = interference.kill("mkstemp,open,unlink", path=scratch, after=step)
        finish(tool.start("build", few, tmp_path / f"out{step}", "--quiet", *options, env=env))
        tool.build(few, tmp_path / f"out{step}", *options)
        assert files(scratch) == {}, f"after a kill before call {step}"


# --- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_signal_ends_the_build_cleanly(tool, interference, few, undisturbed, tmp_path, file_format, number):
    out = tmp_path / "out"
    command = ("build", few, out, *ORDERED, "--format", file_format)
    with interference.hold(tool, *command, path="class0/04.png") as (process, gate):
        signal_once(process, number)
        gate.open()
        result = finish(process)
    assert result.code == -number
    assert "interrupted" in result.err and "run the same command again" in result.err
    assert "2 of 6 shards are complete" in result.err  # the held image was the first of the third shard
    assert len(shard_names(out)) == 2
    assert temporaries(out) == []
    assert_nothing_partial(out, undisturbed[file_format])
    assert tool.run(*command, "--json").json()["shards_resumed"] == 2
    assert differing(files(out), undisturbed[file_format]) == []


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_second_signal_ends_the_build_at_once(tool, interference, few, undisturbed, tmp_path, second):
    out = tmp_path / "out"
    with interference.hold(tool, "build", few, out, *ORDERED, path="class0/05.png") as (process, _):
        signal_once(process, signal.SIGINT)
        process.send_signal(second)
        assert process.wait(10) == -second  # the gate is shut: it cannot end by itself
    tool.build(few, out, *ORDERED)
    assert differing(files(out), undisturbed["tar"]) == []


def first_process(process, tool):
    """The process that runs the tool as the first of its container, seen from outside."""

    def found():
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return [int(child) for child in children if os.path.samefile(f"/proc/{child}/exe", tool.path)]

    wait_until(lambda: len(found()) == 1, process)
    return found()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("signals", [1, 2])
def test_signals_end_the_first_process_of_a_container_too(
    tool, interference, few, undisturbed, tmp_path, number, signals
):
    """The kernel ignores signals to it that have no handler."""
    container = ("unshare", "--pid", "--fork", "--kill-child")
    if subprocess.run([*container, "true"], capture_output=True).returncode != 0:
        pytest.skip("process namespaces are not permitted here")
    out = tmp_path / "out"
    command = ("build", few, out, *ORDERED)
    with interference.hold(tool, *command, path="class0/04.png", before=container) as (process, gate):
        inner = first_process(process, tool)
        for _ in range(signals):
            os.kill(inner, number)
            wait_until(lambda: not has_pending(inner), process)
        if signals == 1:
            gate.open()
        assert finish(process).code == 128 + number
    tool.run(*command)
    assert differing(files(out), undisturbed["tar"]) == []


def has_pending(process):
    with contextlib.suppress(FileNotFoundError):
        status = Path(f"/proc/{process}/status").read_text()
        return int(status.split("ShdPnd:")[1].split()[0], 16) != 0
    return False


def test_an_interrupted_overwriting_build_resumes_as_its_message_says(tool, interference, few, undisturbed, tmp_path):
    out = tmp_path / "out"
    tool.build(few, out, "--size", "8")
    command = ("build", few, out, *ORDERED, "--overwrite")
    with interference.hold(tool, *command, path="class0/05.png") as (process, gate):
        signal_once(process, signal.SIGINT)
        gate.open()
        assert "run the same command without --overwrite again to continue" in finish(process).err
    assert tool.run(*command[:-1], "--json").json()["shards_resumed"] == 3
    assert differing(files(out), undisturbed["tar"]) == []


# --- no space ---------------------------------------------------------------------------------------------------------

LARGE = ("--size", "128", "--shards", "6", "--no-shuffle", "--jobs", "1")  # 12 tensors of 48 KiB: 600 KiB
SHARD_KIB = 100


def test_a_disk_that_is_too_small_is_named_before_the_first_image(tool, few, small_disk):
    disk = small_disk(400)
    plan = tool.run("build", few, disk / "out", *LARGE, "--dry-run", "--json").json()
    assert plan["bytes_free"] <= 400 * 1024 < plan["bytes_needed"]
    text = tool.refuse(few, disk / "out", *LARGE, expect=3)
    assert "No space left on device" in text and str(disk / "out") in text
    needed, free = re.search(r"need ([\d.]+) \wi?B.* ([\d.]+) \wi?B are free", text).groups()
    assert float(needed) > float(free) > 0
    assert shard_names(disk / "out") == []


def build_while_the_disk_fills(tool, interference, source, disk, *options):
    """The disk fills up while the third shard is written."""
    out = disk / "out"
    with interference.hold(tool, "build", source, out, "--quiet", *options, path="class0/05.png") as (process, gate):
        wait_for_first_shards(process, out)
        fill(disk)
        gate.open()
        result = finish(process)
    assert result.code == 3
    return result.err


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_disk_that_fills_up_ends_the_build_without_loss(tool, interference, few, small_disk, tmp_path, file_format):
    options = (*LARGE, "--format", file_format)
    tool.build(few, tmp_path / "undisturbed", *options)
    final = files(tmp_path / "undisturbed")
    disk = small_disk(900)
    build_while_the_disk_fills(tool, interference, few, disk, *options)
    assert_nothing_partial(disk / "out", final)
    assert temporaries(disk / "out") == []
    (disk / "filler").unlink()
    tool.build(few, disk / "out", *options)
    assert differing(files(disk / "out"), final) == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_full_disk_is_named_with_a_way_to_continue(tool, interference, few, small_disk, file_format):
    disk = small_disk(900)
    text = build_while_the_disk_fills(tool, interference, few, disk, *LARGE, "--format", file_format)
    assert text.startswith("precache: ") and str(disk / "out") in text
    assert "No space left on device" in text
    assert "run the same command again" in text


def test_a_killed_build_resumes_where_space_is_scarce(tool, interference, few, small_disk, tmp_path):
    tool.build(few, tmp_path / "undisturbed", *LARGE)
    disk = small_disk(6 * SHARD_KIB + 80)  # for the dataset, and less than half a shard
    tool.build(few, disk / "out", *LARGE)
    shutil.rmtree(disk / "out")
    with interference.hold(tool, "build", few, disk / "out", *LARGE, path="class0/05.png"):
        pass  # it is killed at the gate
    assert temporaries(disk / "out") != []
    tool.build(few, disk / "out", *LARGE)
    assert differing(files(disk / "out"), files(tmp_path / "undisturbed")) == []


# --- failing calls ----------------------------------------------------------------------------------------------------

PASSING = [errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENOMEM]


@pytest.mark.parametrize("call", ["open", "pread"])
@pytest.mark.parametrize("code", PASSING, ids=errno.errorcode.get)
def test_a_temporary_read_error_does_no_harm(tool, interference, few, undisturbed, tmp_path, call, code):
    env = interference.fail(call, code, path="class0/03.png", times=2)
    result = tool.build(few, tmp_path / "out", *ORDERED, "--json", env=env)
    assert (result.json()["skipped"], result.err) == (0, "")
    assert differing(files(tmp_path / "out"), undisturbed["tar"]) == []


@pytest.mark.parametrize("call, code", [("pread", errno.EIO), *(("open", code) for code in PASSING)])
def test_a_lasting_read_error_ends_the_build_and_skips_nothing(
    tool, interference, few, undisturbed, tmp_path, call, code
):
    out = tmp_path / "out"
    env = interference.fail(call, code, path="class0/03.png")
    text = tool.refuse(few, out, *ORDERED, "--max-bad", "100%", env=env, expect=3)
    assert str(few / "class0" / "03.png") in text and os.strerror(code) in text
    assert not (out / "skipped.tsv").exists()
    assert temporaries(out) == []
    assert_nothing_partial(out, undisturbed["tar"])
    tool.build(few, out, *ORDERED)
    assert differing(files(out), undisturbed["tar"]) == []


WRITE_FAULTS = [
    ("pwrite", errno.ENOSPC, "train-000001."),
    ("pwrite", errno.EIO, "train-000001."),
    ("fallocate", errno.ENOSPC, "train-000001."),
    ("ftruncate", errno.EIO, "train-000001."),
    ("fsync", errno.EIO, "train-000001."),
    ("rename", errno.EIO, "train-000001"),
    ("open", errno.EACCES, "train-000001."),
]


@pytest.mark.parametrize("call, code, path", WRITE_FAULTS, ids=[f"{call}-{code}" for call, code, _ in WRITE_FAULTS])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_shard_that_cannot_be_written_is_not_published(
    tool, interference, few, undisturbed, tmp_path, file_format, call, code, path
):
    out = tmp_path / "out"
    options = (*ORDERED, "--format", file_format)
    text = tool.refuse(few, out, *options, env=interference.fail(call, code, path=path), expect=3)
    assert "000001" in text and os.strerror(code) in text
    assert f"train-000001.{EXTENSIONS[file_format]}" not in shard_names(out)
    assert temporaries(out) == []
    assert_nothing_partial(out, undisturbed[file_format])
    tool.build(few, out, *options)
    assert differing(files(out), undisturbed[file_format]) == []


@pytest.mark.parametrize("after", range(8))
def test_no_write_of_the_hdf5_library_is_lost(tool, interference, few, undisturbed, tmp_path, after):
    """The library writes labels, keys, classes and metadata to a scratch file, and part of them only on close."""
    out = tmp_path / "out"
    options = (*ORDERED, "--format", "hdf5")
    # The file has no name any more at that point.
    fault = interference.fail("pwrite", errno.ENOSPC, path="(deleted)", after=after, times=1)
    result = finish(tool.start("build", few, out, "--quiet", *options, env=fault))
    assert result.code in (0, 3), result.err
    if result.code == 3:
        assert "HDF5" in result.err and os.strerror(errno.ENOSPC) in result.err
    assert_nothing_partial(out, undisturbed["hdf5"])
    tool.build(few, out, *options)
    assert differing(files(out), undisturbed["hdf5"]) == []
    assert after > 0 or result.code == 3  # the fault was met at all


INDEXED = (*SMALL.options(), "--shards", "6", "--format", "hdf5", "--index", "vds")


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_a_failed_write_of_the_hdf5_library_is_reported_as_the_cause(tool, interference, few, tmp_path, jobs):
    """Even if the library was used before, and other threads fail after it."""
    options = (*INDEXED, "--jobs", jobs)
    for after in range(6):
        out = tmp_path / f"out{after}"
        tool.build(few, out, *INDEXED)
        fault = interference.fail("pwrite", errno.ENOSPC, path="(deleted)", after=after)
        text = tool.refuse(few, out, *options, "--overwrite", env=fault, expect=3)
        assert "HDF5" in text and os.strerror(errno.ENOSPC) in text
        tool.build(few, out, *options, "--overwrite")


def test_an_index_that_the_hdf5_library_cannot_write_is_reported(tool, interference, few, tmp_path):
    tool.build(few, tmp_path / "out", *INDEXED)
    for after in range(3):
        fault = interference.fail("pwrite", errno.ENOSPC, path=".vds", after=after)
        result = tool.run("index", tmp_path / "out", "--kind", "vds", env=fault, expect=3)
        assert "HDF5" in result.err and os.strerror(errno.ENOSPC) in result.err


@pytest.mark.parametrize(
    "call, name",
    [("pwrite", "job.json."), ("fsync", "plan."), ("pwrite", "000002.tar.json."), ("rename", "dataset.json")],
)
def test_a_work_file_that_cannot_be_written_ends_the_build(tool, interference, few, undisturbed, tmp_path, call, name):
    out = tmp_path / "out"
    text = tool.refuse(few, out, *ORDERED, env=interference.fail(call, errno.EIO, path=name), expect=3)
    assert name.rstrip(".") in text
    assert_nothing_partial(out, undisturbed["tar"])
    assert not (out / "dataset.json").exists()
    tool.build(few, out, *ORDERED)
    assert differing(files(out), undisturbed["tar"]) == []


def test_a_file_system_that_cannot_reserve_space_is_fine(tool, interference, few, undisturbed, tmp_path):
    env = interference.fail("fallocate", errno.EOPNOTSUPP)
    tool.build(few, tmp_path / "out", *ORDERED, env=env)
    assert differing(files(tmp_path / "out"), undisturbed["tar"]) == []


@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("call", ["flock", "ftruncate", "fallocate", "pwrite", "fsync"])
def test_a_call_that_a_signal_interrupts_is_made_again(tool, interference, few, undisturbed, tmp_path, call, after):
    out, log = tmp_path / "out", tmp_path / "log"
    fault = {"path": tmp_path, "after": after, "times": 1, "log": log}
    tool.build(few, out, *ORDERED, env=interference.fail(call, errno.EINTR, **fault))
    assert len(log.read_text().splitlines()) > after + 1  # so one was interrupted
    assert differing(files(out), undisturbed["tar"]) == []


def test_a_folder_that_cannot_be_listed_is_named(tool, interference, few, tmp_path):
    env = interference.fail("opendir", errno.EIO, path="class1")
    assert str(few / "class1") in tool.refuse(few, tmp_path / "out", *ORDERED, env=env, expect=3)


def test_too_little_memory_never_skips_an_image(tool, interference, tmp_path):
    if tool.is_sanitized():
        pytest.skip("the sanitizer has its own malloc")
    source = tmp_path / "source"
    (source / "class").mkdir(parents=True)
    images.picture("RGB", 2000, 1000).save(source / "class" / "large.jpg", progressive=True)  # decoded as a whole
    env = interference.environment(malloc_above=1_000_000)
    text = tool.refuse(source, tmp_path / "out", "--max-bad", "100%", env=env, expect=3)
    assert "memory" in text
    assert not (tmp_path / "out" / "skipped.tsv").exists()


# --- a source that changes --------------------------------------------------------------------------------------------


def grow(path):
    path.write_bytes(path.read_bytes() + b"\0")


def touch(path):
    os.utime(path, ns=(0, 0))


def become_folder(path):
    path.unlink()
    path.mkdir()


def become_fifo(path):
    path.unlink()
    os.mkfifo(path)


def become_dangling_link(path):
    path.unlink()
    path.symlink_to("nowhere")


CHANGES = [grow, touch, os.unlink, become_folder, become_fifo, become_dangling_link]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_changed_since_the_listing_stops_the_build(tool, interference, tmp_path, change):
    source, out = draw_few(tmp_path / "source"), tmp_path / "out"
    tool.build(source, tmp_path / "undisturbed", *ORDERED)
    with interference.hold(tool, "build", source, out, *ORDERED, path="class0/02.png"):
        pass  # it is killed at the gate
    victim = source / "class0" / "04.png"
    data, status = victim.read_bytes(), victim.stat()
    change(victim)
    text = tool.refuse(source, out, *ORDERED, expect=3)
    assert f"the source has changed since it was listed: '{victim}'" in text
    assert not (out / "skipped.tsv").exists()

    victim.rmdir() if victim.is_dir() else victim.unlink(missing_ok=True)
    victim.write_bytes(data)
    os.utime(victim, ns=(status.st_atime_ns, status.st_mtime_ns))
    tool.build(source, out, *ORDERED)
    assert differing(files(out), files(tmp_path / "undisturbed")) == []


def test_a_file_that_changes_during_the_build_stops_it(tool, interference, tmp_path):
    source = draw_few(tmp_path / "source")
    victim = source / "class1" / "07.png"
    with interference.hold(tool, "build", source, tmp_path / "out", *ORDERED, path="class0/02.png") as (process, gate):
        victim.unlink()
        gate.open()
        result = finish(process)
    assert result.code == 3 and str(victim) in result.err


def test_a_file_that_shrinks_while_it_is_read_stops_the_build(tool, interference, tmp_path):
    source = draw_few(tmp_path / "source")
    victim = source / "class0" / "02.png"
    command = ("build", source, tmp_path / "out", *ORDERED)
    with interference.hold(tool, *command, calls="pread", path=victim.name) as (process, gate):
        os.truncate(victim, 10)
        gate.open()
        result = finish(process)
    assert result.code == 3 and str(victim) in result.err


def test_a_file_added_after_the_listing_is_ignored(tool, interference, tmp_path):
    source, out = draw_few(tmp_path / "source"), tmp_path / "out"
    tool.build(source, tmp_path / "undisturbed", *ORDERED)
    with interference.hold(tool, "build", source, out, *ORDERED, path="class0/02.png"):
        pass  # it is killed at the gate
    images.draw_unique(source / "class0" / "late.png", 99)
    images.draw_unique(source / "another class" / "late.png", 98)
    tool.build(source, out, *ORDERED)
    assert differing(files(out), files(tmp_path / "undisturbed")) == []


# --- several at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", "--overwrite", "--part 0/2", "--finish", "--split val"])
def test_a_second_build_into_the_same_folder_is_refused(tool, interference, few, undisturbed, tmp_path, options):
    out = tmp_path / "out"
    with interference.hold(tool, "build", few, out, *ORDERED, path="class0/04.png") as (process, gate):
        wait_for_first_shards(process, out)
        before = snapshot(out)
        text = tool.refuse(few, out, *ORDERED, *options.split(), expect=3)
        assert f"another process is writing to '{out}'" in text
        assert snapshot(out) == before
        gate.open()
        assert finish(process).code == 0
    assert differing(files(out), undisturbed["tar"]) == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_two_equal_parts_at_once_do_no_harm(tool, interference, few, undisturbed, tmp_path, file_format):
    out = tmp_path / "out"
    command = ("build", few, out, *ORDERED, "--format", file_format)
    with interference.hold(tool, *command, "--part", "0/2", path="class0/05.png") as (process, gate):
        second = finish(tool.start(*command, "--part", "0/2"))
        assert second.code == 0, "it makes the other shards first, then also the one that is held"
        tool.run(*command, "--part", "1/2")
        gate.open()
        assert finish(process).code == 0
    tool.run(*command, "--finish")
    assert differing(files(out), undisturbed[file_format]) == []


def test_a_part_does_not_wait_for_a_killed_build(tool, interference, few, undisturbed, tmp_path):
    out = tmp_path / "out"
    with interference.hold(tool, "build", few, out, *ORDERED, "--part", "0/2", path="class0/05.png"):
        pass  # it is killed at the gate
    for part in ("1/2", "0/2"):
        tool.build(few, out, *ORDERED, "--part", part)
    tool.build(few, out, *ORDERED, "--finish")
    assert differing(files(out), undisturbed["tar"]) == []


def test_finish_names_a_shard_that_is_missing(tool, few, undisturbed, tmp_path):
    out = tmp_path / "out"
    tool.build(few, out, *ORDERED, "--part", "0/3")
    text = tool.refuse(few, out, *ORDERED, "--finish")
    assert re.search(r"\b4 of 6 shards\b", text) and re.search(r"number 1\b|train-000001\.tar", text)
    for part in ("1/3", "2/3"):
        tool.build(few, out, *ORDERED, "--part", part)
    tool.build(few, out, *ORDERED, "--finish")
    assert differing(files(out), undisturbed["tar"]) == []
