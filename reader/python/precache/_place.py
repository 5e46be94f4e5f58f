# SPDX-License-Identifier: Apache-2.0
"""Which process of a distributed program this is."""

from __future__ import annotations

import os
import sys

from ._errors import InvalidArgument


def current_place() -> tuple[int, int]:
    """Rank and world size: those of torch's process group, of JAX, or of the launcher, whichever the program uses.

    It imports and initialises nothing: a program that uses torch or JAX has imported it.
    """
    groups = sys.modules.get("torch.distributed")
    if groups is not None and groups.is_available() and groups.is_initialized():
        return groups.get_rank(), groups.get_world_size()
    jax = sys.modules.get("jax")
    if jax is not None and _is_distributed(jax):
        return jax.process_index(), jax.process_count()
    return _launched_place()


def _is_distributed(jax: object) -> bool:
    distributed = getattr(jax, "distributed", None)  # missing while jax is being imported
    return distributed is not None and bool(distributed.is_initialized())


def _launched_place() -> tuple[int, int]:
    """As torchrun and other launchers set it, before the program has made its process group."""
    texts = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not all(texts):
        return 0, 1
    try:
        rank, world_size = map(int, texts)
    except ValueError:
        rank, world_size = -1, 0
    if not 0 <= rank < world_size:
        raise InvalidArgument(
            f"the environment variables RANK={texts[0]!r} and WORLD_SIZE={texts[1]!r} are not a rank and a world size",
            hint="Correct or unset them, or give the loader rank and world_size.",
        )
    return rank, world_size
