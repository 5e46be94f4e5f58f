#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with Lightning. Its checkpoints contain the position of the loader, in the middle of an epoch, too.

samples/train_lightning.py CACHE                       # made by `precache build`
samples/train_lightning.py CACHE --resume runs/last.ckpt
"""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

import precache.torch


class Classifier(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                                     nn.Linear(256, classes))  # fmt: skip

    def training_step(self, batch, _):
        images, labels = batch
        return nn.functional.cross_entropy(self.network(images), labels)

    def validation_step(self, batch, _):
        images, labels = batch
        right = (self.network(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, on_epoch=True, prog_bar=True, batch_size=len(labels), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--every", type=int, default=50, metavar="STEPS", help="steps between checkpoints")
    parser.add_argument("--out", default="runs", help="folder of the checkpoints")
    parser.add_argument("--resume", metavar="CHECKPOINT")
    parser.add_argument("--devices", type=int, default=1, help="processes")
    args = parser.parse_args()

    # With several devices, Lightning makes the process group later: the loaders take their rank at the first batch.
    train = precache.torch.Loader(args.cache, args.batch_size, shuffle=True, flip=True, normalize="imagenet")
    check = precache.torch.Loader(args.cache, args.batch_size, normalize="imagenet")
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        max_epochs=args.epochs, accelerator="cpu", devices=args.devices, strategy="ddp" if args.devices > 1 else "auto",
        callbacks=[ModelCheckpoint(args.out, every_n_train_steps=args.every, save_top_k=-1, save_last=True)],
        logger=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Classifier(train.dataset.num_classes), train, check, ckpt_path=args.resume)
    if trainer.is_global_zero:
        print(f"step {trainer.global_step}: accuracy {float(trainer.callback_metrics['accuracy']):.1%}")


if __name__ == "__main__":
    main()
