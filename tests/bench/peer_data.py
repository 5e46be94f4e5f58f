# SPDX-License-Identifier: Apache-2.0
"""The data of `peers.py`: the same samples, stored in the format that each loader prefers."""

import os

import numpy as np
from build_bench import link_photos

BATCH = 256
SHAPE = (3, 224, 224)
MOST_JPEGS = 2048  # ImageFolder decodes a few hundred per second


def store_arrays(folder, images):
    """Writes an .npy file and an HDF5 file of contiguous arrays, from which all other data is made."""
    import h5py

    random = np.random.default_rng(0)
    array = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (images, *SHAPE))
    with h5py.File(folder / "images.h5", "w") as file:
        stored = file.create_dataset("images", (images, *SHAPE), np.uint8)
        file["labels"] = np.arange(images) % 1000
        for begin in range(0, images, BATCH):
            array[begin : begin + BATCH] = random.integers(0, 256, (min(BATCH, images - begin), *SHAPE), np.uint8)
            stored[begin : begin + BATCH] = array[begin : begin + BATCH]
    array.flush()


def store_precache(file_format):
    def store(folder, images):
        import precache

        out = folder / file_format
        precache.convert(folder / "images.h5", out, format=file_format, shards=4, progress=False)
        precache.index(out, kind="dali")

    return store


def store_mosaic(folder, images):
    import streaming

    columns = {"image": f"ndarray:uint8:{','.join(map(str, SHAPE))}", "label": "int"}
    with streaming.MDSWriter(out=str(folder / "mosaic"), columns=columns, size_limit=1 << 28) as writer:
        for image, label in map(Samples(folder), range(images)):
            writer.write({"image": image, "label": label})


def store_litdata(folder, images):
    os.environ["DATA_OPTIMIZER_CACHE_FOLDER"] = os.environ["DATA_OPTIMIZER_DATA_CACHE_FOLDER"] = str(
        folder / "litdata-temporary"
    )
    import litdata

    litdata.optimize(Samples(folder), list(range(images)), str(folder / "litdata"), chunk_bytes="64MB", num_workers=1)


def store_ffcv(folder, images):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
    DatasetWriter(str(folder / "images.beton"), fields, num_workers=1).from_indexed_dataset(HwcSamples(folder))


def link_jpegs(folder, images, photos):
    """Fills class folders with links to the photos."""
    (folder / "jpeg").mkdir(exist_ok=True)
    link_photos(photos, folder / "jpeg" / "images", min(images, MOST_JPEGS))


class Samples:
    """Samples for the writers, which pickle this object: it opens the file at each access."""

    def __init__(self, folder):
        self.path = folder / "images.npy"

    def __len__(self):
        return len(np.load(self.path, mmap_mode="r"))

    def __getitem__(self, i):
        return np.array(np.load(self.path, mmap_mode="r")[i]), i % 1000

    __call__ = __getitem__


class HwcSamples(Samples):
    def __getitem__(self, i):
        image, label = super().__getitem__(i)
        return np.ascontiguousarray(image.transpose(1, 2, 0)), label


STORES = {
    "arrays": (store_arrays, ["images.npy", "images.h5"]),
    "tar": (store_precache("tar"), ["tar/*.tar"]),
    "tfrecord": (store_precache("tfrecord"), ["tfrecord/*.tfrecord"]),
    "mosaic": (store_mosaic, ["mosaic/*.mds"]),
    "litdata": (store_litdata, ["litdata/*.bin"]),
    "ffcv": (store_ffcv, ["images.beton"]),
    "jpeg": (link_jpegs, ["jpeg/photos/*.jpg"]),
}
