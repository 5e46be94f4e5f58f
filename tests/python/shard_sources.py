# SPDX-License-Identifier: Apache-2.0
"""Shared by tests that build from shards: how they build, pack and compare."""

import subprocess

from reference import SMALL
from shards import Dataset, arrays_of, assert_equal_arrays, labels_of
from tool import differing, files

OPTIONS = (*SMALL.options(), "--shards", "3")


def key_of(path):
    return path.removesuffix(".jpg").removesuffix(".png")


def assert_same_samples(out, expected, rename=lambda key: key):
    """Checks for equal tensors and labels under the same keys, or under the keys that `rename` returns."""
    found, wanted = Dataset(out).samples(), expected.samples()
    assert_equal_arrays({rename(key): array for key, array in arrays_of(wanted).items()}, arrays_of(found))
    assert labels_of(found) == {rename(key): label for key, label in labels_of(wanted).items()}


def gnu_tar(target, folder, *options):
    subprocess.run(["tar", *options, "-cf", target, "-C", folder, "."], check=True)


def without_report(folder):
    """All files but the list of bad samples, which names where they came from."""
    return {name: data for name, data in files(folder).items() if name != "skipped.tsv"}


def assert_same_dataset(out, other):
    assert differing(without_report(out), without_report(other)) == []
