# SPDX-License-Identifier: Apache-2.0
"""The command line: what it accepts, what it prints where, and its exit codes."""

import contextlib
import io
import json
import os
import re
import tarfile
import time
from pathlib import Path

import pytest
from PIL import Image

import images
from reference import SMALL
from shards import FORMATS, Dataset
from terminal import Terminal, read_until
from tool import differing, files, finish

pytest_plugins = ("tool_fixtures",)

COUNT = 20


@pytest.fixture(autouse=True)
def terminal_with_colours(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(COUNT):
        images.draw_unique(folder / f"class{number % 4}" / f"{number:02}.png", number)
    (folder / "class0" / "notes.txt").write_text("no image")
    return folder


# --- help and version -------------------------------------------------------------------------------------------------


def test_the_version_goes_to_stdout(tool):
    result = tool.run("--version")
    assert re.fullmatch(r"precache \d+\.\d+\.\d+\S*\n", result.out)
    assert result.err == ""


def test_the_help_lists_the_commands(tool):
    for words in (("--help",), ("-h",)):
        result = tool.run(*words)
        assert "build" in result.out and result.err == ""


# Every option with its values and, in brackets, its default.
HELP = {
    "--format": "tar|tfrecord|hdf5 [tar]",
    "--size": "N|HxW [224]",
    "--fit": "crop|stretch|pad [crop]",
    "--no-size-column": "",
    "--resize": "N [the size]",
    "--filter": "nearest|box|bilinear|bicubic|lanczos [bilinear]",
    "--pad-value": "N [0]",
    "--dtype": "uint8|float16|bfloat16|float32 [uint8]",
    "--normalize": "imagenet|MEAN/STD",
    "--layout": "chw|hwc [chw]",
    "--color": "rgb|gray [rgb]",
    "--exif": "apply|ignore [apply]",
    "--preset": "imagenet|imagenet-train",
    "--split": "NAME [train]",
    "--val-fraction": "F",
    "--split-file": "FILE.csv",
    "--path-column": "NAME [path]",
    "--mask": "FOLDER",
    "--label-column": "NAME [label]",
    "--label-regex": "REGEX",
    "--image-key": "NAME [guessed]",
    "--label-key": "NAME [guessed]",
    "--proto": "SET.desc",
    "--message": "NAME",
    "--classes": "FILE|dataset.json",
    "--shard-size": "BYTES [512MiB]",
    "--shards": "N",
    "--seed": "N [0]",
    "--no-shuffle": "",
    "--keys": "full|short [full]",
    "--labels": "folder|none|FILE.csv [folder]",
    "--jobs": f"N [{len(os.sched_getaffinity(0))}]",
    "--on-error": "skip|fail [skip]",
    "--max-bad": "P% [1%]",
    "--max-pixels": "N [178956970]",
    "--index": "KIND[,KIND...]",
    "--prepare": "[I/N]",
    "--part": "I/N|auto",
    "--finish": "",
    "--parts": "N [as many as ran last]",
    "--status": "",
    "--watch": "",
    "--watch-seconds": "S [2]",
    "--overwrite": "",
    "--dry-run": "",
    "--quiet": "",
    "--json": "",
}


ENTRY = re.compile(r"^  (--[a-z-]+) ?(\S*)((?:.*\n)(?: {28}.*\n)*)", re.MULTILINE)


def test_the_help_of_build_lists_every_option_with_its_default(tool):
    result = tool.run("build", "--help")
    assert result.err == ""
    assert "SOURCE" in result.out and "OUT" in result.out
    listed = {option: (value, " ".join(text.split())) for option, value, text in ENTRY.findall(result.out)}
    assert listed.keys() == HELP.keys()
    for option, shown in HELP.items():
        value, _, standard = shown.partition(" [")
        if option == "--jobs" and f"[default: {standard}" not in listed[option][1]:
            standard = ""  # a quota allows fewer threads than the affinity mask
        assert listed[option][0] == value
        assert listed[option][1].endswith(f"[default: {standard}" if standard else listed[option][1]), option
    for text in ("1 to 16384", "0 to 255", "1 to 1024"):
        assert text in result.out, "ranges are shown"


COMMANDS = ("build", "inspect", "verify", "bench", "convert", "pack", "index")  # all but cluster, which has commands


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_groups_and_examples(tool, command):
    text = tool.run(command, "--help").out
    headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert headings[:2] == ["Usage", "Input"] and headings[-2:] == ["Run", "Examples"]
    examples = re.findall(r"^  (precache .*)$", text.split("Examples:")[1], re.MULTILINE)
    assert 2 <= len(examples) <= 4 and all(f"precache {command} " in line for line in examples)
    known = {option for option, _, _ in ENTRY.findall(text)}
    assert set(re.findall(r"--[a-z-]+", " ".join(examples))) <= known
    assert max(map(len, text.splitlines())) <= 100


def test_the_help_lists_commands_in_the_order_people_need_them(tool):
    text = tool.run("--help").out.split("Commands:")[1].split("Options:")[0]
    assert tuple(re.findall(r"^  (\w+) ", text, re.MULTILINE)) == (*COMMANDS, "cluster")


@pytest.mark.parametrize("columns", [80, 120])
def test_the_help_fits_a_terminal(tool, columns):
    with Terminal(columns) as terminal:
        assert finish(tool.start("build", "--help", stdout=terminal.theirs)).code == 0
        text = terminal.rest()
    assert "\x1b[1mInput:\x1b[0m" in text
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in text.splitlines()) <= min(columns, 100)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(tool, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Terminal(80) as terminal:
        assert finish(tool.start("build", "--help", stdout=terminal.theirs)).code == 0
        text = terminal.rest()
    assert "Input:" in text and "\x1b" not in text


@pytest.mark.parametrize(
    "words, near",
    [
        ("buidl source out", "'build'"),
        ("verfy out", "'verify'"),
        ("--vresion", "'--version'"),
        ("build source out --sise 32", "'--size'"),
        ("build source out --dytpe=uint8", "'--dtype'"),
        ("bench out --batch-size 4", "'--batch'"),
        ("build source out --format tarr", "'tar'"),
        ("build source out --fit streched", "'stretch'"),
        ("build source out --preset imagenet-trian", "'imagenet-train'"),
        ("index out --kind dalli", "'dali'"),
        ("bench out --device cud", "'cuda'"),
        ("build source out --format zip", ""),
        ("build source out --format=", ""),
        ("build source out --qqqqqq", ""),
        ("qqqqqqqqqqq", ""),
    ],
)
def test_the_nearest_name_is_suggested(tool, tmp_path, words, near):
    text = tool.run(*words.split(), expect=2, cwd=tmp_path).err
    assert re.findall(r"Did you mean (\S+)\?", text) == ([near] if near else [])


def test_the_nearest_split_is_suggested(tool, source, tmp_path):
    tool.build(source, tmp_path / "out", "--size", "16", "--val-fraction", "0.5")
    for command in ("inspect", "verify", "bench", "index"):
        text = tool.run(command, tmp_path / "out", "--split", "trian", expect=2).err
        assert "has no split 'trian'\n  Did you mean 'train'? It has: train, val.\n" in text


def test_the_steps_of_a_cluster_have_their_group(tool):
    text = tool.run("build", "--help").out.split("\nCluster:\n")[1].split("\nRun:\n")[0]
    steps = ["--prepare", "--part", "--finish", "--parts", "--status", "--watch", "--watch-seconds"]
    assert [option for option, _, _ in ENTRY.findall(text)] == steps
    examples = tool.run("cluster", "--help").out.split("Examples:")[1]
    assert "precache cluster slurm " in examples and "precache cluster kubernetes " in examples


# --- wrong usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "nosuch", "--nosuch", "build", "build source", "build source out more"])
def test_an_unknown_command_is_refused(tool, tmp_path, words):
    result = tool.run(*words.split(), expect=2, cwd=tmp_path)
    assert re.fullmatch(r"precache: .*\n  See .precache( build)? --help.\.\n", result.err)
    assert result.out == ""
    assert files(tmp_path) == {}


WRONG_VALUES = {
    "--format": ["zip", "", "TAR"],
    "--size": ["0", "x", "3x", "x3", "1x2x3", "-1", "2.5", "0x5", "99999", "16000x16000 --dtype float32", ""],
    "--fit": ["cover", "0", ""],
    "--keys": ["long", ""],
    "--resize": ["0", "-1", "x", "99999", "300 --fit pad", "300 --fit stretch"],
    "--filter": ["hamming", "1", ""],
    "--pad-value": ["256", "-1", "x", "7 --fit crop"],
    "--dtype": ["int8", "f32", ""],
    "--normalize": [
        *("", "imagenet", "0.5/0.5", "x --dtype float32", "0.5/0 --dtype float32", "0.5/-1 --dtype float32"),
        *("1,2/1 --dtype float32", "nan/1 --dtype float32", "0.5 --dtype float32", "0.5/1e-45 --dtype float32"),
        *("1,2,3,4/1 --dtype float32", "imagenet --dtype float32 --color gray"),
    ],
    "--layout": ["nhwc", ""],
    "--color": ["bgr", "1", ""],
    "--exif": ["maybe"],
    "--preset": ["cifar"],
    "--image-key": [""],
    "--label-key": [""],
    "--proto": ["", "none.desc --message a.B"],
    "--message": ["", "a.B"],
    "--split": ["a/b", ".a", "-a", "..", "a b", "x" * 101, ""],
    "--val-fraction": ["0", "1", "-0.1", "1.1", "nan", "x", "", "0.2 --split val", "0.2 --split-file x.csv", "0.001"],
    "--shard-size": ["0", "x", "1X", "-1", "1.5M", "99999999P", "99999999999999999999", "MiB", ""],
    "--shards": ["0", "-1", "x", "1.5", "21", "99999999999999999999", "2 --shard-size 1M"],
    "--seed": ["-1", "x", "1.5", "99999999999999999999", "1 --no-shuffle"],
    "--jobs": ["0", "-1", "x", "1025"],
    "--on-error": ["ignore"],
    "--max-bad": ["101", "-1%", "x", "nan", "%", ""],
    "--max-pixels": ["0", "-1", "x"],
    "--part": ["2/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", "1/2 --finish", "1/2 --overwrite", "1/2 --status", ""],
    "--prepare=2/2": [None],
    "--prepare=x": [None],
    "--finish": [None],  # there is nothing to finish
    "--parts": ["0", "-1", "x", ""],
    "--watch": [None],  # without --status
    "--watch-seconds": ["2", "0 --status --watch", "nan --status --watch", "86401 --status --watch", "x", ""],
    "--nosuch": [None],
}
CASES = [(option, value) for option, values in WRONG_VALUES.items() for value in values]


def words_of(option, value):
    """A value may bring further options; an empty one is a value too."""
    return (option,) if value is None else (option, *(value.split() or [""]))


def assert_reads_well(text):
    assert max(map(len, text.splitlines())) < 250
    for telling in ("->", "FAILED", "terminate", "what()"):  # of the parser, or of no one who meant to be read
        assert telling not in text


@pytest.mark.parametrize("option, value", CASES)
def test_a_wrong_value_is_refused(tool, source, tmp_path, option, value):
    text = tool.refuse(source, tmp_path / "out", *words_of(option, value))
    assert_reads_well(text)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [option for option, values in WRONG_VALUES.items() if None not in values])
def test_the_message_names_the_option(tool, source, tmp_path, option):
    """A word that no option takes, but for --split."""
    assert option.lstrip("-") in tool.refuse(source, tmp_path / "out", option, "/")


@pytest.mark.parametrize("option", [option for option, values in WRONG_VALUES.items() if None not in values])
def test_a_value_that_is_missing_is_refused(tool, source, tmp_path, option):
    assert option in tool.refuse(source, tmp_path / "out", option)


@pytest.mark.parametrize("option", ["--labels", "--classes", "--split-file"])
def test_an_empty_word_does_not_name_a_file(tool, source, tmp_path, option):
    assert finish(tool.start("build", source, tmp_path / "out", "--quiet", option, "")).code in (2, 3)


@pytest.mark.parametrize("option", ["--labels", "--classes", "--split-file"])
def test_a_file_that_is_missing_is_named(tool, source, tmp_path, option):
    text = tool.refuse(source, tmp_path / "out", option, tmp_path / "nope", expect=3)
    assert str(tmp_path / "nope") in text
    assert not (tmp_path / "out").exists()


# --- right values -----------------------------------------------------------------------------------------------------


def plan(tool, source, tmp_path, *options):
    return tool.run("build", source, tmp_path / "none", "--dry-run", "--json", *options).json()


@pytest.mark.parametrize(
    "value, shape", [("32", [3, 32, 32]), ("24x48", [3, 24, 48]), ("1", [3, 1, 1]), ("1x300", [3, 1, 300])]
)
def test_size_takes_a_side_or_height_and_width(tool, source, tmp_path, value, shape):
    assert plan(tool, source, tmp_path, "--size", value)["shape"] == shape


def recipe(tool, source, out, *options):
    tool.build(source, out, *options)
    return Dataset(out).manifest["recipe"]


def test_the_preset_is_a_name_for_its_options(tool, source, tmp_path):
    spelled = "--resize 256 --size 224 --filter bilinear --exif ignore".split()
    tool.build(source, tmp_path / "preset", "--preset", "imagenet")
    tool.build(source, tmp_path / "spelled", *spelled)
    assert differing(files(tmp_path / "preset"), files(tmp_path / "spelled")) == []


def test_an_option_overrides_the_preset(tool, source, tmp_path):
    changed = recipe(tool, source, tmp_path / "out", *"--size 32 --preset imagenet --resize 40 --exif apply".split())
    assert (changed["size"], changed["resize"], changed["exif"]) == ([32, 32], 40, "apply")


@pytest.mark.parametrize("value", ["0.5/0.25", "0.5,0.5,0.5/0.25,0.25,0.25", "0.5/0.25,0.25,0.25"])
def test_normalize_takes_one_value_or_one_for_each_channel(tool, source, tmp_path, value):
    options = ("--size", "8", "--dtype", "float32", "--normalize", value)
    values = recipe(tool, source, tmp_path / "out", *options)["normalize"]
    assert values == {"mean": [0.5] * 3, "std": [0.25] * 3}


SHARDS_BY_SIZE = {"1": 20, "5376": 10, "5376B": 10, "6K": 10, "6KiB": 10, "30kB": 2, "1GB": 1, "2G": 1}


@pytest.mark.parametrize("value, shards", SHARDS_BY_SIZE.items())
def test_shard_size_takes_units(tool, source, tmp_path, value, shards):
    result = plan(tool, source, tmp_path, "--size", "16", "--shard-size", value)
    assert (result["record_bytes"], result["shards"]) == (2560, shards)


@pytest.mark.parametrize("value", ["0", "0%", "0.5", "0.05%", "100%", "1e1%"])
def test_max_bad_takes_a_percentage(tool, source, tmp_path, value):
    plan(tool, source, tmp_path, "--max-bad", value)


@pytest.mark.parametrize("shards", range(1, COUNT + 1))
def test_shards_differ_by_one_sample_at_most(tool, source, quick_folder, shards):
    tool.build(source, quick_folder / "out", *SMALL.options(), "--shards", str(shards))
    counts = [shard["samples"] for shard in Dataset(quick_folder / "out").shards()]
    assert len(counts) == shards and sum(counts) == COUNT
    assert max(counts) - min(counts) <= 1


def test_shard_size_bounds_the_shards_and_spreads_the_samples(tool, source, tmp_path):
    record = plan(tool, source, tmp_path, *SMALL.options())["record_bytes"]
    for per_shard in (1, 3, 7, 19, 20, 50):
        out = tmp_path / str(per_shard)
        tool.build(source, out, *SMALL.options(), "--shard-size", str(record * per_shard))
        counts = [shard["samples"] for shard in Dataset(out).shards()]
        assert len(counts) == -(-COUNT // per_shard)
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("file_format", FORMATS)
def test_equal_seeds_give_equal_bytes_and_others_do_not(tool, source, tmp_path, file_format):
    def build(name, *options):
        tool.build(source, tmp_path / name, *SMALL.options(), "--shards", "2", "--format", file_format, *options)
        return files(tmp_path / name)

    largest = build("largest", "--seed", str(2**64 - 1))
    assert differing(build("default"), build("zero", "--seed", "0")) == []
    assert differing(largest, build("again", "--seed", str(2**64 - 1))) == []
    assert len(differing(largest, build("plain", "--no-shuffle"))) == 3
    assert len(differing(build("one", "--seed", "1"), largest)) == 3


# --- dry run ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_the_plan_and_writes_nothing(tool, source, tmp_path):
    result = tool.run("build", source, tmp_path / "out", "--dry-run", "--size", "16", "--shards", "3")
    assert result.err == ""
    for telling in ("20 images", "4 classes", "1 file", ".txt", "uint8 3x16x16", "overhead", "3 tar", "6 to 7 samples"):
        assert telling in result.out
    assert re.search(r"needed, .* free", result.out)
    assert files(tmp_path) == {}


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_plan_is_what_a_build_then_does(tool, source, tmp_path, file_format):
    options = ("--size", "16", "--shards", "3", "--format", file_format)
    result = plan(tool, source, tmp_path, *options)
    disk = os.statvfs(tmp_path)
    assert result["bytes_free"] == pytest.approx(disk.f_bavail * disk.f_frsize, rel=0.5)
    tool.build(source, tmp_path / "out", *options)
    shards = [path.stat().st_size for path in Dataset(tmp_path / "out").shard_paths()]
    assert (result["bytes_needed"], result["shards"]) == (sum(shards), len(shards))
    assert (result["samples"], result["classes"], result["left_out"]) == (COUNT, 4, {".txt": 1})
    sizes = [path.stat().st_size for path in source.rglob("*.png")]
    assert (result["source_bytes"], result["tensor_bytes"]) == (sum(sizes), 3 * 16 * 16)
    assert (result["format"], result["shape"]) == (file_format, [3, 16, 16])
    assert (result["dtype"], result["layout"]) == ("uint8", "chw")


def test_a_dry_run_says_when_the_disk_is_too_small(tool, source, small_disk):
    result = tool.run("build", source, small_disk(64) / "out", "--dry-run", "--size", "64")
    assert re.search(r"; free \S+ \S+ more$", result.out, re.MULTILINE)


@pytest.mark.parametrize("options", [("--size", "0"), ("--shards", "21"), ("--labels", "nope.csv")], ids=" ".join)
def test_a_dry_run_refuses_what_a_build_refuses(tool, source, tmp_path, options):
    expect = 3 if "--labels" in options else 2
    tool.run("build", source, tmp_path / "out", "--dry-run", *options, expect=expect)


def test_a_dry_run_does_not_touch_a_dataset(tool, source, tmp_path):
    tool.build(source, tmp_path / "out", "--size", "16")
    before = files(tmp_path / "out")
    tool.run("build", source, tmp_path / "out", "--dry-run", "--overwrite", "--size", "8")
    assert files(tmp_path / "out") == before


# --- output -----------------------------------------------------------------------------------------------------------


def test_the_summary_goes_to_stdout_and_nothing_else_there(tool, source, tmp_path):
    result = tool.run("build", source, tmp_path / "out", "--size", "16", "--shards", "2")
    assert result.err == ""
    assert "20 samples in 2 tar shards, 4 classes" in result.out
    assert "1 file (1 .txt)" in result.out


def test_json_is_all_that_stands_on_stdout(tool, source, tmp_path):
    folder = tmp_path / "source" / "class"
    for number in range(5):
        images.draw_unique(folder / f"{number}.png", number)
    (folder / "bad.jpg").write_bytes(b"no image")
    options = ("--size", "16", "--shards", "2", "--max-bad", "50%", "--json")
    result = tool.run("build", tmp_path / "source", tmp_path / "out", *options)
    summary = json.loads(result.out)
    written = sum(path.stat().st_size for path in Dataset(tmp_path / "out").shard_paths())
    assert (summary["status"], summary["split"]) == ("complete", "train")
    assert (summary["samples"], summary["skipped"], summary["converted"]) == (5, 1, 5)
    assert (summary["shards_done"], summary["shards_resumed"], summary["bytes"]) == (2, 0, written)
    assert summary["seconds"] > 0 and summary["images_per_second"] > 0
    assert (summary["plan"]["samples"], summary["plan"]["classes"]) == (6, 1)
    assert "class/bad.jpg" in result.err and "1 sample skipped" in result.err


def test_json_of_a_failed_build_says_so(tool, tmp_path):
    (tmp_path / "source" / "class").mkdir(parents=True)
    (tmp_path / "source" / "class" / "bad.jpg").write_bytes(b"no image")
    result = tool.run("build", tmp_path / "source", tmp_path / "out", "--json", expect=1)
    summary = json.loads(result.out)
    assert summary["status"] == "too many bad samples" and summary["skipped"] == 1
    assert "too many bad samples" in result.err


def test_a_summary_that_cannot_be_written_is_an_error(tool, source, tmp_path):
    with open("/dev/full", "wb") as full:
        tool.run("build", source, tmp_path / "out", "--size", "16", "--json", stdout=full, expect=3)


@pytest.mark.parametrize("words", ["nosuch", "build nosuch out", "--help"])
def test_the_exit_code_holds_where_nothing_can_be_said(tool, tmp_path, words):
    expect = {"nosuch": (2,), "--help": (0, 3)}.get(words, (3,))
    with open("/dev/full", "wb") as full:
        assert finish(tool.start(*words.split(), stdout=full, stderr=full, cwd=tmp_path)).code in expect


CLOSED = ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
def test_no_file_of_the_dataset_takes_the_place_of_a_closed_stream(tool, interference, source, tmp_path, closed):
    """Else what is meant for the user goes into a shard."""
    shell = ("sh", "-c", f'exec "$@" {closed}', "sh")
    command = ("build", source, tmp_path / "out", *HELD)
    with interference.hold(tool, *command, path=ELEVENTH, before=shell) as (process, gate):
        descriptors = Path(f"/proc/{process.pid}/fd")
        streams = [os.readlink(descriptors / name) for name in "012" if os.path.lexists(descriptors / name)]
        gate.open()
        assert finish(process).code == 0
    assert [path for path in streams if str(tmp_path) in path] == []


# --- progress ---------------------------------------------------------------------------------------------------------

NUMBERS = r"50% 10/20 \d+ images/s \d+ MB/s \d+:\d\d left 0 skipped"
HELD = ("--size", "16", "--jobs", "1", "--no-shuffle")  # held at the image that is the eleventh by name
ELEVENTH = "class2/02.png"


def test_progress_is_a_line_now_and_then_where_no_terminal_is(tool, interference, source, tmp_path):
    command = ("build", source, tmp_path / "out", *HELD)
    with interference.hold(tool, *command, path=ELEVENTH) as (process, gate):
        text = read_until(process.stderr.fileno(), r"\n")
        gate.open()
        result = finish(process)
    assert re.fullmatch(NUMBERS + r"\n", text)
    assert int(re.search(r"(\d+) images/s", text).group(1)) <= 10  # 10 images, and the line comes after some seconds
    assert result.code == 0 and "\x1b" not in result.err and "\r" not in result.err
    assert "20 samples" in result.out


@contextlib.contextmanager
def hold_on_terminal(tool, interference, source, tmp_path, *options, columns=120):
    command = ("build", source, tmp_path / "out", *HELD, *options)
    with Terminal(columns) as terminal:
        with interference.hold(tool, *command, path=ELEVENTH, stderr=terminal.theirs) as (process, gate):
            yield terminal, process, gate


def test_progress_is_a_bar_on_a_terminal(tool, interference, source, tmp_path):
    with hold_on_terminal(tool, interference, source, tmp_path) as (terminal, process, gate):
        text = read_until(terminal.ours, "skipped")
        assert re.search(r"\r\[\x1b\[36m#{6}\x1b\[0m\.{6}\] " + NUMBERS, text)
        gate.open()
        assert finish(process).code == 0
        assert re.search(r"\r +\r$", terminal.rest())  # the bar is gone in the end


def test_the_progress_fits_a_terminal_of_usual_width(tool, interference, source, tmp_path):
    with hold_on_terminal(tool, interference, source, tmp_path, columns=80) as (terminal, _, _):
        text = read_until(terminal.ours, "skipped")
    for telling in ("10/20", "images/s", "MB/s", "left", "0 skipped"):
        assert telling in text


def test_a_bar_is_cut_to_the_width_of_the_terminal(tool, interference, source, tmp_path):
    with hold_on_terminal(tool, interference, source, tmp_path, columns=30) as (terminal, _, _):
        line = read_until(terminal.ours, r"\r50%.*\r").split("\r")[-2]
    assert len(line) == 29  # the last column is for the cursor


def write_foreign_tars(folder, count):
    folder.mkdir()
    for number in range(count):
        with tarfile.open(folder / f"x-{number}.tar", "w") as archive:
            for name in ("a", "b"):
                entry = tarfile.TarInfo(f"{name}{number}.jpg")
                entry.size = 4
                archive.addfile(entry, io.BytesIO(b"\xff\xd8\xff\xe0"))


def test_inspect_shows_how_far_it_is(tool, interference, tmp_path):
    write_foreign_tars(tmp_path / "tars", 20)
    command = ("inspect", tmp_path / "tars", "--all", "--json")
    with Terminal(100) as terminal:
        with interference.hold(tool, *command, path="/x-3.tar", stderr=terminal.theirs) as (process, gate):
            text = re.sub("\x1b\\[[0-9;]*m", "", read_until(terminal.ours, "/20"))
            assert re.search(r"\r\[[#.]{12}\] scanning files: \d+% \d+/20", text)
            gate.open()
            result = finish(process)
        assert result.code == 0 and result.json()["paths"][0]["samples"] == 40
        assert re.search(r"\r +\r$", terminal.rest())
    with Terminal(100) as terminal:
        with interference.hold(tool, *command, "--quiet", path="/x-3.tar", stderr=terminal.theirs) as (process, gate):
            gate.open()
            assert finish(process).code == 0
        assert terminal.rest() == ""


def test_a_build_outlives_its_terminal(tool, interference, source, tmp_path):
    tool.build(source, tmp_path / "undisturbed", *HELD)
    with hold_on_terminal(tool, interference, source, tmp_path) as (terminal, process, gate):
        read_until(terminal.ours, "skipped")
        terminal.hang_up()
        time.sleep(0.5)  # for the bar that cannot be drawn
        gate.open()
        assert finish(process).code == 0
    assert differing(files(tmp_path / "out"), files(tmp_path / "undisturbed")) == []


def test_quiet_silences_the_progress(tool, interference, source, tmp_path):
    with hold_on_terminal(tool, interference, source, tmp_path, "--quiet") as (terminal, process, gate):
        time.sleep(0.5)  # a bar would have come five times
        gate.open()
        assert finish(process).code == 0
        assert terminal.rest() == ""


TURNED = "3 images rotated by EXIF; ImageFolder does not rotate them. Use --exif ignore to match it."


def test_the_summary_counts_the_images_that_exif_turned(run, tmp_path):
    for number, orientation in enumerate([None, 1, 3, 6, 2, 1]):
        image, exif = Image.new("RGB", (20, 10), (9, 9, 9)), Image.Exif()
        if orientation is not None:
            exif[0x0112] = orientation
        path = tmp_path / "images" / f"{number}.{'png' if orientation == 3 else 'jpg'}"
        path.parent.mkdir(exist_ok=True)
        image.save(path, exif=exif)
    words = ("build", tmp_path / "images", "--labels", "none", "--size", "8", "--shards", "3")
    said = run(*words, tmp_path / "out").stdout.decode()
    assert re.search(rf"^turned +{re.escape(TURNED)}$", said, re.MULTILINE)
    assert b"turned" not in run(*words, tmp_path / "ignored", "--exif", "ignore").stdout
    for part in range(2):
        run(*words, tmp_path / "parts", "--part", f"{part}/2")
    report = json.loads(run(*words, tmp_path / "parts", "--finish", "--json").stdout)
    assert report["status"] == "complete" and report["turned"] == 3
