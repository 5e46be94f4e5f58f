# SPDX-License-Identifier: Apache-2.0
"""precache.open and Dataset: the values that other libraries read from the same shards, views, copies and lifetimes."""

import copy
import gc
import pickle
import shutil
import threading

import numpy as np
import pytest

import precache
from reference import DTYPES
from resources import descriptors_of, mappings_of
from shards import FORMATS

pytest_plugins = ("package_fixtures",)

LAYOUTS = ("chw", "hwc")


def same_bits(actual, expected):
    return actual.dtype == expected.dtype and actual.shape == expected.shape and actual.tobytes() == expected.tobytes()


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
def test_samples_are_what_other_libraries_read(made, format, dtype, layout):
    built = made("--format", format, "--dtype", dtype, "--layout", layout, "--size", "17x23", "--shards", "3")
    expected = [sample for shard in built.shards() for sample in built.read_shard(shard)]
    images, labels = np.stack([sample.array for sample in expected]), [sample.label for sample in expected]
    dataset = precache.open(built.out)
    assert len(dataset) == len(expected) == 23
    for (image, label), sample, key in zip(dataset, expected, dataset.keys, strict=True):
        assert same_bits(image, sample.array) and not image.flags.writeable
        assert (label, key) == (sample.label, sample.key) and type(label) is int
    assert dataset.labels.dtype == np.int64 and dataset.labels.tolist() == labels
    assert dataset.spec == (dtype, layout, tuple(built.spec["shape"])) and dataset.has_spec
    assert dataset.spec.numpy_dtype == DTYPES[dtype] and dataset.spec.nbytes == expected[0].array.nbytes
    assert dataset.classes == built.classes and dataset.shard_count == 3
    for part in (slice(None), slice(1, 6), slice(20, 2, -3)):
        arrays, part_labels = dataset[part]
        assert same_bits(arrays, images[part]) and part_labels.tolist() == labels[part]
    arrays, some = dataset.gather([22, 0, -1, 7, 7])
    assert same_bits(arrays, images[[22, 0, 22, 7, 7]]) and some.tolist() == [labels[i] for i in (22, 0, 22, 7, 7)]


def test_indices_are_those_of_a_sequence(stamps):
    dataset = precache.open(stamps.out)
    count = len(dataset)
    for index in range(-count, count):
        image, label = dataset[index]
        assert (image == stamps.images[index]).all() and label == stamps.labels[index]
        assert dataset.keys[index].endswith(f"{stamps.numbers[index]:02}")
    assert (dataset[np.int64(3)][0] == dataset[3][0]).all()
    for index in (count, -count - 1, 10**30, -(10**30)):
        with pytest.raises(IndexError, match=f"no sample {index}, the dataset has {count}"):
            dataset[index]
        with pytest.raises(IndexError, match=str(index)):
            dataset.keys[index]
        with pytest.raises(IndexError, match=str(index)):
            dataset.gather([0, index])
    assert sum(1 for _ in dataset) == sum(1 for _ in reversed(dataset)) == count
    keys = dataset.keys
    assert (
        len(keys) == count
        and keys[2:9:3] == [keys[2], keys[5], keys[8]]
        and keys.index(keys[7]) == 7
        and "x" not in keys
    )


@pytest.mark.parametrize("index", [1.0, "a", None, [1, 2], (0, 1), slice("a", None), slice(1.5)], ids=str)
def test_an_invalid_index_is_a_type_error(stamps, index):
    with pytest.raises(TypeError):
        precache.open(stamps.out)[index]


@pytest.mark.parametrize(
    "indices",
    [[1.7], [True, False], 5, [[0, 1]], ["a"], None, iter([1])],
    ids=lambda given: str(given).split(" object")[0],
)
def test_only_whole_numbers_are_gathered(stamps, indices):
    with pytest.raises(TypeError, match="must be a sequence of whole numbers"):
        precache.open(stamps.out).gather(indices)


def test_large_unsigned_indices_do_not_wrap(stamps):
    with pytest.raises(IndexError, match="18446744073709551615"):
        precache.open(stamps.out).gather(np.array([2**64 - 1], np.uint64))
    assert precache.open(stamps.out).gather(np.array([3], np.uint8))[0].shape == (1, 3, 12, 10)


# --- slices -----------------------------------------------------------------------------------------------------------

SLICES = [
    slice(None),
    slice(0, 0),
    slice(5, 3),
    slice(0, 1),
    slice(2, 7),
    slice(2, 7, 2),
    slice(6, 1, -1),
    slice(6, None, -3),
    slice(None, None, -1),
    slice(-4, None),
    slice(7, 9),
    slice(None, None, 5),
    slice(3, 10**9),
    slice(0, 5, 10**30),
    slice(5, None, -(10**30)),
    slice(30, 40),
]


@pytest.mark.parametrize("part", SLICES, ids=str)
@pytest.mark.parametrize("writable", [False, True])
def test_slices_are_those_of_a_sequence(stamps, part, writable):
    images, labels = precache.open(stamps.out, writable=writable)[part]
    assert same_bits(images, stamps.images[part]) and labels.tolist() == stamps.labels[part].tolist()
    if writable:
        images[:] = 0
        assert images.flags.writeable and (precache.open(stamps.out)[part][0] == stamps.images[part]).all()


@pytest.mark.parametrize("format", FORMATS)
def test_slices_within_a_shard_are_views(made, format):
    built = made("--format", format, "--size", "16", "--shards", "3")
    dataset = precache.open(built.out)
    stride = built.shards()[0]["columns"]["image"]["stride"]
    first = built.shards()[0]["samples"]
    for part, step in ((slice(1, 6), 1), (slice(1, 6, 2), 2), (slice(5, 0, -1), -1), (slice(first, first + 3), 1)):
        images, _ = dataset[part]
        assert images.strides[0] == step * stride and not images.flags.writeable and not images.flags.owndata
        assert np.shares_memory(images, dataset[part.start][0])
    across, _ = dataset[first - 1 : first + 1]
    assert not np.shares_memory(across, dataset[first - 1][0]) and across.flags.c_contiguous
    assert np.shares_memory(dataset[3][0], dataset[3][0])


def test_views_are_read_only_and_copies_are_not(stamps):
    view, _ = precache.open(stamps.out)[0]
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0, 0] = 1
    with pytest.raises(ValueError):
        view.setflags(write=True)
    writable = precache.open(stamps.out, writable=True)
    copied, _ = writable[0]
    copied[:] = 77
    assert (writable[0][0] == stamps.images[0]).all()
    gathered, _ = precache.open(stamps.out).gather([1])
    gathered[:] = 77
    assert (precache.open(stamps.out)[1][0] == stamps.images[1]).all()


# --- lifetime ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def copied(stamps, tmp_path):
    """A copy of the dataset that the test may change."""
    shutil.copytree(stamps.out, tmp_path / "copied")
    return tmp_path / "copied"


@pytest.mark.parametrize(
    "kept",
    [lambda ds: ds[2][0], lambda ds: ds[2][0][1:, ::2], lambda ds: ds[1:6][0][1], lambda ds: np.from_dlpack(ds[2][0])],
    ids=["sample", "part", "slice", "dlpack"],
)
def test_an_array_keeps_its_mapping(copied, stamps, kept):
    dataset = precache.open(copied)
    array = kept(dataset)
    expected = array.copy()
    del dataset
    gc.collect()
    shutil.rmtree(copied)
    assert mappings_of(copied) and array.sum() > 0
    assert (array == expected).all()
    del array
    gc.collect()
    assert not mappings_of(copied)


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_stays_open_without_references(made, tmp_path, format):
    folder = tmp_path / "out"
    shutil.copytree(made("--format", format, "--size", "16", "--shards", "3").out, folder)

    def use_everything():
        dataset = precache.open(folder)
        arrays = [dataset[0], dataset[1:4], dataset[::-1], dataset.gather([1, 2]), dataset.labels, dataset.keys[:]]
        for options in ({}, {"writable": True}, {"shuffle": "full", "dtype": "float16", "crop": 8}):
            loader = precache.Loader(dataset, 4, **options)
            arrays += list(loader)
            arrays.append(next(iter(loader)))
            arrays.append(iter(loader))
        assert len(mappings_of(folder)) >= 3
        with pytest.raises(IndexError):
            dataset[99]
        with pytest.raises(ValueError):
            precache.Loader(dataset, 4, crop=99)
        pickle.loads(pickle.dumps(dataset))[0]

    for _ in range(3):
        use_everything()
        gc.collect()
        assert mappings_of(folder) == [] and descriptors_of(folder) == []


def test_only_some_shards_stay_mapped(copied):
    dataset = precache.open(copied, max_open_shards=1)
    for index in range(len(dataset)):
        dataset[index]
    gc.collect()
    shards = {line.split()[-1] for line in mappings_of(copied)}
    assert len(shards) == 1
    held = [dataset[0], dataset[10], dataset[-1]]
    assert len({line.split()[-1] for line in mappings_of(copied)}) == 3
    assert [label for _, label in held] == dataset.gather([0, 10, -1])[1].tolist()


# --- others take it over ----------------------------------------------------------------------------------------------


def test_dlpack(stamps):
    dataset = precache.open(stamps.out)
    image, _ = dataset[4]
    taken = np.from_dlpack(image)
    assert np.shares_memory(taken, image) and not taken.flags.writeable
    import torch

    images, _ = dataset[1:5]
    assert torch.equal(torch.from_dlpack(images), torch.tensor(stamps.images[1:5]))
    assert torch.from_dlpack(images).data_ptr() == images.ctypes.data


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        *(lambda ds, p=p: pickle.loads(pickle.dumps(ds, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)),
    ],
)
def test_a_dataset_is_pickled_by_its_path(stamps, monkeypatch, tmp_path, again):
    monkeypatch.chdir(stamps.out.parent)
    dataset = precache.open("out", "train", writable=True, verify_on_read=True, max_open_shards=2)
    relative = dataset[:]
    data = again(dataset)
    monkeypatch.chdir(tmp_path)
    assert same_bits(data[:][0], relative[0]) and data[0][0].flags.writeable
    assert same_bits(
        dataset[-1][0], relative[0][-1]
    )  # from shards that were not mapped before the working directory changed


def test_pickled_shards_and_specs(made, tmp_path, monkeypatch):
    built = made("--format", "tfrecord", "--size", "16", "--shards", "3")
    for path in built.shard_paths():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    dataset = precache.open(
        [path.name for path in built.shard_paths()], spec=precache.Spec("uint8", "chw", (3, 16, 16))
    )
    assert same_bits(dataset[:][0], precache.open(built.out)[:][0])
    data = pickle.dumps(dataset)
    monkeypatch.chdir("/")
    assert same_bits(pickle.loads(data)[:][0], dataset[:][0])
    pattern = precache.open(tmp_path / "train-*.tfrecord", spec=("uint8", "chw", (3, 16, 16)))
    assert len(pickle.loads(pickle.dumps(pattern))) == 23


def test_threads_share_a_dataset(stamps):
    dataset = precache.open(stamps.out, max_open_shards=1)
    faults = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(60):
            indices = random.integers(-23, 23, 5)
            images, labels = dataset.gather(indices)
            first = int(indices[0])
            if not (
                (images == stamps.images[indices]).all()
                and (labels == stamps.labels[indices]).all()
                and (dataset[first][0] == stamps.images[first]).all()
                and dataset.keys[first].endswith(f"{stamps.numbers[first]:02}")
                and (dataset[2:20:3][0] == stamps.images[2:20:3]).all()
            ):
                faults.append(indices)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_loader_that_has_not_begun_follows_a_fork(stamps, in_child):
    lines = in_child(
        """
        import os, pickle, sys
        import precache

        def make(**options):
            return precache.Loader(sys.argv[1], 4, shuffle=True, **options)

        def numbers(loader):
            return [images[:, 2, 0, 0].tolist() for images, _ in loader]

        fresh, moved, resumed = make(), make(crop=8), make()
        moved.set_epoch(3)
        moved.set_size(6)
        batches = iter(make())
        next(batches)
        resumed.load_state_dict(batches._loader.state_dict())
        copied = pickle.loads(pickle.dumps(moved))
        if child := os.fork():
            os.waitpid(child, 0)
            print(numbers(make()) == numbers(fresh))
        else:
            os.environ |= {"RANK": "1", "WORLD_SIZE": "2"}  # as Lightning's processes get them
            expected = make(rank=1, world_size=2)
            print(fresh.spec.shape, len(fresh), numbers(fresh) == numbers(expected), numbers(fresh) == numbers(expected))
            expected.set_epoch(3)
            images, _ = next(iter(moved))
            print(moved.epoch, images.shape, images[:, 2, 0, 0].tolist() == next(iter(expected))[0][:, 2, 0, 0].tolist())
            print(copied.epoch, copied.spec.shape, resumed.state_dict()["position"], sum(map(len, numbers(resumed))))
            sys.stdout.flush()
            os._exit(0)
        """,
        stamps.out,
    )
    assert lines == [
        "(3, 12, 10) 2 True True",
        "3 (4, 3, 6, 6) True",
        "3 (3, 6, 6) 4 8",
        "True",
    ]


def test_forked_and_spawned_processes(stamps, in_child):
    lines = in_child(
        """
        import multiprocessing, sys
        import precache

        def work(dataset, view, indices, results):
            images, labels = dataset.gather(indices)
            total = sum(int(image.sum()) for image, _ in dataset)
            batches = [len(labels) for _, labels in precache.Loader(dataset, 4, shuffle="full", last_batch="keep")]
            results.put((indices, int(images.sum()), labels.tolist(), total, batches, int(view.sum())))

        def use_of_the_parents(loader, iterator, results):
            for call in (lambda: next(iterator), loader.state_dict, lambda: len(loader)):
                try:
                    results.put(call())
                except ValueError as error:
                    results.put(str(error))

        if __name__ == "__main__":
            dataset = precache.open(sys.argv[1])
            loader = precache.Loader(dataset, 2, shuffle="full")
            iterator = iter(loader)
            next(iterator)
            view, _ = dataset[0]
            total = sum(int(image.sum()) for image, _ in dataset)
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                results = context.Queue()
                children = [context.Process(target=work, args=(dataset, view, [i, 9, -1], results)) for i in range(2)]
                for child in children:
                    child.start()
                for _ in children:
                    indices, gathered, labels, sum_there, batches, seen = results.get()
                    images, expected = dataset.gather(indices)
                    assert (gathered, labels, sum_there) == (int(images.sum()), expected.tolist(), total)
                    assert sum(batches) == len(dataset) and seen == int(view.sum())
                for child in children:
                    child.join()
                    assert child.exitcode == 0, child.exitcode
                next(iterator)
            context = multiprocessing.get_context("fork")
            results = context.Queue()
            child = context.Process(target=use_of_the_parents, args=(loader, iterator, results))
            child.start()
            print(results.get(), results.get(), results.get(), sep="\\n")
            child.join()
            assert child.exitcode == 0
            print(sum(1 for _ in iterator))
    """,
        stamps.out,
    )
    assert all("was created before fork() and cannot be used in the child" in line for line in lines[:3])
    assert lines[3] == "8"  # three of 11 batches were taken above


# --- what can be opened -----------------------------------------------------------------------------------------------


def test_every_kind_of_path(stamps):
    shards = stamps.shard_paths()
    for path in (
        stamps.out,
        str(stamps.out),
        str(stamps.out).encode(),
        stamps.out / "dataset.json",
        stamps.out / "train-*.tar",
        str(stamps.out / "train-{000000..000002}.tar"),
        shards,
        tuple(map(str, shards)),
        iter(shards),
    ):
        dataset = precache.open(path)
        assert same_bits(dataset[:][0], stamps.images) and dataset.classes == ["a", "b", "c"]
    assert same_bits(precache.open(shards[::-1])[-1][0], precache.open(shards[0])[-1][0])
    assert precache.Loader(shards[1], 4).dataset.shard_count == 1
    assert repr(precache.open(stamps.out)) == "<precache.Dataset: 23 samples, uint8 3x12x10 chw, 3 classes, 3 shards>"


def test_splits(build, animals, tmp_path):
    out = tmp_path / "out"
    build(animals[0], out, "--size", "8", "--split", "train")
    assert len(precache.open(out)) == 23
    (tmp_path / "few" / "bee").mkdir(parents=True)
    shutil.copy(next(path for path in animals[1].values() if path.parent.name == "bee"), tmp_path / "few" / "bee")
    build(tmp_path / "few", out, "--size", "8", "--split", "val", "--classes", out / "dataset.json")
    assert len(precache.open(out)) == len(precache.open(out, "train")) == 23
    val = precache.open(out, split="val")
    assert len(val) == 1 and val[0][1] == 1 and val.classes == ["ant", "bee", "cat", "dog"]
    assert len(pickle.loads(pickle.dumps(val))) == 1
    with pytest.raises(ValueError, match="no split 'test'") as refused:
        precache.open(out, "test")
    assert "train, val" in refused.value.hint


@pytest.mark.parametrize("path", ["train-000000.tar", "train-*.tar", ["train-000000.tar", "train-000001.tar"]], ids=str)
def test_a_split_of_named_shards_is_refused(stamps, monkeypatch, path):
    monkeypatch.chdir(stamps.out)
    with pytest.raises(precache.InvalidArgument, match="'val'"):
        precache.open(path, "val")


@pytest.mark.parametrize(
    "path, kind, words",
    [
        ("/nowhere/at/all", FileNotFoundError, "cannot open '/nowhere/at/all'"),
        ("/nowhere/\udcff\udc80.tar", FileNotFoundError, "/nowhere/\udcff\udc80.tar"),
        ("/nowhere/*.tar", ValueError, "matches no file"),
        ([], ValueError, "at least one shard"),
        (["/nowhere/a.tar", "/nowhere/b.tar"], FileNotFoundError, "/nowhere/a.tar"),
        (3, TypeError, "must be a path or a list of paths"),
        (None, TypeError, "must be a path or a list of paths"),
        ([3], TypeError, "PathLike"),
        ("a\0b", ValueError, "null"),
    ],
    ids=ascii,
)
def test_bad_paths(path, kind, words):
    with pytest.raises(kind) as refused:
        precache.open(path)
    assert words in str(refused.value)
    if kind is FileNotFoundError:
        assert isinstance(refused.value, precache.IoError) and refused.value.errno == 2
        assert refused.value.filename == (path if isinstance(path, str) else path[0])


@pytest.mark.parametrize(
    "options, kind, words",
    [
        ({"split": 3}, TypeError, "split must be ... got 3"),
        ({"spec": "x"}, ValueError, "spec must be ... got 'x'"),
        ({"spec": ("uint8", "chw", (3, 8))}, ValueError, "spec must be"),
        ({"spec": ("int8", "chw", (3, 8, 8))}, ValueError, "dtype must be ... got 'int8'"),
        ({"spec": ("uint8", "nchw", (3, 8, 8))}, ValueError, "layout must be ... got 'nchw'"),
        ({"spec": ("uint8", "chw", (3, -8, 8))}, ValueError, "-8"),
        ({"spec": ("uint8", "chw", (3, 0, 8))}, ValueError, "without elements"),
        ({"spec": ("uint8", "chw", (3, 8.5, 8))}, TypeError, "8.5"),
        ({"spec": ("uint8", "chw", (3, 2**32, 8))}, ValueError, "4294967296"),
        ({"spec": ("float32", "chw", (2**32 - 1,) * 3)}, ValueError, ""),
        ({"max_open_shards": -1}, ValueError, "max_open_shards must be ... got -1"),
        ({"max_open_shards": 2**64}, ValueError, "max_open_shards"),
        ({"scan_threads": 2**32}, ValueError, "scan_threads"),
        ({"scan_threads": "2"}, TypeError, "scan_threads must be ... got '2'"),
        (
            {"spec": ("uint8", "hwc", (12, 10, 3))},
            ValueError,
            "train-000000.tar' are uint8 3x12x10 chw, not uint8 12x10x3 hwc",
        ),
        ({"verify_on_read": "yes"}, TypeError, "verify_on_read must be ... got 'yes'"),
        ({"writable": "no"}, TypeError, "writable must be ... got 'no'"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
    ids=str,
)
def test_bad_options(stamps, options, kind, words):
    with pytest.raises(kind) as refused:
        precache.open(stamps.out, **options)
    text = str(refused.value)
    assert all(part in text for part in words.split("... ")) and "incompatible function arguments" not in text


def test_folders_without_samples_are_refused(animals, tmp_path):
    with pytest.raises(ValueError, match="no dataset.json and no shards"):
        precache.open(animals[0])
    with pytest.raises(NotImplementedError, match="PNG"):
        precache.open(next(path for path in animals[1].values() if path.suffix == ".png"))
    (tmp_path / "a.tar").write_bytes(b"x" * 3000)
    with pytest.raises(precache.Error) as refused:
        precache.open(tmp_path / "a.tar")
    assert "a.tar" in str(refused.value)
