# SPDX-License-Identifier: Apache-2.0
"""The script of `precache cluster slurm` on a real Slurm of three nodes: all ends with the bytes of a single build."""

import os
import tempfile
from pathlib import Path

import pytest
from engines import PARTS, SAMPLES, WORDS, need, wait_until
from slurm_cluster import Slurm

from tool import differing, files

pytest_plugins = ("cluster_fixtures",)

SMALL = ("--parts", str(PARTS), "--cpus", "1", "--memory", "100MiB")

RETRIES = 4  # of a job that ended with status 3

# Stands for precache on the PATH: the first attempt at a part may do something else.
WRAPPER = """\
#!/bin/sh
case "$*" in *--prepare\\ */*) part=share;; *--part\\ *) part=${{*#*--part }} part=${{part%%/*}};; *) part=none;; esac
echo "$part" >> '{folder}/attempts'
script='{folder}/first-attempt-'$part
if mv "$script" "$script.$$" 2>/dev/null; then exec sh "$script.$$"; fi
exec '{precache}' "$@"
"""


@pytest.fixture(scope="module")
def slurm():
    need(programs=("sbatch", "squeue", "scontrol", "munged", "slurmctld", "slurmd"))
    with tempfile.TemporaryDirectory(prefix="slurm") as folder, Slurm(Path(folder) / "slurm") as cluster:
        yield cluster


@pytest.fixture
def submit(slurm, run, precache, source, tmp_path):
    """submit({part: first attempt}): submits a build to tmp_path/out, and returns the numbers of its jobs."""

    def submit_build(script, *more):
        for part, command in script.items():
            (tmp_path / f"first-attempt-{part}").write_text(command)
        (tmp_path / "bin").mkdir()
        wrapper = tmp_path / "bin" / "precache"
        wrapper.write_text(WRAPPER.format(folder=tmp_path, precache=precache))
        wrapper.chmod(0o755)
        text = run("cluster", "slurm", source, tmp_path / "out", *WORDS, *SMALL, *more).stdout.decode()
        slurm.environment["PATH"] = f"{wrapper.parent}:{os.environ['PATH']}"
        said = slurm.call("bash", input=text, cwd=tmp_path)
        return [word.rstrip(",\n") for word in said.split() if word.rstrip(",").isdigit()]

    return submit_build


def attempts(folder, part):
    return (folder / "attempts").read_text().split().count(str(part))


def logs(folder):
    return "".join(f"{path.name}: {path.read_text()}" for path in sorted(folder.glob("slurm-*.out")))


def test_faults_on_slurm_leave_the_bytes_of_a_single_build(slurm, submit, whole, tmp_path):
    """Parts that end with status 3, one that is requeued, and one whose node is lost.

    The last of an array has the number of the array as its SLURM_JOB_ID."""
    started = tmp_path / "started-{}"
    hold = f"touch {started}; sleep 1000"
    script = {1: "exit 3", PARTS - 1: "exit 3", 2: hold.format(2), 4: hold.format(4)}
    *_, array, _ = submit(script, "--prepare-parts", "2")
    wait_until((tmp_path / "started-2").exists, "part 2 starts")
    slurm.call("scontrol", "requeue", f"{array}_2")
    wait_until((tmp_path / "started-4").exists, "part 4 starts")
    wait_until(lambda: slurm.jobs()[f"{array}_4"][1], "part 4 has a node")
    slurm.lose_node(slurm.jobs()[f"{array}_4"][1])
    slurm.wait_for_jobs()
    assert [attempts(tmp_path, part) for part in range(PARTS)] == [1, 2, 2, 1, 2, 2], logs(tmp_path)
    assert attempts(tmp_path, "share") == 2, logs(tmp_path)
    assert differing(files(tmp_path / "out"), whole) == [], logs(tmp_path)


def held(folder, part):
    """A first attempt that waits to be stopped, as precache stops: cleanly, by SIGTERM."""
    stop = f"touch '{folder}/stopped-{part}'; exit 143"
    return f"trap \"{stop}\" TERM; touch '{folder}/started-{part}'; while :; do sleep 0.1; done"


def test_a_part_that_is_preempted_runs_again(slurm, submit, whole, tmp_path, every_cluster_test):
    _, array, _ = submit({2: held(tmp_path, 2)})
    wait_until((tmp_path / "started-2").exists, "part 2 starts")
    wait_until(lambda: slurm.jobs()[f"{array}_2"][1], "part 2 has a node")
    node = slurm.jobs()[f"{array}_2"][1]
    urgent = ("--partition=urgent", f"--nodelist={node}", "--mem=100M", "--wrap", f"touch '{tmp_path}/urgent'")
    slurm.call("sbatch", *urgent, cwd=tmp_path)
    slurm.wait_for_jobs()
    assert (tmp_path / "urgent").exists() and (tmp_path / "stopped-2").exists(), logs(tmp_path)
    assert [attempts(tmp_path, part) for part in range(PARTS)] == [1, 1, 2, 1, 1, 1], logs(tmp_path)
    assert differing(files(tmp_path / "out"), whole) == [], logs(tmp_path)


def test_a_part_that_meets_its_time_limit_stops_and_runs_again(slurm, submit, whole, tmp_path, every_cluster_test):
    """Slurm sends SIGUSR1 to the shell two minutes before the limit, as scancel does here."""
    _, array, _ = submit({PARTS - 1: held(tmp_path, PARTS - 1)})
    wait_until((tmp_path / f"started-{PARTS - 1}").exists, "the last part starts")
    slurm.call("scancel", "--batch", "--signal=USR1", f"{array}_{PARTS - 1}")
    slurm.wait_for_jobs()
    assert (tmp_path / f"stopped-{PARTS - 1}").exists(), logs(tmp_path)
    assert [attempts(tmp_path, part) for part in range(PARTS)] == [1, 1, 1, 1, 1, 2], logs(tmp_path)
    assert differing(files(tmp_path / "out"), whole) == [], logs(tmp_path)


def test_a_part_that_fails_again_and_again_ends_the_build(slurm, submit, tmp_path, every_cluster_test):
    """SLURM_RESTART_COUNT counts the attempts."""
    _, array, finish = submit({3: f"cp \"$0\" '{tmp_path}/first-attempt-3'; exit 3"})
    slurm.wait_for_jobs()
    assert attempts(tmp_path, 3) == 1 + RETRIES, logs(tmp_path)
    assert slurm.state_of(finish) == "CANCELLED"
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_a_part_that_cannot_succeed_is_not_repeated_and_ends_the_build(slurm, submit, tmp_path, every_cluster_test):
    prepare, _, finish = submit({3: "exit 2"})
    slurm.wait_for_jobs()
    assert attempts(tmp_path, 3) == 1
    assert (slurm.state_of(prepare), slurm.state_of(finish)) == ("COMPLETED", "CANCELLED")
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_the_sample_makes_the_bytes_of_a_single_build(slurm, precache, source, whole, tmp_path, every_cluster_test):
    words = (SAMPLES / "slurm.sh", source, tmp_path / "out", PARTS, *WORDS)
    slurm.environment.update(CPUS="1", PATH=f"{precache.parent}:{os.environ['PATH']}")
    slurm.call("bash", *words, cwd=tmp_path)
    slurm.wait_for_jobs()
    assert differing(files(tmp_path / "out"), whole) == [], logs(tmp_path)
