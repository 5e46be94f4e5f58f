# SPDX-License-Identifier: Apache-2.0
"""Commands, snippets, options and links of the documents work."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from doc_sessions import (
    DOCUMENTS,
    DRAW,
    PHOTOS,
    ROOT,
    TOOL,
    make_photos,
    make_quickstart,
    needs_photos,
    replay,
    sessions,
    without_chance,
)
from PIL import Image

from shards import Dataset

COMMANDS = ("bench", "build", "cluster", "convert", "index", "inspect", "pack", "verify")
LIBRARIES = ("formats", "reader", "convert")  # which install headers
SCHEDULERS = ("cluster/slurm", "cluster/kubernetes")


def blocks(document, language=""):
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    return [block for words, block in found if words == language]


# Blocks of commands that no test runs, by their first word after the page: the reason.
NOT_RUN = {
    "docs/commands/inspect.md: precache inspect frames.tfrecord": "test_protobuf.py makes such records, and needs protoc",
    "docs/gpu.md: precache bench OUT": "needs a GPU",
    "docs/guides/cluster.md: precache build SOURCE": "the session below it runs these steps",
    "docs/guides/sources.md: precache inspect frames.tfrecord": "test_protobuf.py makes such records, and needs protoc",
}
LANGUAGES = {"", "cmake", "console", "cpp", "json", "python"}


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    make_quickstart(folder)
    return folder


SESSIONS = [
    pytest.param(session, id=f"{document.relative_to(ROOT)}-{number}")
    for document in DOCUMENTS
    for number, session in enumerate(sessions(document))
]


@pytest.mark.parametrize("session", SESSIONS)
def test_commands_print_what_the_documents_show(tmp_path, quickstart, session):
    """If this fails after a change of output: run tests/python/doc_sessions.py and read the diff."""
    shutil.copytree(quickstart, tmp_path / "build" / "quickstart")
    if needs_photos(session):
        if not PHOTOS.is_dir():
            pytest.skip(f"photos not found at {PHOTOS}")
        make_photos(tmp_path)
    commands, shown = zip(*session, strict=True)
    assert [*map(without_chance, replay(commands, tmp_path))] == [*map(without_chance, shown)]


def test_every_block_that_looks_like_a_session_is_one():
    strays = [
        f"{document.relative_to(ROOT)}: {block.splitlines()[0]}"
        for document in DOCUMENTS
        for block in blocks(document)
        if block.startswith("$ ")
    ]
    assert strays == [], "write ```console, so that the commands are run"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_languages_of_blocks_are_known(document):
    """Others, such as `py`, would escape the tests that run snippets."""
    assert set(re.findall(r"^```([^\n]*)\n.*?^```$", document.read_text(), re.DOTALL | re.MULTILINE)) <= LANGUAGES


def test_commands_outside_of_sessions_are_listed():
    found = {
        f"{document.relative_to(ROOT)}: {command}"
        for document in DOCUMENTS
        for block in blocks(document)
        for command in re.findall(r"^(?:.*\| )?(precache (?!--version)\w+ \S+)", block, re.MULTILINE)[:1]
    }
    assert found == set(NOT_RUN), "write a ```console session, or say why not"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paragraphs_have_at_most_five_lines(document):
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    items = re.sub(r"^\s*(?:[-*>] |\d+\. |\|)", r"\n\g<0>", text, flags=re.MULTILINE)
    paragraphs = [paragraph.strip().splitlines() for paragraph in re.split(r"\n\s*\n", items)]
    named_links = re.compile(r"^\[[^\]]+\]: ")
    long = [lines[0] for lines in paragraphs if len(lines) > 5 and not named_links.match(lines[0])]
    assert long == []


def test_each_command_has_a_page_that_shows_it(tmp_path):
    overview = (ROOT / "docs" / "cli.md").read_text()
    for name in COMMANDS:
        page = ROOT / "docs" / "commands" / f"{name}.md"
        shown = [(command, output) for session in sessions(page) for command, output in session]
        assert any(command.startswith(f"precache {name} ") and output for command, output in shown), page
        assert f"](commands/{name}.md)" in overview
    assert {page.stem for page in (ROOT / "docs" / "commands").iterdir()} == set(COMMANDS)
    readme = [command for session in sessions(ROOT / "README.md") for command, _ in session]
    assert any(command.startswith("precache build ") for command in readme)


@pytest.mark.parametrize("page", ["reader.md", "guides/cpp.md"])
def test_the_snippet_of_the_reader_compiles(precache, tmp_path, page):
    first, *others = blocks(ROOT / "docs" / page, "cpp")  # which continue it
    include, body = first.split("\n\n", 1)
    body += "".join(others)
    (tmp_path / "snippet.cpp").write_text(
        f"{include}\nvoid train(precache::TypedRows<const precache::Float16>, std::span<const std::int64_t>);\nint main() {{\n{body}}}\n"
    )
    folders = [
        f"-I{root / library / 'include'}" for root in (ROOT, precache.parent) for library in ("formats", "reader")
    ]
    subprocess.run(
        ["c++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", *folders, tmp_path / "snippet.cpp"], check=True
    )


def test_the_snippet_of_the_device_loader_compiles(precache, tmp_path):
    (snippet,) = blocks(ROOT / "docs" / "gpu.md", "cpp")
    include, body = snippet.split("\n\n", 1)
    (tmp_path / "snippet.cpp").write_text(
        f"{include}\nvoid train(precache::Float16*, const std::int64_t*, CUstream_st*);\nint main() {{\nCUstream_st* const stream = nullptr;\n{body}}}\n"
    )
    folders = [
        f"-I{root / library / 'include'}" for root in (ROOT, precache.parent) for library in ("formats", "reader")
    ]
    subprocess.run(
        ["c++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", *folders, tmp_path / "snippet.cpp"], check=True
    )


def test_the_table_of_the_gpu_page_follows_from_its_formula():
    page = (ROOT / "docs" / "gpu.md").read_text()
    stored, read, written = (int(re.search(rf"\*{name}\* = ([\d,]+)", page)[1].replace(",", "")) for name in "SRW")
    assert (stored, read, written) == (256 * 256 * 3, 224 * 224 * 3, 224 * 224 * 3 * 2)
    head = re.search(r"^\| link .*$", page, re.MULTILINE)[0]
    memories = [int(rate.replace(",", "")) * 1e9 / 2 for rate in re.findall(r", ([\d,]+) GB/s", head)]
    kernels = re.search(r"^\| kernel, µs \|(.*)\|$", page, re.MULTILINE)[1].split("|")[3:]
    assert [f"{(read + written) / memory * 1e6:.2f}" for memory in memories] == [shown.strip() for shown in kernels]
    rows = re.findall(r"^\| PCIe (\d)\.0 \| ([\d.]+) GB/s \| (\d+) GB/s \| ([\d.]+) \|(.*)\|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == ["3", "4", "5"] and len(memories) == 3
    for generation, rate, assumed, copy, ceilings in rows:
        assert f"{2 ** int(generation) * 16 / 8 * 128 / 130:.1f}" == rate
        assert f"{stored / int(assumed) / 1e3:.1f}" == copy
        times = [stored / (int(assumed) * 1e9) + (read + written) / memory for memory in memories]
        assert [f"{round(1 / time, -3):,.0f}" for time in times] == [shown.strip() for shown in ceilings.split("|")]


@pytest.mark.parametrize("number, file_format", [*enumerate(["tar", "tfrecord", "tar", "hdf5", "tfrecord"])])
def test_the_snippets_for_other_readers_run(tmp_path, monkeypatch, number, file_format):
    snippets = blocks(ROOT / "docs" / "indexes.md", "python")
    assert len(snippets) == 5
    subprocess.run([DRAW, tmp_path / "images"], check=True, capture_output=True)
    subprocess.run(
        [TOOL, "build", tmp_path / "images", tmp_path / "shards", "--format", file_format, "--shards", "7", "--quiet"],
        check=True,
        capture_output=True,
    )
    subprocess.run([TOOL, "index", tmp_path / "shards"], check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(snippets[number], scope)
    batched = "images" in scope
    image, label = (
        (np.asarray(scope["images"].at(7)), scope["labels"][7]) if batched else (scope["image"], scope["label"])
    )
    dataset = Dataset(tmp_path / "shards")
    samples = [sample for shard in dataset.shards() for sample in dataset.read_shard(shard)]
    if "builder" not in scope:  # TensorFlow Datasets mixes shards
        samples = [samples[7]]
    assert any(
        (np.asarray(image) == sample.array).all() and int(np.asarray(label).item()) == sample.label
        for sample in samples
    )


def test_the_permutation_page_has_a_program_that_gives_its_numbers():
    (program,) = blocks(ROOT / "docs" / "formats" / "permutation.md", "python")
    exec(program, {})  # it ends with an assertion
    assert "assert" in program


def test_shards_are_shuffled_as_the_permutation_page_says(tmp_path):
    (program,) = blocks(ROOT / "docs" / "formats" / "permutation.md", "python")
    scope = {}
    exec(program, scope)
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for i in range(23):
        Image.new("L", (2, 2), i).save(folder / f"{i:02}.png")
    subprocess.run(
        [
            TOOL,
            "build",
            tmp_path / "images",
            tmp_path / "out",
            "--size",
            "2",
            "--seed",
            "7",
            "--shards",
            "3",
            "--quiet",
        ],
        check=True,
        capture_output=True,
    )
    names = [
        subprocess.run(
            ["tar", "tf", tmp_path / "out" / f"train-{shard:06}.tar"], check=True, capture_output=True, text=True
        ).stdout.split()[::2]
        for shard in range(3)
    ]
    assert [len(shard) for shard in names] == [8, 8, 7]
    order = [int(name[2:4]) for shard in names for name in shard]
    assert order == [scope["permutation"](position, 23, 7) for position in range(23)]


def test_the_tfrecord_page_shows_a_real_record(tmp_path):
    (tmp_path / "images" / "a").mkdir(parents=True)
    Image.fromarray(np.array([[1, 2], [3, 4]], np.uint8)).save(tmp_path / "images" / "a" / "b.png")
    (tmp_path / "labels.csv").write_text("a/b.png,5\n")
    subprocess.run(
        [
            TOOL,
            "build",
            tmp_path / "images",
            tmp_path / "out",
            "--format",
            "tfrecord",
            "--size",
            "2",
            "--color",
            "gray",
            "--labels",
            tmp_path / "labels.csv",
            "--quiet",
        ],
        check=True,
        capture_output=True,
    )
    record = (tmp_path / "out" / "train-000000.tfrecord").read_bytes()
    dump = (ROOT / "docs" / "formats" / "tfrecord.md").read_text()
    lines = re.findall(r"^([0-9a-f]{8}): ((?:[0-9a-f]{4} ){8})", dump, re.MULTILINE)
    assert len(lines) == 9
    for offset, digits in lines:
        at = int(offset, 16)
        assert record[at : at + 16] == bytes.fromhex(digits)
    assert len(record) == 256


def anchors(document):
    """Of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(document):
    text = document.read_text()
    return re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text) + re.findall(
        r"^\[[^\]]+\]: ([^\s#]*)(?:#(\S*))?$", text, re.MULTILINE
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    missing = []
    for target, anchor in links(document):
        if "://" in target:
            continue
        page = document.parent / target if target else document
        if not page.exists() or (anchor and anchor not in anchors(page)):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_every_picture_is_on_a_page():
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir() if path.suffix in (".jpg", ".png", ".svg")}
    shown = {name for page in DOCUMENTS for name in re.findall(r"images/([\w-]+\.\w+)\)", page.read_text())}
    assert pictures == shown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_links_are_defined_and_used(document):
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    defined = re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE)
    used = re.findall(r"\]\[([^\]]+)\]", re.sub(r"(?<!\[)`[^`\n]*`(?!\])", "", text))
    assert set(used) == set(defined) and len(defined) == len(set(defined))


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith(("benchmarks/", "images/"))} == listed


def test_generated_parts_name_what_exists():
    wanted = [
        found
        for document in DOCUMENTS
        for found in re.findall(r"^<!-- (help|header|schema): (\S+) -->$", document.read_text(), re.MULTILINE)
    ]
    assert {name for kind, name in wanted if kind == "help"} == {"precache", *COMMANDS, *SCHEDULERS} - {"cluster"}
    headers = [name for kind, name in wanted if kind == "header"]
    found = [path for library in LIBRARIES for path in (ROOT / library).rglob("include/precache/*/*.hpp")]
    assert sorted(headers) == sorted(path.relative_to(ROOT).as_posix() for path in found)
    schemas = [json.loads((ROOT / "docs" / name).read_text()) for kind, name in wanted if kind == "schema"]
    assert len(schemas) == 1 and all("properties" in schema for schema in schemas)


def test_the_python_reference_has_every_public_name():
    source = (ROOT / "reader" / "python" / "precache" / "__init__.py").read_text()
    public = set(re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", source, re.DOTALL)[1]))
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    shown = set(re.findall(r"^::: precache\.(\w+)", page, re.MULTILINE))
    assert public <= shown


def test_the_page_on_json_names_every_key(tmp_path, quickstart):
    """Those of inspect come from its schema, which test_inspect.py compares with the output."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    shards, images = quickstart / "shards", quickstart / "images"
    commands = {
        "build": [images, tmp_path / "out", "--index", "dali"],
        "convert": [shards, tmp_path / "converted"],
        "pack": [images, tmp_path / "packed"],
        "index": [tmp_path / "out"],
        "verify": [shards],
        "bench": [shards, "--seconds", "0.05", "--step", "1"],
    }
    for command, words in commands.items():
        done = subprocess.run([TOOL, command, *words, "--json"], check=True, capture_output=True, text=True)
        report = json.loads(done.stdout)
        plan = report.get("plan", {})
        parts = [report, plan, plan.get("source", {}), *report.get("paths", []), *report.get("written", [])]
        text = sections[command] + (sections["build"] if command == "pack" else "")
        missing = {key for part in parts for key in part} - set(re.findall(r"`(\w+)`", text))
        assert not missing, command


def test_options_in_the_documents_exist():
    helps = [
        subprocess.run([TOOL, *command, "--help"], check=True, capture_output=True, text=True).stdout
        for command in ((), *(name.split("/") for name in (*COMMANDS, *SCHEDULERS)))
    ]
    known = set(re.findall(r"--[a-z-]+", "".join(helps)))
    other_tools = {
        "--version",
        "--for",
        "--patch",
        "--timeout",
        "--all-kills",
        "--fast",
        "--middle",
        "--tidy",
        "--preset",
        "--build",
        "--install",
        "--prefix",
        "--images",
        "--rounds",
        "--listing",
        "--sources",
        "--sort",
        "--only",
        "--modes",
        "--decode",
        "--array",
        "--cpus-per-task",
        "--filename",
        "--mem",
        "--requeue",
        "--cluster",
        "--patience",
        "--wrap",
        "--descriptor",
        "--include",
        "--avx",  # --avx2
        "--stored",
        "--output",
        "--wildcards",
        "--exclude",
    }
    for document in DOCUMENTS:
        used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", document.read_text()))
        assert used <= known | other_tools, document
