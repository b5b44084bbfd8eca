# proc_lab_veth.py - compare sumwire-lab sim with daemons over veth with TBF
# SPDX-License-Identifier: BSD-3-Clause
"""Each scenario runs twice: with daemons whose frames pass a veth pair that TBF
slows down, and in the simulator, for as many steps. Both report goodput (results
that an agent received, as a fraction of the payload that the link can carry),
drops of the link, and the mean bytes in its queues of both directions.

Simulated cores and clients are as slow as the real ones. A turn takes the daemons'
mean time between turns that had work, without waits. A step begins as late as its
client fills and checks tensors.

If each daemon has a CPU, simulated cores stall as long and as often as the daemons'
cores waited for one. If daemons share CPUs (incast), one waits while another runs:
the turns' time contains that, and stalls would count it twice. The last column shows
the figures with the other rule.

Daemons need cores of their own at higher rates: set MBIT in the environment."""
import csv
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

import lan
import rig
from rig import check, end
from trunk import BURST, FRAME, Backlog, Trunk

WIRE = FRAME + 24  # the simulator adds FCS, preamble and gap
BYTES = 4000000
MBIT = int(os.environ.get("MBIT", "20"))


def counted(net):
    """Return the sums of what all agents count."""
    stats = [net.stats(name) for name in net.agents]
    out = {key: sum(s[key] for s in stats)
           for key in ("result_bytes", "rounds", "round_ns.sum", "lcore0.turns")}
    out["timed"] = sum(value for s in stats for key, value in s.items()
                       if key.startswith("round_ns.bucket"))
    return out


def waited(threads):
    """Return how long each thread was ready to run and had no CPU, in seconds."""
    out = []
    for path in threads:
        with open(path + "/schedstat", encoding="ascii") as f:
            out.append(int(f.read().split()[1]) / 1e9)
    return out


def cores(net):
    """Return the folder in /proc of each daemon's polling thread: it runs most."""
    def ran(path):
        with open(path + "/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0])
    return [max((f"/proc/{p.pid}/task/{tid}" for tid in
                 os.listdir(f"/proc/{p.pid}/task")), key=ran)
            for p in net.daemons.values()]


def stalls(waits, took):
    """Return the lengths of all stalls, and the mean time between two of a core.
    Waits between two readings count as one stall."""
    lengths = [new - old for before, after in zip(waits, waits[1:])
               for old, new in zip(before, after) if new - old > 1e-5]
    spare = len(waits[0]) * took - sum(lengths)
    return lengths, max(spare / max(len(lengths), 1), 1e-6)


def real(kib, seconds=30, **keys):
    """Return the figures of daemons, and the times that the simulator needs."""
    with Trunk(MBIT, kib, **keys) as net:
        net.start_all()
        n = len(net.agents)
        clients = [net.client(i, "--tensor", f"w:{BYTES // 4}:f32", "--steps", "1000000")
                   for i in range(n)]
        for c in clients:
            c.await_out("step 2 exact")
        threads, backlog, queues = cores(net), Backlog(), []
        old, before = counted(net), net.trunk()
        from_, waits = time.monotonic(), [waited(threads)]
        while time.monotonic() < from_ + seconds:
            time.sleep(0.005)
            queues.append(sum(backlog.read()))
            waits.append(waited(threads))
        took = time.monotonic() - from_
        new = counted(net)
        sent, drops = (sum(b[k] - a[k] for a, b in zip(before, net.trunk()))
                       for k in ("packets", "drops"))
        end(net, clients)
    did = {key: new[key] - old[key] for key in new}
    check(did["timed"], "no step was timed: raise MBIT, or run on cores without other work")
    round_s = did["round_ns.sum"] / did["timed"] / 1e9
    idle_s = n / len(threads) * (sum(waits[-1]) - sum(waits[0]))
    lengths, gap_s = stalls(waits, took)
    return {"goodput": 8 * did["result_bytes"] / n / took, "drops": drops / (sent + drops),
            "queue": statistics.fmean(queues), "stalls": lengths, "gap_s": gap_s,
            "rounds": max(did["rounds"] // n, 10),
            "shares": len(threads) > len(os.sched_getaffinity(0)),
            "turn_s": (n * took - idle_s) / did["lcore0.turns"],
            "compute_s": max(n * took / did["rounds"] - round_s, 0)}


def steady(path, agent, from_, to):
    """Return the mean over time of the bytes in both queues, and the fraction of
    frames dropped in both directions. Count from the second step of @agent, as real()
    does, because the first steps overshoot. Each row of the file is a change.
    """
    with open(path, encoding="utf-8") as f:
        rows = [(float(row["time_us"]), row["figure"], (row["from"], row["to"]), int(row["value"]))
                for row in csv.DictReader(f)]
    steps = [at for at, what, (node, _), _ in rows if what == "tensor_ns" and node == agent]
    first, end_ = steps[1], steps[-1]
    areas, last, ends = {}, {}, {}
    for at, what, way, value in rows + [(end_, "queue_bytes", way, 0)
                                        for way in ((from_, to), (to, from_))]:
        if way not in ((from_, to), (to, from_)) or at > end_:
            continue
        if what == "queue_bytes":
            since, before = last.get(way, (first, 0))
            areas[way] = areas.get(way, 0) + max(at - max(since, first), 0) * before
            last[way] = at, value
        begin, now = ends.get((what, way), (0, 0))
        ends[what, way] = (value if at <= first else begin), value
    drops, frames = (sum(now - begin for (what, _), (begin, now) in ends.items() if what == kind)
                     for kind in ("dropped", "frames"))
    return sum(areas.values()) / (end_ - first), drops / (frames + drops)


def simulated(kib, job, sides, like):
    near, far = sides
    text = (f"[net]\ntopology = links\nswitches = near, far\nrate = 10Gb/s\ndelay = 20us\n"
            f"mtu = 1500\nbuffer = {kib}KiB\n"
            f"turn = {like['turn_s'] * 1e9:.0f}ns\n"
            f"stall = file stalls.txt\n"
            f"stall_gap = exponential {like['gap_s'] * 1e9:.0f}ns\n[run]\noracle = no\n"
            "duration = 600s\n"
            f"[link near]\nfrom = {near}\nto = near\n[link far]\nfrom = {far}\nto = far\n"
            f"[link trunk]\nfrom = near\nto = far\nrate = {MBIT * WIRE // FRAME}Mb/s\n"
            f"bucket = {BURST * WIRE // FRAME}\n"
            f"[job]\n{job}tensors = 1\nsize = {BYTES}\nrounds = {like['rounds']}\nwarmup = 2\n"
            f"compute = {like['compute_s'] * 1e6:.0f}us\n"
            "[record]\ncsv = x.csv\nevery = 1ms\n")
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.join(d, "stalls.txt"), "w", encoding="utf-8") as f:
            f.writelines(f"{length * 1e9:.0f}ns\n" for length in like["stalls"] or [0])
        p = subprocess.run([os.path.abspath(rig.lab()), "sim", "--json", "x.ini"], cwd=d,
                           capture_output=True, text=True, timeout=rig.RUN_S, check=False)
        check(p.returncode == 0, p.stderr)
        out = json.loads(p.stdout)
        queue, drops = steady(os.path.join(d, "x.csv"), "gpu0", "near", "far")
    return {"goodput": out["jobs"][0]["goodput_bit_s"], "drops": drops, "queue": queue}


def compare(name, kib, job, sides, **keys):
    is_of = real(kib, **keys)
    without, with_them = (simulated(kib, job, sides, {**is_of, **change})
                          for change in ({"stalls": [0]}, {}))
    is_from, other = (without, with_them) if is_of["shares"] else (with_them, without)
    print(f"{name:16} {'veth':>10} {'sim':>10} "
          f"{'with stalls' if is_of['shares'] else 'without stalls':>24}   "
          f"turn {is_of['turn_s'] * 1e6:.1f} us, compute {is_of['compute_s'] * 1e3:.1f} ms, "
          f"{len(is_of['stalls'])} stalls, mean {statistics.fmean(is_of['stalls'] or [0]) * 1e3:.2f} ms, "
          f"most {max(is_of['stalls'] or [0]) * 1e3:.1f} ms, every {is_of['gap_s'] * 1e3:.1f} ms")
    for key, unit, what in (("goodput", 1e6, "Mb/s"), ("drops", 0.01, "%"),
                            ("queue", 1024, "KiB")):
        print(f"  {key:9}{what:5} {is_of[key] / unit:10.2f} {is_from[key] / unit:10.2f} "
              f"{100 * (is_from[key] / max(is_of[key], 1e-9) - 1):+7.1f} % "
              f"{other[key] / unit:14.2f}", flush=True)
    cells = [f"{is_of[key] / unit:.3g}, {is_from[key] / unit:.3g}"
             for key, unit in (("goodput", 1e6), ("queue", 1024), ("drops", 0.01))]
    print("| " + " | ".join([name, *cells]) + " |", flush=True)  # format of doc/lab.md
    for key in "goodput", "queue":
        check(abs(is_from[key] / is_of[key] - 1) < 0.1, f"{name}: {key}")


def pair(kib):
    compare(f"pair, {kib} KiB", kib, "agents = gpu[0-1]\nservers = gpu[0-1]\n", ("gpu0", "gpu1"),
            far=["agent1"], agents=2, servers=0, colocated=True)


def test_pair_64():
    pair(64)


def test_pair_256():
    pair(256)


def test_incast():
    signal.alarm(2 * rig.TEST_S)
    compare("incast of 4", 64, "agents = gpu[0-3]\nservers = cpu0\n", ("gpu[0-3]", "cpu0"),
            far=["a"], agents=4, servers=1)


if __name__ == "__main__":
    lan.enter("-n")
    rig.main(globals())
