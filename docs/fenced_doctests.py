# SPDX-License-Identifier: Apache-2.0
"""Shows the doctests of docstrings as code: mkdocstrings takes them for quotations otherwise."""

import re

import griffe

DOCTEST = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*(?!>>> )\S.*\n?)*)+", re.MULTILINE)


class FencedDoctests(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(_fenced, obj.docstring.value)


def _fenced(match):
    return f"```pycon\n{match[0].rstrip()}\n```\n"
