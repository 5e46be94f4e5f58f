#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds shards with submitit, which runs Python functions as Slurm jobs: python submitit_build.py SOURCE OUT --parts 64

Nodes need the precache package, and must see SOURCE, OUT and the folder of the logs under these paths.
"""

import argparse

import precache.cluster
import submitit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--parts", type=int, required=True, help="4 to 10 for each job that runs at a time")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--cpus", type=int, default=8, help="CPUs and threads of each part")
    parser.add_argument("--memory-gb", type=float, default=8)
    parser.add_argument("--logs", default="precache-logs")
    parser.add_argument("--cluster", default="slurm", help="'local' runs all on this machine")
    arguments = parser.parse_args()

    executor = submitit.AutoExecutor(folder=arguments.logs, cluster=arguments.cluster)
    executor.update_parameters(
        name="precache", cpus_per_task=arguments.cpus, mem_gb=arguments.memory_gb, timeout_min=60
    )
    job = precache.cluster.Job(
        arguments.source, arguments.out, parts=arguments.parts, jobs=arguments.cpus, size=arguments.size
    )
    executor.submit(job.prepare).result()
    results = [part.result() for part in executor.map_array(job.run, range(job.parts))]
    report = executor.submit(job.finish).result()
    hosts = len({result.host for result in results})
    print(f"{report['samples']} samples in {report['shards_done']} shards, made on {hosts} hosts")


if __name__ == "__main__":
    main()
