# proc_trace.py - sumwire trace: check every recorded event of a job
# SPDX-License-Identifier: BSD-3-Clause
"""A trace of a whole job must agree with the counters of its daemons."""
import collections
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import proc_coll
import rig
from hosts import Lo
from proc_ps import UNIQUE, named, unique
from rig import Net, check

TENSORS = ("--tensor", "w:100000:f32", "--tensor", "v:3000:f16")
PICTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../doc/measurements/trace_picture.py")
BLOCK = struct.Struct("=IHHII")
SLICE_S, PAIRS = 0.5, 21
OUTPUT = {"trace": ("--output",), "capture": ("--write",)}
MOST = {"trace": ("--output", "--size=10G"), "capture": ("--write", "--snaplen=54")}


def trace(*args, code=0):
    p = subprocess.run([rig.sumwire(), "trace", *args], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=rig.RUN_S, text=True)
    check(p.returncode == code, f"trace {args}: {p}")
    return p


def begin(net, path, name="trace", what="trace", more=()):
    """Record all daemons of @net until the process gets a signal."""
    output, *options = more or OUTPUT[what]
    before = {n: net.daemons[n].log().count(f"{what}: recording") for n in net.daemons}
    p = net.run(name, rig.sumwire(), what, "--time", "0", output, path, *options,
                *(unique(n) for n in net.daemons))
    p.await_text(r"recording \d+ daemons")
    for n in net.daemons:
        rig.wait_until(lambda: net.daemons[n].log().count(f"{what}: recording") > before[n],
                       rig.START_S, f"{what} of {n}")
    return p


def read(*files, path):
    p = trace("--read", *files, "--output", path, "--report")
    with open(path, encoding="utf-8") as f:
        return p, json.load(f)


# --- single events ---

def check_slices(events):
    """Check that slices of a track are in order. A call's states lie within the
    call's slice; other slices do not overlap."""
    around, begun = collections.defaultdict(list), {}
    for e in events:
        if e["ph"] != "X":
            continue
        track = e["pid"], e["tid"]
        from_us, to_us = e["ts"], e["ts"] + e["dur"]
        check(from_us >= 0 and e["dur"] >= 0, f"time: {e}")
        check(from_us >= begun.get(track, 0), f"goes back: {e}")
        outer = around[track]
        while outer and from_us >= outer[-1]["ts"] + outer[-1]["dur"] - 0.002:
            outer.pop()
        is_state = e.get("cat") == "state"
        check([o.get("cat") for o in outer] == ["call"] * is_state, f"overlaps {outer}: {e}")
        check(not outer or to_us <= outer[-1]["ts"] + outer[-1]["dur"] + 0.002,
              f"ends after {outer}: {e}")
        begun[track] = from_us
        outer.append(e)


def check_names(events):
    """Check that every track has a name and every event a known kind."""
    named_tracks = {(e["pid"], e["tid"]) for e in events
                    if e["ph"] == "M" and e["args"]["name"]}
    for e in events:
        check(e["ph"] in "MXstf", f"kind: {e}")
        check((e["pid"], e["tid"]) in named_tracks, f"no name: {e}")


def check_arrows(events):
    """Check that each arrow begins once, ends once, and touches slices in the
    order of a chunk's life. Return the number of complete arrows."""
    slices = {(e["pid"], e["tid"], e["ts"]): e for e in events
              if e["ph"] == "X"}
    arrows = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "stf":
            at = slices.get((e["pid"], e["tid"], e["ts"]))
            check(at, f"an arrow touches nothing: {e}")
            arrows[e["id"]].append((e, at))
    stages = ["push", "fold", "result", "hold"]
    n_whole = 0
    for way in arrows.values():
        kinds = "".join(e["ph"] for e, _ in way)
        check(re.fullmatch("st*f", kinds), f"an arrow goes {kinds}")
        names = [at["name"] for _, at in way]
        check(names == [s for s in stages if s in names], f"{names}")
        chunks = {(a["args"]["tensor"], a["args"]["chunk"],
                   a["args"].get("round")) for _, a in way}
        check(len(chunks) == 1, f"an arrow joins {chunks}")
        times = [e["ts"] for e, _ in way]
        check(times == sorted(times), f"an arrow goes back: {way}")
        n_whole += names == stages
    return n_whole


def sums(events, pid, name, is_new=False):
    """Return the number and bytes of a daemon's slices with this name."""
    got = [e["args"] for e in events if e["ph"] == "X" and e["pid"] == pid and
           e["name"] == name and e.get("cat") == "chunk" and
           not (is_new and e["args"].get("retransmission"))]
    return len(got), sum(a["bytes"] for a in got)


def check_sums(events, pids, stats):
    """Check that traced events agree with the counters."""
    for name, pid in pids.items():
        s = stats[name]
        pushed = "fold" if name == "a" else "push"
        check(sums(events, pid, pushed, is_new=name != "a") ==
              (s["push_folded"], s["push_bytes"]), f"{name}: pushes differ")
        taken = "result" if name == "a" else "hold"
        check(sums(events, pid, taken) == (s["results"], s["result_bytes"]),
              f"{name}: results differ")
    done = [e for e in events if e["ph"] == "X" and
            e.get("args", {}).get("complete")]
    check(len(done) == stats["a"]["chunks_done"], "completed sums differ")


def pids_of(net, data):
    """Return the trace's process for each daemon."""
    nodes = {d["pid"]: i + 1 for i, d in enumerate(data["otherData"]["daemons"])}
    return {n: nodes[p.pid] for n, p in net.daemons.items()}


def check_calls(events, pids, steps):
    for name in "agent0", "agent1":
        calls = collections.Counter(
            e["name"] for e in events if e.get("cat") == "call" and
            e["pid"] == pids[name])
        check(calls == {"w": steps, "v": steps}, f"calls of {name}: {calls}")
        states = collections.Counter(
            e["name"] for e in events if e.get("cat") == "state" and
            e["pid"] == pids[name])
        check(states == {"ready": 2 * steps, "started": 2 * steps},
              f"states of {name}: {states}")
        queued = [e["args"]["queued_us"] for e in events if e.get("cat") == "call" and
                  e["pid"] == pids[name]]
        check(all(us > 0 for us in queued), f"queued at {name}: {queued}")


def move_clock(path, moved, pid, by_ns):
    """Move the clock of daemon @pid in a trace, as on another machine."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at, mine = 8, None
    while at < len(data):
        kind, daemon, _, n, _ = BLOCK.unpack_from(data, at)
        at += BLOCK.size
        if kind == 1:
            if struct.unpack_from("=q", data, at + 176)[0] == pid:
                mine = daemon
                data[at + 136:at + 140] = b"else"
        elif kind == 4 and daemon == mine:
            for i in range(at, at + n, 32):
                t, = struct.unpack_from("=Q", data, i)
                struct.pack_into("=Q", data, i, t + by_ns)
        at += n
    with open(moved, "wb") as f:
        f.write(data)


def check_clocks(net, raw, folder):
    """Check that a clock that is 5 s ahead is found, within the printed bound."""
    moved, path = os.path.join(folder, "moved"), os.path.join(folder, "m.json")
    move_clock(raw, moved, net.daemons["agent1"].pid, 5_000_000_000)
    p, data = read(moved, path=path)
    check(re.search(r"clock aligned within [\d.]+ us", p.stderr), p.stderr)
    clocks = {d["pid"]: d for d in data["otherData"]["daemons"]}
    a, moved = (clocks[net.daemons[n].pid] for n in ("a", "agent1"))
    error_ns = a["error_ns"] + moved["error_ns"]  # the other daemon is the reference
    ahead_ns = moved["offset_ns"] - a["offset_ns"]
    check(a["aligned"] and moved["aligned"] and
          0 < abs(ahead_ns - 5_000_000_000) + error_ns <= 2 * error_ns,
          f"{a} {moved}")
    check_slices(data["traceEvents"])


def check_bad_files(raw, folder):
    """Check truncated files and files that are no trace."""
    with open(raw, "rb") as f:
        data = f.read()
    path = os.path.join(folder, "cut")
    for n in range(0, 200, 37):
        with open(path, "wb") as f:
            f.write(data[:len(data) - n])
        p, _ = read(path, path=path + ".json")
        check(f"{path}: ends within the block at byte " in p.stderr or n % 16 == 0, p.stderr)
    hello = data[:8 + 16 + 192]
    for bad, why in ((b"", "not a trace of this version"),
                     (b"SWTRACE0" + data[8:], "not a trace of this version"),
                     (data[:8], "has no daemon"),
                     (data[:8] + b"\xff" * 64, "at byte 8: a block that is too long"),
                     (hello + hello[8:], "at byte 216: a daemon twice"),
                     (hello + struct.pack("<I2sHII", 4, hello[12:14], 0, 32, 0) + b"\xff" * 32,
                      "at byte 216: an event of an unknown kind")):
        with open(path, "wb") as f:
            f.write(bad)
        p = trace("--read", path, code=1)
        check(f"{path}: {why}" in p.stderr or f"{path}: damaged {why}" in p.stderr, f"{p}")
    check("No such file" in trace("--read", "/nowhere/x", code=1).stderr, "")
    check("needs files" in trace("--read", code=2).stderr, "")


def check_bad_ends(net, folder):
    """Check that a full disk, or a daemon's death, ends a trace with the events
    so far."""
    p = trace(unique("a"), "--output", "/dev/full", code=1)
    check("No space left" in p.stderr, f"{p}")
    raw, path = os.path.join(folder, "early"), os.path.join(folder, "e.json")
    p = begin(net, raw, "early")
    clients = rig.start_forever(net, *TENSORS)
    net.kill("agent1")
    p.await_text("ended while it was traced")
    p.signal(signal.SIGINT)
    check(p.wait(rig.STOP_S) == 1, "a trace without an end is not whole")
    p, data = read(raw, path=path)
    check(re.search(r"agent1.*ended early", p.stderr), p.stderr)
    check_slices(data["traceEvents"])
    check(check_arrows(data["traceEvents"]) > 0, "no arrow")
    for c in clients:
        c.destroy()
    net.start("agent1")  # removes the killed daemon's files


def check_copies(events):
    """Check that processes copy into shared memory before the agent takes a
    call, and out of it until the call ends."""
    calls = collections.defaultdict(list)
    for e in events:
        if e.get("cat") == "call":
            calls[e["pid"], e["name"], e["args"]["number"]].append(e)
    copies = [e for e in events if e.get("cat") == "copy"]
    check({e["name"] for e in copies} == {"copy in", "copy out"}, f"{len(copies)} copies")
    for e in copies:
        a = e["args"]
        at = [c for c in calls[e["pid"], a.get("tensor"), a.get("number")]
              if c["ts"] - 0.002 <= e["ts"] and
              e["ts"] + e["dur"] <= c["ts"] + c["dur"] + 0.002]
        check(at and a["bytes"], f"a copy of no call: {e}")


def test_device():
    """Trace tensors and collectives of a device, which makes several copies at
    once."""
    with named(Net(agents=2)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        raw = os.path.join(folder, "raw")
        for what, args in ("device", ("--steps=3", "--seed=1")), \
                          ("coll", ("--seed=18", "--device", "--colls=30")):
            p = begin(net, raw, f"trace-{what}")
            for c in [net.run(f"{what}{i}", "env", "SUMWIRE_DEVICE=fake:gbit=40,latency_us=10",
                              rig.program(f"test/proc/proc_{what}"), "--agent",
                              net.socket(a), *args) for i, a in enumerate(net.agents)]:
                c.wait_ok()
            p.signal(signal.SIGINT)
            p.wait_ok()
            p, data = read(raw, path=raw + ".json")
            check_slices(data["traceEvents"])
            check_copies(data["traceEvents"])


def check_full_disk(net, folder):
    """Check that the file ends with the last complete block when the disk is
    full."""
    raw, disk = os.path.join(folder, "full"), os.path.join(folder, "disk")
    os.mkdir(disk)
    clients = rig.start_forever(net, *TENSORS)
    p = net.run("full", "unshare", "-Urm", "sh", "-c",
                'mount -t tmpfs -o size=256k none "$1" && "$2" trace --time 0 -o "$1/t" "$4"; '
                'code=$?; cp "$1/t" "$3"; exit $code', "sh", disk, rig.sumwire(), raw,
                unique("a"))
    check(p.wait(rig.RUN_S) == 1, "a full disk is an error")
    check(re.search("cannot write .*/t: No space left on device; recording stopped", p.log()),
          p.log())
    rig.check_goes_on(clients)
    for c in clients:
        c.kill()
    p, data = read(raw, path=raw + ".json")
    check_slices(data["traceEvents"])
    check(sum(e.get("cat") == "chunk" for e in data["traceEvents"]) > 1000, p.stderr)


def check_stopped_reader(net, folder):
    """Check that a stopped reader delays no daemon, and that the daemon waits
    for it."""
    raw = os.path.join(folder, "stopped")
    p = begin(net, raw, "stopped")
    p.signal(signal.SIGSTOP)
    rig.run_steps(net, *TENSORS, steps=30, name="beside")
    busy = trace(unique("a"), "--output", raw + "2", code=1)
    check("another sumwire trace" in busy.stderr, f"{busy}")
    p.signal(signal.SIGCONT)
    p.signal(signal.SIGINT)
    p.wait_ok()
    p, data = read(raw, path=raw + ".json")
    check_slices(data["traceEvents"])
    check("early" not in p.stderr, p.stderr)
    n = sum(d["dropped"] for d in data["otherData"]["daemons"])
    check(bool(n) == ("were dropped" in p.stderr), p.stderr)


def check_killed_reader(net, folder):
    """Check that the next reader can follow one that was killed while stopped."""
    raw = os.path.join(folder, "killed")
    p = begin(net, raw, "gone")
    p.signal(signal.SIGSTOP)
    p.kill()
    rig.wait_until(lambda: not subprocess.run(
        [rig.sumwire(), "trace", "--time", "1ms", "-o", raw, unique("a")], check=False,
        stderr=subprocess.DEVNULL).returncode, rig.STOP_S, "a trace after one that died")


def test_readers():
    """Readers whose disk is full, that stop, or that die."""
    with named(Net(agents=2)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        check_full_disk(net, folder)
        check_stopped_reader(net, folder)
        check_killed_reader(net, folder)


def test_collectives():
    """Trace colocated agents on two lcores, with faults; byte counts agree."""
    local = (2, 1)
    faults = {"fault_loss": "0.5%", "fault_dup": "0.5%"}
    with named(Net(agents=2, servers=0, colocated=True, lcores=2,
                   lanes=(2, 2), local=local, port=faults)) as net, \
            tempfile.TemporaryDirectory() as folder:
        net.start_all()
        raw, path = os.path.join(folder, "raw"), os.path.join(folder, "t.json")
        p = begin(net, raw)
        for c in proc_coll.start_local(net, local, "--seed", "7", "--colls",
                                       "30"):
            c.wait_ok()
        p.signal(signal.SIGINT)
        p.wait_ok()
        stats = {n: net.stats(n) for n in net.daemons}
        p, data = read(raw, path=path)
        events = data["traceEvents"]
        check("dropped" not in p.stderr, p.stderr)
        check_names(events)
        check_slices(events)
        check(check_arrows(events) > 0, "no arrow goes the whole way")
        check_copies(events)
        for name, pid in pids_of(net, data).items():
            for kind, key in (("push", "push_bytes"),
                              ("hold", "result_bytes"),
                              ("fold", "server.push_bytes"),
                              ("result", "server.result_bytes")):
                got = sums(events, pid, kind, is_new=kind == "push")[1]
                check(got == stats[name][key],
                      f"{name}: {kind}: {got} of {stats[name][key]} {key}")
        check("bound by" in p.stdout and "collective" in p.stdout, p.stdout)


def test_one_machine():
    """Collectives of two ranks of an agent make no frame: only calls show them."""
    with named(Net(agents=1, local=(2,))) as net:
        net.start_all()
        clients = proc_coll.start_local(net, (2,), "--seed", "8", "--colls", "1000000")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            rig.wait_until(lambda: re.search(
                r"^collective \d+: .*; last call of (?!a tensor).* by local rank [01] \(node",
                trace(UNIQUE, "--time", "0.5s", "-o", path, "--report").stdout, re.MULTILINE),
                rig.START_S, "steps of one machine")
            with open(path, encoding="utf-8") as f:
                calls = {e["name"] for e in json.load(f)["traceEvents"]
                         if e.get("cat") == "call"}
            check(calls and not any(c.startswith("key ") for c in calls), f"names: {calls}")
        for c in clients:
            c.kill()


def check_pictures(path):
    """Draw a round as SVG, with the slices of all its chunks."""
    for how in "quick", "late":
        p = subprocess.run([sys.executable, PICTURE, path, how], check=True,
                           stdout=subprocess.PIPE, text=True,
                           timeout=rig.RUN_S)
        root = xml.etree.ElementTree.fromstring(p.stdout)
        boxes = [e for e in root if e.get("y") and e.tag.endswith("rect")]
        check(len(boxes) > 13 * 2 * 4, f"{how}: {len(boxes)} slices")


def test_events():
    """Trace a whole job; then check inputs that cannot be traced or read."""
    with named(Net(agents=2)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        raw, path = os.path.join(folder, "raw"), os.path.join(folder, "t.json")
        p = begin(net, raw)
        busy = trace(unique("a"), "--output", path, code=1)
        check("another sumwire trace or capture" in busy.stderr, f"{busy}")
        rig.run_steps(net, *TENSORS, steps=20)
        net.await_stats("a", lambda s: s["open_chunks"] == 0, "no open chunk")
        p.signal(signal.SIGINT)
        p.wait_ok()
        stats = {n: net.stats(n) for n in net.daemons}
        p, data = read(raw, path=path)
        events = data["traceEvents"]
        check("dropped" not in p.stderr and "early" not in p.stderr, p.stderr)
        pids = pids_of(net, data)
        check_names(events)
        check_slices(events)
        check_sums(events, pids, stats)
        check_calls(events, pids, 20)
        n = check_arrows(events)
        check(n == stats["a"]["push_folded"], f"{n} whole arrows")
        check_pictures(path)
        check("20 steps:" in p.stdout and "bound by" in p.stdout, p.stdout)
        check_clocks(net, raw, folder)
        check_bad_files(raw, folder)
        check_bad_ends(net, folder)


def goodput(net):
    """Return the bytes per second that the server folds over a slice of time."""
    was, then = net.stats("a")["push_bytes"], time.monotonic()
    time.sleep(SLICE_S)
    return (net.stats("a")["push_bytes"] - was) / (time.monotonic() - then)


@rig.is_long
def test_goodput_while_recorded():
    """Alternate short slices with a trace, with a capture of headers and with
    neither, over udp ports of this machine. The printed ratio is valid on a
    quiet machine only."""
    ratios = collections.defaultdict(list)
    with named(Lo(servers=1)) as net, tempfile.TemporaryDirectory() as folder:
        net.start_all()
        rig.start_forever(net, "--tensor", "w:1000001:f32")
        for i in range(PAIRS):
            for what in "trace", "capture":
                without = goodput(net)
                p = begin(net, os.path.join(folder, what), f"{what}{i}", what, MOST[what])
                ratios[what].append(goodput(net) / without)
                p.signal(signal.SIGINT)
                p.wait(rig.STOP_S)
        for c in net.processes:
            if c.name.startswith("client"):
                c.kill()
    for what, all_of_it in ratios.items():
        low, middle, high = statistics.quantiles(all_of_it, n=4)
        print(f"goodput with {what}: median {middle:.3f} of that without, "
              f"quartiles {low:.3f} to {high:.3f}, {PAIRS} pairs, load {os.getloadavg()[0]:.1f}")
        check(middle > 0.5, all_of_it)


if __name__ == "__main__":
    rig.main(dict(globals()))
