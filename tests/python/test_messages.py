# SPDX-License-Identifier: Apache-2.0
"""Libraries name fields in backquotes; only the command line names flags. A grep over the string literals of the sources."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# A comment, a character, a raw string or a string; only the last is kept.
TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])+'|R"(\w*)\(.*?\)\1"|"((?:\\.|[^"\\\n])*)\"""", re.DOTALL)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*|\b(?:SOURCE|OUT|SHARDS|PATHS)\b")


def literals(text):
    """Yields (line, literal) for C++ strings, but not for #include lines."""
    for found in TOKENS.finditer(text):
        line_start = text.rfind("\n", 0, found.start()) + 1
        if found[2] is not None and not text.startswith("#include", line_start):
            yield text.count("\n", 0, found.start()) + 1, found[2]


def flags_in(text, *, starts_programs=False):
    """With `starts_programs`, a literal that is a flag and nothing else is an argument, not a message."""
    found = [(line, literal) for line, literal in literals(text) if not (starts_programs and FLAG.fullmatch(literal))]
    return [(line, words) for line, literal in found if (words := FLAG.findall(literal))]


@pytest.mark.parametrize("folder", ["formats", "reader", "convert"])
def test_no_message_of_a_library_names_a_flag(folder):
    found = []
    for path in sorted((REPOSITORY / folder).rglob("*")):
        if path.suffix in (".cpp", ".hpp", ".cu"):
            name = path.relative_to(REPOSITORY)
            flags = flags_in(path.read_text(), starts_programs="helper" in name.parts)  # which is the command itself
            found += [f"{name}:{line}: {words}" for line, words in flags]
    assert not found, "name the field in backquotes, as in `shard_size`:\n" + "\n".join(found)


def public_fields():
    """The fields and parameters that public headers declare, and the options of the command, spelt as fields."""
    known = {"{}"}
    for header in REPOSITORY.glob("*/include/precache/**/*.hpp"):
        code = re.sub(r"//.*", "", header.read_text())
        known.update(re.findall(r"[\w>&*\]] ([a-z][a-z0-9_]*)(?= = |;|\{|,|\))", code))
    for path in (REPOSITORY / "cli").glob("*.cpp"):
        known.update(flag.replace("-", "_") for flag in re.findall(r'"--([a-z][a-z-]+)"', path.read_text()))
    return known


@pytest.mark.parametrize("folder", ["formats", "reader", "convert"])
def test_words_in_backquotes_are_fields(folder):
    """The command line prints such a word as a flag, and Python as an argument: `precache` would become --precache."""
    known = public_fields()
    found = []
    for path in sorted((REPOSITORY / folder).rglob("*")):
        if path.suffix in (".cpp", ".hpp", ".cu"):
            for line, literal in literals(path.read_text()):
                words = set(re.findall(r"`([^`]+)`", literal)) - known
                found += [f"{path.relative_to(REPOSITORY)}:{line}: {word}" for word in words]
    assert not found, "backquotes are for fields alone:\n" + "\n".join(found)


def test_the_known_fields_are_those_of_options():
    known = public_fields()
    assert {
        "shard_size_bytes",
        "label_key",
        "batch_size",
        "prepare",
        "device_path",
    } <= known and "precache" not in known


@pytest.mark.parametrize(
    "text, lines",
    [
        ('throw InvalidArgument("use --shard-size");', [1]),
        ('// use --shard-size\nf("`shard_size` is 0"); /* "--x" */ g(\'"\', "a--b", "-- no", "OUTER");', []),
        ('#include "a--b"\nf("\\"--x");\nf("SOURCE is OUT");', [2, 3]),
    ],
)
def test_the_grep_itself(text, lines):
    assert [line for line, _ in flags_in(text)] == lines
