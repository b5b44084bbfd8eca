# proc_trace_bounds.py - trace --report names the bottleneck of each step
# SPDX-License-Identifier: BSD-3-Clause
"""Each test gives a job one bottleneck; it must bound most steps of the report."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

import lan
import rig
from hosts import Hosts
from proc_ps import named, unique
from rig import check

HERE = os.path.dirname(os.path.abspath(__file__))
BOUND = re.compile(r"(\w+) \d+ % \(bound (\d+)\)")


def bounds(net, path):
    """Return how many steps of the next seconds each bottleneck bounds."""
    p = subprocess.run(
        [rig.sumwire(), "trace", "--time", "2s", "--report", "--output", path,
         *(unique(n) for n in net.daemons)], check=False, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=rig.RUN_S, text=True)
    check(p.returncode == 0, f"{p}")
    return {name: int(n) for name, n in BOUND.findall(p.stdout)}


@contextlib.contextmanager
def ranks(net, what, device):
    env = {"PYTHONPATH": os.path.join(HERE, "../../apps/torch"), "SUMWIRE_DEVICE": device,
           "SUMWIRE_LIBRARY": rig.program("pmd/client/libsumwire.so")}
    started = [net.run(f"{what}{i}", "env", *(f"{k}={v}" for k, v in env.items()),
                       sys.executable, os.path.join(HERE, "bound_rank.py"),
                       net.socket(a), what)
               for i, a in enumerate(net.agents)]
    try:
        yield
    finally:
        for p in started:
            p.kill()


def bounded(bound, what="plain", device="fake", slow_mbit=None, credit=None):
    job = {"credit": credit} if credit else {}
    with named(Hosts(agents=2, job=job)) as net, tempfile.TemporaryDirectory() as folder:
        for name in net.agents if credit else ():
            net.ini[name]["agent"]["partition"] = credit
        net.start_all()
        if slow_mbit:
            for where, port in ((), "agent1-lan"), (net.inside("agent1"), "agent1"):
                subprocess.run([*where, "tc", "qdisc", "add", "dev", port, "root", "tbf",
                                "rate", f"{slow_mbit}mbit", "burst", "20000",
                                "limit", "2000000"], check=True)

        def look():
            got = bounds(net, os.path.join(folder, "trace.json"))
            print(f"{bound}: {got}")
            return got.get(bound, 0) > sum(got.values()) / 2

        with ranks(net, what, device):
            rig.wait_until(look, rig.RUN_S, f"most steps are bound by {bound}")


def test_straggler():
    bounded("straggler", "straggler")


def test_compute():
    bounded("compute", "compute")


def test_copy():
    bounded("copy", "copy", device="fake:mbit=50")


def test_credit():
    """At most a sixteenth of the tensor is in flight."""
    bounded("credit", credit="16KiB")


def test_link():
    bounded("link", slow_mbit=20)


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
