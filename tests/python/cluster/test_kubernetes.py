# SPDX-License-Identifier: Apache-2.0
"""The Jobs of `precache cluster kubernetes`: they match the schemas of Kubernetes, and their command lines make the bytes
of a single build. No real cluster runs here."""

import os
import re
import subprocess

import pytest
import yaml
from engines import PARTS, SAMPLES, WORDS, need

from conftest import TIMEOUT_SECONDS
from tool import differing, files

pytest_plugins = ("cluster_fixtures",)

VERSIONS = ("1.29", "1.37")  # the oldest that is supported, and the newest that is known
SAMPLE = SAMPLES / "kubernetes.yaml"


@pytest.fixture
def printed(run, source, tmp_path):
    """Source and shards are below the paths of claims."""
    claims = f"--claim=images:{source.parent},shards:{tmp_path}"
    words = ("--parts", PARTS, "--at-once", 2, "--cpus", 1, "--image", "registry.example/precache:0.1", claims)
    return run("cluster", "kubernetes", source, tmp_path / "out", *WORDS, *map(str, words)).stdout.decode()


@pytest.fixture
def jobs(printed):
    return {job["metadata"]["name"]: job["spec"] for job in yaml.safe_load_all(printed)}


def expanded(word, variables):
    """A word of a command as Kubernetes hands it to a container."""
    pattern = r"\$(?:\$|\(([^)]*)\))"
    return re.sub(pattern, lambda found: variables.get(found[1], found[0]) if found[1] else "$", word)


def start(container, folder, **variables):
    """Starts the command of a container, with the tool under test on its PATH."""
    environment = {**os.environ, **variables, "PATH": f"{folder}:{os.environ['PATH']}"}
    words = [expanded(word, variables) for word in container["command"]]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def succeed(container, folder, **variables):
    process = start(container, folder, **variables)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, (container["command"], out, err)


@pytest.fixture
def path(precache, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "precache").symlink_to(precache)
    return folder


def pod(spec):
    return spec["template"]["spec"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_jobs_match_the_schema(run, printed, version):
    need(packages=("kubernetes_validate",))
    import kubernetes_validate

    placeholders = run("cluster", "kubernetes", "/data/images", "/data/shards", "--parts", "3").stdout.decode()
    texts = (printed, placeholders, SAMPLE.read_text())
    for job in [job for text in texts for job in yaml.safe_load_all(text)]:
        kubernetes_validate.validate(job, version, strict=True)
        misspelt = {**job, "spec": {**job["spec"], "backofLimit": 1}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(misspelt, version, strict=True)


def test_the_command_lines_make_the_bytes_of_a_single_build(jobs, path, whole, tmp_path):
    prepare, parts, finish = (pod(jobs[f"precache-{step}"]) for step in ("prepare", "parts", "finish"))
    assert jobs["precache-parts"]["completions"] == PARTS
    succeed(prepare["containers"][0], path)
    for index in reversed(range(PARTS)):
        variables = {"JOB_COMPLETION_INDEX": str(index)}
        # By default, Kubernetes replaces a Pod while the old one still runs.
        old = start(parts["containers"][0], path, **variables)
        succeed(parts["containers"][0], path, **variables)
        old.communicate(timeout=TIMEOUT_SECONDS)
        assert old.returncode == 0
    succeed(finish["containers"][0], path)
    assert differing(files(tmp_path / "out"), whole) == []


def test_several_pods_list_the_source(run, path, source, whole, tmp_path):
    claims = f"--claim=images:{source.parent},shards:{tmp_path}"
    words = (*WORDS, "--parts", "1", "--prepare-parts", "3", "--cpus", "1", "--image", "r/p:1", claims)
    text = run("cluster", "kubernetes", source, tmp_path / "out", *words).stdout.decode()
    specs = {job["metadata"]["name"]: job["spec"] for job in yaml.safe_load_all(text)}
    assert list(specs) == [f"precache-{step}" for step in ("shares", "prepare", "parts", "finish")]
    assert [bool(spec.get("suspend")) for spec in specs.values()] == [False, True, True, True]
    assert specs["precache-shares"]["completions"] == 3
    for spec in specs.values():
        for index in range(spec.get("completions", 1)):
            succeed(pod(spec)["containers"][0], path, JOB_COMPLETION_INDEX=str(index))
    assert differing(files(tmp_path / "out"), whole) == []
    assert start_jobs(text, tmp_path, failing=None) == (0, list(specs))


def test_no_job_starts_before_the_one_before_it_is_complete(jobs, printed, tmp_path):
    """The first lines say how to start them."""
    assert [bool(spec.get("suspend")) for spec in jobs.values()] == [False, True, True]
    assert start_jobs(printed, tmp_path, failing=None) == (0, list(jobs))


@pytest.mark.parametrize("failing", ["prepare", "parts", "finish"])
def test_no_job_starts_after_one_that_failed(jobs, printed, tmp_path, failing):
    code, started = start_jobs(printed, tmp_path, failing=f"precache-{failing}")
    assert code != 0 and started == list(jobs)[: list(jobs).index(f"precache-{failing}") + 1]


# Answers as a cluster would whose Jobs end at the second look. Words are those of the printed commands.
KUBECTL = """\
#!/bin/bash
case "$1" in
  apply) echo '{first}' >> started ;;
  patch) [[ $2 = job && $4 = --patch && $5 = '{{"spec":{{"suspend":false}}}}' ]] && echo "$3" >> started ;;
  get)
    [[ $2 = job ]] && grep -q -x "$3" started || exit 1
    if [[ ! -e looked-$3 ]]; then touch "looked-$3"; printf Suspended
    elif [[ $3 = '{failing}' ]]; then printf 'Suspended FailureTarget Failed'
    else printf 'Suspended SuccessCriteriaMet Complete'
    fi ;;
  *) exit 1 ;;
esac
"""


def start_jobs(printed, folder, failing):
    """Runs the commands of the first lines; returns their exit code and the Jobs that were started."""
    first = next(yaml.safe_load_all(printed))["metadata"]["name"]
    (folder / "kubectl").write_text(KUBECTL.format(failing=failing, first=first))
    (folder / "kubectl").chmod(0o755)
    (folder / "sleep").symlink_to("/bin/true")
    commands = "".join(line[4:] + "\n" for line in printed.splitlines() if line.startswith("#   "))
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
    )
    return done.returncode, (folder / "started").read_text().split()


def test_attempts_that_cannot_succeed_are_not_repeated(jobs):
    for spec in jobs.values():
        rules = spec["podFailurePolicy"]["rules"]
        fail = next(rule["onExitCodes"] for rule in rules if rule["action"] == "FailJob")
        assert (fail["operator"], fail["values"]) == ("In", [1, 2, 4, 5])
        assert fail["containerName"] in [container["name"] for container in pod(spec)["containers"]]
        assert pod(spec)["restartPolicy"] == "Never"  # the rules need it


def test_the_sample_runs_a_part(path, source, whole, tmp_path, run):
    container = pod(yaml.safe_load(SAMPLE.read_text())["spec"])["containers"][0]
    places = {"/data/images": str(source), "/data/shards": str(tmp_path / "out"), "8": "1"}
    command = [places.get(word, word) for word in container["command"]]
    command = [*command, *WORDS]
    run("build", source, tmp_path / "out", *WORDS, "--prepare")
    for index in range(12):  # the other parts have no shard
        succeed({"command": command}, path, JOB_COMPLETION_INDEX=str(index))
    run("build", source, tmp_path / "out", *WORDS, "--finish")
    assert differing(files(tmp_path / "out"), whole) == []
