# SPDX-License-Identifier: Apache-2.0
"""The maps for maintainers match the tree."""

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
HACKING = ROOT / "docs" / "internals" / "hacking.md"
LIBRARIES = ("formats", "reader", "convert")  # whose paths the tests mirror


@pytest.fixture(scope="module")
def folders():
    """All folders that hold files of the repository, with those above them."""
    try:
        words = ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files"]
        listed = subprocess.run(words, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a clone: git does not list the files")
    paths = [PurePosixPath(line) for line in listed.stdout.splitlines()]
    return {str(parent) for path in paths for parent in path.parents} - {"."}


def mapped():
    return re.findall(r"^\| `([^`]+)/` \|", HACKING.read_text(), re.MULTILINE)


def needs_a_row(folder):
    parts = folder.split("/")
    if parts[0].startswith(".") or "include" in parts[:-1]:
        return False
    if parts[0] == "tests":
        return len(parts) == 2 and parts[1] not in LIBRARIES
    return True


def holds_files(folder):
    return any(child.is_file() for child in (ROOT / folder).iterdir()) or folder.endswith("/include")


def test_the_map_names_every_folder(folders):
    rows = mapped()
    assert len(rows) == len(set(rows))
    missing = {folder for folder in folders if needs_a_row(folder) and holds_files(folder)} - set(rows)
    assert not missing, f"add a row with the purpose of these to the map in {HACKING}"
    assert set(rows) <= folders, f"the map in {HACKING} has folders that are gone"


def test_tests_have_the_paths_of_their_sources(folders):
    mirrored = {folder for folder in folders if folder.startswith(tuple(f"tests/{name}/" for name in LIBRARIES))}
    strays = {folder for folder in mirrored if folder.removeprefix("tests/") not in folders}
    assert not strays, "no sources have these paths"


def test_each_test_names_its_source():
    """By its path, or in the table of tests/README.md."""
    table = re.findall(r"^\| `([\w/]+_test)` \| (.+) \|$", (ROOT / "tests" / "README.md").read_text(), re.MULTILINE)
    tests = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*_test.cpp")]
    sources = {str(test.with_suffix("")): str(test).removesuffix("_test.cpp") for test in tests}
    strays = {test for test, source in sources.items() if not list(ROOT.glob(f"{source}.?pp"))}
    strays = {test for test in strays if not test.startswith("support/")}
    assert strays == {test for test, _ in table}
    named = [source for _, cell in table for source in re.findall("`([^`]+)`", cell)]
    assert [source for source in named if not (ROOT / source).is_file()] == []


def test_lines_fit():
    pages = [*HACKING.parent.glob("*.md"), ROOT / "SECURITY.md", ROOT / "tests" / "README.md"]
    long = [
        f"{page.name}:{number}"
        for page in pages
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > 100 and not line.startswith("|")
    ]
    assert not long


def test_the_walks_name_files_that_exist():
    named = re.findall(r"`((?:formats|reader|convert|cli)/[\w/]+\.\w+)`", HACKING.read_text())
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_table_of_tests_names_files_that_exist():
    named = re.findall(r"(?<![\w/])((?:package/)?test_\w+\.py)", (ROOT / "tests" / "README.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "tests" / "python" / name).is_file()] == []
