#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds shards on Spark: spark-submit spark_build.py SOURCE OUT --parts 64

Executors need the precache package, and must see SOURCE and OUT under these paths.
"""

import argparse

import precache.cluster
from pyspark.sql import SparkSession


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--parts", type=int, required=True, help="4 to 10 for each slot of the cluster")
    parser.add_argument("--size", type=int, default=224)
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("precache").getOrCreate()
    threads = int(spark.sparkContext.getConf().get("spark.task.cpus", "1"))
    job = precache.cluster.Job(
        arguments.source, arguments.out, parts=arguments.parts, jobs=threads, size=arguments.size
    )
    report = precache.cluster.run_on_spark(spark, job)
    print(f"{report['samples']} samples in {report['shards_done']} shards, {report['skipped']} skipped")
    spark.stop()


if __name__ == "__main__":
    main()
