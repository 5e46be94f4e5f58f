# SPDX-License-Identifier: Apache-2.0
"""The files that a part reads, and disks that are full or read-only."""

import re
import shutil
import subprocess

import pytest

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
