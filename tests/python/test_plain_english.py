# SPDX-License-Identifier: Apache-2.0
"""tests/plain_english.py finds what it is there for, and nothing in plain sentences."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import plain_english


@pytest.mark.parametrize(
    "line",
    [
        "'epoch' is no count",
        "the shape has not three extents",
        "shards of ours",
        "a process of its own",
        "the file beside it",
        "the bytes behind the header",
        "tells whoever waits for it",
        "the build goes on",
        "begins its epoch anew",
        "'x' is there, and it is something else",
        "/// What every job is asked.",
        "# What a row holds.",
    ],
)
def test_foreign_phrases_are_found(line):
    assert list(plain_english.phrases(["plain", line]))[0][0] == 2


@pytest.mark.parametrize(
    "line",
    [
        "There is no index, because there is no need for one.",
        "the file is no longer mapped",
        "progress events are dropped if the listener falls behind",
        "## What is in a shard?",
        "# What is in the shard?",
        "the next batch continues after the last one",
    ],
)
def test_plain_sentences_pass(line):
    assert not list(plain_english.phrases([line]))


def test_long_lines_and_paragraphs_are_found():
    paragraph = ["one two three four five six seven eight nine ten"] * 12
    assert [number for number, _ in plain_english.shape(["# Title", "", *paragraph])] == [3]
    assert not list(plain_english.shape(["```", *paragraph, "```"]))
    assert not list(plain_english.shape(["- " + line for line in paragraph]))
    assert list(plain_english.shape(["x" * 101]))
