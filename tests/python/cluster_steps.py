# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of builds in steps."""

OPTIONS = ("--size", "8", "--shards", "6", "--jobs", "1", "--max-bad", "50%", "--quiet")
RETRY = 3  # the exit status after which a retry helps


def work_folder(out):
    return out / ".precache" / "train"
