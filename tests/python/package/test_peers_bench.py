# SPDX-License-Identifier: Apache-2.0
"""The benchmark of other loaders runs and lists the loaders that are not installed. Its figures do not matter here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from resources import comes_true

BENCH = Path(__file__).resolve().parents[2] / "bench" / "peers.py"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH.parent))
    import peers

    return peers


def test_peers_are_measured_and_the_data_is_removed(tmp_path):
    command = [sys.executable, BENCH, tmp_path, "--images", "512", "--rounds", "1", "--modes", "float16"]
    command += ["--only", "memmap", "precache.torch.Loader", "FFCV"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("| float16 |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d.]+) \| (\d+) ms \| ([\d,]+) MB \| \d \|$", table, re.MULTILINE)
    assert len(rows) == 3 + ("| FFCV |" in table), done.stdout
    assert {"precache.Loader", "precache.torch.Loader", "DataLoader, numpy memmap"} <= {row[0] for row in rows}
    assert all(int(row[1].replace(",", "")) > 0 and int(row[4].replace(",", "")) > 0 for row in rows)
    assert next(row[2] for row in rows if row[0] == "precache.Loader") == "1.00"
    assert ("| FFCV |" in done.stdout) != ("Not installed: FFCV." in done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_peer_that_hangs_is_killed_with_its_workers(peers, tmp_path, monkeypatch, capsys):
    program = tmp_path / "hangs.py"
    program.write_text(f"""
import subprocess, time
worker = subprocess.Popen(["sleep", "1000"])
open({str(tmp_path / "pid")!r}, "w").write(str(worker.pid))
time.sleep(1000)
""")
    monkeypatch.setattr(peers, "__file__", str(program))
    monkeypatch.setattr(peers, "RUN_SECONDS", 2)
    for with_memory in (False, True):
        assert peers.run("precache.Loader", "sequential", 1, tmp_path, with_memory) is None
        assert capsys.readouterr().err == "skipped precache.Loader (sequential, 1 workers): killed after 2 s\n"
        worker = int((tmp_path / "pid").read_text())
        assert comes_true(
            lambda: not os.path.exists(f"/proc/{worker}") or " Z " in Path(f"/proc/{worker}/stat").read_text()
        )


def test_rounds_that_fail_are_left_out(peers, tmp_path, monkeypatch, capsys):
    ours, *others = list(peers.PEERS)
    assert ours == peers.Ours.name
    first, second, third = others[:3]
    rates = {ours: [10, 20, 40], first: [None, 10, 20], second: [None, None, None], third: [5, None, None]}
    calls = {name: iter(rounds) for name, rounds in rates.items()}
    result = {"first": 0.001, "peak": 10**6, "workers": 1}

    def run(name, *_):
        rate = next(calls[name])
        return result | {"rate": rate} if rate else None

    monkeypatch.setattr(peers, "run", run)
    monkeypatch.setattr(peers, "tuned", lambda name, *_: result)
    for name in rates:
        monkeypatch.setattr(peers.PEERS[name], "modes", ["sequential"])
    peers.measure("sequential", list(rates), tmp_path, 3)
    rows = [line.split(" | ")[:3] for line in capsys.readouterr().out.splitlines()[3:]]
    assert rows == [[f"| {ours}", "20", "1.00"], [f"| {first}", "15", "0.50"], [f"| {third}", "5", "0.50"]]
    monkeypatch.setattr(peers, "run", lambda name, *_: None if name == ours else result | {"rate": 3})
    peers.measure("sequential", [ours, first], tmp_path, 2)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"| {first} | 3 | – |")
