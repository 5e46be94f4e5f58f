# SPDX-License-Identifier: Apache-2.0
"""Bad images are skipped with a reason; too many fail the build. They take no space and little memory."""

import io
import shutil
import struct
import tarfile
import zlib

import google_crc32c
import h5py
import pytest

import images
from reference import SMALL
from shards import FORMATS, Dataset
from tool import EXTENSIONS, differing, files, run_and_measure

pytest_plugins = ("tool_fixtures",)

SHARD = 6  # images in a shard
# The bad images of each shard: at the front, at the back, in between, all, all but one.
BAD = [(0, 1), (4, 5), (1, 4), (0, 5), (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4), (1, 2, 3, 4, 5), (), (0, 2, 4)]
SHARDS = len(BAD)
TOTAL = SHARD * SHARDS
BAD_TOTAL = sum(map(len, BAD))
OPTIONS = (*SMALL.options(), "--shards", str(SHARDS), "--no-shuffle")
TOLERANT = ("--max-bad", "90%")


def is_bad(number):
    return number % SHARD in BAD[number // SHARD]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Good and bad images, whose names are in the order in which --no-shuffle puts them into shards."""
    source = tmp_path_factory.mktemp("mixed")
    for number in range(TOTAL):
        path = source / "class" / f"{number:03}.png"
        images.draw_unique(path, number)
        if is_bad(number):
            path.write_bytes(path.read_bytes()[: 40 + number])
    return source


def tar_keys(path):
    with tarfile.open(path) as archive:
        return [name.removesuffix(".npy") for name in archive.getnames() if name.endswith(".npy")]


def hdf5_keys(path):
    with h5py.File(path) as file:
        assert len(file["images"]) == len(file["labels"]) == len(file["keys"])
        return [key.decode() for key in file["keys"]]


def masked_crc(data):
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord_keys(path):
    """Parses the framing by the specification."""
    data, keys = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        example = data[12 : 12 + length]
        assert data[8:12] == struct.pack("<I", masked_crc(data[:8]))
        assert data[12 + length : 16 + length] == struct.pack("<I", masked_crc(example))
        keys.append(example[example.index(b"class/") :][:9].decode())
        data = data[16 + length :]
    return keys


KEYS = {"tar": tar_keys, "tfrecord": tfrecord_keys, "hdf5": hdf5_keys}


def expected_keys(shard):
    """Without a shuffle, survivors keep their order."""
    return [f"class/{number:03}" for number in range(shard * SHARD, (shard + 1) * SHARD) if not is_bad(number)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_bytes_depend_only_on_the_set_of_bad_images(tool, mixed, tmp_path, file_format):
    options = (*OPTIONS, *TOLERANT, "--format", file_format)
    for jobs in ("1", "2", "7"):
        tool.build(mixed, tmp_path / jobs, *options, "--jobs", jobs)
    one, two, seven = (files(tmp_path / jobs) for jobs in ("1", "2", "7"))
    assert differing(one, two) == differing(one, seven) == []
    for number, path in enumerate(Dataset(tmp_path / "1").shard_paths()):
        assert KEYS[file_format](path) == expected_keys(number)
    counts = [shard["samples"] for shard in Dataset(tmp_path / "1").shards()]
    assert counts == [SHARD - len(bad) for bad in BAD]


def skipped_rows(out):
    header, *rows = (out / "skipped.tsv").read_text().splitlines()
    assert header == "split\tpath\tstage\treason"
    return [row.split("\t") for row in rows]


def test_every_bad_image_is_listed_with_its_reason(tool, mixed, tmp_path):
    result = tool.build(mixed, tmp_path / "out", *OPTIONS, *TOLERANT)
    rows = skipped_rows(tmp_path / "out")
    assert [row[:3] for row in rows] == [
        ["train", f"class/{number:03}.png", "decode"] for number in range(TOTAL) if is_bad(number)
    ]
    assert all(row[3] for row in rows)
    assert f"{BAD_TOTAL} samples skipped" in result.err and str(tmp_path / "out" / "skipped.tsv") in result.err
    assert Dataset(tmp_path / "out").manifest["splits"]["train"]["skipped"] == BAD_TOTAL
    summary = tool.build(mixed, tmp_path / "json", *OPTIONS, *TOLERANT, "--json").json()
    assert (summary["samples"], summary["skipped"]) == (TOTAL - BAD_TOTAL, BAD_TOTAL)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("strict", ["--max-bad 0%", "--max-bad 10%", "--on-error fail"])
def test_resuming_with_a_higher_limit_equals_starting_with_it(tool, mixed, tmp_path, file_format, strict):
    options = (*OPTIONS, "--format", file_format)
    out = tmp_path / "out"
    result = tool.build(mixed, out, *options, *strict.split(), expect=1)
    assert result.out == ""
    assert "--max-bad" in result.err or "--on-error" in result.err
    assert not (out / "dataset.json").exists()
    rows = skipped_rows(out)
    assert rows and all(row[0] == "train" and row[3] for row in rows)
    assert all(is_bad(int(row[1][6:9])) for row in rows)
    assert all(row[1] in result.err for row in rows[:5])

    tool.build(mixed, out, *options, *TOLERANT)
    tool.build(mixed, tmp_path / "tolerant", *options, *TOLERANT)
    assert differing(files(out), files(tmp_path / "tolerant")) == []


def test_max_bad_is_a_share_of_all_images(tool, mixed, tmp_path):
    share = 100 * BAD_TOTAL / TOTAL
    tool.build(mixed, tmp_path / "enough", *OPTIONS, "--max-bad", f"{share + 0.001:.4f}%")
    tool.build(mixed, tmp_path / "too little", *OPTIONS, "--max-bad", f"{share - 0.001:.4f}%", expect=1)


def test_parts_share_one_limit_for_bad_images(tool, mixed, tmp_path):
    out = tmp_path / "out"
    for part in ("0/2", "1/2"):
        tool.build(mixed, out, *OPTIONS, *TOLERANT, "--part", part)
    tool.build(mixed, out, *OPTIONS, "--finish", "--max-bad", "1%", expect=1)
    assert not (out / "dataset.json").exists()
    assert len(skipped_rows(out)) == BAD_TOTAL
    tool.build(mixed, out, *OPTIONS, "--finish", *TOLERANT)
    tool.build(mixed, tmp_path / "whole", *OPTIONS, *TOLERANT)
    assert differing(files(out), files(tmp_path / "whole")) == []


def test_a_part_reports_its_skipped_images(tool, mixed, tmp_path):
    result = tool.build(mixed, tmp_path / "out", *OPTIONS, *TOLERANT, "--part", "0/2")
    assert ("skipped.tsv" in result.err) == (tmp_path / "out" / "skipped.tsv").exists()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_dataset_of_only_bad_images_is_whole(tool, tmp_path, file_format):
    source = tmp_path / "source"
    (source / "class").mkdir(parents=True)
    for number in range(4):
        (source / "class" / f"{number:03}.jpg").write_bytes(b"no image")
    options = (*SMALL.options(), "--shards", "2", "--max-bad", "100%", "--format", file_format)
    tool.build(source, tmp_path / "out", *options)
    for number in range(2):
        assert KEYS[file_format](tmp_path / "out" / f"train-00000{number}.{EXTENSIONS[file_format]}") == []
    assert Dataset(tmp_path / "out").manifest["splits"]["train"]["samples"] == 0


def test_odd_names_do_not_break_the_report(tool, tmp_path):
    names = ["tab\there.jpg", "line\nbreak.jpg", "back\\slash.jpg", "caf\u00e9.jpg"]
    for name in names:
        (tmp_path / "source" / "class").mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / "class" / name).write_bytes(b"no image")
    tool.build(tmp_path / "source", tmp_path / "out", *SMALL.options(), "--max-bad", "100%")
    rows = skipped_rows(tmp_path / "out")
    assert sorted(row[1] for row in rows) == sorted(
        ["class/tab\\there.jpg", "class/line\\nbreak.jpg", "class/back\\\\slash.jpg", "class/caf\u00e9.jpg"]
    )
    assert {len(row) for row in rows} == {4}


# --- memory -----------------------------------------------------------------------------------------------------------

MEMORY_LIMIT = 400_000_000


def png_bomb(side):
    header = images.png_chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    data = images.png_chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
    return b"\x89PNG\r\n\x1a\n" + header + data + images.png_chunk(b"IEND", b"")


def jpeg_bomb(side):
    """A small file whose frame header claims a large image."""
    file = io.BytesIO()
    images.picture("RGB", 64, 64).save(file, "JPEG")
    data = file.getvalue()
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", side, side) + data[at + 4 :]


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    source = tmp_path_factory.mktemp("bombs")
    (source / "class").mkdir()
    (source / "class" / "bomb.png").write_bytes(png_bomb(60000))
    (source / "class" / "bomb.jpg").write_bytes(jpeg_bomb(60000))
    return source


def measured_build(tool, source, out, *options):
    """Builds with any number of bad images, and with little memory."""
    result, peak = run_and_measure(tool, "build", source, out, "--quiet", "--max-bad", "100%", *options)
    assert result.code == 0, result.err
    if not tool.is_sanitized():
        assert peak < MEMORY_LIMIT
    return skipped_rows(out)


def test_a_header_that_claims_too_many_pixels_is_rejected(tool, bombs, tmp_path):
    rows = measured_build(tool, bombs, tmp_path / "out")
    assert sorted(row[1:3] for row in rows) == [["class/bomb.jpg", "limit"], ["class/bomb.png", "limit"]]
    assert all("60000x60000" in row[3] and "max_pixels" in row[3] for row in rows)


def test_a_higher_limit_lets_the_bytes_decide(tool, tmp_path):
    (tmp_path / "source" / "class").mkdir(parents=True)
    (tmp_path / "source" / "class" / "bomb.png").write_bytes(png_bomb(60000))
    rows = measured_build(tool, tmp_path / "source", tmp_path / "out", "--max-pixels", "4000000000")
    assert [row[1:3] for row in rows] == [["class/bomb.png", "decode"]]
    assert "max_pixels" not in rows[0][3]


def test_the_limit_is_exact(tool, tmp_path):
    images.draw_unique(tmp_path / "source" / "class" / "30x40.png", 0)  # 1200 pixels
    tool.build(tmp_path / "source", tmp_path / "over", "--max-pixels", "1199", expect=1)
    tool.build(tmp_path / "source", tmp_path / "at", "--max-pixels", "1200")


def test_fuzzed_and_truncated_files_take_little_memory(tool, corpora, tmp_path):
    for kind in ("jpeg-bad", "png-bad"):
        shutil.copytree(corpora / kind, tmp_path / "source" / kind)
    rows = measured_build(tool, tmp_path / "source", tmp_path / "out", "--size", "64")
    assert len(rows) > 20 and all(row[3] for row in rows)
