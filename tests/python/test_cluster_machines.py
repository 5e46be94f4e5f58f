# SPDX-License-Identifier: Apache-2.0
"""The files that a part reads, and disks that are full or read-only."""

import os
import re
import shutil
import subprocess

import pytest
from PIL import Image

from cluster_steps import OPTIONS, RETRY, work_folder
from tool import differing, files, miss

pytest_plugins = ("tool_fixtures", "cluster_step_fixtures")


@pytest.fixture
def trace(tmp_path):
    """trace(): words that go in front of a command, and a function that returns the calls with paths that it made."""
    if shutil.which("strace") is None:
        miss("needs strace")
    log = tmp_path / "calls"
    words = ("strace", "--follow-forks", "--decode-fds=path", "--trace=%file,%desc", "--output", log)
    done = subprocess.run([*words, "true"], capture_output=True, text=True)
    if done.returncode != 0:
        miss(f"tracing is not permitted here: {done.stderr.strip()}")
    return words, lambda: log.read_text().splitlines()


def test_a_part_lists_no_folder_of_the_source_and_looks_at_its_own_images_only(step, trace, source, whole, tmp_path):
    step("--prepare")
    words, calls = trace
    step("--part", "1/6", before=words)
    inside = [call for call in calls() if f"{source}/" in call or f'"{source}"' in call or f"<{source}>" in call]
    assert not [call for call in inside if "getdents" in call], "it lists no folder"
    images_of_part = {re.search(rf"{source}/(\S+?\.png)", call)[1] for call in inside if ".png" in call}
    samples = sum(split["samples"] for split in step("--status", "--json").json()["splits"].values())
    assert samples == 13 and len(images_of_part) in (2, 3), images_of_part
    plan = [call for call in calls() if "/plan." in call and "pread" in call]
    size = next(work_folder(tmp_path / "out").glob("plan.*")).stat().st_size
    read = sum(int(call.rsplit("= ", 1)[1]) for call in plan)
    assert 0 < read < size / 2, "a part reads its own slices of the plan, and the facts"
    for part in (0, 2, 3, 4, 5):
        step("--part", f"{part}/6")
    step("--finish")
    assert differing(files(tmp_path / "out"), whole) == []


@pytest.fixture
def masks(source, tmp_path):
    """A folder with a mask for each image of the source."""
    folder = tmp_path / "masks"
    for path in source.rglob("*.png"):
        mask = folder / path.relative_to(source)
        mask.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "bad.png":
            mask.write_bytes(b"not an image")
        else:
            Image.open(path).convert("L").save(mask.with_suffix(".PNG") if path.name == "05.png" else mask)
    return folder


def test_a_part_opens_its_own_masks_only_and_reads_tables_once(step, trace, source, masks, tool, tmp_path):
    paths = sorted(path.relative_to(source) for path in source.rglob("*.png"))
    labels, splits = tmp_path / "labels.csv", tmp_path / "splits.csv"
    labels.write_text("".join(f"{path},{number % 4}\n" for number, path in enumerate(paths)))
    splits.write_text("".join(f"{path},{'ab'[number % 2]}\n" for number, path in enumerate(paths)))
    options = ("--mask", masks, "--labels", labels, "--split-file", splits)
    step("--prepare", *options)
    words, calls = trace
    step("--part", "1/6", *options, before=words)
    inside = [call for call in calls() if str(masks) in call]
    assert inside and not [call for call in inside if "getdents" in call], "it lists no folder"
    opened = {found[1] for call in inside if (found := re.search(rf"{masks}/(\S+?\.(?:png|PNG))", call))}
    assert 1 < len(opened) < 6, opened  # of 13: those of a shard of each split
    for table in (labels, splits):
        reads = [call for call in calls() if f"<{table}>" in call and "read" in call]
        assert sum(int(call.rsplit("= ", 1)[1]) for call in reads) == table.stat().st_size
    for part in (0, 2, 3, 4, 5):
        step("--part", f"{part}/6", *options)
    masks.rename(tmp_path / "away")
    step("--finish", *options)
    late = step("--part", "1/6", *options)
    assert "already complete" in late.out
    (tmp_path / "away").rename(masks)
    tool.run("build", source, tmp_path / "whole", *OPTIONS, *options)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_masks_that_a_machine_does_not_see_are_worth_a_retry(step, source, masks, tool, tmp_path):
    step("--prepare", "--mask", masks)
    masks.rename(tmp_path / "away")
    said = step("--part", "0/1", "--mask", masks, expect=RETRY).err
    assert str(masks) in said
    (tmp_path / "away").rename(masks)
    step("--part", "0/1", "--mask", masks)
    step("--finish", "--mask", masks)
    tool.run("build", source, tmp_path / "whole", *OPTIONS, "--mask", masks)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_a_full_disk_ends_a_part_and_nothing_is_lost(tool, source, small_disk, tmp_path):
    disk = small_disk(300)
    options = ("--size", "64", "--shards", "6", "--jobs", "1", "--max-bad", "50%", "--quiet")
    tool.run("build", source, tmp_path / "whole", *options)
    # Enough at the time of the preparation; then something else takes the space.
    tool.run("build", source, disk / "out", *options, "--prepare")
    tool.run("build", source, disk / "out", *options, "--part", "0/2")
    used = sum(path.stat().st_blocks * 512 for path in disk.rglob("*") if path.is_file())
    (disk / "other").write_bytes(bytes(300 * 1024 - used - 24 * 1024))
    failed = tool.run("build", source, disk / "out", *options, "--part", "1/2", expect=RETRY)
    assert "No space left on device" in failed.err
    status = tool.run("build", source, disk / "out", "--status", "--json").json()
    assert status["missing_parts"] == "1" and status["shards_done"] >= 3
    (disk / "other").unlink()
    tool.run("build", source, disk / "out", *options, "--part", "1/2")
    tool.run("build", source, disk / "out", *options, "--finish")
    assert differing(files(disk / "out"), files(tmp_path / "whole")) == []


@pytest.fixture
def read_only(tmp_path):
    """read_only(folder): the folder at another path, where nothing can be changed."""
    mounted = []

    def mount(folder):
        place = tmp_path / "read-only"
        place.mkdir()
        done = subprocess.run(["mount", "--bind", folder, place], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        mounted.append(place)
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "compressed shards"])
def test_a_read_only_source_is_enough(tool, source, read_only, tmp_path, packed):
    given = source
    if packed:
        given = tmp_path / "packed"
        tool.run("pack", source, given, "--shards", "2", "--quiet")
        for tar in given.glob("*.tar"):
            subprocess.run(["gzip", tar], check=True)
    place = read_only(given)
    assert subprocess.run(["touch", place / "x"], capture_output=True).returncode != 0
    where = f"{place}/*.tar.gz" if packed else place
    tool.run("build", f"{given}/*.tar.gz" if packed else given, tmp_path / "whole", *OPTIONS)
    for words in (["--prepare"], ["--part", "0/2"], ["--part", "1/2"], ["--finish"]):
        tool.run("build", where, tmp_path / "out", *OPTIONS, *words)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_a_source_shard_that_was_touched_after_the_parts_is_named(tool, source, tmp_path):
    packed, out = tmp_path / "packed", tmp_path / "out"
    tool.run("pack", source, packed, "--shards", "5", "--quiet")
    tool.run("build", packed, tmp_path / "whole", *OPTIONS)
    tool.run("build", packed, out, *OPTIONS, "--part", "0/1")
    victim = packed / "train-000003.tar"
    times = victim.stat()
    victim.touch()
    assert f"'{victim}' has changed" in tool.refuse(packed, out, *OPTIONS, "--finish")
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    tool.run("build", packed, out, *OPTIONS, "--finish")
    assert differing(files(out), files(tmp_path / "whole")) == []
