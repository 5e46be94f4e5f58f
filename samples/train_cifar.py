#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains as fast recipes for CIFAR do: crops of an image with a reflected border, and flips that alternate by epoch.

precache build IMAGES SHARDS --size 32
samples/train_cifar.py SHARDS --epochs 4
"""

import argparse

import torch
from torch import nn

import precache.torch
from precache import transforms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    size = precache.open(args.shards).spec.shape[-1]
    steps = [
        transforms.RandomCrop(size, padding=4, padding_mode="reflect"),
        # In even epochs a random half of the images is mirrored, in odd ones the other half: each two epochs have both.
        transforms.RandomHorizontalFlip(alternate=True),
        transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        transforms.RandomErasing(p=0.25),  # after Normalize: 0 is the mean
    ]
    loader = precache.torch.Loader(args.shards, args.batch_size, shuffle=True, transform=steps)
    print("sample 0 in epochs 0 and 1:", loader.draw(0, epoch=0), loader.draw(0, epoch=1))

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, loader.dataset.num_classes),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(args.epochs):
        loss_sum = seen = 0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum, seen = loss_sum + loss.item() * len(labels), seen + len(labels)
        print(f"epoch {epoch}: loss {loss_sum / seen:.4f}", flush=True)


if __name__ == "__main__":
    main()
