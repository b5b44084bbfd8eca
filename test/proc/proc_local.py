# proc_local.py - several training processes per agent
# SPDX-License-Identifier: BSD-3-Clause
import json
import re

import rig
from rig import Net, check, program, wait_until

TENSORS = ("--tensor", "w:100001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:70000:i64")


def clients(net, local, *args):
    """Start one client per local rank of every agent, named c0, c1, ..."""
    sockets = [a for a, n in zip(net.agents, local) for _ in range(n)]
    return [net.client(0, *args, name=f"c{i}", agent=a)
            for i, a in enumerate(sockets)]


def check_steps(started, steps):
    for c in started:
        c.wait_ok()
        for step in range(steps):
            check(f"step {step} exact" in c.out(),
                  f"{c.name} did not see step {step}")


def check_ranks(started, local):
    """Ranks are dense, in the order of nodes and local ranks."""
    firsts = [sum(local[:i]) for i in range(len(local))]
    want = sorted((f + i, i, n) for f, n in zip(firsts, local)
                  for i in range(n))
    got = sorted(
        tuple(map(int, re.search(r"attached (\d+) of \d+\nlocal (\d+) of (\d+)",
                                 c.out()).groups())) for c in started)
    check(got == want, f"rank, local rank, local size: {got}, not {want}")


def test_nodes_of_three_and_two():
    local = (3, 2)
    with Net(servers=2, local=local) as net:
        net.start_all()
        started = clients(net, local, *TENSORS, "--copy", "--steps", "6")
        check_steps(started, 6)
        check_ranks(started, local)


def test_eight_of_one_node_twice():
    with Net(agents=1, local=(8,)) as net:
        net.start_all()
        for _ in range(2):
            started = clients(net, (8,), *TENSORS, "--steps", "3")
            check_steps(started, 3)
            check_ranks(started, (8,))
        pushed = net.stats("agent0")["push_bytes"]
        one = 3 * (100001 * 4 + 7 * 4 + 70000 * 8)
        check(pushed == 2 * one,
              f"{pushed} bytes were pushed, not {2 * one}: once per node")


def many(net, agent, n, *args):
    """Start a program of n clients, each in a thread."""
    return net.run(f"many-{agent}", program("test/proc/proc_many"), "--agent",
                   net.socket(agent), "--clients", str(n), *args)


def test_eighty_and_two_in_collectives():
    local = (80, 2)
    with Net(servers=0, colocated=True, local=local) as net:
        net.start_all()
        procs = [many(net, a, n, "--late", "70")
                 for a, n in zip(net.agents, local)]
        for p, n in zip(procs, local):
            p.wait_ok()
            said = re.findall(r"rank \d+ SW_EEXPIRED: .*missing: rank 70 of 82",
                              p.out())
            check(len(said) == n - (n == 80), f"{p.name} said: {p.out()}")


def test_training_of_two_and_one():
    with Net(local=(2, 1)) as net:
        net.start_all()
        p = net.train("--epochs", "1", "--target-accuracy", "0.9",
                      agents=["agent0", "agent0", "agent1"])
        p.wait_ok()
        check('"is_identical": true' in p.out().replace(":true", ": true"),
              f"weights differ: {p.out()}")


def test_one_dies():
    local = (3, 1)
    with Net(local=local) as net:
        net.start_all()
        net.client(0, *TENSORS, "--misbehave", "die", "--local-rank", "1",
                   name="dead")
        others = [net.client(0, *TENSORS, "--steps", "1000", "--local-rank",
                             local_rank, name=f"c{i}", agent=a)
                  for i, (a, local_rank) in enumerate(
                      (("agent0", "0"), ("agent0", "2"), ("agent1", "0")))]
        for c in others:
            c.wait_error("SW_EPEER",
                         r"rank 1 \(node agent0\), local rank 1: training "
                         r"process \d+")
        wait_until(lambda: net.stats("agent0")["attached"] == 0,
                   rig.STOP_S, "the agent to let go of all")
        started = clients(net, local, *TENSORS)
        check_steps(started, 1)


def test_one_closes_before_the_others():
    with Net(agents=1, local=(2,)) as net:
        net.start_all()
        short = net.client(0, *TENSORS, "--steps", "1", name="short")
        long = net.client(0, *TENSORS, "--steps", "2", name="long")
        short.wait_ok()
        long.wait_error("SW_EPEER", r"rank \d \(node \S+\) left; tensor")


def test_one_job_after_the_other():
    """Each process leaves and attaches again at once, independent of the
    others."""
    for local, jobs in (((2,), 40), ((4,), 25), ((2, 2), 25)):
        with Net(agents=len(local), local=local) as net:
            net.start_all()
            started = clients(net, local, "--tensor", "w:100:f32", "--jobs",
                              str(jobs), "--timeout", "100")
            for c in started:
                c.wait_ok()
                n = c.out().count("step 0 exact")
                check(n == jobs, f"{c.name} was in {n} of {jobs} jobs")


def test_one_does_not_come():
    with Net(agents=1, local=(3,)) as net:
        net.start_all()
        started = [net.client(0, "--timeout", "8", "--local-rank", i,
                              name=f"c{i}") for i in ("0", "2")]
        for c in started:
            c.wait_error("SW_ETIMEDOUT",
                         "waiting for 1 of 3 local ranks at node agent0: 1")


def test_no_memory_for_all_of_them():
    """All waiting processes, also those after the one without room, get an
    error at once."""
    with Net(agents=1, local=(8,)) as net:
        net.ini["agent0"]["agent"]["quota"] = "1MiB"
        net.start_all()
        for group in "first", "second":
            started = [net.client(0, *TENSORS, "--timeout", "300",
                                  name=f"{group}{i}") for i in range(8)]
            for c in started:
                c.wait_error("no memory or descriptors left for|"
                             "memory quota: .* needed")


def test_places_are_limited():
    with Net(agents=1, local=(2,)) as net:
        net.start_all()
        first = net.client(0, "--local-rank", "1", "--timeout", "60",
                           name="first")
        first.await_text("waiting for 1 of 2 local ranks")
        net.client(0, "--local-rank", "1", name="second").wait_error(
            "SW_EBUSY", r"local rank 1 of 2 is already taken by process \d+")
        net.client(0, "--local-rank", "2", name="third").wait_error(
            "SW_EINVAL", "local rank 2 is out of range: .* allows 0 to 1")
        other = net.client(0, name="other")
        for c, local in ((first, 1), (other, 0)):
            c.wait_ok()
            check(f"local {local} of 2" in c.out(), f"{c.name}: {c.out()}")


def test_launchers_local_ranks():
    """The agent uses a launcher's variables if they fit."""
    with Net(agents=1, local=(3,)) as net:
        net.start_all()
        started = [net.run(f"c{rank}", "env", "-u", "SUMWIRE_LAUNCHER",
                           f"RANK={rank}", "WORLD_SIZE=3",
                           f"LOCAL_RANK={rank}", "LOCAL_WORLD_SIZE=3",
                           rig.program("test/proc/proc_client"), "--agent",
                           net.socket("agent0"), *TENSORS)
                   for rank in (2, 0, 1)]
        check_steps(started, 1)
        for c in started:
            check(f"local {c.name[1]} of 3" in c.out(), f"{c.name}: {c.out()}")


def test_bench():
    with Net() as net:  # for its folder and process handling
        p = net.run("bench", rig.sumwire(), "bench", "--loopback",
                    "--local-ranks", "3", "--tensors", "20", "--min", "256B",
                    "--max", "64KiB", "--factor", "256", "--iters", "3",
                    "--json")
        p.wait_ok()
        rows = json.loads(p.out())["results"]
        check([(r["size_bytes"], r["ranks"], r["local_ranks"], r["tensors"],
                r["wrong"]) for r in rows] ==
              [(256, 3, 3, 20, 0), (65536, 3, 3, 20, 0)], f"{rows}")
        check(all(r["kernel_gbit_s"] > 0 for r in rows), f"{rows}")
        p = net.run("engine", rig.lab(), "engine", "--tensors",
                    "50")
        p.wait_ok()
        check("50 tensors of 256 bytes: " in p.out(), p.out())
        p = net.run("members", rig.lab(), "engine", "--tensors",
                    "20", "--members", "8", "--json")
        p.wait_ok()
        rows = json.loads(p.out())["results"]
        check([r["members"] for r in rows] == [2, 4, 8], f"{rows}")
        check(all(r["packets"] >= 2 * 20 * r["members"] and
                  r["server_packet_ns"] > 0 and r["worker_packet_ns"] > 0 and
                  0 < r["kernels_ratio_q1"] <= r["kernels_ratio"] <=
                  r["kernels_ratio_q3"] and r["port_packet_ns"] > 0 and
                  r["fed_ratio"] > 0 and r["isal_ratio"] > 0
                  for r in rows), f"{rows}")
        p = net.run("table", rig.lab(), "engine", "--tensors",
                    "20", "--members", "4")
        p.wait_ok()
        check("ratio\n      2 " in p.out() and "\n      4 " in p.out(),
              p.out())


if __name__ == "__main__":
    rig.main(dict(globals()))
