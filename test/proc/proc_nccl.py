# proc_nccl.py - NCCL's plugin without NCCL: its calls, with real daemons
# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess

import rig
from rig import Net, check, program, wait_until

PLUGIN = "pmd/nccl/libnccl-net-sumwire.so"
VERSIONS = 8, 11


def start(net, version, case, agents=None):
    args = ["--so", f"{rig.BUILD}/{PLUGIN}", "--version", str(version)]
    for agent in agents or net.agents:
        args += ["--agent", net.socket(agent)]
        if agent in net.daemons:
            args += ["--pid", str(net.daemons[agent].pid)]
    return net.run(f"nccl-{case}-v{version}", program("test/proc/proc_nccl"),
                   *args, case)


def run_cases(n, *cases, versions=VERSIONS):
    """Run cases one after another, as trainings would."""
    with Net(agents=n, servers=0, colocated=True) as net:
        net.start_all()
        for version in versions:
            for case in cases:
                p = start(net, version, case)
                p.wait_ok()
                check(p.out().count("done") == n, p.out())


def test_two_nodes():
    run_cases(2, "first", "types", "sizes", "later", "windows")


@rig.is_long
def test_four_nodes():
    run_cases(4, "first", "types", "sizes", "later", "windows", "some",
              versions=[8])


def test_close_in_mid_flight():
    run_cases(2, "close")
    run_cases(4, "close", versions=[11])


def test_close_while_agents_are_frozen():
    run_cases(2, "frozen")
    run_cases(4, "frozen", versions=[11])


def test_a_node_ends_in_mid_flight():
    run_cases(2, "dead", versions=[11])


def test_two_processes_of_a_node():
    """The second one's communicator falls back, and the first one's continues."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        os.environ["TEST_END"] = net.path("nccl-end.out")
        os.environ["SUMWIRE_OPEN_TIMEOUT"] = "5"
        held = start(net, 8, "held")
        wait_until(lambda: held.out().count("holds") == 2, rig.RUN_S, "hold")
        for version in VERSIONS:
            start(net, version, "busy").wait_ok()
        with open(os.environ["TEST_END"], "wb"):
            pass
        held.wait_ok()
        os.remove(os.environ["TEST_END"])


def test_damaged_handles():
    run_cases(2, "handles", versions=[8])


def test_no_agent():
    with Net(agents=2, servers=0, colocated=True) as net:
        for version in VERSIONS:
            p = start(net, version, "alone")
            p.wait_ok()
            check("no agent listens at" in p.log(), p.log())


def test_exports():
    """The plugin exports NCCL's symbols and none that could clash with a
    program's."""
    out = subprocess.run(["nm", "-D", "--defined-only",
                          f"{rig.BUILD}/{PLUGIN}"], capture_output=True,
                         text=True, timeout=60, check=True).stdout
    names = {line.split()[-1] for line in out.splitlines()}
    want = {f"{table}_v{v}" for table in ("ncclNetPlugin", "ncclCollNetPlugin")
            for v in VERSIONS}
    check(names == want, f"exports {sorted(names)}")


def test_sockets():
    with Net(agents=1, servers=0) as net:
        for version in VERSIONS:
            p = net.run(f"net-v{version}", program("test/proc/proc_nccl_net"),
                        f"{rig.BUILD}/{PLUGIN}", str(version))
            p.wait_ok()


if __name__ == "__main__":
    rig.main(dict(globals()))
