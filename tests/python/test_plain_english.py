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
        "augmentations of your own",
        "a class that is none",
        "`labels` and `label_key` exclude each other",
        "the rate of late",
        "the request makes no sense",
        "def test_an_empty_word_is_no_file(tool):",
        "What a file is, its content tells.",
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
        "const bool is_not_empty = !text.empty();",
        "It says what is a sample, its image and its label.",
    ],
)
def test_plain_sentences_pass(line):
    assert not list(plain_english.phrases([line]))


@pytest.mark.parametrize(
    "lines",
    [
        ["/// Reads shards of", "/// others."],
        ['"the build goes "', '    "on without it"'],
        ["A paragraph whose file is", "no shard."],
    ],
)
def test_a_phrase_is_found_across_a_line_break(lines):
    assert [number for number, _ in plain_english.phrases(lines, is_document=True)] == [1]


def test_paragraphs_and_list_items_are_apart():
    assert not list(plain_english.phrases(["It goes", "", "on"], is_document=True))
    assert not list(plain_english.phrases(["It goes", "- on"], is_document=True))


@pytest.mark.parametrize(
    "code",
    [
        'throw InvalidArgument("a batch size of 0");',
        'throw InvalidArgument(fmt::format("`size` is {}", size));',
        'throw CorruptData(path, offset, fmt::format("a record of {} "\n"bytes", size));',
        'raise TypeError(f"{name} is {value!r}")',
    ],
)
def test_messages_without_a_verb_are_found(code):
    assert list(plain_english.messages(code.split("\n")))


@pytest.mark.parametrize(
    "code",
    [
        'throw InvalidArgument("`batch_size` must be at least 1, got 0");',
        'throw CorruptData(path, begin(1), fmt::format("the record has {} bytes, the manifest says {}", a, b));',
        "throw InvalidArgument(fmt::format(\"'{}' line {}: {}\", path, line, reason));",
        'throw IoError("cannot open", path, errno);',
    ],
)
def test_messages_with_a_verb_pass(code):
    assert not list(plain_english.messages([code]))


def test_long_lines_and_paragraphs_are_found():
    paragraph = ["one two three four five six seven eight nine ten"] * 12
    assert [number for number, _ in plain_english.shape(["# Title", "", *paragraph])] == [3]
    assert not list(plain_english.shape(["```", *paragraph, "```"]))
    assert not list(plain_english.shape(["- " + line for line in paragraph]))
    assert list(plain_english.shape(["x" * 101]))
