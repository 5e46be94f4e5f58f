# SPDX-License-Identifier: Apache-2.0
"""samples/tour.ipynb runs from top to bottom, and shows what its text announces."""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "samples" / "tour.ipynb"
CELL_SECONDS = 120  # ends a cell that hangs; the whole notebook takes a few seconds of processor time


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook after a run in an empty folder, which keeps its temporary files."""
    folder = tmp_path_factory.mktemp("tour")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    patch = pytest.MonkeyPatch()
    with patch.context() as environment:
        environment.setenv("TMPDIR", str(folder))
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        nbclient.NotebookClient(notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": folder}}).execute()
    return notebook, folder


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


def test_the_notebook_is_stored_without_outputs(stored):
    nbformat.validate(stored)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in stored.cells if cell.cell_type == "code")


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
