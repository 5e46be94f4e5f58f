#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures that `peers.py --json` recorded as a bar chart.

    pip install -r tests/bench/requirements.txt
    tests/bench/plot_throughput.py docs/benchmarks/RECORD.json docs/images/throughput.svg [--modes MODE...]

The same record always gives the same bytes.
"""

import argparse
import datetime
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

# Which loaders the chart shows, and how it names them.
LABELS = {
    "precache.Loader": "precache",
    "precache.torch.Loader": "precache (torch)",
    "precache.tensorflow.dataset": "precache (TensorFlow)",
    "FFCV": "FFCV",
    "DALI, webdataset tars (CPU)": "DALI (CPU)",
    "DataLoader, numpy memmap": "DataLoader, memmap",
    "webdataset, .npy tars": "webdataset",
    "tf.data, TFRecord": "tf.data",
    "DataLoader, ImageFolder (JPEG)": "DataLoader, ImageFolder*",
}
TITLES = {
    "sequential": "In stored order, uint8",
    "shuffled": "Shuffled, uint8",
    "float16": "Shuffled, normalised to float16",
    "float32": "Shuffled, normalised to float32",
}
PRECACHE, OTHER, INK, FAINT, PAPER, EDGE = "#0f766e", "#9aa5b1", "#1f2933", "#52606d", "#ffffff", "#d5dbe1"


def draw_mode(axes, rows, loaders, title):
    """Draws one bar per loader, the first at the top."""
    measured = {row["loader"]: row["images_per_second"] for row in rows}
    rates = [measured.get(loader, 0) for loader in reversed(loaders)]
    ours = [loader.startswith("precache") for loader in reversed(loaders)]
    bars = axes.barh(
        [LABELS[loader] for loader in reversed(loaders)],
        rates,
        height=0.72,
        color=[PRECACHE if mine else OTHER for mine in ours],
    )
    for bar, rate, mine in zip(bars, rates, ours):
        axes.annotate(
            f"{rate:,.0f}" if rate else "not measured",
            (rate, bar.get_y() + bar.get_height() / 2),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            color=INK,
            fontweight="bold" if mine else "normal",
        )
    for label, mine in zip(axes.get_yticklabels(), ours):
        label.set_fontweight("bold" if mine else "normal")
    axes.set_title(title, loc="left", fontsize=11.5, color=INK, pad=8)
    axes.set_xlim(0, max(rates) * 1.2)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=10, colors=INK)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(EDGE)
    axes.set_facecolor(PAPER)


def conditions(record, rows):
    """Says how quiet the machine was."""
    if "conditions" in record:
        return record["conditions"]
    others = max(share or 0 for row in rows for share in row["others"])
    return f"Medians of {record['rounds']} rounds, the loaders in turns; other programs used at most {others:.0%} of the processor time."


def caption(record, modes):
    """Says what was measured, on which machine and when."""
    machine = record["machine"]
    date = datetime.date.fromisoformat(record["date"])
    height, width = record["shape"][1:]
    rows = [row for mode in modes for row in record["modes"][mode] if row["loader"] in LABELS]
    lines = [
        f"{record['images']:,} images of {height}×{width} in the page cache, batches of {record['batch_size']}, every batch read by the consumer.",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {date.day} {date:%B %Y}.",
        conditions(record, rows),
    ]
    if any("ImageFolder" in row["loader"] for row in rows):
        lines.append(
            "* ImageFolder decodes JPEG photos in every epoch; the other loaders read tensors that were stored once."
        )
    return "\n".join(lines)


def draw(record, modes):
    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "precache"})
    rows = sorted(record["modes"][modes[0]], key=lambda row: -row["images_per_second"])
    loaders = [row["loader"] for row in rows if row["loader"] in LABELS]
    notes = caption(record, modes)
    height = 0.3 * len(loaders) + 1.3 + 0.19 * (notes.count("\n") + 1)
    figure, axes = plt.subplots(1, len(modes), figsize=(9.6, height), squeeze=False, sharey=True)
    figure.set_facecolor(PAPER)
    figure.patch.set(edgecolor=EDGE, linewidth=1.5)
    for axis, mode in zip(axes[0], modes):
        draw_mode(axis, record["modes"][mode], loaders, TITLES[mode])
    figure.text(
        0.02,
        1 - 0.17 / height,
        "Images per second into the training loop",
        fontsize=14,
        fontweight="bold",
        color=INK,
        va="top",
    )
    figure.text(0.02, 0.13 / height, notes, fontsize=8.5, color=FAINT, va="bottom", linespacing=1.5)
    figure.tight_layout(rect=(0.01, (0.13 + 0.19 * (notes.count("\n") + 1)) / height, 0.99, 1 - 0.5 / height), w_pad=2)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="written by peers.py --json")
    parser.add_argument("out", type=Path, help="an .svg or .png file")
    parser.add_argument("--modes", nargs="+", choices=TITLES, default=["shuffled", "float16"])
    args = parser.parse_args()
    figure = draw(json.loads(args.record.read_text()), args.modes)
    metadata = {"Date": None, "Creator": None} if args.out.suffix == ".svg" else None
    figure.savefig(args.out, metadata=metadata, dpi=110)


if __name__ == "__main__":
    main()
