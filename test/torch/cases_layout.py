# cases_layout.py - tensors with unusual memory layout; by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
"""Every method is called with every kind of tensor, as input and as output.
Either the result equals gloo's for plain copies, or all ranks get an error and
the group stays usable."""
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.utils._python_dispatch import TorchDispatchMode

from cases_backend import start, twins
from sumwire import SumwireError, distributed
from torch_rig import check, raises, run_cases


def negated(x):
    return torch._neg_view(x.neg())


def negated_part(x):
    """Return a tensor like z.conj().imag, which is also strided."""
    return torch.complex(torch.zeros_like(x), x.neg()).conj().imag


def conjugated(x):
    return torch.complex(x, x.neg() - 1).conj()


def strided(x):
    return torch.stack([x, x - 1], -1)[..., 0]


def transposed(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x


def channels_last(x):
    return x.contiguous(memory_format=torch.channels_last) if (
        x.dim() == 4) else x


def negated_images(x):
    return negated(channels_last(x))


def expanded(x):
    return x.flatten()[:1].clone().expand(x.shape) if x.dim() else x


def overlapping(x):
    return torch.arange(float(x.numel() + 1)).as_strided(
        x.shape, [1] * x.dim())


def zeros(x):
    return torch._efficientzerotensor(x.shape)


def plain(x):
    return x


# From PyTorch 2.14 on tensors reach a backend through torch's dispatcher.
IS_DISPATCHED = distributed.version() >= distributed.BACKENDS_SINCE
# Kinds that sumwire's own methods support as input and as output; sumwire or
# torch may refuse other kinds. The dispatcher expands lazy zeros.
RIGHT = {plain: "in out", negated: "in out", channels_last: "in out",
         negated_images: "in out", zeros: "" if IS_DISPATCHED else "in"}
KINDS = [*RIGHT, negated_part, conjugated, strided, transposed, expanded,
         overlapping]
# The dispatcher hands every backend, gloo included, a plain copy of such a
# tensor, and drops the results. A backend cannot detect that.
MARKED = [negated, negated_images, negated_part, conjugated, zeros]
SHAPES = [(4,), (), (0,), (2, 3, 2, 2)]


def sample(shape, seed=0):
    """Return a sample that differs at each rank."""
    n = torch.Size(shape).numel()
    return (torch.arange(n, dtype=torch.float32).reshape(shape) * 3 +
            100 * dist.get_rank() + 10 * seed + 1)


class Run:
    """One method on one group: give(x) lays out its inputs, take(x) its
    outputs. Each method returns its outputs."""

    def __init__(self, group, shape, give, take):
        self.group, self.shape, self.give, self.take = group, shape, give, take
        self.n, self.me = dist.get_world_size(group), dist.get_rank(group)

    def rank(self, i):
        return dist.get_global_rank(self.group or dist.group.WORLD, i % self.n)

    def whole(self, times):
        """Return the shape of this many in a row."""
        first, *rest = self.shape or (1,)
        return self.shape if times == 1 else (times * first, *rest)

    def input(self, seed=0, times=1):
        return self.give(sample(self.whole(times), seed))

    def output(self, dtype, times=1):
        out = self.take(torch.zeros(self.whole(times)))
        return out if out.dtype == dtype else out.to(dtype)

    def outputs(self, dtype):
        return [self.output(dtype) for _ in range(self.n)]

    # In place: input and output have the same kind.

    def all_reduce(self, op=ReduceOp.SUM):
        x = self.input()
        dist.all_reduce(x, op, group=self.group)
        return [x]

    def maximum(self):
        return self.all_reduce(ReduceOp.MAX)

    def product(self):
        return self.all_reduce(ReduceOp.PRODUCT)

    def average(self):
        return self.all_reduce(ReduceOp.AVG)

    def all_reduce_coalesced(self):
        xs = [self.input(i) for i in range(3)]
        with dist._coalescing_manager(group=self.group):
            for x in xs:
                dist.all_reduce(x, group=self.group)
        return xs

    def broadcast(self):
        x = self.input()
        dist.broadcast(x, self.rank(-1), group=self.group)
        return [x]

    def reduce(self):
        x = self.input()
        dist.reduce(x, self.rank(-1), group=self.group)
        return [x] if self.me == self.n - 1 else []

    # From inputs to outputs.

    def all_gather(self):
        x = self.input()
        outs = self.outputs(x.dtype)
        dist.all_gather(outs, x, group=self.group)
        return outs

    def all_gather_into_tensor(self):
        x = self.input()
        out = self.output(x.dtype, self.n)
        dist.all_gather_into_tensor(out, x, group=self.group)
        return [out]

    def all_gather_coalesced(self):
        xs = [self.input(i) for i in range(2)]
        outs = [self.output(x.dtype, self.n) for x in xs]
        with dist._coalescing_manager(group=self.group):
            for out, x in zip(outs, xs):
                dist.all_gather_into_tensor(out, x, group=self.group)
        return outs

    def all_gather_lists(self):
        xs = [self.input(i) for i in range(2)]
        outs = [[self.output(x.dtype) for x in xs] for _ in range(self.n)]
        dist.all_gather_coalesced(outs, xs, group=self.group)
        return sum(outs, [])

    def reduce_scatter(self):
        xs = [self.input(i) for i in range(self.n)]
        out = self.output(xs[0].dtype)
        dist.reduce_scatter(out, xs, group=self.group)
        return [out]

    def reduce_scatter_tensor(self):
        x = self.input(times=self.n)
        out = self.output(x.dtype)
        dist.reduce_scatter_tensor(out, x, group=self.group)
        return [out]

    def reduce_scatter_coalesced(self):
        xs = [self.input(i, self.n) for i in range(2)]
        outs = [self.output(x.dtype) for x in xs]
        with dist._coalescing_manager(group=self.group):
            for out, x in zip(outs, xs):
                dist.reduce_scatter_tensor(out, x, group=self.group)
        return outs

    # By gloo.

    def rooted(self, call):
        """Call at the root first: if it refuses, the other ranks do not call."""
        work = error = None
        if self.me == 0:
            try:
                work = call()
            except Exception as e:
                error = e
        said = [None if error is None else str(error)]
        if self.n > 1:  # not by gloo: it numbers the calls of its group
            dist.broadcast_object_list(said, 0)
        if said[0]:
            raise ValueError(said[0])
        (work or call()).wait()

    def gather(self):
        x = self.input()
        outs = self.outputs(x.dtype) if self.me == 0 else None
        self.rooted(lambda: dist.gather(
            x, outs, self.rank(0), group=self.group, async_op=True))
        return outs or []

    def scatter(self):
        xs = [self.input(i) for i in range(self.n)]
        out = self.output(xs[0].dtype)
        self.rooted(lambda: dist.scatter(
            out, xs if self.me == 0 else None, self.rank(0), group=self.group,
            async_op=True))
        return [out]

    def all_to_all_single(self):
        self.shape = self.shape or (1,)  # gloo requires it from 2.14 on
        x = self.input(times=self.n)
        out = self.output(x.dtype, self.n)
        dist.all_to_all_single(out, x, group=self.group)
        return [out]

    def all_to_all(self):
        xs = [self.input(i) for i in range(self.n)]
        outs = self.outputs(xs[0].dtype)
        dist.all_to_all(outs, xs, group=self.group)
        return outs

    def exchange(self, both):
        """Send to the next rank and receive from the one before. Start with the
        tensor that may be refused, so that the other one is not left behind."""
        if self.n == 1:
            return []
        x = self.input()
        out = self.output(x.dtype)
        calls = [(dist.isend, x, self.rank(self.me + 1)),
                 (dist.irecv, out, self.rank(self.me - 1))]
        for work in both(calls[::-1] if self.give is plain else calls):
            work.wait()
        return [out]

    def send(self):
        return self.exchange(lambda calls: [
            call(*a, group=self.group) for call, *a in calls])

    def batch(self):
        return self.exchange(lambda calls: dist.batch_isend_irecv([
            dist.P2POp(*each, group=self.group) for each in calls]))


IN_PLACE = ["all_reduce", "maximum", "product", "average",
            "all_reduce_coalesced", "broadcast", "reduce"]
BY_SUMWIRE = [*IN_PLACE, "all_gather", "all_gather_into_tensor",
              "all_gather_coalesced", "all_gather_lists", "reduce_scatter",
              "reduce_scatter_tensor", "reduce_scatter_coalesced"]
BY_GLOO = ["gather", "scatter", "all_to_all_single", "all_to_all", "send",
           "batch"]


def copy_of(x):
    """Return a plain tensor of the same values."""
    return torch.empty(x.shape, dtype=x.dtype).copy_(x)


def wanted(gloo, method, shape, kind):
    """Return gloo's result for plain copies."""
    shape = shape or (1,)  # gloo cannot gather tensors without dimensions
    run = Run(gloo, shape, lambda x: copy_of(kind(x)), plain)
    if method == "average":
        return [x / run.n for x in run.all_reduce()]
    return getattr(run, method)()


def try_one(group, gloo, method, shape, kind, role):
    """Return True if the method has right results, False if it refuses."""
    give, take = (kind, plain) if role == "in" else (plain, kind)
    try:
        got = getattr(Run(group, shape, give, take), method)()
    except SumwireError:
        raise  # this rank has begun a call that another rank refuses
    except (ValueError, RuntimeError, TypeError, NotImplementedError) as e:
        check(len(str(e)) > 10, f"{method}: '{e}' is no sentence")
        return False
    want = wanted(gloo, method, shape, kind if role == "in" else plain)
    check(len(got) == len(want), f"{len(got)} results")
    for x, y in zip(got, want):
        check(torch.equal(copy_of(x), y.to(x.dtype).view(x.shape)),
              f"{method} of {kind.__name__} {shape} as {role}: {x} is not {y}")
    return True


def layouts(methods, has_to):
    both = twins()
    for group, gloo in both[0], both[-1]:  # all ranks, and this rank alone
        for method in methods:
            for kind in KINDS:
                for shape in SHAPES:
                    for role in ("in",) if method in IN_PLACE else ("in", "out"):
                        if is_dropped(method, kind, role):
                            continue
                        is_right = try_one(group, gloo, method, shape, kind,
                                           role)
                        check(is_right or not has_to(method, kind, role),
                              f"{method} refuses {kind.__name__} {shape} as "
                              f"{role}")
        dist.barrier(group=group)


def is_dropped(method, kind, role):
    """Does torch drop the results?"""
    return IS_DISPATCHED and kind in MARKED and (
        role == "out" or method in IN_PLACE)


def has_to(method, kind, role):
    may = RIGHT.get(kind, "").split()
    return role in may and (method not in IN_PLACE or "out" in may)


def case_layouts():
    layouts(BY_SUMWIRE, has_to)


def case_layouts_by_gloo():
    layouts(BY_GLOO, lambda method, kind, role: kind is plain or (
        role == "in" and "in" in RIGHT.get(kind, "")))


def case_shared():
    """Inputs and outputs share memory: the result is right, or the call is
    refused."""
    n, me = dist.get_world_size(), dist.get_rank()
    whole = torch.zeros(4 * n + 1)
    for first in 4 * me, 1:  # in place, and across other ranks' parts
        whole.zero_()
        whole[first:first + 4] = me + 1
        dist.all_gather_into_tensor(whole[:4 * n], whole[first:first + 4])
        want = torch.arange(1., n + 1).repeat_interleave(4)
        check(torch.equal(whole[:4 * n], want), whole)
        whole.fill_(1)
        out = whole[first:first + 4]
        dist.reduce_scatter_tensor(out, whole[:4 * n])
        check(bool((out == n).all()), whole)
        whole[:n] = torch.arange(n * me, n * me + n)
        dist.all_to_all_single(whole[:n], whole[:n])
        check(torch.equal(whole[:n], torch.arange(0., n * n, n) + me), whole)
    x = torch.ones(4)
    with raises(ValueError, "all_reduce: two of its results share memory"):
        with dist._coalescing_manager():
            dist.all_reduce(x)
            dist.all_reduce(x[1:])
    freed = torch.ones(4)
    freed.untyped_storage().resize_(4)
    with raises(ValueError, "has been freed", "4 of 16 bytes"):
        dist.all_reduce(freed)
    with (raises(NotImplementedError, "QuantizedCPU") if IS_DISPATCHED else
          raises(ValueError, "dense and contiguous")):
        dist.broadcast(torch.quantize_per_tensor(x, 1., 0, torch.qint8), 0)
    dist.barrier()


class Copies(TorchDispatchMode):
    """Counts the operations that create or write a tensor."""
    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().partition("::")[2].partition(".")[0]
        self.n += name in ("cat", "stack", "clone", "copy_", "_to_copy",
                           "contiguous", "empty", "new_empty", "zeros")
        return func(*args, **kwargs or {})


def rows_anywhere(n, count):
    """Return lists of n tensors: separate, with gaps, backwards, with gaps in
    shared memory, the second one elsewhere."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    shared = backend.allocate_tensor(
        2 * n * count, dtype=torch.float32,
        device=torch.device("cpu")).view(2 * n, count)
    matrix = torch.empty(2 * n, count)
    return [[torch.empty(count) for _ in range(n)], list(matrix[::2]),
            list(matrix[:n])[::-1], list(shared[1::2]),
            [*matrix[:1], torch.empty(count), *matrix[2:n]]]


def case_rows():
    """The library accepts the tensors of a list without copying them."""
    n, me = dist.get_world_size(), dist.get_rank()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    for count in 5, 70_000:
        mine = torch.arange(float(count))
        for rows in rows_anywhere(n, count):
            with Copies() as copies:
                backend.allgather([rows], [mine + me]).wait()
                check(copies.n == 0, f"all_gather: {copies.n} copies")
            check(all(torch.equal(row, mine + r) for r, row in enumerate(rows)),
                  "all_gather")
            out = torch.empty(count)
            with Copies() as copies:
                backend.reduce_scatter([out], [rows]).wait()
                check(copies.n == 0, f"reduce_scatter: {copies.n} copies")
            check(torch.equal(out, n * (mine + me)), "reduce_scatter")
            backend.reduce_scatter([rows[me]], [rows]).wait()  # in place
            check(torch.equal(rows[me], out), "reduce_scatter in place")
            rows[me].fill_(me)
            backend.allgather([rows], [rows[me]]).wait()
            check(all(bool((row == r).all()) for r, row in enumerate(rows)),
                  "all_gather in place")
    x = torch.ones(count)
    backend.reduce_scatter([x], [[x] * n]).wait()  # all parts read x
    check(bool((x == n).all()), x)
    backend.allgather([[x] * n], [mine + me]).wait()  # as with gloo, the last one counts
    check(torch.equal(x, mine + n - 1), x)
    with Copies() as copies:  # check that Copies detects a copy
        odd = [torch.empty(7, 10).t() for _ in range(n)]
        backend.allgather([odd], [torch.full((10, 7), float(me))]).wait()
        check(copies.n > 2 * n, copies.n)
    check(all(bool((t == r).all()) for r, t in enumerate(odd)), "transposed")


def case_lists():
    """Check lists of one type; with different shapes each rank broadcasts its
    own."""
    n, me = dist.get_world_size(), dist.get_rank()
    outs = [torch.zeros(r + 1, 2) for r in range(n)]
    dist.all_gather(outs, torch.full((me + 1, 2), float(me)))
    check([t.unique().tolist() for t in outs] == [[r] for r in range(n)], outs)
    with raises(ValueError, "torch.float64", "torch.float32"):
        dist.all_gather([torch.zeros(2) for _ in range(n)],
                        torch.zeros(2, dtype=torch.float64))
    with raises(ValueError, "tensor has shape [3], but this rank's in the list "
                "has [2]"):
        dist.all_gather([torch.zeros(2) for _ in range(n)], torch.zeros(3))
    with raises(ValueError, "torch.float64", "torch.float32"):
        dist.reduce_scatter(torch.zeros(2), [
            torch.zeros(2, dtype=torch.float64) for _ in range(n)])
    with raises(ValueError, "reduce_scatter", "this rank's in the list has [4]"):
        dist.reduce_scatter(torch.zeros(2), [torch.zeros(2 + 2 * (r == me))
                                             for r in range(n)])
    dist.barrier()


def case_elsewhere():
    """gloo supports CPU tensors only; no other real device exists here."""
    if IS_DISPATCHED:  # torch itself handles meta tensors, without effect
        return
    there = torch.zeros(4, device="meta")
    n, me = dist.get_world_size(), dist.get_rank()
    other, all_of_them = (me + 1) % n, None if me else [there] * n
    for call in (lambda: dist.send(there, other),
                 lambda: dist.recv(there, other),
                 lambda: dist.all_to_all_single(there, there),
                 lambda: dist.all_to_all([there] * n, [there] * n),
                 lambda: dist.gather(there, all_of_them),
                 lambda: dist.scatter(there, all_of_them)):
        with raises(ValueError, "on meta", "cpu:sumwire,cuda:nccl"):
            call()


if __name__ == "__main__":
    start()
    run_cases(globals())
