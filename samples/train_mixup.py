#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with TrivialAugment on each image, and torchvision's MixUp or CutMix on each batch.

precache build IMAGES SHARDS --size 256
samples/train_mixup.py SHARDS --size 224 --epochs 3
"""

import argparse

import torch
from torch import nn
from torchvision.transforms import v2

import precache.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    steps = v2.Compose(
        [
            v2.RandomResizedCrop(args.size, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.TrivialAugmentWide(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ]
    )
    classes = precache.open(args.shards).num_classes
    mix = v2.RandomChoice([v2.MixUp(num_classes=classes, alpha=0.2), v2.CutMix(num_classes=classes)])
    loader = precache.torch.Loader(args.shards, args.batch_size, shuffle=True, transform=steps, batch_transform=mix)

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, classes),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        loss_sum = seen = 0
        for images, shares in loader:  # the labels are shares of two classes
            loss = nn.functional.cross_entropy(model(images), shares)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum, seen = loss_sum + loss.item() * len(images), seen + len(images)
        print(f"epoch {epoch}: labels of {tuple(shares.shape)}, loss {loss_sum / seen:.4f}", flush=True)


if __name__ == "__main__":
    main()
