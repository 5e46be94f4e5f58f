# SPDX-License-Identifier: Apache-2.0
"""Slurm with three nodes of one CPU on this machine, without systemd and control groups."""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from engines import free_ports, is_running, wait_until

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# Without cred_expire a requeued job waits for two minutes.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0
KillWait=2
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=500 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=500 State=UNKNOWN
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs=1 RealMemory=500 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP
"""


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def name_of(process):
    return Path(f"/proc/{process}/comm").read_text().strip()


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        for name in [name for name in self.environment if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.environment[name]

    def __enter__(self):
        (self.folder / "munge").mkdir(parents=True, mode=0o700)
        (self.folder / "state").mkdir()
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname(), user=getpass.getuser(), folder=self.folder, ports=free_ports(4)
            )
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # slurmd stops if it finds none
        try:
            munge = {"key-file": key, "num-threads": 2}
            munge |= {f"{name}-file": self.folder / "munge" / name for name in ("pid", "log", "seed")}
            munge["socket"] = self.folder / "munge" / "socket"
            self.call("munged", "--force", *(f"--{name}={value}" for name, value in munge.items()))
            self.call("slurmctld", "-i")
            for node in ("n1", "n2", "n3"):
                self.call("slurmd", "-N", node)
            wait_until(lambda: self.call("sinfo", "-h", "-o", "%D %t").split() == ["3", "idle"], "nodes start")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def call(self, *words, **options):
        """Runs a program and returns what it prints."""
        words = [shutil.which(words[0]) or f"/usr/sbin/{words[0]}", *map(str, words[1:])]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def jobs(self):
        """The jobs that are not at their end: by number or ARRAY_TASK, their state and node."""
        lines = self.call("squeue", "-h", "-r", "-o", "%i|%T|%N").splitlines()
        return {line.split("|")[0]: line.split("|")[1:] for line in lines}

    def wait_for_jobs(self):
        wait_until(lambda: not self.jobs(), "jobs run")

    def state_of(self, job):
        words = self.call("scontrol", "show", "job", "-o", job).split()
        return next(word.removeprefix("JobState=") for word in words if word.startswith("JobState="))

    def lose_node(self, node):
        """Kills the daemon of a node and all that it runs, and does what slurmctld does when it notices."""
        daemon = int((self.folder / f"slurmd.{node}.pid").read_text())
        processes = [*self._processes_on(node)]
        # First those that would tell slurmctld of the end of the others.
        watchers = [parent for parent in map(parent_of, processes) if name_of(parent) == "slurmstepd"]
        for process in [daemon, *watchers, *processes]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.call("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def _processes_on(self, node):
        """The processes of jobs on a node: they have its name in their environment."""
        for folder in os.scandir("/proc"):
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                with contextlib.suppress(OSError):
                    with open(f"/proc/{folder.name}/environ", "rb") as file:
                        variables = file.read().split(b"\0")
                    mine = b"SLURM_CONF=" + os.fsencode(self.environment["SLURM_CONF"])
                    if mine in variables and b"SLURMD_NODENAME=" + node.encode() in variables:
                        yield int(folder.name)

    def stop(self):
        with contextlib.suppress(Exception):
            self.call("scancel", "--user", getpass.getuser())
            wait_until(lambda: not self.jobs(), "jobs end")
        for name in ("slurmd.n1.pid", "slurmd.n2.pid", "slurmd.n3.pid", "slurmctld.pid", "munge/pid"):
            with contextlib.suppress(OSError, ValueError):
                daemon = int((self.folder / name).read_text())
                os.kill(daemon, signal.SIGTERM)
                wait_until(lambda: not is_running(daemon), "a daemon ends")
