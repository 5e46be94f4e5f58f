# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings work as shown, the types are right, and all public names have a docstring."""

import doctest
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import typing

import pytest

import precache
from conftest import REPOSITORY, TIMEOUT_SECONDS

pytest_plugins = ("package_fixtures",)

OTHERS = {"__main__", "_reader", "_commands", "_process", "_progress"}  # test_commands.py has those of the commands
MODULES = sorted({module.name for module in pkgutil.iter_modules(precache.__path__)} - OTHERS)
WITH_EXAMPLES = {"", "_dataset", "_errors", "cluster", "tensorflow", "torch", "transforms"}

USER = """
import precache
import precache.tensorflow
import precache.torch

for images, labels in precache.torch.Loader("shards"):
    images.pin_memory()
    labels.pin_memory()
with precache.torch.Loader("shards") as loader:
    tensors, _ = next(iter(loader))
    tensors.permute(0, 2, 3, 1)
arrays = next(iter(precache.Loader("shards")))[0]
arrays.astype("float32")
precache.open("shards", "val", verify_on_read=True, spec=precache.Spec("uint8", "chw", (3, 8, 8)))
precache.torch.Loader("shards", 4, shuffle="full", crop=(8, 8), normalize=(0.5, [0.1, 0.2, 0.3]), channels_last=True, prefetch=2)
precache.torch.Loader("shards", 4, shuffle=True, split="val", last_batch="even", batch_transform=max, as_dict=("a", "b"))
precache.torch.Dataset("shards", split="val", max_open_shards=3, pil=True)
precache.open("shards", indices=range(3), only_classes=["a", 2])
precache.tensorflow.dataset("shards", 4, rank=1, world_size=2, layout="hwc", epoch=3)
"""

# Each line with a call is wrong.
WRONG = """
import precache
import precache.tensorflow
import precache.torch

precache.open("x", writabel=True)
precache.open("x", writable="yes")
precache.Loader("x", shufle="full")
precache.torch.Loader("x", 4, shufle="full")
precache.torch.Loader("x", 4, shuffle="fully")
precache.torch.Loader("x", 4, layout="hwc")
precache.torch.Dataset("x", splitt="val")
precache.tensorflow.dataset("x", 4, sead=1)
"""


@pytest.fixture(scope="module")
def folder(build, animals, tmp_path_factory):
    """The folder of the examples: tensors of 3x32x32."""
    return str(build(animals[0], tmp_path_factory.mktemp("docs") / "out", "--size", "32").out)


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples(folder, animals, tmp_path, name):
    module = importlib.import_module(f"precache.{name}" if name else "precache")
    scope = {"precache": precache, "folder": folder, "dataset": precache.open(folder)}
    scope |= {"images": animals[0], "out": tmp_path / "out"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(recurse=name != "").find(module, module.__name__, extraglobs=scope):
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 0 or name not in WITH_EXAMPLES


def test_examples_of_public_classes(folder):
    """doctest does not find them in a module: classes have the package's name, their methods that of the module."""
    scope = {**vars(precache), "precache": precache, "folder": folder, "dataset": precache.open(folder)}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    names = set()
    for public in filter(inspect.isclass, vars(precache).values()):
        for test in doctest.DocTestFinder().find(public, public.__name__, module=False, globs=scope):
            runner.run(test)
            names |= {test.name} if test.examples else set()
    assert runner.failures == 0
    assert names >= {
        "Dataset",
        "Dataset.gather",
        "Dataset.keys",
        "Loader",
        "Loader.state_dict",
        "Loader.load_state_dict",
        "Spec",
    }


def test_public_classes_show_their_public_name(run):
    import precache.torch

    public = [getattr(precache, name) for name in precache.__all__]
    assert {thing.__module__ for thing in public if inspect.isclass(thing)} == {"precache"}
    assert {precache.torch.Loader.__module__, precache.torch.Dataset.__module__} == {"precache.torch"}
    assert pickle.loads(pickle.dumps(precache.Crop(3, 4))) == (3, 4, "random")
    assert run("--version").stdout.decode().strip() == f"precache {precache.__version__}"


def test_all_public_names_have_a_docstring():
    import precache.tensorflow
    import precache.torch

    public = [(module, name) for module in (precache, precache.torch, precache.tensorflow) for name in module.__all__]
    missing = []
    for module, name in public:
        thing = getattr(module, name)
        members = (
            [member for key, member in vars(thing).items() if not key.startswith("_")] if inspect.isclass(thing) else []
        )
        for one in (thing, *members):
            if (inspect.isclass(one) or inspect.isfunction(one) or isinstance(one, property)) and not inspect.getdoc(
                one
            ):
                missing.append((module.__name__, name, one))
    assert not missing


def check_types(folder, program):
    """The output of mypy for the installed package, which has the stub of the native module, and for a program that uses it.

    The types of torch and other libraries are not checked."""
    pytest.importorskip("mypy")
    (folder / "user.py").write_text(program)
    words = [
        "--config-file",
        str(REPOSITORY / "pyproject.toml"),
        "--cache-dir",
        str(REPOSITORY / "build" / "mypy"),
        "--no-error-summary",
        "--follow-imports",
        "silent",
        "--python-executable",
        sys.executable,
        "-p",
        "precache",
        "-m",
        "user",
    ]
    command = [sys.executable, "-m", "mypy", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.splitlines()


def test_types(tmp_path):
    assert check_types(tmp_path, USER) == []


def test_wrong_options_are_type_errors(tmp_path):
    said = check_types(tmp_path, WRONG)
    wrong = [number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith(")")]
    assert [int(line.split(":")[1]) for line in said if ": error:" in line] == wrong, said


def test_options_have_the_types_of_the_functions():
    from precache import _keywords

    pairs = {
        _keywords.BuildOptions: precache.build,
        _keywords.SplitOptions: precache.Dataset.__init__,
        _keywords.HookOptions: precache.Loader.__init__,
        _keywords.LayoutOptions: precache.Loader.__init__,
    }
    for options, function in pairs.items():
        taken = typing.get_type_hints(function)
        for name, hint in typing.get_type_hints(options).items():
            assert hint == taken[name], (options.__name__, name)


def test_typed_options_are_those_of_the_functions():
    import precache.tensorflow
    import precache.torch
    from precache import _dataloader, _keywords

    def named(function, *others):
        return set(inspect.signature(function).parameters) - {"dataset", "path", "source", "options", *others}

    laid_out = set(_keywords.LayoutOptions.__annotations__)
    assert set(_keywords.SplitOptions.__annotations__) == named(precache.open) == named(precache.Dataset)
    hooks = {"batch_transform", "as_dict"}  # tf.data has map() for these
    assert laid_out | hooks == named(precache.Loader, "batch_size")
    assert set(_keywords.HookOptions.__annotations__) == set(_keywords.LoaderOptions.__annotations__) | hooks
    of_torch = {"layout", "writable", "views"}  # precache.torch.Loader declares these itself, or has none
    assert laid_out - of_torch == set(_keywords.LoaderOptions.__annotations__)
    assert not named(precache.tensorflow.dataset) & laid_out
    taken = set(_keywords.TorchLoaderOptions.__annotations__) - set(_keywords.HookOptions.__annotations__)
    assert taken == {"num_workers", *_dataloader._DO_NOTHING}
