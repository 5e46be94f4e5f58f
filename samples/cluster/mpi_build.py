#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds shards with MPI: mpiexec -n 9 python -m mpi4py.futures mpi_build.py SOURCE OUT --parts 64

One process hands out the parts, the others make them. Without Python, the same by the command:
mpiexec -n 8 precache build SOURCE OUT --part auto
"""

import argparse

import precache.cluster
from mpi4py.futures import MPIPoolExecutor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--parts", type=int, required=True, help="4 to 10 for each process")
    parser.add_argument("--size", type=int, default=224)
    arguments = parser.parse_args()

    job = precache.cluster.Job(arguments.source, arguments.out, parts=arguments.parts, size=arguments.size)
    job.prepare()
    with MPIPoolExecutor() as executor:
        images = sum(result.images for result in executor.map(job.run, range(job.parts), unordered=True))
    report = job.finish()
    print(f"{report['samples']} samples in {report['shards_done']} shards, {images} images in this run")


if __name__ == "__main__":
    main()
