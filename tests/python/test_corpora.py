# SPDX-License-Identifier: Apache-2.0
"""Every file of the tar, TFRecord and HDF5 corpora has the outcome that tests/data/corpora_outcomes.tsv says.

Each command has a column there: what it ends with (the exit codes; `reader`: the number of samples, or the kinds of
error), and a pattern of what it says. The last column tells what another tool makes of the file: rows are
judged by that, not by what we do.
"""

import csv
import json
import re
import resource
import subprocess

import pytest

from conftest import REPOSITORY

pytest_plugins = ("tool_fixtures",)

TABLE = REPOSITORY / "tests" / "data" / "corpora_outcomes.tsv"
KINDS = ("tar", "tfrecord", "hdf5")
TIMEOUT_SECONDS = 90  # more than the minute that a scan of HDF5 may take; files of the corpora take milliseconds
MEMORY_BYTES = 4 << 30  # of addresses; the largest file of the corpora has some MB

ROWS = list(csv.DictReader(TABLE.open(newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))


def limited(tool):
    """Limits the memory of a process, except under a sanitizer, which needs terabytes of addresses."""
    if tool.is_sanitized():
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@pytest.fixture(scope="module")
def run_limited(tool):
    def run(*words, cwd):
        done = subprocess.run(words, cwd=cwd, capture_output=True, timeout=TIMEOUT_SECONDS, preexec_fn=limited(tool))
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    return run


def check(expected, outcome, said):
    """`expected` is "OUTCOME|OUTCOME... PATTERN"."""
    outcomes, pattern = expected.split(" ", 1)
    assert outcome in outcomes.split("|"), said
    assert re.search(pattern, said), f"{pattern!r} does not match: {said}"


def test_every_file_has_a_row(corpora):
    files = {str(path.relative_to(corpora)) for kind in KINDS for path in (corpora / kind).rglob("*") if path.is_file()}
    files -= {f"{kind}/MANIFEST.tsv" for kind in KINDS}
    rows = [row["file"] for row in ROWS]
    assert len(rows) == len(set(rows))
    assert files == set(rows)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_verify(row, corpora, tool, run_limited):
    code, out, err = run_limited(tool.path, "verify", "--quiet", row["file"], cwd=corpora)
    assert err == ""
    check(row["verify"], str(code), out)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_reader(row, corpora, tool, run_limited):
    program = tool.path.parent / "tests" / "read_dataset"
    code, out, err = run_limited(program, "--helper", tool.path, row["file"], cwd=corpora)
    assert code in (0, 1) and err == "", err
    result = json.loads(out)
    if code == 1:
        check(row["reader"], result["error"], result["message"])
    else:
        check(row["reader"], str(result["samples"]), result.get("spec") or result["unsupported_reason"])
        assert len(result.get("items", [])) == result["samples"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_build(row, corpora, tool, run_limited, tmp_path):
    out = tmp_path / "out"
    options = ("--quiet", "--json", "--size", "16", "--labels", "none", "--max-bad", "100%")
    code, summary, err = run_limited(tool.path, "build", row["file"], out, *options, cwd=corpora)
    if code == 0:
        result = json.loads(summary)
        check(row["build"], "0", f"{result['samples']} samples, {result['skipped']} skipped")
    else:
        assert err.startswith("precache: ") and not (out / "dataset.json").exists()
        check(row["build"], str(code), err)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_inspect(row, corpora, tool, run_limited):
    code, out, err = run_limited(tool.path, "inspect", "--quiet", row["file"], cwd=corpora)
    assert err == ""
    check(row["inspect"], str(code), " ".join(out.split()))  # lines are folded
