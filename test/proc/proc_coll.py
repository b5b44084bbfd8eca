# proc_coll.py - collectives of groups, by libsumwire and real daemons
# SPDX-License-Identifier: BSD-3-Clause
import rig
from rig import Net, check, program


def start(net, rank, *args):
    return net.run(f"coll{rank}", program("test/proc/proc_coll"), "--agent",
                   net.socket(f"agent{rank}"), *args)


def run_calls(n, k, seed, colls=60, colocated=True, **keys):
    with Net(workers=n, servers=k, colocated=colocated, **keys) as net:
        net.start_all()
        args = ("--seed", str(seed), "--colls", str(colls))
        procs = [start(net, r, *args) for r in range(n)]
        for p in procs:
            p.wait_ok()
            check("exact" in p.out(), p.out())


def test_two_nodes_alone():
    run_calls(2, 0, 1)


def test_three_nodes_alone():
    run_calls(3, 0, 2)


def test_three_nodes_and_two_servers():
    run_calls(3, 2, 3)


def test_two_workers_one_server():
    run_calls(2, 1, 4, colocated=False)


def test_faults():
    run_calls(3, 1, 5, colls=30, port={"fault_loss": "1%", "fault_dup": "1%",
                                      "fault_reorder": "1%"})


def test_another_count():
    """It ends at all members, with a sentence that names two of them."""
    with Net(workers=2, servers=0, colocated=True) as net:
        net.start_all()
        procs = [start(net, 0, "--seed", "7"),
                 start(net, 1, "--seed", "7", "--odd", "22")]
        for p in procs:
            p.wait_error(r"SW_EMISMATCH: stream all/.*rank \d calls .* "
                         r"another count than rank \d")


if __name__ == "__main__":
    rig.main(dict(globals()))
