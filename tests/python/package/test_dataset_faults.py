# SPDX-License-Identifier: Apache-2.0
"""Third-party shards, and shards that are changed, truncated or damaged while a dataset or loader uses them."""

import io
import os
import pickle
import tarfile

import h5py
import numpy as np
import pytest

import precache
from images import picture, pixels
from shards import FORMATS

pytest_plugins = ("package_fixtures",)


def write_tar(path, entries):
    """Writes a tar file; names are bytes, which need not be UTF-8."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape") as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(os.fsdecode(name))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# --- third-party shards -----------------------------------------------------------------------------------------------


def test_encoded_images_are_bytes(tmp_path):
    files = []
    for i in range(4):
        file = io.BytesIO()
        picture("RGB", 20 + i, 30, i).save(file, "JPEG")
        files.append(file.getvalue())
    entries = [
        (b"%02d.%s" % (i, kind), data)
        for i, file in enumerate(files)
        for kind, data in ((b"jpg", file), (b"cls", b"%d" % i))
    ]
    dataset = precache.open(write_tar(tmp_path / "a.tar", entries))
    assert not dataset.has_spec and len(dataset) == 4 and dataset.classes == []
    assert "encoded" in repr(dataset)
    for i, (data, label) in enumerate(dataset):
        assert data.dtype == np.uint8 and data.tobytes() == files[i] and label == i and not data.flags.writeable
    assert dataset.labels.tolist() == [0, 1, 2, 3] and dataset.keys[:] == ["00", "01", "02", "03"]
    copied, _ = precache.open(tmp_path / "a.tar", writable=True)[1]
    assert copied.flags.writeable and copied.tobytes() == files[1]
    assert pickle.loads(pickle.dumps(dataset))[2][0].tobytes() == files[2]
    for refused in (
        lambda: dataset.spec,
        lambda: dataset[0:2],
        lambda: dataset.gather([0]),
        lambda: precache.Loader(dataset),
    ):
        with pytest.raises(NotImplementedError, match="JPEG"):
            refused()


def test_an_empty_sample(tmp_path):
    entries = [(b"a.jpg", b""), (b"a.cls", b"1"), (b"b.jpg", b"\xff\xd8\xff"), (b"b.cls", b"2")]
    dataset = precache.open(write_tar(tmp_path / "a.tar", entries))
    assert [(data.tobytes(), label) for data, label in dataset] == [(b"", 1), (b"\xff\xd8\xff", 2)]


def test_names_that_are_not_utf8(tmp_path):
    names = [b"caf\xe9/\xff", "café/a".encode(), b"plain"]
    entries = [(name + b".npy", npy(np.full((4, 4, 3), i, np.uint8))) for i, name in enumerate(names)]
    dataset = precache.open(write_tar(tmp_path / "a.tar", entries))
    assert [os.fsencode(key) for key in dataset.keys] == names and dataset.keys[1] == "café/a"
    assert dataset.labels.tolist() == [-1, -1, -1]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"], file["labels"] = np.zeros((2, 4, 4, 3), np.uint8), np.arange(2)
        file["classes"] = np.array([b"caf\xe9", "é".encode()])
    assert [os.fsencode(name) for name in precache.open(tmp_path / "a.h5").classes] == [b"caf\xe9", "é".encode()]


def test_names_do_not_depend_on_the_locale(tmp_path, in_child):
    write_tar(tmp_path / "a.tar", [("é.npy".encode(), npy(np.zeros((4, 4, 3), np.uint8)))])
    lines = in_child(
        """
        import sys, precache
        print(ascii(precache.open(sys.argv[1]).keys[0]))
    """,
        tmp_path / "a.tar",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    assert lines == [ascii("é")]


def test_unevenly_spaced_samples_are_copied(tmp_path):
    arrays = [pixels(6, 5, 3, seed) for seed in range(6)]
    entries = [
        (b"%d.%s" % (i, kind), data)
        for i, array in enumerate(arrays)
        for kind, data in ((b"json", b'{"x": "' + b"y" * i * 300 + b'"}'), (b"npy", npy(array)), (b"cls", b"%d" % i))
    ]
    dataset = precache.open(write_tar(tmp_path / "a.tar", entries))
    images, labels = dataset[1:5:2]
    assert (images == np.stack(arrays[1:5:2])).all() and labels.tolist() == [1, 3]
    assert not np.shares_memory(images, dataset[1][0])
    assert dataset.spec == ("uint8", "hwc", (5, 6, 3))
    assert (np.concatenate([batch for batch, _ in precache.Loader(dataset, 3)]) == np.stack(arrays)).all()


def test_evenly_spaced_images_are_views_whatever_their_labels_are(tmp_path):
    images = np.stack([pixels(6, 5, 3, seed) for seed in range(6)])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"], file["labels"] = images, np.arange(6, dtype=np.int32)
    dataset = precache.open(tmp_path / "a.h5")
    found, labels = dataset[1:5]
    assert (found == images[1:5]).all() and labels.tolist() == [1, 2, 3, 4] and np.shares_memory(found, dataset[1][0])
    loader = precache.Loader(dataset, 3)
    assert (np.concatenate([batch for batch, _ in loader]) == images).all() and loader.stats()["views"] == 2
    assert precache.inspect(tmp_path / "a.h5")["paths"][0]["access"]["zero_copy"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_floats_at_odd_addresses(tmp_path, dtype):
    import tensorflow as tf
    import torch

    import precache.torch

    arrays = (np.stack([pixels(5, 7, 3, seed) for seed in range(6)]) / 7).astype(dtype)
    path = str(tmp_path / "a.tfrecord")
    spec = precache.Spec(dtype, "hwc", (7, 5, 3))
    for more in range(4):
        with tf.io.TFRecordWriter(path) as writer:
            for array in arrays:
                features = {
                    name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
                    for name, data in (("image", array.tobytes()), ("more", b"x" * more))
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        dataset = precache.open(path, spec=spec)
        if not all(image.flags.aligned for image, _ in dataset):
            break
    assert not dataset[:][0].flags.aligned
    assert (dataset[:][0] == arrays).all() and (dataset[3][0] == arrays[3]).all()
    assert (dataset.gather([4, 1])[0] == arrays[[4, 1]]).all()
    loader = precache.Loader(dataset, 6)
    images, _ = next(iter(loader))
    assert (images == arrays).all() and images.flags.aligned and loader.stats()["views"] == 0
    assert not precache.inspect(path)["paths"][0]["access"][
        "zero_copy"
    ]  # inspect has no spec, so it cannot promise views
    for views in (True, False):
        images, _ = next(iter(precache.torch.Loader(dataset, 6, views=views)))
        assert torch.equal(images, torch.from_numpy(arrays).permute(0, 3, 1, 2))
    wrong = precache.open(path, spec=precache.Spec(dtype, "hwc", (7, 5, 1)))
    assert not wrong.has_spec
    with pytest.raises(NotImplementedError):
        _ = wrong.spec


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_shard_that_is_cut_under_live_arrays(build, animals, tmp_path, in_child, format):
    built = build(animals[0], tmp_path / "out", "--format", format, "--size", "40", "--shards", "3")
    lines = in_child(
        """
        import os, sys
        import precache
        folder, shard = sys.argv[1:]
        dataset = precache.open(folder)
        image, images = dataset[0][0], dataset[1:4][0]
        assert image.sum() > 0
        sequential, shuffled = (precache.Loader(dataset, 4, shuffle=shuffle, prefetch=1) for shuffle in (None, "full"))
        held = next(iter(sequential))[0]
        os.truncate(shard, 0)
        print(int(image.sum()), int(images.sum()), int(held.sum()))
        calls = [lambda: dataset[0], lambda: dataset[0:2], lambda: dataset.gather([2]), lambda: dataset.labels,
                 lambda: dataset.keys[1], lambda: list(sequential), lambda: list(shuffled), lambda: list(sequential)]
        for call in calls:
            try:
                call()
                print("no error")
            except precache.CorruptDataError as error:
                print(error.path == shard, os.path.basename(shard) in str(error), "the file was truncated" in str(error))
        print(int(dataset[-1][0].sum()) > 0, shuffled.state_dict()["samples"], len(shuffled))
    """,
        built.out,
        built.shard_paths()[0],
    )
    assert lines == ["0 0 0"] + ["True True True"] * 8 + ["True 23 5"]


@pytest.mark.parametrize("encoded", [False, True])
def test_a_copy_from_a_truncated_shard_is_refused(build, animals, tmp_path, encoded):
    if encoded:
        precache.pack(animals[0], tmp_path / "out", shards=1)
    else:
        build(animals[0], tmp_path / "out", "--size", "40", "--shards", "1")
    expected = precache.open(tmp_path / "out", writable=True)[20][0]
    shard = tmp_path / "out" / "train-000000.tar"

    class CutAfterEachCall:
        def __init__(self, native):
            self._native = native

        def __len__(self):
            return len(self._native)

        def __getattr__(self, name):
            def call(*arguments):
                result = getattr(self._native, name)(*arguments)
                os.truncate(shard, 600)
                return result

            return call

    dataset = precache.open(tmp_path / "out", writable=True)
    dataset._native = CutAfterEachCall(dataset._native)
    image, _ = dataset[20]
    assert image.flags.writeable and image.any() and (image == expected).all()
    with pytest.raises(precache.CorruptDataError, match="the file was truncated"):
        dataset[20]


@pytest.mark.parametrize("options", [{}, {"verify_on_read": True}], ids=str)
@pytest.mark.parametrize("format", FORMATS)
def test_samples_after_a_truncation_are_not_called_damaged(build, animals, tmp_path, in_child, format, options):
    """The zeros that are read there are not wrong labels, names or checksums: the file is too short."""
    built = build(animals[0], tmp_path / "out", "--format", format, "--size", "40", "--shards", "1")
    lines = in_child(
        """
        import os, sys
        import precache
        folder, shard, options = sys.argv[1:]
        dataset = precache.open(folder, **eval(options))
        held = [dataset[0], dataset[-1]]
        loaders = [precache.Loader(dataset, 4, shuffle=shuffle, prefetch=1) for shuffle in (None, "full")]
        os.truncate(shard, 30000)
        for call in (lambda: dataset[20], lambda: dataset[18:22], lambda: dataset.gather([20]), lambda: dataset.labels,
                     lambda: dataset.keys[20], *(lambda loader=loader: list(loader) for loader in loaders)):
            try:
                call()
            except precache.CorruptDataError as error:
                print(error.message.replace(shard, "SHARD"))
    """,
        built.out,
        built.shard_paths()[0],
        options,
    )
    assert lines == ["'SHARD' is corrupt at byte 30000: the file was truncated while it was being read"] * 7


def test_faulthandler_may_be_enabled_at_any_time(build, animals, tmp_path, in_child):
    """It replaces the handler of SIGBUS. Opening a dataset or making a loader installs the reader's handler again, and
    faulthandler still reports other faults."""
    built = build(animals[0], tmp_path / "out", "--size", "40", "--shards", "2")
    lines = in_child(
        """
        import faulthandler, mmap, os, signal, subprocess, sys
        import precache

        def read_lost_page():
            with open(sys.argv[2], "w+b") as file:
                file.truncate(mmap.PAGESIZE)
                page = mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ)
                file.truncate(0)
                page[0]

        dataset = precache.open(sys.argv[1])
        first, image = dataset[0][0], dataset[-1][0]
        for again in (lambda: precache.open(sys.argv[1]), lambda: precache.Loader(dataset, 4)):
            faulthandler.enable()
            keep = again()
            faulthandler.disable()  # which restores the handler that it replaced
            faulthandler.enable()
            keep = again()
        if len(sys.argv) > 3:
            read_lost_page()
        done = subprocess.run([sys.executable, *sys.argv, "foreign"], capture_output=True, text=True)
        print(done.returncode == -signal.SIGBUS, done.stderr.count("Fatal Python error: Bus error"), "read_lost_page" in done.stderr)
        os.truncate(os.path.join(sys.argv[1], "train-000000.tar"), 0)
        print(int(first.sum()), int(image.sum()) > 0)
    """,
        built.out,
        tmp_path / "lost",
    )
    assert lines == ["True 1 True", "0 True"]


def test_a_handler_of_sigbus_that_is_set_after_open(build, animals, tmp_path, in_child):
    built = build(animals[0], tmp_path / "out", "--size", "40", "--shards", "2")
    lines = in_child(
        """
        import os, signal, sys, time
        import precache
        dataset = precache.open(sys.argv[1])
        dataset[0]
        for at, pause in ((-1, 0), (0, 0.1)):  # a shard that is mapped later, and one that was mapped before
            signal.signal(signal.SIGBUS, lambda *_: None)
            time.sleep(pause)
            dataset[at]
            os.truncate(sys.argv[3 + at], 4096)
            try:
                dataset[at]
            except precache.CorruptDataError as error:
                print("the file was truncated" in str(error))
    """,
        built.out,
        *reversed(built.shard_paths()),
    )
    assert lines == ["True", "True"]


def test_a_shard_that_is_written_to(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "2")
    dataset = precache.open(built.out)
    dataset[0]
    os.utime(built.shard_paths()[0], ns=(1, 1))
    with pytest.raises(precache.CorruptDataError) as refused:
        dataset.gather([0])
    assert refused.value.path == str(built.shard_paths()[0])
    again = pickle.loads(pickle.dumps(refused.value))
    assert (
        type(again) is precache.CorruptDataError
        and str(again) == str(refused.value)
        and again.path == refused.value.path
    )


@pytest.mark.parametrize("shuffle", [None, "full"])
def test_a_shard_that_is_missing_ends_an_epoch(build, animals, tmp_path, shuffle):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "3")
    missing = built.shard_paths()[2]
    missing.rename(tmp_path / "elsewhere")
    loader = precache.Loader(built.out, 2, shuffle=shuffle, seed=3)
    batches = []
    with pytest.raises(FileNotFoundError) as refused:
        for images, labels in loader:
            batches.append((images, labels))
    assert refused.value.filename == str(missing) and isinstance(refused.value, precache.IoError)
    state = loader.state_dict()
    assert state["position"] == 2 * len(batches) and state["epoch"] == 0
    with pytest.raises(FileNotFoundError):
        list(loader)
    (tmp_path / "elsewhere").rename(missing)
    loader.load_state_dict(state)
    assert len(batches) + len(list(loader)) == len(loader) == (11 if shuffle else 12)
    assert len(list(loader)) == len(loader) and loader.epoch == 2


def test_verify_on_read_finds_a_flipped_byte(build, animals, tmp_path):
    built = build(animals[0], tmp_path / "out", "--format", "tfrecord", "--size", "16", "--shards", "1")
    path, column = built.shard_paths()[0], built.shards()[0]["columns"]["image"]
    data = bytearray(path.read_bytes())
    data[column["base"] + 3 * column["stride"] + 100] ^= 1
    path.write_bytes(data)
    assert len(precache.open(built.out)[:][0]) == 23
    dataset = precache.open(built.out, verify_on_read=True)
    dataset[2]
    for call in (lambda: dataset[3], lambda: dataset.gather([2, 3]), lambda: list(precache.Loader(dataset, 4))):
        with pytest.raises(precache.CorruptDataError, match="CRC") as refused:
            call()
        assert refused.value.path == str(path)
        assert 0 <= refused.value.offset - 3 * column["stride"] < column["stride"]


def test_views_of_more_shards_than_descriptors(build, animals, tmp_path, in_child):
    built = build(animals[0], tmp_path / "out", "--size", "16", "--shards", "20")
    lines = in_child(
        """
        import os, resource, sys
        import precache
        dataset = precache.open(sys.argv[1])
        limit = max(map(int, os.listdir("/proc/self/fd"))) + 12
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        held = []
        try:
            for i in range(len(dataset)):
                held.append(dataset[i])
        except OSError as error:
            print(error.strerror, error.hint)
        del held, dataset
        print(len(precache.open(sys.argv[1], max_open_shards=2).keys[:]))
    """,
        built.out,
    )
    assert lines[0].startswith("Too many open files") and "shards are open" in lines[0] and "ulimit -n" in lines[0]
    assert lines[1] == "23"


# --- what the package needs -------------------------------------------------------------------------------------------


def test_numpy_is_all_that_is_imported(stamps, made, in_child):
    bfloat16 = made("--dtype", "bfloat16", "--size", "16")
    lines = in_child(
        """
        import sys
        sys.modules["ml_dtypes"] = None  # as if it were not installed
        import precache
        dataset = precache.open(sys.argv[1])
        print(len(list(precache.Loader(dataset, 4))), dataset[0][0].dtype)
        print(*[name for name in ("torch", "tensorflow", "jax", "h5py", "PIL") if name in sys.modules])
        for use in (lambda: precache.open(sys.argv[2])[0], lambda: precache.Loader(dataset, 4, dtype="bfloat16")):
            try:
                use()
            except NotImplementedError as error:
                print(error, error.hint, sep="; ")
        print(precache.open(sys.argv[2]).spec.nbytes, precache.open(sys.argv[2]))
    """,
        stamps.out,
        bfloat16.out,
    )
    hint = (
        "numpy needs the package ml_dtypes for bfloat16, which is not installed; "
        "Run `pip install ml_dtypes`, use precache.torch, or ask the loader for another dtype."
    )
    assert lines[:4] == ["6 uint8", "", hint, hint] and lines[4].startswith("1536 ")
