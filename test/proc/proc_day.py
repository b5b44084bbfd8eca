# proc_day.py - a day in operation: seven faults, and the commands that name them
# SPDX-License-Identifier: BSD-3-Clause
"""A server and four agents, each in a namespace of its own behind a bridge, run
a job. Seven faults occur one after another. For each fault, one or two
commands, typed by an operator at that machine, must name the cause.

SUMWIRE_DAY=FILE writes the commands and their output to FILE."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

import lan
import rig
from hosts import Hosts
from proc_ps import UNIQUE, named, unique
from rig import check

TENSOR = ("--tensor", "w:200000:f32")  # about 25 chunks at the server
STEP_S, LATE_S = 0.03, 0.1
SUSPECTS = r"^  (payload|process|link) "  # other suspects may be a busy machine's
HOG = "while True: pass"


class Day(Hosts):
    def __init__(self):
        super().__init__(agents=4, mtu=9000)
        named(self)
        for name in self.agents:  # as a NIC splits them, before a switch
            self.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        self.ip("a", "link", "set", "dev", "a", "gso_max_segs", "1")
        self.cpu = max(os.sched_getaffinity(0))
        self.ini["a"]["lcore"] = {"cpus": str(self.cpu)}
        self.said = []
        self.late = None  # the rank that starts each step later

    def sumwire(self, at, *args):
        """Run the command at the machine of daemon @at; return its output."""
        p = subprocess.run([*self.inside(at), rig.sumwire(), *args],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=rig.START_S, text=True, check=False)
        self.said.append(f"{at}$ sumwire {' '.join(args)}\n{p.stdout}")
        return p.stdout

    def named(self, at, pattern, *args, limit_s=rig.START_S):
        """Run the command until its output names the cause; fail after limit_s."""
        def look():
            n = len(self.said)
            text = self.sumwire(at, *args)
            if not re.search(pattern, text, re.MULTILINE):
                del self.said[n:]
                return None
            return text
        try:
            return rig.wait_until(look, limit_s, f"\"{pattern}\" from {args}")
        except rig.Failure:
            print(self.sumwire(at, *args))
            raise

    def status(self, at, pattern, **keys):
        return self.named(at, pattern, "status", unique(at), **keys)

    def report(self, pattern, folder):
        """Record on all machines at the same time until the merged report names
        the cause."""
        files = {n: os.path.join(folder, n + ".trace") for n in self.daemons}

        def look():
            for p in [subprocess.Popen([*self.inside(n), rig.sumwire(), "trace", unique(n),
                                        "--time", "1s", "-o", f], stderr=subprocess.DEVNULL)
                      for n, f in files.items()]:
                check(p.wait(rig.RUN_S) == 0, "a trace")
            n = len(self.said)
            text = self.sumwire("a", "trace", "--read", *files.values(), "--report")
            if re.search(pattern, text, re.MULTILINE):
                return True
            del self.said[n:]
            return False
        rig.wait_until(look, rig.START_S, f"\"{pattern}\" from trace --report")

    def begins(self, fault):
        self.said.append(f"--- {fault} ---\n")

    def slow_down(self, name, mbit):
        """Slow down both directions of its link, in front of short queues."""
        for where, device in ((), name + "-lan"), (self.inside(name), name):
            subprocess.run([*where, "tc", "qdisc", "add", "dev", device, "root",
                            "tbf", "rate", f"{mbit}mbit", "burst", "20000",
                            "limit", "200000"], check=True)

    def speed_up(self, name):
        for where, device in ((), name + "-lan"), (self.inside(name), name):
            subprocess.run([*where, "tc", "qdisc", "del", "dev", device,
                            "root"], check=True)


@contextlib.contextmanager
def job(net, name):
    """Make a step at all ranks every STEP_S."""
    clients = [net.client(r, *TENSOR, "--steps", "1000000", "--pause",
                          name=f"{name}{r}") for r in range(4)]
    over = threading.Event()

    def drive():
        while not over.wait(STEP_S):
            for c in sorted(clients, key=lambda c: c is net.late):
                if c is net.late:
                    over.wait(LATE_S)
                with contextlib.suppress(OSError):
                    c.say()

    thread = threading.Thread(target=drive, daemon=True)
    thread.start()
    try:
        yield clients
    finally:
        over.set()
        thread.join()
    for c in clients:
        c.kill()
    rig.wait_until(lambda: "no daemon" in net.sumwire("a", "status", unique("a"))
                   and net.said.pop(), rig.STOP_S, "end of the job")


def step_of(client):
    found = re.findall(r"step (\d+) exact", client.out())
    return int(found[-1]) if found else -1


def await_steps(clients, n=5):
    before = [step_of(c) for c in clients]
    rig.wait_until(lambda: all(step_of(c) > b + n
                               for c, b in zip(clients, before)),
                   rig.START_S, "steps")


def quiet(net, at):
    """Check that no command suspects anything."""
    text = net.sumwire(at, "status", unique(at))
    found = re.search(SUSPECTS, text, re.MULTILINE)
    check(not found, f"without a cause: {text}")


def slow_link(net, clients):
    net.begins("the link of agent2 carries 40 Mb/s")
    net.slow_down("agent2", 40)
    net.status("a", rf"^  slow     rank 2 \(node {UNIQUE}.agent2\): round "
               "trips of .* others")
    net.named("a", rf"^  2 +{UNIQUE}.age.* here .* [1-9]\d*\.\d+$", "top",
              "--once", unique("a"))
    net.speed_up("agent2")
    await_steps(clients)


def late_rank(net, clients):
    net.begins("rank 3 calls 100 ms after the others, in each step")
    net.late = clients[3]
    with tempfile.TemporaryDirectory() as folder:
        net.report(r"^step \d+: .*, bound by straggler .* from agent 3 "
                   rf"\(node {UNIQUE}.agent3\)$", folder)
    net.late = None
    await_steps(clients)


def stopped_rank(net, clients):
    net.begins("the process of rank 1 is stopped")
    clients[1].signal(signal.SIGSTOP)
    net.status("a", rf"^  waits    tensor w, round \d+, [1-9].* chunks for "
               rf"rank 1 \(node {UNIQUE}.agent1\)$")
    net.status("agent1", rf"^  process  {clients[1].pid} \(local rank 0\) is "
               "stopped: kill -CONT")
    clients[1].signal(signal.SIGCONT)
    await_steps(clients)


def flapping_port(net, clients):
    net.begins("the port of agent3 flaps")
    log = net.daemons["agent3"].log
    for _ in range(3):
        for word in "down", "up":
            n = log().count(f"agent3 is {word}")
            lan.ip("link", "set", "dev", "agent3-lan", word)
            rig.wait_until(lambda: log().count(f"agent3 is {word}") > n,
                           rig.START_S, f"the link {word}")
    await_steps(clients)
    net.status("agent3", rf"^  link     port lan of {UNIQUE}.agent3 came up "
               "again 3 times, the last time")
    net.named("agent3", r"agent3 lan .* 4$", "top", "--once",
              unique("agent3"))


def short_of_cpu(net, clients):
    net.begins(f"other programs run on CPU {net.cpu}, beside the server")
    hogs = [subprocess.Popen(["taskset", "-c", str(net.cpu), sys.executable,
                              "-c", HOG]) for _ in range(2)]
    try:
        net.status("a", rf"^  cpu      polling core 0 of {UNIQUE}.a had no CPU "
                   r"for \d+ %")
        net.named("a", r"running threads? (is|are) pinned to our CPUs: python3 "
                  rf"\(process ({hogs[0].pid}|{hogs[1].pid})\)", "doctor",
                  "--config", net.path("a.ini"))
    finally:
        for p in hogs:
            p.kill()
            p.wait()
    await_steps(clients)


def wrong_mtu(net):
    net.begins("the switch's port of agent0 has an MTU of 1500, not 9000")
    lan.ip("link", "set", "dev", "agent0-lan", "mtu", "1500")
    with job(net, "mtu") as clients:
        await_steps(clients)
        net.status("a", r"^  payload  1408 B, though our ports carry 8192 B: "
                   rf"no larger frame reaches rank 0 \(node {UNIQUE}.agent0\)$")
    lan.ip("link", "set", "dev", "agent0-lan", "mtu", "9000")


def filtered_port(net):
    """Drop by policy routing what a firewall would: UDP to this port only."""
    net.begins("a filter drops UDP from agent3 to port 5700")
    at = net.address("agent3")
    net.ip("a", "rule", "add", "pref", "10", "iif", "a", "from", at, "ipproto",
           "udp", "dport", "5700", "blackhole")
    net.ip("a", "rule", "add", "pref", "20", "lookup", "local")
    net.ip("a", "rule", "del", "pref", "0")
    with job(net, "filter") as clients:
        net.status("a", r": forming, 3 of 4 agents(.|\n)*^  missing  agent 3$")
        net.named("agent3", r"no answer, but TCP of that machine answers: a "
                  "firewall that drops UDP", "doctor", net.address("a"))
        net.ip("a", "rule", "del", "pref", "10")
        await_steps(clients)


def test_day():
    with Day() as net:
        net.start_all()
        try:
            with job(net, "rank") as clients:
                await_steps(clients)
                quiet(net, "a")
                late_rank(net, clients)
                slow_link(net, clients)
                stopped_rank(net, clients)
                flapping_port(net, clients)
                short_of_cpu(net, clients)
            wrong_mtu(net)
            filtered_port(net)
        finally:
            if "SUMWIRE_DAY" in os.environ:
                with open(os.environ["SUMWIRE_DAY"], "w",
                          encoding="utf-8") as f:
                    f.write("\n".join(net.said))


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
