# SPDX-License-Identifier: Apache-2.0
"""Every snippet of docs/python.md and of the README's Python section runs, in the order of the page."""

import re
from pathlib import Path

import numpy as np
import pytest

import images

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python.md"
NOT_RUN = "<!-- not run: FFCV has no wheels -->\n"


def snippets(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the snippets run: 140 pictures in `images`, and the same as shards that other pipelines read."""
    import precache

    monkeypatch.chdir(tmp_path)
    for seed in range(140):
        path = tmp_path / "images" / ("ant", "bee")[seed % 2] / f"{seed}{('.png', '.jpg')[seed % 3 == 0]}"
        images.draw_unique(path, seed)
    precache.pack("images", "tars", seed=0, shards=2)
    precache.pack("images", "records", seed=0, shards=2, format="tfrecord")
    return tmp_path


class Trainer:
    """Stands for the reader's own step: looks at each batch, and counts them."""

    def __init__(self):
        self.batches = 0

    def __call__(self, images, labels):
        assert len(images) == len(labels) > 0 and 0 <= int(np.asarray(labels).min())
        self.batches += 1


def run_in_order(text, scope):
    for number, snippet in enumerate(snippets(text)):
        before = scope["train"].batches
        exec(compile(snippet, f"snippet {number}", "exec"), scope)
        assert ("train(" in snippet) == (scope["train"].batches > before), snippet


def first_of(batches):
    images, labels = next(iter(batches))
    return tuple(images.shape), str(images.dtype).removeprefix("torch."), len(labels)


@pytest.mark.filterwarnings("ignore")  # of other libraries
def test_the_page_on_python_runs(folder):
    text = PAGE.read_text()
    before, ffcv, after = re.split(rf"{re.escape(NOT_RUN)}```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert "from ffcv" in ffcv and text.count("not run") == 1
    scope = {"train": Trainer()}
    run_in_order(before, scope)
    theirs, ours = first_of(scope["their_loader"]), first_of(scope["loader"])
    assert theirs == ours == ((64, 3, 224, 224), "float32", 64)
    run_in_order(after, scope)
    assert first_of(scope["loader"]) == ((64, 3, 224, 224), "float16", 64)
    theirs, ours = first_of(scope["their_dataset"]), first_of(scope["dataset"])
    assert theirs == ours == ((64, 224, 224, 3), "<dtype: 'float32'>", 64)


def test_our_image_folder_has_the_numbers_of_theirs(folder):
    import precache
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    precache.build("images", "shards", size=256)
    dataset = precache.open("shards")
    theirs = ImageFolder("images", transforms.Compose([transforms.Resize(256), transforms.CenterCrop(256), transforms.PILToTensor()]))
    assert dataset.classes == theirs.classes
    by_name = {str(Path(path).relative_to("images").with_suffix("")): i for i, (path, _) in enumerate(theirs.samples)}
    for i in range(0, len(dataset), 9):
        image, label = theirs[by_name[dataset.keys[i]]]
        assert (image.numpy() == dataset[i][0]).all() and label == dataset[i][1]


def test_the_snippet_of_the_readme_runs(folder):
    section = (ROOT / "README.md").read_text().split("## Python\n")[1].split("\n## ")[0]
    scope = {"train": Trainer()}
    run_in_order(section, scope)
    assert scope["train"].batches == 2 and scope["images"].dtype.is_floating_point


def test_the_page_names_all_options_of_loaders():
    import inspect

    import precache.torch

    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `"))))
    options = set(inspect.signature(precache.Loader).parameters) - {"dataset"}
    assert options <= named
    torch_only = set(inspect.signature(precache.torch.Loader).parameters) - options - {"dataset", "options"}
    text = PAGE.read_text()
    assert all(re.search(rf"`{option}\b", text) for option in torch_only), torch_only
