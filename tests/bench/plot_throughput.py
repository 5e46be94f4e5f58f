#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures that `peers.py --json` or `augment_bench.py --json` recorded as a bar chart.

    tests/bench/plot_throughput.py docs/benchmarks/RECORD.json OUT.svg [--modes MODE...]

By default, the first two modes of the record are drawn. The same record always gives the same bytes.
"""

import argparse
import datetime
import json
import textwrap
from html import escape
from pathlib import Path

# Which loaders the chart shows, and how it names them.
LABELS = {
    "precache.Loader": "precache",
    "precache.Loader, 2 threads": "precache",
    "precache.torch.Loader": "precache (torch)",
    "precache.torch.Loader, 2 threads": "precache (torch)",
    "precache.tensorflow.dataset": "precache (TensorFlow)",
    "FFCV": "FFCV",
    "DALI, webdataset tars (CPU)": "DALI (CPU)",
    "DALI (CPU)": "DALI (CPU)",
    "DataLoader, numpy memmap": "DataLoader, memmap",
    "webdataset, .npy tars": "webdataset",
    "tf.data, TFRecord": "tf.data",
    "DataLoader, ImageFolder (JPEG)": "DataLoader, ImageFolder*",
    "torchvision v2 on tensors, DataLoader": "DataLoader, tensors",
    "torchvision v2, tensors, DataLoader": "DataLoader, tensors",
    "torchvision on PIL images, DataLoader": "DataLoader, PIL images",
    "torchvision, PIL, DataLoader": "DataLoader, PIL images",
}
TITLES = {
    "sequential": "In stored order, uint8",
    "shuffled": "Shuffled, uint8",
    "float16": "Shuffled, normalised to float16",
    "float32": "Shuffled, normalised to float32",
    "from 256x256": "Stored at 256×256",
    "from 320x320": "Stored at 320×320",
    "from 512x512": "Stored at 512×512",
}
PRECACHE, OTHER, INK, FAINT, PAPER, EDGE = "#0f766e", "#9aa5b1", "#1f2933", "#52606d", "#ffffff", "#d5dbe1"
FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
WIDTH, MARGIN, NAMES, ROW, BAR = 900, 20, 172, 26, 19  # pixels; NAMES is the column of names
NOTE_LETTERS, NOTE_LINE = 128, 17


def text(x, y, words, size, color=INK, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}"{more}>{escape(words)}</text>'


def shown(record, mode):
    """The rows of a mode that the chart shows, the fastest first."""
    rows = [row for row in record["modes"][mode] if row["loader"] in LABELS]
    return sorted(rows, key=lambda row: -row["images_per_second"])


def draw_mode(rows, title, left, top, width):
    """Draws one bar per loader, the fastest at the top."""
    longest = width - NAMES - 72  # leaves room for the figure after the bar
    fastest = rows[0]["images_per_second"]
    parts = [text(left, top, title, 14.5)]
    for number, row in enumerate(rows):
        y = top + 14 + ROW * number
        ours = row["loader"].startswith("precache")
        weight = {"font_weight": "bold"} if ours else {}
        length = round(longest * row["images_per_second"] / fastest, 1)
        baseline = y + 14
        parts.append(text(left + NAMES - 8, baseline, LABELS[row["loader"]], 13, text_anchor="end", **weight))
        fill = PRECACHE if ours else OTHER
        parts.append(f'<rect x="{left + NAMES}" y="{y}" width="{length}" height="{BAR}" fill="{fill}"/>')
        rate = f"{row['images_per_second']:,}"
        parts.append(text(round(left + NAMES + length + 6, 1), baseline, rate, 13, **weight))
    bottom = top + 14 + ROW * len(rows)
    parts.append(f'<path d="M{left + NAMES} {top + 10}V{bottom}" stroke="{EDGE}"/>')
    return parts


def conditions(record, modes):
    """Says how quiet the machine was during each mode; modes of one run share a sentence."""
    runs = [record | record.get("runs", {}).get(mode, {}) for mode in modes]
    if "conditions" in runs[0]:
        return [run["conditions"] for run in runs]
    others = max(share or 0 for mode in modes for row in shown(record, mode) for share in row["others"])
    rounds = f"Medians of {record['rounds']} rounds, the loaders in turns"
    return [f"{rounds}; other programs used at most {others:.0%} of the processor time."] * len(modes)


def described(record):
    height, width = record["shape"][1:]
    images = f"{record['images']:,} images of {height}×{width} in the page cache"
    return f"{images}, batches of {record['batch_size']}, every batch read by the consumer."


def notes(record, modes):
    """Says what was measured, on which machine and when."""
    machine = record["machine"]
    date = datetime.date.fromisoformat(record["date"])
    data = record.get("data") or described(record)
    lines = [data, f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {date.day} {date:%B %Y}."]
    said = conditions(record, modes)
    if len(set(said)) == 1:
        lines.append(said[0])
    else:
        places = ["Left", "Right"] if len(modes) == 2 else [TITLES[mode] for mode in modes]
        lines += [f"{place}: {words}" for place, words in zip(places, said, strict=True)]
        lines.append("These are different runs on a shared machine: compare bars within one chart only.")
    if any("ImageFolder" in row["loader"] for mode in modes for row in shown(record, mode)):
        lines.append("* ImageFolder decodes JPEG photos in every epoch; the other loaders read stored tensors.")
    return [part for line in lines for part in textwrap.wrap(line, NOTE_LETTERS, break_on_hyphens=False)]


def draw(record, modes):
    charts = [(shown(record, mode), TITLES[mode]) for mode in modes]
    top = 68
    below = top + 14 + ROW * max(len(rows) for rows, _ in charts) + 26
    lines = notes(record, modes)
    height = below + NOTE_LINE * len(lines) + 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="{FONT}">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" fill="{PAPER}" stroke="{EDGE}"/>',
        text(MARGIN, 33, "Images per second into the training loop", 18, font_weight="bold"),
    ]
    width = (WIDTH - MARGIN) // len(charts)
    for number, (rows, title) in enumerate(charts):
        parts += draw_mode(rows, title, MARGIN + width * number, top, width)
    parts += [text(MARGIN, below + NOTE_LINE * i, line, 12, FAINT) for i, line in enumerate(lines)]
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="written by --json of a benchmark")
    parser.add_argument("out", type=Path, help="an .svg file")
    parser.add_argument("--modes", nargs="+", choices=TITLES, help="default: the first two of the record")
    args = parser.parse_args()
    record = json.loads(args.record.read_text())
    modes = args.modes or list(record["modes"])[:2]
    if absent := [mode for mode in modes if mode not in record["modes"]]:
        parser.error(f"{args.record} has no figures of {', '.join(absent)}; it has {', '.join(record['modes'])}")
    args.out.write_text(draw(record, modes))


if __name__ == "__main__":
    main()
