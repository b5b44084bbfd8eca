# proc_ops.py - every operation of collectives, by libsumwire and real daemons
# SPDX-License-Identifier: BSD-3-Clause
import re

import rig
from rig import Net, check, program


def start(net, rank, *args):
    return net.run(f"ops{rank}", program("test/proc/proc_ops"), "--agent",
                   net.socket(f"agent{rank}"), *args)


def run_calls(n, k, **keys):
    with Net(workers=n, servers=k, **keys) as net:
        net.start_all()
        procs = [start(net, r) for r in range(n)]
        for p in procs:
            p.wait_ok()
            # of 3 kinds, 9 types: 6 operations of all, 3 of integers and bool;
            # two of them not of bool
            check(f"{3 * (6 * 9 - 2 + 3 * 5)} calls" in p.out(), p.out())
            check("exact" in p.out(), p.out())
        return [re.search(r"bits (\w+)", p.out())[1] for p in procs]


def test_three_nodes_alone():
    run_calls(3, 0, colocated=True)


def test_two_workers_one_server():
    run_calls(2, 1, colocated=False)


def test_order_of_ranks():
    """The same bits, whatever comes first; here faults see to that."""
    order = {"job": {"order": "rank"}, "colocated": True}
    faults = {"fault_loss": "1%", "fault_reorder": "5%"}
    bits = run_calls(3, 0, **order)
    for _ in range(2):
        again = run_calls(3, 0, port=faults, **order)
        check(again == bits, f"{again}, not {bits}")


def test_another_operation():
    """It ends at both, with a sentence that names ranks and operations."""
    with Net(workers=2, servers=0, colocated=True) as net:
        net.start_all()
        procs = [start(net, 0), start(net, 1, "--odd", "1")]
        for p in procs:
            p.wait_error(r"SW_EMISMATCH: stream all/all_reduce: rank (0 calls "
                         r"all_reduce of sum f32, rank 1 all_reduce of max|"
                         r"1 calls all_reduce of max f32, rank 0 all_reduce of "
                         r"sum) f32 \(collective 1\)")


if __name__ == "__main__":
    rig.main(dict(globals()))
