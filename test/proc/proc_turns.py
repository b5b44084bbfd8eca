# proc_turns.py - turns of a server's lcore while another job starts and ends
# SPDX-License-Identifier: BSD-3-Clause
"""One agent, blue, pushes all the time. Two others, red, declare 256 MiB, or
SUMWIRE_TEST_TURNS times as much (16 make 4 GiB, and need 17 GiB of memory),
lose one of them, join and leave. The test prints the turn figures of `sumwire
stats` beside figures taken while a foreign program takes as much memory,
because that alone lengthens turns on a virtual machine. Other programs may take
the core in the middle of a turn, so the test only checks that not every job
lengthens turns."""
import os
import subprocess
import sys
import time

import rig
from rig import Net, check

N_TENSORS = int(os.environ.get("SUMWIRE_TEST_TURNS", "1"))
BIG = [a for i in range(N_TENSORS)
       for a in ("--tensor", f"big{i}:{1 << 26}:f32")]
JOBS = 10
LIMITS = ("100us", "1ms", "10ms")


def two_jobs():
    net = Net(agents=3, quota="16GiB",
              job={"name": "red", "agents": 2, "dead_after": "2s"})
    net.ini["agent0"]["job"].update(name="blue", agents=1, agent=0)
    for rank in (0, 1):
        net.ini[f"agent{1 + rank}"]["job"]["agent"] = rank
        net.ini[f"agent{1 + rank}"]["agent"]["quota"] = "16GiB"
    return net


def red(net, i, *args):
    return [net.client(1 + r, *args, "--steps", "2", name=f"red{i}_{r}")
            for r in (0, 1)]


def take_memory():
    """Take as much memory as red declares, page by page."""
    subprocess.run([sys.executable, "-c", f"b'x' * {N_TENSORS << 28}"],
                   check=True, timeout=rig.RUN_S)


def await_end(net, n_jobs):
    net.daemons["a"].await_text(r"(?s)(job red: closed.*){%d}" % n_jobs)


class Show:
    """Prints, for each part of the test, how often turns were long."""

    def __init__(self, net, daemon):
        self.net, self.daemon, self.at = net, daemon, time.monotonic()
        self.last, self.rate = net.stats(daemon), 0

    def part(self, what):
        now, at = self.net.stats(self.daemon), time.monotonic()
        more = {k: now[k] - self.last[k] for k in now if k in self.last}
        rate = more["chunks_done"] / (at - self.at)
        self.rate = self.rate or rate
        turns = more["lcore0.turns"]
        over = [more["lcore0.turns_over_" + x] for x in LIMITS]
        print(f"# {what}: {turns} turns, longer than "
              f"{', '.join(LIMITS)}: {over}, {100 * over[0] / turns:.2f} %; "
              f"{rate:.0f} chunks/s, {rate / self.rate:.2f} of alone")
        self.last, self.at = now, at

    def total(self):
        us = {k: self.last[f"lcore0.turn_{k}_ns"] / 1000
              for k in ("p50", "p99", "p999", "max")}
        print("# since the start, us:", us)
        return us


def test_another_job_comes_and_goes():
    with two_jobs() as net:
        net.start_all()
        blue = net.client(0, "--tensor", "w:1000000:f32", "--no-check",
                          "--steps", "100000000", name="blue")
        net.await_stats("a", lambda s: s["chunks_done"] > 5000, "steps")
        show = Show(net, "a")
        time.sleep(1)
        show.part("alone")
        take_memory()
        show.part("a program takes as much memory")
        first = red(net, 0, *BIG, "--pause")
        for p in first:
            p.await_out("declared", rig.RUN_S)
        show.part("another job declares")
        first[0].kill()
        first[1].say()
        first[1].wait_error("SW_EPEER")
        await_end(net, 1)
        show.part("loses a member")
        for i in range(JOBS):
            for p in red(net, 1 + i, *rig.SMALL):
                p.wait_ok()
        await_end(net, 1 + JOBS)
        show.part(f"{JOBS} small jobs")
        blue.kill()
        us = show.total()
        check(0 < us["p50"] <= us["p99"] <= us["p999"],
              f"not times of turns: {us}")
        check(show.last["lcore0.turns_over_10ms"] < JOBS, f"long turns: {us}")
        check(net.stats("agent0")["lcore0.turns"] > 1000, "an agent counts")


if __name__ == "__main__":
    rig.main(dict(globals()))
