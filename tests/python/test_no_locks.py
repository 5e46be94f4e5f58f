# SPDX-License-Identifier: Apache-2.0
"""Two attempts at one job that do not see each other's locks end with equal bytes, even if one of them dies."""

import contextlib
import shutil
import subprocess

import pytest

import images
from conftest import REPOSITORY
from shards import FORMATS
from tool import Gate, differing, files, finish, wait_until

pytest_plugins = ("tool_fixtures",)

CALLS = "open,mkdir,fallocate,pwrite,fsync,rename,unlink"
OPTIONS = ("--size", "8", "--shards", "3", "--jobs", "1", "--quiet")
RETRY = 3  # the exit status after which a retry helps


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number in range(6):
        images.draw_unique(folder / f"class{number % 2}" / f"{number:02}.png", number)
    (folder / "class0" / "bad.png").write_bytes(b"not an image")
    return folder


@pytest.fixture(scope="module")
def jobs(tool, source, tmp_path_factory):
    """Commands without OUT, and the files of an undisturbed run of each."""
    folder = tmp_path_factory.mktemp("jobs")
    built = folder / "built"
    tool.run("build", source, built, *OPTIONS, "--max-bad", "50%")
    found = {f"build {name}": (["build", source], [*OPTIONS, "--max-bad", "50%", "--format", name]) for name in FORMATS}
    found["convert"] = (["convert", built], ["--format", "hdf5", "--jobs", "1", "--quiet"])
    found["pack"] = (["pack", source], ["--shards", "3", "--jobs", "1", "--quiet"])
    results = {}
    for name, (begin, options) in found.items():
        out = folder / name.replace(" ", "-")
        tool.run(*begin, out, *options)
        results[name] = (lambda out, begin=begin, options=options: [*begin, out, *options], files(out))
    return results


@pytest.fixture(scope="module")
def no_locks(interference):
    """no_locks(settings...): the environment of a process that sees no locks, disturbed as fail_io.c describes."""
    library = interference.folder / "no_flock.so"
    source = REPOSITORY / "tests" / "support" / "no_flock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)

    def environment(**settings):
        env = interference.environment(**settings)
        return {**env, "LD_PRELOAD": f"{library}:{env['LD_PRELOAD']}"}

    return environment


@contextlib.contextmanager
def held(tool, command, env, gate):
    """Starts a process and waits until it is held at its gate or has ended."""
    with tool.start(*command, env=env) as process:
        try:
            wait_until_held = lambda: gate.is_reached() or process.poll() is not None
            with contextlib.suppress(AssertionError):
                wait_until(wait_until_held, process)
            yield process
        finally:
            process.kill()


def steps(all_kills, count):
    """The calls at which the first attempt is held: all, or a sample that differs from job to job."""
    return range(count) if all_kills else range(count % 7, count, 29)


@pytest.fixture(scope="session")
def all_kills(request):
    return request.config.getoption("all_kills")


@pytest.mark.parametrize("end", ["killed", "released"])
@pytest.mark.parametrize("job", ["build tar", "build tfrecord", "build hdf5", "convert", "pack"])
def test_a_second_attempt_completes_the_job_of_a_stuck_one(
    tool, interference, no_locks, jobs, quick_folder, all_kills, job, end
):
    command_for, final = jobs[job]
    met = 0
    for step in steps(all_kills, 200):
        out = quick_folder / str(step)
        interference.gates += 1
        gate = Gate(interference.folder / f"gate{interference.gates}")
        env = no_locks(calls=CALLS, path=out, after=step, times=1, gate=gate.folder)
        with held(tool, command_for(out), env, gate) as first:
            met += gate.is_reached()
            second = finish(tool.start(*command_for(out), env=no_locks()))
            assert second.code == 0, f"next to an attempt held at call {step}: {second.err}"
            assert differing(published(out), final) == [], f"next to an attempt held at call {step}"
            if end == "released":
                gate.open()
                result = finish(first)
                assert result.code in (0, RETRY), result.err
        assert differing(published(out), final) == [], f"after an attempt held at call {step} was {end}"
        tool.run("verify", out)
        tool.run(*command_for(out))
        assert differing(files(out), final) == [], "something is left in the work folder"
    assert met > 2


def published(out):
    """The files of OUT without those that an attempt works on."""
    return {name: data for name, data in files(out).items() if ".precache" not in name and not name.endswith(".tmp")}


@pytest.mark.parametrize("file_format", FORMATS)
def test_two_attempts_at_one_part_and_a_kill_leave_no_holes(
    tool, interference, no_locks, source, tmp_path, file_format
):
    """Like a speculative copy in Spark or a replaced Pod in Kubernetes."""
    options = (*OPTIONS, "--max-bad", "50%", "--format", file_format)
    tool.run("build", source, tmp_path / "whole", *options)
    out = tmp_path / "out"
    gate = Gate(tmp_path / "gate")
    env = no_locks(calls="pwrite", path=".part", after=1, times=1, gate=gate.folder)
    with held(tool, ["build", source, out, *options, "--part", "0/2"], env, gate) as first:
        assert gate.is_reached()
        tool.run("build", source, out, *options, "--part", "0/2", env=no_locks())
        first.kill()
    tool.run("build", source, out, *options, "--part", "1/2", env=no_locks())
    tool.run("build", source, out, *options, "--finish", env=no_locks())
    assert differing(files(out), files(tmp_path / "whole")) == []
    tool.run("verify", out)


def test_results_of_another_plan_do_not_count(tool, no_locks, source, tmp_path):
    """A late attempt of a job that was replaced in the meantime."""
    out = tmp_path / "out"
    tool.run("build", source, out, *OPTIONS, "--max-bad", "50%", "--part", "0/3")
    result = out / ".precache" / "train" / "train-000000.tar.json"
    late = result.read_bytes()
    tool.run("build", source, out, *OPTIONS, "--max-bad", "50%", "--seed", "9", "--overwrite")
    tool.run("build", source, tmp_path / "whole", *OPTIONS, "--max-bad", "50%", "--seed", "9")
    assert differing(files(out), files(tmp_path / "whole")) == []
    # The same again, with the late result in the folder of the new job.
    other = tmp_path / "other"
    tool.run("build", source, other, *OPTIONS, "--max-bad", "50%", "--seed", "9", "--part", "0/3")
    (other / ".precache" / "train" / "train-000000.tar.json").write_bytes(late)
    tool.run("build", source, other, *OPTIONS, "--max-bad", "50%", "--seed", "9")
    assert differing(files(other), files(tmp_path / "whole")) == []


@pytest.mark.parametrize("call", ["plan.", "job.json"])
def test_two_preparations_of_two_states_of_the_source_do_not_mix(tool, interference, no_locks, source, tmp_path, call):
    """The first one is held before it renames a file. The source changes, and another one prepares meanwhile."""
    changed, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(source, changed, copy_function=shutil.copy2)
    command = ["build", changed, out, *OPTIONS, "--max-bad", "50%"]
    gate = Gate(tmp_path / "gate")
    env = no_locks(calls="rename", path=f"/{call}", times=1, gate=gate.folder)
    with held(tool, [*command, "--prepare"], env, gate) as first:
        assert gate.is_reached()
        victim = changed / "class1" / "03.png"
        images.draw_unique(victim, 99)
        tool.run("build", changed, tmp_path / "whole", *OPTIONS, "--max-bad", "50%")
        tool.run(*command, "--prepare", env=no_locks())
        tool.run(*command, "--part", "0/3", env=no_locks())
        gate.open()
        assert finish(first).code in (0, RETRY)
    # The last rename of job.json wins. If it was that of the first, a part names the image that has changed.
    parts = [finish(tool.start(*command, "--part", f"{part}/3", env=no_locks())) for part in range(3)]
    if any(part.code for part in parts):
        (error,) = [part.err for part in parts if part.code != 0]
        assert f"'{victim}'" in error and "has changed since it was listed" in error
        tool.run(*command, "--prepare", "--overwrite", env=no_locks())
        for part in range(3):
            tool.run(*command, "--part", f"{part}/3", env=no_locks())
    tool.run(*command, "--finish", env=no_locks())
    assert differing(files(out), files(tmp_path / "whole")) == []


def test_an_attempt_whose_job_was_replaced_publishes_nothing(tool, interference, no_locks, source, tmp_path):
    out = tmp_path / "out"
    gate = Gate(tmp_path / "gate")
    command = ["build", source, out, *OPTIONS, "--max-bad", "50%"]
    env = no_locks(calls="fsync", path=".part", times=1, gate=gate.folder)
    with held(tool, command, env, gate) as first:
        assert gate.is_reached()
        tool.run(*command, "--seed", "9", "--overwrite", env=no_locks())
        before = files(out)
        gate.open()
        result = finish(first)
        assert result.code == RETRY and "another process has finished or replaced the job" in result.err
    assert published(out) == before
    tool.run("verify", out)


def test_a_split_that_was_finished_meanwhile_stays_in_the_manifest(tool, no_locks, source, tmp_path):
    out = tmp_path / "out"
    gate = Gate(tmp_path / "gate")
    options = (*OPTIONS, "--max-bad", "50%")
    env = no_locks(calls="fsync", path=".part", times=1, gate=gate.folder)
    with held(tool, ["build", source, out, *options], env, gate) as first:
        assert gate.is_reached()
        tool.run("build", source, out, *options, "--split", "val", env=no_locks())
        gate.open()
        result = finish(first)
        assert result.code == 0, result.err
    for split in ("train", "val"):
        assert "already complete" in tool.run("build", source, out, *options, "--split", split).out
    tool.run("verify", out)


def test_a_late_rename_of_a_replaced_job_is_noticed(tool, no_locks, source, tmp_path):
    """It is held between its last check and the rename, while another job writes its last shard."""
    out = tmp_path / "out"
    late, busy = Gate(tmp_path / "late"), Gate(tmp_path / "busy")
    command = ["build", source, out, *OPTIONS, "--max-bad", "50%"]
    env = no_locks(calls="rename", path="/train-000000.tar", after=1, times=1, gate=late.folder)
    with held(tool, command, env, late) as first:
        assert late.is_reached()
        env = no_locks(calls="fsync", path="train-000002.tar.", times=1, gate=busy.folder)
        second_command = [*command, "--seed", "9", "--overwrite"]
        with held(tool, second_command, env, busy) as second:
            assert busy.is_reached()
            late.open()
            finish(first)
            busy.open()
            result = finish(second)
    assert result.code in (0, RETRY), result.err
    tool.run(*second_command)
    tool.run("verify", out)
    tool.run("build", source, tmp_path / "whole", *OPTIONS, "--max-bad", "50%", "--seed", "9")
    assert differing(files(out), files(tmp_path / "whole")) == []
