# proc_idle.py - idle lcores leave their cores to other threads
# SPDX-License-Identifier: BSD-3-Clause
"""Agents sum for each other over udp, as torch's backend starts them. The tests
count the sleeps and the CPU time of each lcore."""
import contextlib
import os
import re
import subprocess
import sys

import rig
from hosts import Lo
from rig import check, wait_until

LIMIT_S = 60
SLEEPS = 50
REST_NS = 10_000_000  # the longest sleep (apps/node/idle.c)
HOG = "while True: pass"
rig.LCORE = {}  # here they poll as long as those of users


class Lcore:
    """The polling thread of a process."""

    def __init__(self, pid):
        for task in os.listdir(f"/proc/{pid}/task"):
            self.path = f"/proc/{pid}/task/{task}"
            if self.read("comm").startswith("rte-worker"):
                return
        raise rig.Failure(f"process {pid} has no polling thread")

    def read(self, name):
        with open(f"{self.path}/{name}", encoding="ascii") as f:
            return f.read()

    def sleeps(self):
        return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)",
                             self.read("status")).group(1))

    def cpu_ns(self):
        return int(self.read("schedstat").split()[0])


def start(net, *args):
    """Start a client at each agent, make a step, and return the lcores."""
    clients = [net.client(0, *rig.SMALL, *args, agent=a) for a in net.agents]
    for c in clients:
        c.say()
    for c in clients:
        c.await_out(r"step 0 exact")
    return clients, [Lcore(net.daemons[a].pid) for a in net.agents]


def test_sleeps_while_idle():
    with Lo(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        clients, lcores = start(net, "--steps", "2", "--pause")
        for lcore in lcores:
            before, cpu_ns = lcore.sleeps(), lcore.cpu_ns()
            wait_until(lambda: lcore.sleeps() >= before + SLEEPS, LIMIT_S,
                       "sleeps")
            each = (lcore.cpu_ns() - cpu_ns) / SLEEPS
            check(each < REST_NS / 5, f"{each} ns of CPU time a sleep")
        for c in clients:
            c.say()
        for c in clients:
            c.wait_ok()


@contextlib.contextmanager
def hog_of(cpu):
    """Start a process that computes on that CPU."""
    with subprocess.Popen([sys.executable, "-c", HOG]) as p:
        try:
            os.sched_setaffinity(p.pid, [cpu])
            yield
        finally:
            p.kill()


def test_sums_on_a_shared_core():
    """All lcores share one CPU with a busy process: they sleep, so that the
    scheduler does not delay them, and none misses a frame."""
    cpu = max(os.sched_getaffinity(0))
    with Lo(agents=2, servers=0, colocated=True) as net, hog_of(cpu):
        for ini in net.ini.values():
            ini["lcore"] = {"cpus": str(cpu)}
        net.start_all()
        rig.run_steps(net, *rig.SMALL, steps=200)


if __name__ == "__main__":
    rig.main(dict(globals()))
