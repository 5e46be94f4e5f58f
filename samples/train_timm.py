#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a timm model with timm's MixUp, its schedule and its averaged weights, and resumes after each epoch.

samples/train_timm.py CACHE --model resnet10t     # CACHE is made by `precache build`
torchrun --nproc-per-node 2 samples/train_timm.py CACHE --checkpoint last.pt
"""

import argparse
from pathlib import Path

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy, init_distributed_device, random_seed

import precache
import precache.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--model", default="resnet10t")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process; even, for MixUp")
    parser.add_argument("--checkpoint", type=Path, help="written after each epoch; continued if it exists")
    args = parser.parse_args(namespace=argparse.Namespace(device="cpu"))
    init_distributed_device(args)  # sets rank and world size, those of torchrun if it was used

    random_seed(0)
    dataset = precache.open(args.cache)
    model = timm.create_model(args.model, num_classes=dataset.num_classes)
    config = timm.data.resolve_model_data_config(model)
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=dataset.num_classes)
    common = {"batch_size": args.batch_size, "normalize": (config["mean"], config["std"])}
    train = precache.torch.Loader(dataset, shuffle=True, crop=args.size, flip=True,
                                  batch_transform=lambda images, labels: mixup(images, labels), **common)  # fmt: skip
    # "keep": no image is read twice, because the processes add up what they have seen.
    check = precache.torch.Loader(dataset, crop=precache.Crop(args.size, args.size, "center"), last_batch="keep",
                                  **common)  # fmt: skip

    optimizer = create_optimizer_v2(model, "adamw", lr=3e-3)
    schedule = CosineLRScheduler(optimizer, args.epochs * len(train), warmup_t=len(train), t_in_epochs=False)
    averaged, loss_of = ModelEmaV3(model, decay=0.9), SoftTargetCrossEntropy()
    parts = {"model": model, "optimizer": optimizer, "averaged": averaged, "loader": train}
    if args.checkpoint and args.checkpoint.exists():
        saved = torch.load(args.checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    network = torch.nn.parallel.DistributedDataParallel(model) if args.distributed else model
    for epoch in range(train.epoch, args.epochs):
        random_seed(epoch, args.rank)  # MixUp draws with NumPy: a resumed run draws the same
        model.train()
        losses, right = AverageMeter(), AverageMeter()
        for step, (images, targets) in enumerate(train, 1):
            loss = loss_of(network(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update(model)
            schedule.step_update(epoch * len(train) + step)
            losses.update(loss.item(), len(images))
        averaged.eval()
        for images, labels in check:  # each image is read once, by one process
            with torch.inference_mode():
                right.update(accuracy(averaged(images), labels)[0].item(), len(labels))
        total = torch.tensor([right.sum, right.count])
        if args.distributed:
            torch.distributed.all_reduce(total)
        if args.rank == 0:
            print(f"epoch {epoch}: loss {losses.avg:.3f}, accuracy {total[0] / total[1]:.1f}% of {total[1]:.0f} images")
            if args.checkpoint:
                torch.save({name: part.state_dict() for name, part in parts.items()}, args.checkpoint)
    if args.distributed:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
