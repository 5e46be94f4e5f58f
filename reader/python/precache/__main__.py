# SPDX-License-Identifier: Apache-2.0
"""`python -m precache` and the console script `precache`: replaces this process by the command."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from precache._errors import Error
from precache._process import cannot_run, command_path


def main() -> int:
    """Runs the command in place of this process; returns only if it cannot be run."""
    try:
        _become(command_path())
    except Error as error:
        print(f"precache: {error.message}\n  {error.hint}", file=sys.stderr)
        return 3


def _become(command: str) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the command would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(command, ["precache", *sys.argv[1:]])
    except OSError as error:
        raise cannot_run(command, error) from None


if __name__ == "__main__":
    sys.exit(main())
