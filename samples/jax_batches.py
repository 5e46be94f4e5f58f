#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes batches to JAX by DLPack, without a copy.

samples/jax_batches.py CACHE     # CACHE was made by `precache build`
"""

import argparse

import jax
import jax.numpy as jnp

import precache


@jax.jit
def mean_of_channels(images):
    return images.astype(jnp.float32).mean(axis=(0, 2, 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    # DLPack needs batches that own their memory. Shuffled batches do; without a shuffle, pass writable=True.
    loader = precache.Loader(args.cache, args.batch_size, shuffle="full", normalize="imagenet", layout="chw")
    for batch, (images, labels) in enumerate(loader):
        on_device = jnp.from_dlpack(images)  # the batch itself; its memory is not reused while JAX holds it
        shared = on_device.unsafe_buffer_pointer() == images.ctypes.data
        means = ", ".join(f"{mean:+.3f}" for mean in mean_of_channels(on_device))
        print(
            f"batch {batch}: {on_device.shape} {on_device.dtype}, {'not copied' if shared else 'copied'}, means {means}"
        )


if __name__ == "__main__":
    main()
