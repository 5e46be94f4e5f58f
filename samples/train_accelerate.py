#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with Accelerate: gradient accumulation, a schedule, metrics over all processes, and a checkpoint of everything.

accelerate launch samples/train_accelerate.py CACHE     # made by `precache build`
"""

import argparse

import torch
from accelerate import Accelerator
from torch import nn

import precache
import precache.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--epochs", type=int, default=3, help="must not change with --resume: the schedule is for them")
    parser.add_argument("--batch-size", type=int, default=16, help="of each process")
    parser.add_argument("--accumulate", type=int, default=2, metavar="STEPS")
    parser.add_argument("--out", help="folder of the checkpoint")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    device = accelerator.device if accelerator.device.type == "cuda" else None
    train = precache.torch.Loader(
        args.cache, args.batch_size, shuffle=True, flip=True, normalize="imagenet", device=device
    )
    # Without a shuffle, all ranks have equal batches, which can be gathered; gather_for_metrics removes the repeats.
    check = precache.torch.Loader(args.cache, args.batch_size, normalize="imagenet", device=device)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                          nn.Linear(256, train.dataset.num_classes))  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    updates = -(-len(train) // args.accumulate) * args.epochs  # len(train) counts the batches of this process
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=updates + 1)
    model, optimizer, train, check, schedule = accelerator.prepare(model, optimizer, train, check, schedule)
    accelerator.register_for_checkpointing(train)
    if args.resume:
        accelerator.load_state(args.out)

    for epoch in range(train.epoch, args.epochs):
        model.train()
        for images, labels in train:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.cross_entropy(model(images), labels))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        right = total = 0
        for images, labels in check:
            with torch.inference_mode():
                guesses, truth = accelerator.gather_for_metrics((model(images).argmax(1), labels))
            right, total = right + int((guesses == truth).sum()), total + len(truth)
        rate = schedule.get_last_lr()[0]
        accelerator.print(f"epoch {epoch}: accuracy {right / total:.1%} of {total} images, learning rate {rate:.2g}")
        if args.out:
            accelerator.save_state(args.out)
    accelerator.end_training()


if __name__ == "__main__":
    main()
