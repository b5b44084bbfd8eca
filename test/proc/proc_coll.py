# proc_coll.py - collectives of groups, by libsumwire and real daemons
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

import rig
from rig import Net, check, program


def start(net, rank, *args):
    return net.run(f"coll{rank}", program("test/proc/proc_coll"), "--agent",
                   net.socket(f"agent{rank}"), *args)


def start_local(net, local, *args):
    """Start a process per local rank of every agent."""
    return [net.run(f"coll{i}.{k}", program("test/proc/proc_coll"), "--agent",
                    net.socket(f"agent{i}"), *args)
            for i, n in enumerate(local) for k in range(n)]


def run_calls(n, k, seed, colls=60, colocated=True, local=None, **keys):
    with Net(agents=n, servers=k, colocated=colocated, local=local,
             **keys) as net:
        net.start_all()
        args = ("--seed", str(seed), "--colls", str(colls))
        for p in start_local(net, local or (1,) * n, *args):
            p.wait_ok()
            check("exact" in p.out(), p.out())


def test_two_nodes_alone():
    run_calls(2, 0, 1)


def test_three_nodes_alone():
    run_calls(3, 0, 2)


def test_three_nodes_and_two_servers():
    run_calls(3, 2, 3)


def test_two_agents_one_server():
    run_calls(2, 1, 4, colocated=False)


def test_faults():
    run_calls(3, 1, 5, colls=30, port={"fault_loss": "1%", "fault_dup": "1%",
                                      "fault_reorder": "1%"})


def test_a_full_stream_holds_back_no_other():
    for local in ((1, 1), (2, 1)):
        with Net(agents=2, servers=0, colocated=True, local=local) as net:
            net.start_all()
            for p in start_local(net, local, "--ahead"):
                p.wait_ok()


def check_differs(procs, sentence):
    """Check that all end with an error. The first to notice names the cause and
    leaves. The others report the cause, or that this rank left, or that it
    closed another group."""
    for p in procs:
        p.wait_error("SW_EMISMATCH|SW_EPEER|"
                     "SW_EABORTED: .* which has closed the group")
    said = [p.out() for p in procs if "SW_EMISMATCH" in p.out()]
    check(said and all(re.search(sentence, s) for s in said),
          f"not \"{sentence}\": {said}")


@rig.is_long
def test_more_than_4_gib():
    """SUMWIRE_TEST_LARGE=BYTES sets the size; 68719476736, the maximum, takes
    some minutes."""
    size = os.environ.get("SUMWIRE_TEST_LARGE", str((4 << 30) + (64 << 20)))
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        for p in [net.run(f"large{i}", program("test/proc/proc_large"),
                          "--agent", net.socket(f"agent{i}"), "--bytes", size)
                  for i in range(2)]:
            p.wait_ok(limit_s=3600)
            check("exact" in p.out(), p.out())


def test_another_count():
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        check_differs([start(net, 0, "--seed", "7"),
                       start(net, 1, "--seed", "7", "--odd", "22")],
                      r"group group0: rank \d calls .* another count or "
                      r"root than rank \d")


def test_two_local_ranks():
    run_calls(2, 0, 6, local=(2, 2))


def test_two_local_ranks_one_server():
    run_calls(2, 1, 7, colocated=False, local=(2, 2))


def test_different_numbers_of_local_ranks():
    run_calls(3, 1, 8, local=(3, 1, 2))


def test_one_agent_alone():
    run_calls(1, 1, 9, colocated=False, local=(4,))


def test_faults_with_local_ranks():
    run_calls(2, 1, 10, colls=30, local=(2, 2),
              port={"fault_loss": "1%", "fault_dup": "1%",
                    "fault_reorder": "1%"})


def check_list(local, odd):
    """One process gives the ranks of the second group in another order."""
    with Net(agents=len(local), servers=0, colocated=True,
             local=local) as net:
        net.start_all()
        procs = [net.run(f"coll{i}.{k}", program("test/proc/proc_coll"),
                         "--agent", net.socket(f"agent{i}"), "--seed", "7",
                         *(["--odd-list"] if (i, k) == odd else []))
                 for i, n in enumerate(local) for k in range(n)]
        check_differs(procs, r"group group1: the ranks, their order, the "
                             r"window or the priority that rank \d opens it "
                             r"with are not those of rank \d")


def test_another_order_at_another_node():
    check_list((1, 1, 1), (0, 0))


def test_another_order_at_a_local_rank():
    check_list((2, 2), (0, 1))


def test_another_count_at_a_local_rank():
    with Net(agents=2, servers=0, colocated=True, local=(2, 2)) as net:
        net.start_all()
        procs = start_local(net, (2, 1), "--seed", "7")
        procs.append(net.run("odd", program("test/proc/proc_coll"), "--agent",
                             net.socket("agent1"), "--seed", "7", "--odd",
                             "22"))
        check_differs(procs, r"group group0: rank \d calls .* another "
                             r"count than rank \d")


if __name__ == "__main__":
    rig.main(dict(globals()))
