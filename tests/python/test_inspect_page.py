# SPDX-License-Identifier: Apache-2.0
"""The contact sheet and the page of `inspect`, seen by Pillow and in a real browser."""

import base64
import html.parser
import io
import json
import shutil
import subprocess

import h5py
import numpy as np
import pytest
from PIL import Image

import images
from conftest import TIMEOUT_SECONDS
from shards import FORMATS

TILE, GAP, HEAD = 192, 16, 51  # of the sheet


class Page(html.parser.HTMLParser):
    """Collects the text that a page shows and the resources that it would load."""

    def __init__(self, text):
        super().__init__()
        self.text, self.addresses, self.pictures, self.open = "", [], [], []
        self.feed(text)
        assert self.open == [], "elements are not closed"

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "srcset", "data", "action"):
                self.addresses.append(value)
        if tag == "img":
            data = dict(attributes)["src"].removeprefix("data:image/png;base64,")
            self.pictures.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data, validate=True)))))

    def handle_startendtag(self, tag, attributes):
        assert tag == "path"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data


@pytest.mark.parametrize(
    "format, options",
    [
        (format, options)
        for format in FORMATS
        for options in (
            (),
            ("--dtype", "float16", "--normalize", "imagenet"),
            ("--dtype", "float32", "--layout", "hwc"),
        )
    ],
)
def test_tiles_are_the_images(animals, build, run, tmp_path, format, options):
    """Tiles that need no scaling have the pixels of the images, normalised or not."""
    build(animals[0], tmp_path / "out", "--format", format, "--size", str(TILE), *options)
    plain = build(animals[0], tmp_path / "plain", "--size", str(TILE), "--layout", "hwc").arrays()
    run(
        "inspect",
        tmp_path / "out",
        "--sheet",
        tmp_path / "sheet.png",
        "--html",
        tmp_path / "page.html",
        "--samples",
        "1000",
    )
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    expected = sorted(array.tobytes() for array in plain.values())
    if "float16" not in options:
        assert sorted(picture.tobytes() for picture in page.pictures) == expected
    else:  # eleven bits hold eight after normalisation, to a rounding
        found = {
            key: min(np.abs(picture.astype(int) - array).max() for picture in page.pictures)
            for key, array in plain.items()
        }
        assert max(found.values()) <= 1
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    first = sheet[GAP + HEAD : GAP + HEAD + TILE, GAP : GAP + TILE]
    assert any(np.array_equal(first, picture) for picture in page.pictures)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_channels_and_ranges_of_third_party_files(run, tmp_path, channels):
    values = np.linspace(-3, 5, 6 * 16 * 12 * channels, dtype=np.float32).reshape(6, channels, 16, 12)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = values
        file["images"].attrs["layout"] = np.bytes_("chw")
    run("inspect", tmp_path / "a.h5", "--html", tmp_path / "a.html")
    page = Page((tmp_path / "a.html").read_text())
    assert "values from -3 to 5 stretched" in page.text
    drawn = [0, 0, 0] if channels < 3 else [0, 1, 2]
    expected = np.rint((values[:, drawn] + 3) / 8 * 255).transpose(0, 2, 3, 1)
    assert len(page.pictures) == 6
    for picture, array in zip(page.pictures, expected, strict=True):
        assert picture.shape == (192, 144, 3)  # twelve times as large, by repeating pixels
        assert np.abs(picture[::12, ::12].astype(int) - array).max() <= 1


def test_tensors_that_cannot_be_drawn(run, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = np.zeros((3, 4, 5), np.int32)
    said = run("inspect", tmp_path / "a.h5", "--sheet", tmp_path / "a.png").stderr.decode()
    assert (tmp_path / "a.png").exists() and "wrote" in said
    for name in ("a.h5", "note.txt"):
        (tmp_path / "note.txt").write_text("{}")
        before = (tmp_path / name).read_bytes()
        assert (
            b"refusing to overwrite" in run("inspect", tmp_path / "a.h5", "--sheet", tmp_path / name, expect=2).stderr
        )
        assert (tmp_path / name).read_bytes() == before
    for _ in range(2):  # an earlier one may be replaced
        run("inspect", tmp_path / "a.h5", "--sheet", tmp_path / "a.png", "--html", tmp_path / "a.html")
    run("inspect", tmp_path / "a.h5", "--html", tmp_path / "no" / "folder.html", expect=3)
    assert b"--samples" in run("inspect", tmp_path / "a.h5", "--samples", "0", expect=2).stderr


def screenshot(page, out, *options):
    """Opens a page in a browser without a network and returns the console output."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={out.with_suffix('.profile')}",
        "--window-size=1200,2600",
        "--enable-logging=stderr",
        f"--screenshot={out}",
        *options,
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, text=True, errors="replace")
    assert done.returncode == 0 and out.exists(), done.stderr
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def tell_apart(left, right):
    return np.abs(left.astype(int) - right.astype(int)).mean()


def test_the_page_in_a_browser(animals, build, run, tmp_path):
    """Leaves the screenshots in the output of the tests: build/pytest/test_the_page_in_a_browser0."""
    build(animals[0], tmp_path / "out", "--size", "64")
    page = tmp_path / "page.html"
    run("inspect", tmp_path / "out", "--html", page)
    seen = Page(page.read_text(encoding="utf-8"))
    assert all(address.startswith("data:image/png;base64,") for address in seen.addresses) and seen.addresses
    for words in ("precache dataset of tar shards", "zero-copy", *images.ANIMALS):
        assert words in seen.text
    pixels = {}
    for scheme, setting in (("dark", 0), ("light", 1)):
        out = tmp_path / f"{scheme}.png"
        assert screenshot(page, out, f"--blink-settings=preferredColorScheme={setting}") == []
        pixels[scheme] = np.asarray(Image.open(out).convert("RGB"))
    assert pixels["light"][5, 5].min() > 200 and pixels["dark"][5, 5].max() < 60
    # The tiles are drawn: they have many colours, the same ones in both.
    assert len(np.unique(pixels["light"].reshape(-1, 3), axis=0)) > 300
    assert tell_apart(pixels["light"], pixels["dark"]) > 50


def test_a_browser_reports_forbidden_requests(run, tmp_path):
    """Proves that the silence above means something: the browser reports a request that the page forbids."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = np.zeros((1, 4, 4), np.uint8)
    page = tmp_path / "a.html"
    run("inspect", tmp_path / "a.h5", "--html", page)
    page.write_text(page.read_text().replace("<footer>", '<img src="http://images.invalid/a.png"><footer>'))
    assert any("Content Security Policy" in line for line in screenshot(page, tmp_path / "a.png"))


def test_a_page_of_many_classes_is_small(run, tmp_path):
    count = 1000
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file["images"] = np.zeros((3 * count, 4, 4, 1), np.uint8)
        file["labels"] = np.minimum(np.arange(3 * count) // 2, count - 1)
        file["classes"] = np.array([f"class {i}" for i in range(count)], dtype="S16")
    run("inspect", tmp_path / "many.h5", "--html", tmp_path / "many.html", "--samples", "4")
    text = (tmp_path / "many.html").read_text()
    page = Page(text)
    assert "most: class 999 1,002" in page.text and "fewest: class 998 2" in page.text and "1,000 rows" in page.text
    assert len(text) < 300_000 and len(page.pictures) == 4
    assert (
        json.loads(run("inspect", tmp_path / "many.h5", "--json").stdout)["paths"][0]["classes"]["counts"][999][
            "samples"
        ]
        == 1002
    )
