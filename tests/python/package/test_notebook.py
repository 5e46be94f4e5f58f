# SPDX-License-Identifier: Apache-2.0
"""samples/tour.ipynb runs from top to bottom, and shows what its text announces.

It is stored with its outputs, for GitHub and the site of the documentation. After a change:

    build/venv/bin/python tests/python/package/test_notebook.py    # runs it and stores the outputs
"""

import re
import tempfile
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "samples" / "tour.ipynb"
CELL_SECONDS = 120  # ends a cell that hangs; the whole notebook takes a few seconds of processor time


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def run_in(folder):
    """The notebook after a run in a folder, which keeps its temporary files."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    patch = pytest.MonkeyPatch()
    with patch.context() as environment:
        environment.setenv("TMPDIR", str(folder))
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        place = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=CELL_SECONDS, record_timing=False, resources=place).execute()
    return notebook


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    return run_in(folder), folder


def printed(notebook):
    return "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )


def pictures(cell):
    return [output for output in cell.outputs if "image/png" in output.get("data", {})]


def kinds(cell):
    """How many pictures a cell shows, and whether it prints."""
    streams = {output.name for output in cell.outputs if output.output_type == "stream"}
    return len(pictures(cell)), "stdout" in streams


def test_the_notebook_is_stored_with_its_outputs(stored, executed):
    nbformat.validate(stored)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    again = [cell for cell in executed[0].cells if cell.cell_type == "code"]
    assert [kinds(cell) for cell in code] == [kinds(cell) for cell in again]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def test_the_stored_outputs_are_small_and_name_no_machine(stored):
    assert NOTEBOOK.stat().st_size < 300_000
    shown = [output for cell in stored.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    texts = [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in shown]
    assert not re.search(r"/(?:tmp|home|root|work)/|site-packages|Warning", "".join(texts))


def test_the_notebook_builds_trains_and_compares(executed):
    notebook, folder = executed
    text = printed(notebook)
    assert "240 samples built, 1 skipped\n" in text
    assert re.search(r"^train\tcircle/broken\.jpg\t", text, re.MULTILINE)
    assert re.search(r"^240 samples, uint8 \[3, 72, 72\]$", text, re.MULTILINE)
    losses = [float(loss) for loss in re.findall(r"^epoch \d: loss ([\d.]+), accuracy \d+%$", text, re.MULTILINE)]
    assert len(losses) == 4 and losses[-1] < losses[0]
    rates = re.findall(r"^(ImageFolder|precache) +([\d,]+) images/s$", text, re.MULTILINE)
    assert [name for name, _ in rates] == ["ImageFolder", "precache"]
    assert all(int(rate.replace(",", "")) > 0 for _, rate in rates)  # how fast does not matter here
    assert not list(folder.glob("precache-tour-*"))  # the last cell cleans up


def test_the_notebook_shows_pictures(executed):
    notebook, _ = executed
    shown = [len(pictures(cell)) for cell in notebook.cells if cell.cell_type == "code"]
    assert sorted(shown, reverse=True)[:5] == [4, 1, 1, 1, 0]  # four originals, a sample, the sheet, four crops


def store():
    """Stores the notebook with the outputs of a run, without what differs between machines."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = run_in(folder)
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/jpeg", None)  # also there as PNG
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    store()
