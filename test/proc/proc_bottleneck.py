# proc_bottleneck.py - jobs that share a slow link with a short queue
# SPDX-License-Identifier: BSD-3-Clause
"""Two bridges are joined by a veth pair that TBF slows down, both ways.  Each
job has an agent that also sums at either side, so that pushes and results of
one size go in both directions.

Goodput is the payload of results that an agent got, as a part of what the link
carries of payload; half of it and as much of pushes passed the link each way.
Drops are the link's, needless retransmissions the counters' of the daemons.
python3 test/proc/proc_bottleneck.py build table [MBIT] [KIB] prints a table of
all rates and queues.
"""
import json
import os
import subprocess
import sys
import time

import lan
import rig
from hosts import Hosts
from lan import ip
from rig import check, end, start_forever

FRAME, PAYLOAD = 14 + 20 + 8 + 54 + 1344, 1344  # with MTU 1500
TENSOR = os.environ.get("T","w:1000000:f32")  # 32 Mb, so as much in each direction of a step
TRUNK = "trunk0", "trunk1"


class Bottleneck(Hosts):
    """@jobs jobs of two agents, one at each end of a link of @mbit with a queue
    of @kib in both directions."""

    def __init__(self, mbit, kib, jobs=1):
        super().__init__(mtu=1500, agents=2 * jobs, servers=0, colocated=True)
        self.mbit = mbit
        ip("link", "add", "name", "far", "type", "bridge")
        ip("link", "set", "dev", "far", "up")
        ip("link", "add", TRUNK[0], "type", "veth", "peer", "name", TRUNK[1])
        for end_, bridge in zip(TRUNK, ("lan", "far")):
            ip("link", "set", "dev", end_, "master", bridge, "up")
            subprocess.run(
                ["tc", "qdisc", "add", "dev", end_, "root", "tbf", "rate",
                 f"{mbit}mbit", "burst", "3000", "limit", str(kib << 10)],
                check=True)
        for i, name in enumerate(self.agents):
            self.split(i, name, jobs)

    def split(self, i, name, jobs):
        """Put it into its job and to its side, and cut its frames as a NIC does
        before they reach a switch."""
        mates = self.agents[i // 2 * 2:i // 2 * 2 + 2]
        for other in set(self.agents) - set(mates):
            del self.ini[name][f"server {other}"]
        if jobs > 1:
            self.ini[name]["job"].update(name=f"job{i // 2}", agents=2,
                                         agent=i % 2)
        self.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        if i % 2:
            ip("link", "set", "dev", name + "-lan", "master", "far")

    def link(self, which=0, agent=None):
        """Counters of a direction; with @agent, as in class Net."""
        if agent is not None:
            return super().link(which, agent)
        out = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev",
                              TRUNK[which]], capture_output=True, check=True)
        return json.loads(out.stdout)[0]

    def count(self):
        """Counters of the link and the daemons now."""
        stats = {name: self.stats(name) for name in self.agents}
        links = [self.link(0), self.link(1)]
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
        """What happens in that time, as parts of 1."""
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

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in TRUNK[0], "far":
                subprocess.run(["ip", "link", "del", "dev", name], check=False)


def jain(shares):
    return sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares) or 1)


def run(mbit, kib, jobs=1, flows=0, settle=2, seconds=8):
    """Jobs beside so many TCP flows from the first to the second agent."""
    with Bottleneck(mbit, kib, jobs) as net:
        net.start_all()
        clients = start_forever(net, "--tensor", TENSOR, step=1)
        if flows:
            tcp = beside(net, flows, settle + seconds)
        time.sleep(settle)
        out = net.measure(seconds)
        out["tcp"] = []
        if flows:
            tcp.wait_ok(60)
            out["tcp"] = shares_of(tcp, mbit)
        end(net, clients)
    return out


def beside(net, flows, seconds):
    """iperf3 from agent0's machine to agent1's, with cubic."""
    net.run("iperf-server", *net.inside("agent1", "iperf3", "-s", "-1"))
    time.sleep(0.5)
    return net.run("iperf", *net.inside(
        "agent0", "iperf3", "-c", net.address("agent1"), "-C", "cubic", "-t",
        str(seconds), "-P", str(flows), "-O", "2", "-J"))


def shares_of(tcp, mbit):
    of = json.loads(tcp.out())["end"]["streams"]
    return [x["receiver"]["bits_per_second"] / (mbit * 1e6) for x in of]


def line(name, mbit, kib, out):
    tcp = sum(out["tcp"])
    shares = out["goodput"] + out["tcp"]
    print(f"{name:14} {mbit:4} Mb/s {kib:5} KiB: goodput "
          f"{' '.join(f'{x:.3f}' for x in out['goodput'])}, drops "
          f"{100 * out['drops']:.2f} %, sent again {100 * out['retx']:.2f} %, "
          f"needless {100 * out['needless']:.2f} %, {out['timeouts']} timeouts"
          + (f", TCP {tcp:.3f} of {len(out['tcp'])}" if out["tcp"] else "")
          + (f", Jain {jain(shares):.3f}" if len(shares) > 1 else ""),
          flush=True)


@rig.is_long
def test_table():
    rates = os.environ.get("MBIT", "50 200").split()
    queues = os.environ.get("KIB", "16 64 256 1024").split()
    for mbit in map(int, rates):
        for kib in map(int, queues):
            for name, keys in (("alone", {}), ("two jobs", {"jobs": 2}),
                               ("1 TCP flow", {"flows": 1}),
                               ("4 TCP flows", {"flows": 4})):
                if os.environ.get("ONLY", name) == name:
                    line(name, mbit, kib, run(mbit, kib, **keys))


if __name__ == "__main__":
    lan.enter("-n")
    rig.main(globals())
