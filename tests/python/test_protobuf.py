# SPDX-License-Identifier: Apache-2.0
"""TFRecords of other messages than tf.train.Example: `inspect` and `build` find in them what protobuf finds."""

import io
import re
import shutil
import struct
import subprocess
import tarfile
from random import Random

import google_crc32c
import numpy as np
import pytest
from PIL import Image

from inspection import parse
from shards import Dataset

pytest_plugins = ("tool_fixtures",)

ROAD = """
syntax = "proto3";
package road;
import "camera.proto";
message Context { string place = 1; sint32 zone = 2; repeated int64 ids = 3; bool wet = 4; }
message Frame {
  int64 time = 1;
  repeated Picture images = 2;
  Context context = 3;
  repeated float poses = 5;
  map<string, Picture> named = 6;
  Frame child = 7;
}
message Record { Frame frame = 1; uint32 label = 2; sfixed64 big = 3; oneof one { bytes photo = 4; string url = 5; } }
message OldRecord { Frame frame = 1; }
"""
CAMERA = """
syntax = "proto3";
package road;
enum Camera { FRONT = 0; LEFT = 1; RIGHT = 2; }
message Picture { Camera camera = 1; bytes image = 2; repeated int32 scores = 4; optional int32 grade = 7; }
"""
LEGACY = """
syntax = "proto2";
package legacy;
enum Kind { CAT = 1; DOG = 4; }
message Inner { optional bytes photo = 1; optional Kind kind = 2; }
message Slide {
  required int32 id = 1;
  optional group Photo = 2 { optional bytes data = 3; optional int32 kind = 4 [default = 7]; }
  repeated group Shot = 5 { optional bytes data = 6; optional Kind kind = 7; }
  extensions 100 to 200;
}
extend Slide { optional Inner inner = 100; repeated bytes extra = 101; }
message Set { option message_set_wire_format = true; extensions 4 to max; }
message Holder { optional Set set = 1; }
"""


class Schema:
    """The descriptor set that protoc makes of the sources above, and modules for protobuf's Python."""

    def __init__(self, folder):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        for name, text in {"road": ROAD, "camera": CAMERA, "legacy": LEGACY}.items():
            (folder / f"{name}.proto").write_text(text)
        self.path = folder / "all.desc"
        self.partial = folder / "partial.desc"
        protoc = ["protoc", f"--proto_path={folder}"]
        subprocess.run(
            [*protoc, f"--descriptor_set_out={self.path}", "--include_imports", "road.proto", "legacy.proto"],
            check=True,
        )
        subprocess.run([*protoc, f"--descriptor_set_out={self.partial}", "road.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(self.path.read_bytes())
        self.pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self.pool.Add(file)
        self.factory = message_factory

    def __getitem__(self, name):
        return self.factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def extension(self, name):
        return self.pool.FindExtensionByName(name)

    def words(self, message):
        return ["--proto", self.path, "--message", message]


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    if shutil.which("protoc") is None:
        pytest.skip("needs protoc")
    return Schema(tmp_path_factory.mktemp("schema"))


@pytest.fixture
def inspect(tool):
    def run(path, *options, expect=0):
        (facts,) = parse(tool.run("inspect", path, "--json", *options, expect=expect).out.encode())
        return facts

    return run


def picture(seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG" if seed % 2 else "JPEG")
    return file.getvalue()


def pixels_of(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).transpose(2, 0, 1)


def write_records(path, records):
    def masked(data):
        crc = google_crc32c.value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    with open(path, "wb") as file:
        for record in records:
            data = record if isinstance(record, bytes) else record.SerializePartialToString()
            length = struct.pack("<Q", len(data))
            file.write(length + masked(length) + data + masked(data))
    return path


OPTIONS = ["--size", "8", "--no-shuffle"]


def check(out, expected):
    """`expected` has the bytes of an image and its label, by key."""
    samples = Dataset(out).samples()
    assert list(samples) == list(expected)
    for key, (data, label) in expected.items():
        assert np.array_equal(samples[key].array, pixels_of(data)), key
        assert samples[key].label == label, key


def road_record(schema, number, images=3):
    record = schema["road.Record"](label=number % 2)
    frame = record.frame
    frame.time = 1_000_000 + number
    for i in range(images):
        frame.images.add(camera=i % 3, image=picture(10 * number + i), scores=range(i), grade=i)
    frame.context.place = ["Ulm", "Rom"][number % 2]
    frame.context.zone = -number
    frame.context.ids.append(7)
    frame.context.wet = number == 1
    frame.poses.extend([1.5, 2.5])
    frame.named["top"].image = picture(100 + number)
    record.big = -5
    record.photo = picture(200 + number)
    return record


@pytest.fixture
def road(schema, tmp_path):
    records = [road_record(schema, number) for number in range(3)]
    return write_records(tmp_path / "road.tfrecord", records), [record.SerializeToString() for record in records]


def test_each_image_of_a_repeated_field_is_a_sample(tool, schema, road, tmp_path):
    path, records = road
    Record = schema["road.Record"]
    tool.build(
        path,
        tmp_path / "out",
        *schema.words("road.Record"),
        *OPTIONS,
        "--image-key",
        "frame.images.image",
        "--label-key",
        "frame.images.camera",
    )
    expected = {
        f"road/{number:08}-{i}": (image.image, image.camera)
        for number, record in enumerate(records)
        for i, image in enumerate(Record.FromString(record).frame.images)
    }
    check(tmp_path / "out", expected)
    assert Dataset(tmp_path / "out").classes == ["FRONT", "LEFT", "RIGHT"]


@pytest.mark.parametrize(
    "label_key, classes",
    [
        ("label", []),
        ("frame.context.zone", []),
        ("frame.context.wet", []),
        ("frame.context.ids", []),
        ("big", []),
        ("frame.context.place", ["Rom", "Ulm"]),
        ("frame.images.grade", []),
    ],
)
def test_labels_are_those_of_the_record_or_of_the_image(tool, schema, road, tmp_path, label_key, classes):
    path, records = road
    tool.build(
        path,
        tmp_path / "out",
        *schema.words("road.Record"),
        *OPTIONS,
        "--image-key",
        "frame.images.image",
        "--label-key",
        label_key,
    )
    expected = {}
    for number, data in enumerate(records):
        record = schema["road.Record"].FromString(data)
        for i, image in enumerate(record.frame.images):
            value = image if "images" in label_key else record
            for name in label_key.removeprefix("frame.images.").split("."):
                value = getattr(value, name)
            value = value[0] if label_key.endswith("ids") else value
            expected[f"road/{number:08}-{i}"] = (image.image, classes.index(value) if classes else int(value))
    check(tmp_path / "out", expected)
    assert Dataset(tmp_path / "out").classes == classes


@pytest.mark.parametrize("image_key, suffix", [("photo", ""), ("frame.named.value.image", "-0")])
def test_images_in_a_oneof_and_in_a_map(tool, schema, road, tmp_path, image_key, suffix):
    path, records = road
    tool.build(
        path, tmp_path / "out", *schema.words("road.Record"), *OPTIONS, "--image-key", image_key, "--labels", "none"
    )
    messages = [schema["road.Record"].FromString(data) for data in records]
    images = [m.photo if image_key == "photo" else m.frame.named["top"].image for m in messages]
    check(tmp_path / "out", {f"road/{number:08}{suffix}": (image, -1) for number, image in enumerate(images)})


def test_the_parts_of_a_message_are_merged_as_protobuf_does(tool, schema, tmp_path):
    Record = schema["road.Record"]
    parts = [Record(photo=picture(1), label=1), Record(photo=picture(2)), Record(label=4)]
    replaced = [Record(photo=picture(3), label=2), Record(url="x")]
    repeated = [road_record(schema, 5, 2), road_record(schema, 6, 1)]
    data = [b"".join(part.SerializeToString() for part in record) for record in (parts, replaced, repeated)]
    path = write_records(tmp_path / "x.tfrecord", data[:2])
    words = [*schema.words("road.Record"), *OPTIONS, "--label-key", "label"]
    tool.build(path, tmp_path / "out", *words, "--image-key", "photo", "--max-bad", "50")
    merged = Record.FromString(data[0])
    check(tmp_path / "out", {"x/00000000": (merged.photo, merged.label)})
    assert Record.FromString(data[1]).photo == b""
    assert b"x/00000001" in Dataset(tmp_path / "out").skipped()
    path = write_records(tmp_path / "x.tfrecord", data[2:])
    tool.build(path, tmp_path / "two", *words, "--image-key", "frame.images.image")
    merged = Record.FromString(data[2])
    check(
        tmp_path / "two",
        {f"x/00000000-{i}": (image.image, merged.label) for i, image in enumerate(merged.frame.images)},
    )


def slide(schema, number):
    record = schema["legacy.Slide"](id=number)
    record.photo.data = picture(number)
    for i in range(2):
        record.shot.add(data=picture(30 + 10 * number + i), kind=[1, 4][i])
    record.Extensions[schema.extension("legacy.inner")].photo = picture(60 + number)
    record.Extensions[schema.extension("legacy.inner")].kind = [1, 4][number % 2]
    record.Extensions[schema.extension("legacy.extra")].append(picture(70 + number))
    return record


def test_groups_extensions_defaults_and_enums_with_gaps(tool, schema, tmp_path):
    slides = [slide(schema, number) for number in range(2)]
    path = write_records(tmp_path / "s.tfrecord", slides)
    words = [*schema.words("legacy.Slide"), *OPTIONS]
    tool.build(path, tmp_path / "group", *words, "--image-key", "photo.data", "--label-key", "photo.kind")
    check(tmp_path / "group", {f"s/{i:08}": (slides[i].photo.data, 7) for i in range(2)})
    tool.build(path, tmp_path / "groups", *words, "--image-key", "shot.data", "--label-key", "shot.kind")
    check(
        tmp_path / "groups", {f"s/{i:08}-{j}": (slides[i].shot[j].data, [1, 4][j]) for i in range(2) for j in range(2)}
    )
    inner = schema.extension("legacy.inner")
    tool.build(
        path,
        tmp_path / "extension",
        *words,
        "--image-key",
        "[legacy.inner].photo",
        "--label-key",
        "[legacy.inner].kind",
    )
    check(tmp_path / "extension", {f"s/{i:08}": (slides[i].Extensions[inner].photo, [1, 4][i]) for i in range(2)})
    (tmp_path / "names.txt").write_text("DOG\nCAT\n")
    tool.build(
        path,
        tmp_path / "named",
        *words,
        "--image-key",
        "[legacy.extra]",
        "--label-key",
        "[legacy.inner].kind",
        "--classes",
        tmp_path / "names.txt",
    )
    extra = schema.extension("legacy.extra")
    check(tmp_path / "named", {f"s/{i:08}-0": (slides[i].Extensions[extra][0], [1, 0][i]) for i in range(2)})


def test_images_stay_encoded(tool, schema, road, tmp_path):
    path, records = road
    tool.run(
        "pack",
        path,
        tmp_path / "out",
        "--quiet",
        *schema.words("road.Record"),
        "--image-key",
        "frame.images.image",
        "--label-key",
        "label",
    )
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as archive:
        found = [archive.extractfile(member).read() for member in archive if member.name.endswith(("jpg", "png"))]
    assert found == [image.image for data in records for image in schema["road.Record"].FromString(data).frame.images]


def test_compressed_records_and_a_second_run(tool, schema, road, tmp_path):
    import gzip

    path, records = road
    packed = tmp_path / "road.tfrecord.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    words = [
        packed,
        tmp_path / "out",
        *schema.words("road.Record"),
        *OPTIONS,
        "--image-key",
        "photo",
        "--label-key",
        "label",
    ]
    tool.build(*words)
    check(tmp_path / "out", {f"road/{i:08}": (picture(200 + i), i % 2) for i in range(len(records))})
    before = Dataset(tmp_path / "out").files()
    tool.build(*words)
    assert Dataset(tmp_path / "out").files() == before


def test_an_image_that_is_missing_is_a_bad_sample(tool, schema, tmp_path):
    record = road_record(schema, 0)
    record.frame.images[1].image = b""
    path = write_records(tmp_path / "x.tfrecord", [record])
    words = [
        path,
        tmp_path / "out",
        *schema.words("road.Record"),
        *OPTIONS,
        "--image-key",
        "frame.images.image",
        "--labels",
        "none",
    ]
    tool.build(*words, "--max-bad", "50")
    assert list(Dataset(tmp_path / "out").samples()) == ["x/00000000-0", "x/00000000-2"]
    assert b"x/00000000-1" in Dataset(tmp_path / "out").skipped()


def mutated(data, random):
    """Some bytes are changed, left out or added, or parts of the message come once more."""
    data = bytearray(data)
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        place = random.randrange(len(data) + 1)
        match random.randrange(4):
            case 0:
                data[place : place + 1] = random.randbytes(1)
            case 1:
                data[place : place + random.randrange(1, 4)] = b""
            case 2:
                data[place:place] = random.randbytes(random.randrange(1, 4))
            case 3:
                data += data[place:]
    return bytes(data)


@pytest.mark.parametrize("image_key", ["frame.images.image", "photo", "frame.child.images.image"])
def test_mutated_messages_have_the_images_that_protobuf_finds(tool, schema, tmp_path, image_key):
    import google.protobuf.message

    random = Random(image_key)
    Record = schema["road.Record"]
    records = []
    while len(records) < 500:
        record = Record(label=random.randrange(300), big=1)
        for frame in (record.frame, record.frame.child):
            for _ in range(random.randrange(3)):
                frame.images.add(camera=random.randrange(3), image=b"\xff\xd8\xff" + random.randbytes(3), scores=[1, 2])
        random.choice([lambda: setattr(record, "photo", b"\xff\xd8\xffphoto"), lambda: setattr(record, "url", "x")])()
        data = mutated(record.SerializeToString(), random)
        try:
            Record.FromString(data)
        except google.protobuf.message.DecodeError:
            continue
        records.append(data)
    path = write_records(tmp_path / "x.tfrecord", records)
    tool.run(
        "pack",
        path,
        tmp_path / "out",
        "--quiet",
        *schema.words("road.Record"),
        "--image-key",
        image_key,
        "--labels",
        "none",
    )
    expected = {}
    for number, data in enumerate(records):
        record = Record.FromString(data)
        frame = record.frame.child if "child" in image_key else record.frame
        images = [record.photo] if image_key == "photo" else [image.image for image in frame.images]
        for i, image in enumerate(images):
            if image.startswith(b"\xff\xd8\xff"):
                expected[f"x/{number:08}" + ("" if image_key == "photo" else f"-{i}")] = image
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as archive:
        found = {
            member.name.removesuffix(".jpg"): archive.extractfile(member).read()
            for member in archive
            if member.name.endswith("jpg")
        }
    assert len(expected) > 100
    assert found == expected


# --- refusals ---------------------------------------------------------------------------------------------------------

IMAGE = ["--image-key", "frame.images.image"]


@pytest.mark.parametrize(
    "message, words, said",
    [
        ("road.Recrod", IMAGE, ["message", "road.Record"]),
        ("Record", IMAGE, ["message", "road.Record", "full name"]),
        (
            "road.Record",
            ["--image-key", "frame.pictures.image"],
            ["image_key|--image-key", "road.Frame", "'pictures'", "images, context"],
        ),
        ("road.Record", ["--image-key", "frame.images"], ["image_key|--image-key", "road.Picture", "camera, image"]),
        ("road.Record", ["--image-key", "frame.time"], ["image_key|--image-key", "int64"]),
        ("road.Record", ["--image-key", "frame.time.x"], ["image_key|--image-key", "'frame.time' is of type int64"]),
        ("road.Record", ["--image-key", "frame..x"], ["image_key|--image-key", "not a path"]),
        ("road.Record", [], ["image_key|--image-key", "frame, label"]),
        ("road.Record", [*IMAGE, "--label-key", "frame.images.x"], ["label_key|--label-key", "'x'"]),
        ("road.Record", [*IMAGE, "--label-key", "frame.poses"], ["label_key|--label-key", "float"]),
        (
            "road.Record",
            ["--image-key", "photo", "--label-key", "frame.images.camera"],
            ["label_key|--label-key", "'images' is repeated"],
        ),
        ("road.Record", IMAGE, ["label_key|--label-key", "labels"]),
        ("legacy.Slide", ["--image-key", "[legacy.nothing]"], ["extension", "legacy.nothing"]),
        ("legacy.Slide", ["--image-key", "photo.data", "--labels", "none"], ["no record", "photo.data"]),
    ],
)
def test_what_does_not_fit_the_descriptor_is_refused(tool, schema, road, tmp_path, message, words, said):
    text = tool.refuse(road[0], tmp_path / "out", *schema.words(message), *OPTIONS, *words)
    for pattern in said:
        assert re.search(pattern.replace("[", r"\["), text), text
    assert not (tmp_path / "out" / "dataset.json").exists()


def test_a_message_set_is_not_supported(tool, schema, road, tmp_path):
    text = tool.refuse(road[0], tmp_path / "out", *schema.words("legacy.Holder"), "--image-key", "set.x", expect=5)
    assert "'set' is a MessageSet" in text


def test_invalid_descriptor_sets_are_refused(tool, schema, road, tmp_path):
    words = ["--message", "road.Record", *IMAGE]
    text = tool.refuse(road[0], tmp_path / "out", "--proto", tmp_path / "missing.desc", *words)
    assert "missing.desc" in text and "protoc" in text
    (tmp_path / "road.proto").write_text(ROAD)
    cut = tmp_path / "cut.desc"
    cut.write_bytes(schema.path.read_bytes()[:-9])
    for wrong in (tmp_path / "road.proto", cut, schema.partial):
        text = tool.refuse(road[0], tmp_path / "out", "--proto", wrong, *words)
        assert "descriptor set" in text and "include_imports" in text
    assert "camera.proto" in text
    text = tool.refuse(road[0], tmp_path / "out", "--proto", schema.path, *IMAGE)
    assert "message" in text
    (tmp_path / "images" / "a").mkdir(parents=True)
    (tmp_path / "images" / "a" / "1.png").write_bytes(picture(1))
    assert "TFRecord" in tool.refuse(tmp_path / "images", tmp_path / "out", *schema.words("road.Record"), *IMAGE)
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "images", "images")
    assert "TFRecord" in tool.refuse(tmp_path / "x.tar", tmp_path / "out", *schema.words("road.Record"), *IMAGE)


def test_damaged_descriptor_sets_are_refused_in_one_sentence(tool, schema, road, tmp_path):
    random = Random(0)
    whole = schema.path.read_bytes()
    damaged = tmp_path / "damaged.desc"
    for _ in range(20):
        place = random.randrange(len(whole))
        damaged.write_bytes(whole[:place] + b"\xff\x07" + whole[place + 2 :])
        words = ["--proto", damaged, "--message", "road.Record", *IMAGE, "--labels", "none", "--dry-run"]
        result = tool.build(road[0], tmp_path / "out", *words, expect=None)
        assert result.code in (0, 2)
        assert len(result.err.splitlines()) == result.code, result.err


def test_records_without_a_message_end_the_build(tool, schema, road, tmp_path):
    path, records = road
    words = [*schema.words("road.Record"), *OPTIONS, *IMAGE, "--labels", "none"]
    cut = write_records(tmp_path / "cut.tfrecord", [records[0], records[1][:-100]])
    text = tool.refuse(cut, tmp_path / "out", *words, expect=4)
    assert "record 1 is not a road.Record message" in text and str(12 + len(records[0]) + 4 + 12) in text
    damaged = bytearray(path.read_bytes())
    damaged[len(records[0]) // 2] ^= 1
    (tmp_path / "damaged.tfrecord").write_bytes(damaged)
    assert "CRC" in tool.refuse(tmp_path / "damaged.tfrecord", tmp_path / "out", *words, expect=4)


def nested(levels, data=b""):
    """A Frame in a Frame in a Frame."""
    for _ in range(levels):
        size, length = len(data), bytearray()
        while size >= 0x80:
            length.append(size & 0x7F | 0x80)
            size >>= 7
        data = b"\x3a" + bytes(length) + bytes([size]) + data
    return data


def test_messages_in_messages_without_end_do_no_harm(tool, schema, inspect, tmp_path):
    deep = nested(20_000)
    groups = b"\x13" * 100_000
    path = write_records(tmp_path / "deep.tfrecord", [nested(50), deep, groups, b"\x13" * 99 + b"\x14" * 99])
    messages = inspect(path, *schema.words("road.Frame"))["contents"]["tfrecord"]["messages"]
    assert messages["malformed"] == 2 and messages["records"] == 2
    assert inspect(path)["contents"]["tfrecord"]["messages"]["fields"]
    path = write_records(tmp_path / "deep.tfrecord", [deep])
    tool.refuse(
        path, tmp_path / "out", *schema.words("road.Frame"), "--image-key", ".".join(["child"] * 100 + ["images.image"])
    )
    words = ["--image-key", ".".join(["child"] * 60 + ["images.image"]), "--labels", "none"]
    assert "no record" in tool.refuse(path, tmp_path / "out", *schema.words("road.Frame"), *words)


def test_labels_that_are_missing_or_unfit_are_refused(tool, schema, tmp_path):
    def refuse(message, record, image_key, label_key):
        path = write_records(tmp_path / "x.tfrecord", [record])
        return tool.refuse(
            path, tmp_path / "out", *schema.words(message), *OPTIONS, "--image-key", image_key, "--label-key", label_key
        )

    record = road_record(schema, 0)
    record.frame.images[1].ClearField("grade")
    assert "record 0" in refuse("road.Record", record, "frame.images.image", "frame.images.grade")
    record.frame.context.ids.append(8)
    assert "has 2 values" in refuse("road.Record", record, "photo", "frame.context.ids")
    record.frame.images[1].camera = 9
    assert "is 9, which has no name in its enum" in refuse(
        "road.Record", record, "frame.images.image", "frame.images.camera"
    )
    record.frame.context.place = "x" * 300
    assert "300 bytes" in refuse("road.Record", record, "photo", "frame.context.place")
    record.frame.ClearField("context")
    assert "no label" in refuse("road.Record", record, "photo", "frame.context.zone")


# --- inspect ----------------------------------------------------------------------------------------------------------


def raw_paths(data):
    """The paths of field numbers that protoc finds, with how often each is there."""
    done = subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True, check=True)
    paths, counts = [], {}
    for line in done.stdout.decode(errors="replace").splitlines():
        number = re.match(r"\s*(\d+)( \{|:)", line)
        if number:
            path = ".".join([*paths, number[1]])
            counts[path] = counts.get(path, 0) + 1
            if number[2] == " {":
                paths.append(number[1])
        elif line.strip() == "}":
            paths.pop()
    return counts


def test_fields_without_a_descriptor_are_those_of_protoc(schema, inspect, road):
    path, records = road
    messages = inspect(path)["contents"]["tfrecord"]["messages"]
    assert messages["message"] is None and messages["records"] == 3 and messages["malformed"] == 0
    fields = {field["path"]: field for field in messages["fields"]}
    counted = [raw_paths(record) for record in records]
    assert set(fields) == {path for counts in counted for path in counts}
    for path, field in fields.items():
        counts = [counts[path] for counts in counted if path in counts]
        assert field["records"] == len(counts), path
        assert (field["values"]["min"], field["values"]["max"]) == (min(counts), max(counts)), path
    types = {path: (field["type"], field["wire_type"], field["content"]) for path, field in fields.items()}
    assert types["1"] == ("message", 2, None)
    assert types["1.1"] == ("varint", 0, None)
    assert types["1.2"] == ("message", 2, None)
    assert types["1.2.2"][:2] == ("bytes", 2) and types["1.2.2"][2] in ("JPEG", "PNG")
    assert types["1.3.1"] == ("text", 2, None)
    assert types["3"] == ("fixed64", 1, None)


def test_fields_with_a_descriptor_have_names_and_types(tool, schema, inspect, road):
    path, records = road
    messages = inspect(path, *schema.words("road.Record"))["contents"]["tfrecord"]["messages"]
    assert messages["message"] == "road.Record" and messages["records"] == 3
    fields = {field["path"]: field for field in messages["fields"]}
    assert fields["frame"]["type"] == "road.Frame"
    assert fields["frame.images"]["type"] == "repeated road.Picture"
    assert fields["frame.images"]["values"] == {"min": 3, "max": 3, "mean": 3}
    assert fields["frame.images.camera"]["type"] == "enum road.Camera"
    assert fields["frame.images.image"]["type"] == "bytes" and fields["frame.images.image"]["content"] in (
        "JPEG",
        "PNG",
    )
    sizes = [len(image.image) for data in records for image in schema["road.Record"].FromString(data).frame.images]
    assert fields["frame.images.image"]["bytes"]["max"] == max(sizes)
    assert fields["frame.images.scores"]["values"]["max"] == 3
    assert fields["frame.poses"]["values"] == {"min": 2, "max": 2, "mean": 2}
    assert fields["frame.named"]["type"] == "map" and "frame.named.value.image" in fields
    assert fields["frame.context.wet"]["records"] == 1
    text = tool.run("inspect", path, *schema.words("road.Record")).out
    assert re.search(r"frame\.images\.image +bytes +(JPEG|PNG) +3", text), text


def test_unknown_fields_extensions_and_groups_are_listed(schema, inspect, road, tmp_path):
    fields = {
        f["path"]: f
        for f in inspect(road[0], *schema.words("road.OldRecord"))["contents"]["tfrecord"]["messages"]["fields"]
    }
    assert fields["2"]["type"] == "unknown varint" and fields["4"]["type"] == "unknown bytes"
    assert fields["4"]["content"] in ("JPEG", "PNG")
    path = write_records(tmp_path / "s.tfrecord", [slide(schema, 1)])
    fields = {
        f["path"]: f["type"]
        for f in inspect(path, *schema.words("legacy.Slide"))["contents"]["tfrecord"]["messages"]["fields"]
    }
    assert fields["shot"] == "repeated group legacy.Slide.Shot" and fields["shot.data"] == "bytes"
    assert fields["[legacy.inner].photo"] == "bytes" and fields["[legacy.extra]"] == "repeated bytes"
    raw = {f["path"]: f["type"] for f in inspect(path)["contents"]["tfrecord"]["messages"]["fields"]}
    assert raw["2"] == "group" and raw["2.3"] == "bytes" and raw["100"] == "message"


def test_examples_have_no_raw_fields(inspect, tmp_path):
    value = b"\x0a\x03abc"
    example = b"\x0a\x10\x0a\x0e\x0a\x03key\x12\x07\x0a\x05" + value
    assert inspect(write_records(tmp_path / "x.tfrecord", [example]))["contents"]["tfrecord"]["messages"] is None
    noise = write_records(tmp_path / "noise.tfrecord", [b"\xff" * 20])
    assert inspect(noise)["contents"]["tfrecord"]["messages"] is None
    assert inspect(write_records(tmp_path / "i.tfrecord", [picture(0)]))["contents"]["tfrecord"]["messages"] is None


def test_inspect_wants_both_options(tool, schema, road):
    assert "--message" in tool.run("inspect", road[0], "--proto", schema.path, expect=2).err
    assert "road.Record" in tool.run("inspect", road[0], *schema.words("road.Recor"), expect=2).err
