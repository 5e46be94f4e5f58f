#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with the Trainer of transformers, which resumes from its checkpoints.

samples/train_transformers.py CACHE [--resume]     # CACHE is made by `precache build`
"""

import argparse

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

import precache.torch


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
                                     nn.Linear(256, classes))  # fmt: skip

    def forward(self, pixel_values, labels):
        logits = self.network(pixel_values)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class CacheTrainer(Trainer):
    def loader(self, **options):
        device = self.args.device if self.args.device.type == "cuda" else None
        return precache.torch.Loader(self.cache, self.args.train_batch_size, normalize="imagenet", device=device,
                                     as_dict=("pixel_values", "labels"), seed=self.args.seed, **options)  # fmt: skip

    def get_train_dataloader(self):
        return self.loader(shuffle=True, flip=True)

    def get_eval_dataloader(self, eval_dataset=None):
        return self.loader()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=-1, help="stop after so many steps")
    parser.add_argument("--out", default="runs")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    settings = TrainingArguments(
        args.out, num_train_epochs=args.epochs, max_steps=args.steps, per_device_train_batch_size=args.batch_size, save_steps=4,
        learning_rate=3e-3, logging_steps=10, report_to="none", use_cpu=not torch.cuda.is_available(), disable_tqdm=True,
    )  # fmt: skip
    torch.manual_seed(0)
    trainer = CacheTrainer(
        Classifier(precache.open(args.cache).num_classes), settings,
        compute_metrics=lambda result: {"accuracy": (result.predictions.argmax(1) == result.label_ids).mean()},
    )  # fmt: skip
    trainer.cache = args.cache
    trainer.train(resume_from_checkpoint=args.resume)
    metrics = trainer.evaluate(eval_dataset=trainer.get_eval_dataloader().dataset)
    print(f"step {trainer.state.global_step}: accuracy {metrics['eval_accuracy']:.1%}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # or its threads may outlive the interpreter


if __name__ == "__main__":
    main()
