# SPDX-License-Identifier: Apache-2.0
"""Runs a program in one or several processes of torchrun, on the CPU."""

import json
import os
import socket
import subprocess
import sys
import textwrap

from conftest import TIMEOUT_SECONDS


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def torchrun(program, folder, *arguments, processes=2):
    """Returns the values that each process of the program gave to `report`, by rank."""
    path = folder / "program.py"
    path.write_text(PROLOGUE + textwrap.dedent(program))
    (reports := folder / "reports").mkdir(exist_ok=True)
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", processes, "--master-port", free_port()]
    words = [sys.executable, *map(str, (*launch, path, reports, *arguments))]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((reports / f"{rank}.json").read_text()) for rank in range(processes)]


PROLOGUE = """
import json, os, sys
from pathlib import Path


def report(value):
    Path(sys.argv[1], f"{os.environ['RANK']}.json").write_text(json.dumps(value))


"""
