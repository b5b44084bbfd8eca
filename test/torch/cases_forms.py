# cases_forms.py - forms of calls that gloo also accepts; run by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import unittest.mock

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from cases_backend import start, twins
from sumwire import collectives
from torch_rig import check, run_cases


def case_unwaited():
    """After a barrier, results of calls without a wait are complete."""
    for group, _ in twins():
        n = dist.get_world_size(group)
        for elems in 10, 1000, 100000:
            xs = [torch.ones(elems) for _ in range(50)]
            for x in xs:
                dist.all_reduce(x, group=group, async_op=True)
            work = dist.barrier(group=group, async_op=True)
            if elems == 10:
                work.get_future().wait()
            work.wait()
            n_there = sum(bool((x == n).all()) for x in xs)
            check(n_there == len(xs), f"{n_there} of {len(xs)}")


def case_looked_at_late():
    """A completed work never times out, however late it is checked."""
    lib = unittest.mock.Mock(**{"sw_poll.return_value": 0})
    calls = collectives.Calls(unittest.mock.Mock(lib=lib))
    group, ends = collectives.Group("g", 1), []
    call = collectives.Call(group, "all_reduce", 0, ends.append, None)
    call.box.value = 1
    calls.open[1] = call
    calls.look()
    check(ends == [None] and not calls.open, f"ends {ends}")
    check(not lib.sw_group_abort.called, "it was given up")


def case_short_forms():
    """Call methods of the group, and of its backend."""
    for group, gloo in twins():
        group = group or dist.group.WORLD
        want = short_forms(gloo)
        for made in group, group._get_backend(torch.device("cpu")):
            for i, (got, x) in enumerate(zip(short_forms(made), want)):
                check(torch.equal(got, x), f"{i}, of {made}: {got} is not {x}")


def short_forms(group):
    n, me, last = group.size(), group.rank(), group.size() - 1
    limit, most = datetime.timedelta(seconds=600), ReduceOp.MAX
    got = []

    def of(call, rank=me):
        """Return the effect on this rank's tensor, or on that rank alone."""
        x = torch.full((3,), 1. + me)
        call(x).wait()
        got.append(x if me == rank else torch.empty(0))

    of(lambda x: group.allreduce(x))
    of(lambda x: group.allreduce(x, op=most))
    of(lambda x: group.allreduce([x], most, limit))
    of(lambda x: group.allreduce([x], op=most, timeout=limit))
    of(lambda x: group.broadcast(x, last))
    of(lambda x: group.broadcast(x, root=last))
    of(lambda x: group.broadcast(x, last, limit))
    of(lambda x: group.reduce(x, last), last)
    of(lambda x: group.reduce(x, root=last, op=most), last)
    of(lambda x: group.reduce(x, last, most, limit), last)
    of(lambda x: group.reduce_scatter(x, [x + i for i in range(n)]))
    of(lambda x: group.reduce_scatter(x, [x + i for i in range(n)], op=most))
    of(lambda x: group.reduce_scatter(x, [x + i for i in range(n)], most, limit))
    parts = [torch.empty(3) for _ in range(n)]
    of(lambda x: group.allgather(parts, x))
    of(lambda x: group.allgather(parts, x, timeout=limit))
    of(lambda x: group.allgather(parts, x, limit))
    return got + parts


if __name__ == "__main__":
    start()
    run_cases(globals())
