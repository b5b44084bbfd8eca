# torch_hierarchical.py - gradients summed within each machine first
# SPDX-License-Identifier: BSD-3-Clause
"""A machine is a network namespace in which its ranks run; the daemons are
outside. gloo sums within a machine, because there is no GPU here."""
import subprocess

import torch_rig
import lan
import rig
from proc_ps import named
from recorded import await_copies
from rig import check
from torch_rig import TorchNet

# The process keeps the namespace until its standard input ends.
HOLD = "ip link set lo up && echo && exec cat"


class Machines(TorchNet):
    """Machines with an agent each, and as many ranks as local says."""

    def __init__(self, local=(2, 2), **rest):
        super().__init__(len(local), local=local, **rest)
        self.holders = [self.hold() for _ in local]

    def hold(self):
        p = subprocess.Popen(["unshare", "-n", "sh", "-c", HOLD],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        return p

    def namespaces(self, rank):
        machine = self.agents.index(self.places[rank][0])
        return [f"/proc/{self.holders[machine].pid}/ns/net"]

    def __exit__(self, kind, value, trace):
        try:
            return super().__exit__(kind, value, trace)
        finally:
            for p in self.holders:
                p.stdin.close()
                p.stdout.close()
                p.wait(rig.STOP_S)


def started(*local, **rest):
    net = Machines(local, **rest)
    net.start_all()
    return net


def test_sums():
    with started(2, 2) as net:
        net.ranks_ok("cases_hierarchical.py", "sums", "averages", "floats",
                     "any_order", "missing", "trained", "parallel", "options",
                     "refused", "differing")
        if not rig.IS_QUICK:
            net.ranks_ok("cases_hierarchical.py", "trained",
                         env={"SUMWIRE_DEVICE": "fake:gbit=40,latency_us=10"})
        net.ranks_ok("cases_hierarchical.py", "by_variable",
                     env={"SUMWIRE_HIERARCHICAL": "1",
                          "SUMWIRE_CROSS_BARRIER": "1"})


def test_copies_in_a_trace():
    """Gradients are copied here into bundles; a device's parts by libsumwire."""
    for device, wanted in (("", [("copy in", 40000, 40000)]),
                           ("fake:gbit=40,latency_us=10",
                            [("copy in", 20000, 20300), ("copy out", 20000, 20300)])):
        with named(Machines((2, 2))) as net:
            await_copies(net, "cases_hierarchical.py", lambda copies, wanted=wanted: all(
                any(name == kind and least <= n <= most for name, n in copies)
                for kind, least, most in wanted), SUMWIRE_DEVICE=device)


def test_by_stream():
    with started(2, 2) as net:
        net.ranks_ok("cases_hierarchical.py", "by_stream", "by_stream_fails")


def test_layouts():
    """Three ranks on a single machine; one rank on each machine."""
    for local in rig.layouts((1, 1), (3,)):
        with started(*local) as net:
            net.ranks_ok("cases_hierarchical.py", "sums", "any_order")


def test_uneven():
    with started(2, 1) as net:
        net.ranks_ok("cases_hierarchical.py", "uneven")


def all_say(case, *texts, dies=None, **env):
    """Check that every rank except the dying one ends with an error that
    contains one of these texts."""
    with started(2, 2) as net:
        ranks = net.cases("cases_hierarchical.py", case, env=env)
        for rank, p in enumerate(ranks):
            if rank == dies:
                p.wait(rig.RUN_S)
                continue
            p.wait_error("Traceback", "SumwireError", code=1)
            check(any(t in p.log() for t in texts), f"rank {rank}: {p.log()}")


def test_a_rank_raises():
    all_say("raises", "rank 1 (node agent0)", "rank 1 of this machine missing",
            dies=1)


def test_a_rank_is_killed():
    """Its machine has ranks of other places, which do not share a group with
    it."""
    all_say("is_killed", "rank 3 (node agent1)",
            "rank 3 of this machine missing", dies=3)


def test_a_rank_is_late():
    """The rank makes no sum: ranks that wait for it give up, and so do all
    others. On its own machine the error names it. On others it names this rank,
    or the rank on its machine that waits for it."""
    all_say("is_late", "timed out after 4 s, missing rank 2 of this machine",
            "missing: rank 2 of 4", "missing: rank 3 of 4", dies=2,
            SUMWIRE_WAIT_TIMEOUT="4")


def test_a_rank_gives_up():
    """The rank's exception is caught, and the rank survives."""
    all_say("gives_up", "rank 0: ValueError: given up", dies=0)


if __name__ == "__main__":
    lan.enter()
    torch_rig.main(dict(globals()))
