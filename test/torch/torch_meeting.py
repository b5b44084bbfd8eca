# torch_meeting.py - the ranks of a group agree to form it, or on why they cannot
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import subprocess

import torch_rig
import forks
import rig
from backend_rig import Alone, Served, main
from slurm import free_port
from torch_machines import N, NETS, Machines


def run(n, *cases, env=None):
    with Alone(n) as net:
        net.ranks_ok("cases_meeting.py", *cases, env=env)
        net.await_nothing()


def test_jobs():
    """Three ranks belong to no job, to one job, or only some of them to one."""
    run(3, "later_rank")
    run(3, "one_job")


def test_two_jobs():
    run(4, "two_jobs")


def test_hands():
    run(2, "hands")


def test_other_agents():
    """Start two jobs of one name in advance."""
    with Served(1) as net, Served(1) as other:
        for each in net, other:
            each.start_all()
        net.n_runs += 1
        found = [net.rank(0, path(), "other_agents", env={
            "RANK": str(r), "WORLD_SIZE": "2", "SUMWIRE_LAUNCHER": "none",
            "SUMWIRE_AGENT": n.socket(n.agents[0])})
            for r, n in enumerate((net, other))]
        for p in found:
            p.wait_ok()


def path():
    return os.path.join(torch_rig.HERE, "cases_meeting.py")


def test_absent():
    run(4, "absent")


def test_gloo():
    """gloo fails at one rank; two of three ranks use it."""
    run(3, "gloo_fails")
    run(3, "two_of_three", env={"TEST_BACKEND": "sumwire"})


def test_port_taken():
    run(2, "port_taken")


def test_counts():
    run(2, "counts")
    run(3, "group_counts", env={"TEST_PORT": str(free_port())})


# --- two machines ---

HAND = """\
[node]
role = both
runtime_dir = {folder}
[agent]
socket = {folder}/agent.sock
[job]
agents = 2
agent = {rank}
[port a]
type = udp
ip = {net}{own}/24
[server n0]
ip = {net}1
port = a
[server n1]
ip = {net}2
port = a
"""


def joined(net, init, env=None):
    """Start a rank on each machine."""
    found = []
    for i in range(N):
        pairs = {**net.environment(i), "RANK": str(i), "WORLD_SIZE": str(N),
                 "LOCAL_RANK": "0", "TEST_INIT": init,
                 "GLOO_SOCKET_IFNAME": None, **(env(i) if env else {})}
        found.append(net.run(f"rank{i}", path(), "joined", start=forks.starter(
            torch_rig.python(), pairs, i, net.of_machine(i))))
    for p in found:
        p.wait_ok()


def test_no_master_addr():
    """The route to the store's host, or the default route, leads to the other
    ranks."""
    with Machines() as net:
        joined(net, f"tcp://{NETS['net']}1:29400")
        for i in range(N):
            subprocess.run(net.inside(i, "ip", "route", "add", "default", "dev",
                                      "net"), check=True)
        joined(net, f"file://{net.path('store')}")
        net.await_nothing()


def test_hands_of_two_machines():
    """Start agents in advance, on machines whose own name resolves to a
    loopback address."""
    with Machines() as net:
        hands = []
        for i in range(N):
            folder = net.path(f"tmp/hand{i}")
            os.mkdir(folder)
            with open(f"{folder}/a.ini", "w", encoding="ascii") as f:
                f.write(HAND.format(folder=folder, rank=i, own=i + 1,
                                    net=NETS["net"]))
            hands.append(net.run(f"hand{i}", *net.inside(
                i, rig.sumwire(), "agent", "--config", f"{folder}/a.ini")))
        for i in range(N):
            rig.wait_until(lambda: os.path.exists(
                net.path(f"tmp/hand{i}/agent.sock")), rig.START_S, "an agent")
        joined(net, f"tcp://{NETS['net']}1:29400", lambda i: {
            "SUMWIRE_AGENT": net.path(f"tmp/hand{i}/agent.sock"),
            "SUMWIRE_LAUNCHER": "none"})
        for p in hands:
            p.signal(signal.SIGTERM)
            p.wait(rig.STOP_S)
        net.await_nothing()


if __name__ == "__main__":
    main(dict(globals()))
