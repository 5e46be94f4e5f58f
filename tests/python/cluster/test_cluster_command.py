# SPDX-License-Identifier: Apache-2.0
"""`precache cluster`: options, quoting and messages."""

import re
import shlex
import subprocess

import pytest
import yaml

from tool import differing, files

pytest_plugins = ("tool_fixtures", "cluster_fixtures")

KUBERNETES = ("--image", "r/p:1", "--claim", "data:/data")
OWN = {"--parts", "--prepare-parts", "--at-once", "--cpus", "--memory", "--name"}
STEPS = {
    "--prepare",
    "--part",
    "--finish",
    "--status",
    "--watch",
    "--watch-seconds",
    "--jobs",
    "--dry-run",
    "--quiet",
    "--json",
}
# Each would be harmful, or lost, if it were not quoted.
WORDS = ["it's", "$HOME", "$(touch x)", "`touch x`", 'a"b', "a b", "a;b", "*", "~", "#x", "!", "a\\b", "é", "$$", "{x}"]


def options(tool, *command):
    return set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", tool.run(*command, "--help").out, re.MULTILINE))


@pytest.mark.parametrize(
    "scheduler, more", [("slurm", {"--time", "--partition", "--account"}), ("kubernetes", {"--image", "--claim"})]
)
def test_a_scheduler_takes_the_options_of_build(tool, scheduler, more):
    of_build = options(tool, "build")
    assert options(tool, "cluster", scheduler) == of_build - STEPS - {"--overwrite"} | OWN | more


def build_of(script):
    """The command as bash reads it."""
    line = next(line for line in script.splitlines() if line.startswith("build=("))
    done = subprocess.run(["bash", "-c", f'{line}; printf "%s\\0" "${{build[@]}}"'], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_arrives_as_it_was_given(tool, tmp_path, word):
    classes = f"/data/{word}"
    given = ["--classes", classes, "--label-regex", f"-{word}", "--no-shuffle", "--size", "64"]
    paths = [f"/data/{word}", f"/data/out {word}"]
    expected = {*paths, "--classes", classes, f"--label-regex=-{word}", "--no-shuffle", "--size", "64"}
    given[2:4] = [f"--label-regex=-{word}"]
    script = tool.run("cluster", "slurm", *paths, *given, "--parts", "3", cwd=tmp_path).out
    words = build_of(script)
    assert words[:4] == ["precache", "build", *paths] and words[-2:] == ["--jobs", "8"]
    assert set(words[2:-2]) == expected
    text = tool.run("cluster", "kubernetes", *paths, *given, "--parts", "3", *KUBERNETES, cwd=tmp_path).out
    for job in yaml.safe_load_all(text):
        command = job["spec"]["template"]["spec"]["containers"][0]["command"]
        assert all(each.replace("$", "$$") in command for each in expected), command
    assert not any(tmp_path.iterdir())


def steps_of(script):
    """The words of each step as bash hands them to the command."""
    (at_end,) = re.findall(r"^at_end=\((.*?)\)", script, re.MULTILINE)
    return build_of(script), shlex.split(at_end)


@pytest.mark.parametrize("file_format, index", [("tar", "dali,wids"), ("hdf5", "vds")])
def test_only_the_last_step_writes_indexes(tool, source, tmp_path, file_format, index):
    options = ("--size", "8", "--shards", "3", "--format", file_format, "--index", index)
    tool.run("build", source, tmp_path / "whole", *options, "--quiet")
    script = tool.run("cluster", "slurm", source, tmp_path / "slurm", *options, "--parts", "2", "--cpus", "1").out
    build, at_end = steps_of(script)
    for step in (["--prepare"], ["--part", "0/2"], ["--part", "1/2"], ["--finish", *at_end]):
        tool.run(*build[1:], *step)
    assert differing(files(tmp_path / "slurm"), files(tmp_path / "whole")) == []
    claims = ("--claim", f"a:{source.parent},b:{tmp_path}", "--image", "r/p:1", "--cpus", "1")
    text = tool.run("cluster", "kubernetes", source, tmp_path / "out", *options, "--parts", "1", *claims).out
    for job in yaml.safe_load_all(text):
        command = job["spec"]["template"]["spec"]["containers"][0]["command"]
        words = [word.replace("$(JOB_COMPLETION_INDEX)", "0").replace("$$", "$") for word in command[1:]]
        tool.run(*words)
    assert differing(files(tmp_path / "out"), files(tmp_path / "whole")) == []


def test_the_script_is_valid_for_bash_and_has_what_was_asked(tool):
    words = "--parts 40 --at-once 7 --cpus 3 --memory 5GiB --time 30 --name my-job --partition cpu --account me"
    script = tool.run("cluster", "slurm", "a", "b", *words.split()).out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    (resources,) = re.findall(r"^resources=\((.*)\)$", script, re.MULTILINE)
    asked = ["--cpus-per-task=3", "--mem=5120M", "--time=30", "--partition=cpu", "--account=me"]
    assert shlex.split(resources) == asked
    assert "\nparts=40\n" in script and '--array="0-$((parts - 1))%7"' in script and '--job-name="my-job-$1"' in script


CLAIMS = [
    ("/data/images", "/data/shards", {"precache-data": "/data"}),
    ("/data/a/images", "/data/shards", {"precache-data": "/data"}),
    ("/data/images", "/data/b/shards", {"precache-data": "/data"}),
    ("/in/images", "/out/shards", {"precache-source": "/in", "precache-shards": "/out"}),
    ("/images", "/shards", {"precache-source": "/images", "precache-shards": "/shards"}),
]


@pytest.mark.parametrize("source, out, expected", CLAIMS)
def test_placeholders_stand_for_image_and_claims_that_were_not_given(tool, source, out, expected):
    text = tool.run("cluster", "kubernetes", source, out, "--parts", "3").out
    assert "\n# Placeholders to replace: the image and claimName.\n" in text
    for job in yaml.safe_load_all(text):
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["image"].startswith("registry.example/precache:")
        names = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]}
        assert {names[each["name"]]: each["mountPath"] for each in container["volumeMounts"]} == expected
    given = tool.run("cluster", "kubernetes", source, out, "--parts", "3", "--image", "i", "--claim", "c:/").out
    assert "laceholder" not in given


@pytest.mark.parametrize("labels", ["none", "folder", "/data/labels.csv"])
def test_labels_that_pods_see_are_taken(tool, labels):
    words = ("/data/a", "/data/b", "--parts", "100000", "--labels", labels, *KUBERNETES)
    assert "completions: 100000\n" in tool.run("cluster", "kubernetes", *words).out


WRONG = [
    ("slurm a b", "--parts"),
    ("slurm a b --parts 0", "--parts"),
    ("slurm a b --parts 3 --size big", "--size"),
    ("slurm a b --parts 3 --part 0/3", "--part"),
    ("slurm a b --parts 3 --jobs 4", "--jobs"),
    ("slurm a b --parts 3 --memory big", "--memory"),
    ("slurm a b --parts 3 --name A", "--name"),
    ("slurm - b --parts 3", "standard input"),
    ("kubernetes data/a /data/b --parts 3", "absolute paths without --claim, got 'data/a'"),
    ("kubernetes /data/a data/b --parts 3 --image x", "absolute paths without --claim, got 'data/b'"),
    ("kubernetes /data/a /data/b --parts 3 --image x --claim data", "NAME:PATH"),
    ("kubernetes /data/a /data/b --parts 3 --image x --claim data:data", "NAME:PATH"),
    ("kubernetes /data/a /other/b --parts 3 --image x --claim data:/data", "OUT"),
    ("kubernetes /other/a /data/b --parts 3 --image x --claim data:/data", "SOURCE"),
    ("kubernetes a /data/b --parts 3 --image x --claim data:/data", "SOURCE must be below a path of --claim, got 'a'"),
    ("kubernetes /data/a /data/b --parts 3 --labels labels.csv --claim data:/data", "--labels must be below"),
    ("kubernetes /data/a /data/b --parts 3 --classes /etc/x", "--classes must be below"),
    ("kubernetes /data/a /data/b --parts 3 --split-file /x.csv", "--split-file must be below"),
    ("kubernetes /data/a /data/b --parts 3 --mask /masks", "--mask must be below"),
    ("kubernetes /data/a /data/b --parts 3 --proto x.pb --message m", "--proto must be below"),
    ("kubernetes /data/a /data/b --parts 100001", "--parts must be at most 100000 for Kubernetes, got 100001"),
    ("kubernetes /data/a /data/../b --parts 3 --image x --claim data:/data", "OUT"),
    ("nomad a b", "there is no command 'nomad'; the commands are slurm, kubernetes"),
    ("", "no command given; choose one of slurm, kubernetes"),
]


@pytest.mark.parametrize("words, telling", WRONG)
def test_a_wrong_request_is_refused(tool, words, telling):
    result = tool.run("cluster", *words.split(), expect=2)
    assert telling in result.err and result.out == ""


@pytest.mark.parametrize("path", ["a\nb", "a\tb", "a\x1bb", b"a\xffb"])
def test_a_path_that_a_reader_cannot_see_is_refused(tool, path):
    for where in ([path, "b"], ["a", path]):
        result = tool.run("cluster", "slurm", *where, "--parts", "3", expect=2)
        assert "UTF-8 without line breaks" in result.err and result.out == ""
