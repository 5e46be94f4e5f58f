# SPDX-License-Identifier: Apache-2.0
"""Kills commands at a call that changes the disk, and checks what must hold afterwards."""

import json
import os
import random
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import tool as tools

WORK_FOLDER = ".precache"
MANIFESTS = ("dataset.json", "encoded.json")
# These describe all splits, so a command that replaces one split may write them twice.
SHARED_FILES = (*MANIFESTS, "skipped.tsv", "dataset_info.json", "features.json", "classes.txt")


@dataclass(frozen=True)
class Scenario:
    """A command to kill. Its arguments may contain {out} and the names of sources in braces."""

    name: str
    command: str
    before: tuple[str, ...] = ()  # commands that make what the command finds
    after: tuple[str, ...] = ()  # commands that finish what it is a part of
    again: str = ""  # the command that takes up what was killed; the same one if empty
    standard_input: str = ""  # the name of the source that comes through a pipe

    def __str__(self):
        return self.name


@dataclass(frozen=True)
class Kill:
    step: int  # counts the calls from 0
    when: str
    call: str

    def __str__(self):
        return f"killed {self.when} call {self.step}, {self.call}"


def all_kills(calls):
    """A kill after one call leaves the same files as a kill before the next, so only the last call needs both."""
    kills = [Kill(step, "before", call) for step, call in enumerate(calls)]
    kills += [Kill(step, "half", call) for step, call in enumerate(calls) if call.split()[0] in ("write", "pwrite")]
    return [*kills, Kill(len(calls) - 1, "after", calls[-1])]


def some_kills(scenario, calls, count):
    """A few kills, the same in every run."""
    return random.Random(scenario.name).sample(all_kills(calls), count)


def is_temporary(name):
    return ".tmp" in name


class Box:
    """A folder with an OUT, and a folder for temporary files."""

    def __init__(self, tool, interference, sources, folder):
        self.tool = tool
        self.interference = interference
        self.sources = sources
        self.folder = folder
        self.out = folder / "out"
        self.scratch = folder / "scratch"

    def copy_from(self, other):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        if other.out.exists():
            shutil.copytree(other.out, self.out, symlinks=True)

    def run(self, scenario, command, env=None):
        words = command.format(out=self.out, **self.sources).split()
        env = {"TMPDIR": str(self.scratch), **(env or {})}
        if words[1] != "-":
            return tools.finish(self.tool.start(*words, env=env))
        with subprocess.Popen(["cat", self.sources[scenario.standard_input]], stdout=subprocess.PIPE) as source:
            process = self.tool.start(*words, env=env, stdin=source.stdout)
            source.stdout.close()  # or `cat` would not end with the tool
            return tools.finish(process)

    def succeed(self, scenario, *commands):
        for command in commands:
            result = self.run(scenario, command)
            assert result.code == 0, f"exit code {result.code} of `{command}`: {result.err}"

    def files(self):
        return tools.files(self.out)

    def published(self):
        """The files of OUT that have final names."""
        return {
            name: data
            for name, data in self.files().items()
            if Path(name).parts[0] != WORK_FOLDER and not is_temporary(name)
        }


class Rehearsal:
    """One undisturbed run of a scenario: its first files, its last files and its calls."""

    def __init__(self, scenario, make_box):
        self.scenario = scenario
        self.start = make_box("start")
        self.start.folder.mkdir(parents=True)
        self.start.succeed(scenario, *scenario.before)
        self.initial = self.start.files()
        box = make_box("undisturbed")
        box.copy_from(self.start)
        log = self.start.folder / "calls"
        env = box.interference.environment(calls="changing", path=box.folder, log=log)
        result = box.run(scenario, scenario.command, env)
        assert result.code == 0, result.err
        self.calls = [line.replace(f"{box.folder}/", "") for line in log.read_text().splitlines()]
        box.succeed(scenario, *scenario.after)
        self.final = box.files()
        assert not [name for name in self.final if name.startswith(WORK_FOLDER) or is_temporary(name)]

    def check(self, kill, box):
        """Kills the command once, checks the files, runs it again and checks the result."""
        scenario = self.scenario
        box.copy_from(self.start)
        when = {"after": kill.step, "times": 1, "when": kill.when}
        result = box.run(scenario, scenario.command, box.interference.kill("changing", path=box.folder, **when))
        assert result.code == -signal.SIGKILL, f"exit code {result.code}: {result.err}"
        self.check_published(box)
        check_with_verify(box)
        if not (scenario.again and self.is_untouched(box)):
            box.succeed(scenario, scenario.again or scenario.command)
        else:  # it never began: the other command may refuse to touch what is there
            self.check_refusal(box)
        box.succeed(scenario, *scenario.after)
        assert tools.differing(box.files(), self.final) == []
        assert tools.files(box.scratch) == {}

    def is_untouched(self, box):
        return tools.differing(box.published(), self.initial) == []

    def check_refusal(self, box):
        result = box.run(self.scenario, self.scenario.again)
        assert result.code in (0, 2), result.err
        if result.code == 2:
            assert self.is_untouched(box)
            box.succeed(self.scenario, self.scenario.command)

    def check_published(self, box):
        """A file with a final name is a complete file of the old dataset or of the new one."""
        for name, data in box.published().items():
            if data in (self.initial.get(name, 0), self.final.get(name, 0)):
                continue
            assert name in SHARED_FILES, f"{name} is neither the old file nor the new one"
            assert data.endswith(b"\n"), f"{name} is cut"
            if name.endswith(".json"):
                json.loads(data)


def check_with_verify(box):
    """Files with final names are whole, and every file that a manifest lists exists, even if others are unfinished."""
    if not box.out.exists():
        return
    result = box.tool.run("verify", box.out, expect=None)
    assert result.code in (0, 2, 3), result.err + result.out
    finished = box.folder / "finished"
    shutil.copytree(box.out, finished, copy_function=os.link, ignore=shutil.ignore_patterns(WORK_FOLDER, "*.tmp*"))
    result = box.tool.run("verify", finished, expect=None)
    has_manifest = any((finished / name).exists() for name in MANIFESTS)
    assert result.code in ((0,) if has_manifest else (0, 2, 3)), result.err + result.out
