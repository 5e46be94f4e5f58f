#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a timm model with timm's MixUp, its schedule and its averaged weights.

samples/train_timm.py CACHE --model resnet10t     # CACHE is made by `precache build`
"""

import argparse

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy, random_seed

import precache
import precache.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--model", default="resnet10t")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="even, for MixUp")
    args = parser.parse_args()

    random_seed(0)  # MixUp draws with NumPy
    dataset = precache.open(args.cache)
    model = timm.create_model(args.model, num_classes=dataset.num_classes)
    config = timm.data.resolve_model_data_config(model)
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=dataset.num_classes)
    common = {"batch_size": args.batch_size, "normalize": (config["mean"], config["std"])}
    train = precache.torch.Loader(dataset, shuffle=True, crop=args.size, flip=True,
                                  batch_transform=lambda images, labels: mixup(images, labels), **common)  # fmt: skip
    check = precache.torch.Loader(dataset, crop=precache.Crop(args.size, args.size, "center"), **common)

    optimizer = create_optimizer_v2(model, "adamw", lr=3e-3)
    schedule = CosineLRScheduler(optimizer, args.epochs * len(train), warmup_t=len(train), t_in_epochs=False)
    averaged, loss_of, updates = ModelEmaV3(model, decay=0.9), SoftTargetCrossEntropy(), 0
    for epoch in range(args.epochs):
        model.train()
        losses, right = AverageMeter(), AverageMeter()
        for images, targets in train:
            loss = loss_of(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update(model)
            updates += 1
            schedule.step_update(updates)
            losses.update(loss.item(), len(images))
        averaged.eval()
        for images, labels in check:
            with torch.inference_mode():
                right.update(accuracy(averaged(images), labels)[0].item(), len(labels))
        print(f"epoch {epoch}: loss {losses.avg:.3f}, accuracy {right.avg:.1f}% of {right.count} images")


if __name__ == "__main__":
    main()
