# SPDX-License-Identifier: Apache-2.0
"""`inspect` reports what other libraries find in datasets and third-party shards."""

import collections
import gzip
import io
import tarfile
from collections import Counter

import h5py
import numpy as np
import pytest
from PIL import Image

from images import ANIMALS
from inspection import inspect_one, parse
from shards import FORMATS

pytest_plugins = ("tool_fixtures",)


@pytest.fixture(
    params=[(format, dtype) for format in FORMATS for dtype in ("uint8", "float16", "bfloat16", "float32")],
    ids=lambda pair: "-".join(pair),
)
def dataset(request, animals, build, tmp_path):
    format, dtype = request.param
    normalize = () if dtype == "uint8" else ("--normalize", "imagenet")
    return build(
        animals[0],
        tmp_path / "out",
        "--format",
        format,
        "--dtype",
        dtype,
        "--size",
        "24x20",
        "--shards",
        "2",
        *normalize,
    )


def check_values(values, arrays):
    """`arrays` are chw, all of the samples."""
    for channel, found in enumerate(values["channels"]):
        expected = np.stack([array[channel] for array in arrays]).astype(np.float64)
        assert found["min"] == expected.min() and found["max"] == expected.max()
        assert found["mean"] == pytest.approx(expected.mean(), rel=1e-9)
        assert found["std"] == pytest.approx(expected.std(), rel=1e-6)
        low, high = values["histogram_range"]
        counts, _ = np.histogram(expected, len(found["histogram"]), (low, high))
        assert sum(found["histogram"]) == expected.size
        assert np.abs(counts - found["histogram"]).sum() <= expected.size // 500  # values on the edge of a step


def test_precache_datasets(run, dataset):
    facts = inspect_one(run, dataset.out, "--all")
    samples = dataset.samples()
    assert (facts["kind"], facts["manifest"], facts["format"]) == ("dataset", True, dataset.manifest["format"])
    assert facts["samples"] == len(samples) and facts["files"] == facts["files_read"] == 2
    assert facts["bytes"] == sum(path.stat().st_size for path in dataset.shard_paths())
    array = next(iter(samples.values())).array
    assert facts["tensor"] == {
        "dtype": dataset.spec["dtype"],
        "shape": [3, 24, 20],
        "layout": "chw",
        "bytes": array.nbytes,
    }
    assert facts["overhead_bytes"] == facts["bytes"] - len(samples) * array.nbytes
    column = dataset.shards()[0]["columns"]["image"]
    assert facts["access"]["zero_copy"] and facts["access"]["stride_bytes"] == column["stride"]
    assert facts["access"]["alignment_bytes"] % 64 == 0 or dataset.manifest["format"] == "hdf5"
    assert facts["recipe"] == dataset.manifest["recipe"]
    assert facts["first_keys"] == [sample.key for sample in dataset.read_shard(dataset.shards()[0])][:5]
    labels = Counter(sample.label for sample in samples.values())
    assert facts["classes"]["complete"] and facts["classes"]["unlabelled"] == 0
    assert {count["name"]: count["samples"] for count in facts["classes"]["counts"]} == {
        name: labels[label] for label, name in enumerate(ANIMALS)
    }
    assert facts["values"]["complete"] and facts["values"]["samples_read"] == len(samples)
    check_values(facts["values"], [sample.array for sample in samples.values()])
    assert facts["contents"] is None and facts["faults"] == facts["unsupported_reasons"] == []


def test_precache_shards_without_their_manifest(run, dataset, tmp_path):
    """Only the facts that dataset.json alone has are missing."""
    known = inspect_one(run, dataset.out, "--all")
    assert dataset.manifest  # read while it is there
    (dataset.out / "dataset.json").rename(tmp_path / "dataset.json")
    facts = inspect_one(run, dataset.out, "--all")
    assert not facts["manifest"] and facts["kind"] == "shards" and facts["samples"] == known["samples"]
    tells_type = dataset.manifest["format"] == "hdf5" or (
        dataset.manifest["format"] == "tar" and dataset.spec["dtype"] != "bfloat16"
    )
    if tells_type:
        assert facts["tensor"] == known["tensor"] and facts["values"] == known["values"]
    else:
        assert facts["tensor"] is None and facts["unsupported_reasons"]
    assert [count["samples"] for count in facts["classes"]["counts"]] == [
        count["samples"] for count in known["classes"]["counts"]
    ]


def test_reading_only_some_samples_is_reported(run, build, tmp_path):
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for i in range(1200):
        Image.new("L", (2, 2), i % 256).save(folder / f"{i:04}.png")
    build(tmp_path / "images", tmp_path / "out", "--size", "2", "--color", "gray")
    facts = inspect_one(run, tmp_path / "out")
    assert facts["classes"]["labels_read"] == 1000 and not facts["classes"]["complete"]
    assert facts["values"]["samples_read"] == 64 and not facts["values"]["complete"]
    text = run("inspect", tmp_path / "out").stdout.decode()
    assert "1,000 of 1,200 labels read" in text and "--all reads every file, label and value" in text
    facts = inspect_one(run, tmp_path / "out", "--all")
    assert facts["classes"]["labels_read"] == facts["values"]["samples_read"] == 1200
    assert facts["classes"]["complete"] and facts["values"]["complete"]


def test_splits(run, animals, build, tmp_path):
    build(animals[0], tmp_path / "out", "--size", "8", "--split", "val", "--no-shuffle")
    build(animals[0], tmp_path / "out", "--size", "8", "--split", "train", "--seed", "5")
    facts = inspect_one(run, tmp_path / "out")
    assert [split["name"] for split in facts["splits"]] == ["train", "val"]
    assert facts["samples"] == sum(split["samples"] for split in facts["splits"])
    assert [split["shuffled"] for split in facts["splits"]] == [True, False] and facts["splits"][0]["seed"] == 5
    only = inspect_one(run, tmp_path / "out", "--split", "val")
    assert only["samples"] == facts["splits"][1]["samples"] and len(only["splits"]) == 1
    assert b"no split" in run("inspect", tmp_path / "out", "--split", "test", expect=2).stderr


def jpeg(size, color):
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, "JPEG")
    return file.getvalue()


def add_entry(archive, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


@pytest.fixture
def webdataset_tar(tmp_path):
    path = tmp_path / "train.tar"
    with tarfile.open(path, "w") as archive:
        for i in range(9):
            add_entry(archive, f"a/{i}.jpg", jpeg((20 + i, 30), (i * 20, 0, 255)))
            add_entry(archive, f"a/{i}.cls", str(i % 4).encode())
            if i % 3 == 0:
                add_entry(archive, f"a/{i}.seg.png", b"x" * (100 + i))
        add_entry(archive, "README", b"no sample")
    return path


def test_a_tar_of_images_as_webdataset_and_pillow_see_it(run, webdataset_tar):
    import webdataset

    samples = list(webdataset.WebDataset(str(webdataset_tar), shardshuffle=False))
    images = [np.asarray(Image.open(io.BytesIO(sample["jpg"]))) for sample in samples]
    facts = inspect_one(run, webdataset_tar)
    assert (facts["kind"], facts["format"], facts["samples"]) == ("shard", "tar", len(samples))
    assert facts["first_keys"] == [sample["__key__"] for sample in samples[:5]]
    labels = Counter(int(sample["cls"]) for sample in samples)
    assert {count["label"]: count["samples"] for count in facts["classes"]["counts"]} == labels
    assert facts["encoded"]["kinds"] == {"JPEG": len(samples)}
    sizes = [len(sample["jpg"]) for sample in samples]
    assert facts["encoded"]["bytes"] == {"min": min(sizes), "max": max(sizes), "mean": pytest.approx(np.mean(sizes))}
    assert facts["encoded"]["width"]["max"] == max(image.shape[1] for image in images)
    assert facts["encoded"]["height"] == {"min": 30, "max": 30, "mean": 30}
    for channel, found in enumerate(facts["values"]["channels"]):
        pixels = np.concatenate([image[..., channel].ravel() for image in images])
        assert (found["min"], found["max"]) == (pixels.min(), pixels.max())
        assert found["mean"] == pytest.approx(pixels.mean())
    assert not facts["access"]["zero_copy"] and "JPEG" in facts["access"]["reason"]
    tar = facts["contents"]["tar"]
    with tarfile.open(webdataset_tar) as archive:
        names = archive.getnames()
    assert tar["files"] == len(names) and tar["ungrouped_files"] == 1
    assert {entry["name"]: entry["files"] for entry in tar["extensions"]} == Counter(
        name.split(".", 1)[1] for name in names if "." in name
    )
    groups = Counter(tuple(key for key in sample if not key.startswith("__")) for sample in samples)
    assert {tuple(pattern["extensions"]): pattern["samples"] for pattern in tar["patterns"]} == groups


def test_features_as_tensorflow_sees_them(run, corpora):
    import tensorflow as tf

    folder = corpora / "tfrecord"
    files = [
        folder / "tf-models" / "pets_examples.record",
        folder / "pytorch-data" / "example.tfrecord",
        folder / "food-detection" / "val.tfrecord",
    ]
    for path in files:
        seen = collections.defaultdict(list)
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            for name, feature in tf.train.Example.FromString(record).features.feature.items():
                seen[name].append(feature)
        facts = inspect_one(run, path)["contents"]["tfrecord"]
        assert {feature["name"] for feature in facts["features"]} == seen.keys()
        for found in facts["features"]:
            features = seen[found["name"]]
            kinds = {feature.WhichOneof("kind") for feature in features}
            assert kinds == {{"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}[found["kind"]]}
            lengths = [len(getattr(feature, feature.WhichOneof("kind")).value) for feature in features]
            assert (found["records"], found["values"]["min"], found["values"]["max"]) == (
                len(features),
                min(lengths),
                max(lengths),
            )
            if found["kind"] == "bytes" and min(lengths) > 0:
                sizes = [len(feature.bytes_list.value[0]) for feature in features]
                assert (found["bytes"]["min"], found["bytes"]["max"]) == (min(sizes), max(sizes))


def test_sequence_examples_and_compressed_records(run, corpora):
    folder = corpora / "tfrecord"
    facts = inspect_one(run, folder / "pytorch-data" / "sequence_example.tfrecord")
    features = {feature["name"]: feature for feature in facts["contents"]["tfrecord"]["features"]}
    assert facts["contents"]["tfrecord"]["sequence_examples"] == 4
    assert features["x_float_seq"]["sequence"] and not features["x_float"]["sequence"]
    assert "not a tf.train.Example" in facts["unsupported_reasons"][0]
    plain = inspect_one(run, folder / "tfds" / "dmlab-train.tfrecord-00000-of-00001")
    for name in ("gzip", "zlib"):
        facts = inspect_one(run, folder / "derived" / f"{name}.tfrecord")
        assert facts["compression"] == name and facts["contents"] == plain["contents"] and facts["samples"] is None
    facts = inspect_one(run, folder / "derived" / "gzip-truncated.tfrecord", expect=4)
    assert facts["contents"]["tfrecord"]["records"] == 1 and "gzip" in facts["faults"][0]["reason"]


def storage_of(dataset):
    if dataset.is_virtual:
        return "virtual"
    if dataset.external:
        return "external"
    if dataset.chunks:
        return "chunked"
    return "compact" if dataset.id.get_create_plist().get_layout() == h5py.h5d.COMPACT else "contiguous"


def test_the_tree_of_hdf5_as_h5py_sees_it(run, tmp_path):
    path = tmp_path / "data.h5"
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        file["x"] = random.normal(size=(7, 12, 10, 3)).astype(np.float32)
        file["y"] = np.arange(7) % 3
        group = file.create_group("more/deep")
        group.create_dataset(
            "zipped", data=random.integers(0, 9, (40, 30)), chunks=(8, 30), compression="gzip", shuffle=True
        )
        group.create_dataset("words", data=["a", "bc"], dtype=h5py.string_dtype())
        group.create_dataset("big", data=np.arange(4, dtype=">i2"))
        file["scalar"] = np.float64(1)
        file["soft"] = h5py.SoftLink("/x")
        file["other"] = h5py.ExternalLink("elsewhere.h5", "/y")
    facts = inspect_one(run, path, "--all")
    objects = {found["name"]: found for found in facts["contents"]["hdf5"]["objects"]}
    with h5py.File(path) as file:
        seen = {}
        file.visititems(lambda name, item: seen.update({name: item}))
        assert objects.keys() == seen.keys() | {"soft", "other"}
        for name, item in seen.items():
            if isinstance(item, h5py.Group):
                assert objects[name] == {"name": name, "kind": "group"}
                continue
            assert objects[name]["shape"] == list(item.shape) and objects[name]["storage"] == storage_of(item)
            assert objects[name]["chunk"] == (list(item.chunks) if item.chunks else None)
            assert objects[name]["offset"] == item.id.get_offset()
            assert objects[name]["stored_bytes"] == item.id.get_storage_size()
        x = file["x"][:]
    assert objects["more/deep/zipped"]["filters"] == ["shuffle", "gzip"]
    assert {name: objects[name]["type"] for name in ("x", "y", "more/deep/words", "more/deep/big")} == {
        "x": "float32",
        "y": "int64",
        "more/deep/words": "string",
        "more/deep/big": "big-endian int16",
    }
    assert objects["soft"]["target"] == "/x" and objects["other"]["target"] == "elsewhere.h5:/y"
    assert facts["tensor"]["shape"] == [12, 10, 3] and facts["tensor"]["layout"] == "hwc"
    check_values(facts["values"], x.transpose(0, 3, 1, 2))


def test_unreadable_data_is_still_described(run, tmp_path):
    with h5py.File(tmp_path / "zipped.h5", "w") as file:
        file.create_dataset("images", data=np.zeros((5, 8, 8), np.uint8), compression="gzip")
    facts = inspect_one(run, tmp_path / "zipped.h5")
    assert "gzip" in facts["access"]["reason"] and facts["contents"]["hdf5"]["objects"][0]["shape"] == [5, 8, 8]
    with tarfile.open(tmp_path / "texts.tar.gz", "w:gz") as archive:
        add_entry(archive, "a.txt", b"text")
    facts = inspect_one(run, tmp_path / "texts.tar.gz")
    assert facts["compression"] == "gzip" and facts["contents"]["tar"]["extensions"][0]["name"] == "txt"
    (tmp_path / "photo.tar").write_bytes(jpeg((4, 4), "red"))
    facts = inspect_one(run, tmp_path / "photo.tar")
    assert (facts["kind"], facts["content"]) == ("file", "JPEG")
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 4)
    assert inspect_one(run, tmp_path / "noise.bin", expect=5)["kind"] == "file"
    (tmp_path / "whole.gz").write_bytes(gzip.compress(b"no shard at all"))
    assert inspect_one(run, tmp_path / "whole.gz")["format"] is None


def test_damage_is_named_with_the_samples_before_it(run, webdataset_tar):
    data = bytearray(webdataset_tar.read_bytes())
    with tarfile.open(webdataset_tar) as archive:
        fifth = archive.getmembers()[5]
    data[fifth.offset + 3] ^= 1
    webdataset_tar.write_bytes(data)
    facts = inspect_one(run, webdataset_tar, expect=4)
    (fault,) = facts["faults"]
    assert fault["offset"] == fifth.offset and facts["contents"]["tar"]["files"] == 5
    text = " ".join(
        run("inspect", webdataset_tar, expect=4).stdout.decode().split()
    )  # lines are folded where the path ends
    assert f"byte {fifth.offset}" in text


def test_a_dataset_that_lacks_a_shard(run, dataset):
    first, second = dataset.shard_paths()
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    reasons = [fault["reason"] for fault in inspect_one(run, dataset.out, expect=4)["faults"]]
    assert "does not exist" in reasons[0] and "the manifest says" in reasons[1]


def test_many_third_party_files(run, webdataset_tar, tmp_path):
    for i in range(20):
        (tmp_path / f"train-{i:02}.tar").write_bytes(webdataset_tar.read_bytes())
    facts = inspect_one(run, tmp_path / "train-*.tar")
    assert (facts["files"], facts["files_read"], facts["samples"]) == (20, 16, 16 * 9)
    assert facts["bytes"] == 20 * webdataset_tar.stat().st_size and not facts["classes"]["complete"]
    assert "4 files were not read" in run("inspect", tmp_path / "train-*.tar").stdout.decode()
    assert inspect_one(run, tmp_path / "train-*.tar", "--all")["samples"] == 180


def test_bad_paths(run, tmp_path):
    assert b"No such file" in run("inspect", tmp_path / "none.tar", expect=3).stderr
    assert b"matches no file" in run("inspect", tmp_path / "*.tar", expect=2).stderr
    assert b"required" in run("inspect", expect=2).stderr


HOSTILE = ["\x1b[31mred\x1b[0m", "<script>alert(1)</script>", "a\"b'&c", "\u202egpj", "line\nend"]


def test_names_are_escaped(run, tmp_path):
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in HOSTILE:
            add_entry(archive, name + ".jpg", jpeg((8, 8), "red"))
        entry = tarfile.TarInfo(b"bad\xff\xfe".decode(errors="surrogateescape") + ".jpg")
        entry.size = 0
        archive.addfile(entry)
    page = tmp_path / "page.html"
    shown = run("inspect", path, "--html", page, "--sheet", tmp_path / "sheet.png").stdout.decode("utf-8")
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown) and "\u202e" not in shown
    assert "\\x1b[31mred" in shown
    assert inspect_one(run, path)["first_keys"][:5] == [name.split(".")[0] for name in HOSTILE]
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html and "&lt;script&gt;" in html and "\x1b" not in html and "\u202e" not in html


def test_files_of_the_corpora_are_described_or_refused(run, corpora, precache):
    import subprocess

    for path in sorted(
        path
        for kind in ("tar", "tfrecord", "hdf5")
        for path in (corpora / kind).rglob("*")
        if path.is_file() and path.suffix != ".tsv"
    ):
        done = subprocess.run([precache, "inspect", path, "--json"], capture_output=True, timeout=300)
        assert done.returncode in (0, 4, 5), (path, done)
        (facts,) = parse(done.stdout)
        assert bool(facts["faults"]) == (done.returncode == 4), path
        assert facts["contents"] or facts["faults"] or facts["unsupported_reasons"], path


def jpeg_tar(path):
    with tarfile.open(path, "w") as archive:
        for number in range(8):
            file = io.BytesIO()
            Image.new("RGB", (20 + number, 16), (number, 90, 200)).save(file, "JPEG")
            for name, content in ((f"{number}.jpg", file.getvalue()), (f"{number}.cls", b"%d" % (number % 3))):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("content", ["JPEG tar", *FORMATS])
def test_a_shard_is_opened_once(tool, interference, animals, build, tmp_path, content):
    """Contents, samples, decoded values and pictures come from one mapping of a third-party shard."""
    shard = tmp_path / "third-party-shard"
    if content == "JPEG tar":
        jpeg_tar(shard)
    else:  # without its manifest, a precache shard is like any other
        out = build(animals[0], tmp_path / "out", "--format", content, "--size", "24x20", "--shards", "1")
        out.shard_paths()[0].rename(shard)
    log = tmp_path / "opened"
    tool.run(
        "inspect",
        shard,
        "--html",
        tmp_path / "page.html",
        "--sheet",
        tmp_path / "sheet.png",
        env=interference.environment(calls="open", path=shard.name, log=log),
    )
    page = (tmp_path / "page.html").read_text()
    assert page.count('class="tile"') > 1 and ("data:image/png" in page or content == "tfrecord")  # which has no shapes
    opened = log.read_text().splitlines()
    helpers = 2 if content == "hdf5" else 0  # processes that open the file for the HDF5 library
    assert 1 <= len(opened) <= 1 + helpers
