# SPDX-License-Identifier: Apache-2.0
"""What this process holds of the files in a folder, and the threads of loaders."""

import os
import time

from conftest import TIMEOUT_SECONDS


def mappings_of(folder):
    """Mappings of files in a folder, in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        return [line for line in maps if str(folder) in line]


def descriptors_of(folder):
    """Open files in a folder, in this process."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # the one that listed them
            pass
    return [link for link in links if str(folder) in link]


def loader_threads():
    """The numbers of the threads of loaders in this process."""
    found = set()
    for number in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{number}/comm") as file:
                if file.read().strip() == "precache":
                    found.add(number)
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            pass
    return found


def comes_true(condition):
    """Waits for what is bound to happen: a thread that was begun names itself, one that has ended is no longer listed."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()
