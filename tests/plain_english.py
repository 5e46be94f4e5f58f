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
    (r"\bof (?:its|their|your|our) own\b", "'its own …', 'your own …'"),
    (r"\bthat (?:is|are) none\b", "'that is not a …', 'that does not exist'"),
    (r"\bexclude each other\b(?! as shared)", "'cannot be combined with'"),
    (r"\bof late\b", "'recent', 'most recent'"),
    (r"\bmakes? no sense\b", "say what is wrong"),
    (r"\bbesides?\b", "'next to'"),
    (r"(?<!fall )(?<!falls )(?<!left )(?<!leave )(?<!leaves )(?<!batches )\bbehind\b", "'after'"),
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
    (r"(?:^|[.:!?] )(?-i:What)\b[^.?!]*, its?\b", "start with the subject: 'Its content tells what a file is.'"),
]
PATTERNS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PHRASES]


# What separates the text of two lines: the end of a string literal, and the start of a comment or of another literal.
END = re.compile(r'\s*(?<!^)"?\s*$')
START = re.compile(r"^\s*(?://[/!]?<?|#+(?=\s)|\*(?=\s)|f?r?\"|[-*|>](?=\s))?\s*")
NEW_BLOCK = re.compile(r"\s*(?:[-*|#>`~]|\d+\.|$)")


def phrases(lines, is_document=False):
    """Yields (line number, finding) for each phrase to avoid, even if it continues on the next line.

    Names such as those of tests are read as words.
    """
    for number, line in enumerate(lines, 1):
        text = END.sub("", line.replace("_", " "))
        following = lines[number].replace("_", " ") if number < len(lines) else ""
        joined = text + " " + START.sub("", following)
        if not line.strip() or not following.strip() or (is_document and NEW_BLOCK.match(following)):
            joined = text
        for pattern, advice in PATTERNS:
            found = pattern.search(joined)
            if found and found.start() <= len(text):
                yield number, f"'{found[0].strip()}': write {advice}"


# A verb in one of the forms that messages use. Auxiliaries first.
VERBS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|must|can|cannot|could|will|would|may|"
    r"needs?|runs?|ran|reads?|lists?|names|says?|gives?|contains?|holds?|ends?|stopped|takes?|took|fits?|changed|"
    r"failed|fails|crashed|returned|disagree|belongs?|makes?|mix|differs?|refused|exists?|follows?|leaves|finds|looks?|"
    r"places|refers|defines|lies|uses?|begins?|counts?|wants?|ignore|appears?|waits|applies|exceeds|"
    r"overlap|ended|describes|sets|got)\b"
)
THROWN = re.compile(r"\b(?:InvalidArgument|CorruptData|Unsupported|IoError|DeviceError|TypeError|IndexError)[({]")
# What may be before the text in the arguments: the path and the offset.
MESSAGE = re.compile(r"""(?:[^"();]|\([^()"]*\))*?(?:fmt::format\(\s*)?f?((?:"(?:\\.|[^"\\\n])*"\s*)+)""")


def messages(lines):
    """Yields (line number, finding) for messages of errors that have no verb, or say what was found but not what is wanted."""
    text = "\n".join(lines)
    for thrown in THROWN.finditer(text):
        found = MESSAGE.match(text, thrown.end())
        message = re.sub(r'"\s*"', "", found[1]).strip().strip('"') if found else ""
        number = text.count("\n", 0, thrown.start()) + 1
        words = re.sub(r"\{[^}]*\}", "", message)
        has_words = len(re.findall(r"[A-Za-z]{3,}", words)) >= 2 and not message.endswith(
            ": {}"
        )  # which may have the verb
        if has_words and not VERBS.search(words):
            yield number, f"'{message}' has no verb: write '… must be …, got …'"
        if re.fullmatch(r"[`\w{}]+ (?:is|are) \{[^}]*\}", message):
            yield number, f"'{message}' does not say what is wanted: write '… must be …, got …'"


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
        found = list(phrases(lines, path.suffix in PROSE))
        if path.suffix in (".cpp", ".py") and path.parts[0] in ("cli", "convert", "formats", "reader"):
            found += messages(lines)
        if path.suffix == ".md":
            found += shape(lines)
        for number, finding in sorted(found):
            print(f"{path}:{number}: {finding}")
        findings += len(found)
    print(f"{findings} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
