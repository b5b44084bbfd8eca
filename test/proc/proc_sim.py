# proc_sim.py - sumwire-lab sim: the tutorial's descriptions, determinism, bad input
# SPDX-License-Identifier: BSD-3-Clause
import collections
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import xml.etree.ElementTree

import rig
from rig import check

CONF = os.path.join(os.path.dirname(__file__), "../../conf/lab")
JOB = "[job]\nagents = gpu[0-1]\nservers = cpu0\nsize = 256KiB\nrounds = 3\n"


def sim(*args, cwd=None):
    return subprocess.run([os.path.abspath(rig.lab()), "sim", *args], capture_output=True,
                          text=True, timeout=rig.RUN_S, check=False, cwd=cwd)


def sim_text(text, *args):
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        return sim("x.ini", *args, cwd=d)


def result_of(text):
    p = sim_text(text, "--json")
    check(p.returncode == 0, f"exit {p.returncode}: {p.stderr}")
    return json.loads(p.stdout)


def test_descriptions():
    """Run the descriptions of conf/lab twice; both runs give the same bytes."""
    for name in sorted(n for n in os.listdir(CONF) if n.endswith(".ini")):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            path = os.path.abspath(os.path.join(CONF, name))
            first, second = (sim(path, cwd=d) for d in (a, b))
        check(first.returncode == 0, f"{name}: {first.stderr}")
        check(first.stdout == second.stdout and first.stdout, f"{name}: not the same twice")


def limit_files(n):
    """Limit this process to files of at most @n bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))


def test_sweep():
    """An interrupted sweep continues where it stopped, with any number of
    threads."""
    text = "[net]\nrate = 1Gb/s, 10Gb/s\n" + JOB + "policy = fifo, p3\n"
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        whole = sim("x.ini", "--threads", "1", "--out", "a.csv", cwd=d)
        check(whole.returncode == 0 and whole.stdout.count("\n") == 5, whole)
        with open(os.path.join(d, "a.csv"), encoding="utf-8") as f:
            rows = f.read()
        # Two points are done; the third one's line was partly written.
        with open(os.path.join(d, "b.csv"), "w", encoding="utf-8") as f:
            f.write("\n".join(rows.split("\n")[:4]) + "\n2,job,0,1")
        again = sim("x.ini", "--out", "b.csv", "--plot", "p.svg", "--y", "round", cwd=d)
        check(again.stdout == whole.stdout, again)
        check("2 of 4 points are in b.csv" in again.stderr, again.stderr)
        with open(os.path.join(d, "b.csv"), encoding="utf-8") as f:
            check(f.read() == rows, "rows differ")
        texts = [t.text for t in xml.etree.ElementTree.parse(
            os.path.join(d, "p.svg")).iter("{http://www.w3.org/2000/svg}text")]
        check("rate, Gb/s" in texts and "policy fifo" in texts, texts)
        with open(os.path.join(d, "x.ini"), "a", encoding="utf-8") as f:
            f.write("credit = 1MiB\n")
        other = sim("x.ini", "--out", "b.csv", cwd=d)
        check(other.returncode == 1 and "of another description" in other.stderr, other)
        full = sim("x.ini", "--out", "nowhere/x.csv", cwd=d)
        check(full.returncode == 1 and "nowhere/x.csv cannot be written" in full.stderr, full)
        check(sim("x.ini", "--json", cwd=d).returncode == 1, "a sweep as JSON")
        p = sim("x.ini", "--out", "d.csv", cwd=d)
        check("4 points are incomplete; point " in p.stderr and "gpu" in p.stderr, p)
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        # The disk is full before the last points.
        p = subprocess.run([os.path.abspath(rig.lab()), "sim", "x.ini", "--out", "c.csv",
                            "--threads", "1"], capture_output=True, text=True, cwd=d, check=False,
                           timeout=rig.RUN_S, preexec_fn=lambda: limit_files(len(rows)))
        check(p.returncode == 1 and "c.csv is full; free space, and the same command" in p.stderr, p)
        p = sim("x.ini", "--out", "c.csv", cwd=d)
        check(p.returncode == 0 and "of 4 points are in c.csv" in p.stderr, p)


def test_seeds():
    """A range of seeds is a sweep; its means have confidence intervals."""
    text = ("[net]\nrate = 1Gb/s\nloss = 0.5%\n" + JOB + "policy = fifo, p3\n[run]\n"
            "seed = 4-7\n")
    rows = sim_text(text).stdout.splitlines()
    means = rows.index("means over seeds, and half of their 95 % interval")
    check(means == 10 and len(rows) == 14, rows)
    for policy, mean in zip(("fifo", "p3"), rows[-2:]):
        values = [float(r.split()[3]) for r in rows[1:9] if r.startswith(policy)]
        half = 3.182 * statistics.stdev(values) / 2
        check(mean.split()[:3] == [policy, "job", "4"], mean)
        check(abs(float(mean.split()[3]) - statistics.mean(values)) < 0.002, mean)
        check(abs(float(mean.split()[4]) - half) < 0.002 and half > 0, mean)


def test_cut_point():
    """A point runs again if only some of its rows are in the file."""
    text = ("[net]\nrate = 1Gb/s, 10Gb/s\n" + JOB +
            "[traffic x]\nkind = udp\nfrom = gpu0\nto = cpu0\n")
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(text)
        whole = sim("x.ini", "--out", "a.csv", cwd=d)
        with open(os.path.join(d, "a.csv"), encoding="utf-8") as f:
            rows = f.read().splitlines(keepends=True)
        check(len(rows) == 6, rows)
        with open(os.path.join(d, "b.csv"), "w", encoding="utf-8") as f:
            f.writelines(rows[:5])
        again = sim("x.ini", "--out", "b.csv", cwd=d)
        check("1 of 2 points are in b.csv" in again.stderr, again.stderr)
        check(again.stdout == whole.stdout, again)


def test_goodput():
    """Two agents and a server fill its link; sums stay exact while frames are lost."""
    clean = result_of("[net]\nrate = 1Gb/s\n" + JOB)["jobs"][0]
    # The server's link carries 95 %, minus headers, for two agents.
    check(0.42e9 < clean["goodput_bit_s"] < 0.475e9, clean)
    check(clean["retransmissions"] < 10, clean)
    bad = result_of("[net]\nrate = 1Gb/s\nloss = 1%\ncorrupt = 1%\nreorder = 1%\n"
                    "burst_begin = 0.1%\n" + JOB)["jobs"][0]
    check(bad["retransmissions"] > 10 and bad["wrong_elements"] == 0, bad)
    check(bad["rounds"] == 3 and bad["goodput_bit_s"] < clean["goodput_bit_s"], bad)


def test_options():
    """Congestion control can be off; keyed jobs keep equal bytes; a job's weight counts."""
    rounds = {c: result_of("[net]\nrate = 1Gb/s\nbuffer = 64KiB\n[job]\nagents = gpu[0-7]\n"
                           f"servers = cpu0\nsize = 256KiB\nrounds = 2\ncongestion = {c}\n")
              for c in ("yes", "no")}
    check(rounds["no"]["dropped"] > 4 * rounds["yes"]["dropped"], rounds)
    keyed = [result_of("[net]\nloss = 1%\n" + JOB + "key = yes\nencrypt = yes\n")
             for _ in range(2)]
    check(keyed[0] == keyed[1] and keyed[0]["jobs"][0]["retransmissions"], keyed)
    two = "".join(f"[job {n}]\nagents = {n}[0-1]\nservers = cpu0\nsize = 1MiB\nrounds = 100\n"
                  for n in "ab")
    p = sim_text("[net]\nrate = 1Gb/s\n[run]\nduration = 600ms\noracle = no\n" + two +
                 "weight = 4\n", "--json")
    jobs = json.loads(p.stdout)["jobs"]
    check(jobs[1]["rounds"] > 1.2 * jobs[0]["rounds"] > 0, jobs)


def test_lcores():
    """Polling cores of a server share its link and the processing time of
    frames."""
    rows = sim_text("[net]\nrate = 100Gb/s\nbuffer = 4MiB\nframe = 1us\n[job]\nagents = gpu[0-3]\n"
                    "servers = cpu0\ntensors = 2\nsize = 4MiB\nrounds = 3\n"
                    "server_lcores = 1, 2, 4\n").stdout.splitlines()
    goodput = [float(r.split()[2]) for r in rows[1:]]
    check(goodput[1] > 1.5 * goodput[0] and goodput[2] > 1.4 * goodput[1], rows)
    agents = ("[net]\nrate = 100Gb/s\nbuffer = 4MiB\nframe = 1us\n[job]\nagents = gpu[0-1]\n"
              "servers = cpu[0-3]\ntensors = 2\nsize = 2MiB\nrounds = 4\nlocal_ranks = 2\n")
    rows = sim_text(agents + "lcores = 1, 2\n").stdout.splitlines()
    goodput = [float(r.split()[2]) for r in rows[1:]]
    check(goodput[1] > 1.5 * goodput[0], rows)
    p = sim_text(agents + "lcores = 3\nserver_lcores = 2\ncollective = all_reduce, all_gather\n"
                 "[roster x]\nservers = cpu[0-2]\nat = 1ms\n")
    check(p.returncode == 0 and p.stdout.count("\n") == 3, p)


LINKS = ("[net]\ntopology = links\nswitches = a, b\nrate = 1Gb/s\n[link 1]\nfrom = gpu[0-1]\n"
         "to = a\n[link 2]\nfrom = cpu0\nto = b\n[link t]\nfrom = a\nto = b\n")


def test_links():
    """A link has its own MTU, which agents find with PROBEs, and its own
    buffer."""
    plain, narrow, small = (result_of(LINKS + more + JOB) for more in
                            ("", "mtu = 1500\n", "buffer = 20KiB\n"))
    check(plain["dropped"] == 0 and plain["longest_queue_bytes"] > 300000, plain)
    check(narrow["dropped"] > 0 and narrow["jobs"][0]["retransmissions"] < 10, narrow)
    check(narrow["frames"] > 4 * plain["frames"], narrow)
    check(small["dropped"] > 0 and small["longest_queue_bytes"] <= 20 << 10, small)
    beside = result_of(LINKS + "mtu = 1500\n" + JOB + "[traffic x]\nfrom = gpu0\nto = cpu0\n")
    check(beside["jobs"][0]["rounds"] == 3 and beside["traffic"][0]["goodput_bit_s"], beside)


def test_ports():
    """Frames are duplicated, a ring overflows, and a node obeys its limit."""
    once, twice = (result_of(f"[net]\nrate = 1Gb/s\nduplicate = {chance}\n" + JOB)
                   for chance in ("0%", "10%"))
    check(twice["jobs"][0]["wrong_elements"] == 0 and twice["jobs"][0]["rounds"] == 3, twice)
    check(1.05 < twice["time_ns"] / once["time_ns"] < 1.5, f"{once}, {twice}")
    full = result_of("[net]\nring = 16\nframe = 9us\n" + JOB)
    check(full["dropped"] > 0 and full["jobs"][0]["wrong_elements"] == 0, full)
    slow = result_of("[net]\nport_rate = 100Mb/s\n" + JOB)
    check(0.04e9 < slow["jobs"][0]["goodput_bit_s"] < 0.1e9, slow)


def test_stragglers():
    """Agents are late by a distribution, or by the times of a file."""
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write(JOB.replace("= 3", "= 20") + "straggler_time = constant 9ms, file late.txt, "
                    "exponential 9ms\n")
        with open(os.path.join(d, "late.txt"), "w", encoding="utf-8") as f:
            f.write("# measured\n30ms\n\n 30ms # again\n")
        rows = sim("x.ini", cwd=d).stdout.splitlines()[1:]
    times = [float(r[15:].split()[2]) for r in rows]
    # The later of two exponential times has the median 1.23 * 9 ms.
    check(9 < times[0] < 11 and 30 < times[1] < 32 and 6 < times[2] < 20, rows)


def test_stalls():
    """Cores without a CPU slow a job down, and a seed gives the same stalls; bytes
    leave a token bucket at once after a pause."""
    job = JOB.replace("= 3", "= 30")
    stall = "[net]\nstall = {}\nstall_gap = exponential 2ms\n" + job
    never, twice, thrice = (result_of(text) for text in (job, *[
        stall.format("exponential 2ms")] * 2))
    check(twice == thrice and twice["jobs"][0]["wrong_elements"] == 0, twice)
    check(twice["time_ns"] > 1.3 * never["time_ns"], f"{never}, {twice}")
    short = result_of(stall.format("constant 1ns"))
    check(short["time_ns"] < 1.1 * never["time_ns"], f"{never}, {short}")
    slow = ("[net]\ntopology = links\nswitches = s, t\nbuffer = 8MiB\n[link a]\nfrom = gpu[0-1]\nto = s\n"
            "[link b]\nfrom = cpu0\nto = t\n[link c]\nfrom = s\nto = t\nrate = 100Mb/s\nbucket = {}\n"
            + JOB + "compute = 1s\n")
    none, some = (result_of(slow.format(n))["jobs"][0]["round_median_ns"] for n in ("0", "8MiB"))
    check(some - 1e9 < 0.2 * (none - 1e9), f"{none}, {some}")


def test_copies():
    """Identical jobs have nodes of their own; figures are their means."""
    job = ("[net]\ntopology = leaf-spine\nleaf_nodes = 3\nbuffer = 8MiB\n[job]\nagents = gpu[0-1]\n"
           "servers = cpu0\nsize = 256KiB\nrounds = 3\ncopies = ")
    one, four = (result_of(job + n + "\n") for n in "14")
    check(len(four["jobs"]) == 1 and four["frames"] > 3.9 * one["frames"], four)
    check(0.99 < four["jobs"][0]["goodput_bit_s"] / one["jobs"][0]["goodput_bit_s"] < 1.01, four)
    p = sim_text(job + "16\n[job b]\nagents = h0\nservers = h1\n")
    check(p.returncode == 1 and "x.ini:10: [job] copies: more than 16 jobs" in p.stderr, p.stderr)


def test_async():
    """Late agents delay no other agent in an asynchronous job, and its values
    stay within their bounds."""
    job = ("[net]\nloss = 0.5%\n[job]\nagents = gpu[0-3]\nservers = cpu0\nsize = 256KiB\nrounds = 10\n"
           "local_ranks = 1, 2\nstraggler = 30%\nstraggler_time = uniform 0s 20ms\nmode = ")
    p = sim_text(job + "synchronous, asynchronous\n", "--threads", "1")
    check(p.returncode == 0, p.stderr)
    rows = [line.split() for line in p.stdout.splitlines()[1:]]
    goodput = {(r[0], r[1]): float(r[3]) for r in rows}
    for n in "12":
        check(goodput[n, "asynchronous"] > 1.1 * goodput[n, "synchronous"] > 0, p.stdout)


def test_collectives():
    """Collectives of several local ranks stay exact; parts travel in one
    direction only."""
    for servers in ("cpu[0-1]", "gpu[0-1]"):
        p = sim_text("[net]\nloss = 0.5%\n[job]\nagents = gpu[0-1]\nservers = " + servers +
                     "\nsizes = 3MiB, 1KiB\nlocal_ranks = 2\nrounds = 3\ncollective = "
                     "all_reduce, reduce_scatter, all_gather, broadcast\n", "--threads", "1")
        check(p.returncode == 0, p.stderr)
        goodput = {r.split()[0]: float(r.split()[2]) for r in p.stdout.splitlines()[1:]}
        check(len(goodput) == 4 and min(goodput.values()) > 1, p.stdout)
        check(goodput["all_gather"] > 1.2 * goodput["all_reduce"], p.stdout)


def test_late_acks():
    """A sender that runs out of data before its window is full waits for a late
    ACK."""
    out = result_of("[net]\nshared = yes\nbuffer = 2MiB\necn = 128KiB\n[run]\noracle = no\n"
                    "[job]\nagents = gpu[0-3]\nservers = cpu[0-1]\ntensors = 2\nsize = 4MiB\n"
                    "rounds = 3\npolicy = p3\n")
    check(not out["dropped"] and out["marked"] > 100, out)
    check(out["jobs"][0]["timeouts"] < 10, out)


LUA = os.path.join(CONF, "../wireshark/sumwire.lua")
BROKEN = "_ws.malformed || _ws.lua.error || sumwire.crc || sumwire.short || sumwire.length"


def test_records():
    """Figures over time, a trace, and a link's frames in Wireshark's format."""
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write("[net]\nbuffer = 64KiB\n" + JOB + "compute = 50us\n[record]\n"
                    "csv = x.csv\ntrace = x.json\nevery = 100us\npcapng = x.pcapng\nfrom = switch\nto = cpu0\n")
        p = sim("x.ini", cwd=d)
        check(p.returncode == 0, p.stderr)
        with open(os.path.join(d, "x.csv"), encoding="utf-8") as f:
            head, *rows = f.read().splitlines()
        check(head == "time_us,figure,from,to,value", head)
        figures = {row.split(",")[1] for row in rows}
        check(figures == {"queue_bytes", "frames", "dropped", "rate_bit_s", "window_bytes", "grant_bytes",
                          "rtt_ns", "retransmissions", "tensor_ns", "class_ns"}, figures)
        times = {what: [int(row.split(",")[4]) for row in rows if f"_ns,gpu0,{what}," in row]
                 for what in ("tensor 1", "tensor 2", "class 0", "class 1", "class 2")}
        check(all(len(t) == 3 for t in times.values()), times)  # class 1: tensors 1 and 2
        check(all(c >= max(t) for c, *t in zip(times["class 1"], times["tensor 1"],
                                              times["tensor 2"])), times)
        rates = [int(row.split(",")[4]) for row in rows if ",rate_bit_s,switch,cpu0," in row]
        check(8e9 < max(rates) <= 10.8e9, rates)  # 10 Gb/s, and one frame in 100 us
        check(sum("tensor_ns,gpu0,tensor 3," in row for row in rows) == 3, rows[-9:])
        with open(os.path.join(d, "x.json"), encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        slices = collections.Counter((e["pid"], e["name"]) for e in events if e["ph"] == "X")
        check(slices[2, "forward 0"] == slices[3, "tensor 3"] == 3, slices)
        last = [e["args"]["value"] for e in events if e["name"] == "queue_bytes switch to cpu0"]
        check(len(last) == sum(row.split(",")[1:4] == ["queue_bytes", "switch", "cpu0"]
                               for row in rows) > 1, last)
        if not shutil.which("tshark"):
            return
        tshark = ["tshark", "-X", "lua_script:" + os.path.abspath(LUA), "-r", "x.pcapng"]
        frames, bad = (subprocess.run([*tshark, *more], capture_output=True, text=True, cwd=d,
                                      timeout=rig.RUN_S, check=True).stdout
                       for more in ([], ["-Y", BROKEN + " || frame.cap_len > 512"]))
        check("PUSH key" in frames and "JOIN" in frames and not bad, bad or frames[:500])


def test_traffic():
    """Foreign flows share a queue; traffic leaves a failed link and returns
    later."""
    alone = result_of("[net]\nrate = 1Gb/s\n" + JOB)["jobs"][0]["goodput_bit_s"]
    both = result_of("[net]\nrate = 1Gb/s\n" + JOB + "[traffic x]\nkind = udp\nfrom = o\n"
                     "to = cpu0\nrate = 500Mb/s\n")
    check(0.4 * alone < both["jobs"][0]["goodput_bit_s"] < 0.6 * alone, both)
    flows = result_of("[net]\nrate = 1Gb/s\nbuffer = 256KiB\necn = 64KiB\n[run]\n"
                      "duration = 500ms\n[traffic a]\nfrom = a, b\nto = c\necn = yes\n")
    check(flows["traffic"][0]["goodput_bit_s"] > 0.9e9 and not flows["dropped"], flows)
    flap = result_of("[net]\ntopology = leaf-spine\n" + JOB + "[flap x]\nfrom = leaf0\n"
                     "to = spine0\nat = 500us\nfor = 200us\nevery = 500us\n")
    check(flap["jobs"][0]["rounds"] == 3, flap)
    with open(os.path.join(CONF, "neighbours.ini"), encoding="utf-8") as f:
        text = re.sub("(?m)^buffer = .*", "buffer = 128KiB", f.read())
    beside = result_of(text)  # retransmissions that a full queue drops wait for no timer
    check(beside["traffic"][0]["goodput_bit_s"] > 0.3e9 and not beside["traffic"][0]["timeouts"], beside)


def test_phases():
    """Beside four TCP flows the job's share does not depend on the senders'
    delays: no rhythm of ACKs locks it out."""
    links = "".join(f"[link {i}]\nfrom = {node}\nto = s\ndelay = {us}us\n" for i, (node, us) in enumerate(
        [("gpu0", 10), ("cpu0", 10), *((f"other{k}", 10 + 3 * k) for k in range(4))]))
    out = result_of("[net]\ntopology = links\nswitches = s\nmtu = 1500\nbuffer = 256KiB\n[run]\noracle = no\n"
                    + links + "[job]\nagents = gpu0\nservers = cpu0\ntensors = 1\nsize = 1MiB\nrounds = 30\n"
                    "[traffic x]\nfrom = other[0-3]\nto = cpu0\n")
    check(out["jobs"][0]["goodput_bit_s"] > 0.35 * 10e9 / 5, out)


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def message(*fields):
    """Encode a Protobuf message: (number, integer or bytes)."""
    return b"".join(varint(f << 3) + varint(v) if isinstance(v, int)
                    else varint(f << 3 | 2) + varint(len(v)) + v for f, v in fields)


def chakra(*nodes):
    """Make a trace of (id, micros, comm_type, comm_size, dependencies)."""
    out = [message((1, b"0.0.4"))]
    for number, micros, kind, size, deps in nodes:
        attrs = [(10, message((1, name), (9, value))) for name, value in
                 ((b"comm_type", kind), (b"comm_size", size)) if kind is not None]
        out.append(message((1, number), (2, b"x"), (3, 4 if kind is None else 7),
                           (5, b"".join(map(varint, deps))), (7, micros), *attrs))
    return b"".join(varint(len(m)) + m for m in out)


def chakra_run(trace, *args, more="", other=None):
    """Run a trace; with an @other trace for rank 2, each agent has two ranks."""
    names = {"x.et": trace} if other is None else {"x.0.et": trace, "x.2.et": other}
    with tempfile.TemporaryDirectory() as d:
        for name, text in names.items():
            with open(os.path.join(d, name), "wb") as f:
                f.write(text)
        with open(os.path.join(d, "x.ini"), "w", encoding="utf-8") as f:
            f.write("[job]\nagents = gpu[0-1]\nservers = cpu0\nrounds = 4\ntrace = "
                    + ("x.et\n" if other is None else "x.*.et\nlocal_ranks = 2\n") + more)
        return sim("x.ini", *args, cwd=d)


def test_chakra():
    """Run a trace's computations and collectives; errors name the node."""
    nodes = [(1, 300, None, 0, []), (7, 200, None, 0, [1]), (3, 0, 0, 1 << 20, [1]),
             (4, 0, 7, 1 << 20, [7, 3]), (5, 1000, None, 0, [4]), (6, 0, 2, 1 << 16, [5]),
             (8, 0, 5, 4096, [1]), (9, 50, None, 0, [1])]
    for more in ("", "straggler = 50%\nstraggler_time = uniform 0s 1ms\nlocal_ranks = 2\n[net]\nloss = 1%\n"):
        p = chakra_run(chakra(*nodes), "--json", more=more)
        check(p.returncode == 0, p.stderr)
        job = json.loads(p.stdout)["jobs"][0]
        # The longest chain has two computations and three collectives.
        check(job["rounds"] == 4 and 1.3e6 < job["round_median_ns"] < 30e6, job)
    for wrong, why in [
            (chakra((1, 0, 6, 8, [])), "node 1 is a ALL_TO_ALL"),
            (chakra((1, 0, 99, 8, [])), "node 1 has the unknown collective 99"),
            (chakra((1, 0, 0, 8, [4])), "depends on node 4, which is not there"),
            (chakra((1, 0, 0, 8, [2]), (2, 5, None, 0, [1])), "node 2 is in a circle of dependencies"),
            (chakra((1, 5, None, 0, [])), "no collective"),
            (chakra(*nodes)[:-3], "ends within a message"), (b"{}", "no trace of Chakra")]:
        p = chakra_run(wrong)
        check(p.returncode == 1 and "x.ini:5: [job] trace: x.et: " in p.stderr, p.stderr)
        check(why in p.stderr and p.stderr.count("\n") == 1, p.stderr)


def test_chakra_of_each():
    """Each agent follows its own trace; all call the same collectives."""
    nodes = [(1, 300, None, 0, []), (2, 0, 0, 1 << 20, [1]), (3, 0, 5, 4096, [2])]
    late = [(1, 9000, None, 0, []), (4, 5, None, 0, [1]), (5, 0, 0, 1 << 20, [4]),
            (6, 0, 5, 4096, [5])]
    p = chakra_run(chakra(*nodes), "--json", other=chakra(*late))
    check(p.returncode == 0, p.stderr)
    job = json.loads(p.stdout)["jobs"][0]
    check(job["rounds"] == 4 and 9.005e6 < job["round_median_ns"] < 30e6, job)
    for wrong, why in [(nodes[:-1], "it has 1 collectives, and the first rank's has 2"),
                       (nodes[:-1] + [(3, 0, 5, 8192, [2])], "node 3 calls broadcast of 8192 bytes where "
                        "the first rank calls broadcast of 4096")]:
        p = chakra_run(chakra(*nodes), other=chakra(*wrong))
        check(p.returncode == 1 and "x.ini:5: [job] trace: x.2.et: " + why in p.stderr, p.stderr)


ROSTERS = ("[job]\nagents = gpu[0-2]\nservers = cpu[0-2], gpu[0-2]\ntensors = 1\nsize = 8MiB\n"
           "rounds = 20\ndead_after = 1s\n")


def test_rosters():
    """Servers come and go between rounds; a job joins again without servers
    that are cut off."""
    goodput = {}
    for key, more in [("all", ""), ("none", ""), ("some", "[roster x]\nservers = gpu[0-2]\n"
                      "at = 30ms\nfor = 30ms\nevery = 60ms\n[run]\noracle = no\n")]:
        text = ROSTERS if key != "none" else ROSTERS.replace("cpu[0-2], ", "")
        goodput[key] = result_of(text + more)["jobs"][0]["goodput_bit_s"]
    check(goodput["none"] < goodput["some"] < 0.98 * goodput["all"], goodput)
    for work in ("", "collective = all_reduce\nlocal_ranks = 2\n"):
        out = result_of(ROSTERS + work + "[roster x]\nservers = cpu[0-1], gpu[0-2]\nat = 30ms\n"
                        "for = 2s\ncut = yes\n")
        check(out["jobs"][0]["rounds"] == 20 and 1e9 < out["time_ns"] < 3e9, out)


PLAIN = ("[net]\nrate = 1Gb/s\nbuffer = 16MiB\n[job]\nagents = gpu[0-3]\nsize = 8MiB\nrounds = 4\n"
         "transport = ")


def test_plain():
    """A ring sends 3/2 of the bytes; servers return a tensor when it is
    completely pushed."""
    for transport, servers, share in [("ring", "cpu0", 2 / 3), ("server", "cpu[0-3]", 1),
                                      ("server", "gpu[0-3]", 2 / 3), ("server", "cpu0", 1 / 4)]:
        job = result_of(f"{PLAIN}{transport}\nservers = {servers}\n")["jobs"][0]
        check(0.75 * share < job["goodput_bit_s"] / 1e9 < share, f"{transport}, {servers}: {job}")
    beside = result_of(f"{PLAIN}ring\nservers = cpu0\n[job b]\nagents = gpu4\nservers = gpu5\n"
                       "size = 1MiB\n[traffic x]\nfrom = gpu0\nto = gpu1\nkind = udp\n"
                       "rate = 500Mb/s\n")
    check(beside["jobs"][0]["goodput_bit_s"] < 0.4e9 < beside["jobs"][1]["goodput_bit_s"], beside)
    p = sim_text(PLAIN.replace("[0-3]", "0") + "ring\nservers = cpu0\n")
    check(p.returncode == 1 and "needs two agents" in p.stderr, p.stderr)


def figures(*args):
    return subprocess.run([os.path.abspath(rig.lab()), "figures", *args], capture_output=True,
                          text=True, timeout=rig.RUN_S, check=False)


def test_figures():
    """Draw one figure of the papers: its gain, its plot, its page; the document
    has all figures."""
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        name = "bytescheduler-02"
        shutil.copy(os.path.join(CONF, "figures", name + ".ini"), a)
        page = figures("--from", a, "--out", b, "--commit", "12ab", "--landscapes", "1")
        check(page.returncode == 0, page.stderr)
        gain = float(page.stdout.split("44.4 % | ")[1].split(" %")[0])
        check(40 < gain < 46, page.stdout)
        with open(os.path.join(b, "figures.md"), encoding="utf-8") as f:
            text = f.read()
        check("commit 12ab" in text and f"| 44.4 % | {gain} % |" in text, text)
        check("| 23.7 % | 23.7 % | none |" in text, "machines' wiring")
        check(sorted(os.listdir(os.path.join(b, "figures"))) ==
              ["byteps-14-nvlink.svg", "byteps-14-pcie.svg", name + ".svg"], "files")
        with open(os.path.join(b, "figures", name + ".svg"), encoding="utf-8") as f:
            svg = f.read()
        check("policy p3" in svg and "stroke-dasharray" in svg, svg)
        for wrong, why in [("", '[figure] y: "nix" is none of goodput,'),
                           ("of = policy p4\n", 'policy is never "p4"'),
                           ("curve = no\nshow = gain\n", "no [curve no]"),
                           ("show = gain\n", "over or curve"),
                           ("y = no\n", '[claim x] y: "no" is none of goodput,'),
                           ("[curve c]\nformula = ring\nof = rate 1Gb/s\n", "[curve c]")]:
            with open(os.path.join(a, "x.ini"), "w", encoding="utf-8") as f:
                f.write(JOB + "policy = p3, fifo\n[figure]\ntitle = t\ny = "
                        + ("round\n[claim x]\ntext = t\n" + wrong if wrong else "nix\n"))
            p = figures("--from", a, "--out", b, "x")
            check(p.returncode == 1 and why in p.stderr, p.stderr)
            check(p.stderr.count("\n") == 1 and "x.ini:" in p.stderr, p.stderr)
    with open(os.path.join(CONF, "../../doc/figures.md"), encoding="utf-8") as f:
        text = f.read()
    for name in os.listdir(os.path.join(CONF, "figures")):
        check(f"figures/{name})" in text, f"doc/figures.md lacks {name}: make it again")


def test_lists():
    """Lists of nodes advance in step."""
    text = (JOB.replace("gpu[0-1]", "gpu0 | gpu[0-1]").replace("cpu0", "cpu0 | cpu[0-1]"))
    p = sim_text(text, "--out", "x.csv")
    check(p.returncode == 0 and p.stdout.count("\n") == 3, p)
    p = sim_text(text.replace("cpu0 |", "cpu0 | cpu1 |"))
    check(p.returncode == 1 and "x.ini:3:" in p.stderr and "step together" in p.stderr, p)


WRONG = [
    ("[net]\nrate = 0Gb/s\n" + JOB, ["x.ini:2:", "[net] rate", "out of range"]),
    ("[net]\nbuffer = 8000\n" + JOB, ["x.ini:2:", "buffer", "less than one frame"]),
    ("[net]\nbufer = 1MiB\n" + JOB, ["x.ini:2:", "unknown key", "did you mean buffer?"]),
    ("[nett]\n" + JOB, ["x.ini:1:", "unknown section", "[net]?"]),
    (JOB.replace("gpu[0-1]", "gpu[0-99999]"), ["x.ini:2:", "100000 nodes", "4096"]),
    (JOB.replace("gpu[0-1]", "gpu[0-1"), ["x.ini:2:", "not a name or a range"]),
    (JOB.replace("cpu0", "cpu#0"), ["x.ini:3:", "[job] servers", "\"cpu#0\" has '#'"]),
    (JOB.replace("servers = cpu0\n", ""), ["[job] servers", "must be given"]),
    (JOB.replace("cpu0", "gpu0"), ["x.ini:3:", "on all nodes of agents, or on none"]),
    ("[net]\ntopology = links\nswitches = a, b\n[link 1]\nfrom = gpu[0-1]\nto = a\n"
     "[link 2]\nfrom = cpu0\nto = b\n" + JOB, ["x.ini:2: [net] topology", "not connected", "gpu", "cpu0"]),
    ("[run]\nduration = 1ms\n" + JOB, ["0 of 3 rounds"]),
    ("[run]\n", ["there is no [job]"]),
    (JOB + "[run]\nseed = 3-1\n", ["x.ini:7:", "seed"]),
    (JOB + "[run]\nseed = 1-10000\n", ["x.ini:7:", "10000 points"]),
    (JOB + "[record]\npcapng = x\nfrom = gpu0\nto = gpu1\n", ["x.ini:7:", "[record] pcapng", "no link from", "switch"]),
    (JOB + "[record]\ncsv = /dev/full\n", ["csv", "not complete"]),
    (JOB + "[flap x]\nfrom = gpu0\nto = gpu1\n", ["x.ini:6:", "[flap x]", "no link between"]),
    (JOB + "collective = broadcast\ntransport = ring\n", ["x.ini:6:", "[job] collective", "sumwire"]),
    (JOB.replace("256KiB", "4") + "collective = all_gather\n", ["x.ini:6:", "[job] collective", "fewer elements"]),
    (JOB + "[roster x]\nservers = gpu[0-1]\n", ["[roster x] servers", "neither come nor go"]),
    (JOB + "[roster x]\nservers = cpu1\njob = b\n", ["x.ini:8:", "[roster x] job", "no such job"]),
    (JOB + "[roster x]\nservers = cpu1\nfor = 2s\nevery = 1s\n", ["every", "not longer"]),
    (JOB.replace("cpu0", "gpu[0-1]") + "server_lcores = 2\n",
     ["x.ini:6:", "[job] server_lcores", "without agents"]),
    (JOB + "lcores = 2\n", ["x.ini:6:", "[job] lcores", "there are fewer"]),
    (JOB.replace("cpu0", "gpu[0-1]") + "lcores = 2\n",
     ["x.ini:6:", "[job] lcores", "without servers"]),
    (JOB + "encrypt = yes\n", ["x.ini:6:", "encrypt", "key = yes"]),
    (JOB + "key = yes\n[run]\noracle = no\n", ["x.ini:6:", "[job] key", "oracle = yes"]),
    (JOB + "quota = 1MiB\n", ["quota of job job", "1 MiB"]),
    (JOB + "[traffic x]\nfrom = a\nto = a\n", ["x.ini:6:", "[traffic x]", "to itself"]),
    (JOB + "mode = asynchronous\ncollective = broadcast\n", ["mode", "push_pull"]),
    (LINKS + "mtu = 1200\n" + JOB, ["x.ini:14:", "[link t] mtu", "1280 to 9216"]),
    (LINKS + "buffer = 100\n" + JOB, ["x.ini:14:", "[link t] buffer", "less than one frame of 9018"]),
    (LINKS.replace("rate", "shared = yes\nrate") + "buffer = 1MiB\n" + JOB,
     ["x.ini:15:", "[link t] buffer", "share their switch's"]),
    (LINKS.replace("to = a", "to = a\nmtu = 1500") + JOB + "payload = 8192\n",
     ["x.ini:20:", "[job] payload", "at most 1408"]),
    ("[link 1]\nfrom = gpu0\nto = switch\n" + JOB, ["x.ini:1:", "[link 1]", "needs [net] topology = links"]),
    ("[net]\nring = 1\n" + JOB, ["x.ini:2:", "[net] ring", "16 to 65536"]),
    ("[net]\nduplicate = 101%\n" + JOB, ["x.ini:2:", "[net] duplicate", "out of range"]),
    (JOB + "straggler = 5%\n", ["x.ini:6:", "[job] straggler", "needs straggler_time"]),
    (JOB + "straggler_time = 10ms\n", ["x.ini:6:", "[job] straggler_time", "no distribution", "pareto"]),
    (JOB + "straggler_time = uniform 5ms 3ms\n", ["x.ini:6:", "uniform LEAST MOST"]),
    (JOB + "straggler_time = pareto 1ms 0\n", ["x.ini:6:", "from 0.01 to 10"]),
    ("[net]\nstall = 1ms\n" + JOB, ["x.ini:2:", "[net] stall", "no distribution"]),
    ("[net]\nstall = constant 1ms\nstall_gap = uniform 1ms\n" + JOB,
     ["x.ini:3:", "[net] stall_gap", "uniform LEAST MOST"]),
    (JOB + "straggler_time = file no.txt\n", ["x.ini:6:", "no.txt: No such file"]),
    (JOB + "straggler_time = file x.ini\n", ["x.ini:6:", 'x.ini:1: "[job]" is no time', "one a line"]),
    (JOB.replace("= 3", "= 100000") + "mode = asynchronous\n", ["rounds", "oracle = no"]),
]


def test_bad_input():
    for text, parts in WRONG:
        p = sim_text(text)
        check(p.returncode == 1, f"exit {p.returncode} of {text!r}")
        lines = p.stderr.strip().splitlines()
        check(len(lines) == 1, f"{len(lines)} lines for {text!r}: {p.stderr}")
        for part in parts:
            check(part in p.stderr, f"{part!r} is not in {p.stderr!r}")
    check(sim().returncode == 2, "no file")
    check(sim("/nowhere/x.ini").returncode == 1, "a file that is absent")


if __name__ == "__main__":
    rig.main(dict(globals()))
