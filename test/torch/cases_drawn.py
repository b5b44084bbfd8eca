# cases_drawn.py - collectives drawn from a seed; run by torch_drawn.py
# SPDX-License-Identifier: BSD-3-Clause
"""All ranks draw the same calls of the default group and of other groups, which
are created and destroyed. Each rank draws for itself where its memory is, and
when and how it waits, if at all. Each rank knows the contributions of all,
small integers, so it computes the exact result itself."""
import os
import random

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import sumwire.torch  # noqa: F401
from cases_backend import start
from torch_rig import check, run_cases

SEED = int(os.environ.get("TEST_SEED", "1"))
N_CALLS = 150
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int32, torch.int64]
MOVED = [torch.uint8, torch.int16, torch.bool, torch.complex64]
OPS = {ReduceOp.SUM: lambda x: x.sum(0), ReduceOp.PRODUCT: lambda x: x.prod(0),
       ReduceOp.MIN: lambda x: x.amin(0), ReduceOp.MAX: lambda x: x.amax(0),
       ReduceOp.AVG: lambda x: x.mean(0)}
N_OPEN = 24  # calls with a later wait


class Group:
    """The state that all ranks know; `handle` is torch's, at members only."""

    def __init__(self, ranks, handle):
        self.ranks, self.handle = list(ranks), handle
        self.n = len(self.ranks)

    def is_mine(self):
        return dist.get_rank() in self.ranks

    def me(self):
        return self.ranks.index(dist.get_rank())


class Draw:
    """One run: `all` draws the same at all ranks, `own` differs from rank to
    rank."""

    def __init__(self):
        self.all = random.Random(SEED)
        self.own = random.Random(SEED * 1000 + dist.get_rank())
        everybody = range(dist.get_world_size())
        self.groups = [Group(everybody, dist.group.WORLD)]
        self.open, self.n_calls = [], 0

    # --- memory ---

    def values(self, dtype, shape, rank):
        """Return a rank's contribution to this call."""
        g = torch.Generator().manual_seed(self.n_calls * 64 + rank)
        low, high = (0, 2) if dtype in (torch.bool, torch.uint8) else (-3, 4)
        return torch.randint(low, high, shape, generator=g).to(dtype)

    def place(self, x, group):
        """Return the same elements in memory of their own, inside other memory,
        or in the backend's memory."""
        how = self.own.choice(["own", "within", "odd", "shared"])
        if how == "own" or x.dtype in MOVED:
            return x.clone()
        if how == "shared":
            backend = group.handle._get_backend(torch.device("cpu"))
            y = backend.allocate_tensor(x.numel(), dtype=x.dtype,
                                        device=torch.device("cpu"))
            return y.view(x.shape).copy_(x)
        at = 1 if how == "odd" else 8
        around = torch.full((x.numel() + 16,), 7).to(x.dtype)
        return around[at:at + x.numel()].view(x.shape).copy_(x)

    def empty(self, dtype, shape, group):
        return self.place(torch.full(shape, 5).to(dtype), group)

    def shape(self, least=0):
        n = self.all.choice([least, 1, 2, 7, 64, 1000, 4096, 70001])
        return self.all.choice([(n,), (n, 1), (2, n), (1, 3, n)])

    def dtype(self, *more):
        return self.all.choice([*FLOATS, *INTEGERS, *more])

    # --- calls: return the work and the expected result ---

    def given(self, group, dtype, shape):
        return torch.stack([self.values(dtype, shape, r) for r in group.ranks])

    def op(self, dtype, group):
        """Draw an operation; averages of three are rounded."""
        ops = [op for op in OPS if op != ReduceOp.AVG or
               dtype.is_floating_point and group.n != 3]
        return self.all.choice([ReduceOp.SUM, *ops])

    def all_reduce(self, group):
        dtype, shape = self.dtype(), self.shape()
        op, all_of = self.op(dtype, group), self.given(group, dtype, shape)
        y = self.place(all_of[group.me()], group)
        return (dist.all_reduce(y, op, group.handle, async_op=True),
                [y], [reduced(op, all_of)])

    def reduce(self, group):
        dtype, shape = self.dtype(), self.shape()
        op, all_of = self.op(dtype, group), self.given(group, dtype, shape)
        root = self.all.choice(group.ranks)
        y = self.place(all_of[group.me()], group)
        work = dist.reduce(y, root, op, group.handle, async_op=True)
        is_root = root == dist.get_rank()
        return work, [y][:is_root], [reduced(op, all_of)][:is_root]

    def broadcast(self, group):
        dtype, shape = self.dtype(*MOVED), self.shape()
        all_of = self.given(group, dtype, shape)
        i = self.all.randrange(group.n)
        y = self.place(all_of[group.me()], group)
        return (dist.broadcast(y, group.ranks[i], group.handle, async_op=True),
                [y], [all_of[i]])

    def all_gather(self, group):
        dtype, shape = self.dtype(*MOVED), self.shape()
        all_of = self.given(group, dtype, shape)
        x = self.place(all_of[group.me()], group)
        ys = [self.empty(dtype, shape, group) for _ in group.ranks]
        return (dist.all_gather(ys, x, group.handle, async_op=True), ys,
                list(all_of))

    def all_gather_into_tensor(self, group):
        dtype, shape = self.dtype(*MOVED), self.shape()
        all_of = self.given(group, dtype, shape)
        y = self.empty(dtype, all_of.shape, group)
        x = self.place(all_of[group.me()], group)
        if self.own.random() < 0.2:  # in place
            x = y[group.me()].copy_(x)
        return (dist.all_gather_into_tensor(y, x, group.handle, async_op=True),
                [y], [all_of])

    def reduce_scatter(self, group):
        dtype, shape = self.dtype(), self.shape()
        op = self.op(dtype, group)
        all_of = self.given(group, dtype, (group.n, *shape))
        y = self.empty(dtype, shape, group)
        xs = [self.place(x, group) for x in all_of[group.me()]]
        return (dist.reduce_scatter(y, xs, op, group.handle, async_op=True),
                [y], [reduced(op, all_of[:, group.me()])])

    def reduce_scatter_tensor(self, group):
        dtype, shape = self.dtype(), self.shape()
        op = self.op(dtype, group)
        all_of = self.given(group, dtype, (group.n, *shape))
        x = self.place(all_of[group.me()], group)
        y = self.empty(dtype, shape, group)
        if self.own.random() < 0.2:  # in place
            y = x[group.me()]
        return (dist.reduce_scatter_tensor(y, x, op, group.handle,
                                           async_op=True),
                [y], [reduced(op, all_of[:, group.me()])])

    def gather(self, group):
        dtype, shape = self.dtype(), self.shape(1)
        all_of = self.given(group, dtype, shape)
        root = self.all.choice(group.ranks)
        is_root = root == dist.get_rank()
        ys = [self.empty(dtype, shape, group) for _ in group.ranks
              ] if is_root else None
        work = dist.gather(self.place(all_of[group.me()], group), ys, root,
                           group.handle, async_op=True)
        return work, ys or [], list(all_of) if is_root else []

    def scatter(self, group):
        dtype, shape = self.dtype(), self.shape(1)
        i = self.all.randrange(group.n)
        whole = self.values(dtype, (group.n, *shape), group.ranks[i])
        y = self.empty(dtype, shape, group)
        xs = [self.place(x, group) for x in whole] if i == group.me() else None
        return (dist.scatter(y, xs, group.ranks[i], group.handle,
                             async_op=True), [y], [whole[group.me()]])

    def all_to_all_single(self, group):
        """Draw the number of rows from each rank to each other."""
        dtype, me = self.dtype(), group.me()
        rows = [[self.all.randrange(4) for _ in group.ranks]
                for _ in group.ranks]
        gives = [self.values(dtype, (sum(row), 3), r).split(row)
                 for row, r in zip(rows, group.ranks)]
        x = self.place(torch.cat(gives[me]), group)
        takes = [row[me] for row in rows]
        y = self.empty(dtype, (sum(takes), 3), group)
        return (dist.all_to_all_single(y, x, takes, rows[me], group.handle,
                                       async_op=True),
                [y], [torch.cat([each[me] for each in gives])])

    def barrier(self, group):
        return dist.barrier(group.handle, async_op=True), [], []

    def send(self, group):
        """Send to the next rank, and receive from the one before."""
        dtype, shape, me = self.dtype(), self.shape(1), group.me()
        if group.n == 1:
            return None, [], []
        all_of = self.given(group, dtype, shape)
        y = self.empty(dtype, shape, group)
        tag = self.n_calls
        sent = dist.isend(self.place(all_of[me], group),
                          group.ranks[(me + 1) % group.n], group.handle, tag)
        got = dist.irecv(y, group.ranks[me - 1], group.handle, tag)
        sent.wait()
        got.wait()
        return None, [y], [all_of[me - 1]]

    def objects(self, group):
        got = [None] * group.n
        dist.all_gather_object(got, {dist.get_rank(): self.n_calls},
                               group.handle)
        check(got == [{r: self.n_calls} for r in group.ranks], got)
        return None, [], []

    # --- the run ---

    def call(self):
        kinds = [self.all_reduce, self.broadcast, self.all_gather,
                 self.all_gather_into_tensor, self.reduce_scatter,
                 self.reduce_scatter_tensor, self.barrier, self.reduce,
                 self.gather, self.scatter, self.all_to_all_single, self.send,
                 self.objects]
        weights = [8, 4, 4, 4, 4, 4, 2, 1, 1, 1, 1, 1, 1]
        state = self.all.getrandbits(64)  # a rank outside skips the group's draws
        [kind] = self.all.choices(kinds, weights)
        group = self.all.choice(self.groups)
        self.n_calls += 1
        if not group.is_mine():
            return
        rest, self.all = self.all, random.Random(state)
        what = f"seed {SEED}, call {self.n_calls}: {kind.__name__} of {group.ranks}"
        work, got, want = kind(group)
        self.all = rest
        if work and self.own.random() < 0.05:
            return  # never waited for, and its memory is reused
        self.open.append((group, what, work, got, want))

    def end(self, i):
        _, what, work, got, want = self.open.pop(i)
        if work and self.own.random() < 0.5:
            work.get_future().wait()
        elif work:
            work.wait()
        for y, x in zip(got, want):
            check(torch.equal(y, x), f"{what}: {y} is not {x}")

    def end_some(self, n_left):
        while len(self.open) > n_left:
            self.end(self.own.randrange(len(self.open)))

    def regroup(self):
        """Create a group, or destroy one, after waiting for its calls or not."""
        if len(self.groups) > 4:
            group = self.groups.pop(self.all.randrange(1, len(self.groups)))
            for i in reversed(range(len(self.open))):
                if self.open[i][0] is group:
                    self.end(i)
            if group.is_mine():
                dist.barrier(group.handle)  # also completes calls without a wait
                dist.destroy_process_group(group.handle)
            return
        n = dist.get_world_size()
        ranks = sorted(self.all.sample(range(n), self.all.randint(1, n)))
        self.groups.append(Group(ranks, dist.new_group(ranks)))


def case_drawn():
    run = Draw()
    while run.n_calls < N_CALLS:
        run.call()
        run.end_some(run.own.choice([0, 2, N_OPEN, N_OPEN]))
        if run.all.random() < 0.06:
            run.regroup()
    run.end_some(0)


def reduced(op, all_of):
    """Reduce in the given type, without rounding."""
    return OPS[op](all_of).to(all_of.dtype)


if __name__ == "__main__":
    start()
    run_cases(globals())
