# SPDX-License-Identifier: Apache-2.0
"""Runs `inspect` and checks the form of what it prints."""

import json
from pathlib import Path

import jsonschema

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "formats" / "inspect.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)


def parse(stdout):
    """The facts of each path, in UTF-8 and as the schema says."""
    report = json.loads(stdout.decode("utf-8"))
    jsonschema.validate(report, SCHEMA, jsonschema.Draft202012Validator)
    return report["paths"]


def inspect_one(run, path, *options, expect=0):
    (facts,) = parse(run("inspect", path, "--json", *options, expect=expect).stdout)
    return facts
