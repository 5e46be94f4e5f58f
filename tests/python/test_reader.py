# SPDX-License-Identifier: Apache-2.0
"""The reader agrees with its documents, and with the libraries that write or read the same shards."""

import json
import subprocess

import google_crc32c
import h5py
import numpy as np
import pytest
import webdataset

from conftest import TIMEOUT_SECONDS
from documented_order import documented_crop, documented_order
from images import pixels
from shards import FORMATS

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.fixture(scope="session")
def read(precache):
    """read(paths..., options...): the reader's view of a dataset, as Python values."""
    program = precache.parent / "tests" / "read_dataset"

    def run(*arguments):
        done = subprocess.run(
            [program, "--helper", precache, *map(str, arguments)], capture_output=True, timeout=TIMEOUT_SECONDS
        )
        assert done.returncode in (0, 1), done.stderr.decode()
        return json.loads(done.stdout)

    return run


def items(samples):
    """The expected items for samples of (bytes, label, key)."""
    return [
        {"label": label, "key": key, "bytes": len(data), "crc32c": google_crc32c.value(data)}
        for data, label, key in samples
    ]


# --- precache shards ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["chw", "hwc"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_reader_agrees_with_other_libraries(read, build, animals, tmp_path, format, dtype, layout):
    dataset = build(
        animals[0],
        tmp_path / "out",
        "--format",
        format,
        "--dtype",
        dtype,
        "--layout",
        layout,
        "--size",
        "17x23",
        "--shards",
        "3",
    )
    expected = [
        (sample.array.tobytes(), sample.label, sample.key)
        for shard in dataset.shards()
        for sample in dataset.read_shard(shard)
    ]
    seen = read(dataset.out)
    assert seen["items"] == items(expected)
    shape = "x".join(map(str, dataset.spec["shape"]))
    assert seen["spec"] == f"{dtype} {shape} {layout}"
    assert seen["classes"] == dataset.classes
    assert read(*dataset.shard_paths()) == seen
    assert read(dataset.out / f"train-{{000000..000002}}{dataset.shard_paths()[0].suffix}", "--verify") == seen


@pytest.mark.parametrize("format", FORMATS)
def test_a_shard_without_its_manifest_is_the_same(read, build, animals, tmp_path, format):
    dataset = build(animals[0], tmp_path / "out", "--format", format, "--size", "16", "--shards", "1")
    seen = read(dataset.out)
    (dataset.out / "dataset.json").unlink()
    alone = read(dataset.out)
    assert alone["items"] == seen["items"]
    if format == "tfrecord":  # an Example that precache writes does not contain the shape
        assert "unknown shape" in alone["unsupported_reason"]
        assert read(dataset.out, "--spec", "uint8", "chw", 16, 16, 3)["spec"] == seen["spec"]
        assert "unsupported_reason" in read(dataset.out, "--spec", "uint8", "chw", 16, 16, 1)
    else:
        assert alone["spec"] == seen["spec"]


# --- third-party shards -----------------------------------------------------------------------------------------------


def test_a_webdataset_of_arrays_is_a_dataset_of_tensors(read, tmp_path):
    arrays = [pixels(12, 10, 3, seed) for seed in range(7)]
    with webdataset.TarWriter(str(tmp_path / "a.tar")) as writer:
        for i, array in enumerate(arrays):
            writer.write({"__key__": f"folder/{i:03}", "npy": array, "cls": i % 3, "json": {"note": "x" * i * 300}})
    seen = read(tmp_path / "a.tar")
    assert seen["spec"] == "uint8 10x12x3 hwc"
    assert seen["items"] == items((array.tobytes(), i % 3, f"folder/{i:03}") for i, array in enumerate(arrays))
    batches = read(tmp_path / "a.tar", "--batches", tmp_path / "rows", "--batch-size", 4)
    assert [batch["samples"] for batch in batches["batches"]] == [[0, 1, 2, 3], [4, 5, 6]]
    assert (tmp_path / "rows").read_bytes() == b"".join(array.tobytes() for array in arrays)


def test_a_webdataset_of_pictures_gives_their_bytes(read, corpora, tmp_path):
    photos = sorted((corpora / "imagenet-sample").rglob("*.JPEG"))[:5]
    with webdataset.TarWriter(str(tmp_path / "a.tar"), encoder=False) as writer:
        for i, photo in enumerate(photos):
            writer.write({"__key__": photo.stem, "json": json.dumps({"label": i}).encode(), "jpg": photo.read_bytes()})
    seen = read(tmp_path / "a.tar")
    assert "JPEG" in seen["unsupported_reason"]
    assert seen["items"] == items((photo.read_bytes(), i, photo.stem) for i, photo in enumerate(photos))
    refused = read(tmp_path / "a.tar", "--batches", tmp_path / "rows")
    assert refused["error"] == "Unsupported" and "JPEG" in refused["message"]


def test_third_party_tfrecords(read, tmp_path):
    import tensorflow as tf

    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    arrays = [pixels(9, 6, 3, seed) for seed in range(5)]
    path = str(tmp_path / "train-00000-of-00001")
    with tf.io.TFRecordWriter(path) as writer:
        for i, array in enumerate(arrays):
            features = {
                "image_raw": array.tobytes(),
                "label": i,
                "height": 6,
                "width": 9,
                "depth": 3,
                "key": b"k" * (i * 50),
            }
            example = tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()}))
            writer.write(example.SerializeToString())
    seen = read(path, "--verify")
    assert seen["spec"] == "uint8 6x9x3 hwc"
    assert seen["items"] == items((array.tobytes(), i, "k" * (i * 50)) for i, array in enumerate(arrays))
    with tf.io.TFRecordWriter(path + ".gz", tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
        writer.write(b"anything")
    assert "gzip" in read(path + ".gz")["message"]


@pytest.mark.parametrize("storage", ["contiguous", "whole rows in a chunk", "latest"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_third_party_hdf5_files(read, tmp_path, storage, dtype):
    images = (pixels(8, 11 * 13, 3, 1).reshape(11, 13, 8, 3) / 3).astype(dtype)
    options = {"chunks": (4, 13, 8, 3)} if storage == "whole rows in a chunk" else {}
    with h5py.File(tmp_path / "a.h5", "w", libver="latest" if storage == "latest" else "earliest") as file:
        file.create_dataset("x_train", data=images, **options)
        file.create_dataset("y_train", data=np.arange(11, dtype=np.uint8))
    seen = read(tmp_path / "a.h5")
    assert seen["spec"] == f"{np.dtype(dtype)} 13x8x3 hwc"
    assert seen["items"] == items((image.tobytes(), i, "") for i, image in enumerate(images))
    assert "error" not in read(tmp_path / "a.h5", "--batches", tmp_path / "rows", "--batch-size", 3)
    assert (tmp_path / "rows").read_bytes() == images.tobytes()


@pytest.mark.parametrize(
    "options, word",
    [
        ({"compression": "gzip", "chunks": (1, 13, 8, 3)}, "gzip"),
        ({"chunks": (1, 5, 8, 3)}, "chunk"),
        ({"dtype": ">f4"}, "big-endian"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_hdf5_that_cannot_be_mapped(read, tmp_path, options, word):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("images", data=np.zeros((4, 13, 8, 3), np.uint8), **options)
    refused = read(tmp_path / "a.h5")
    assert refused["error"] == "Unsupported" and word in refused["message"], refused


# --- transforms while reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("layout", ["chw", "hwc"])
def test_normalised_batches_equal_torchvision(read, build, animals, tmp_path, dtype, layout):
    import torch
    from torchvision.transforms import functional

    dataset = build(animals[0], tmp_path / "out", "--size", "37x41", "--layout", layout, "--shards", "2")
    seen = read(
        dataset.out,
        "--batches",
        tmp_path / "rows",
        "--dtype",
        dtype,
        "--layout",
        "chw",
        "--batch-size",
        5,
        "--normalize",
        *MEAN,
        *STD,
    )
    arrays = [
        np.frombuffer(raw, np.uint8).reshape(dataset.spec["shape"])
        for shard in dataset.shards()
        for raw in dataset.raw_images(shard)[1]
    ]
    images = torch.stack(
        [torch.from_numpy(array.copy() if layout == "chw" else array.transpose(2, 0, 1).copy()) for array in arrays]
    )
    expected = functional.normalize(images.to(torch.float32).div(255), MEAN, STD).to(getattr(torch, dtype))
    got = torch.frombuffer(bytearray((tmp_path / "rows").read_bytes()), dtype=getattr(torch, dtype)).reshape(
        expected.shape
    )
    assert torch.equal(got, expected)
    assert seen["spec"] == f"{dtype} 3x37x41 chw"


# --- docs/reader.md ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stamps(build, tmp_path_factory):
    """A dataset whose pixels encode their position."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("stamps")
    (folder / "images" / "a").mkdir(parents=True)
    y, x = np.mgrid[:16, :16]
    for i in range(103):
        Image.fromarray(np.stack([y, x, y * 0 + i], -1).astype(np.uint8)).save(folder / "images" / "a" / f"{i}.png")
    return build(folder / "images", folder / "out", "--size", "16", "--shards", "4")


@pytest.mark.parametrize("shuffle", ["none", "full", "block"])
def test_the_order_is_the_documented_one(read, stamps, tmp_path, shuffle):
    for block_rows, window_blocks, seed, epoch in [(10, 3, 0, 0), (7, 1, 5, 9), (1, 200, 2, 1), (500, 4, 1, 2)]:
        seen = read(
            stamps.out,
            "--batches",
            tmp_path / "rows",
            "--shuffle",
            shuffle,
            "--block-rows",
            block_rows,
            "--window-blocks",
            window_blocks,
            "--seed",
            seed,
            "--epoch",
            epoch,
            "--batch-size",
            10,
        )
        samples = [sample for batch in seen["batches"] for sample in batch["samples"]]
        assert samples == documented_order(103, shuffle, block_rows, window_blocks, seed, epoch)


def test_crops_and_flips_are_the_documented_ones(read, stamps, tmp_path):
    read(stamps.out, "--batches", tmp_path / "rows", "--crop", 12, "--flip", "--seed", 3, "--epoch", 4)
    rows = np.frombuffer((tmp_path / "rows").read_bytes(), np.uint8).reshape(-1, 3, 12, 12)
    for sample, (ys, xs, _) in enumerate(rows):
        y, x, flip = documented_crop(3, 4, sample, 4, 4)
        columns = np.arange(x, x + 12)
        assert (ys == np.arange(y, y + 12)[:, None]).all()
        assert (xs == (columns[::-1] if flip else columns)).all()
