# SPDX-License-Identifier: Apache-2.0
"""Every Python snippet of the documents runs, in the order of its page."""

import inspect
import re
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import images

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python.md"
NOT_RUN = "<!-- not run: FFCV has no wheels -->\n"
COMING_FROM = [page.stem for page in (ROOT / "docs" / "guides").glob("*.md") if "# Coming from" in page.read_text()]
ELSEWHERE = {"docs/indexes.md", "docs/formats/permutation.md"}  # test_docs.py runs these
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "\n```python\n" in page.read_text() and page.relative_to(ROOT).as_posix() not in ELSEWHERE
]


def snippets(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which the snippets run: 140 pictures in `images`, the same as shards for other pipelines, and copies."""
    import precache

    monkeypatch.chdir(tmp_path)
    for seed in range(140):
        path = tmp_path / "images" / ("ant", "bee")[seed % 2] / f"{seed}{('.png', '.jpg')[seed % 3 == 0]}"
        images.draw_unique(path, seed)
    turned = Image.open("images/ant/0.jpg")  # as many cameras store portraits
    turned.getexif()[0x0112] = 6
    turned.save("images/ant/0.jpg", exif=turned.getexif())
    precache.pack("images", "tars", seed=0, shards=2)
    precache.pack("images", "records", seed=0, shards=2, format="tfrecord")
    shutil.copytree("images", "photos")
    shutil.copytree("images", "photos-val")
    return tmp_path


def draw_targets():
    """Float targets, several labels and a mask for each of the pictures."""
    lines = ["path,label,age:float,tags:multi"]
    for path in sorted(Path("images").glob("*/*")):
        name = path.relative_to("images")
        lines.append(f"{name},{path.parent.name},{len(lines) / 2},{('', 'red', 'red;tall')[len(lines) % 3]}")
        mask = Path("masks") / name.with_suffix(".png")
        mask.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", Image.open(path).size, len(lines) % 9).save(mask)
    Path("targets.csv").write_text("\n".join([*lines, ""]))


class Trainer:
    """Replaces the training step of the snippets: checks and counts batches."""

    def __init__(self):
        self.batches = 0

    def __call__(self, images, labels, *targets):
        assert len(images) == len(labels) > 0 and 0 <= int(np.asarray(labels).min())
        assert all(len(target) == len(images) for target in targets)
        self.batches += 1


def run_page(text):
    """Runs the snippets of a page, except what it says is not run; returns their names."""
    text = re.sub(rf"{re.escape(NOT_RUN)}```python\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    scope = {"train": Trainer()}
    for number, snippet in enumerate(snippets(text)):
        before = scope["train"].batches
        exec(compile(snippet, f"snippet {number}", "exec"), scope)
        assert bool(re.search(r"(?<![.\w])train\(", snippet)) == (scope["train"].batches > before), snippet
    return types.SimpleNamespace(**scope)


def first_of(batches):
    images, labels = next(iter(batches))
    return tuple(images.shape), str(images.dtype).removeprefix("torch."), len(labels)


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_snippets_of_a_page_run(folder, page):
    text = page.read_text()
    if 'mask="masks"' in text:
        draw_targets()
    run_page(text)


def test_only_ffcv_is_not_run():
    unrun = [page for page in PAGES if "not run" in page.read_text()]
    assert [page.name for page in unrun] == ["ffcv.md"]
    assert "from ffcv" in unrun[0].read_text().split(NOT_RUN)[1]


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
@pytest.mark.parametrize("page", ["imagefolder", "webdataset", "lightning", "accelerate", "timm"])
def test_loaders_before_and_after_give_equal_batches(folder, page):
    scope = run_page((ROOT / "docs" / "guides" / f"{page}.md").read_text())
    assert first_of(scope.their_loader) == first_of(scope.loader) == ((64, 3, 224, 224), "float32", 64)


def test_the_loader_after_ffcv_gives_what_ffcv_gives(folder):
    scope = run_page((ROOT / "docs" / "guides" / "ffcv.md").read_text())
    assert first_of(scope.loader) == ((64, 3, 224, 224), "float16", 64)


@pytest.mark.filterwarnings("ignore")  # warnings of other libraries
def test_datasets_before_and_after_give_equal_batches(folder):
    scope = run_page((ROOT / "docs" / "guides" / "tf-data.md").read_text())
    assert first_of(scope.their_dataset) == first_of(scope.dataset) == ((64, 224, 224, 3), "<dtype: 'float32'>", 64)


def test_classes_and_pixels_are_those_of_image_folder(folder):
    import precache
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    precache.build("images", "shards", size=256, exif="ignore")
    dataset = precache.open("shards")
    theirs = ImageFolder(
        "images", transforms.Compose([transforms.Resize(256), transforms.CenterCrop(256), transforms.PILToTensor()])
    )
    assert dataset.classes == theirs.classes
    by_name = {str(Path(path).relative_to("images").with_suffix("")): i for i, (path, _) in enumerate(theirs.samples)}
    rotated = list(dataset.keys).index("ant/0")
    for i in (*range(0, len(dataset), 9), rotated):
        image, label = theirs[by_name[dataset.keys[i]]]
        assert (image.numpy() == dataset[i][0]).all() and label == dataset[i][1]


@pytest.mark.parametrize(
    "page", ["pytorch", "imagefolder", "webdataset", "keras", "tf-data", "ffcv", "timm", "lightning"]
)
def test_rotated_photos_are_as_the_other_decoders_give_them(folder, page):
    import precache
    from torchvision import transforms

    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    call = re.search(r"^precache\.build\(.*?\)(?= *(#.*)?$)", text, re.DOTALL | re.MULTILINE)
    arguments, options = eval(call[0].replace("precache.build", "given"), {"given": lambda *a, **o: (a, o)})
    precache.build(*arguments, progress=False, **options)
    dataset, size = precache.open("shards"), options["size"]
    (number,) = [i for i, key in enumerate(dataset.keys) if key.split("/")[-1] == "0"]
    steps = [transforms.Resize((size, size) if options.get("fit") == "stretch" else size), transforms.CenterCrop(size)]
    image = np.asarray(transforms.Compose(steps)(Image.open("images/ant/0.jpg")))
    stored = dataset[number][0]
    assert np.array_equal(stored if options.get("layout") == "hwc" else stored.transpose(1, 2, 0), image)


def test_the_readme_trains(folder):
    scope = run_page((ROOT / "README.md").read_text())
    assert scope.train.batches == 6 and scope.images.dtype.is_floating_point


def test_every_extra_of_the_package_is_in_the_documents_and_no_other():
    listed = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]\n")[1].split("\n\n")[0]
    extras = {line.split(" = ")[0] for line in listed.splitlines()}
    texts = {path: path.read_text() for path in (*PAGES, ROOT / "docs" / "install.md")}
    sources = "".join(path.read_text() for path in (ROOT / "reader" / "python" / "precache").glob("*.py"))
    named = set(re.findall(r"(?:precache|'\.)\[(\w+)\]'", "".join(texts.values()) + sources))
    assert "torch" in named and named <= extras
    install = texts[ROOT / "docs" / "install.md"]
    assert all(f"`{extra}`" in install or f"'.[{extra}]'" in install for extra in extras)


def test_the_page_names_all_options_of_loaders():
    import precache.torch

    named = set(
        re.findall(
            r"`(\w+)`", "".join(line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `"))
        )
    )
    options = set(inspect.signature(precache.Loader).parameters) - {"dataset"}
    assert options <= named
    torch_only = set(inspect.signature(precache.torch.Loader).parameters) - options - {"dataset", "options"}
    text = PAGE.read_text()
    assert all(re.search(rf"`{option}\b", text) for option in torch_only), torch_only


@pytest.mark.parametrize("page", COMING_FROM)
def test_pages_for_those_who_come_from_elsewhere_have_a_table_of_options(page):
    """It names, for each transform or argument of the other, the option of `build` or of the loader."""
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    assert text.startswith("# Coming from ") and len(snippets(text)) >= 2
    assert page == "ffcv" or re.search(r"^\| .* \| build \| loader \|$", text, re.MULTILINE)
    assert page == "tf-data" or "imagefolder.md#transforms-and-options" in text or page == "imagefolder"
