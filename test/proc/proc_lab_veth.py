# proc_lab_veth.py - sumwire-lab sim beside daemons over veth with TBF
# SPDX-License-Identifier: BSD-3-Clause
"""Each scenario runs twice: daemons whose frames pass a veth pair that TBF slows
down, and its description in the simulator.  Both report goodput (results that
an agent got, as a part of what the link carries of payload), drops of the
link, and the mean bytes in its fuller queue.

Daemons need cores of their own at higher rates: MBIT in the environment.
"""
import csv
import json
import os
import signal
import subprocess
import tempfile
import time

import lan
import rig
from hosts import Hosts
from lan import ip
from rig import check, end

MTU, PAYLOAD = 1500, 1344
FRAME = 14 + 20 + 8 + 54 + PAYLOAD  # as TBF counts it
WIRE = FRAME + 24  # the simulator adds FCS, preamble and gap
BYTES = 4000000
MBIT = int(os.environ.get("MBIT", "20"))
TRUNK = "trunk0", "trunk1"


class Trunk(Hosts):
    """Two bridges joined by a slow link; nodes of @far are behind it."""

    def __init__(self, kib, far, **keys):
        super().__init__(mtu=MTU, **keys)
        ip("link", "add", "name", "far", "type", "bridge")
        ip("link", "set", "dev", "far", "up")
        ip("link", "add", TRUNK[0], "type", "veth", "peer", "name", TRUNK[1])
        for end_, bridge in zip(TRUNK, ("lan", "far")):
            ip("link", "set", "dev", end_, "master", bridge, "up")
            subprocess.run(
                ["tc", "qdisc", "add", "dev", end_, "root", "tbf", "rate", f"{MBIT}mbit",
                 "burst", "3000", "limit", str(kib << 10)], check=True)
        for name in self.hosts:  # frames are cut as a NIC does it
            self.ip(name, "link", "set", "dev", name, "gso_max_segs", "1")
        for name in far:
            ip("link", "set", "dev", name + "-lan", "master", "far")

    def trunk(self):
        """Counters of both directions."""
        return [json.loads(subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", name],
                                          capture_output=True, check=True).stdout)[0]
                for name in TRUNK]

    def results(self):
        return [self.stats(name)["result_bytes"] for name in self.agents]

    def __exit__(self, kind, value, trace):
        try:
            super().__exit__(kind, value, trace)
        finally:
            for name in TRUNK[0], "far":
                subprocess.run(["ip", "link", "del", "dev", name], check=False)


def real(kib, seconds=30, **keys):
    with Trunk(kib, **keys) as net:
        net.start_all()
        clients = [net.client(i, "--tensor", f"w:{BYTES // 4}:f32", "--steps", "1000000")
                   for i in range(len(net.agents))]
        for c in clients:
            c.await_out("step 2 exact")
        from_, got, before = time.monotonic(), net.results(), net.trunk()
        queues = [[], []]
        while time.monotonic() < from_ + seconds:
            for queue, counters in zip(queues, net.trunk()):
                queue.append(counters["backlog"])
            time.sleep(0.02)
        took = time.monotonic() - from_
        bytes_ = sum(b - a for a, b in zip(got, net.results())) / len(got)
        sent, drops = (sum(b[k] - a[k] for a, b in zip(before, net.trunk()))
                       for k in ("packets", "drops"))
        end(net, clients)
    return {"goodput": 8 * bytes_ / took, "drops": drops / (sent + drops),
            "queue": max(sum(q) / len(q) for q in queues)}


def mean_queue(path, from_, to):
    """The mean over time of the fuller direction; each row is a change."""
    sums, last, total = {}, {}, 0
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            key = row["from"], row["to"]
            if row["figure"] != "queue_bytes" or key not in ((from_, to), (to, from_)):
                continue
            t, value = float(row["time_us"]), int(row["value"])
            at, before = last.get(key, (0, 0))
            sums[key] = sums.get(key, 0) + (t - at) * before
            last[key], total = (t, value), max(total, t)
    return max(sums.values()) / total


def simulated(kib, job, near, far):
    text = (f"[net]\ntopology = links\nswitches = near, far\nrate = 10Gb/s\ndelay = 20us\n"
            f"mtu = {MTU}\nbuffer = {kib}KiB\n[run]\noracle = no\n"
            "duration = 600s\n"
            f"[link near]\nfrom = {near}\nto = near\n[link far]\nfrom = {far}\nto = far\n"
            f"[link trunk]\nfrom = near\nto = far\nrate = {MBIT * WIRE // FRAME}Mb/s\n"
            f"[job]\n{job}tensors = 1\nsize = {BYTES}\nrounds = 12\nwarmup = 2\n"
            "[record]\ncsv = x.csv\nevery = 1ms\n")
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run([os.path.abspath(rig.lab()), "sim", "--json", "x.ini"], cwd=d,
                           capture_output=True, text=True, timeout=rig.RUN_S, check=False)
        check(p.returncode == 0, p.stderr)
        out = json.loads(p.stdout)
        queue = mean_queue(os.path.join(d, "x.csv"), "near", "far")
    return {"goodput": out["jobs"][0]["goodput_bit_s"],
            "drops": out["dropped"] / out["frames"], "queue": queue}


def compare(name, is_from, is_of):
    print(f"{name:16} {'veth':>10} {'sim':>10}")
    for key, unit, what in (("goodput", 1e6, "Mb/s"), ("drops", 0.01, "%"),
                            ("queue", 1024, "KiB")):
        print(f"  {key:9}{what:5} {is_of[key] / unit:10.2f} {is_from[key] / unit:10.2f} "
              f"{100 * (is_from[key] / max(is_of[key], 1e-9) - 1):+7.1f} %", flush=True)
    check(abs(is_from["goodput"] / is_of["goodput"] - 1) < 0.1, f"{name}: goodput")


PAIR = "agents = gpu[0-1]\nservers = gpu[0-1]\n"


def pair(kib):
    compare(f"pair, {kib} KiB", simulated(kib, PAIR, "gpu0", "gpu1"),
            real(kib, far=["agent1"], agents=2, servers=0, colocated=True))


def test_pair_64():
    pair(64)


def test_pair_256():
    pair(256)


def test_incast():
    signal.alarm(2 * rig.TEST_S)
    compare("incast of 4", simulated(
        64, "agents = gpu[0-3]\nservers = cpu0\n", "gpu[0-3]", "cpu0"),
        real(64, far=["a"], agents=4, servers=1))


if __name__ == "__main__":
    lan.enter("-n")
    rig.main(globals())
