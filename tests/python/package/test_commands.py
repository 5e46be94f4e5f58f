# SPDX-License-Identifier: Apache-2.0
"""The commands as Python functions: their options, results, errors and progress."""

import doctest
import errno
import importlib
import inspect
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import images
import precache
from precache import _commands
from precache._commands import IndexKind
from precache._errors import make_error
from precache._progress import LogLines, Progress
from shards import Dataset
from terminal import Terminal, read_until
from tool import Tool, differing, files

pytest_plugins = ("tool_fixtures",)

COMMANDS = ("build", "convert", "index", "inspect", "pack", "verify")
COUNT = 12
# Options whose default depends on others, or on what a shard holds.
DEPENDENT = (
    "exif",
    "image_key",
    "image_name",
    "jobs",
    "kind",
    "label_column",
    "label_key",
    "path_column",
    "resize",
    "split",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(COUNT):
        images.draw_unique(folder / f"class{number // 6}" / f"{number:02}.png", number)
    return folder


@pytest.fixture
def dataset(source, tmp_path):
    precache.build(source, tmp_path / "dataset", size=16, shards=2)
    return tmp_path / "dataset"


# --- options ----------------------------------------------------------------------------------------------------------


def help_of(tool, command):
    """The options of a command with the text that the help shows after them; --no-NAME as `NAME`."""
    lines = re.sub(r"\n {10,}", "  ", tool.run(command, "--help").out)  # texts may take several lines
    shown = dict(re.findall(r"^  --([a-z-]+) ?(.*)$", lines, re.MULTILINE))
    return {name.removeprefix("no-"): value for name, value in shown.items()}


def options_of(function):
    """The parameters of a function that are options of the command."""
    parameters = inspect.signature(function).parameters.values()
    return [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in ("progress", "wait")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_function_has_the_options_of_its_command(tool, command):
    listed = help_of(tool, command)
    listed.pop("quiet", None)  # progress=False
    listed.pop("watch", None)  # for people
    listed.pop("watch-seconds", None)
    assert listed.pop("json") is not None
    assert sorted(each.name.replace("_", "-") for each in options_of(getattr(precache, command))) == sorted(listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_choices_and_defaults_are_those_of_the_help(tool, command):
    listed, function = help_of(tool, command), getattr(precache, command)
    hints = typing.get_type_hints(function)
    for each in options_of(function):
        shown = listed[each.name.replace("_", "-")].split("  ")[0].strip()
        if hints[each.name] is bool:
            assert (shown, each.default) == ("", each.name in ("shuffle", "size_column")), each
            continue
        assert shown != "", each
        default = re.search(r"\[default: ([^\]]*)\]$", listed[each.name.replace("_", "-")])
        if default and each.default is not None:
            assert default[1].rstrip("%") == str(each.default), each
        else:  # there is none, or it depends on other values
            assert each.default is None and (not default or each.name in DEPENDENT or " as " in f" {default[1]}"), each
        is_literal = typing.get_origin(hints[each.name]) is typing.Literal
        kinds = [hints[each.name]] if is_literal else typing.get_args(hints[each.name])
        words = {word for kind in kinds for word in typing.get_args(kind)}
        if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)*", shown):
            assert words == set(shown.split("|")), each


@pytest.mark.parametrize("command", COMMANDS)
def test_the_docstring_has_every_parameter(command):
    def described(function):
        return re.findall(r"^        (\w+): ", function.__doc__.split("Args:")[1].split("Returns:")[0], re.MULTILINE)

    function = getattr(precache, command)
    parameters = list(inspect.signature(function).parameters)
    own = described(function)
    assert own == [name for name in parameters if name in own]
    assert set(parameters) - set(own) <= set(described(precache.build))  # to which the docstring refers
    assert (
        own == parameters or "The other arguments, the errors, and `progress` are those of `build`." in function.__doc__
    )


VALUES = [
    ({"size": 16}, ("--size", "16")),
    ({"size": (16, 20)}, ("--size", "16x20")),
    ({"size": "16x20"}, ("--size", "16x20")),
    ({"normalize": "imagenet", "dtype": "float32"}, ("--normalize", "imagenet", "--dtype", "float32")),
    ({"normalize": (0.5, 0.25), "dtype": "float16"}, ("--normalize", "0.5/0.25", "--dtype", "float16")),
    (
        {"normalize": ([0.1, 0.2, 1e-7], 0.5), "dtype": "float32"},
        ("--normalize", "0.1,0.2,0.0000001/0.5", "--dtype", "float32"),
    ),
    ({"index": "dali"}, ("--index", "dali")),
    ({"index": ["dali", "wids"]}, ("--index", "dali,wids")),
    ({"shard_size": 5376}, ("--shard-size", "5376")),
    ({"shard_size": "6KiB"}, ("--shard-size", "6KiB")),
    ({"max_bad": 0.5, "seed": 2**64 - 1, "shuffle": True}, ("--max-bad", "0.5%", "--seed", str(2**64 - 1))),
    (
        {"shuffle": False, "exif": "ignore", "pad_value": 7, "fit": "pad"},
        ("--no-shuffle", "--exif", "ignore", "--pad-value", "7", "--fit", "pad"),
    ),
]


@pytest.mark.parametrize("options, words", VALUES, ids=lambda value: " ".join(map(str, value)))
def test_a_call_writes_the_same_files_as_the_command(tool, source, tmp_path, options, words):
    options = {"size": 16, **options}
    words = words if "--size" in words else ("--size", "16", *words)
    report = precache.build(source, tmp_path / "function", **options)
    assert report["status"] == "complete" and report["samples"] == COUNT
    tool.build(source, tmp_path / "command", *words)
    assert differing(files(tmp_path / "function"), files(tmp_path / "command")) == []


@pytest.mark.parametrize("dtype", [np.float16, np.dtype("float16"), torch.float16], ids=repr)
def test_types_of_numpy_and_torch_are_accepted(source, dataset, tmp_path, dtype):
    assert precache.build(source, tmp_path / "out", dtype=dtype, dry_run=True)["dtype"] == "float16"
    precache.convert(dataset, tmp_path / "new", dtype=dtype)
    assert Dataset(tmp_path / "new").manifest["spec"]["dtype"] == "float16"


@pytest.mark.parametrize("dtype", [np.float64, float, 7, np.dtype("int8")], ids=repr)
def test_other_element_types_are_refused(source, tmp_path, dtype):
    with pytest.raises(precache.InvalidArgument, match="dtype must be one of"):
        precache.build(source, tmp_path / "out", dtype=dtype)


def test_parts_are_built_and_finished(source, tmp_path):
    options = {"size": 16, "shards": 3, "progress": False}
    assert precache.build(source, tmp_path / "out", part=(0, 2), **options)["status"] == "part done"
    assert precache.build(source, tmp_path / "out", part="1/2", **options)["status"] == "part done"
    assert precache.build(source, tmp_path / "out", finish=True, **options)["status"] == "complete"


def test_paths_may_be_strange(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = Path(os.fsdecode(b"-\xff --json"))
    precache.build(str(source), out, size=16, split="a")
    assert precache.verify([out, str(out / "a-000000.tar")])["files"] == 2
    assert precache.verify(os.fspath(out))["whole"]
    assert precache.verify(os.fsencode(out))["whole"] and precache.verify([os.fsencode(out)])["whole"]
    precache.inspect(os.fsencode(out), sheet=b"sheet.png")
    assert Path("sheet.png").is_file()


@pytest.mark.parametrize("value", ["", " ", "-/", "--json/"])
def test_a_value_that_looks_like_an_option_is_a_value(source, tmp_path, value):
    with pytest.raises(precache.InvalidArgument, match="split") as raised:
        precache.build(source, tmp_path / "out", split=value)
    assert f"'{value}'" in str(raised.value)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: precache.build(None, "out"), "source must be a path, got None"),
        (lambda: precache.build(["a", "b"], "out"), r"source must be a path, got \['a', 'b'\]"),
        (lambda: precache.build("images", 7), "out must be a path, got 7"),
        (lambda: precache.verify(None), "path must be a path, got None"),
        (lambda: precache.inspect([None]), "NoneType"),
        (lambda: precache.build("images", "out", size=True), "size must be a number, a text or a path, got True"),
        (lambda: precache.build("images", "out", size=False), "size must be a number, a text or a path, got False"),
        (
            lambda: precache.build("images", "out", size=(16, True)),
            "a part of size must be a number, a text or a path, got True",
        ),
        (lambda: precache.build("images", "out", overwrite="no"), "overwrite must be True or False, got 'no'"),
        (lambda: precache.inspect("shards", all=1), "all must be True or False, got 1"),
        (lambda: precache.build("images", "out", progress="yes"), "progress must be True or False, got 'yes'"),
        (lambda: precache.verify("shards", progress=0), "progress must be True or False, got 0"),
    ],
    ids=range(12),
)
def test_a_value_of_another_type_is_named(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_the_kinds_of_index_are_those_of_the_help(tool):
    described = re.search(r"--kind(.*?)\[default", tool.run("index", "--help").out, re.DOTALL).group(1)
    assert set(typing.get_args(IndexKind)) == set(re.findall(r"(\w+):\s", described))


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_gives_the_plan(source, tmp_path):
    plan = precache.build(source, tmp_path / "out", size=(16, 20), dry_run=True)
    assert (plan["samples"], plan["shape"]) == (COUNT, [3, 16, 20])
    assert not (tmp_path / "out").exists()


def test_convert_gives_its_report_and_plan(dataset, tmp_path):
    assert precache.convert(dataset, tmp_path / "new", format="hdf5", dry_run=True)["tensors_stay"] is True
    assert precache.convert(dataset, tmp_path / "new", format="hdf5", dtype="float16")["converted"] == COUNT
    assert Dataset(tmp_path / "new").manifest["spec"]["dtype"] == "float16"


def test_index_gives_what_was_written(dataset):
    assert {entry["kind"] for entry in precache.index(dataset, kind=["dali", "wids"])["written"]} == {"dali", "wids"}
    assert (dataset / "train.wids.json").exists()


def test_inspect_gives_facts_and_writes_pages(dataset, tmp_path, capfd):
    facts = precache.inspect(dataset, all=True, sheet=tmp_path / "sheet.png", html=tmp_path / "page.html", samples=4)
    assert facts["paths"][0]["samples"] == COUNT
    assert (tmp_path / "sheet.png").exists() and (tmp_path / "page.html").exists()
    assert "wrote" in capfd.readouterr().err


def test_verify_of_damage_is_a_report(dataset):
    shard = dataset / "train-000001.tar"
    data = bytearray(shard.read_bytes())
    data[1000] ^= 1
    shard.write_bytes(data)
    report = precache.verify(dataset)
    assert report["whole"] is False
    assert [fault["file"] for fault in report["faults"]] == [str(shard)]


def test_inspect_of_damage_is_a_report(dataset, tmp_path):
    (tmp_path / "cut.tar").write_bytes((dataset / "train-000000.tar").read_bytes()[:2000])
    (facts,) = precache.inspect(tmp_path / "cut.tar")["paths"]
    assert len(facts["faults"]) == 1


def test_a_file_of_an_unknown_kind_is_a_report(tmp_path):
    (tmp_path / "poem.txt").write_text("no shard")
    assert precache.inspect(tmp_path / "poem.txt")["paths"][0]["samples"] in (0, None)
    assert precache.verify(tmp_path / "poem.txt")["whole"] is False


def test_standard_input_is_a_source(source, tmp_path):
    code = "import sys; from precache import build; print(build('-', sys.argv[1], size=16)['samples'])"
    packed = subprocess.run(["tar", "-c", "-C", source, "."], check=True, capture_output=True).stdout
    words = [sys.executable, "-c", code, tmp_path / "out"]
    done = subprocess.run(words, input=packed, check=True, capture_output=True)
    assert done.stdout == b"12\n"


# --- errors -----------------------------------------------------------------------------------------------------------


def test_a_wrong_value_is_an_invalid_argument(tool, source, tmp_path):
    with pytest.raises(precache.InvalidArgument) as raised:
        precache.build(source, tmp_path / "out", size=0)
    assert isinstance(raised.value, ValueError)
    said = tool.refuse(source, tmp_path / "out", "--size", "0")
    assert said == f"precache: --size must be one or two numbers of at least 1, got '0'\n  {raised.value.hint}\n"
    assert "size" in raised.value.message and "--size" not in raised.value.message
    assert raised.value.hint in "".join(raised.value.__notes__)


def test_a_missing_file_is_file_not_found(tmp_path):
    for call in (
        lambda: precache.build("nope", tmp_path / "out"),
        lambda: precache.verify("nope"),
        lambda: precache.inspect("nope"),
    ):
        with pytest.raises(precache.IoError) as raised:
            call()
        assert isinstance(raised.value, FileNotFoundError)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, "nope")
        assert str(raised.value) == "cannot open 'nope': No such file or directory"


def test_a_full_disk_is_an_io_error(source, small_disk):
    disk = small_disk(64)
    with pytest.raises(precache.IoError, match="No space left on device") as raised:
        precache.build(source, disk / "out", size=64)
    assert raised.value.errno == errno.ENOSPC and str(disk) in raised.value.filename


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_failed_system_call_is_an_io_error(interference, source, tmp_path, monkeypatch, code):
    for name, value in interference.fail("mkdir", code, path="out").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(precache.IoError) as raised:
        precache.build(source, tmp_path / "out", size=16)
    assert raised.value.errno == code and str(tmp_path / "out") in raised.value.filename
    assert isinstance(raised.value, PermissionError) == (code == errno.EACCES)


def test_too_many_bad_images_are_an_error_with_the_report(source, tmp_path):
    images.draw_unique(tmp_path / "source" / "a" / "good.png", 0)
    (tmp_path / "source" / "a" / "bad.png").write_bytes(b"")
    with pytest.raises(precache.TooManyBadImages, match="more than 1 % of 2") as raised:
        precache.build(tmp_path / "source", tmp_path / "out", size=16)
    assert raised.value.report["skipped"] == 1
    assert precache.build(tmp_path / "source", tmp_path / "out", size=16, max_bad=50)["samples"] == 1


def test_corrupt_data_name_file_and_offset(dataset, tmp_path):
    (dataset / "dataset.json").write_text("{")
    with pytest.raises(precache.CorruptDataError) as raised:
        precache.convert(dataset, tmp_path / "new")
    assert raised.value.path == str(dataset / "dataset.json") and raised.value.offset is not None


def test_a_killed_command_is_an_error(interference, source, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        for name, value in interference.kill("open", path="class1/08.png").items():
            patch.setenv(name, value)
        with pytest.raises(precache.Error, match="precache build was killed by a signal: Killed"):
            precache.build(source, tmp_path / "out", size=16)
    assert precache.build(source, tmp_path / "out", size=16)["status"] == "complete"


def test_a_missing_command_is_named(tool, monkeypatch):
    monkeypatch.setattr(precache, "__path__", ["/nope"])
    with pytest.raises(precache.IoError, match="the precache command is not at '/nope/bin/precache'") as raised:
        precache.command_path()
    assert isinstance(raised.value, FileNotFoundError) and "PRECACHE_COMMAND" in raised.value.hint
    monkeypatch.setenv("PRECACHE_COMMAND", str(tool.path))
    assert precache.command_path() == str(tool.path)


@pytest.fixture
def package_without_command(tmp_path):
    """A copy of the package, and environment variables that give it to a child."""
    shutil.copytree(Path(precache.__file__).parent, tmp_path / "copy" / "precache", ignore=lambda *_: {"bin"})
    variables = {name: value for name, value in os.environ.items() if name != "PRECACHE_COMMAND"}
    return tmp_path / "copy" / "precache", variables | {"PYTHONPATH": str(tmp_path / "copy")}


@pytest.mark.parametrize(
    "kind, reason",
    [("none", "the precache command is not at"), ("plain", "Permission denied"), ("empty", "Exec format error")],
)
def test_the_package_without_its_command_reads_and_says_what_is_missing(
    dataset, tmp_path, package_without_command, kind, reason
):
    folder, variables = package_without_command
    command = folder / "bin" / "precache"
    if kind != "none":
        command.parent.mkdir()
        command.write_text("")
        command.chmod(0o755 if kind == "empty" else 0o644)
    precache.convert(dataset, tmp_path / "hdf5", format="hdf5", shards=1)
    foreign = (tmp_path / "hdf5" / "train-000000.h5").rename(tmp_path / "foreign.h5")
    program = """
import sys, precache
print(len(precache.open(sys.argv[1])), precache.__file__)
for call in (lambda: precache.verify(sys.argv[1]), lambda: precache.open(sys.argv[2])):
    try:
        call()
    except precache.IoError as error:
        print(error.path, error.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, dataset, foreign], capture_output=True, text=True, env=variables, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first == f"{COUNT} {folder / '__init__.py'}"
    assert len(others) == 2 and all(line.startswith(f"{command} ") for line in others) and reason in others[0]
    done = subprocess.run(
        [sys.executable, "-m", "precache", "--version"], capture_output=True, text=True, env=variables, cwd="/"
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        re.fullmatch(rf"precache: .*{re.escape(str(command))}.*\n  Reinstall the package, .*\n", done.stderr)
        and reason in done.stderr
    )


@pytest.mark.parametrize(
    "type_name", ["InvalidArgument", "IoError", "CorruptData", "Unsupported", "DeviceError", "Error"]
)
def test_errors_pass_from_process_to_process(type_name):
    error = make_error(type_name, "message", "hint", "path", 7, errno.EACCES)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == "message"
    assert pickle.loads(pickle.dumps(type(error))) is type(error)  # torch passes on the type alone
    assert {**vars(again)} == {**vars(error)}
    assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert getattr(again, "filename", None) == getattr(error, "filename", None)


# --- progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["build", "convert", "verify"])
def test_a_function_is_called_with_the_progress(source, dataset, tmp_path, call):
    heard = []
    if call == "verify":
        precache.verify(dataset, progress=heard.append)
    else:
        arguments = {"build": (source, tmp_path / "new"), "convert": (dataset, tmp_path / "new")}[call]
        getattr(precache, call)(*arguments, progress=heard.append)
    shares = [progress.share for progress in heard if progress.share is not None]
    assert shares == sorted(shares) and shares[-1] == 1
    assert heard[-1].done == heard[-1].planned > 0 and heard[-1].unit and heard[-1].text


@pytest.mark.parametrize("command", ["index", "inspect"])
def test_short_commands_report_the_end_of_their_progress(dataset, command, capfd):
    heard = []
    assert getattr(precache, command)(dataset, progress=heard.append) == getattr(precache, command)(
        dataset, progress=False
    )
    assert heard[-1].share == 1
    assert capfd.readouterr() == ("", "")


def test_a_finished_build_reports_the_end_of_its_progress(source, dataset):
    heard = []
    assert precache.build(source, dataset, size=16, shards=2, progress=heard.append)["shards_resumed"] == 2
    assert heard[-1].share == 1


SCRIPT = """
import sys
from precache import build
build(sys.argv[1], sys.argv[2], size=16, jobs=1, shuffle=False, **eval(sys.argv[3]))
"""


def script(source, out, options="{}"):
    return ("-c", SCRIPT, source, out, options)


@pytest.fixture
def python():
    return Tool(sys.executable)


@pytest.mark.parametrize("columns, bar", [(100, r"\[#{6}\.{6}\] 50% 6/12 .* skipped"), (30, "50% 6/12 .{20}")])
def test_the_progress_is_a_bar_on_a_terminal(python, interference, source, tmp_path, columns, bar):
    with Terminal(columns) as terminal:
        held = interference.hold(
            python, *script(source, tmp_path / "out"), path="class1/06.png", stderr=terminal.theirs
        )
        with held as (process, gate):
            read_until(terminal.ours, f"\r{bar}\x1b")
            gate.open()
            assert process.wait(60) == 0
            assert terminal.rest().endswith("\r\x1b[K")


@pytest.mark.parametrize("options", ["{}", "{'progress': False}", "{'progress': id}"])
def test_the_progress_is_shown_only_on_a_terminal(python, source, tmp_path, options):
    result = python.run(*script(source, tmp_path / "out", options))
    assert (result.out, result.err) == ("", "")


def test_the_progress_is_lines_in_a_log(python, source, tmp_path):
    often = "import precache._progress as p; p.LogLines.FIRST_SECONDS = p.LogLines.EVERY_SECONDS = 0\n"
    lines = python.run("-c", often + SCRIPT, source, tmp_path / "out", "{}").err.splitlines()
    assert all(re.match(r"precache: \d+% \d+/12 |precache: ", line) and "\r" not in line for line in lines)
    assert lines[-1].startswith("precache: 100% 12/12 ")
    assert python.run("-c", often + SCRIPT, source, tmp_path / "b", "{'progress': False}").err == ""


def test_lines_in_a_log_are_rare(capfd):
    lines = LogLines()
    for second in range(200):
        lines.show(Progress(second / 199, second, 199, "images", f"at {second}", float(second)))
    assert capfd.readouterr().err.splitlines() == [f"precache: at {second}" for second in (10, 70, 130, 190, 199)]


def test_skipped_samples_are_reported(python, source, tmp_path):
    images.draw_unique(tmp_path / "source" / "a" / "good.png", 0)
    (tmp_path / "source" / "a" / "bad.png").write_bytes(b"")
    assert "1 sample skipped" in python.run(*script(tmp_path / "source", tmp_path / "a", "{'max_bad': 50}")).err
    silent = "{'max_bad': 50, 'progress': False}"
    assert python.run(*script(tmp_path / "source", tmp_path / "b", silent)).err == ""


def test_ignored_files_are_reported(python, source, tmp_path):
    shutil.copytree(source, tmp_path / "source")
    for name in ("a.webp", "b.webp", "notes.txt"):
        (tmp_path / "source" / "class0" / name).write_bytes(b"x")
    for name in ("c", "d"):
        (tmp_path / "source" / "class0" / name).symlink_to("nothing")
    said = "precache: ignored 5 files: 1 .txt, 2 .webp, 2 dangling links\n"
    assert python.run(*script(tmp_path / "source", tmp_path / "a")).err == said
    assert python.run(*script(tmp_path / "source", tmp_path / "a")).err == ""  # nothing was built
    assert python.run(*script(tmp_path / "source", tmp_path / "b", "{'progress': False}")).err == ""


def test_rotated_images_are_reported(python, source, tmp_path):
    shutil.copytree(source, tmp_path / "source")
    for number in range(2):
        turned = Image.new("RGB", (40, 30))
        turned.getexif()[0x0112] = 6
        turned.save(tmp_path / "source" / "class0" / f"turned{number}.jpg", exif=turned.getexif())
        images_said, them = ("1 image", "it") if number == 0 else ("2 images", "them")
        said = f"{images_said} rotated by EXIF; ImageFolder does not rotate {them}. Use exif="
        assert said in python.run(*script(tmp_path / "source", tmp_path / str(number))).err
    ignored = "{'exif': 'ignore'}"
    assert python.run(*script(tmp_path / "source", tmp_path / "a", ignored)).err == ""


def test_dropped_columns_are_reported(python, source, tmp_path):
    first = min(source.rglob("*.png")).relative_to(source)
    (tmp_path / "targets.csv").write_text(f"path,label,age:float,tags:multi\n{first},a,0.5,b\n")
    pack = "import sys, precache; precache.pack(*sys.argv[1:3], labels=sys.argv[3], **eval(sys.argv[4]))"
    words = ("-c", pack, source, tmp_path / "out", tmp_path / "targets.csv")
    assert python.run(*words, "{}").err == "precache: columns that are not kept: age, tags\n"
    assert python.run(*words, "{'progress': False, 'overwrite': True}").err == ""


class OnlyWrites:
    """A replacement of stderr, as programs use it to copy the output."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


class Broken:
    def __getattr__(self, name):
        raise RuntimeError(f"no {name} today")


@pytest.fixture
def with_a_bad_image(tmp_path):
    """A folder with a name that is not ASCII and a bad image: with max_bad=50 the command prints a message."""
    images.draw_unique(tmp_path / "bilder ü" / "a" / "good.png", 0)
    (tmp_path / "bilder ü" / "a" / "bad.png").write_bytes(b"")
    return tmp_path / "bilder ü"


@pytest.mark.parametrize("progress", [None, True])
@pytest.mark.parametrize("kind", ["only writes", "ascii", "closed", "broken", "none"])
def test_a_broken_stderr_does_not_end_a_build(with_a_bad_image, tmp_path, monkeypatch, kind, progress):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    closed = io.StringIO()
    closed.close()
    stderr = {"only writes": OnlyWrites(), "ascii": ascii_only, "closed": closed, "broken": Broken(), "none": None}[
        kind
    ]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        report = precache.build(with_a_bad_image, tmp_path / "größe", size=16, max_bad=50, progress=progress)
    assert report["status"] == "complete" and report["skipped"] == 1
    if kind == "only writes":
        assert "1 sample skipped" in stderr.text and "größe" in stderr.text
    if kind == "ascii":
        said = ascii_only.buffer.getvalue().decode("ascii")
        assert "1 sample skipped" in said and "gr\\xf6\\xdfe" in said


def test_a_notebook_shows_a_bar(source, tmp_path):
    manager = pytest.importorskip("jupyter_client.manager", reason="needs ipykernel")
    pytest.importorskip("ipykernel")
    shown, said = [], []

    def take(message):
        data = message["content"].get("data", {})
        if "text/html" in data:
            shown.append((message["msg_type"], data))
        if message["msg_type"] in ("stream", "error"):
            said.append(message["content"])

    code = f"from precache import build\nbuild({str(source)!r}, {str(tmp_path / 'out')!r}, size=16)\nNone"
    with manager.run_kernel() as client:
        client.execute_interactive(code, output_hook=take, timeout=100)
    assert said == []
    assert [kind for kind, _ in shown] == ["display_data"] + ["update_display_data"] * (len(shown) - 1)
    assert '<progress max="1" value="1.0000"' in shown[-1][1]["text/html"]
    assert shown[-1][1]["text/plain"].startswith("100% 12/12 ")


# --- several processes ------------------------------------------------------------------------------------------------


def test_a_build_waits_for_another_one(python, interference, source, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(_commands, "_SILENT_SECONDS", 0)

    def build(**options):
        return precache.build(source, tmp_path / "out", size=16, jobs=1, shuffle=False, **options)

    reports = []
    waiting = threading.Thread(target=lambda: reports.append(build(wait=True)))
    with interference.hold(python, *script(source, tmp_path / "out"), path="class1/06.png") as (process, gate):
        with pytest.raises(precache.IoError, match="^another process is writing to") as refused:
            build()
        assert "wait=True" in refused.value.hint
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
        gate.open()
        assert process.wait(60) == 0
        waiting.join(60)
    assert [report["status"] for report in reports] == ["complete"] and reports[0]["shards_resumed"] == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "waiting" in line]
    assert len(said) == 1 and re.fullmatch("precache: another process is writing to '.*out.*'; waiting for it", said[0])
    with pytest.raises(TypeError, match="wait must be True or False, got 1"):
        build(wait=1)


def test_many_processes_build_one_dataset(source, tmp_path):
    program = "import sys, precache; print(precache.build(*sys.argv[1:], size=16, shards=3, wait=True)['samples'])"
    words = [sys.executable, "-c", program, source, tmp_path / "out"]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate()[0], process.returncode) for process in processes] == [(f"{COUNT}\n", 0)] * 4
    assert precache.verify(tmp_path / "out")["whole"]


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_other_threads_may_call(source, tmp_path):
    reports = {}

    def call(number):
        reports[number] = precache.build(source, tmp_path / str(number), size=16)

    threads = [threading.Thread(target=call, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report["samples"] for _, report in sorted(reports.items())] == [COUNT] * 4


def test_no_descriptor_is_left_open(dataset):
    before = sorted(os.listdir("/proc/self/fd"))
    precache.verify(dataset)
    with pytest.raises(precache.IoError):
        precache.verify("nope")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_the_package_runs_as_the_command(tool, python, dataset):
    assert python.run("-m", "precache", "--version").out == tool.run("--version").out
    assert json.loads(python.run("-m", "precache", "verify", dataset, "--json").out)["whole"] is True
    assert python.run("-m", "precache", "build", expect=2).err == tool.run("build", expect=2).err


def test_the_package_as_the_command_does_not_inherit_ignored_signals(python, tmp_path):
    """Python ignores SIGPIPE. The command itself ignores SIGXFSZ, so that a limit becomes an error."""
    process = python.start("-m", "precache", "build", "-", tmp_path / "out", stdin=subprocess.PIPE)
    try:
        read_until(process.stderr.fileno(), "unpacking|listing")  # progress of the command, which has replaced Python
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.kill()
        process.communicate()
    ignored = int(re.search(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)[1], 16)
    assert ignored == 1 << (signal.SIGXFSZ - 1)


@pytest.mark.parametrize("name", ["_errors", "_commands"])
def test_the_examples_run(source, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").symlink_to(source)
    result = doctest.testmod(importlib.import_module(f"precache.{name}"))
    assert result.attempted > 0 and result.failed == 0
