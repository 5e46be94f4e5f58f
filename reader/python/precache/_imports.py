# SPDX-License-Identifier: Apache-2.0
"""Calls a function as soon as a program imports a module, so that precache need not import it."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it adds a call to what the other finders return."""

    def __init__(self, name: str, call: Callable[[], None]):
        self._name = name
        self._call = call

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute, call = spec.loader.exec_module, self._call

            def execute_and_call(module: Any) -> None:
                execute(module)
                call()

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


def when_imported(name: str, call: Callable[[], None]) -> None:
    """Calls now if the module is loaded, and whenever it is imported later."""
    if name in sys.modules:
        call()
    sys.meta_path.insert(0, _Finder(name, call))
