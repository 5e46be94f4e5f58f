#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds phrases that do not read as plain English, and documents that are hard to scan.

    tests/plain_english.py [PATH...]    default: all files that git tracks

Prints `file:line: what was found: what to write instead` and exits with 1 if it found anything.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

CODE = {".c", ".cmake", ".cpp", ".cu", ".cuh", ".hpp", ".py", ".sh", ".toml", ".yaml", ".yml"}
PROSE = {".md", ".txt", ".ipynb"}
NOT_OURS = ("LICENSE", "tests/data/", "tests/plain_english.py", "tests/python/test_plain_english.py")
PICTURE = re.compile(r"[A-Za-z0-9+/=]{80,}")  # in notebooks
MOST_COLUMNS = 100
MOST_WORDS = 110

COMMENT = r"^\s*(?://[/!]?<?|#|\*|\"\"\")\s*"
PHRASES = [
    (
        r"(?<!\bthere )\b(?:is|are|was|were) no\b"
        r"(?! (?:longer|more|less|fewer|other|better|worse|later|earlier|larger|smaller|such)\b)",
        "'is not a …', 'has no …' or 'there is no …'",
    ),
    (r"\b(?:has|have) not (?:a|an|any|the|one|two|three)\b", "'does not have …' or 'has no …'"),
    (r"\bof (?:ours|others|theirs|yours|somebody|someone|nobody)\b", "'precache …' or 'third-party …'"),
    (r"\bof (?:its|their) own\b", "'its own …'"),
    (r"\bbesides?\b", "'next to'"),
    (r"(?<!fall )(?<!falls )(?<!left )(?<!leave )(?<!leaves )\bbehind\b", "'after'"),
    (r"\b(?:whoever|somebody|nobody|he|him|his)\b", "name the actor: 'the caller', 'the reader'"),
    (r"\b(?:go|goes|going|gone|went) on\b", "'continues', 'resumes'"),
    (r"\banew\b", "'again', 'restarts'"),
    (r"\bmany an?\b", "'many'"),
    (r"\bfor ever\b", "'forever'"),
    (r"\b(?:go|goes|gone|went) astray\b", "say what failed"),
    (r"\b(?:mend|mends|mended|mending)\b", "'fix'"),
    (r", also (?:when|if|where|after|before|of|in|with|for|by|at|on)\b", "'even when', 'including'"),
    (r"\bis there, and\b", "'already exists'"),
    (r"\b(?:is|are) (?:there )?already there\b", "'already exists'"),
    (r"\b(?:dissect\w*|anatomy|tamed|stumbles?)\b", "a plain name"),
    (COMMENT + r"What\b(?![^?]*\?)", "start with the noun or the verb, not with 'What'"),
]
PATTERNS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PHRASES]


def phrases(lines):
    """Yields (line number, finding) for each phrase to avoid."""
    for number, line in enumerate(lines, 1):
        for pattern, advice in PATTERNS:
            if found := pattern.search(line):
                yield number, f"'{found[0].strip()}': write {advice}"


def shape(lines):
    """Yields (line number, finding) for lines and paragraphs of a document that are too long."""
    in_code = False
    words = first = 0
    for number, line in enumerate([*lines, ""], 1):
        if len(line) > MOST_COLUMNS:
            yield number, f"{len(line)} columns: wrap at {MOST_COLUMNS}"
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        if in_code or not line.strip() or re.match(r"\s*(?:[-*|#>`]|\d+\.)", line):
            if words > MOST_WORDS:
                yield first, f"a paragraph of {words} words: at most {MOST_WORDS}"
            words, first = (
                (0, 0) if in_code or line.lstrip()[:1] in ("", "|", "#", "`") else (len(line.split()), number)
            )
        else:
            first = first or number
            words += len(line.split())


def tracked():
    if shutil.which("git"):
        listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode == 0:
            return [Path(name) for name in listed.stdout.split("\0") if name]
    return [path for path in Path().rglob("*") if path.is_file() and path.parts[0] not in ("build", ".git")]


def chosen(arguments):
    for path in tracked():
        name = path.as_posix()
        if name.startswith(NOT_OURS) or not path.is_file():
            continue
        if path.suffix not in CODE | PROSE:
            continue
        if not arguments or any(name == a.rstrip("/") or name.startswith(a.rstrip("/") + "/") for a in arguments):
            yield path


def main(arguments):
    findings = 0
    for path in chosen(arguments):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        lines = ["" if PICTURE.search(line) else line for line in lines]
        found = list(phrases(lines))
        if path.suffix == ".md":
            found += shape(lines)
        for number, finding in sorted(found):
            print(f"{path}:{number}: {finding}")
        findings += len(found)
    print(f"{findings} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
