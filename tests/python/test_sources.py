# SPDX-License-Identifier: Apache-2.0
"""Which files of SOURCE are images, how they are labelled, and the messages for a wrong SOURCE or OUT."""

import json
import os
import shutil
import socket

import pytest

import images
from reference import SMALL, tensors
from shards import Dataset, arrays_of, assert_equal_arrays, labels_of
from tool import files, finish, ordinary_user

pytest_plugins = ("tool_fixtures",)

OPTIONS = SMALL.options()


def draw(folder, *names):
    """Images like no other at these paths."""
    for seed, name in enumerate(names):
        images.draw_unique(folder / name, seed)
    return folder


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def take(tool, source, tmp_path):
    """take(options...): builds SOURCE; gives the samples by key and the summary."""

    def build(*options):
        out = tmp_path / "out"
        summary = tool.build(source, out, *OPTIONS, "--json", *options).json()
        samples = Dataset(out).samples()
        assert len(samples) == summary["samples"]
        return samples, summary

    return build


@pytest.fixture
def refuse(tool, source, tmp_path):
    """refuse(options..., expect=2): what the tool says when it refuses SOURCE."""
    return lambda *options, expect=2: tool.refuse(source, tmp_path / "out", *OPTIONS, *options, expect=expect)


# --- what is an image -------------------------------------------------------------------------------------------------


def test_images_are_found_at_any_depth(source, take):
    draw(source, "a/1.png", "a/b/2.png", "a/b/c/d/e/3.jpg", "z/4.png")
    samples, _ = take()
    assert labels_of(samples) == {"a/1": 0, "a/b/2": 0, "a/b/c/d/e/3": 0, "z/4": 1}


def test_extensions_count_in_any_case(source, take):
    draw(source, "a/1.png", "a/2.jpg")
    names = ["3.PNG", "4.Png", "5.JPG", "6.jPg", "7.jpeg", "8.JPEG", "9.Jpe"]
    for name in names:
        shutil.copyfile(source / "a" / ("1.png" if "p" in name.lower()[2:3] else "2.jpg"), source / "a" / name)
    samples, _ = take()
    assert samples.keys() == {f"a/{number}" for number in range(1, 10)}


def test_content_decides_the_decoder(source, take):
    draw(source, "a/png.png", "a/jpeg.jpg")
    wrong = {"a/claims_jpeg": source / "a" / "claims_jpeg.jpg", "a/claims_png": source / "a" / "claims_png.png"}
    shutil.move(source / "a" / "png.png", wrong["a/claims_jpeg"])
    shutil.move(source / "a" / "jpeg.jpg", wrong["a/claims_png"])
    samples, summary = take()
    assert summary["skipped"] == 0
    assert_equal_arrays(tensors(wrong, SMALL), arrays_of(samples))


def test_files_without_the_extension_of_an_image_are_ignored_and_counted(tool, source, take, tmp_path):
    draw(source, "a/1.png")
    for name in ("notes.txt", "a/Thumbs.db", "a/x.TXT", "a/README", "a/2.png.bak", "a/jpg", "top.csv"):
        (source / name).write_bytes(b"")
    samples, summary = take()
    assert samples.keys() == {"a/1"}
    assert summary["plan"]["left_out"] == {".txt": 2, ".db": 1, "no extension": 2, ".bak": 1, ".csv": 1}
    assert "7 files" in tool.run("build", source, tmp_path / "plan", "--dry-run").out


def test_a_file_without_bytes_is_skipped_with_a_reason(source, take, tmp_path):
    draw(source, "a/1.png")
    (source / "a" / "empty.jpg").write_bytes(b"")
    samples, summary = take("--max-bad", "50%")
    assert samples.keys() == {"a/1"} and summary["skipped"] == 1
    report = (tmp_path / "out" / "skipped.tsv").read_text()
    assert "a/empty.jpg\tdecode\tneither JPEG nor PNG: it is an empty file" in report


@pytest.mark.parametrize("kind, data", [("WebP", b"RIFF\0\0\0\0WEBPVP8 "), ("GIF", b"GIF89a"), ("HTML", b"<html>")])
def test_another_kind_of_file_is_called_by_its_name(source, take, tmp_path, kind, data):
    draw(source, "a/1.png")
    (source / "a" / "other.jpg").write_bytes(data)
    take("--max-bad", "50%")
    assert kind in (tmp_path / "out" / "skipped.tsv").read_text()


def test_a_folder_named_like_an_image_is_walked(source, take):
    draw(source, "a/x.jpg/1.png", "b.png/2.png")
    samples, _ = take()
    assert labels_of(samples) == {"a/x.jpg/1": 0, "b.png/2": 1}


def test_files_that_are_not_regular_are_ignored_and_never_opened(source, take):
    draw(source, "a/1.png")
    os.mkfifo(source / "a" / "fifo.jpg")  # opening it would block
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(source / "a", os.O_RDONLY)  # the path of a socket must be short
        listener.bind(f"/proc/self/fd/{folder}/socket.png")
        os.close(folder)
        samples, summary = take()
    assert samples.keys() == {"a/1"}
    assert summary["plan"]["left_out"] == {"not a regular file": 2}


# --- links ------------------------------------------------------------------------------------------------------------


def test_links_to_files_and_folders_are_followed(source, take, tmp_path):
    draw(tmp_path / "elsewhere", "one.png", "folder/two.png")
    draw(source, "a/1.png")
    (source / "a" / "link.png").symlink_to(tmp_path / "elsewhere" / "one.png")
    (source / "b").symlink_to(tmp_path / "elsewhere" / "folder")
    samples, _ = take()
    assert labels_of(samples) == {"a/1": 0, "a/link": 0, "b/two": 1}


def test_source_itself_may_be_a_link(tool, source, tmp_path):
    draw(source, "a/1.png")
    (tmp_path / "link").symlink_to(source)
    tool.build(tmp_path / "link", tmp_path / "out", *OPTIONS)
    assert Dataset(tmp_path / "out").samples().keys() == {"a/1"}


def test_a_loop_of_links_ends(source, take):
    draw(source, "a/1.png", "b/2.png")
    (source / "a" / "up").symlink_to("..")
    (source / "a" / "self").symlink_to(".")
    (source / "b" / "absolute").symlink_to(source)
    samples, summary = take()
    # Each loop is left where it closes; what a link shows on the way is seen under the link's name too.
    assert {"a/1", "b/2"} <= samples.keys()
    assert all(key.count("up") <= 1 and key.count("self") <= 1 for key in samples)
    assert summary["plan"]["left_out"]["link to a folder above it"] >= 3


@pytest.mark.parametrize("name", ["itself", "itself.txt"])
def test_a_link_to_itself_without_the_name_of_an_image_is_ignored(source, take, name):
    draw(source, "a/1.png")
    (source / "a" / name).symlink_to(name)
    samples, summary = take()
    assert samples.keys() == {"a/1"}
    assert sum(summary["plan"]["left_out"].values()) == 1


def test_an_image_that_changes_while_it_is_read_ends_the_build(tool, interference, source, tmp_path):
    draw(source, "a/1.png", "a/2.png")
    image = source / "a" / "1.png"
    command = ("build", source, tmp_path / "out", *OPTIONS, "--jobs", "1")
    with interference.hold(tool, *command, calls="pread", path="/a/1.png") as (process, gate):
        with image.open("r+b") as file:  # other bytes, as many as before
            file.write(image.read_bytes()[::-1])
        gate.open()
        result = finish(process)
    assert result.code == 3 and "the source has changed" in result.err


@pytest.mark.parametrize("target", ["nowhere.png", "dangling.jpg"], ids=["missing", "itself"])
def test_the_broken_link_of_an_image_is_named(source, refuse, target):
    draw(source, "a/1.png")
    (source / "a" / "dangling.jpg").symlink_to(target)
    assert str(source / "a" / "dangling.jpg") in refuse(expect=3)


def test_a_broken_link_without_the_name_of_an_image_is_ignored(source, take):
    draw(source, "a/1.png")
    (source / "a" / "notes.txt").symlink_to("nowhere")
    (source / "a" / "README").symlink_to("1.png")
    _, summary = take()
    assert summary["plan"]["left_out"] == {"dangling link": 1, "no extension": 1}


# --- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", ["class/1.png", "class"])
def test_files_that_may_not_be_read_are_named(tool, public_folder, locked):
    draw(public_folder / "source", "class/0.png", "class/1.png")
    out = public_folder / "out"
    out.mkdir()
    out.chmod(0o777)
    (public_folder / "source" / locked).chmod(0)
    text = tool.refuse(public_folder / "source", out, *OPTIONS, expect=3, before=ordinary_user())
    (public_folder / "source" / locked).chmod(0o755)
    assert f"'{public_folder / 'source' / locked}': Permission denied" in text
    assert not (out / "skipped.tsv").exists()


@pytest.mark.parametrize("below", ["", "new", "new/er"])
def test_an_out_that_may_not_be_written_is_named(tool, public_folder, below):
    draw(public_folder / "source", "class/0.png")
    out = public_folder / "locked"
    out.mkdir(mode=0o555)
    text = tool.refuse(public_folder / "source", out / below, *OPTIONS, expect=3, before=ordinary_user())
    assert str(out / below) in text and "Permission denied" in text


# --- SOURCE and OUT ---------------------------------------------------------------------------------------------------


def test_a_missing_source_is_named(source, refuse):
    source.rmdir()
    text = refuse(expect=3)
    assert f"'{source}': No such file or directory" in text


@pytest.mark.parametrize(
    "data, code", [(b"", 4), (b"no shard", 5), (b"\xff\xd8\xff", 2)], ids=["empty", "text", "JPEG"]
)
def test_a_source_that_is_a_file_but_no_shard_is_named(source, refuse, data, code):
    source.rmdir()
    source.write_bytes(data)
    assert f"'{source}'" in refuse(expect=code)


@pytest.mark.parametrize("names", [[], ["a/notes.txt", "b/README"]], ids=["empty", "no images"])
@pytest.mark.parametrize("labels", ["folder", "none"])
def test_a_source_without_images_is_refused(source, refuse, names, labels):
    for name in names:
        (source / name).parent.mkdir()
        (source / name).touch()
    assert f"no images in '{source}'" in refuse("--labels", labels)


@pytest.mark.parametrize("names", [[], ["stray.png"]], ids=["no images", "no class"])
def test_a_refused_source_leaves_no_out(source, refuse, tmp_path, names):
    draw(source, *names)
    refuse()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("below", [".", "out", "class/out", "../link/out"])
def test_an_out_inside_the_source_is_refused(tool, source, tmp_path, below):
    draw(source, "class/1.png")
    (tmp_path / "link").symlink_to(source)
    before = files(source)
    text = tool.refuse(source, source / below, *OPTIONS)
    assert "inside SOURCE" in text
    assert files(source) == before


def test_an_out_next_to_the_source_with_a_longer_name_is_fine(tool, source):
    draw(source, "class/1.png")
    tool.build(source, f"{source}-shards", *OPTIONS)


def test_an_out_that_is_made_with_all_folders_above(tool, source, tmp_path):
    draw(source, "class/1.png")
    tool.build(source, tmp_path / "x" / "y" / "out", *OPTIONS)
    assert (tmp_path / "x" / "y" / "out" / "dataset.json").is_file()


@pytest.mark.parametrize("below", ["", "/out"])
def test_an_out_that_is_a_file_is_named(tool, source, tmp_path, below):
    draw(source, "class/1.png")
    (tmp_path / "file").write_bytes(b"precious")
    text = tool.refuse(source, f"{tmp_path}/file{below}", *OPTIONS, expect=3)
    assert f"{tmp_path}/file" in text and "filesystem error" not in text
    assert (tmp_path / "file").read_bytes() == b"precious"


# --- labels by folder -------------------------------------------------------------------------------------------------


def test_classes_are_numbered_as_image_folder_numbers_them(source, take, tmp_path):
    from torchvision.datasets import ImageFolder

    names = ["b", "a", "B", "10", "9", "é", "z z", "a.b", "_", "\u4e2d", "\U0001f600", "~"]
    draw(source, *(f"{name}/deep/er/1.png" for name in names))
    samples, _ = take()
    reference = ImageFolder(source)
    assert Dataset(tmp_path / "out").classes == reference.classes
    assert labels_of(samples) == {f"{name}/deep/er/1": reference.class_to_idx[name] for name in names}


def test_the_message_for_an_image_without_a_class_says_what_to_do(source, refuse):
    draw(source, "class/1.png", "stray.png")
    text = refuse()
    assert str(source / "stray.png") in text and "--labels to none" in text


def test_an_empty_class_folder_keeps_its_number_and_is_mentioned(tool, source, take, tmp_path):
    draw(source, "a/1.png", "c/2.png")
    (source / "b").mkdir()
    samples, summary = take()
    assert labels_of(samples) == {"a/1": 0, "c/2": 2}
    assert summary["plan"]["empty_classes"] == ["b"]
    for words in (("--dry-run",), ()):
        said = tool.run("build", source, tmp_path / "said", *OPTIONS, *words).out
        assert "warning   1 class without images, 'b' first" in said


def test_no_labels_are_minus_one(source, take, tmp_path):
    draw(source, "1.png", "a/2.png")
    samples, _ = take("--labels", "none")
    assert labels_of(samples) == {"1": -1, "a/2": -1}
    assert Dataset(tmp_path / "out").classes == []


# --- labels by table --------------------------------------------------------------------------------------------------


@pytest.fixture
def table(source, tmp_path):
    """table(text): the options for a CSV file, next to a SOURCE of a few images."""
    draw(source, "1.png", "a/2.png", "a/3.png", 'x,"y".png', "unused.png")

    def write(text):
        (tmp_path / "labels.csv").write_bytes(text.encode())
        return "--labels", tmp_path / "labels.csv"

    return write


TABLES = {
    "names": ("1.png,dog\na/2.png,cat\na/3.png,dog\n", {"1": 1, "a/2": 0, "a/3": 1}, ["cat", "dog"]),
    "integers": ("1.png,7\na/2.png,0\na/3.png,-1\n", {"1": 7, "a/2": 0, "a/3": -1}, []),
    "quotes": ('"x,""y"".png","a ""b"""\n"1.png",c\n', {'x,"y"': 0, "1": 1}, ['a "b"', "c"]),
    "windows": ("1.png,dog\r\na/2.png,cat\r\n", {"1": 1, "a/2": 0}, ["cat", "dog"]),
    "header": ("path,label\n1.png,3\n", {"1": 3}, []),
    "byte order mark": ("\ufeffpath,label\n1.png,3\n", {"1": 3}, []),
    "no last line end": ("1.png,3\na/2.png,4", {"1": 3, "a/2": 4}, []),
    "empty lines": ("\n1.png,3\n\n\na/2.png,4\n\n", {"1": 3, "a/2": 4}, []),
    "dots": ("./1.png,3\na/../a/2.png,4\n", {"1": 3, "a/2": 4}, []),
    "spaces": (" path\t, label \n1.png, 10\na/2.png ,\t2 \r\n", {"1": 10, "a/2": 2}, []),
    "spaces around quotes": ('1.png, "a b" \n "a/2.png" , c\n', {"1": 0, "a/2": 1}, ["a b", "c"]),
}


@pytest.mark.parametrize("text, labels, classes", TABLES.values(), ids=TABLES)
def test_a_table_names_the_images_and_their_labels(table, take, tmp_path, text, labels, classes):
    samples, _ = take(*table(text))
    assert labels_of(samples) == labels
    assert Dataset(tmp_path / "out").classes == classes


WRONG_TABLES = {
    "missing file": ("1.png,a\nnope.png,a\n", "line 2", "nope.png"),
    "duplicate": ("1.png,a\na/2.png,b\n1.png,a\n", "line 3", "line 1"),
    "duplicate by another way": ("1.png,a\na/../1.png,b\n", "line 2", "line 1"),
    "folder": ("1.png,a\na,b\n", "line 2", "not a regular file"),
    "escape": ("../source/1.png,a\n", "line 1", "not below SOURCE"),
    "escape within": ("a/../../source/1.png,a\n", "line 1", "not below SOURCE"),
    "absolute": ("/etc/passwd,a\n", "line 1", "not below SOURCE"),
    "names and integers": ("1.png,3\na/2.png,cat\n", "line 2", "line 1"),
    "one field": ("1.png,a\n\na/2.png\n", "line 3", "1 field"),
    "three fields": ("1.png,a,b\n", "line 1", "3 fields"),
    "no path": (",a\n", "line 1", "is empty"),
    "no label": ("1.png,\n", "line 1", "is empty"),
    "open quote": ('1.png,a\n"a/2.png,b\n', "line 2", "quote"),
    "text after a quote": ('"1.png"x,a\n', "line 1", "quote"),
    "decimals": ("1.png,0.5\na/2.png,1.5\n", "line 1", "'0.5' is a number, but not a plain integer"),
    "powers of ten": ("1.png,1e-05\na/2.png,-1e5\n", "line 1", "'1e-05' is a number, but not a plain integer"),
    "not a number": ("1.png,cat\na/2.png,nan\n", "line 2", "'nan' is a number, but not a plain integer"),
    "a plus": ("1.png,+3\na/2.png,4\n", "line 1", "'+3' is a number, but not a plain integer"),
    "only spaces": ("1.png,  \n", "line 1", "is empty"),
    "more columns": ("image,label,fold\n1.png,3,0\n", "line 1", "--path-column and --label-column must be the names"),
    "decimals among names": ("1.png,cat\na/2.png,1.5\n", "line 2", "--classes"),
    "decimals as regression targets": ("path,label\n1.png,10.5\na/2.png,9.5\n", "line 2", "path,label,age:float"),
    "lists of names": ("1.png,ant\na/2.png,ant;red\n", "line 2", "the label 'ant;red' looks like a list"),
    "lists of numbers": ('1.png,"1,5"\na/2.png,3\n', "line 1", "path,label,tags:multi"),
    "lists in a column": ("path,label,age:float\n1.png,[3],0.5\n", "line 2", "'[3]' looks like a list"),
    "another header": ("image,breed\n1.png,cat\n", "line 1", "--path-column"),
}


@pytest.mark.parametrize("text, line, telling", WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_a_wrong_row_is_named_with_its_line(table, refuse, tmp_path, text, line, telling):
    said = refuse(*table(text))
    assert str(tmp_path / "labels.csv") in said and line in said and telling in said


def test_decimals_may_be_names_of_classes_that_are_fixed(table, take, tmp_path):
    (tmp_path / "names").write_text("1.5\n0.5\n")
    samples, _ = take(*table("1.png,0.5\na/2.png,1.5\n"), "--classes", tmp_path / "names")
    assert labels_of(samples) == {"1": 1, "a/2": 0}


def test_lists_may_be_names_of_classes_that_are_fixed(table, take, tmp_path):
    (tmp_path / "names").write_text("ant;red\nant;big\n")
    samples, _ = take(*table("1.png,ant;big\na/2.png,ant;red\n"), "--classes", tmp_path / "names")
    assert labels_of(samples) == {"1": 1, "a/2": 0}


def test_an_absolute_path_below_the_source_is_taken(source, table, take):
    samples, _ = take(*table(f"{source}/1.png,3\na/2.png,4\n"))
    assert labels_of(samples) == {"1": 3, "a/2": 4}


KAGGLE = "id,image,breed,width\n7,1.png,dog,640\n8,a/2.png,cat,480\n"


def test_columns_of_a_table_are_found_by_name(table, take, tmp_path):
    samples, _ = take(*table(KAGGLE), "--path-column", "image", "--label-column", "breed")
    assert labels_of(samples) == {"1": 1, "a/2": 0}
    assert Dataset(tmp_path / "out").classes == ["cat", "dog"]


def test_a_column_that_is_missing_is_named_with_those_that_exist(table, refuse):
    text = refuse(*table(KAGGLE), "--path-column", "image", "--label-column", "race")
    assert "line 1: there is no column 'race'" in text and "id, image, breed, width" in text


def test_columns_need_a_table(source, refuse):
    draw(source, "a/1.png")
    assert "need a CSV file in --labels" in refuse("--label-column", "race")


def test_labels_come_from_names_by_a_regular_expression(source, take, tmp_path):
    draw(source, "dog_1.png", "cat_2.png", "more/cat_3.png")
    samples, _ = take("--label-regex", "([a-z]+)_[0-9]+")
    assert labels_of(samples) == {"dog_1": 1, "cat_2": 0, "more/cat_3": 0}
    assert Dataset(tmp_path / "out").classes == ["cat", "dog"]


@pytest.mark.parametrize(
    "regex, options, telling",
    [
        ("(", (), "not a regular expression"),
        ("dog", (), "no group in parentheses"),
        ("(dog)", (), "finds no label in"),
        ("(.)", ("--labels", "none"), "--label-regex cannot be combined with --labels"),
    ],
)
def test_a_regular_expression_without_labels_is_refused(source, refuse, regex, options, telling):
    draw(source, "dog_1.png", "cat_2.png")
    assert telling in refuse("--label-regex", regex, *options)


def test_another_regular_expression_is_another_job(source, take, refuse):
    draw(source, "dog_1.png", "cat_2.png")
    take("--label-regex", "([a-z]+)_")
    assert "already holds a finished split" in refuse("--label-regex", "_([0-9])")


def test_a_file_whose_name_begins_with_dots_is_below_the_source(source, table, take):
    draw(source, "..odd/1.png")
    samples, _ = take(*table("..odd/1.png,5\n"))
    assert labels_of(samples) == {"..odd/1": 5}


@pytest.mark.parametrize("text", ["", "path,label\n", "\n\n"], ids=repr)
def test_a_table_without_rows_is_refused(table, refuse, text):
    refuse(*table(text))


def test_a_missing_table_is_named(source, refuse, tmp_path):
    draw(source, "a/1.png")
    assert str(tmp_path / "nope.csv") in refuse("--labels", tmp_path / "nope.csv", expect=3)


# --- fixed classes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["c\nb\nunused\na\n", "c\r\nb\r\nunused\r\na\r\n", "c\n\nb\nunused\na"], ids=repr)
def test_a_file_fixes_the_numbers_of_the_classes(source, take, tmp_path, text):
    draw(source, "a/1.png", "b/2.png", "c/3.png")
    (tmp_path / "classes.txt").write_bytes(text.encode())
    samples, _ = take("--classes", tmp_path / "classes.txt")
    assert labels_of(samples) == {"a/1": 3, "b/2": 1, "c/3": 0}
    assert Dataset(tmp_path / "out").classes == ["c", "b", "unused", "a"]


def test_a_manifest_fixes_the_numbers_of_the_classes(tool, source, take, tmp_path):
    draw(tmp_path / "first", "x/1.png", "y/2.png", "z/3.png")
    tool.build(tmp_path / "first", tmp_path / "dataset", *OPTIONS)
    draw(source, "z/1.png", "y/2.png")
    samples, _ = take("--classes", tmp_path / "dataset" / "dataset.json")
    assert labels_of(samples) == {"y/2": 1, "z/1": 2}
    assert Dataset(tmp_path / "out").classes == ["x", "y", "z"]


def test_classes_number_the_names_of_a_table(table, take, tmp_path):
    (tmp_path / "classes.txt").write_text("dog\ncat\n")
    samples, _ = take(*table("1.png,cat\na/2.png,dog\n"), "--classes", tmp_path / "classes.txt")
    assert labels_of(samples) == {"1": 1, "a/2": 0}


def test_classes_make_names_of_integers_among_names(table, take, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\n3\n")
    samples, _ = take(*table("1.png,3\na/2.png,cat\n"), "--classes", tmp_path / "classes.txt")
    assert labels_of(samples) == {"1": 1, "a/2": 0}


def test_an_unknown_class_is_refused(source, refuse, tmp_path):
    draw(source, "a/1.png", "b/2.png")
    (tmp_path / "classes.txt").write_text("a\n")
    text = refuse("--classes", tmp_path / "classes.txt")
    assert "the class 'b' is not known" in text and str(source / "b") in text


@pytest.mark.parametrize("label, telling", [("horse", "the class 'horse' is not known"), ("2", "2"), ("-1", "-1")])
def test_an_unknown_class_in_a_table_is_named_with_its_line(table, refuse, tmp_path, label, telling):
    (tmp_path / "classes.txt").write_text("dog\ncat\n")
    text = refuse(*table(f"path,label\n1.png,{label}\n"), "--classes", tmp_path / "classes.txt")
    assert "line 2" in text and telling in text


@pytest.mark.parametrize("text", ["", "\n\n", "a\nb\na\n"], ids=repr)
def test_a_wrong_list_of_classes_is_refused(source, refuse, tmp_path, text):
    draw(source, "a/1.png")
    (tmp_path / "classes.txt").write_text(text)
    assert str(tmp_path / "classes.txt") in refuse("--classes", tmp_path / "classes.txt")


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"classes": ["a"]})], ids=repr)
def test_a_file_that_is_not_a_manifest_fixes_no_classes(source, refuse, tmp_path, text):
    draw(source, "a/1.png")
    (tmp_path / "dataset.json").write_text(text)
    assert str(tmp_path / "dataset.json") in refuse("--classes", tmp_path / "dataset.json", expect=4)
