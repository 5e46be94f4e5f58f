# SPDX-License-Identifier: Apache-2.0
"""Fixtures: images to pack into shards, and what the build of their folder gives."""

import pytest

from shard_sources import OPTIONS
from shards import Dataset


@pytest.fixture(scope="module")
def listed(animals):
    """(path, bytes, class, label) of every image of the folder, by path."""
    source, _ = animals
    found = sorted(str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in (".jpg", ".png"))
    classes = sorted(path.name for path in source.iterdir())
    return [
        (path, (source / path).read_bytes(), path.split("/")[0], classes.index(path.split("/")[0])) for path in found
    ]


@pytest.fixture(scope="module")
def expected(tool, animals, tmp_path_factory):
    """The samples of the folder's build."""
    out = tmp_path_factory.mktemp("animals") / "out"
    tool.build(animals[0], out, *OPTIONS)
    return Dataset(out)
