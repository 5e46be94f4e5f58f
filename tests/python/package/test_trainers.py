# SPDX-License-Identifier: Apache-2.0
"""Lightning and the Trainer of transformers in two processes: which samples they train on, evaluation, and resuming."""

import json
import math

import numpy as np
import pytest
from PIL import Image

import precache
import precache.torch
from torchrun import torchrun

pytest_plugins = ("package_fixtures",)

SAMPLES, BATCH = 46, 3  # two ranks have eight steps, the last one of two samples each
STEPS = math.ceil(SAMPLES / (2 * BATCH))

LIGHTNING = """
    import lightning
    import precache.torch
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint

    folder, out = sys.argv[2:]


    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.trained, self.checked = [], []

        def training_step(self, batch, _):
            images, labels = batch
            self.trained.append([self.trainer.current_epoch, images[:, 0, 0, 0].tolist()])
            return torch.nn.functional.cross_entropy(self.layer(images.float().mean((2, 3)) / 255), labels)

        def validation_step(self, batch, _):
            self.checked += batch[0][:, 0, 0, 0].tolist()

        def predict_step(self, batch, _):
            return batch[1]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)


    def fit(train, epochs, resume=None, **options):
        module = Module()
        trainer = lightning.Trainer(
            max_epochs=epochs, accelerator="cpu", strategy="ddp", devices=2, logger=False, enable_progress_bar=False,
            enable_model_summary=False, num_sanity_val_steps=0,
            callbacks=[ModelCheckpoint(out, "{step}", every_n_train_steps=3, save_top_k=-1)], **options)
        trainer.fit(module, train, precache.torch.Loader(folder, 3), ckpt_path=resume)
        return module, trainer


    def make():
        return precache.torch.Loader(folder, 3, shuffle=True, drop_last=False)


    module, trainer = fit(make(), 2)
    found = {"trained": module.trained, "checked": module.checked, "steps": trainer.global_step}
    again, trainer = fit(make(), 2, f"{out}/step=12.ckpt")
    found |= {"resumed": again.trained, "resumed steps": trainer.global_step}
    found["equal"] = torch.equal(again.layer.weight, module.layer.weight)
    stored, _ = fit(precache.torch.Loader(folder, 3), 2, overfit_batches=2)
    found["overfitted"] = stored.trained
    found["predicted"] = len(trainer.predict(module, precache.torch.Loader(folder, 3)))
    report(found)
    # Ends here: a thread of gloo that frees a tensor while the interpreter ends aborts the process now and then.
    torch.distributed.destroy_process_group()
    os._exit(0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A cache of images; the number of each is in its pixels."""
    folder = tmp_path_factory.mktemp("trainers")
    for i in range(SAMPLES):
        path = folder / "images" / "abc"[i % 3] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(path)
    precache.build(folder / "images", folder / "cache", size=8, shuffle=False, progress=False)
    return folder / "cache"


def epochs_of(folder, rank):
    loader = precache.torch.Loader(folder, BATCH, shuffle=True, drop_last=False, rank=rank, world_size=2)
    return [[images[:, 0, 0, 0].tolist() for images, _ in loader] for _ in range(2)]


def test_lightning_shares_an_epoch_between_processes(folder, tmp_path):
    pytest.importorskip("lightning")
    ranks = torchrun(LIGHTNING, tmp_path, folder, tmp_path / "out")
    checked = []
    for rank, found in enumerate(ranks):
        expected = [[epoch, batch] for epoch, batches in enumerate(epochs_of(folder, rank)) for batch in batches]
        assert found["trained"] == expected and found["steps"] == 2 * STEPS
        assert found["resumed"] == expected[12:] and found["resumed steps"] == 2 * STEPS and found["equal"]
        assert found["predicted"] == STEPS
        stored = [int(image[0, 0, 0]) for image, _ in precache.open(folder)]
        steps = [stored[6 * step + 3 * rank :][:3] for step in range(2)]
        assert found["overfitted"] == [[epoch, step] for epoch in range(2) for step in steps]
        checked += found["checked"]
    assert sorted(checked) == sorted([*range(SAMPLES)] * 2)  # in two epochs


FORKED = """
    import json, sys
    from pathlib import Path

    import lightning
    import precache.torch
    import torch


    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.trained = []

        def training_step(self, batch, _):
            images, labels = batch
            self.trained.append(images[:, 0, 0, 0].tolist())
            return torch.nn.functional.cross_entropy(self.layer(images.float().mean((2, 3)) / 255), labels)

        def on_train_end(self):
            Path(sys.argv[2], f"{self.trainer.global_rank}.json").write_text(json.dumps(self.trained))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)


    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", strategy="ddp_fork", devices=2, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False)
    trainer.fit(Module(), precache.torch.Loader(sys.argv[1], 3, shuffle=True, drop_last=False))
"""


def test_lightning_may_fork_after_the_loader_was_made(folder, tmp_path, in_child):
    pytest.importorskip("lightning")
    in_child(FORKED, folder, tmp_path, OMP_NUM_THREADS="1")
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == sum(epochs_of(folder, rank), [])


TRANSFORMERS = """
    import precache.torch
    import torch
    from transformers import Trainer, TrainingArguments

    folder, out = sys.argv[2:]
    seen = []


    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, pixel_values, labels):
            if self.training:
                seen.append(pixel_values[:, 0, 0, 0].tolist())
            logits = self.layer(pixel_values.float().mean((2, 3)) / 255)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


    class CacheTrainer(Trainer):
        def get_train_dataloader(self):
            loader = precache.torch.Loader(folder, self.args.train_batch_size, shuffle=True, drop_last=False,
                                           as_dict=("pixel_values", "labels"), num_workers=2)
            return self.accelerator.prepare(loader)

        def get_eval_dataloader(self, eval_dataset=None):
            loader = precache.torch.Loader(folder, self.args.eval_batch_size, as_dict=("pixel_values", "labels"))
            return self.accelerator.prepare(loader)


    def make(**options):
        arguments = TrainingArguments(
            out, num_train_epochs=2, per_device_train_batch_size=3, per_device_eval_batch_size=4, save_steps=6,
            learning_rate=0.1, optim="sgd", report_to="none", use_cpu=True, disable_tqdm=True, seed=0, data_seed=0,
            eval_strategy="steps", eval_steps=5, **options)
        return CacheTrainer(Model(), arguments, eval_dataset=precache.open(folder),
                            compute_metrics=lambda result: {"labels": result.label_ids.tolist()})


    trainer = make()
    trainer.train()
    found = {"seen": list(seen), "steps": trainer.state.global_step}
    found["checked"] = [entry["eval_labels"] for entry in trainer.state.log_history if "eval_labels" in entry]
    found["labels"] = trainer.evaluate(eval_dataset=precache.open(folder))["eval_labels"]
    found["rate"] = trainer.lr_scheduler.get_last_lr()[0]
    weights = trainer.model.layer.weight.detach().clone()
    seen.clear()
    again = make()
    again.train(resume_from_checkpoint=f"{out}/checkpoint-12")
    found |= {"resumed": list(seen), "resumed steps": again.state.global_step}
    found["equal"] = torch.equal(again.model.layer.weight, weights)
    report(found)
    # Ends here: a thread of gloo that frees a tensor while the interpreter ends aborts the process now and then.
    torch.distributed.destroy_process_group()
    os._exit(0)
"""


def test_the_trainer_shares_an_epoch_between_processes(folder, tmp_path):
    pytest.importorskip("transformers")
    for rank, found in enumerate(torchrun(TRANSFORMERS, tmp_path, folder, tmp_path / "out")):
        expected = [batch for batches in epochs_of(folder, rank) for batch in batches]
        assert found["seen"] == expected and found["steps"] == 2 * STEPS
        assert found["labels"] == precache.open(folder).targets  # each once, in the stored order
        assert len(found["checked"]) >= 2 * STEPS // 5  # while it trained
        assert all(labels == found["labels"] for labels in found["checked"])
        assert found["rate"] == 0  # the end of the schedule
        assert found["resumed"] == expected[12:] and found["resumed steps"] == 2 * STEPS and found["equal"]
