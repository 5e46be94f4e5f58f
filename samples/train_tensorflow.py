#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Keras network on a folder of images.

samples/train_tensorflow.py IMAGES --epochs 3     # IMAGES has a subfolder for each class
"""

import argparse
from pathlib import Path

import keras

import precache
import precache.tensorflow


def network(size, classes):
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((size, size, 3)),
            *(
                layer
                for width in (16, 32, 64)
                for layer in (layers.Conv2D(width, 3, padding="same", activation="relu"), layers.MaxPool2D())
            ),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--cache", type=Path, help="folder of the tensors, built if missing (default: IMAGES.cache)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64, help="size of the crops to train on (default: 64)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    cache = args.cache or args.images.with_name(args.images.name + ".cache")

    if not (cache / "dataset.json").exists():  # the manifest is written last; an interrupted build resumes
        precache.build(args.images, cache, size=args.size * 9 // 8)  # larger than the crop, so that crops can vary
    classes = precache.open(cache).classes
    # Each iteration, and so each epoch of fit, has a new order, new crops and new flips.
    train = precache.tensorflow.dataset(
        cache,
        args.batch_size,
        shuffle="full",
        seed=args.seed,
        crop=args.size,
        flip=True,
        normalize="imagenet",
        layout="hwc",
    )
    check = precache.tensorflow.dataset(
        cache,
        args.batch_size,
        last_batch="keep",
        crop=precache.Crop(args.size, args.size, "center"),
        normalize="imagenet",
        layout="hwc",
    )

    keras.utils.set_random_seed(args.seed)
    model = network(args.size, len(classes))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(train, epochs=args.epochs, shuffle=False, verbose=2)  # the dataset is already shuffled
    loss, accuracy = model.evaluate(check, verbose=0)
    print(f"all {len(precache.open(cache))} images, centre crops: loss {loss:.4f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
