#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds shards on Dask: python dask_build.py SOURCE OUT --parts 64 --scheduler tcp://HOST:8786

Workers need the precache package, and must see SOURCE and OUT under these paths.
"""

import argparse

import precache.cluster
from distributed import Client


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--parts", type=int, required=True, help="4 to 10 for each slot of the cluster")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--scheduler", required=True, help="address of the scheduler")
    arguments = parser.parse_args()

    with Client(arguments.scheduler) as client:
        job = precache.cluster.Job(arguments.source, arguments.out, parts=arguments.parts, size=arguments.size)
        report = precache.cluster.run_on_dask(client, job)
    print(f"{report['samples']} samples in {report['shards_done']} shards, {report['skipped']} skipped")


if __name__ == "__main__":
    main()
