# torch_ft.py - torchft's manager and lighthouse over sumwire, with dying replicas
# SPDX-License-Identifier: BSD-3-Clause
"""torch_frameworks.py installs torchft."""
import os

import torch_rig
from backend_rig import main
from torch_frameworks import Ranks, frameworks
from torch_machines import Machines
import forks
import lan
import rig
from rig import check
from slurm import free_port

TRAIN = os.path.join(torch_rig.HERE, "ft_train.py")
LIMIT_S = 90
# Options of a lighthouse: a replica counts as dead after 2 s of silence.
LIGHTHOUSE = """\
import sys, time
from torchft.coordination import LighthouseServer
server = LighthouseServer(bind=sys.argv[1], min_replicas=1, join_timeout_ms=2000,
                          heartbeat_timeout_ms=2000)
print("ready", flush=True)
time.sleep(3600)
"""


class Replica:
    """A process that trains, and its output so far."""

    def __init__(self, net, i, number):
        self.process = net.start_replica(i, f"replica{i}.{number}")
        self.i = i

    def steps(self):
        """Return (participants, weights) by step."""
        lines = [line.split() for line in self.process.out().splitlines()]
        return {int(w[1]): (int(w[2]), w[3]) for w in lines
                if w[:1] == ["step"] and len(w) == 4}

    def participants(self):
        """Return the participants of its last step; 0 before the first."""
        steps = self.steps()
        return steps[max(steps)][0] if steps else 0


class Job:
    """The replicas of a net that has start_replica()."""

    def __init__(self, net, n):
        self.net = net
        self.n_starts = 0
        self.all = []
        self.replicas = {i: self.start(i) for i in range(n)}

    def start(self, i):
        self.n_starts += 1
        replica = Replica(self.net, i, self.n_starts)
        self.all.append(replica)
        return replica

    def await_participants(self, n):
        """Wait until n replicas train together."""
        for replica in self.replicas.values():
            rig.wait_until(lambda r=replica: r.participants() == n, LIMIT_S,
                           f"{n} participants at replica {replica.i}")

    def kill_and_replace(self, i):
        """Kill a replica: the others continue without it, and with its
        replacement."""
        n = len(self.replicas)
        victim = self.replicas.pop(i)
        victim.process.kill()
        self.await_participants(n - 1)
        self.replicas[i] = self.start(i)
        self.await_participants(n)

    def finish(self):
        """Check that all end well, and that at each step all participants had
        the same weights."""
        with open(self.net.path("tmp/stop"), "w", encoding="ascii"):
            pass
        for replica in self.replicas.values():
            replica.process.wait_ok(LIMIT_S)
        n_shared, seen = 0, {}
        for replica in self.all:
            for step, (_, weights) in replica.steps().items():
                n_shared += step in seen
                check(seen.setdefault(step, weights) == weights,
                      f"step {step}: weights {weights} at replica {replica.i}, "
                      f"{seen[step]} at another")
        check(n_shared > 10, f"{n_shared} steps were shared")


def run_all(net, n):
    net.start_lighthouse()
    job = Job(net, n)
    job.await_participants(n)
    for i in range(n):
        job.kill_and_replace(i)
    job.finish()


class OneMachine(Ranks):
    """address: of a replica, and of the lighthouse."""

    def address(self, i):
        del i
        return "127.0.0.1"

    def starter(self, i):
        """Return the function that runs python's arguments where replica i is."""
        return forks.starter(torch_rig.python(), {
            **self.environment(0), "RANK": None, "WORLD_SIZE": None,
            "LOCAL_RANK": None, "TEST_STORE": None, "SUMWIRE_LAUNCHER": None,
            "GLOO_SOCKET_IFNAME": None, "SUMWIRE_LCORES": "1",
            "TORCHFT_LIGHTHOUSE": self.lighthouse}, 0, self.places_of(i))

    def places_of(self, i):
        del i
        return ()

    def start_lighthouse(self):
        """Start the lighthouse of the replicas; it ends with the net."""
        where = f"{self.address(0)}:{free_port()}"
        self.lighthouse = f"http://{where}"
        path = self.path("tmp/lighthouse.py")
        with open(path, "w", encoding="ascii") as f:
            f.write(LIGHTHOUSE)
        self.light = self.run("lighthouse", path, where, start=self.starter(0))
        self.light.await_out("ready", LIMIT_S)

    def start_replica(self, i, name):
        return self.run(name, TRAIN, str(i), self.address(i),
                        self.path("tmp/stop"), start=self.starter(i))

    def __exit__(self, kind, value, trace):
        self.light.kill()
        return super().__exit__(kind, value, trace)


class TwoMachines(OneMachine, Machines):
    """Two machines, with replicas 0 and 2 on the first."""

    def address(self, i):
        return f"10.78.0.{i % 2 + 1}"

    def places_of(self, i):
        return self.of_machine(i % 2)


@rig.is_long
def test_one_machine():
    with OneMachine() as net:
        run_all(net, 3)
        net.await_nothing()


def test_two_machines():
    with TwoMachines() as net:
        run_all(net, 3)
        net.await_nothing()


if __name__ == "__main__":
    frameworks()  # while the network is still reachable
    lan.enter()
    lan.ip("link", "set", "lo", "up")
    main(dict(globals()))
