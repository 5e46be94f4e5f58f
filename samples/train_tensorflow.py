#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Keras network on a folder of images, and resumes after each epoch.

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
    parser.add_argument("--checkpoint", type=Path, help="a .keras file, to resume after each epoch")
    args = parser.parse_args()
    cache = args.cache or args.images.with_name(args.images.name + ".cache")

    if not (cache / "dataset.json").exists():  # the manifest is written last; an interrupted build resumes
        precache.build(args.images, cache, size=args.size * 9 // 8)  # larger than the crop, so that crops can vary
    images = precache.open(cache)

    keras.utils.set_random_seed(args.seed)
    epoch = 0
    if args.checkpoint and args.checkpoint.exists():
        model = keras.models.load_model(args.checkpoint)
        epoch = int(model.optimizer.iterations) // (len(images) // args.batch_size)
    else:
        model = network(args.size, images.num_classes)
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    # Each iteration, and so each epoch of fit, has a new order, new crops and new flips.
    train = precache.tensorflow.dataset(
        cache,
        args.batch_size,
        epoch=epoch,
        shuffle=True,
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

    save = [keras.callbacks.ModelCheckpoint(args.checkpoint)] if args.checkpoint else []
    epochs = {"initial_epoch": epoch, "epochs": args.epochs}
    model.fit(train, **epochs, callbacks=save, shuffle=False, verbose=2)  # the dataset is already shuffled
    loss, accuracy = model.evaluate(check, verbose=0)
    print(f"all {len(images)} images, centre crops: loss {loss:.4f}, accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
