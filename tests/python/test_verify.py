# SPDX-License-Identifier: Apache-2.0
"""`precache verify`: its output and its exit status."""

import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import zlib

import google_crc32c
import h5py
import numpy as np
import pytest

from images import draw_unique
from reference import SMALL
from shards import DTYPES, FORMATS
from tool import finish

pytest_plugins = ("tool_fixtures",)


@pytest.fixture
def dataset(build, animals, tmp_path, request):
    return build(animals[0], tmp_path / "out", "--format", request.param, "--size", "16", "--shards", "3")


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
def test_a_new_dataset_is_whole(run, dataset):
    said = run("verify", dataset.out).stdout.decode()
    samples = dataset.manifest["splits"]["train"]["samples"]
    assert said.startswith("whole") and f"{samples} samples in 3 files" in said and "against the manifest" in said
    result = json.loads(run("verify", dataset.out, "--json").stdout)
    assert result["whole"] and result["files"] == result["files_in_manifest"] == 3 and result["samples"] == samples
    assert result["bytes"] == sum(path.stat().st_size for path in dataset.shard_paths())


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
def test_damage_is_named_and_ends_with_4(run, dataset):
    path = dataset.shard_paths()[1]
    offset = dataset.raw_images(dataset.shards()[1])[0][1]  # of the second image
    data = bytearray(path.read_bytes())
    data[offset + 5] ^= 1
    path.write_bytes(data)
    said = run("verify", dataset.out, expect=4).stdout.decode()
    first, last = said.splitlines()
    assert first.startswith(f"{path}: ") and last.startswith("damaged")
    assert "record 1, byte" in first and "CRC" in first
    for given in (dataset.out, path):
        (fault,) = json.loads(run("verify", given, "--json", expect=4).stdout)["faults"]
        assert (fault["file"], fault["record"]) == (str(path), 1)
        assert offset - 640 <= fault["offset"] <= offset
    (dataset.out / "dataset.json").unlink()
    (fault,) = json.loads(run("verify", path, "--json", expect=4).stdout)["faults"]
    assert fault["record"] == 1, "the shard alone tells"


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
@pytest.mark.parametrize(
    "change",
    (lambda file: file.truncate(5000), lambda file: (file.seek(0, 2), file.write(b"x"))),
    ids=("cut", "longer"),
)
def test_a_shard_that_changes_its_size_during_verify_is_damaged(tool, interference, dataset, change):
    path = dataset.shard_paths()[1]
    arguments = ("verify", dataset.out, "--quiet", "--jobs", "1")
    with interference.hold(tool, *arguments, calls="pread", path=path.name) as (process, gate):
        with open(path, "r+b") as file:
            change(file)
        gate.open()
        result = finish(process)
    assert result.code == 4 and path.name in result.out


@pytest.mark.parametrize(
    "name, entries", [("a/{}.png", 2), (f"{'folder-' * 20}/{'name-' * 30}{{}}.png", 4)], ids=["ustar", "pax"]
)
def test_crcs_in_tar_headers_are_those_of_another_library(build, tmp_path, name, entries):
    for number in range(3):
        draw_unique(tmp_path / "images" / name.format(number), number)
    (path,) = build(tmp_path / "images", tmp_path / "out", "--size", "5x7").shard_paths()
    data = path.read_bytes()
    at, headers = 0, 0
    while any(data[at : at + 512]):
        size = int(data[at + 124 : at + 136].rstrip(b"\0"), 8)
        end = at + 512 + -(-size // 512) * 512
        crc = google_crc32c.value(data[at + 512 : end])
        assert data[at + 329 : at + 345] == f"7{crc >> 16:06o}\0007{crc & 0xFFFF:06o}\0".encode()
        assert data[at + 500 : at + 512] == bytes(12)
        at, headers = end, headers + 1
    assert headers == 3 * entries


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_crc_column_of_hdf5_is_that_of_another_library(build, animals, tmp_path, dtype):
    dataset = build(animals[0], tmp_path / "out", "--format", "hdf5", "--size", "5x7", "--dtype", dtype)
    (path,) = dataset.shard_paths()
    data = path.read_bytes()
    with h5py.File(path) as file:
        column = dataset.shards()[0]["columns"]["crc32c"]
        assert column == {"base": file["crc32c"].id.get_offset(), "stride": 4, "type": "uint32"}
        for row, crc in enumerate(file["crc32c"][:]):
            values = b""
            for name in ("images", "labels", "keys"):
                width = file[name].id.get_storage_size() // len(file[name])
                begin = file[name].id.get_offset() + row * width
                values += data[begin : begin + width]
            assert crc == google_crc32c.value(values)


def test_every_damaged_tfrecord_is_named_without_a_manifest(run, build, animals, tmp_path):
    dataset = build(animals[0], tmp_path / "out", "--format", "tfrecord", "--size", "16", "--shards", "1")
    stride = dataset.shards()[0]["columns"]["image"]["stride"]
    data = bytearray(dataset.shard_paths()[0].read_bytes())
    for record, byte in ((1, 100), (2, 700), (4, 0)):  # of the last one the length
        data[record * stride + byte] ^= 1
    path = tmp_path / "alone.tfrecord"
    path.write_bytes(data)
    faults = json.loads(run("verify", path, "--json", expect=4).stdout)["faults"]
    assert [fault["record"] for fault in faults] == [1, 2, 4]
    assert [fault["offset"] // stride for fault in faults] == [1, 2, 4]


def test_damage_that_looks_like_unsupported_data_is_damage(run, tmp_path):
    """One label is a text, the others are numbers."""
    import tensorflow as tf

    def example(number):
        return tf.train.Example(
            features=tf.train.Features(
                feature={
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(12)])),
                    "label": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"%d" % number])),
                }
            )
        ).SerializeToString()

    path = tmp_path / "x.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(5):
            writer.write(example(number))
    data = bytearray(path.read_bytes())
    data[data.rindex(b"3", 0, data.rindex(b"4"))] ^= 0x40
    path.write_bytes(data)
    faults = json.loads(run("verify", path, "--json", expect=4).stdout)["faults"]
    assert [fault["record"] for fault in faults] == [3] and "CRC" in faults[0]["reason"]


def test_an_unfinished_dataset_is_not_called_whole(tool, interference, animals, tmp_path):
    out = tmp_path / "out"
    arguments = ("build", animals[0], out, "--size", "16", "--shards", "3", "--quiet", "--jobs", "1")
    result = finish(tool.start(*arguments, env=interference.kill(calls="rename", path=out / "train", after=2)))
    assert result.code == -signal.SIGKILL and list(out.glob("*.tar"))
    for command in (("verify", out), ("inspect", out), ("index", out), ("convert", out, tmp_path / "no")):
        text = tool.run(*command, expect=2).err
        assert "is not finished" in text and "Run the job again" in text
    assert tool.run("verify", out / "*.tar").out.startswith("whole")
    tool.run(*arguments)
    assert tool.run("verify", out).out.startswith("whole")


def test_a_split_that_is_not_finished_next_to_one_that_is(tool, interference, build, animals, tmp_path):
    out = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "3").out
    arguments = ("build", animals[0], out, "--size", "16", "--shards", "3", "--split", "val", "--quiet", "--jobs", "1")
    result = finish(tool.start(*arguments, env=interference.kill(calls="rename", path=out / "val", after=2)))
    assert result.code == -signal.SIGKILL and list(out.glob("val-*.tar"))
    assert "is not finished" in tool.run("verify", out, expect=2).err
    assert tool.run("verify", out, "--split", "train").out.startswith("whole")
    tool.run(*arguments)
    assert tool.run("verify", out).out.startswith("whole")


@pytest.mark.parametrize("encoded", [False, True])
def test_a_dataset_that_is_replaced_during_verify_is_not_damaged(tool, interference, animals, tmp_path, encoded):
    command = (
        ("pack", animals[0], tmp_path / "out") if encoded else ("build", animals[0], tmp_path / "out", "--size", "16")
    )
    command = (*command, "--shards", "3", "--quiet", "--seed")
    for seed, code in (("1", 0), ("2", 3)):  # the same bytes once more, and others
        tool.run(*command, "1", "--overwrite")
        arguments = ("verify", tmp_path / "out", "--quiet", "--jobs", "1")
        with interference.hold(tool, *arguments, calls="pread", path="train-000001") as (process, gate):
            tool.run(*command, seed, "--overwrite")
            gate.open()
            result = finish(process)
        assert result.code == code, result
        if code != 0:
            assert result.out == "" and "replaced while it was being verified" in result.err and "again" in result.err
        else:
            assert result.out.startswith("whole")


def test_without_proc_an_intact_dataset_is_not_damaged(tool, build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", "--format", "hdf5", "--size", "16", "--shards", "3")
    shell = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh")
    if os.geteuid() != 0 or subprocess.run([*shell, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    for path in (built.out, built.shard_paths()[0]):
        error = tool.run("verify", path, before=shell, expect=3).err
        assert "cannot start '/proc/self/exe'" in error and "/proc to be mounted" in error


def test_samples_before_a_cut_are_counted(run, build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "1")
    path, stride = built.shard_paths()[0], built.shards()[0]["columns"]["image"]["stride"]
    shard = path.read_bytes()
    os.truncate(path, 5 * stride + 700)
    said = run("verify", built.out, expect=4).stdout.decode()
    assert "5 of its 23 samples are before the cut" in said and said.splitlines()[-1].startswith("damaged   5 samples")
    assert "5 of its 23 samples are before the cut" in " ".join(
        run("inspect", built.out, expect=4).stdout.decode().split()
    )
    (built.out / "dataset.json").unlink()
    # In the header after a sample; in the data of an image; in that of a label, so that the sample is not whole.
    for size, whole in (
        (5 * stride + 700, 5),
        (6 * stride - 1024 + 200, 5),
        (6 * stride - 100, 5),
        (6 * stride + 300, 6),
    ):
        path.write_bytes(shard[:size])
        for command in ("verify", "inspect"):
            text = " ".join(run(command, path, expect=4).stdout.decode().split())
            assert f"the file ends at byte {size}; whole before the damage: {whole} samples" in text, (size, text)
            assert f"{whole} samples in 1 file" in text or f"samples {whole} in 1 file" in text


@pytest.mark.parametrize("dataset", FORMATS, indirect=True)
def test_other_files_next_to_shards_are_ignored(run, tool, dataset):
    run("index", dataset.out)
    names = sorted(path.name for path in dataset.out.iterdir())
    assert len(names) > 4
    for paths in ([dataset.out / name for name in names], [dataset.out / "*"]):
        done = run("verify", *paths)
        assert done.stdout.startswith(b"whole     23 samples in 3 files") and b"ignored" in done.stderr
        done = run("inspect", *paths, "--json")
        facts = json.loads(done.stdout)["paths"]
        assert b"ignored" in done.stderr and {fact["format"] for fact in facts} == {dataset.manifest["format"]}
        assert sum(fact["samples"] for fact in facts) == 23 and all(fact["kind"] != "file" for fact in facts)
    for name in set(names) - {path.name for path in dataset.shard_paths()}:
        assert "ignored" not in finish(tool.start("inspect", dataset.out / name)).err, (
            "one that is named alone is meant"
        )


def test_bad_paths(run, tmp_path):
    assert b"No such file" in run("verify", tmp_path / "none.tar", expect=3).stderr
    assert b"matches no file" in run("verify", tmp_path / "*.tar", expect=2).stderr
    assert b"required" in run("verify", expect=2).stderr


def test_folders_of_shards_that_tensorflow_names(run, corpora, tmp_path):
    source = corpora / "tfrecord" / "tf-models" / "val-00000-of-00001.tfrecord"
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(3):
        (shards / f"train-{number:05}-of-00003").write_bytes(source.read_bytes())
    assert "9 samples in 3 files" in run("verify", shards).stdout.decode()
    assert "9 in 3 files" in run("inspect", shards).stdout.decode()
    run("build", shards, tmp_path / "out", "--quiet", "--size", "16", "--labels", "none")


def test_third_party_files(run, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "a.jpg", "a.jpg")
    assert "1 sample in 1 file" in run("verify", tmp_path / "a.tar").stdout.decode()
    with tarfile.open(tmp_path / "b.tar", "w:xz") as archive:
        archive.add(tmp_path / "a.jpg", "a.jpg")
    said = run("verify", tmp_path / "?.tar", expect=5).stdout.decode()
    assert "xz" in said and "2 files" in said


def one_fault(run, path):
    (fault,) = json.loads(run("verify", path, "--json", expect=4).stdout)["faults"]
    return fault


@pytest.mark.parametrize("dataset", ["tar", "tfrecord"], indirect=True)
@pytest.mark.parametrize(
    "compress",
    [gzip.compress, zlib.compress, lambda data: gzip.compress(data[:5000]) + gzip.compress(data[5000:])],
    ids=["gzip", "zlib", "members"],
)
def test_compressed_files_are_unpacked_and_verified(run, dataset, compress, tmp_path):
    shard = dataset.shards()[1]
    data = bytearray((dataset.out / shard["file"]).read_bytes())
    packed = tmp_path / f"{shard['file']}.gz"
    packed.write_bytes(compress(bytes(data)))
    said = run("verify", packed).stdout.decode()
    assert said.startswith("whole") and f"{shard['samples']} samples in 1 file" in said
    column = shard["columns"]["image"]
    data[column["base"] + 2 * column["stride"] + 5] ^= 1
    packed.write_bytes(compress(bytes(data)))
    fault = one_fault(run, packed)
    assert fault["record"] == 2 and "CRC" in fault["reason"] and "compressed" in fault["reason"]
    whole = bytearray(compress(bytes(data)))
    packed.write_bytes(whole[:-3])
    assert "too early" in one_fault(run, packed)["reason"]
    whole[-2] ^= 1
    packed.write_bytes(whole)
    assert "compressed" in one_fault(run, packed)["reason"]


def test_unpacking_needs_temporary_space(tool, small_disk, tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("a.bin")
        entry.size = 64 << 20
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    disk = small_disk(4096)
    result = tool.run("verify", tmp_path / "a.tar.gz", "--quiet", env={"TMPDIR": str(disk)}, expect=3)
    assert "No space left" in result.err and "TMPDIR" in result.err
    assert list(disk.iterdir()) == []
    tool.run("verify", tmp_path / "a.tar.gz", "--quiet")


IMAGES = np.random.default_rng(3).integers(0, 9, (50, 12, 10, 3), np.uint8)


@pytest.mark.parametrize(
    "storage",
    [
        {"chunks": (7, 12, 10, 3), "compression": "gzip"},
        {"chunks": (1, 12, 5, 3), "shuffle": True, "fletcher32": True},
        {"chunks": (50, 12, 10, 1), "compression": "lzf"},
    ],
    ids=["gzip", "fletcher32", "lzf"],
)
def test_hdf5_that_cannot_be_mapped_is_read_by_its_library(run, tmp_path, storage):
    path = tmp_path / "images.h5"
    with h5py.File(path, "w") as file:
        images = file.create_dataset("images", data=IMAGES, **storage)
        file["labels"] = np.arange(50)
        chunk = images.id.get_chunk_info_by_coord((35, 0, 0, 0))
    if storage.get("compression") == "lzf":  # h5py's own, which Debian's library lacks
        assert "lzf" in run("verify", path, expect=5).stdout.decode()
        return
    said = run("verify", path).stdout.decode()
    assert said.startswith("whole") and "50 samples in 1 file" in said
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + chunk.size // 2] ^= 0x55
    path.write_bytes(data)
    fault = one_fault(run, path)
    assert fault["offset"] == chunk.byte_offset and "row 35" in fault["reason"]


# --- manifests --------------------------------------------------------------------------------------------------------


@pytest.fixture
def packed(tool, animals, tmp_path):
    source, _ = animals
    tool.run("pack", source, tmp_path / "packed", "--shards", "3", "--quiet")
    return tmp_path / "packed"


@pytest.mark.parametrize("old, new", [('"cat"', '"cut"'), ('"seed": 0', '"seed": 1'), ('"skipped": 0', '"skipped": 3')])
def test_a_changed_manifest_is_damage(tool, animals, tmp_path, old, new):
    out = tmp_path / "out"
    tool.build(animals[0], out, *SMALL.options())
    text = (out / "dataset.json").read_text()
    assert old in text
    (out / "dataset.json").write_text(text.replace(old, new))
    result = tool.run("verify", out, expect=4)
    assert f"{out / 'dataset.json'}: the manifest was changed after precache wrote it" in result.out + result.err
    manifest = json.loads(text)
    del manifest["crc32c"]  # as earlier versions wrote it
    (out / "dataset.json").write_text(json.dumps(manifest))
    tool.run("verify", out)


@pytest.mark.parametrize("size", [0, 1, 20, 60, 100, 200, 300, -3])
def test_a_cut_list_of_encoded_shards_is_damage(tool, packed, size):
    path = packed / "encoded.json"
    path.write_bytes(path.read_bytes()[:size])
    (packed / "train-000001.tar").unlink()
    for command in (("verify", packed), ("inspect", packed), ("build", packed, packed.parent / "out", "--size", "8")):
        result = tool.run(*command, expect=4)
        assert str(path) in result.err


def test_a_third_party_file_of_that_name_is_ignored(tool, packed):
    (packed / "encoded.json").write_text('{"made": "elsewhere"}\n')
    assert "without a manifest" in tool.run("verify", packed).out


@pytest.mark.parametrize("splits", ["{}", '{"train": {"shards": []}}'])
def test_a_manifest_without_shards_is_damage(tool, animals, tmp_path, splits):
    out = tmp_path / "out"
    tool.build(animals[0], out, *SMALL.options())
    manifest = json.loads((out / "dataset.json").read_text())
    del manifest["crc32c"]
    for name, value in json.loads(splits).items():
        manifest["splits"][name].update(value, samples=0)
    if splits == "{}":
        manifest["splits"] = {}
    (out / "dataset.json").write_text(json.dumps(manifest))
    for command in (("verify", out), ("inspect", out), ("inspect", out, "--json")):
        assert str(out / "dataset.json") in tool.run(*command, expect=4).err
