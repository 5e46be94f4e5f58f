# SPDX-License-Identifier: Apache-2.0
"""The figures of the performance page come from the records in docs/benchmarks."""

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
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
