# cases_horovods.py - the checks of Horovod's tests for each call; by torch_horovod.py
# SPDX-License-Identifier: BSD-3-Clause
"""Every operation with every type, in one, two and three dimensions, on all
ranks and on process sets: check values, gradients, and the errors that all
ranks must get when they disagree. After an error the next call works."""
import inspect
import itertools

import torch
from torch import nn
from torch.nn import functional

import sumwire.torch as hvd
from torch_rig import check, raises, run_cases

SUMMED = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32,
          torch.float64, torch.float16, torch.bfloat16]
MOVED = [*SUMMED, torch.int16, torch.bool]
FLOATS = [torch.float32, torch.float64]
DIMS = [1, 2, 3]
ROWS = [17, 32, 81, 12, 15, 23]
EXACT = 8  # limit of |values|, so that every type holds their sums


def drawn(dtype, dim, seed=0, rank=None):
    """Return the tensor of a rank, small whole numbers."""
    rank = hvd.rank() if rank is None else rank
    g = torch.Generator().manual_seed(100 * seed + rank)
    low = 0 if dtype in (torch.uint8, torch.bool) else -EXACT
    return torch.randint(low, EXACT + 1, [7] * dim, generator=g).to(dtype)


def of_all(dtype, dim, ranks, seed=0):
    return torch.stack([drawn(dtype, dim, seed, r) for r in ranks])


def same(got, want, what):
    check(got.dtype == want.dtype and got.shape == want.shape and
          torch.equal(got, want), f"{what}: {got} is not {want}")


def everyone():
    return range(hvd.size())


def summed(dtype, dim, ranks, seed=0):
    return of_all(dtype, dim, ranks, seed).double().sum(0).to(dtype)


def case_sums():
    """Check allreduce in all of its forms, alone and in groups."""
    handles = []
    for dtype, dim in itertools.product(SUMMED, DIMS):
        x, want = drawn(dtype, dim), summed(dtype, dim, everyone())
        what = f"{dtype}, {dim} dimensions"
        same(hvd.allreduce(x, op=hvd.Sum), want, what)
        same(hvd.allreduce(x, average=False), want, what)
        y = x.clone()
        check(hvd.allreduce_(y, op=hvd.Sum) is y, what)
        same(y, want, what)
        handles.append((hvd.allreduce_async(x, op=hvd.Sum), want, what))
        for each in hvd.grouped_allreduce([x] * 3, op=hvd.Sum):
            same(each, want, what)
        y = [x.clone(), x.clone()]
        hvd.grouped_allreduce_(y, op=hvd.Sum)
        for each in y:
            same(each, want, what)
    for handle, want, what in handles:
        same(hvd.synchronize(handle), want, what)


def case_averages():
    """The average of equal tensors equals them, also for whole numbers."""
    for dtype, dim in itertools.product(SUMMED, DIMS):
        x = drawn(dtype, dim, rank=0).abs() % 4
        same(hvd.allreduce(x), x, f"average of {dtype}")
        same(hvd.allreduce(x, average=True), x, f"average of {dtype}")
        for each in hvd.grouped_allreduce([x, x]):
            same(each, x, f"averages of {dtype}")


def case_extremes():
    for dtype, dim in itertools.product(SUMMED, DIMS):
        all_of = of_all(dtype, dim, everyone())
        wide = all_of.double()
        for op, want in ((hvd.Min, wide.amin(0)), (hvd.Max, wide.amax(0)),
                         (hvd.Product, wide.prod(0))):
            if op == hvd.Product and dtype in (torch.uint8, torch.int8):
                continue  # sums wrap
            same(hvd.allreduce(drawn(dtype, dim), op=op), want.to(dtype),
                 f"{op} of {dtype}")


def case_factors():
    """Whole numbers are scaled in f64, 16-bit floats in f32."""
    factor = 0.30541
    for dtype, dim in itertools.product(
            [torch.int32, torch.int64, *FLOATS, torch.float16], DIMS):
        x = drawn(dtype, dim, rank=0)
        wide = (x.double() if not dtype.is_floating_point else
                x.float() if dtype == torch.float16 else x)
        before = (wide * factor).to(dtype) * hvd.size()
        after = (wide * hvd.size() * factor).to(dtype)
        for got, want in (
                (hvd.allreduce(x, op=hvd.Sum, prescale_factor=factor), before),
                (hvd.allreduce(x, op=hvd.Sum, postscale_factor=factor), after)):
            check(got.dtype == dtype and torch.allclose(
                got.double(), want.double(),
                rtol=2e-3 if dtype == torch.float16 else 1e-6),
                f"{dtype}: {got} is not {want}")


def disagree(call, *texts):
    """Check that all ranks get an error, and that the next sum is right."""
    with raises(RuntimeError, *texts):
        call()
    same(hvd.allreduce(torch.ones(3), op=hvd.Sum),
         torch.full((3,), float(hvd.size())), "the next sum")


def case_disagreements():
    r, n = hvd.rank(), hvd.size()
    typed = torch.ones([17] * 3, dtype=torch.int32 if r % 2 else torch.float32)
    wide = torch.ones(17, 10 * (r + 1), 17)
    folded = torch.ones([17, 23 * 5] if r == 0 else [17, 23, 5])
    rows = torch.ones(2 * n, 10 * (r + 1), 2)
    disagree(lambda: hvd.allreduce(torch.ones([17 + r] * 3)))
    disagree(lambda: hvd.allreduce(folded))
    disagree(lambda: hvd.allreduce(typed))
    disagree(lambda: hvd.allgather(wide))
    disagree(lambda: hvd.allgather(typed))
    disagree(lambda: hvd.broadcast(wide, 0))
    disagree(lambda: hvd.broadcast(typed, 0))
    disagree(lambda: hvd.broadcast(torch.ones(17), r))
    disagree(lambda: hvd.alltoall(rows))
    disagree(lambda: hvd.alltoall(torch.ones(
        n, dtype=torch.int32 if r % 2 else torch.float32)))
    disagree(lambda: hvd.reducescatter(torch.ones([17 + r] * 3)))
    disagree(lambda: hvd.reducescatter(typed))


def case_arguments():
    """Check errors of one rank's own arguments; each is a ValueError."""
    n = hvd.size()
    for splits, rows in ((None, n + 1), (torch.ones(n, dtype=torch.int32),
                                         n - 1),
                         (torch.ones(n), n)):
        with raises(ValueError):
            hvd.alltoall(torch.ones(rows), splits)
    for call, more in ((hvd.allreduce_async, {}), (hvd.allgather_async, {}),
                       (hvd.broadcast_async, {"root_rank": 0})):
        x = torch.ones([17] * 3)
        first = call(x, name="duplicate", **more)
        with raises(ValueError):
            for _ in range(10):
                call(x, name="duplicate", **more)
        hvd.synchronize(first)
    hvd.barrier()


def case_gathers():
    me = hvd.rank()
    handles = []
    for dtype, dim in itertools.product(MOVED, DIMS):
        want = of_all(dtype, dim, everyone()).reshape(-1, *[7] * (dim - 1))
        what = f"allgather of {dtype}, {dim} dimensions"
        same(hvd.allgather(drawn(dtype, dim)), want, what)
        handles.append((hvd.allgather_async(drawn(dtype, dim)), want, what))
        ragged = torch.full([ROWS[me], *[3] * (dim - 1)], me % 2).to(dtype)
        same(hvd.allgather(ragged), torch.cat(
            [torch.full([ROWS[r], *[3] * (dim - 1)], r % 2).to(dtype)
             for r in everyone()]), f"ragged {what}")
    for handle, want, what in handles:
        same(hvd.synchronize(handle), want, what)
    nothing = torch.ones(0 if me == 0 else 2, 3)
    check(hvd.allgather(nothing).shape == (2 * (hvd.size() - 1), 3), "empty")


def case_broadcasts():
    for dtype, dim in itertools.product(MOVED, DIMS):
        for root in everyone():
            x = drawn(dtype, dim)
            want = drawn(dtype, dim, rank=root)
            same(hvd.broadcast(x, root), want, f"broadcast of {dtype}")
            same(x, drawn(dtype, dim), "its source")
            check(hvd.broadcast_(x, root) is x, "in place")
            same(x, want, f"broadcast of {dtype} in place")


def rows_for(ranks, dim, dtype):
    """Return rank + 1 rows for each of the ranks, filled with that rank's
    number."""
    x = torch.tensor([i % 2 for i in range(len(ranks))
                      for _ in range(hvd.rank() + 1)])
    return x.reshape(-1, *[1] * (dim - 1)).expand(
        -1, *[2] * (dim - 1)).contiguous().to(dtype)


def case_exchanges():
    n, me = hvd.size(), hvd.rank()
    for dtype, dim in itertools.product(MOVED, DIMS):
        x = rows_for(everyone(), dim, dtype)
        splits = torch.tensor([me + 1] * n, dtype=torch.int32)
        want = torch.full([n * (n + 1) // 2, *[2] * (dim - 1)],
                          me % 2).to(dtype)
        got, received = hvd.alltoall(x, splits)
        same(got, want, f"alltoall of {dtype}")
        check(received.tolist() == [r + 1 for r in everyone()], received)
        same(hvd.alltoall(x), want, f"alltoall of {dtype} in equal parts")
    one_sends = torch.tensor([1] * n if me else [0] * n, dtype=torch.int32)
    got, _ = hvd.alltoall(torch.ones(int(one_sends.sum()), 2), one_sends)
    check(got.shape == (n - 1, 2), f"rank 0 sends nothing: {got.shape}")
    one_gets = torch.tensor([0] + [1] * (n - 1), dtype=torch.int32)
    got, _ = hvd.alltoall(torch.ones(n - 1, 2), one_gets)
    check(got.shape == (n if me else 0, 2), f"rank 0 gets nothing: {got.shape}")
    none = torch.zeros(n, dtype=torch.int32)
    check(hvd.alltoall(torch.ones(0, 2), none)[0].shape == (0, 2), "nothing")


def case_parts():
    n, me = hvd.size(), hvd.rank()
    for dtype, dim in itertools.product(SUMMED, DIMS):
        whole = summed(dtype, dim, everyone())
        want = torch.tensor_split(whole, n)[me]
        for x in (hvd.reducescatter(drawn(dtype, dim), op=hvd.Sum),
                  *hvd.grouped_reducescatter([drawn(dtype, dim)] * 2,
                                             op=hvd.Sum)):
            same(x, want, f"reducescatter of {dtype}")
        x = drawn(dtype, dim, rank=0).abs() % 4
        same(hvd.reducescatter(x), torch.tensor_split(x, n)[me], "average")
    with raises(ValueError):
        hvd.reducescatter(torch.tensor(1.0))
    hvd.barrier()


def case_gradients():
    """Gradients of broadcast and allgather are averages, as in Horovod."""
    n, me = hvd.size(), hvd.rank()
    for dtype, dim in itertools.product(FLOATS, DIMS):
        ones = torch.ones([7] * dim, dtype=dtype)

        def grad(call, seed=None, x=None):
            x = (ones.clone() if x is None else x).requires_grad_()
            y = call(x)
            for each in y if isinstance(y, (list, tuple)) else [y]:
                if each.requires_grad:
                    each.backward(torch.ones_like(each)
                                  if seed is None else seed)
            return x.grad
        same(grad(lambda x: hvd.allreduce(x, op=hvd.Sum)), ones * n, "sum")
        same(grad(hvd.allreduce), ones, "average")
        same(grad(lambda x: hvd.grouped_allreduce([x], op=hvd.Sum)), ones * n,
             "grouped sum")
        for root in everyone():
            same(grad(lambda x: hvd.broadcast(x, root)),
                 ones * (me == root), "broadcast")
        rows = [3, 2, 7, 4][:n]
        x = torch.ones([rows[me], *[7] * (dim - 1)], dtype=dtype)
        seed = torch.cat([torch.full([k, *[7] * (dim - 1)], float(r),
                                     dtype=dtype) for r, k in enumerate(rows)])
        same(grad(hvd.allgather, seed, x), torch.full_like(x, me),
             "allgather")
        x = rows_for(everyone(), dim, dtype)
        splits = torch.tensor([me + 1] * n, dtype=torch.int32)
        same(grad(lambda x: hvd.alltoall(x, splits), x=x.clone()),
             torch.ones_like(x), "alltoall")
        same(grad(hvd.alltoall, x=x.clone()), torch.ones_like(x), "equal parts")
        same(grad(lambda x: hvd.reducescatter(x, op=hvd.Sum)), ones * n,
             "reducescatter")


def case_sets():
    """Even and odd ranks make the same calls at the same time."""
    sets = [hvd.add_process_set(list(everyone())[i::2]) for i in (0, 1)]
    mine = sets[hvd.rank() % 2]
    ranks, n, me = mine.ranks, mine.size(), mine.rank()
    for dtype, dim in itertools.product(SUMMED, DIMS):
        x, want = drawn(dtype, dim), summed(dtype, dim, ranks)
        same(hvd.allreduce(x, op=hvd.Sum, process_set=mine), want, "sum")
        for each in hvd.grouped_allreduce([x, x], op=hvd.Sum,
                                          process_set=mine):
            same(each, want, "grouped sums")
        same(hvd.allgather(x, process_set=mine),
             of_all(dtype, dim, ranks).reshape(-1, *[7] * (dim - 1)), "gather")
        same(hvd.broadcast(x, ranks[-1], process_set=mine),
             drawn(dtype, dim, rank=ranks[-1]), "broadcast")
        same(hvd.reducescatter(x, op=hvd.Sum, process_set=mine),
             torch.tensor_split(want, n)[me], "reducescatter")
        got = hvd.alltoall(x.repeat(n, *[1] * (dim - 1)), process_set=mine)
        same(got, of_all(dtype, dim, ranks).reshape(-1, *[7] * (dim - 1)),
             "alltoall")
        if dtype.is_floating_point and dtype in FLOATS:
            x = x.clone().requires_grad_()
            hvd.allreduce(x, op=hvd.Sum, process_set=mine).sum().backward()
            same(x.grad, torch.full_like(x, n), "gradient of a sum")
    for each in sets:
        hvd.remove_process_set(each)


def case_joins():
    """A rank that has joined counts as zeros; other operations are refused."""
    for dtype, first in itertools.product(
            [torch.int32, torch.int64, *FLOATS], (0, 1)):
        x = drawn(dtype, 2, rank=0) * hvd.size()
        if hvd.rank() != first:
            handles = [hvd.allreduce_async(x, name=name) for name in "ab"]
            for handle in handles:
                same(hvd.synchronize(handle),
                     x // hvd.size() * (hvd.size() - 1), "without one")
        check(hvd.join() in everyone(), "the last to join")
    for call in (lambda: hvd.allgather(torch.ones(3)),
                 lambda: hvd.broadcast(torch.ones(3), 1)):
        if hvd.rank():
            with raises(RuntimeError):
                call()
        hvd.join()


def optimizers():
    """Return the optimizers of torch that Horovod's tests use, with their
    options."""
    found = [c for c in torch.optim.Optimizer.__subclasses__()
             if c.__module__.startswith("torch.optim") and c.__name__ not in (
                 "LBFGS", "SparseAdam", "Muon")]
    return sorted(found, key=lambda c: c.__name__)


def options(kind, wanted):
    known = inspect.signature(kind.__init__).parameters
    return {k: v for k, v in wanted.items() if k in known}


def model_of(kind, wanted):
    model = nn.Sequential(nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 4))
    return model, hvd.DistributedOptimizer(
        kind(model.parameters(), **options(kind, wanted)),
        named_parameters=model.named_parameters())


def step(model, optimizer):
    optimizer.zero_grad()
    functional.mse_loss(model(torch.randn(8, 10)), torch.ones(8, 4)).backward()
    optimizer.step()


def case_states():
    """Broadcast every optimizer: broadcast_parameters and
    broadcast_optimizer_state give all ranks the values and types of rank 0."""
    few = {"lr": 0.2}
    many = [{"lr": 0.1, "momentum": 0.8, "weight_decay": 0.2, "nesterov": True,
             "betas": (0.9, 0.999), "etas": (0.8, 2.4),
             "step_sizes": (1e-5, 100)},
            {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.1,
             "nesterov": False, "betas": (0.8, 0.9), "etas": (0.25, 1.75),
             "step_sizes": (1e-7, 5)}]
    for kind in optimizers():
        model, optimizer = model_of(kind, few)
        if hvd.rank() == 0:  # only this rank has read a checkpoint
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            with optimizer.skip_synchronize():
                optimizer.step()
        told(model, optimizer)
        model, optimizer = model_of(kind, many[min(hvd.rank(), 1)])
        step(model, optimizer)
        told(model, optimizer)
        for k, v in options(kind, many[0]).items():
            got = optimizer.param_groups[0][k]
            check(type(got) is type(v) and got == v,
                  f"{kind.__name__}: {k} is {got}, not {v}")
        for p in model.parameters():
            same(hvd.broadcast(p.detach(), 0), p.detach(), kind.__name__)


def told(model, optimizer):
    """Check that all ranks get rank 0's state and can continue."""
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    n = len(optimizer.state_dict()["state"])
    check(hvd.allgather_object(n) == [n] * hvd.size(), "number of states")
    step(model, optimizer)


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
