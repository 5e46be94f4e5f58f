# SPDX-License-Identifier: Apache-2.0
"""Named columns in datasets and loaders.

The columns of these datasets are bytes of their images: `mask` is the first channel, `pair` two floats and `code` an
integer somewhere in it, and `tags` four bytes. So every format has them without a second source of truth.
"""

import json
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import precache
import precache.tensorflow
import precache.torch
from images import draw_animals
from shards import FORMATS

pytest_plugins = ("package_fixtures",)

SIZE = (12, 10)
OFFSETS = {"mask": 0, "pair": 5, "code": 7, "tags": 1}
COLUMNS = {
    "mask": {"type": "uint8", "shape": list(SIZE)},
    "pair": {"type": "float32", "shape": [2]},
    "code": {"type": "int64", "shape": []},
    "tags": {"type": "uint8", "shape": [4], "names": ["big", "old", "red", "wet"]},
}


def add_columns(out):
    """Adds the columns to the manifest of a dataset."""
    manifest = json.loads((out / "dataset.json").read_text())
    manifest.pop("crc32c", None)
    columns = manifest["splits"]["train"]["columns"]
    for name, column in COLUMNS.items():
        image = columns["image"]
        columns[name] = {"base": image["base"] + OFFSETS[name], "stride": image["stride"], **column}
    (out / "dataset.json").write_text(json.dumps(manifest))


@pytest.fixture(scope="module", params=FORMATS)
def out(request, tmp_path_factory):
    source, out = tmp_path_factory.mktemp("animals"), tmp_path_factory.mktemp("out")
    draw_animals(source)
    precache.build(source, out, size=SIZE, shards=1, format=request.param, progress=False)
    add_columns(out)
    return out


@pytest.fixture(scope="module")
def expected(out):
    """The images, labels and columns of the dataset, as numpy reads them from the images."""
    images, labels = precache.open(out).gather(range(len(precache.open(out))))
    rows = images.reshape(len(images), -1)

    def values(name, dtype, count):
        begin = OFFSETS[name]
        return rows[:, begin : begin + count * np.dtype(dtype).itemsize].copy().view(dtype)

    columns = {
        "mask": images[:, 0],
        "pair": values("pair", "<f4", 2),
        "code": values("code", "<i8", 1)[:, 0],
        "tags": values("tags", "u1", 4),
    }
    return images, labels, columns


def same(a, b):
    """Whether two arrays are equal, bit for bit."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def numbers_of(batch, expected):
    """Which samples are in a batch, by their images."""
    by_image = {image.tobytes(): i for i, image in enumerate(expected[0])}
    return [by_image[np.asarray(image).tobytes()] for image in batch["image"]]


def test_a_dataset_has_columns(out, expected):
    dataset = precache.open(out)
    assert list(dataset.columns) == list(COLUMNS)
    assert dataset.columns["mask"] == precache.Column("mask", "uint8", SIZE)
    assert dataset.columns["code"].shape == () and dataset.columns["code"].numpy_dtype == np.int64
    assert dataset.columns["tags"].value_names == ("big", "old", "red", "wet")
    for name in COLUMNS:
        assert same(dataset.column(name), expected[2][name])
        assert same(dataset.column(name, [3, -1, 3]), expected[2][name][[3, -1, 3]])
    some = pickle.loads(pickle.dumps(precache.open(out, indices=[4, 2])))
    assert same(some.column("pair"), expected[2]["pair"][[4, 2]])
    assert same(some.column("pair", [1]), expected[2]["pair"][[2]])
    with pytest.raises(ValueError, match="no column 'age'"):
        dataset.column("age")
    with pytest.raises(IndexError):
        dataset.column("pair", [len(dataset)])


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"dtype": "float32", "normalize": "imagenet"}], ids=str)
def test_batches_are_dicts_with_the_columns(out, expected, options):
    loader = precache.Loader(out, 5, columns=["pair", "mask", "code", "tags"], last_batch="keep", **options)
    plain = precache.Loader(out, 5, last_batch="keep", **options)
    for batch, (images, labels) in zip(loader, plain, strict=True):
        assert list(batch) == ["image", "label", "pair", "mask", "code", "tags"]
        assert same(batch["image"], images) and same(batch["label"], labels)
    kept = list(precache.Loader(out, 5, columns=list(COLUMNS), last_batch="keep", shuffle=options.get("shuffle")))
    for batch in kept:
        numbers = numbers_of(batch, expected)
        assert all(same(batch[name], expected[2][name][numbers]) for name in COLUMNS)
    assert sorted(i for batch in kept for i in numbers_of(batch, expected)) == list(range(len(expected[1])))


def test_masks_are_cropped_and_flipped_with_their_images(out):
    loader = precache.Loader(out, 4, columns=["mask"], crop=(7, 6), flip=True, shuffle=True, seed=3)
    places = set()
    for _ in range(3):
        for batch in loader:
            assert batch["mask"].shape == (4, 7, 6)
            assert same(batch["mask"], batch["image"][:, 0])
            places |= {mask.tobytes() for mask in batch["mask"]}
    assert len(places) > len(loader.dataset)  # the crops differ between epochs
    centred = precache.Loader(
        out, 4, columns=["mask"], crop=precache.Crop(6, 6, "center"), dtype="float32", layout="hwc"
    )
    for batch in centred:
        assert same(batch["mask"] / np.float32(255), batch["image"][..., 0])


def test_ranks_share_the_columns_and_resume(out, expected):
    options = {"columns": ["code"], "shuffle": True, "seed": 5}
    whole = list(precache.Loader(out, 4, **options))
    for rank in range(2):
        loader = precache.Loader(out, 2, rank=rank, world_size=2, **options)
        for batch, of_all in zip(loader, whole, strict=True):
            assert same(batch["code"], of_all["code"][2 * rank : 2 * rank + 2])
    loader = precache.Loader(out, 4, **options)
    batches = iter(loader)
    next(batches), next(batches)
    again = pickle.loads(pickle.dumps(loader))
    again.load_state_dict(loader.state_dict())
    assert all(same(a["code"], b["code"]) for a, b in zip(again, whole[2:], strict=True))


def test_hooks_get_the_dict(out):
    loader = precache.Loader(out, 4, columns=["code"], as_dict=("pixel_values", "labels"))
    assert list(next(iter(loader))) == ["pixel_values", "labels", "code"]
    loader = precache.Loader(out, 4, columns=["code"], batch_transform=lambda batch: (batch["image"], batch["code"]))
    images, codes = next(iter(loader))
    assert images.shape == (4, 3, *SIZE) and codes.shape == (4,)


@pytest.mark.parametrize(
    "options, error, telling",
    [
        ({"columns": ["age"]}, ValueError, r"columns= has 'age', which is not a column of the dataset"),
        ({"columns": ["pair", "pair"]}, ValueError, r"columns= has 'pair' twice"),
        ({"columns": "pair"}, ValueError, r"columns must be .*, got 'pair'"),
        ({"columns": [1]}, ValueError, r"columns must be .*, got \[1\]"),
        ({"columns": ["code"], "as_dict": ("code", "label")}, ValueError, r"'code' is in columns and names"),
    ],
)
def test_wrong_columns_are_refused(out, options, error, telling):
    with pytest.raises(error, match=telling):
        precache.Loader(out, 4, **options)


def test_without_columns_a_batch_has_no_dict(out):
    images, labels = next(iter(precache.Loader(out, 4, columns=[])))
    assert images.shape == (4, 3, *SIZE) and labels.shape == (4,)


def test_torch_tensors(out, expected):
    loader = precache.torch.Loader(out, 5, columns=list(COLUMNS), shuffle=True)
    for batch in loader:
        assert all(isinstance(values, torch.Tensor) for values in batch.values())
        assert batch["pair"].dtype == torch.float32 and batch["code"].dtype == torch.int64
        numbers = numbers_of(batch, expected)
        assert all(same(batch[name].numpy(), expected[2][name][numbers]) for name in COLUMNS)


def test_samples_of_a_torch_dataset_are_dicts(out, expected):
    def flipped(sample):
        return {**sample, "image": sample["image"].flip(-1), "mask": sample["mask"].flip(-1)}

    dataset = precache.torch.Dataset(out, columns=["mask", "code"])
    assert list(dataset[2]) == ["image", "label", "mask", "code"]
    assert same(dataset[2]["mask"].numpy(), expected[2]["mask"][2])
    changed = precache.torch.Dataset(out, flipped, lambda label: label + 1, columns=["mask", "code"])
    for batch in DataLoader(changed, 6, num_workers=2):
        assert torch.equal(batch["image"][:, 0], batch["mask"])
        assert batch["code"].dtype == torch.int64
    assert changed[1]["label"] == dataset[1]["label"] + 1
    with pytest.raises(ValueError, match="no column 'age'"):
        precache.torch.Dataset(out, columns=["age"])


@pytest.mark.parametrize("pil", [False, True])
def test_transforms_of_torchvision_move_masks_with_images(out, expected, pil):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    dataset = precache.torch.Dataset(out, v2.RandomHorizontalFlip(1.0), columns=["mask", "tags"], pil=pil)
    for batch in DataLoader(dataset, 6, num_workers=2, collate_fn=list):
        for sample in batch:
            image = np.asarray(sample["image"]).transpose(2, 0, 1) if pil else sample["image"].numpy()
            assert same(image[0], sample["mask"].numpy())
    assert same(dataset[3]["mask"].numpy(), expected[2]["mask"][3][:, ::-1])
    assert same(dataset[3]["tags"].numpy(), expected[2]["tags"][3])


def test_a_tf_dataset_has_dicts(out, expected):
    batches = precache.tensorflow.dataset(out, 4, columns=["mask", "pair"], crop=(7, 6), flip=True, shuffle=True)
    assert batches.element_spec["mask"].shape == (4, 7, 6) and batches.element_spec["pair"].shape == (4, 2)
    pairs = []
    for batch in batches:
        assert same(batch["mask"].numpy(), batch["image"].numpy()[:, 0])
        pairs += [pair.tobytes() for pair in batch["pair"].numpy()]
    assert set(pairs) <= {pair.tobytes() for pair in expected[2]["pair"]}
