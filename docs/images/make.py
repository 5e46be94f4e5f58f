#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the screenshots of the documents: the contact sheet, the page of `inspect`, and a build in a terminal.

    docs/images/make.py PHOTOS [--precache build/release/precache]

PHOTOS has one subfolder of images per class. Needs Pillow, and Chromium for the page. README.md in this folder names the
photos of the stored pictures and their licence.
"""

import argparse
import codecs
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
from fcntl import ioctl
from html import escape
from pathlib import Path
from termios import TIOCSWINSZ

from PIL import Image, ImageChops

HERE = Path(__file__).resolve().parent
COLUMNS, CELL, LINE = 88, 8.4, 20  # of the terminal, its characters and its lines
COLORS = {
    30: "#4c566a",
    31: "#f07178",
    32: "#a3d977",
    33: "#ffcb6b",
    34: "#82aaff",
    35: "#c792ea",
    36: "#7fdbca",
    37: "#e6e9ef",
}
PAPER, INK = "#1e2430", "#d8dee9"


def save_small(image, path):
    """Saves with 256 colours, which halves the size and is hard to see."""
    image.convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(path, optimize=True)
    print(f"{path.name}: {image.width}x{image.height}, {path.stat().st_size / 1e3:.0f} KB")


def screenshot(page, path, width=1280):
    """Draws a page in a window that is too high, and cuts the empty space below."""
    tall = path.with_suffix(".tall.png")
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--screenshot={tall}",
            f"--window-size={width},4000",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    image = Image.open(tall).convert("RGB")
    empty = Image.new("RGB", image.size, image.getpixel((0, image.height - 1)))
    bottom = ImageChops.difference(image, empty).getbbox()[3]
    return image.crop((0, 0, width, min(bottom + 20, image.height)))


def top_of(image, most=0.6, fade=70):
    """Cuts the part below `most` of the width off: a page takes little room, and fades out where it continues."""
    top = image.crop((0, 0, image.width, min(image.height, round(image.width * most))))
    paper = Image.new("RGB", (top.width, fade), top.getpixel((0, top.height - 1)))
    shades = Image.linear_gradient("L").resize((top.width, fade))
    top.paste(paper, (0, top.height - fade), shades)
    return top


def output_on_terminal(command, folder):
    """Runs a command in a terminal and returns its output, escape codes included."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    text = ""
    while True:
        try:
            text += decode(os.read(terminal, 4096))
        except OSError:  # the command has ended
            break
    if os.waitpid(pid, 0)[1] != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{text}")
    return text


def screen_after(text):
    """Returns the lines that are left on the screen, as lists of (character, style)."""
    lines, row, column, style = [[]], 0, 0, ()
    for token in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|[\s\S]", text):
        if token.startswith("\x1b["):
            numbers, final = token[2:-1], token[-1]
            if final == "m":
                codes = [int(code or 0) for code in numbers.split(";")]
                style = () if codes == [0] else (*style, *codes)
            elif final == "K":
                lines[row] = [] if numbers == "2" else lines[row][:column]
            elif final == "A":
                row = max(0, row - int(numbers or 1))
        elif token == "\n":
            row += 1
            lines.extend([] for _ in range(row + 1 - len(lines)))
        elif token == "\r":
            column = 0
        else:
            line = lines[row]
            line.extend((" ", ()) for _ in range(column + 1 - len(line)))
            line[column] = (token, style)
            column += 1
    while lines and not lines[-1]:
        lines.pop()
    return lines


def span(text, style):
    """An SVG element for characters of one style."""
    attributes = 'font-weight="bold" ' if 1 in style else ""
    attributes += 'opacity="0.65" ' if 2 in style else ""
    color = next((COLORS[code % 10 + 30] for code in reversed(style) if code // 10 in (3, 9) and code % 10 < 8), None)
    return f'<tspan {attributes}{f"""fill="{color}" """ if color else ""}>{escape(text)}</tspan>'


def terminal_svg(lines):
    width, height = round(COLUMNS * CELL + 40), LINE * len(lines) + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>',
    ]
    parts += [
        f'<circle cx="{22 + 20 * i}" cy="20" r="6" fill="{color}"/>'
        for i, color in enumerate(("#f07178", "#ffcb6b", "#a3d977"))
    ]
    parts.append(
        f'<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" fill="{INK}">'
    )
    for number, line in enumerate(lines):
        runs = []
        for character, style in line:
            if runs and runs[-1][1] == style:
                runs[-1][0] += character
            else:
                runs.append([character, style])
        if line:  # textLength keeps columns aligned in any font
            spans = "".join(span(text, style) for text, style in runs)
            parts.append(
                f'<text x="20" y="{56 + LINE * number}" xml:space="preserve" textLength="{len(line) * CELL:.1f}">{spans}</text>'
            )
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--precache", type=Path, default=HERE.parents[1] / "build" / "release" / "precache")
    parser.add_argument("--out", type=Path, default=HERE, help="where to save the pictures (default: this folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        shutil.copytree(args.photos.resolve(), work / "photos", copy_function=shutil.copyfile)
        (work / "photos").chmod(0o755)
        tool = str(args.precache.resolve())

        command = ["build", "photos", "shards", "--size", "96"]
        lines = screen_after(output_on_terminal([tool, *command], work))
        prompt = [(c, (32,)) for c in "$ "] + [(c, (1,)) for c in f"precache {' '.join(command)}"]
        (args.out / "terminal-build.svg").write_text(terminal_svg([prompt, *lines]))
        print(f"terminal-build.svg: {len(lines)} lines")

        def inspect(samples, option, name):
            subprocess.run(
                [tool, "inspect", "shards", option, work / name, "--samples", str(samples)],
                cwd=work,
                check=True,
                capture_output=True,
            )
            return work / name

        save_small(Image.open(inspect(18, "--sheet", "sheet.png")), args.out / "contact-sheet.png")
        page = screenshot(inspect(14, "--html", "page.html"), work / "page.png")
        save_small(top_of(page), args.out / "inspect-page.png")


if __name__ == "__main__":
    main()
