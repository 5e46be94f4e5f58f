# SPDX-License-Identifier: Apache-2.0
"""Two processes of torchrun: building, loaders before the process group, FSDP, timm's prefetching, compiled steps."""

import pytest
import torch

import precache
import precache.torch
from torchrun import torchrun

pytest_plugins = ("package_fixtures",)

PROGRAM = """
    import precache
    import precache.torch
    import torch
    import torch.distributed as dist

    images, out = sys.argv[2:]
    built = precache.build(images, out, size=(12, 10), fit="stretch", shards=3, jobs=1, wait=True)
    found = {"built": [built["status"], built["samples"], built["shards_resumed"]]}


    def numbers(batches):
        return [images[:, 2, 0, 0].tolist() for images, _ in batches]


    def make(**options):
        return precache.torch.Loader(out, 3, shuffle=True, **options)


    train = make(normalize="imagenet")
    early = make()
    found["early"] = [len(early), numbers(early)]
    dist.init_process_group("gloo")
    found["late"] = numbers(early)

    # A compiled step of a model that both processes share.
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(360, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    plain = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(360, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    plain.load_state_dict(model.state_dict())
    fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    loss_of = torch.compile(torch.nn.functional.cross_entropy, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    one = torch.optim.SGD(plain.parameters(), 0.01)
    whole = precache.torch.Loader(out, 6, shuffle=True, normalize="imagenet", rank=0, world_size=1)
    for epoch in range(2):
        train.sampler.set_epoch(epoch)
        for (pixels, labels), (all_pixels, all_labels) in zip(train, whole, strict=True):
            loss_of(model(pixels), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            loss_of(plain(all_pixels), all_labels).backward()
            one.step()
            one.zero_grad()
    weights = [value.full_tensor() for value in model.state_dict().values()]
    found["learned"] = all(torch.allclose(a, b, atol=1e-6) for a, b in zip(weights, plain.state_dict().values()))

    # The loader of timm's training script reads this one.
    try:
        from timm.data.loader import PrefetchLoader
    except ImportError:
        found["timm"] = None
    else:
        raw = precache.torch.Loader(out, 3, shuffle=True)
        loader = PrefetchLoader(raw, device=torch.device("cpu"))
        steps = []
        for epoch in range(2):
            for part in (loader.sampler, loader.batch_sampler):
                part.set_epoch(epoch)
            steps += [pixels for pixels, _ in loader]
        train.set_epoch(0)
        expected = [pixels for _ in range(2) for pixels, _ in train]
        equal = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(steps, expected, strict=True))
        found["timm"] = [len(loader), equal, loader.mixup_enabled, len(loader.dataset)]
    report(found)
    dist.destroy_process_group()
"""


def test_two_processes_build_and_train(stamps, tmp_path):
    ranks = torchrun(PROGRAM, tmp_path, stamps.out.parent / "images", tmp_path / "out")
    assert sorted(found["built"] for found in ranks) == [["complete", 23, 0], ["complete", 23, 3]]  # one has built
    for rank, found in enumerate(ranks):
        loader = precache.torch.Loader(tmp_path / "out", 3, shuffle=True, rank=rank, world_size=2)
        epochs = [[images[:, 2, 0, 0].tolist() for images, _ in loader] for _ in range(2)]
        assert found["early"] == [3, epochs[0]] and found["late"] == epochs[1]
        assert found["learned"]
        assert found["timm"] in (None, [3, True, False, 23])


@pytest.mark.parametrize("backend", ["torch", "jax"])  # docs/guides/keras.md runs with tensorflow
def test_keras_takes_loaders_on_every_backend(stamps, in_child, backend):
    pytest.importorskip("keras")
    program = """
        import sys
        import precache
        import precache.torch

        loader = precache.torch.Loader(sys.argv[1], 4, shuffle=True, dtype="float32")
        check = precache.Loader(sys.argv[1], 4, dtype="float32")
        import keras  # after the loaders were made

        seen = []
        loader._batch_transform = lambda images, labels: (seen.append(loader.epoch), (images, labels))[1]
        model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])
        model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(loader.forever(), steps_per_epoch=len(loader), epochs=3, shuffle=False, verbose=0,
                            validation_data=check.forever(), validation_steps=len(check))
        print(keras.backend.backend(), len(history.history["val_loss"]), *seen[:15])

        def note(images, labels):
            seen.append(images[:, 2, 0, 0].tolist())
            return images, labels

        train, again = (
            precache.Loader(sys.argv[1], 4, shuffle=True, dtype="float32", batch_transform=function)
            for function in (note, None)
        )
        seen.clear()
        history = model.fit(train, epochs=2, verbose=0, validation_data=check)
        expected = [images[:, 2, 0, 0].tolist() for _ in range(2) for images, _ in again]
        # Keras may read a first batch to see its shape; the epoch then begins again.
        print(len(history.history["val_loss"]), seen[-10:] == expected, seen[:-10] in ([], expected[:1]))
        images = precache.Loader(sys.argv[1], 4, dtype="float32", batch_transform=lambda images, labels: images)
        guesses = model.predict(images, verbose=0)
        whole = model.predict(precache.open(sys.argv[1])[:][0].astype("float32") / 255, verbose=0)
        metrics = model.evaluate(check, verbose=0, return_dict=True)
        print(abs(guesses - whole).max() < 1e-4, abs(metrics["loss"] - history.history["val_loss"][-1]) < 1e-4)
        try:
            model.fit(train, class_weight={0: 1.0}, verbose=0)
        except precache.InvalidArgument as error:
            print(error)
    """
    lines = in_child(program, stamps.out, KERAS_BACKEND=backend, CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu")
    assert lines[-4].split() == [backend, "3", *"000001111122222"]
    assert lines[-3:-1] == ["2 True True", "True True"]
    assert lines[-1] == "class_weight cannot be combined with a loader"


def test_a_compiled_loop_takes_shorter_batches(stamps):
    weights = torch.zeros(360, 3, requires_grad=True)

    @torch.compile(backend="aot_eager")
    def step(images, labels):
        return torch.nn.functional.cross_entropy(images.flatten(1) @ weights, labels)

    losses = [step(*batch) for batch in precache.torch.Loader(stamps.out, 4, normalize="imagenet")]
    torch.stack(losses).sum().backward()
    assert len(losses) == 6 and weights.grad.abs().sum() > 0
