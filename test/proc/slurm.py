# slurm.py - a real Slurm with one node, in a folder of its own
# SPDX-License-Identifier: BSD-3-Clause
"""Runs munged, slurmctld and slurmd of Debian's slurm-wlm as the user of the
tests.

    with Slurm(folder) as slurm:
        slurm.env # for srun and sbatch"""
import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time

from rig import Skip, wait_until

START_S = 60
CONF = """
ClusterName=sumwire
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={d_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
SlurmdParameters=config_overrides
MessageTimeout=90
TCPTimeout=60
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    """Return a port below the kernel's ephemeral range, so that it stays free
    until the program that needs it starts, some seconds later."""
    while True:
        port = random.randrange(11000, 32000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def find(name):
    path = shutil.which(name, path="/usr/sbin:/sbin:" + os.environ["PATH"])
    if not path:
        raise Skip(f"{name} is not installed (test/packages)")
    return path


class Slurm:
    def __init__(self, folder):
        self.dir = os.path.join(folder, "slurm")
        self.host = socket.gethostname().split(".")[0]
        self.daemons = []
        self.programs = {n: find(n) for n in
                         ("munged", "slurmctld", "slurmd", "srun", "sbatch",
                          "sinfo")}

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self):
        for name in ("", "state", "spool"):
            os.mkdir(self.path(name))
        with open(self.path("munge.key"), "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(self.path("munge.key"), 0o600)
        with open(self.path("slurm.conf"), "w", encoding="ascii") as f:
            f.write(CONF.format(
                host=self.host, dir=self.dir, ctld_port=free_port(),
                d_port=free_port(), user=pwd.getpwuid(os.getuid()).pw_name))
        self.env = dict(os.environ, SLURM_CONF=self.path("slurm.conf"))
        self.env.pop("SUMWIRE_LAUNCHER", None)

    def start(self, name, *args):
        with open(self.path(name + ".start"), "wb") as log:
            self.daemons.append(subprocess.Popen(
                [self.programs[name], *args], env=self.env, stdout=log,
                stderr=log, stdin=subprocess.DEVNULL))

    def is_idle(self):
        dead = [p.args[0] for p in self.daemons if p.poll() is not None]
        if dead:
            raise Skip(f"{dead[0]} does not start here: {self.last_words()}")
        out = subprocess.run([self.programs["sinfo"], "-h", "-o", "%T"],
                             env=self.env, capture_output=True, text=True,
                             check=False, timeout=START_S)
        return out.stdout.strip() == "idle"

    def last_words(self):
        words = []
        for name in sorted(os.listdir(self.dir)):
            if name.endswith((".log", ".start")):
                with open(self.path(name), encoding="utf-8",
                          errors="replace") as f:
                    words += [f"{name}: {line.strip()}" for line in
                              f.read().splitlines()[-2:]]
        return "; ".join(words)

    def cancel(self):
        """Cancel jobs that a failed test has left."""
        subprocess.run([find("scancel"), "-f", "-s", "KILL", "-u",
                        str(os.getuid())], env=self.env, check=False,
                       capture_output=True, timeout=START_S)

    def stop(self):
        for p in reversed(self.daemons):
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait(10)

    def __enter__(self):
        self.write()
        try:
            self.start("munged", "--foreground", "--force",
                       "--key-file", self.path("munge.key"),
                       "--socket", self.path("munge.sock"),
                       "--pid-file", self.path("munged.pid"),
                       "--log-file", self.path("munged.log"),
                       "--seed-file", self.path("munge.seed"))
            end = time.monotonic() + START_S
            while not os.path.exists(self.path("munge.sock")):
                if self.daemons[0].poll() is not None or \
                        time.monotonic() > end:
                    raise Skip(f"munged does not start: {self.last_words()}")
                time.sleep(0.02)
            self.start("slurmctld", "-D", "-c")
            self.start("slurmd", "-D", "-N", self.host)
            wait_until(self.is_idle, START_S, "idle Slurm node")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            print(self.last_words(), flush=True)
            self.cancel()
        self.stop()
