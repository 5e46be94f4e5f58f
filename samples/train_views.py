#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learns without labels, as DINO does: a network makes of small parts of an image what its average makes of large ones.

precache build IMAGES SHARDS --size 256
samples/train_views.py SHARDS --size 224 --epochs 2
"""

import argparse
import copy

import torch
from torch import nn

import precache.torch
from precache import transforms as t


def view(size, scale, *more):
    colour = [t.RandomApply([t.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), t.RandomGrayscale(0.2)]
    crop = t.RandomResizedCrop(size, scale=scale, interpolation="bicubic")
    return [crop, t.RandomHorizontalFlip(), *colour, *more, t.Normalize("imagenet")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards")
    parser.add_argument("--size", type=int, default=224, help="of the large views; the small ones have less than half")
    parser.add_argument("--small-views", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    blur = t.GaussianBlur(args.size // 20 * 2 + 1)
    large = [
        view(args.size, (0.32, 1), blur),
        view(args.size, (0.32, 1), t.RandomApply([blur], p=0.1), t.RandomSolarize(128, p=0.2)),
    ]
    small = [view(args.size * 3 // 7, (0.05, 0.32), t.RandomApply([blur], p=0.5))] * args.small_views
    loader = precache.torch.Loader(args.shards, args.batch_size, shuffle=True, views=large + small)

    torch.manual_seed(0)
    student = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=3), nn.ReLU(), nn.Conv2d(16, 64, 3, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    teacher = copy.deepcopy(student)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        loss_sum = batches = 0
        for images, _ in loader:  # a tuple of tensors: each record was read once for all of its views
            with torch.no_grad():
                wanted = [(teacher(each) / 0.04).softmax(1) for each in images[:2]]
            scores = [(student(each) / 0.1).log_softmax(1) for each in images]
            pairs = [(w, s) for i, w in enumerate(wanted) for j, s in enumerate(scores) if i != j]
            loss = sum(-(w * s).sum(1).mean() for w, s in pairs) / len(pairs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():  # the teacher is the student's average
                for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
                    old.lerp_(new, 0.01)
            loss_sum, batches = loss_sum + loss.item(), batches + 1
        print(f"epoch {epoch}: {len(images)} views, loss {loss_sum / batches:.4f}", flush=True)


if __name__ == "__main__":
    main()
