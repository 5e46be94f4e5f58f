#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on a folder of images. After a kill, the same command resumes where it stopped.

samples/train_torch.py IMAGES --epochs 3     # IMAGES has a subfolder for each class
"""

import argparse
import os
from pathlib import Path

import torch
from torch import nn

import precache
import precache.torch


def network(classes):
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *block(3, 16), *block(16, 32), *block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)
    )


def save(path, **parts):
    """A kill leaves the old checkpoint or the new one, never half of one."""
    torch.save(parts, f"{path}.new")
    os.replace(f"{path}.new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--cache", type=Path, help="folder of the tensors, built if missing (default: IMAGES.cache)")
    parser.add_argument("--checkpoint", type=Path, help="checkpoint file (default: CACHE/checkpoint.pt)")
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=64, help="size of the crops to train on (default: 64)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of torch; with 1, runs are equal to the last bit")
    args = parser.parse_args()
    cache = args.cache or args.images.with_name(args.images.name + ".cache")
    checkpoint = args.checkpoint or cache / "checkpoint.pt"

    if not (cache / "dataset.json").exists():  # the manifest is written last; an interrupted build resumes
        precache.build(args.images, cache, size=args.size * 9 // 8)  # larger than the crop, so that crops can vary
    loader = precache.torch.Loader(
        cache, args.batch_size, shuffle="full", seed=args.seed, crop=args.size, flip=True, normalize="imagenet"
    )

    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    model = network(len(loader.dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    steps, seen, right, loss_sum = 0, 0, 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        steps, seen, right, loss_sum = saved["counts"]
        if saved["loader"]["position"] == 0:  # the epoch was complete
            seen, right, loss_sum = 0, 0, 0.0
        print(f"resuming after step {steps}, in epoch {loader.epoch}", flush=True)

    def save_checkpoint():
        save(
            checkpoint,
            model=model.state_dict(),
            optimizer=optimizer.state_dict(),
            loader=loader.state_dict(),
            counts=(steps, seen, right, loss_sum),
        )

    for epoch in range(loader.epoch, args.epochs):
        for images, labels in loader:  # after load_state_dict: the rest of the epoch
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps, seen, right = steps + 1, seen + len(labels), right + (scores.argmax(1) == labels).sum().item()
            loss_sum += loss.item() * len(labels)
            if steps % args.checkpoint_every == 0:
                save_checkpoint()
        print(f"epoch {epoch}: loss {loss_sum / seen:.4f}, accuracy {right / seen:.1%}", flush=True)
        seen, right, loss_sum = 0, 0, 0.0
        save_checkpoint()
    print(loader.stats()["bottleneck"])


if __name__ == "__main__":
    main()
