# SPDX-License-Identifier: Apache-2.0
"""`python -m precache` and the console script `precache`: the command itself, in place of this process."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from precache._errors import Error
from precache._process import cannot_run, command_path


def main() -> int:
    """Becomes the command; returns only if there is none."""
    try:
        _become(command_path())
    except Error as error:
        print(f"precache: {error.message}\n  {error.hint}", file=sys.stderr)
        return 3


def _become(command: str) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would hand that down
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(command, ["precache", *sys.argv[1:]])
    except OSError as error:
        raise cannot_run(command, error) from None


if __name__ == "__main__":
    sys.exit(main())
