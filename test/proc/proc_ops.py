# proc_ops.py - every operation of collectives, by libsumwire and real daemons
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import subprocess
import sys
import time

import rig
from rig import Net, check, program


def start(net, rank, *args):
    return net.run(f"ops{rank}", program("test/proc/proc_ops"), "--agent",
                   net.socket(f"agent{rank}"), *args)


def run_calls(n, k, *args, local=None, **keys):
    """Return how many calls each rank made, and the hash of its results."""
    with Net(agents=n, servers=k, local=local, **keys) as net:
        net.start_all()
        procs = [net.run(f"ops{i}.{j}", program("test/proc/proc_ops"),
                         "--agent", net.socket(f"agent{i}"), *args)
                 for i, m in enumerate(local or (1,) * n) for j in range(m)]
        for p in procs:
            p.wait_ok(limit_s=rig.TEST_S)
            check("exact" in p.out(), p.out())
        return [(int(re.search(r"(\d+) calls", p.out())[1]),
                 re.search(r"bits (\w+)", p.out())[1]) for p in procs]


def test_each():
    # 3 kinds sum 9 types: all with 6 operations, 5 of them with 3 more, bool
    # without 2; 2 kinds move 9 types.
    for n, _ in run_calls(3, 0, colocated=True):
        check(n == 3 * (6 * 9 - 2 + 3 * 5) + 2 * 9, f"{n} calls")


# Agents, separate servers, local ranks; without separate servers each agent is
# a server.
NETS = [(2, 0, None), (2, 1, (2, 2)), (2, 2, None), (3, 0, (1, 2, 1)),
        (3, 1, None), (3, 2, (2, 1, 1)), (4, 0, None), (4, 1, (1, 1, 2, 1)),
        (4, 2, None), (1, 1, (4,))]


def run_net(i, *args):
    n, k, local = NETS[i]
    return run_calls(n, k, *args, local=local,
                     colocated=k == 0 or (i % 2 and n > 1))


def test_drawn():
    """Run a sample of the whole: SUMWIRE_TEST_OPS=SEED draws another."""
    seed = os.environ.get("SUMWIRE_TEST_OPS", "1")
    if "/" in seed:
        return
    for i in range(0, len(NETS), 2 if rig.IS_QUICK else 1):
        run_net(i, "--calls", "15" if rig.IS_QUICK else "40", "--seed", f"{seed}{i}")


def test_whole():
    """Run every kind, operation and type with each size, in every net:
    SUMWIRE_TEST_OPS=SLICE/SLICES; 0/1 is all, and takes hours."""
    part = os.environ.get("SUMWIRE_TEST_OPS", "")
    if "/" not in part:
        return
    for i, net in enumerate(NETS):
        begin = time.monotonic()
        calls = run_net(i, "--whole", part, "--max", str(64 << 20))
        print(f"# {net}: {calls[0][0]} calls, "
              f"{time.monotonic() - begin:.0f} s", flush=True)


def test_order_of_ranks():
    """Results have the same bits, whatever the order of arrival, which faults
    and other load vary. SUMWIRE_TEST_ORDER=RUNS sets the number of runs."""
    order = {"job": {"order": "rank"}, "colocated": True}
    bits = run_calls(3, 0, **order)
    n = int(os.environ.get("SUMWIRE_TEST_ORDER", "2" if rig.IS_QUICK else "3"))
    for i in range(1, n):
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(i % 4)]
        try:
            again = run_calls(3, 0, port={"fault_loss": f"{i % 3}%",
                                          "fault_dup": f"{i % 2}%",
                                          "fault_reorder": f"{5 - i % 5}%"},
                              **order)
        finally:
            for p in load:
                p.kill()
                p.wait()
        check(again == bits, f"run {i + 1}: {again}, not {bits}")


def test_another_operation():
    """The call ends at both, with a sentence that names ranks and operations."""
    with Net(agents=2, servers=0, colocated=True) as net:
        net.start_all()
        procs = [start(net, 0), start(net, 1, "--odd", "1")]
        for p in procs:
            p.wait_error(r"SW_EMISMATCH: group all: rank (0 calls "
                         r"all_reduce of sum f32, rank 1 all_reduce of max|"
                         r"1 calls all_reduce of max f32, rank 0 all_reduce of "
                         r"sum) f32 \(collective 1\)")


if __name__ == "__main__":
    rig.main(dict(globals()))
