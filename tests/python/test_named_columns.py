# SPDX-License-Identifier: Apache-2.0
"""Targets, masks and original sizes next to images, read back with the clients that people use."""

import io
import json
import os
import signal
import struct
import subprocess
import tarfile
import zlib

import h5py
import jsonschema
import numpy as np
import pytest
from PIL import Image, ImageOps

from conftest import REPOSITORY
from shards import FORMATS, Dataset

SIZE = 16
NAMES = ["blue", "indoor", "night"]
# Height, width and EXIF orientation of each image; the last has a mask of half its size.
SHAPES = {
    "a/1": (20, 30, 1),
    "a/2": (30, 20, 6),
    "b/1": (17, 17, 3),
    "b/2": (16, 64, 1),
    "b/3": (40, 60, 1),
}


def draw_scene(folder):
    """Images, palette masks, and a label file with a column of each type."""
    rng = np.random.default_rng(5)
    rows = ["path,label,age:float,note,box:int[4],tags:multi"]
    for number, (key, (height, width, orientation)) in enumerate(SHAPES.items()):
        image = folder / "images" / f"{key}.jpg"
        image.parent.mkdir(parents=True, exist_ok=True)
        exif = Image.Exif()
        exif[0x0112] = orientation
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(image, exif=exif)
        values = rng.integers(0, 6, (height, width), dtype=np.uint8)
        mask = Image.fromarray(values, "L" if number % 2 else "P")
        if mask.mode == "P":
            mask.putpalette(rng.integers(0, 256, 768, dtype=np.uint8).tobytes())
        if key == "b/3":
            mask = mask.resize((width // 2, height // 2), Image.Resampling.NEAREST)
        path = folder / "masks" / f"{key}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        mask.save(path)
        tags = ["", "night", "night;indoor", "blue; night", "indoor"][number]
        rows.append(f"{key}.jpg,{key[0]},{number / 3 - 1},ignored,{number} -2 3 {2**40},{tags}")
    (folder / "targets.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return draw_scene(tmp_path_factory.mktemp("scene"))


def expected_targets():
    tags = [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [0, 1, 0]]
    return {
        key: {
            "age": np.float32(number / 3 - 1),
            "box": np.array([number, -2, 3, 2**40], np.int64),
            "tags": np.array(tags[number], np.uint8),
        }
        for number, key in enumerate(SHAPES)
    }


TURNS = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270}


def expected_mask(path, orientation, fit):
    """The mask as Pillow makes it: the numbers of the file, turned and resized as its image."""
    values = np.asarray(Image.open(path))
    mask = Image.fromarray(values, "L")
    if orientation in TURNS:
        mask = mask.transpose(TURNS[orientation])
    nearest = Image.Resampling.NEAREST
    if fit == "stretch":
        return np.asarray(mask.resize((SIZE, SIZE), nearest))
    if fit == "pad":
        return np.asarray(ImageOps.pad(mask, (SIZE, SIZE), nearest, color=255))
    width, height = mask.size
    shorter = min(width, height)
    resized = mask.resize((int(SIZE * width / shorter), int(SIZE * height / shorter)), nearest)
    left, top = round((resized.width - SIZE) / 2), round((resized.height - SIZE) / 2)
    return np.asarray(resized.crop((left, top, left + SIZE, top + SIZE)))


def columns_of_tar(path, columns):
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            key, _, rest = member.name.partition(".")
            if rest not in ("npy", "cls"):
                name = rest.removesuffix(".npy")
                found.setdefault(key, {})[name] = np.load(io.BytesIO(archive.extractfile(member).read()))
    return found


def columns_of_tfrecord(path, columns):
    import tensorflow as tf

    features = {"key": tf.io.FixedLenFeature([], tf.string)}
    for name, column in columns.items():
        is_float = column["type"] == "float32"
        features[name] = tf.io.FixedLenFeature(
            column["shape"] if is_float else [], tf.float32 if is_float else tf.string
        )
    found = {}
    for record in tf.data.TFRecordDataset(str(path)):
        example = tf.io.parse_single_example(record, features)
        values = found[example["key"].numpy().decode()] = {}
        for name, column in columns.items():
            values[name] = example[name].numpy()
            if column["type"] != "float32":
                raw = tf.io.decode_raw(example[name], tf.dtypes.as_dtype(column["type"]))
                values[name] = raw.numpy().reshape(column["shape"])
    return found


def columns_of_hdf5(path, columns):
    with h5py.File(path) as file:
        keys = [key.decode() for key in file["keys"][:]]
        rows = {name: file[name][:] for name in columns}
    return {key: {name: rows[name][i] for name in columns} for i, key in enumerate(keys)}


READERS = {"tar": columns_of_tar, "tfrecord": columns_of_tfrecord, "hdf5": columns_of_hdf5}


def named_columns(dataset, split="train"):
    columns = dataset.manifest["splits"][split]["columns"]
    return {name: column for name, column in columns.items() if "shape" in column}


def read_columns(dataset, split="train"):
    """All named columns by key, as the clients see them, and as the manifest places them."""
    columns, found = named_columns(dataset, split), {}
    for shard in dataset.shards(split):
        path = dataset.out / shard["file"]
        data = path.read_bytes()
        rows = READERS[dataset.manifest["format"]](path, columns)
        assert len(rows) == shard["samples"]
        for name, column in columns.items():
            place, dtype = shard["columns"][name], np.dtype(column["type"])
            count = int(np.prod(column["shape"]))
            raw = [
                np.frombuffer(data, dtype, count, place["base"] + row * place["stride"]).tobytes()
                for row in range(shard["samples"])
            ]
            assert sorted(raw) == sorted(np.asarray(values[name]).tobytes() for values in rows.values())
        found.update(rows)
    return found


def with_unknown_keys(manifest):
    """The manifest with one more key in each object whose keys are not names of splits or columns."""
    split = manifest["splits"]["train"]
    columns = split["columns"]
    objects = [manifest, split, split["names"], *split["shards"], *columns.values()]
    objects += [manifest["spec"], manifest["recipe"], manifest["recipe"]["normalize"]]
    for place in objects:
        place["later"] = {"version": 3}
    del manifest["crc32c"]
    return manifest


def test_keys_of_later_versions_are_ignored(build, run, scene, tmp_path):
    targets = ("--labels", scene / "targets.csv", "--size", str(SIZE), "--shards", "2")
    dataset = build(scene / "images", tmp_path / "out", *targets, "--dtype", "float32", "--normalize", "imagenet")
    manifest = with_unknown_keys(dataset.manifest)
    schema = json.loads((REPOSITORY / "docs" / "formats" / "dataset.schema.json").read_text())
    jsonschema.validate(manifest, schema)
    (dataset.out / "dataset.json").write_text(json.dumps(manifest))
    run("verify", dataset.out)
    facts = json.loads(run("inspect", dataset.out, "--json").stdout)
    assert [column["name"] for column in facts["paths"][0]["splits"][0]["columns"]] == ["age", "box", "tags"]


def options_of(scene, file_format, fit):
    targets = ("--labels", scene / "targets.csv", "--mask", scene / "masks")
    return (*targets, "--format", file_format, "--fit", fit, "--size", str(SIZE), "--shards", "2")


@pytest.mark.parametrize("fit", ["crop", "stretch", "pad"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_clients_read_targets_masks_and_sizes(build, run, scene, tmp_path, file_format, fit):
    dataset = build(scene / "images", tmp_path / "out", *options_of(scene, file_format, fit))
    names = ["age", "box", "tags", "mask"] + ["size"] * (fit == "stretch")
    assert list(named_columns(dataset)) == names
    assert named_columns(dataset)["tags"]["names"] == NAMES
    found = read_columns(dataset)
    assert found.keys() == SHAPES.keys()
    for key, targets in expected_targets().items():
        height, width, orientation = SHAPES[key]
        for name, values in targets.items():
            np.testing.assert_array_equal(found[key][name], values, err_msg=f"{key} {name}")
            assert found[key][name].dtype == values.dtype
        mask = expected_mask(scene / "masks" / f"{key}.png", orientation, fit)
        np.testing.assert_array_equal(found[key]["mask"], mask, err_msg=key)
        if fit == "stretch":
            assert found[key]["size"].tolist() == ([width, height] if orientation == 6 else [height, width])
    assert dataset.labels() if file_format == "hdf5" else True
    run("verify", dataset.out)
    facts = json.loads(run("inspect", dataset.out, "--json").stdout)
    assert [column["name"] for column in facts["paths"][0]["splits"][0]["columns"]] == names
    assert "mask uint8[16,16]" in run("inspect", dataset.out).stdout.decode()


def test_images_do_not_depend_on_other_columns(build, scene, tmp_path):
    plain = ("--labels", scene / "plain.csv", "--size", str(SIZE), "--format", "hdf5")
    rows = [line.split(",")[:2] for line in (scene / "targets.csv").read_text().splitlines()[1:]]
    (scene / "plain.csv").write_text("".join(f"{path},{label}\n" for path, label in rows))
    without = build(scene / "images", tmp_path / "without", *plain)
    with_columns = build(scene / "images", tmp_path / "with", *options_of(scene, "hdf5", "crop"))
    assert not named_columns(without)
    assert without.labels() == with_columns.labels()
    for key, array in without.arrays().items():
        np.testing.assert_array_equal(with_columns.arrays()[key], array)


def test_webdataset_decodes_named_columns(build, scene, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    dataset = build(scene / "images", tmp_path / "out", *options_of(scene, "tar", "crop"))
    paths = [str(path) for path in dataset.shard_paths()]
    samples = list(webdataset.WebDataset(paths, shardshuffle=False).decode())
    targets = expected_targets()
    assert {sample["__key__"] for sample in samples} == SHAPES.keys()
    for sample in samples:
        assert sample["npy"].shape == (3, SIZE, SIZE) and sample["mask.npy"].shape == (SIZE, SIZE)
        np.testing.assert_array_equal(sample["box.npy"], targets[sample["__key__"]]["box"])


def test_tensorflow_datasets_reads_named_columns(build, scene, tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    dataset = build(scene / "images", tmp_path / "out", *options_of(scene, "tfrecord", "stretch"), "--index", "tfds")
    builder = tfds.builder_from_directory(dataset.out)
    rows = list(tfds.as_numpy(builder.as_dataset(split="train", shuffle_files=False)))
    assert len(rows) == len(SHAPES)
    found, targets = read_columns(dataset), expected_targets()
    for row in rows:
        key = row["key"].decode()
        for name in (*targets[key], "mask", "size"):
            np.testing.assert_array_equal(row[name], found[key][name], err_msg=f"{key} {name}")


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("made_as", FORMATS)
def test_convert_gives_what_build_gives(build, run, scene, tmp_path, made_as, to):
    one = build(scene / "images", tmp_path / "one", *options_of(scene, made_as, "stretch"))
    other = build(scene / "images", tmp_path / "other", *options_of(scene, to, "stretch"))
    run("convert", one.out, tmp_path / "converted", "--format", to, "--quiet")
    assert Dataset(tmp_path / "converted").files() == other.files()


@pytest.mark.parametrize("file_format", ["tar", "hdf5"])  # a TFRecord does not have the shape
def test_convert_names_columns_that_it_cannot_keep(build, run, scene, tmp_path, file_format):
    out = build(scene / "images", tmp_path / "out", *options_of(scene, file_format, "crop")).out
    assert b"warning" not in run("convert", out, tmp_path / "a", "--format", "tar").stdout
    (out / "dataset.json").unlink()
    said = run("convert", out, tmp_path / "b", "--format", "hdf5").stdout
    assert b"warning   without dataset.json, only images, labels and keys are kept; not " in said
    plan = json.loads(run("convert", out, tmp_path / "c", "--format", "hdf5", "--dry-run", "--json").stdout)
    assert sorted(plan["dropped_columns"]) == ["age", "box", "mask", "tags"]


def test_pack_names_columns_that_it_does_not_keep(run, scene, tmp_path):
    words = ("pack", scene / "images", tmp_path / "packed", "--labels", scene / "targets.csv")
    expected = b"warning   packed shards have only images, labels and keys; not age, box, tags\n"
    assert expected in run(*words, "--dry-run").stdout and expected in run(*words).stdout


def kill_while_it_builds(precache, words):
    """Runs until a shard is complete or the job is done, then kills it."""
    with subprocess.Popen([os.fspath(word) for word in (precache, *words)], stderr=subprocess.DEVNULL) as job:
        out = words[2]
        while job.poll() is None and not list(out.glob("train-*")):
            pass
        job.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_killed_build_and_parts_give_the_same_bytes(precache, run, build, scene, tmp_path, file_format):
    options = options_of(scene, file_format, "stretch")
    whole = build(scene / "images", tmp_path / "whole", *options)
    words = ("build", scene / "images", tmp_path / "killed", "--quiet", "--jobs", "1", *options)
    kill_while_it_builds(precache, words)
    run(*words)
    assert Dataset(tmp_path / "killed").files() == whole.files()
    for part in ("1/2", "0/2"):
        run("build", scene / "images", tmp_path / "parts", "--quiet", "--part", part, *options)
    run("build", scene / "images", tmp_path / "parts", "--quiet", "--finish", *options)
    assert Dataset(tmp_path / "parts").files() == whole.files()
    assert b"already complete" in run("build", scene / "images", tmp_path / "parts", "--quiet", *options).stdout


@pytest.mark.parametrize("file_format", FORMATS)
def test_steps_of_several_splits_give_the_same_columns(run, build, scene, tmp_path, file_format):
    options = (*options_of(scene, file_format, "stretch"), "--val-fraction", "0.5")
    whole = build(scene / "images", tmp_path / "whole", *options)
    words = ("build", scene / "images", tmp_path / "steps", "--quiet", *options)
    for step in ("--prepare 1/2", "--prepare 0/2", "--prepare", "--part 2/3", "--part 0/3", "--part 1/3", "--finish"):
        run(*words, *step.split())
    assert Dataset(tmp_path / "steps").files() == whole.files()
    train, val = read_columns(whole), read_columns(whole, "val")
    assert train.keys() | val.keys() == SHAPES.keys() and not train.keys() & val.keys()
    for key, targets in expected_targets().items():
        found = (train | val)[key]
        for name, values in targets.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"{key} {name}")
        mask = expected_mask(scene / "masks" / f"{key}.png", SHAPES[key][2], "stretch")
        np.testing.assert_array_equal(found["mask"], mask, err_msg=key)
    assert b"already complete" in run(*words, "--part", "0/3").stdout
    assert b"already complete" in run(*words).stdout


def test_a_part_refuses_other_targets_and_names_masks_that_changed(run, tmp_path):
    scene = draw_scene(tmp_path / "scene")
    words = ("build", scene / "images", tmp_path / "out", "--quiet", *options_of(scene, "tar", "crop"))
    run(*words, "--prepare")
    text = (scene / "targets.csv").read_text()
    (scene / "targets.csv").write_text(text.replace("a/1.jpg,a,-1.0", "a/1.jpg,a,-1.5"))
    assert b"with other options: labels" in run(*words, "--part", "0/2", expect=2).stderr
    (scene / "targets.csv").write_text(text)
    path = scene / "masks" / "a" / "1.png"
    time = path.stat().st_mtime_ns
    os.utime(path, ns=(0, time + 10**9))
    run(*words, "--part", "0/2")  # the other part has the mask
    assert f"changed since it was listed: '{path}'" in run(*words, "--part", "1/2", expect=3).stderr.decode()
    os.utime(path, ns=(0, time))
    for part in range(2):
        run(*words, "--part", f"{part}/2")
    run(*words, "--finish")
    run(*words[:2], tmp_path / "whole", *words[3:])
    assert Dataset(tmp_path / "out").files() == Dataset(tmp_path / "whole").files()


@pytest.mark.parametrize("change", ["target", "mask", "no mask", "size"])
def test_other_targets_or_masks_are_another_dataset(run, build, tmp_path, change):
    scene = draw_scene(tmp_path / "scene")
    fit = "stretch" if change == "size" else "crop"
    words = ["build", scene / "images", tmp_path / "out", "--quiet", *options_of(scene, "tar", fit)]
    run(*words)
    if change == "target":
        text = (scene / "targets.csv").read_text()
        (scene / "targets.csv").write_text(text.replace("a/1.jpg,a,-1.0", "a/1.jpg,a,-1.5"))
        assert (scene / "targets.csv").read_text() != text
    elif change == "mask":
        path = scene / "masks" / "a" / "1.png"
        data = bytearray(path.read_bytes())
        time = path.stat().st_mtime_ns
        data[data.index(b"PLTE") + 8] ^= 1  # of the palette, which changes no value
        path.write_bytes(data)
        os.utime(path, ns=(time + 10**9, time + 10**9))
    elif change == "no mask":
        at = words.index("--mask")
        del words[at : at + 2]
    else:
        words[words.index("stretch")] = "crop"
    said = run(*words, expect=2).stderr.decode()
    assert "already holds a finished split" in said or "has changed" in said, said


def test_a_further_split_has_the_same_names(build, run, scene, tmp_path):
    train = build(scene / "images", tmp_path / "out", *options_of(scene, "tar", "crop"))
    rows = (scene / "targets.csv").read_text().splitlines()
    (tmp_path / "val.csv").write_text("\n".join([rows[0], rows[2]]) + "\n")
    options = ["--split", "val", "--labels", tmp_path / "val.csv", "--size", str(SIZE)]
    build(scene / "images", train.out, *options)
    assert named_columns(Dataset(train.out), "val")["tags"]["names"] == NAMES
    (tmp_path / "test.csv").write_text("\n".join([rows[0], rows[2].replace("night", "day")]) + "\n")
    options[1], options[3] = "test", tmp_path / "test.csv"
    said = run("build", scene / "images", train.out, *options, expect=2).stderr.decode()
    assert "line 2: column 'tags': 'day' is not one of the 3 names" in said


@pytest.mark.parametrize(
    "header, field, telling",
    [
        ("age:float", "x", "'x' is not a number"),
        ("age:float", "nan", "not a finite number"),
        ("age:float", "-inf", "not a finite number"),
        ("age:float", "1e60", "does not fit"),
        ("age:float", "", "'' has 0 values, not 1"),
        ("age:float", "1 2", "has 2 values, not 1"),
        ("x:float[3]", "1 2", "has 2 values, not 3"),
        ("n:int", "1.5", "not an integer"),
        ("n:int", "99999999999999999999", "not an integer"),
        ("n:int[0]", "", "from 1 to 4096"),
        ("n:int[5000]", "1", "from 1 to 4096"),
        ("tags:multi", ";", "no row has a name"),
        ("tags:multi", ";".join(map(str, range(4097))), "more than 4096 names"),
        ("Age:float", "1", "cannot be the name of a column"),
        ("image:float", "1", "has another meaning"),
        ("mask:int", "1", "cannot be named 'mask'"),
        ("a:float,a:int", "1,1", "two columns named 'a'"),
    ],
)
def test_wrong_targets_are_refused(run, scene, tmp_path, header, field, telling):
    csv = tmp_path / "wrong.csv"
    csv.write_text(f"path,label,{header}\na/1.jpg,0,{field}\n")
    said = run("build", scene / "images", tmp_path / "out", "--labels", csv, expect=2).stderr.decode()
    assert telling in said, said
    if "name" not in telling and "meaning" not in telling and "4096" not in telling:
        assert f"'{csv}' line 2: column '{header.split(':')[0]}'" in said
    assert not (tmp_path / "out").exists()


def test_a_row_without_a_target_is_refused(run, scene, tmp_path):
    csv = tmp_path / "short.csv"
    csv.write_text("path,label,age:float\na/1.jpg,0,1\na/2.jpg,0\n")
    said = run("build", scene / "images", tmp_path / "out", "--labels", csv, expect=2).stderr.decode()
    assert f"'{csv}' line 3: the line has 2 fields" in said


def test_labels_may_be_missing_next_to_targets(build, scene, tmp_path):
    csv = tmp_path / "targets.csv"
    csv.write_text("age:float,path\n1.5,a/1.jpg\n-2,b/1.jpg\n")
    dataset = build(scene / "images", tmp_path / "out", "--labels", csv, "--format", "hdf5", "--size", "8")
    assert dataset.labels() == {"a/1": -1, "b/1": -1}
    assert {key: row["age"] for key, row in read_columns(dataset).items()} == {"a/1": 1.5, "b/1": -2}


def test_a_plain_label_file_may_have_colons(build, scene, tmp_path):
    csv = tmp_path / "labels.csv"
    csv.write_text("a/1.jpg,kind:float\nb/1.jpg,kind:int\n")
    dataset = build(scene / "images", tmp_path / "out", "--labels", csv, "--size", "8")
    assert dataset.classes == ["kind:float", "kind:int"]


@pytest.mark.parametrize("damage", ["missing", "twice", "no folder"])
def test_masks_that_do_not_belong_to_the_images_are_refused(run, tmp_path, damage):
    scene = draw_scene(tmp_path / "scene")
    masks = scene / "masks"
    if damage == "missing":
        (masks / "b" / "2.png").unlink()
    elif damage == "twice":
        (masks / "b" / "2.PNG").write_bytes((masks / "b" / "2.png").read_bytes())
    else:
        masks = scene / "targets.csv"
    words = ("build", scene / "images", tmp_path / "out", "--mask", masks)
    said = run(*words, expect=2).stderr.decode()
    assert {"missing": "no mask for 'b/2.jpg'", "twice": "masks of one image", "no folder": "--mask"}[damage] in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["aspect", "rgb", "16 bit", "cut", "jpeg"])
def test_a_bad_mask_skips_its_image(build, run, tmp_path, damage):
    scene = draw_scene(tmp_path / "scene")
    path = scene / "masks" / "b" / "2.png"
    if damage == "aspect":
        Image.new("L", (30, 30)).save(path)
    elif damage == "rgb":
        Image.new("RGB", (64, 16)).save(path)
    elif damage == "16 bit":
        Image.fromarray(np.zeros((16, 64), np.uint16)).save(path)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    else:
        Image.new("L", (64, 16)).save(path, "JPEG")
    dataset = build(scene / "images", tmp_path / "out", *options_of(scene, "hdf5", "crop"), "--max-bad", "50")
    skipped = dataset.skipped().decode()
    assert "b/2.jpg\tmask\tmask 'b/2.png': " in skipped
    assert dataset.labels().keys() == SHAPES.keys() - {"b/2"}
    assert read_columns(dataset).keys() == SHAPES.keys() - {"b/2"}
    run("verify", dataset.out)
    words = ("build", scene / "images", dataset.out, *options_of(scene, "hdf5", "crop"), "--max-bad", "50")
    assert b"already complete" in run(*words).stdout


def packed_png(values, bits, palette):
    """A PNG of numbers with so many bits, gray or with a palette. Pillow writes no gray of 2 or 4 bits."""
    height, width = values.shape
    shifts = np.arange(bits - 1, -1, -1)
    rows = np.packbits((values[..., None] >> shifts & 1).astype(np.uint8).reshape(height, -1), axis=1)
    header = struct.pack(">IIBBBBB", width, height, bits, 3 if palette else 0, 0, 0, 0)
    colors = [(b"PLTE", bytes(range(1, 1 + 3 * 2**bits)))] if palette else []
    pixels = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    chunks = [(b"IHDR", header), *colors, (b"IDAT", pixels), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


@pytest.mark.parametrize("palette", [True, False], ids=["palette", "gray"])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_masks_of_few_bits_are_their_numbers(build, tmp_path, bits, palette):
    rng = np.random.default_rng(bits)
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    masks = {}
    for number, (height, width) in enumerate([(16, 16), (16, 13), (9, 16)]):
        Image.new("RGB", (width, height), (9, 9, 9)).save(tmp_path / "images" / f"{number}.png")
        values = rng.integers(0, 2**bits, (height, width), dtype=np.uint8)
        path = tmp_path / "masks" / f"{number}.png"
        path.write_bytes(packed_png(values, bits, palette))
        if palette or bits == 1:  # what Pillow makes of it
            assert (np.asarray(Image.open(path)) == values).all()
        masks[str(number)] = np.asarray(Image.fromarray(values, "L").resize((SIZE, SIZE), Image.Resampling.NEAREST))
    dataset = build(tmp_path / "images", tmp_path / "out", "--labels", "none", "--mask", tmp_path / "masks",
                    "--size", str(SIZE), "--fit", "stretch")  # fmt: skip
    found = read_columns(dataset)
    assert found.keys() == masks.keys()
    for key, mask in masks.items():
        assert (found[key]["mask"] == mask).all()


def test_the_plan_shows_columns(run, scene, tmp_path):
    words = ("build", scene / "images", tmp_path / "out", *options_of(scene, "tar", "stretch"), "--dry-run")
    assert b"age float32, box int64[4], tags uint8[3], mask uint8[16,16], size int32[2]" in run(*words).stdout
    assert "size int32[2]" in json.loads(run(*words, "--json").stdout)["columns"]


def test_the_preset_for_training_stretches(run, scene, tmp_path):
    words = ("build", scene / "images", tmp_path / "out", "--labels", "none", "--preset", "imagenet-train")
    plan = json.loads(run(*words, "--dry-run", "--json").stdout)
    assert plan["shape"] == [3, 320, 320] and plan["columns"] == ["size int32[2]"]
    assert b"EXIF orientation ignored" in run(*words, "--dry-run").stdout
    assert json.loads(run(*words, "--size", "64", "--dry-run", "--json").stdout)["shape"] == [3, 64, 64]


def test_the_preset_for_training_makes_small_shards(build, scene, tmp_path):
    words = ("--labels", "none", "--preset", "imagenet-train", "--size", "64", "--format", "hdf5")
    dataset = build(scene / "images", tmp_path / "out", *words)
    found = read_columns(dataset)
    assert dataset.spec["shape"] == [3, 64, 64] and found.keys() == SHAPES.keys()
    for key, (height, width, _) in SHAPES.items():  # EXIF is ignored
        assert found[key]["size"].tolist() == [height, width]
        image = Image.open(scene / "images" / f"{key}.jpg")
        expected = image.resize((64, 64), Image.Resampling.BILINEAR)
        assert (dataset.samples()[key].array == np.asarray(expected).transpose(2, 0, 1)).all()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_changed_value_is_damage(build, run, scene, tmp_path, file_format):
    dataset = build(scene / "images", tmp_path / "out", *options_of(scene, file_format, "crop"))
    shard = dataset.shards()[0]
    path = dataset.out / shard["file"]
    data = bytearray(path.read_bytes())
    data[shard["columns"]["mask"]["base"] + shard["columns"]["mask"]["stride"] + 7] ^= 1
    path.write_bytes(data)
    said = run("verify", dataset.out, expect=4)
    assert "record 1" in (said.stdout + said.stderr).decode()
