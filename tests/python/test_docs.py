# SPDX-License-Identifier: Apache-2.0
"""What the documents say is what happens."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shards import Dataset

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "release" / "precache"
DRAW = ROOT / "build" / "release" / "samples" / "draw_dataset"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(document, language=""):
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)


def test_the_readme_shows_the_true_output_of_its_command(tmp_path):
    shown = next(block for block in blocks(ROOT / "README.md") if block.startswith("$ precache build"))
    command, expected = shown.split("\n", 1)
    work = tmp_path / "build" / "quickstart"
    work.mkdir(parents=True)
    subprocess.run([DRAW, work / "images"], check=True, capture_output=True)
    arguments = command.removeprefix("$ precache ").split()
    # stdout and stderr as a terminal would show them, without the progress
    result = subprocess.run([TOOL, *arguments, "--quiet"], cwd=tmp_path, check=True, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def without_time(text):
        return re.sub(r"^time .*$", "time", text, flags=re.MULTILINE)

    assert without_time(result.stdout) == without_time(expected)


@pytest.mark.parametrize("name", ["index", "inspect", "verify"])
def test_the_page_on_the_command_line_shows_the_true_output_of_commands(tmp_path, name):
    shown = next(block for block in blocks(ROOT / "docs" / "cli.md") if block.startswith(f"$ precache {name}"))
    command, expected = shown.split("\n", 1)
    work = tmp_path / "build" / "quickstart"
    work.mkdir(parents=True)
    subprocess.run([DRAW, work / "images"], check=True, capture_output=True)
    subprocess.run([TOOL, "build", work / "images", work / "shards", "--quiet"], check=True, capture_output=True)
    arguments = command.removeprefix("$ precache ").split()
    result = subprocess.run([TOOL, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert result.stdout == expected


def test_the_page_on_the_command_line_shows_the_true_plan_of_a_packed_tar(tmp_path):
    shown = next(block for block in blocks(ROOT / "docs" / "cli.md") if block.startswith("$ tar"))
    pack, build, expected = shown.split("\n", 2)
    work = tmp_path / "build" / "quickstart"
    work.mkdir(parents=True)
    subprocess.run([DRAW, work / "images"], check=True, capture_output=True)
    subprocess.run(pack.removeprefix("$ ").split(), cwd=tmp_path, check=True)
    arguments = build.removeprefix("$ precache ").split()
    result = subprocess.run([TOOL, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)

    def without_free(text):
        return re.sub(r", [^,]* free$", "", text, flags=re.MULTILINE)

    assert without_free(result.stdout) == without_free(expected)


@pytest.mark.parametrize("number", [0, 1])
def test_the_page_on_the_command_line_shows_the_true_output_of_convert(tmp_path, number):
    shown = [block for block in blocks(ROOT / "docs" / "cli.md") if block.startswith("$ precache convert")][number]
    command, expected = shown.split("\n", 1)
    work = tmp_path / "build" / "quickstart"
    work.mkdir(parents=True)
    subprocess.run([DRAW, work / "images"], check=True, capture_output=True)
    subprocess.run([TOOL, "build", work / "images", work / "shards", "--quiet"], check=True, capture_output=True)
    arguments = command.removeprefix("$ precache ").split()
    result = subprocess.run([TOOL, *arguments, "--quiet"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert re.sub("^time .*$", "time", result.stdout, flags=re.MULTILINE) == \
        re.sub("^time .*$", "time", expected, flags=re.MULTILINE)


def test_the_snippet_of_the_reader_compiles(tmp_path):
    snippet, = blocks(ROOT / "docs" / "reader.md", "cpp")
    include, body = snippet.split("\n\n", 1)
    (tmp_path / "snippet.cpp").write_text(
        f"{include}\nvoid train(const std::byte*, std::span<const std::int64_t>);\nint main() {{\n{body}}}\n")
    folders = [f"-I{ROOT / library / 'include'}" for library in ("formats", "reader")]
    subprocess.run(["c++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", *folders, tmp_path / "snippet.cpp"], check=True)


@pytest.mark.parametrize("number, file_format", [*enumerate(["tar", "tfrecord", "tar", "hdf5", "tfrecord"])])
def test_the_snippets_for_other_readers_run(tmp_path, monkeypatch, number, file_format):
    snippets = blocks(ROOT / "docs" / "indexes.md", "python")
    assert len(snippets) == 5
    subprocess.run([DRAW, tmp_path / "images"], check=True, capture_output=True)
    subprocess.run([TOOL, "build", tmp_path / "images", tmp_path / "shards", "--format", file_format, "--shards", "7", "--quiet"],
                   check=True, capture_output=True)
    subprocess.run([TOOL, "index", tmp_path / "shards"], check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(snippets[number], scope)
    batched = "images" in scope
    image, label = (np.asarray(scope["images"].at(7)), scope["labels"][7]) if batched else (scope["image"], scope["label"])
    dataset = Dataset(tmp_path / "shards")
    samples = [sample for shard in dataset.shards() for sample in dataset.read_shard(shard)]
    if "builder" not in scope:  # TensorFlow Datasets mixes shards
        samples = [samples[7]]
    assert any((np.asarray(image) == sample.array).all() and int(np.asarray(label).item()) == sample.label for sample in samples)


def test_the_permutation_page_has_a_program_that_gives_its_numbers():
    program, = blocks(ROOT / "docs" / "formats" / "permutation.md", "python")
    exec(program, {})  # it ends with an assertion
    assert "assert" in program


def test_shards_are_shuffled_as_the_permutation_page_says(tmp_path):
    program, = blocks(ROOT / "docs" / "formats" / "permutation.md", "python")
    scope = {}
    exec(program, scope)
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for i in range(23):
        Image.new("L", (2, 2), i).save(folder / f"{i:02}.png")
    subprocess.run([TOOL, "build", tmp_path / "images", tmp_path / "out", "--size", "2", "--seed", "7", "--shards", "3",
                    "--quiet"], check=True, capture_output=True)
    names = [subprocess.run(["tar", "tf", tmp_path / "out" / f"train-{shard:06}.tar"], check=True, capture_output=True,
                            text=True).stdout.split()[::2] for shard in range(3)]
    assert [len(shard) for shard in names] == [8, 8, 7]
    order = [int(name[2:4]) for shard in names for name in shard]
    assert order == [scope["permutation"](position, 23, 7) for position in range(23)]


def test_the_tfrecord_page_shows_a_real_record(tmp_path):
    (tmp_path / "images" / "a").mkdir(parents=True)
    Image.fromarray(np.array([[1, 2], [3, 4]], np.uint8)).save(tmp_path / "images" / "a" / "b.png")
    (tmp_path / "labels.csv").write_text("a/b.png,5\n")
    subprocess.run([TOOL, "build", tmp_path / "images", tmp_path / "out", "--format", "tfrecord", "--size", "2", "--color",
                    "gray", "--labels", tmp_path / "labels.csv", "--quiet"], check=True, capture_output=True)
    record = (tmp_path / "out" / "train-000000.tfrecord").read_bytes()
    dump = next(block for block in blocks(ROOT / "docs" / "formats" / "tfrecord.md") if block.startswith("00000000:"))
    lines = re.findall(r"^([0-9a-f]{8}): ((?:[0-9a-f]{4} ){8})", dump, re.MULTILINE)
    assert len(lines) == 9
    for offset, digits in lines:
        at = int(offset, 16)
        assert record[at:at + 16] == bytes.fromhex(digits)
    assert len(record) == 256


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    targets = [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


def test_options_in_the_documents_exist():
    helps = [subprocess.run([TOOL, command, "--help"], check=True, capture_output=True, text=True).stdout
             for command in ("build", "convert", "index", "inspect", "verify")]
    known = set(re.findall(r"--[a-z-]+", "".join(helps)))
    other_tools = {"--version", "--fast", "--preset", "--build", "--install", "--prefix", "--images", "--rounds", "--listing", "--sources"}
    for document in DOCUMENTS:
        used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", document.read_text()))
        assert used <= known | other_tools, document
