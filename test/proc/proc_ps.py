# proc_ps.py - sumwire ps, and commands that take a daemon's name
# SPDX-License-Identifier: BSD-3-Clause
"""Daemons of other tests run beside these, so names are made unique here."""
import json
import os
import signal
import subprocess
import time

import rig
from rig import SMALL, Net, check

UNIQUE = f"ps{os.getpid()}"


def named(net):
    """Give the daemons of @net unique names."""
    for name, ini in net.ini.items():
        ini["node"]["name"] = unique(name)
        ini["job"]["name"] = UNIQUE
    return net


def unique(name):
    return f"{UNIQUE}.{name}"


def ps(net):
    """Our daemons, by the name in the net."""
    p = subprocess.run([rig.sumwire(), "ps", "--json"], check=True,
                       stdout=subprocess.PIPE, timeout=rig.START_S)
    pids = {d.pid: name for name, d in net.daemons.items()}
    return {pids[d["pid"]]: d for d in json.loads(p.stdout)["daemons"]
            if d["pid"] in pids}


def await_ps(net, fn, what):
    rig.wait_until(lambda: fn(ps(net)), rig.START_S, what)


def stats(*args):
    return subprocess.run([rig.sumwire(), "stats", *args], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=rig.START_S, text=True)


def test_daemons_and_jobs():
    with named(Net(agents=2)) as net:
        net.start_all()
        found = ps(net)
        check(set(found) == {"a", "agent0", "agent1"}, f"ps has {found}")
        for name, d in found.items():
            check(d["name"] == unique(name) and d["state"] == "idle" and
                  not d["jobs"], f"{name}: {d}")
        first = net.client(0, *SMALL, "--steps", "100000")
        await_ps(net, lambda f: f["a"]["state"] == "forming",
                 "the server forms the job")
        job, = ps(net)["a"]["jobs"]
        check(job["name"] == UNIQUE and job["agents_here"] == 1 and
              job["agents"] == 2 and job["missing"] == "agent 1" and
              "ranks" not in job, f"forming: {job}")
        second = net.client(1, *SMALL, "--steps", "100000")
        await_ps(net, lambda f: all(d["state"] == "running"
                                    for d in f.values()), "the job runs")
        found = ps(net)
        job, = found["a"]["jobs"]
        check(job["ranks_here"] == 2 and job["ranks"] == 2, f"server: {job}")
        job, = found["agent1"]["jobs"]
        check(job["first_rank"] == 1 and job["ranks"] == 2, f"agent: {job}")
        for p in first, second:
            p.signal(signal.SIGKILL)
        await_ps(net, lambda f: all(d["state"] == "idle"
                                    for d in f.values()), "all are idle")


def test_names():
    """A name, a pid and a path show the same; others say what there is."""
    with named(Net(agents=1)) as net:
        net.start_all()
        for word in (unique("a"), str(net.daemons["a"].pid),
                     net.stats_socket("a")):
            p = stats("--json", word)
            check(p.returncode == 0 and
                  "memory_quota_bytes" in json.loads(p.stdout),
                  f"stats {word}: {p.stderr}")
        for word, text in ((unique("b"), "no daemon has this name"),
                           ("\x1b[2J", "?[2J: no daemon has this name"),
                           ("", "no daemon has this name"),
                           ("/nowhere", "no daemon is listening there")):
            p = stats(word)
            check(p.returncode == 1 and text in p.stderr and not p.stdout and
                  "\x1b" not in p.stderr, f"stats {word}: {p.stderr}")


def test_one_name_twice():
    with named(Net(agents=2)) as net:
        net.ini["agent1"]["node"]["name"] = unique("agent0")
        net.start_all()
        p = stats(unique("agent0"))
        check(p.returncode == 1 and "several daemons: give a pid" in p.stderr
              and str(net.daemons["agent1"].pid) in p.stderr, p.stderr)


def test_a_daemon_that_hangs_and_dies():
    with named(Net(agents=1)) as net:
        net.start_all()
        server = net.daemons["a"]
        server.signal(signal.SIGSTOP)
        begin = time.monotonic()
        found = ps(net)
        check(found["a"]["state"] == "no answer" and
              found["agent0"]["state"] == "idle", f"ps has {found}")
        check(time.monotonic() - begin < 5, "ps waited too long")
        p = stats(unique("a"))
        check(p.returncode == 1, "a daemon without an answer has a name")
        server.signal(signal.SIGKILL)
        server.wait(rig.STOP_S)
        check("a" not in ps(net), "a dead daemon is shown")
        net.daemons.pop("a")
        net.start("a")  # collects what the other has left
        net.stop("a")
        os.rmdir(net.path("a.run"))  # the first one made it


def test_bench_by_name():
    with named(Net(agents=1)) as net:
        net.start_all()
        p = net.run("bench", rig.sumwire(), "bench", "--agent",
                    unique("agent0"), "--min", "64KiB", "--max", "64KiB")
        p.wait_ok()
        p = net.run("wrong", rig.sumwire(), "bench", "--agent", unique("a"))
        p.wait_error("is no agent")


if __name__ == "__main__":
    rig.main(dict(globals()))
