# SPDX-License-Identifier: Apache-2.0
"""Lists mappings and descriptors of files in a folder, and the threads of loaders, in this process."""

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
        except FileNotFoundError:  # the descriptor of the listing itself
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
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            pass
    return found


def comes_true(condition):
    """Waits until a condition holds: a new thread sets its name, a thread that ended is no longer listed."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()
