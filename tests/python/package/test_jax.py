# SPDX-License-Identifier: Apache-2.0
"""Batches as JAX arrays: by jnp.asarray, and through DLPack."""

import numpy as np
import pytest

import precache

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytest_plugins = ("package_fixtures",)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("options", [{}, {"shuffle": "full"}, {"writable": True}], ids=str)
def test_asarray(stamps, dtype, options):
    loader = precache.Loader(stamps.out, 4, dtype=dtype, **options)
    expected = precache.Loader(stamps.out, 4, dtype=dtype, **options)
    kept = [(jnp.asarray(images), jnp.asarray(labels)) for images, labels in loader]
    list(loader)
    for (images, labels), (array, numbers) in zip(kept, expected, strict=True):
        assert images.dtype == array.dtype and np.asarray(images).tobytes() == array.tobytes()
        assert labels.tolist() == numbers.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_dlpack(stamps, dtype):
    loader = precache.Loader(stamps.out, 4, dtype=dtype, writable=True)
    arrays = [(jnp.from_dlpack(images), images.copy()) for images, _ in loader]
    for _ in range(5):
        list(loader)  # buffers that JAX holds are not reused
    for array, expected in arrays:
        assert array.dtype == expected.dtype and (np.asarray(array) == expected).all()


@pytest.mark.parametrize("batch_size", [1, 11])
def test_dlpack_takes_every_shuffled_batch(stamps, batch_size):
    for images, _ in precache.Loader(stamps.out, batch_size, shuffle="full", last_batch="keep"):
        assert (np.asarray(jnp.from_dlpack(images)) == images).all()


def test_a_step_is_compiled(stamps):
    @jax.jit
    def step(weights, images, labels):
        def loss(weights):
            logits = images.reshape(len(images), -1) @ weights
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        return weights - 0.1 * gradient, value

    weights = jnp.zeros((360, 3))
    losses = []
    for _ in range(10):
        for images, labels in precache.Loader(stamps.out, 4, shuffle="full", normalize="imagenet"):
            weights, value = step(weights, jnp.asarray(images), jnp.asarray(labels))
            losses.append(float(value))
    assert len(losses) == 50 and np.isfinite(losses).all()
