# SPDX-License-Identifier: Apache-2.0
"""The loaders that `peers.py` measures.

A peer is a class with `name`, the `modules` that it needs, the numbers of `workers` to try, the `data` that it reads (a name in
STORES of `peer_data.py`) and, if it does not support all of them, its `modes`. `epochs(mode, workers)` makes the loader once and
yields an iterable of batches for each epoch. Each peer is written for speed, as its documentation recommends: whole batches
instead of samples, persistent workers, no decoding where tensors are stored.
"""

import glob
from pathlib import Path

import numpy as np

from peer_data import BATCH, SHAPE

SHUFFLE_BUFFER = 1024
MEAN, STD = np.float32([0.485, 0.456, 0.406]) * 255, np.float32([0.229, 0.224, 0.225]) * 255
MODES = ("sequential", "shuffled", "float32", "float16")  # the last two are shuffled and normalised


# --- precache -----------------------------------------------------------------------------------------------------------


class Peer:
    modules = ()
    workers = (0, 2)
    data = "arrays"
    modes = MODES

    def __init__(self, folder):
        self.folder = Path(folder)

    @staticmethod
    def arrays(images):
        """Returns the images of a batch as numpy arrays, without a copy."""
        return [np.asarray(images)]

    def files(self, pattern):
        return sorted(glob.glob(str(self.folder / pattern)))


def our_options(mode):
    options = {"batch_size": BATCH, "shuffle": None if mode == "sequential" else "full"}
    return options | ({"dtype": mode, "normalize": "imagenet"} if mode.startswith("float") else {})


class Ours(Peer):
    name = "precache.Loader"
    modules = ("precache",)
    workers = (0,)  # it uses all cores
    data = "tar"

    def epochs(self, mode, workers):
        import precache

        loader = precache.Loader(self.folder / "tar", **our_options(mode))
        while True:
            yield loader


class OursTorch(Ours):
    name = "precache.torch.Loader"
    modules = ("precache", "torch")
    views = False

    def epochs(self, mode, workers):
        import precache.torch

        loader = precache.torch.Loader(self.folder / "tar", views=self.views, **our_options(mode))
        while True:
            yield loader


class OursTorchViews(OursTorch):
    name = "precache.torch.Loader, views=True"
    views = True
    modes = ("sequential",)


class OursTensorflow(Ours):
    name = "precache.tensorflow.dataset"
    modules = ("precache", "tensorflow")

    def epochs(self, mode, workers):
        import precache.tensorflow

        dataset = precache.tensorflow.dataset(self.folder / "tar", **our_options(mode))
        while True:
            yield dataset

    @staticmethod
    def arrays(images):
        return [np.asarray(memoryview(images))]  # images.numpy() would copy


# --- torch's DataLoader ---------------------------------------------------------------------------------------------------


def in_torch(array, mode):
    """Normalises as a careful user would: one conversion, then in place."""
    import torch

    images = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
    if not mode.startswith("float"):
        return images
    mean, scale = torch.from_numpy(MEAN).view(3, 1, 1), torch.from_numpy(1 / STD).view(3, 1, 1)
    return images.to(torch.float32).sub_(mean).mul_(scale).to(getattr(torch, mode))


class Rows:
    """A map-style dataset that returns a whole batch at once, by `read(indices)` of the peer."""

    def __init__(self, peer, mode):
        self.peer, self.mode, self.length = peer, mode, len(np.load(peer.folder / "images.npy", mmap_mode="r"))

    def __len__(self):
        return self.length

    def __getitems__(self, indices):
        return in_torch(self.peer.read(indices), self.mode), in_torch(np.asarray(indices) % 1000, "sequential")


def same(batch):
    return batch


class TorchPeer(Peer):
    modules = ("torch",)

    def epochs(self, mode, workers):
        from torch.utils.data import DataLoader

        loader = DataLoader(
            self.dataset(mode),
            BATCH,
            shuffle=mode != "sequential",
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            collate_fn=self.collate,
        )
        while True:
            yield loader

    collate = staticmethod(same)

    def dataset(self, mode):
        return Rows(self, mode)


class Memmap(TorchPeer):
    name = "DataLoader, numpy memmap"
    array = None

    def read(self, indices):
        if self.array is None:
            self.array = np.load(self.folder / "images.npy", mmap_mode="r")
        return self.array[indices]


class H5py(TorchPeer):
    name = "DataLoader, h5py"
    modules = ("torch", "h5py")
    stored = None

    def read(self, indices):
        import h5py

        if self.stored is None:  # opened in the worker, because HDF5 does not survive a fork
            self.stored = h5py.File(self.folder / "images.h5")["images"]
        if indices[-1] - indices[0] == len(indices) - 1 and sorted(indices) == list(indices):
            return self.stored[indices[0] : indices[-1] + 1]
        rows = np.empty((len(indices), *SHAPE), np.uint8)
        for row, i in enumerate(indices):  # several times as fast as indexing with a list
            self.stored.read_direct(rows, np.s_[i], np.s_[row])
        return rows


class OursDataLoader(TorchPeer):
    name = "DataLoader, precache.torch.Dataset"
    modules = ("precache", "torch")
    data = "tar"

    def dataset(self, mode):
        import precache.torch

        self.mode = mode
        return precache.torch.Dataset(self.folder / "tar")

    def collate(self, samples):
        from torch.utils.data import default_collate

        images, labels = default_collate(samples)
        return in_torch(images, self.mode), labels


class ImageFolder(TorchPeer):
    """Decodes, resizes and crops JPEG files in every epoch."""

    name = "DataLoader, ImageFolder (JPEG)"
    modules = ("torch", "torchvision")
    data = "jpeg"

    def dataset(self, mode):
        from torchvision import datasets, transforms

        crop = [transforms.Resize(256), transforms.CenterCrop(SHAPE[1]), transforms.PILToTensor()]
        return datasets.ImageFolder(self.folder / "jpeg" / "images", transforms.Compose(crop))

    def epochs(self, mode, workers):
        self.mode = mode
        return super().epochs(mode, workers)

    def collate(self, samples):
        from torch.utils.data import default_collate

        images, labels = default_collate(samples)
        return in_torch(images, self.mode), labels


# --- other loaders --------------------------------------------------------------------------------------------------------


class Webdataset(Peer):
    name = "webdataset, .npy tars"
    modules = ("webdataset", "torch")
    data = "tar"

    def epochs(self, mode, workers):
        import webdataset

        dataset = webdataset.WebDataset(self.files("tar/*.tar"), shardshuffle=False if mode == "sequential" else 4)
        if mode != "sequential":
            dataset = dataset.shuffle(SHUFFLE_BUFFER)
        dataset = dataset.decode().to_tuple("npy", "cls").batched(BATCH, partial=False)
        dataset = dataset.map(lambda batch: (in_torch(np.ascontiguousarray(batch[0]), mode), batch[1]))
        loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
        while True:
            yield loader


class TfData(Peer):
    name = "tf.data, TFRecord"
    modules = ("tensorflow",)
    workers = (0,)  # it chooses its threads itself
    data = "tfrecord"

    def epochs(self, mode, workers):
        import tensorflow as tf

        def parse(records):
            samples = tf.io.parse_example(
                records, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
            )
            images = tf.reshape(tf.io.decode_raw(samples["image"], tf.uint8), (-1, *SHAPE))
            if mode.startswith("float"):
                images = (tf.cast(images, tf.float32) - MEAN.reshape(3, 1, 1)) * (1 / STD.reshape(3, 1, 1))
                images = tf.cast(images, mode)
            return images, samples["label"]

        dataset = tf.data.TFRecordDataset(
            self.files("tfrecord/*.tfrecord"),
            buffer_size=8 << 20,
            num_parallel_reads=None if mode == "sequential" else tf.data.AUTOTUNE,
        )
        if mode != "sequential":
            dataset = dataset.shuffle(SHUFFLE_BUFFER)
        dataset = dataset.batch(BATCH, drop_remainder=True).map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        while True:
            yield dataset

    arrays = staticmethod(OursTensorflow.arrays)


class Dali(Peer):
    name = "DALI, webdataset tars (CPU)"
    modules = ("nvidia.dali",)
    workers = (1, 2)  # threads
    data = "tar"

    def read(self, fn, mode, **options):
        """uint8 samples stay whole .npy files in separate buffers; DALI makes no tensor of the batch."""
        npy, label = fn.readers.webdataset(
            paths=self.files("tar/*.tar"),
            index_paths=self.files("tar/*.idx"),
            ext=["npy", "cls"],
            dont_use_mmap=False,
            **options,
        )
        return (npy[128:] if mode.startswith("float") else npy), label

    @staticmethod
    def arrays(images):
        if images.is_dense_tensor():
            return [np.asarray(images.as_tensor())]
        return [np.asarray(images.at(i)).reshape(1, -1) for i in range(len(images))]

    def epochs(self, mode, workers):
        from nvidia.dali import fn, pipeline_def, types

        @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None, prefetch_queue_depth=2)
        def pipeline():
            shuffled = {} if mode == "sequential" else {"random_shuffle": True, "initial_fill": SHUFFLE_BUFFER}
            images, label = self.read(fn, mode, name="reader", **shuffled)
            if mode.startswith("float"):
                images = fn.reinterpret(images, dtype=types.UINT8, shape=list(SHAPE), layout="CHW")
                images = fn.crop_mirror_normalize(
                    images,
                    mean=MEAN.tolist(),
                    std=STD.tolist(),
                    output_layout="CHW",
                    dtype=types.FLOAT if mode == "float32" else types.FLOAT16,
                )
            return images, label

        made = pipeline()
        made.build()
        batches = made.epoch_size("reader") // BATCH
        while True:
            yield (tuple(made.run()) for _ in range(batches))


class DaliTfrecord(Dali):
    name = "DALI, TFRecord (CPU)"
    data = "tfrecord"

    def read(self, fn, mode, **options):
        from nvidia.dali import tfrecord

        features = {
            "image": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([], tfrecord.int64, -1),
        }
        sample = fn.readers.tfrecord(
            path=self.files("tfrecord/*.tfrecord"),
            index_path=self.files("tfrecord/*.idx"),
            features=features,
            **options,
        )
        return sample["image"], sample["label"]


class Mosaic(Peer):
    name = "MosaicML streaming"
    modules = ("streaming", "torch")
    data = "mosaic"

    def epochs(self, mode, workers):
        import streaming
        from torch.utils.data import default_collate

        def collate(samples):
            batch = default_collate(samples)
            return in_torch(batch["image"], mode), batch["label"]

        dataset = streaming.StreamingDataset(
            local=str(self.folder / "mosaic"), shuffle=mode != "sequential", batch_size=BATCH
        )
        loader = streaming.StreamingDataLoader(
            dataset,
            batch_size=BATCH,
            num_workers=workers,
            drop_last=True,
            persistent_workers=workers > 0,
            collate_fn=collate,
        )
        while True:
            yield loader


class Litdata(Peer):
    name = "litdata"
    modules = ("litdata", "torch")
    data = "litdata"

    def epochs(self, mode, workers):
        import litdata
        from torch.utils.data import default_collate

        def collate(samples):
            images, labels = default_collate(samples)
            return in_torch(images, mode), labels

        dataset = litdata.StreamingDataset(str(self.folder / "litdata"), shuffle=mode != "sequential", drop_last=True)
        loader = litdata.StreamingDataLoader(
            dataset,
            batch_size=BATCH,
            num_workers=workers,
            drop_last=True,
            persistent_workers=workers > 0,
            collate_fn=collate,
        )
        while True:
            yield loader


class Ffcv(Peer):
    name = "FFCV"
    modules = ("ffcv", "torch")
    workers = (1, 2)  # threads
    data = "ffcv"

    def epochs(self, mode, workers):
        from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
        from ffcv.loader import Loader, OrderOption
        from ffcv.transforms import NormalizeImage, ToTensor

        normalize = [NormalizeImage(MEAN, STD, np.dtype(mode))] if mode.startswith("float") else []
        loader = Loader(
            str(self.folder / "images.beton"),
            batch_size=BATCH,
            num_workers=workers,
            os_cache=True,
            drop_last=True,
            order=OrderOption.SEQUENTIAL if mode == "sequential" else OrderOption.RANDOM,
            pipelines={"image": [SimpleRGBImageDecoder(), *normalize, ToTensor()], "label": [IntDecoder(), ToTensor()]},
        )
        while True:
            yield loader


PEERS = {
    peer.name: peer
    for peer in (
        Ours,
        OursTorch,
        OursTorchViews,
        OursTensorflow,
        OursDataLoader,
        Memmap,
        H5py,
        ImageFolder,
        Webdataset,
        TfData,
        Dali,
        DaliTfrecord,
        Mosaic,
        Litdata,
        Ffcv,
    )
}
