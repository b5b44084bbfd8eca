# proc_bottleneck.py - jobs that share a slow link with a short queue
# SPDX-License-Identifier: BSD-3-Clause
"""A veth pair that TBF slows down in both directions joins two bridges. Each
job has a colocated agent at each side, so that pushes and results of one size
go in both directions.

Goodput is the payload of results that an agent received, as a fraction of the
payload that the link can carry; half of it, and as much of pushes, passed the
link in each direction. Drops are counted by the link, needless retransmissions
by the daemons.
python3 test/proc/proc_bottleneck.py build table prints a table of all rates and
queues; with beside_gloo, one job runs beside gloo."""
import json
import os
import signal
import subprocess
import sys
import time

import lan
import rig
from lan import Lan, ip
from rig import check, end, start_forever
from trunk import FRAME, PAYLOAD, Trunk

HERE = os.path.dirname(os.path.abspath(__file__))
TENSOR = "w:1000000:f32"  # a step sends 32 Mb in each direction


class Bottleneck(Trunk):
    """@jobs jobs of two agents, one at each end of the link."""

    def __init__(self, mbit, kib, jobs=1):
        super().__init__(mbit, kib, [f"agent{i}" for i in range(1, 2 * jobs, 2)],
                         agents=2 * jobs, servers=0, colocated=True)
        self.mbit = mbit
        for i, name in enumerate(self.agents):
            self.split(i, name, jobs)

    def split(self, i, name, jobs):
        """Assign the daemon to its job."""
        mates = self.agents[i // 2 * 2:i // 2 * 2 + 2]
        for other in set(self.agents) - set(mates):
            del self.ini[name][f"server {other}"]
        if jobs > 1:
            self.ini[name]["job"].update(name=f"job{i // 2}", agents=2,
                                         agent=i % 2)

    def count(self):
        """Return the current counters of the link and the daemons."""
        stats = {name: self.stats(name) for name in self.agents}
        links = self.trunk()
        both = [[s.get(k, 0) + s.get("server." + k, 0) for s in stats.values()]
                for k in ("result_again", "push_again", "retransmissions",
                          "timeouts")]
        again_r, again_p, retx, timeouts = map(sum, both)
        return {"s": time.monotonic(), "needless": again_r + again_p,
                "retx": retx, "timeouts": timeouts,
                "results": [s["result_bytes"] for s in stats.values()],
                "sent": sum(x["packets"] for x in links),
                "drops": sum(x["drops"] for x in links)}

    def measure(self, seconds):
        """Measure for some seconds: shares of the link and of the frames sent."""
        a = self.count()
        time.sleep(seconds)
        b = self.count()
        took = b["s"] - a["s"]
        full = self.mbit * 1e6 / 8 * PAYLOAD / FRAME * took
        n = {k: b[k] - a[k] for k in a if k != "results"}
        rates = [(y - x) / full for x, y in zip(a["results"], b["results"])]
        return {"goodput": rates[::2],
                "drops": n["drops"] / max(n["sent"] + n["drops"], 1),
                "needless": n["needless"] / max(n["sent"], 1),
                "retx": n["retx"] / max(n["sent"], 1),
                "timeouts": n["timeouts"]}


def jain(shares):
    return sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares) or 1)


def run(mbit, kib, jobs=1, flows=0, gloo=False, settle=2, seconds=8):
    """Run jobs beside @flows TCP flows from the first agent's machine to the
    second's, or beside an all_reduce of gloo between them."""
    with Bottleneck(mbit, kib, jobs) as net:
        net.start_all()
        clients = [net.client(i, "--tensor", TENSOR, "--steps", "1000000")
                   for i in range(2 * jobs)]
        for c in clients:
            c.await_out("step 1 exact")
        others = []
        if flows:
            others = beside(net, flows, settle, seconds)
        if gloo:
            others = beside_gloo(net, settle, seconds)
        time.sleep(settle)
        out = net.measure(seconds)
        out["tcp"] = []
        for p in others:
            p.wait_ok(60)
        if others:
            came = json.loads(others[0].out().splitlines()[-1])
            out["tcp"] = [8 * n * 1514 / 1448 / (mbit * 1e6 * seconds)
                          for n in came]
        end(net, clients)
    return out


def beside(net, flows, settle, seconds):
    """Start flows from agent0's machine to agent1's: return the process that
    counts them, then the one that sends."""
    program, to = os.path.join(HERE, "tcp_flows.py"), net.address("agent1")
    tcp = net.run("tcp-server", *net.inside(
        "agent1", sys.executable, program, "serve", to, str(flows),
        str(settle), str(seconds)))
    tcp.await_out("listening")
    return [tcp, net.run("tcp-client", *net.inside(
        "agent0", sys.executable, program, "send", to, str(flows)))]


def beside_gloo(net, settle, seconds):
    """Start gloo on both machines; the first process counts the bytes it
    summed."""
    python = os.environ.get("SUMWIRE_TEST_PYTHON", "/usr/bin/python3")
    if subprocess.run([python, "-c", "import torch"], check=False).returncode:
        raise rig.Skip(f"{python} has no PyTorch; SUMWIRE_TEST_PYTHON names another")
    pair = net.agents[:2]
    for name, other in zip(pair, reversed(pair)):  # whatever the kernel's default
        net.ip(name, "route", "add", net.address(other), "dev", name,
               "congctl", "cubic")
    ranks = [net.run(f"gloo{rank}", *net.inside(
        name, "env", f"GLOO_SOCKET_IFNAME={name}", python,
        os.path.join(HERE, "gloo_pair.py"), str(rank), net.address("agent0"),
        str(settle), str(seconds))) for rank, name in enumerate(pair)]
    ranks[0].await_out("begins", rig.RUN_S)
    return ranks


def line(name, mbit, kib, out):
    shares = out["goodput"] + out["tcp"]
    print(f"{name:11} {mbit:4} Mb/s {kib:5} KiB: goodput "
          f"{' '.join(f'{x:.3f}' for x in out['goodput'])}, drops "
          f"{100 * out['drops']:.2f} %, sent again {100 * out['retx']:.2f} %, "
          f"needless {100 * out['needless']:.2f} %, {out['timeouts']} timeouts"
          + (f", TCP {sum(out['tcp']):.3f}" if out["tcp"] else "")
          + (f", Jain {jain(shares):.3f}" if len(shares) > 1 else ""),
          flush=True)


def test_beside_a_tcp_flow():
    """Neither starves, and few frames are dropped; without a congestion window
    the link dropped half of them."""
    out = rig.measured(
        lambda: run(100, 64, flows=1, settle=1, seconds=4),
        lambda out: out["drops"] < 0.05 and out["goodput"][0] > 0.1 and
        out["tcp"][0] > 0.15)
    line("1 TCP flow", 100, 64, out)


@rig.is_long
def test_beside_gloo():
    """Neither starves. gloo sends in both directions, as a job does."""
    out = run(100, 64, gloo=True)
    line("gloo", 100, 64, out)
    check(out["drops"] < 0.05, "a few frames are dropped at most")
    check(out["goodput"][0] > 0.1, "the job goes on")
    check(out["tcp"][0] > 0.15, "gloo goes on")


def test_many_losses_are_logged():
    """Both ends log it once, and the sender adds the likely cause."""
    with Lan(agents=1, port={"fault_loss": "4%"}) as net:
        net.start_all()
        clients = [net.client(0, "--tensor", "w:1000000:f32", "--steps", "100000")]
        for name, far in ("a", r"rank 0"), ("agent0", "server a"):
            net.daemons[name].await_text(
                rf"warn job job.*\d\.\d % of \d+ frames to {far}.* were lost and "
                "sent again, likely cause: loss at random", 60)
            net.daemons[name].await_text(
                rf"warn job job.*% of \d+ frames from {far}.* did not arrive", 60)
        time.sleep(12 if not rig.IS_QUICK else 0)
        for name in "a", "agent0":
            n = net.daemons[name].log().count("sent again")
            check(n == 1, f"{name} says {n} times that frames are lost")
        end(net, clients)


@rig.is_long
def test_table():
    """MBIT, KIB and ONLY in the environment choose rates, queues and rows."""
    signal.alarm(3 * rig.TEST_S)
    for mbit in map(int, os.environ.get("MBIT", "50 200").split()):
        for kib in map(int, os.environ.get("KIB", "16 64 256 1024").split()):
            for name, keys in (("alone", {}), ("two jobs", {"jobs": 2}),
                               ("1 TCP flow", {"flows": 1}),
                               ("4 TCP flows", {"flows": 4}),
                               ("gloo", {"gloo": True})):
                if os.environ.get("ONLY", name) == name:
                    line(name, mbit, kib, run(mbit, kib, **keys))


if __name__ == "__main__":
    lan.enter("-n")
    rig.main(globals())
