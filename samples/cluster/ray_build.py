#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds shards on Ray: python ray_build.py SOURCE OUT --parts 64 --address auto

Nodes need the precache package, and must see SOURCE and OUT under these paths.
"""

import argparse

import precache.cluster
import ray


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--parts", type=int, required=True, help="4 to 10 for each slot of the cluster")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--cpus", type=int, default=1, help="CPUs and threads of each part")
    parser.add_argument("--address", default="auto", help="of the cluster")
    arguments = parser.parse_args()

    ray.init(address=arguments.address)
    job = precache.cluster.Job(
        arguments.source, arguments.out, parts=arguments.parts, jobs=arguments.cpus, size=arguments.size
    )
    report = precache.cluster.run_on_ray(job)
    print(f"{report['samples']} samples in {report['shards_done']} shards, {report['skipped']} skipped")
    ray.shutdown()


if __name__ == "__main__":
    main()
