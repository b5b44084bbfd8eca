# proc_nccl.py - NCCL's plugin, without NCCL: its calls, by real daemons
# SPDX-License-Identifier: BSD-3-Clause
import rig
from rig import Net, check, program

PLUGIN = "pmd/nccl/libnccl-net-sumwire.so"
VERSIONS = 8, 11


def start(net, version, case, agents=None):
    args = ["--so", f"{rig.BUILD}/{PLUGIN}", "--version", str(version)]
    for agent in agents or net.agents:
        args += ["--agent", net.socket(agent)]
    return net.run(f"nccl-{case}-v{version}", program("test/proc/proc_nccl"),
                   *args, case)


def run_case(n, case, **keys):
    with Net(workers=n, servers=0, colocated=True, **keys) as net:
        net.start_all()
        for version in VERSIONS:
            p = start(net, version, case)
            p.wait_ok()
            check(p.out().count("done") == n, p.out())


def test_two_nodes():
    run_case(2, "first")


def test_four_nodes():
    run_case(4, "first")


if __name__ == "__main__":
    rig.main(dict(globals()))
