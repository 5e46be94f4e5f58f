#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures RandomResizedCrop, flip and normalisation to float16, of precache and of other loaders.

    tests/bench/augment_bench.py [FOLDER] [--stored 256 320 512] [--images 2048] [--rounds 3] [--json FILE]

All read the same uint8 images from the page cache and give batches of 224x224. Each run is a separate process, which finishes an
epoch and is measured in the next ones for at least a second; the table has medians. `cpu` is processor time of the process and its
children per image, which other programs on the machine disturb less than images/s. cv2 only resizes: it neither reads nor
normalises. Peers that are not installed are skipped, and a message at the end names them.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from peers import machine, other_ticks, others_share, read

OUT, BATCH, MEASURED_SECONDS = 224, 64, 1
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def precache_loader(folder, workers, module="precache"):
    import precache.torch
    from precache import transforms as t

    steps = [t.RandomResizedCrop(OUT), t.RandomHorizontalFlip(), t.Normalize(MEAN, STD)]
    kind = precache.torch.Loader if module == "torch" else precache.Loader
    return kind(folder / "chw", BATCH, shuffle=True, transform=steps, dtype="float16", threads=workers)


def precache_torch(folder, workers):
    return precache_loader(folder, workers, "torch")


class Pictures:
    """A map-style dataset of the stored images; `as_pil` gives pictures, else tensors."""

    def __init__(self, folder, transform, as_pil):
        self.images, self.transform, self.as_pil = np.load(folder / "images.npy", mmap_mode="r"), transform, as_pil

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        import torch
        from PIL import Image

        hwc = np.array(self.images[i])
        image = Image.fromarray(hwc) if self.as_pil else torch.from_numpy(hwc).permute(2, 0, 1)
        return self.transform(image).half(), i


def torchvision_loader(folder, workers, as_pil):
    import torch
    from torch.utils.data import DataLoader
    from torchvision import transforms as v1
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    if as_pil:
        steps = [v1.RandomResizedCrop(OUT), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)]
        transform = v1.Compose(steps)
    else:
        crop = v2.RandomResizedCrop(OUT, antialias=True)
        steps = [crop, v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        transform = v2.Compose(steps)
    return DataLoader(Pictures(folder, transform, as_pil), BATCH, shuffle=True, drop_last=True, num_workers=workers,
                      persistent_workers=workers > 0)  # fmt: skip


def torchvision_pil(folder, workers):
    return torchvision_loader(folder, workers, as_pil=True)


def torchvision_tensors(folder, workers):
    return torchvision_loader(folder, workers, as_pil=False)


def dali(folder, workers):
    from nvidia.dali import fn, pipeline_def, types

    images = np.load(folder / "images.npy", mmap_mode="r")
    order = np.random.default_rng(0)

    def batches():
        while True:
            yield images[order.integers(0, len(images), BATCH)]

    @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None, prefetch_queue_depth=2)
    def pipeline():
        stored = fn.external_source(batches(), layout="HWC")
        cropped = fn.random_resized_crop(stored, size=(OUT, OUT))
        scale = {"mean": [255 * each for each in MEAN], "std": [255 * each for each in STD]}
        return fn.crop_mirror_normalize(cropped, mirror=fn.random.coin_flip(), dtype=types.FLOAT16, **scale)

    made = pipeline()
    made.build()

    class Epochs:
        def __iter__(self):
            return ((made.run()[0].as_array(), None) for _ in range(len(images) // BATCH))

    return Epochs()


class Indexed:
    """The stored images for FFCV's writer, which pickles this object."""

    def __init__(self, folder):
        self.path = folder / "images.npy"

    def __len__(self):
        return len(np.load(self.path, mmap_mode="r"))

    def __getitem__(self, i):
        return np.array(np.load(self.path, mmap_mode="r")[i]), i


def ffcv(folder, workers):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor
    from ffcv.writer import DatasetWriter

    beton = folder / "images.beton"
    if not beton.exists():
        fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
        DatasetWriter(str(beton), fields, num_workers=1).from_indexed_dataset(Indexed(folder))
    mean, std = (255 * np.array(each) for each in (MEAN, STD))
    steps = [RandomHorizontalFlip(), NormalizeImage(mean, std, np.float16), ToTensor()]
    pipelines = {"image": [RandomResizedCropRGBImageDecoder((OUT, OUT)), *steps]}
    return Loader(str(beton), BATCH, workers, os_cache=True, drop_last=True, order=OrderOption.RANDOM,
                  pipelines=pipelines)  # fmt: skip


def cv2_resize(folder, workers):
    import cv2
    import torch
    from torchvision.transforms import RandomResizedCrop

    cv2.setNumThreads(1)
    images = np.load(folder / "images.npy", mmap_mode="r")
    blank = torch.empty(3, *images.shape[1:3])
    crops = [RandomResizedCrop.get_params(blank, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(1000)]

    class Epochs:
        def __iter__(self):
            for first in range(0, len(images) - BATCH + 1, BATCH):
                out = np.empty((BATCH, OUT, OUT, 3), np.uint8)
                for row in range(BATCH):
                    top, left, height, width = crops[(first + row) % len(crops)]
                    part = images[first + row, top : top + height, left : left + width]
                    cv2.resize(part, (OUT, OUT), dst=out[row])
                yield out, None

    return Epochs()


# name: (function, numbers of workers or threads to try, modules)
PEERS = {
    "precache.Loader, 1 thread": (precache_loader, (1,), ()),
    "precache.Loader": (precache_loader, (0,), ()),
    "precache.torch.Loader": (precache_torch, (0,), ("torch",)),
    "torchvision v2, tensors, DataLoader": (torchvision_tensors, (0, 2), ("torchvision",)),
    "torchvision, PIL, DataLoader": (torchvision_pil, (0, 2), ("torchvision",)),
    "DALI (CPU)": (dali, (1, 2), ("nvidia.dali",)),
    "FFCV": (ffcv, (1, 2), ("ffcv",)),
    "cv2 resize alone, 1 thread": (cv2_resize, (1,), ("cv2", "torchvision")),
}


def store(folder, side, images):
    """Smooth noise, so that pixels are neither constant nor independent."""
    import h5py
    import precache
    from PIL import Image

    draw = np.random.default_rng(0)
    array = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (images, side, side, 3))
    for i in range(images):
        small = Image.fromarray(draw.integers(0, 256, (side // 8, side // 8, 3), np.uint8))
        array[i] = small.resize((side, side), Image.Resampling.BICUBIC)
    array.flush()
    with h5py.File(folder / "images.h5", "w") as file:
        file["images"] = np.ascontiguousarray(array.transpose(0, 3, 1, 2))
        file["labels"] = np.arange(images)
    precache.convert(folder / "images.h5", folder / "chw", format="tar", progress=False)
    (folder / "images.h5").unlink()


def cpu_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + running_children()


def running_children():
    """Processor time of children that have not ended."""
    ticks = 0
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        ticks += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(name, workers, folder):
    loader = PEERS[name][0](Path(folder), workers)

    def epoch():
        images = 0
        for batch, _ in loader:
            read(np.asarray(batch))
            images += len(batch)
        return images

    epoch()
    images, begin, cpu, ticks = 0, time.perf_counter(), cpu_seconds(), other_ticks()
    while images == 0 or time.perf_counter() - begin < MEASURED_SECONDS:
        images += epoch()
    seconds, cpu = time.perf_counter() - begin, cpu_seconds() - cpu
    result = {"rate": images / seconds, "cpu": cpu / images, "others": others_share(ticks, seconds), "workers": workers}
    print(json.dumps(result), flush=True)
    os._exit(0)


def measured(name, workers, folder):
    command = [sys.executable, __file__, "--run", json.dumps([name, workers, str(folder)])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = "".join(done.stderr.strip().splitlines()[-1:])
        print(f"skipped {name} ({workers} workers): {reason}", file=sys.stderr, flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def measure(side, names, folder, rounds):
    results = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            runs = [measured(name, workers, folder) for workers in PEERS[name][1]]
            results[name].append(max(filter(None, runs), key=lambda each: each["rate"], default=None))
    print(f"\n| from {side}x{side} | images/s | CPU time per image | per CPU second |\n|---|---|---|---|")
    rows = []
    for name, found in results.items():
        found = [each for each in found if each]
        if found:
            rate, cpu = (statistics.median(each[key] for each in found) for key in ("rate", "cpu"))
            print(f"| {name} | {rate:,.0f} | {cpu * 1e6:,.0f} µs | {1 / cpu:,.0f} |", flush=True)
            row = {"loader": name, "images_per_second": round(rate), "cpu_us": round(cpu * 1e6)}
            rows.append(row | {"runs": found, "others": [each["others"] for each in found]})
    return rows


def started_record(args):
    """The record without its figures, as plot_throughput.py reads it."""
    packages = [name for name in ("numpy", "torch", "torchvision") if installed(name)]
    stored = " ".join(map(str, args.stored))
    return {
        "date": f"{datetime.date.today()}",
        "machine": machine(),
        "command": f"tests/bench/augment_bench.py FOLDER --stored {stored} --images {args.images} --rounds {args.rounds}",
        "data": f"RandomResizedCrop({OUT}), flip and normalisation to float16 of {args.images:,} images in the page cache; "
        f"shuffled batches of {BATCH}.",
        "images": args.images,
        "batch_size": BATCH,
        "rounds": args.rounds,
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "modes": {},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where to store the data (default: a temporary folder)")
    parser.add_argument("--stored", nargs="+", type=int, default=[256, 320, 512])
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run(*json.loads(args.run))
    absent = [name for name, (_, _, modules) in PEERS.items() if not all(map(installed, modules))]
    record = started_record(args)
    for side in args.stored:
        with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
            store(Path(temporary), side, args.images)
            names = [name for name in PEERS if name not in absent]
            record["modes"][f"from {side}x{side}"] = measure(side, names, Path(temporary), args.rounds)
        if args.json:
            args.json.write_text(json.dumps(record, indent=1) + "\n")
    if absent:
        print(f"\nSkipped, because they are not installed: {', '.join(absent)}.")


def installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
