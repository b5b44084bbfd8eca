# cases_peers.py - ranks that send before they connect; run by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
"""A rank may send, or post a receive, and then take part in a sum of all ranks
before its peer makes any call: neither call may wait for the peer. Port numbers
decide which of two ranks connects, so each case runs in several groups."""
import datetime
import time

import torch
import torch.distributed as dist

from cases_backend import start
from torch_rig import check, raises, run_cases

GROUPS = 6
LIMIT_S = 300  # a group's timeout: ends a waiting call
SOON_S = 90


def groups():
    """Yield groups of all ranks, each with a rank that sends and one that
    receives."""
    ends = 0, dist.get_world_size() - 1
    for i in range(GROUPS):
        yield (dist.new_group(timeout=datetime.timedelta(seconds=LIMIT_S)),
               *(ends if i % 2 else ends[::-1]))


def add_up():
    x = torch.ones(100)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def case_sent_first():
    me = dist.get_rank()
    for group, sender, receiver in groups():
        x = [torch.full((5,), i + 1.0) for i in range(3)]
        works = [dist.isend(t, receiver, group=group)
                 for t in x if me == sender]
        add_up()
        for t in x if me == receiver else ():
            y = torch.zeros(5)
            dist.recv(y, sender, group=group)
            check(torch.equal(y, t), f"{y} is not {t}")
        for work in works:
            work.wait()
            check(work.is_completed() and work.is_success(), "it has not ended")


def case_awaited_first():
    me = dist.get_rank()
    for group, sender, receiver in groups():
        y = torch.zeros(3, 5)
        works = [dist.irecv(t, sender, group=group)
                 for t in y if me == receiver]
        check(not any(work.is_completed() for work in works), "too early")
        add_up()
        for i in range(3 if me == sender else 0):
            dist.send(torch.full((5,), i + 1.0), receiver, group=group)
        for i, work in enumerate(works):
            work.wait()
            check(bool((y[i] == i + 1).all()), y)


def case_never_met():
    """A wait for an idle peer ends by its own limit."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=LIMIT_S))
    if dist.get_rank() == 0:
        work = dist.irecv(torch.zeros(5), dist.get_world_size() - 1,
                          group=group)
        with raises(RuntimeError):
            work.wait(datetime.timedelta(seconds=1))
    add_up()


def case_by_keyword():
    """Pass keyword arguments as to torch's own groups."""
    me, last = dist.get_rank(), dist.get_world_size() - 1
    group, x = dist.new_group(), torch.full((5,), float(me))
    if me == 0:
        group.send([x], tag=3, dstRank=last).wait()
    elif me == last:
        group.recv([x], 0, tag=3).wait()
        check(bool((x == 0).all()), x)
    dist.barrier()


def case_monitored():
    """monitored_barrier passes, or soon names the missing ranks, at every rank
    present."""
    me, n = dist.get_rank(), dist.get_world_size()
    group = dist.new_group()
    for _ in range(3):
        group.monitored_barrier(datetime.timedelta(seconds=60))
    began = time.monotonic()
    others = ", ".join(map(str, range(1, n)))
    for is_for_all, text in (False, "Rank 1 failed"), (True, f"Ranks {others} "
                                                             f"failed"):
        group = dist.new_group()
        if me == 0:
            with raises(RuntimeError, "Rank 0 timed out in monitoredBarrier",
                        text):
                group.monitored_barrier(datetime.timedelta(seconds=0),
                                        is_for_all)
    group = dist.new_group()
    if me != n - 1:
        with raises(RuntimeError, f"Rank {n - 1}", *(
                [f"Rank {me} successfully reached"] if me else [])):
            group.monitored_barrier(datetime.timedelta(seconds=1))
    took = time.monotonic() - began
    check(took < SOON_S, f"it took {took:.1f} s")


if __name__ == "__main__":
    start()
    run_cases(dict(globals()))
