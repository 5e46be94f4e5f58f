#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell sessions in the documents: finds them, runs them, and writes new output into the pages.

    tests/python/doc_sessions.py [PAGE...]    default: all pages; read the diff afterwards

A session is a block ```console whose commands start with "$ ". A command may continue on lines after
a backslash. Lines of output that are longer than 100 columns are shown folded. The blocks of a page
with the comment <!-- one session --> share a folder; others start with that of the quickstart.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("PRECACHE") or ROOT / "build" / "release" / "precache")
DRAW = ROOT / "build" / "release" / "samples" / "draw_dataset"
PHOTOS = ROOT.parent / "shared" / "corpora" / "folders" / "hymenoptera"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
WIDTH = 100


def sessions(document):
    """The sessions of a page: each a list of (command, output)."""
    text = document.read_text()
    found = [COMMAND.findall(block) for block in BLOCK.findall(text)]
    return [[step for block in found for step in block]] if "<!-- one session -->" in text else found


def needs_photos(session):
    return any(re.search(r"\bphotos\b", command) for command, _ in session)


def make_quickstart(folder):
    """The images and shards that samples/quickstart.sh leaves."""
    subprocess.run([DRAW, folder / "images"], check=True, capture_output=True)
    subprocess.run([TOOL, "build", folder / "images", folder / "shards", "--quiet"], check=True, capture_output=True)


def make_photos(folder):
    """The photos of the tutorial."""
    shutil.copytree(PHOTOS / "train", folder / "photos")
    shutil.copytree(PHOTOS / "val", folder / "photos-val")


def replay(commands, folder):
    """What a terminal would show of each command, except progress; they share a shell, so that $? works."""
    end = "-- end of a command --"
    script = "".join(f"{command}\nstatus=$?; echo '{end}'; (exit $status)\n" for command in commands)
    tool = folder / "bin" / "precache"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\ncase $1 in build|convert|inspect|verify) set -- "$@" --quiet;; esac\nexec {TOOL} "$@"\n'
    )
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    result = subprocess.run(
        ["bash", "-c", script], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    return [folded(output) for output in result.stdout.split(end + "\n")[:-1]]


def folded(output):
    lines = []
    for line in output.splitlines():
        label = re.match(r"\S+ {2,}(?=\S)", line)
        indent = " " * (label.end() if label else len(line) - len(line.lstrip()) + 2)
        fits = len(line) <= WIDTH
        lines += [line] if fits else textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return "".join(line + "\n" for line in lines)


def without_chance(text):
    """Neither times nor rates nor the room on this disk."""
    text = re.sub(r" +[\d,.]+(?= images/s| GB/s|% of the time)", " #", text)
    return re.sub(r", [^,]* free$", "", re.sub(r"^time .*$", "time", text, flags=re.MULTILINE), flags=re.MULTILINE)


def renewed(session, quickstart):
    """A session with the output that its commands have now; times and rates stay as they were."""
    if needs_photos(session) and not PHOTOS.is_dir():
        return session
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(quickstart, folder / "build" / "quickstart")
        if needs_photos(session):
            make_photos(folder)
        outputs = replay([command for command, _ in session], folder)
    return [
        (command, shown if without_chance(shown) == without_chance(output) else output)
        for (command, shown), output in zip(session, outputs, strict=True)
    ]


def main(pages):
    with tempfile.TemporaryDirectory() as name:
        make_quickstart(Path(name))
        for page in [Path(page) for page in pages] or DOCUMENTS:
            steps = iter([step for session in sessions(page) for step in renewed(session, Path(name))])
            text = page.read_text()
            new = BLOCK.sub(
                lambda block: "```console\n" + COMMAND.sub(lambda _: "$ {}\n{}".format(*next(steps)), block[1]) + "```",
                text,
            )
            if new != text:
                page.write_text(new)
                print(f"changed: {page}")


if __name__ == "__main__":
    main(sys.argv[1:])
