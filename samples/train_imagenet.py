#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains as most recipes for ImageNet do: random crops of any size, flips, and small images in the first epochs.

precache build IMAGES SHARDS --size 320 --fit stretch
samples/train_imagenet.py SHARDS --size 224 --epochs 3
"""

import argparse

import torch
from torch import nn
from torchvision import transforms

import precache.torch


def network(classes):
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(*block(3, 16), *block(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards")
    parser.add_argument("--size", type=int, default=224, help="of the images in the last third of the epochs")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    # The same list as for ImageFolder: what the shards did already is dropped, the rest runs in the loader's threads.
    steps = transforms.Compose(
        [
            transforms.RandomResizedCrop(args.size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    third = -(-args.epochs // 3)
    sizes = {0: args.size // 2, third: args.size * 3 // 4, 2 * third: args.size}  # by the first epoch that has them
    loader = precache.torch.Loader(args.shards, args.batch_size, shuffle=True, transform=steps, size=sizes)
    print(loader.transforms)

    torch.manual_seed(0)
    model = network(loader.dataset.num_classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        loss_sum = seen = 0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum, seen = loss_sum + loss.item() * len(labels), seen + len(labels)
        size = "x".join(map(str, images.shape[2:]))
        print(f"epoch {epoch}: {seen} images of {size}, loss {loss_sum / seen:.4f}", flush=True)


if __name__ == "__main__":
    main()
