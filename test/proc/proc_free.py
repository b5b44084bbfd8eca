# proc_free.py - freed memory of sw_alloc, with real daemons
# SPDX-License-Identifier: BSD-3-Clause
import signal

import rig
from rig import Net, check, program


def start(net, local, *args):
    return [net.run(f"free{i}.{k}", program("test/proc/proc_free"), "--agent",
                    net.socket(f"agent{i}"), *(args if i else ()))
            for i, n in enumerate(local) for k in range(n)]


def n_mapped(net, agent):
    with open(f"/proc/{net.daemons[agent].pid}/maps", encoding="utf-8") as f:
        return sum("sumwire-data" in line for line in f)


def free(n=2, k=0, local=None, again=False, **keys):
    """Run with a quota that holds a few of 120 pieces of memory of 0.6 MB on
    average."""
    with Net(agents=n, servers=k, local=local, **keys) as net:
        for ini in net.ini.values():
            if "agent" in ini:
                ini["agent"]["quota"] = "32MiB"
        net.start_all()
        for _ in range(1 + again):
            procs = start(net, local or (1,) * n)
            for p in procs:
                p.await_out("exact", rig.RUN_S)
            for agent in net.agents:
                # The streams' few bytes remain.
                m = n_mapped(net, agent)
                check(m <= max(local or (1,)), f"{agent} maps {m}")
            for p in procs:
                p.say()
                p.wait_ok()


def test_two_nodes_alone():
    free(colocated=True, again=True)


def test_a_server_and_faults():
    free(k=1, port={"fault_loss": "2%", "fault_dup": "5%",
                    "fault_reorder": "5%"})


def test_local_ranks():
    free(colocated=True, local=(2, 1))


def test_one_dies_behind_it():
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        for at in ("30", "111"):
            procs = start(net, (1, 1), "--die", at)
            procs[1].wait(rig.RUN_S)
            procs[0].wait_error("SW_EPEER")
        for p in start(net, (1, 1)):
            p.await_out("exact")
            p.say()
            p.wait_ok()


def test_one_unmaps_what_is_in_use():
    """The process crashes: no other process reads its private memory, and the
    agent has a mapping of its own for shared memory."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        for how in "shared", "staged":
            procs = start(net, (1, 1), "--unmap", how)
            check(procs[1].wait(rig.RUN_S) == -signal.SIGSEGV, procs[1].out())
            check(("summed" in procs[1].out()) == (how == "shared"),
                  procs[1].out())
            procs[0].wait_error("SW_EPEER", r"rank 1 \(node agent1\): "
                                r"training process \d+")
        for p in start(net, (1, 1)):
            p.await_out("exact")
            p.say()
            p.wait_ok()


if __name__ == "__main__":
    rig.main(dict(globals()))
