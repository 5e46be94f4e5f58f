# SPDX-License-Identifier: Apache-2.0
"""The figures of the performance page come from the records in docs/benchmarks."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PLOT = "tests/bench/plot_throughput.py"
RECORDS = sorted((DOCS / "benchmarks").glob("*.json"))


def table_figures(text):
    """The numbers in the cells of tables, the first cell of each row aside."""
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", text, re.MULTILINE)
    return {number for row in rows for number in re.findall(r"\d[\d,]*(?:\.\d+)?", row)}


def test_the_performance_page_has_only_recorded_figures():
    pages = sorted((DOCS / "benchmarks").glob("*.md"))
    recorded = {number for page in pages for number in re.findall(r"\d[\d,]*(?:\.\d+)?", page.read_text())}
    shown = table_figures((DOCS / "performance.md").read_text())
    assert len(shown) > 50
    assert shown <= recorded


def test_every_table_of_the_performance_page_has_a_date_and_a_command():
    page = (DOCS / "performance.md").read_text()
    sections = [section for section in page.split("\n## ")[1:] if not section.startswith("What limits")]
    assert len(sections) == 7
    for section in sections:
        assert re.search(r"\d+ November\s+2026", section), section
        assert re.search(r"`(?:tests/bench|build/release/tests/bench)/\w+", section), section
        assert "](benchmarks/" in section


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_say_how_they_were_made_and_agree_with_their_page(path):
    record = json.loads(path.read_text())
    assert path.name.startswith(record["date"])
    assert {"cpu", "cores", "system"} <= set(record["machine"])
    assert record["command"].startswith("tests/bench/") and record["versions"]
    page = path.with_suffix(".md").read_text()
    for mode, rows in record["modes"].items():
        assert rows, mode
        for row in rows:
            figures = re.findall(rf"^\| {re.escape(row['loader'])} \| (.*) \|$", page, re.MULTILINE)
            assert any(f"{row['images_per_second']:,}" in figure.split(" | ") for figure in figures), row


def test_pages_of_records_are_listed():
    index = (DOCS / "benchmarks" / "index.md").read_text()
    pages = [page.name for page in (DOCS / "benchmarks").glob("20*.md")]
    assert pages and all(f"]({page})" in index for page in pages)


def chart_commands():
    text = (DOCS / "images" / "README.md").read_text().replace("\\\n", "")
    return [shlex.split(line) for line in text.splitlines() if line.startswith(PLOT)]


def test_the_stored_charts_are_those_of_the_stored_figures(tmp_path):
    pages = [ROOT / "README.md", DOCS / "index.md", DOCS / "performance.md"]
    used = {name for page in pages for name in re.findall(r"\]\((?:docs/)?images/(\w+\.svg)\)", page.read_text())}
    assert used == {Path(words[2]).name for words in chart_commands()}
    for _, record, chart, *options in chart_commands():
        out = tmp_path / Path(chart).name
        subprocess.run([sys.executable, ROOT / PLOT, ROOT / record, out, *options], check=True)
        assert out.read_bytes() == (ROOT / chart).read_bytes(), "draw it again: see docs/images/README.md"


def test_a_chart_of_figures_that_a_record_lacks_is_refused(tmp_path):
    command = [sys.executable, ROOT / PLOT, RECORDS[0], tmp_path / "x.svg", "--modes", "from 512x512"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "has no figures of from 512x512; it has sequential" in done.stderr


def test_a_new_record_is_drawn_with_the_share_of_other_programs(tmp_path):
    """As peers.py writes it: one run for all modes, and shares instead of a sentence."""
    record = json.loads((DOCS / "benchmarks" / "2026-11-17-python-loaders.json").read_text())
    record = {key: value for key, value in record.items() if key != "runs"} | {"rounds": 3}
    for row in [row for rows in record["modes"].values() for row in rows]:
        row["others"] = [0.04, None]
    (tmp_path / "record.json").write_text(json.dumps(record))
    subprocess.run([sys.executable, ROOT / PLOT, tmp_path / "record.json", tmp_path / "x.svg"], check=True)
    drawn = (tmp_path / "x.svg").read_text()
    assert drawn.count("Medians of 3 rounds") == 1 and "at most 4% of the processor time" in drawn
    assert "different runs" not in drawn
