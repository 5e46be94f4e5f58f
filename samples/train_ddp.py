#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains and validates with several processes, in the style of PyTorch's ImageNet example.

torchrun --nproc-per-node 2 samples/train_ddp.py IMAGES     # IMAGES has train/ and val/ with a subfolder for each class
torchrun --nproc-per-node 2 samples/train_ddp.py IMAGES --resume
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import precache
import precache.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each process")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    cache, checkpoint = args.images / "cache", args.images / "checkpoint.pt"
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count()) if torch.cuda.is_available() else None

    # All ranks call build: one of them builds, the others wait and find it done.
    for split in ("train", "val"):
        precache.build(args.images / split, cache, split=split, size=args.size * 9 // 8, wait=True)
    common = {"batch_size": args.batch_size, "normalize": "imagenet", "device": device}
    train_loader = precache.torch.Loader(cache, split="train", shuffle=True, crop=args.size, flip=True, **common)
    # "keep": no image is read twice, because the ranks add up what they have seen.
    val_loader = precache.torch.Loader(cache, split="val", crop=precache.Crop(args.size, args.size, "center"),
                                       last_batch="keep", **common)  # fmt: skip

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                            nn.Linear(256, train_loader.dataset.num_classes)).to(device)  # fmt: skip
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if args.resume:
        saved = torch.load(checkpoint)
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        train_loader.load_state_dict(saved["loader"])

    for epoch in range(train_loader.epoch, args.epochs):
        model.train()
        for images, labels in train_loader:  # the order is that of the epoch; a sampler is not needed
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        counts = torch.zeros(2, device=device)
        with torch.inference_mode():
            for images, labels in val_loader:  # each image is read once, by one rank
                counts += torch.tensor([(network(images).argmax(1) == labels).sum(), len(labels)], device=device)
        dist.all_reduce(counts)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: accuracy {counts[0] / counts[1]:.1%} of {int(counts[1])} images", flush=True)
            torch.save({"model": network.state_dict(), "optimizer": optimizer.state_dict(),
                        "loader": train_loader.state_dict()}, checkpoint)  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
