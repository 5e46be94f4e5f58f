# SPDX-License-Identifier: Apache-2.0
"""Fixtures around the tool: itself, disturbed system calls, and places to run it in."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import REPOSITORY
from tool import Interference, Tool


@pytest.fixture(scope="session")
def tool(precache):
    return Tool(precache)


@pytest.fixture(scope="session")
def interference(tool, tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("interference")
    library = folder / "fail_io.so"
    source = REPOSITORY / "tests" / "support" / "fail_io.c"
    options = [] if tool.is_sanitized() else ["-DFAIL_IO_MALLOC"]
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", *options, "-o", library, source, "-ldl"], check=True)
    return Interference(library, folder)


@pytest.fixture
def public_folder():
    """A folder that every user may enter; those of tmp_path are private."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def quick_folder(tmp_path):
    """A folder on a file system that syncs for free, if there is one: for tests with many runs."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(kib): a file system of this size, mounted at the path returned."""
    mounted = []

    def mount(kib):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", folder]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
