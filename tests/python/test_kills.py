# SPDX-License-Identifier: Apache-2.0
"""Kills at calls that change the disk: no file is torn, and the same command then ends with the same bytes.

A few calls of each command by default; all of them with `pytest --all-kills` (docs/internals/hacking.md)."""

import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

import images
from kills import Box, Rehearsal, Scenario, all_kills, some_kills
from shards import FORMATS

pytest_plugins = ("tool_fixtures",)

KILLS = 2  # of each scenario
IMAGES = 6

JOB = "--quiet --jobs 1"
MAKE = f"{JOB} --size 8 --shards 2 --max-bad 50%"
BUILD = "build {images} {out} " + MAKE
BUILD_OTHER = "build {others} {out} --split val " + MAKE
TWO_SPLITS = BUILD + " --val-fraction 0.5"
CONVERT = "convert {dataset} {out} " + JOB
CONVERT_TWO = "convert {two_splits} {out} " + JOB
PACK = "pack {images} {out} --shards 2 " + JOB
REPLACE = " --seed 1 --overwrite"
RESUME = " --seed 1"
INDEXES = {"tar": "dali,wids", "tfrecord": "dali,tfds", "hdf5": "vds"}


def each_format(name, command, **others):
    """The scenario in the three formats; {format} and {index} may be in its commands."""

    for file_format in FORMATS:

        def fill(text):
            return text.replace("{format}", file_format).replace("{index}", INDEXES[file_format])

        filled = {
            key: fill(value) if isinstance(value, str) else tuple(map(fill, value)) for key, value in others.items()
        }
        yield Scenario(f"{name}, {file_format}", fill(command), **filled)


FORMAT = " --format {format}"
INDEXED = FORMAT + " --index {index}"

SCENARIOS = [
    *each_format("build", BUILD + FORMAT),
    *each_format("build with indexes", BUILD + INDEXED),
    *each_format("second split", BUILD_OTHER + INDEXED, before=[BUILD + INDEXED]),
    *each_format("overwrite", BUILD + INDEXED + REPLACE, before=[BUILD + INDEXED]),
    *each_format(
        "overwrite, resumed without it",
        BUILD + INDEXED + REPLACE,
        before=[BUILD + INDEXED],
        again=BUILD + INDEXED + RESUME,
    ),
    Scenario("overwrite one split of two", BUILD_OTHER + REPLACE, before=(BUILD, BUILD_OTHER)),
    Scenario("overwrite with another format", BUILD + " --format hdf5 --overwrite", before=(BUILD,)),
    Scenario("prepare", BUILD + " --prepare", after=(BUILD + " --part 0/1", BUILD + " --finish")),
    Scenario(
        "prepare a share",
        BUILD + " --prepare 0/2",
        after=(BUILD + " --prepare 1/2", BUILD + " --prepare", BUILD + " --part 0/1", BUILD + " --finish"),
    ),
    Scenario("prepared part", BUILD + " --part 0/1", before=(BUILD + " --prepare",), after=(BUILD + " --finish",)),
    Scenario("first part", BUILD + " --part 0/2", after=(BUILD + " --part 1/2", BUILD + " --finish")),
    Scenario("second part", BUILD + " --part 1/2", before=(BUILD + " --part 0/2",), after=(BUILD + " --finish",)),
    *each_format(
        "finish",
        BUILD + INDEXED + " --finish",
        before=[BUILD + FORMAT + " --part 0/2", BUILD + FORMAT + " --part 1/2"],
    ),
    *each_format("two splits of one source", TWO_SPLITS + INDEXED),
    Scenario("two splits, overwrite", TWO_SPLITS + REPLACE, before=(TWO_SPLITS,)),
    Scenario(
        "two splits, overwrite, resumed without it",
        TWO_SPLITS + REPLACE,
        before=(TWO_SPLITS,),
        again=TWO_SPLITS + RESUME,
    ),
    Scenario(
        "two splits, first part",
        TWO_SPLITS + " --part 0/2",
        after=(TWO_SPLITS + " --part 1/2", TWO_SPLITS + " --finish"),
    ),
    Scenario("compressed source", "build {tgz} {out} " + MAKE),
    Scenario("source in a pipe", "build - {out} " + MAKE, standard_input="tgz"),
    *each_format("convert", CONVERT + FORMAT),
    Scenario("convert to another order", CONVERT + " --seed 1 --shards 3 --dtype float16"),
    Scenario("convert two splits", CONVERT_TWO + " --format hdf5"),
    Scenario("convert two splits, overwrite", CONVERT_TWO + " --overwrite", before=(BUILD, BUILD_OTHER)),
    Scenario(
        "convert two splits, overwrite, resumed without it",
        CONVERT_TWO + " --overwrite",
        before=(BUILD, BUILD_OTHER),
        again=CONVERT_TWO,
    ),
    *each_format("pack", PACK + FORMAT),
    Scenario("pack, overwrite", PACK + REPLACE, before=(PACK,)),
    Scenario("pack, overwrite, resumed without it", PACK + REPLACE, before=(PACK,), again=PACK + RESUME),
    Scenario("pack a second split", PACK + " --split val", before=(PACK,)),
    Scenario("pack a pipe", PACK.replace("{images}", "-"), standard_input="tgz"),
    *each_format("index", "index {out}", before=[BUILD + FORMAT, BUILD_OTHER + FORMAT]),
]


def draw(folder, first):
    for number in range(first, first + IMAGES):
        images.draw_unique(folder / f"class{number % 2}" / f"{number:02}.png", number)
    (folder / "class0" / "bad.png").write_bytes(b"")


@pytest.fixture(scope="module")
def sources(tool, tmp_path_factory):
    """The inputs of the scenarios, by name."""
    folder = tmp_path_factory.mktemp("sources")
    draw(folder / "images", 0)
    draw(folder / "others", IMAGES)
    with tarfile.open(folder / "tgz", "w:gz") as archive:
        archive.add(folder / "images", ".")
    made = {name: folder / name for name in ("images", "others", "tgz", "dataset", "two_splits")}
    for out, commands in {"dataset": [BUILD], "two_splits": [BUILD + RESUME, BUILD_OTHER + RESUME]}.items():
        for command in commands:
            tool.run(*command.format(**{**made, "out": made[out]}).split())
    return made


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_kill_at_a_call_that_changes_the_disk_loses_nothing(
    tool, interference, sources, quick_folder, request, scenario
):
    rehearsal = Rehearsal(scenario, lambda name: Box(tool, interference, sources, quick_folder / name))
    every = request.config.getoption("all_kills")
    chosen = all_kills(rehearsal.calls) if every else some_kills(scenario, rehearsal.calls, KILLS)
    print(f"{scenario}: {len(chosen)} kills at {len(rehearsal.calls)} calls")  # shown by pytest -s
    numbers = count()
    failures = []

    def check(kill):
        box = Box(tool, interference, sources, quick_folder / f"killed{next(numbers)}")
        try:
            rehearsal.check(kill, box)
        except AssertionError as error:
            failures.append(f"{kill}: {error}")

    with ThreadPoolExecutor(os.cpu_count()) as workers:
        list(workers.map(check, chosen))
    assert not failures, f"{len(failures)} of {len(chosen)} kills:\n" + "\n".join(failures[:20])
