# SPDX-License-Identifier: Apache-2.0
"""The manifest is true, and equal input gives equal output."""

import json
from concurrent.futures import ThreadPoolExecutor

import google_crc32c
import jsonschema
import pytest

import images
import reference
from conftest import REPOSITORY
from images import ANIMALS
from reference import DTYPES, ODD, SMALL, Recipe
from shards import FORMATS, Dataset, assert_equal_arrays, assert_equal_samples, expected_animals

ALIGNMENT = 64


def crc32c(data):
    """The CRC-32C in the notation of the manifest."""
    return f"{google_crc32c.value(data):08x}"


@pytest.fixture(scope="module", params=[(name, dtype) for name in FORMATS for dtype in DTYPES], ids="-".join)
def small_dataset(request, build, animals, tmp_path_factory):
    source, _ = animals
    file_format, dtype = request.param
    out = tmp_path_factory.mktemp("out") / "out"
    return build(source, out, "--format", file_format, "--shards", "3", "--size", "16x20", "--dtype", dtype)


def test_the_image_column_leads_to_every_tensor_at_an_aligned_offset(small_dataset):
    for shard in small_dataset.shards():
        offsets, payloads = small_dataset.raw_images(shard)
        assert payloads == [sample.array.tobytes() for sample in small_dataset.read_shard(shard)]
        assert [offset % ALIGNMENT for offset in offsets] == [0] * shard["samples"]
        assert shard["columns"]["image"]["type"] == small_dataset.spec["dtype"]


def test_sizes_checksums_and_counts_are_true(small_dataset):
    for shard in small_dataset.shards():
        data = (small_dataset.out / shard["file"]).read_bytes()
        assert len(data) == shard["bytes"]
        assert crc32c(data) == shard["crc32c"]
        assert len(small_dataset.read_shard(shard)) == shard["samples"]
    counts = [shard["samples"] for shard in small_dataset.shards()]
    assert sum(counts) == small_dataset.manifest["splits"]["train"]["samples"] == sum(ANIMALS.values())
    assert max(counts) - min(counts) <= 1


def test_the_manifest_follows_its_schema(small_dataset):
    schema = REPOSITORY / "docs" / "formats" / "dataset.schema.json"
    if not schema.exists():
        pytest.skip(f"no schema at {schema}")
    jsonschema.validate(small_dataset.manifest, json.loads(schema.read_text()))


def test_the_manifest_names_no_path_outside_the_dataset(small_dataset, animals):
    source, _ = animals
    text = (small_dataset.out / "dataset.json").read_text()
    assert str(source) not in text and str(small_dataset.out) not in text


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder of 60 images and 4 other files; returns the images by key."""
    source = tmp_path_factory.mktemp("mixed")
    names = [f"class{number % 4}/{number}" for number in range(60)]
    files = {name: source / (name + (".jpg", ".png")[seed % 2]) for seed, name in enumerate(names)}
    for seed, path in enumerate(files.values()):
        images.draw_unique(path, seed)
    whole = (source / "class0" / "0.jpg").read_bytes()
    (source / "class0" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (source / "class1" / "empty.jpg").write_bytes(b"")
    (source / "class2" / "noise.png").write_bytes(bytes(range(256)) * 4)
    (source / "class3" / "signature.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return source, files


MIXED_OPTIONS = ("--shards", "5", "--max-bad", "10%", *SMALL.options())
BAD_NAMES = (b"cut.jpg", b"empty.jpg", b"noise.png", b"signature.png")
PARTS = ("0/3", "1/3", "2/3")


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_number_of_threads_changes_no_byte(build, mixed, tmp_path, file_format):
    source, _ = mixed
    options = ("--format", file_format, *MIXED_OPTIONS)
    one, *others = (build(source, tmp_path / jobs, "--jobs", jobs, *options).files() for jobs in ("1", "2", "7"))
    assert len(one) == 7  # the manifest, 5 shards, skipped.tsv
    for other in others:
        assert other == one


@pytest.mark.parametrize("file_format", FORMATS)
def test_bad_files_are_skipped_by_name_and_the_rest_is_whole(build, mixed, tmp_path, file_format):
    source, files = mixed
    dataset = build(source, tmp_path / "out", "--format", file_format, *MIXED_OPTIONS)
    assert_equal_arrays(reference.tensors(files, SMALL), dataset.arrays())
    lines = dataset.skipped().splitlines()
    assert [sum(name in line for line in lines) for name in BAD_NAMES] == [1] * len(BAD_NAMES)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_shard_without_good_images_is_a_valid_empty_file(build, tmp_path, file_format):
    source = tmp_path / "source"
    for number in range(3):
        images.draw_unique(source / "class" / f"{number}.png", number)
    (source / "class" / "bad.png").write_bytes(b"no image")
    options = ("--format", file_format, "--shards", "4", "--max-bad", "50%", *SMALL.options())
    dataset = build(source, tmp_path / "out", *options)
    assert sorted(shard["samples"] for shard in dataset.shards()) == [0, 1, 1, 1]
    assert dataset.samples().keys() == {"class/0", "class/1", "class/2"}
    for shard in dataset.shards():
        data = (dataset.out / shard["file"]).read_bytes()
        assert (len(data), crc32c(data)) == (shard["bytes"], shard["crc32c"])


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_seed_alone_decides_the_order(build, animals, tmp_path, file_format):
    source, files = animals

    def keys_in_order(name, *options):
        dataset = build(source, tmp_path / name, "--format", file_format, "--shards", "2", *SMALL.options(), *options)
        return [sample.key for shard in dataset.shards() for sample in dataset.read_shard(shard)]

    zero, one = keys_in_order("zero", "--seed", "0"), keys_in_order("one", "--seed", "1")
    assert keys_in_order("default") == zero != one
    assert keys_in_order("unshuffled", "--no-shuffle") == sorted(files) != zero
    assert sorted(zero) == sorted(one) == sorted(files)


@pytest.mark.parametrize("file_format", FORMATS)
def test_three_parts_at_once_and_finish_equal_one_build(build, run, mixed, tmp_path, file_format):
    source, _ = mixed
    options = ("--format", file_format, *MIXED_OPTIONS)
    whole = build(source, tmp_path / "whole", *options)

    command = ("build", source, tmp_path / "parts", "--quiet", *options)
    with ThreadPoolExecutor(len(PARTS)) as pool:
        list(pool.map(lambda part: run(*command, "--part", part), PARTS))
    assert not (tmp_path / "parts" / "dataset.json").exists()
    run(*command, "--finish")
    assert Dataset(tmp_path / "parts").files() == whole.files()


def test_finish_refuses_while_a_part_is_missing(run, mixed, tmp_path):
    source, _ = mixed
    command = ("build", source, tmp_path / "out", "--quiet", *MIXED_OPTIONS)
    run(*command, "--part", PARTS[0])
    done = run(*command, "--finish", expect=2)
    assert done.stderr
    assert not (tmp_path / "out" / "dataset.json").exists()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_second_split_leaves_the_first_untouched(build, animals, tmp_path, file_format):
    source, files = animals
    out = tmp_path / "out"
    options = ("--format", file_format, *SMALL.options())
    train = build(source, out, "--shards", "2", *options)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in train.shard_paths()}

    evaluation = tmp_path / "evaluation"
    images.draw_unique(evaluation / "dog" / "late.png", 901)
    images.draw_unique(evaluation / "bee" / "late.png", 902)
    both = build(evaluation, out, "--split", "val", "--classes", out / "dataset.json", *options)

    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before
    assert both.manifest["splits"].keys() == {"train", "val"}
    assert both.manifest["splits"]["train"] == train.manifest["splits"]["train"]
    assert all(path.name.startswith("val-") for path in both.shard_paths("val"))
    assert both.classes == list(ANIMALS)
    assert both.labels("val") == {"dog/late": 3, "bee/late": 1}
    assert_equal_samples(expected_animals(files, SMALL), both.samples("train"))


def test_a_finished_dataset_is_overwritten_only_on_request(build, run, animals, tmp_path):
    source, _ = animals
    first = build(source, tmp_path / "out", *SMALL.options())
    before = first.files()
    run("build", source, tmp_path / "out", "--quiet", *ODD.options(), expect=2)
    assert first.files() == before
    replaced = build(source, tmp_path / "out", "--overwrite", *ODD.options())
    assert replaced.spec["shape"] == [3, 15, 17]
    assert replaced.files().keys() == before.keys()


def assert_whole(dataset, expected):
    """Checks the only shard with a reader of its format and by the image column."""
    [shard] = dataset.shards()
    samples = dataset.read_shard(shard)
    assert_equal_arrays(expected, {sample.key: sample.array for sample in samples})
    offsets, payloads = dataset.raw_images(shard)
    assert payloads == [sample.array.tobytes() for sample in samples]
    aligned = offsets[:1] if dataset.manifest["format"] == "hdf5" else offsets  # rows of HDF5 have no gaps
    assert [offset % ALIGNMENT for offset in aligned] == [0] * len(aligned)
    assert crc32c((dataset.out / shard["file"]).read_bytes()) == shard["crc32c"]


def nested_name(length):
    """A path of `length` bytes, in folders of 50."""
    return "".join("/" if place % 51 == 50 and place < length - 1 else "n" for place in range(length))


KEY_LENGTHS = (*range(1, 12), *range(90, 110), *range(120, 135), *range(150, 162), *range(240, 262), 1000, 3000)


@pytest.mark.parametrize("file_format", FORMATS)
def test_keys_of_every_length_next_to_a_short_one(build, tmp_path, file_format):
    """Covers names that no longer fit ustar, and TFRecord lengths that grow by a byte."""
    for length in KEY_LENGTHS:
        source = tmp_path / f"source{length}"
        files = {"c/x": source / "c" / "x.png"}
        key = f"c/{nested_name(length)}"
        files[key] = source / f"{key}.png"
        for seed, path in enumerate(files.values()):
            images.draw_unique(path, seed)
        dataset = build(source, tmp_path / f"out{length}", "--format", file_format, *SMALL.options())
        assert_whole(dataset, reference.tensors(files, SMALL))


NARROW = [(1, width) for width in (*range(1, 70), *range(100, 150))]
TENSOR_SIZES = (*NARROW, (2, 8191), (127, 129), (128, 128), (5, 3277))  # the last four around 2^14 bytes


@pytest.mark.parametrize("file_format", FORMATS)
def test_tensors_of_every_number_of_bytes(build, tmp_path, file_format):
    files = {f"c/{name}": tmp_path / "source" / "c" / f"{name}.png" for name in ("a", "bb", "a much longer name")}
    for seed, path in enumerate(files.values()):
        images.draw_unique(path, seed)
    for size in TENSOR_SIZES:
        recipe = Recipe(size=size, fit="stretch", color="gray")
        dataset = build(tmp_path / "source", tmp_path / f"out{size}", "--format", file_format, *recipe.options())
        assert_whole(dataset, reference.tensors(files, recipe))
