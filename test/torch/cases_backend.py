# cases_backend.py - every collective against gloo's; run by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
"""The default group is sumwire's, with all ranks. Each case runs in it and in
smaller groups, and compares with a gloo group of the same ranks."""
import datetime
import functools
import os
import sys
import threading
import time
import unittest.mock

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import sumwire.torch  # noqa: F401
from sumwire import SumwireError, distributed, library
from sumwire.distributed import agents, methods, storages
from torch_rig import check, raises, run_cases

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
IS_BACKEND = distributed.version() >= distributed.BACKENDS_SINCE
SHAPES = [(1,), (3, 5), (70001,), (2, 1, 9000)]


def start():
    agents.RANKS_PER_AGENT = int(os.environ.get("TEST_RANKS_PER_AGENT",
                                                agents.RANKS_PER_AGENT))
    store = os.environ.get("TEST_STORE")  # set by a launcher
    dist.init_process_group(
        "sumwire", init_method=f"file://{store}" if store else "env://",
        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
        timeout=datetime.timedelta(
            seconds=int(os.environ.get("TEST_LIMIT_S", "600"))))


def twins():
    """Return pairs of groups (sumwire's, gloo's) of all ranks, of two, of all
    except the first, and of this rank alone; only groups with this rank."""
    n = dist.get_world_size()
    wanted = [range(n), (0, n - 1), range(1, n), *[(r,) for r in range(n)]]
    made = [(None if len(ranks) == n else dist.new_group(list(ranks)),
             dist.new_group(list(ranks), backend="gloo"))
            for ranks in wanted]
    return [pair for pair, ranks in zip(made, wanted)
            if dist.get_rank() in ranks]


def sample(dtype, shape, seed=0, rank=None):
    """Return a rank's sample (default: this rank's), the same on every run and
    different on every rank."""
    rank = dist.get_rank() if rank is None else rank
    g = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=g).to(dtype)
    high = 2 if dtype == torch.bool else 20
    return torch.randint(0, high, shape, generator=g).to(dtype)


def check_sum(got, x, gloo, what, divisor=1):
    """Compare with the sum in f64, within one rounding and the rounding of f32
    additions; integers exactly."""
    wide = (x.double() if x.dtype.is_floating_point else x).clone()
    size = wide.abs()
    for t in wide, size:
        dist.all_reduce(t, group=gloo)
    if x.dtype.is_floating_point:
        eps = torch.finfo(x.dtype).eps
        off = (got.double() - wide / divisor).abs()
        check(bool((off <= 4 * eps * (size / divisor + eps)).all()), what)
    else:
        check(bool((got == wide).all()), what)


def case_sums():
    for group, gloo in twins():
        for dtype in FLOATS + INTEGERS:
            for shape in SHAPES:
                x = sample(dtype, shape)
                y = x.clone()
                dist.all_reduce(y, group=group)
                check_sum(y, x, gloo, f"sum of {dtype} {shape}")


def case_averages():
    for group, gloo in twins():
        for dtype in FLOATS:
            x = sample(dtype, (3, 5))
            y = x.clone()
            dist.all_reduce(y, ReduceOp.AVG, group=group)
            check_sum(y, x, gloo, f"average of {dtype}",
                      dist.get_world_size(group))


def case_operations():
    for group, gloo in twins():
        for dtype in [*FLOATS, *INTEGERS]:
            for op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT):
                x = sample(dtype, (100,))
                y, wide = x.clone(), x.double()
                dist.all_reduce(y, op, group=group)
                dist.all_reduce(wide, op, group=gloo)
                near = torch.allclose(y.double(), wide, rtol=4 * eps_of(dtype))
                check(near or not dtype.is_floating_point and torch.equal(
                    y, wide.long().to(dtype)), f"{op} of {dtype}")
        for op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
            x = sample(torch.int32, (100,))
            y = x.clone()
            dist.all_reduce(y, op, group=group)
            dist.all_reduce(x, op, group=gloo)
            check(torch.equal(x, y), f"{op}")


def eps_of(dtype):
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0


def case_premultiplied():
    for group, gloo in twins():
        for dtype in FLOATS:
            x = sample(dtype, (3, 5))
            y = x.clone()
            dist.all_reduce(y, dist._make_nccl_premul_sum(0.25), group=group)
            check_sum(y, x, gloo, f"quarters of {dtype}", 4)
            n, me = dist.get_world_size(group), dist.get_rank(group)
            whole = sample(dtype, (n, 700))
            part = torch.empty(700, dtype=dtype)
            dist.reduce_scatter_tensor(
                part, whole, dist._make_nccl_premul_sum(0.25), group=group)
            y = whole.clone()
            dist.all_reduce(y, dist._make_nccl_premul_sum(0.25), group=group)
            check(torch.allclose(part, y[me], rtol=4 * eps_of(dtype),
                                 atol=4 * eps_of(dtype)),
                  f"reduce_scatter of {dtype}")


def case_broadcasts():
    for group, gloo in twins():
        for dtype in [*FLOATS, *INTEGERS, torch.bool, torch.int16,
                      torch.complex64]:
            for root in dist.get_process_group_ranks(gloo):
                x = sample(dtype, (700, 3))
                dist.broadcast(x, root, group=group)
                check(torch.equal(x, sample(dtype, x.shape, rank=root)),
                      f"broadcast of {dtype} from {root}")


def case_gathers():
    for group, gloo in twins():
        n, me = dist.get_world_size(group), dist.get_rank(group)
        for dtype in [*FLOATS, torch.int64, torch.int16]:
            for shape in SHAPES:
                x = sample(dtype, shape)
                want = torch.stack([
                    sample(dtype, shape, rank=r)
                    for r in dist.get_process_group_ranks(gloo)])
                got = [torch.empty_like(x) for _ in range(n)]
                dist.all_gather(got, x, group=group)
                whole = torch.empty((n, *shape), dtype=dtype)
                dist.all_gather_into_tensor(whole, x, group=group)
                rows = torch.empty((n + 2, *shape), dtype=dtype)[1:-1]
                dist.all_gather(list(rows), x, group=group)
                rows[me] = x
                dist.all_gather(list(rows), rows[me], group=group)
                check(torch.equal(torch.stack(got), want) and
                      torch.equal(rows, want) and torch.equal(whole, want),
                      f"all_gather of {dtype} {shape}")


def case_scatters():
    for group, gloo in twins():
        n, me = dist.get_world_size(group), dist.get_rank(group)
        for op in ReduceOp.SUM, ReduceOp.AVG:
            for dtype in FLOATS:
                x = sample(dtype, (n, 7001))
                a, b = torch.empty(7001, dtype=dtype), torch.empty(
                    7001, dtype=dtype)
                c = x.clone()
                dist.reduce_scatter(a, list(x), op, group=group)
                dist.reduce_scatter_tensor(b, x, op, group=group)
                dist.reduce_scatter(c[me], list(c), op, group=group)
                d = [t.clone().requires_grad_() for t in x]
                dist.reduce_scatter(d[me].detach(), d, op, group=group)
                whole = x.clone()
                dist.all_reduce(whole, op, group=group)
                for got in a, b, c[me], d[me].detach():
                    whole[me] = got
                    check_sum(whole, x, gloo, f"reduce_scatter of {dtype}",
                              n if op == ReduceOp.AVG else 1)


def case_by_gloo():
    """Calls that the library does not support."""
    for group, gloo in twins():
        results = [by_gloo(g) for g in (group, gloo)]
        for name, got in results[0].items():
            check(all(map(torch.equal, got, results[1][name])), name)


def by_gloo(group):
    n, me = dist.get_world_size(group), dist.get_rank(group)
    root = dist.get_global_rank(group or dist.group.WORLD, 0)
    out = {}
    x = [sample(torch.float32, (10,), seed) for seed in range(n)]
    summed = x[0].long()
    dist.reduce(summed, root, group=group)
    out["reduce"] = [summed] if me == 0 else []
    out["gather"] = [torch.empty(10) for _ in range(n if me == 0 else 0)]
    dist.gather(x[0], out["gather"] or None, root, group=group)
    out["scatter"] = [torch.empty(10)]
    dist.scatter(out["scatter"][0], x if me == 0 else None, root, group=group)
    out["all_to_all"] = [torch.empty(n * 10)]
    dist.all_to_all_single(out["all_to_all"][0], torch.cat(x), group=group)
    after, before = (dist.get_global_rank(group or dist.group.WORLD, i % n)
                     for i in (me + 1, me - 1))
    out["recv"] = [torch.zeros(10)]
    out["batch"] = [torch.zeros(10)]
    if n > 1:
        sent = dist.isend(x[0], after, group=group)
        dist.recv(out["recv"][0], before, group=group)
        sent.wait()
        for work in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, x[0], after, group=group),
                dist.P2POp(dist.irecv, out["batch"][0], before, group=group)]):
            work.wait()
    return out


def case_of_any():
    """Receive from any rank: 2.14's wrapper of Python works does not report the
    sender."""
    n, me = dist.get_world_size(), dist.get_rank()
    if me:
        dist.send(torch.full((10,), float(me)), 0)
        return
    for _ in range(1, n):
        x = torch.zeros(10)
        if IS_BACKEND:
            dist.irecv(x).wait()
        else:
            check(dist.recv(x) == x[0], x)
        check(bool((x == x[0]).all()) and 0 < x[0] < n, x)


def case_asked():
    """Torch queries a backend's abilities before it calls it."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    check(backend.supports_splitting == IS_BACKEND, "splitting")
    for what in ("coalescing", "reconfigure", "shrinking", "time_estimate",
                 "window") if IS_BACKEND else ():
        check(not getattr(backend, "supports_" + what), what)
    first = dist.group.WORLD._get_sequence_number_for_group()
    for _ in range(3):
        dist.all_reduce(torch.ones(1))
    dist.barrier()
    last = dist.group.WORLD._get_sequence_number_for_group()
    check(last == first + 4, f"{first} to {last}")


def case_objects():
    for group, gloo in twins():
        n, me = dist.get_world_size(group), dist.get_rank(group)
        got = [None] * n
        dist.all_gather_object(got, {"rank": me, "text": "x" * me},
                               group=group)
        check(got == [{"rank": r, "text": "x" * r} for r in range(n)], got)
        root = dist.get_process_group_ranks(gloo)[n - 1]
        item = [("from", me)]
        dist.broadcast_object_list(item, root, group=group)
        check(item == [("from", n - 1)], item)
        all_of_them = [None] * n if dist.get_rank() == root else None
        dist.gather_object(me, all_of_them, root, group=group)
        check(all_of_them in (None, list(range(n))), all_of_them)
        dist.scatter_object_list(item, all_of_them, root, group=group)
        check(item == [me], item)


def case_dtensors():
    """Redistribute parts of DTensors, and sum partial ones."""
    if distributed.version() < (2, 5):
        return
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    n = dist.get_world_size()
    mesh = init_device_mesh("cpu", (n,))
    whole = sample(torch.float32, (2 * n, 3 * n), rank=0)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    check(torch.equal(columns.to_local(), whole.chunk(n, 1)[dist.get_rank()]),
          "columns")
    check(torch.equal(columns.full_tensor(), whole), "whole")
    product = columns @ rows.t().redistribute(mesh, [Shard(0)])
    check(torch.allclose(product.redistribute(mesh, [Replicate()]).to_local(),
                         whole @ whole.t(), atol=1e-4), "product")
    with raises(Exception, "" if IS_BACKEND else "unsupported tensor type DTensor"):
        dist.all_reduce(rows)


def is_done(work):
    """From 2.14 on, torch's wrapper of Python works does not query them."""
    if type(work).__module__.startswith("sumwire"):
        return work.is_completed()
    return work.get_future().done()


def case_asynchronous():
    """Start many; wait in another order, or by their futures."""
    for group, gloo in twins():
        xs = [sample(torch.float32, (1 + 1000 * i,), i) for i in range(50)]
        ys = [x.clone() for x in xs]
        works = [dist.all_reduce(y, group=group, async_op=True) for y in ys]
        then = [w.get_future().then(lambda f: f.value()[0].numel())
                for w in works[:10]]
        for w in reversed(works[10:]):
            w.wait()
        check([f.wait() for f in then] == [x.numel() for x in xs[:10]],
              "futures")
        check(all(map(is_done, works)), "all have completed")
        with torch.inference_mode():
            parts = [torch.empty(1) for _ in range(dist.get_world_size(group))]
            work = dist.all_gather(parts, xs[0], group=group, async_op=True)
        work.wait()
        check_sum(sum(parts), xs[0], gloo, "sum of parts")
        for x, y in zip(xs, ys):
            check_sum(y, x, gloo, f"{x.numel()} elements")


def case_futures():
    """Callbacks of futures delay no other thread, and get the group's error."""
    group = dist.new_group()
    xs = [torch.ones(1 + 300000 * (i % 3)) for i in range(20)]
    totals = [dist.all_reduce(x, group=group, async_op=True).get_future().then(
        lambda f: float(f.value()[0].sum())) for x in xs]
    for x, total in zip(xs, totals):
        check(total.wait() == x.numel() * dist.get_world_size(), "total")
    [x] = dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future(
        ).then(lambda f: dist.all_reduce(f.value()[0], group=group, async_op=True)
               .get_future().wait()).wait()
    check(x == dist.get_world_size() ** 2, x)
    dist.barrier()  # the next call ends open ones
    x = torch.ones(10 + (dist.get_rank() == 0))
    future = dist.all_reduce(x, group=group, async_op=True).get_future()
    then = future.then(lambda f: f.value())
    for each in future, then:
        with raises(RuntimeError, "SW_EMISMATCH", "rank 0"):
            each.wait()


def case_coalesced():
    for group, gloo in twins():
        n = dist.get_world_size(group)
        xs = [sample(torch.float32, (1000 + i,), i) for i in range(5)]
        ys = [x.clone() for x in xs]
        with dist._coalescing_manager(group=group):
            for y in ys:
                dist.all_reduce(y, group=group)
        for x, y in zip(xs, ys):
            check_sum(y, x, gloo, "coalesced all_reduce")
        lists = [[torch.empty_like(x) for x in xs] for _ in range(n)]
        dist.all_gather_coalesced(lists, xs, group=group)
        for r, got in zip(dist.get_process_group_ranks(gloo), lists):
            want = [sample(x.dtype, x.shape, i, r) for i, x in enumerate(xs)]
            check(all(map(torch.equal, got, want)), f"of rank {r}: {got}")
        wholes = [torch.empty((n, *x.shape)) for x in xs]
        with dist._coalescing_manager(group=group):
            for whole, x in zip(wholes, xs):
                dist.all_gather_into_tensor(whole, x, group=group)
        parts = [torch.empty_like(x) for x in xs]
        with dist._coalescing_manager(group=group):
            for part, whole in zip(parts, wholes):
                dist.reduce_scatter_tensor(part, whole, group=group)
        for x, part in zip(xs, parts):
            check(torch.allclose(part, x * n), "coalesced there and back")


def case_empty():
    for group, _ in twins():
        n = dist.get_world_size(group)
        dist.all_reduce(torch.empty(0), group=group)
        dist.all_gather_into_tensor(torch.empty(0), torch.empty(0),
                                    group=group)
        dist.all_gather([torch.empty(0) for _ in range(n)], torch.empty(0),
                        group=group)
        dist.barrier(group=group)


def case_compiled_ones():
    """Functional collectives come from torch's C++ half."""
    import torch.distributed._functional_collectives as funcol
    x = torch.arange(4.) + dist.get_rank()
    n = dist.get_world_size()
    y = funcol.all_reduce(x, "sum", dist.group.WORLD) + 0
    check(torch.equal(y, sum(torch.arange(4.) + r for r in range(n))), y)
    y = funcol.all_gather_tensor(x, 0, dist.group.WORLD) + 0
    check(y.shape == (4 * n,) and torch.equal(y[-4:], torch.arange(4.) + n - 1),
          y)
    y = funcol.reduce_scatter_tensor(y, "avg", 0, dist.group.WORLD) + 0
    check(torch.equal(y, x), f"{y} is not {x}")
    y = funcol.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
    dist.all_reduce(y)
    check(bool((y == n * n).all()), y)


def case_threads():
    """Use groups of several threads; each thread has a counter of its own."""
    groups = [dist.new_group() for _ in range(4)]
    totals = [torch.zeros(1000) for _ in groups]

    def run(group, total):
        for _ in range(50):
            one = torch.ones(1000)
            dist.all_reduce(one, group=group)
            total += one
    threads = [threading.Thread(target=run, args=a)
               for a in zip(groups, totals)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for total in totals:
        check(bool((total == 50 * dist.get_world_size()).all()), total)


def case_refused():
    square = torch.ones(4, 4)
    with raises(ValueError, "contiguous"):
        dist.all_reduce(square.t()[1:])
    with raises(ValueError, "contiguous"):
        dist.broadcast(square.to_sparse(), 0)
    with raises(ValueError, "no avg of torch.bool"):
        dist.all_reduce(square.bool(), ReduceOp.AVG)
    with raises(ValueError, "no band of torch.float32"):
        dist.all_reduce(square, ReduceOp.BAND)
    n = dist.get_world_size()
    with raises(ValueError, f"expected {n} times 16 elements", "found 3 of"):
        dist.all_gather_into_tensor(torch.empty(3), square)
    dist.barrier()


def case_late():
    """One rank is late: a wait with a timeout fails at the others, and a later
    wait returns the result."""
    group = dist.new_group()
    x = torch.ones(10)
    if dist.get_rank() == 0:
        work = dist.all_reduce(x, group=group, async_op=True)
        with raises(SumwireError, "all_reduce of group", "timed out after",
                    "SW_ETIMEDOUT"):
            work.wait(datetime.timedelta(milliseconds=200))
        check(not is_done(work), "it has not completed")
        dist.barrier()
        work.wait()
    else:
        dist.barrier()
        dist.all_reduce(x, group=group)
    check(bool((x == dist.get_world_size()).all()), x)


def case_differing():
    """The group fails at all waiting ranks, with a sentence; other groups
    continue."""
    group = dist.new_group()
    x = torch.ones(10 + (dist.get_rank() == 0))
    with raises(SumwireError, "SW_EMISMATCH", "rank 0"):
        dist.all_reduce(x, group=group)
    x = torch.ones(10)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def case_given_up():
    """The timeout of a single call, shorter than the group's."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    if dist.get_rank() == 0:
        opts = dist.AllreduceOptions()
        opts.timeout = datetime.timedelta(milliseconds=300)
        for _ in range(2):
            with raises(SumwireError, "rank 0 aborted group", "timed out in "
                        "all_reduce (call timeout 0.3 s)", "SW_ETIMEDOUT"):
                group.allreduce([torch.ones(1)], opts).wait()
    dist.barrier()


def case_given_up_by_another():
    """The timeout expires while this thread waits in the library."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    if dist.get_rank() == 0:
        calls = group._get_backend(torch.device("cpu")).calls
        wait = calls.lib.sw_wait_for

        def too_late(*_):
            calls.lib.sw_wait_for = wait
            time.sleep(0.4)
            calls.look()
            return library.ETIMEDOUT

        opts = dist.AllreduceOptions()
        opts.timeout = datetime.timedelta(milliseconds=300)
        with unittest.mock.patch.object(calls.lib, "sw_wait_for", too_late), \
                raises(SumwireError, "timed out in all_reduce"):
            group.allreduce([torch.ones(1)], opts).wait()
    dist.barrier()


def case_aborted():
    """A rank that waits for others gets the error."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    check(error_of(group) in (None, "SUCCESS"), error_of(group))
    dist.barrier()  # an abort may fail a sum that another rank still waits for
    if dist.get_rank() == 1:
        group.abort()
        with raises(SumwireError, "this process has closed group"):
            dist.all_reduce(torch.ones(1), group=group)
    else:
        with raises(SumwireError, "rank 1 aborted group", "abort() was called"):
            dist.all_reduce(torch.ones(1), group=group)
        check(error_of(group) in (None, "REMOTE_ERROR"), error_of(group))
        dist.destroy_process_group(group)
    dist.barrier()


def error_of(group):
    """Return the error's name; None in a torch without it."""
    if not IS_BACKEND:
        return None
    return group._get_backend(torch.device("cpu")).get_error().name


def case_timeouts():
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    backend.set_timeout(datetime.timedelta(seconds=1))
    if dist.get_rank() == 0:
        with raises(SumwireError, "1 s", "missing: rank"):
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()


def case_allocated():
    """In backend memory no copies are made, and freed memory is reused."""
    for group, gloo in twins():
        backend = (group or dist.group.WORLD)._get_backend(torch.device("cpu"))
        check(backend.supports_tensor_alloc(torch.device("cpu")), "supported")
        places = set()
        for dtype in FLOATS:
            x = sample(dtype, (70001,))
            y = backend.allocate_tensor(70001, dtype=dtype,
                                        device=torch.device("cpu"))
            places.add((y.data_ptr(), y.element_size()))
            y.copy_(x)
            dist.all_reduce(y, group=group)
            check_sum(y, x, gloo, f"sum of {dtype}")
            del y
        check(dist.get_world_size(group) == 1 or len(places) == 3,
              f"memory of bf16 is that of f16: {places}")


class Layers(torch.nn.Module):
    """A model that uses only some of its layers."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(40, 40) for _ in range(7))

    def forward(self, x, n_used):
        for layer in self.layers[:n_used]:
            x = layer(x).tanh()
        return x


def sums(model, buckets):
    """Return sums that identify the gradients and the buckets."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return [t.sum().item() for t in [*grads, *buckets]]


def is_private(model, buckets):
    """Return whether a forked child reads the same gradients, and whether its
    writes to them, and to the buckets of DDP, stay private."""
    want = sums(model, buckets)
    pid = os.fork()
    if pid == 0:
        got = sums(model, [])
        for p in model.parameters():
            if p.grad is not None:
                p.grad.fill_(7)
        for t in buckets:
            t.fill_(8)
        os._exit(int(got != want[:len(got)] or
                     any(t[0] != 8 for t in buckets)))
    return os.waitpid(pid, 0)[1] == 0 and sums(model, buckets) == want


def trained(has_hook, has_views):
    """Return all gradients of some steps, and the weights after them."""
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        Layers(), bucket_cap_mb=0.02, find_unused_parameters=True,
        gradient_as_bucket_view=has_views)
    buckets = {}

    def hook(group, bucket):
        buckets[bucket.index()] = bucket.buffer()
        return distributed.shared_hook(group, bucket)
    if has_hook:
        model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    found = []
    for step in range(5):
        torch.manual_seed(100 * step + dist.get_rank())
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        model(torch.randn(8, 40), 7 - step % 3).square().sum().backward()
        found += [p.grad.clone() for p in model.parameters()
                  if p.grad is not None]
        if has_hook and step == 2:
            check(is_private(model, buckets.values()),
                  f"gradients of a forked child, views {has_views}")
        optimizer.step()
    check_moved(buckets.values())
    return found + [p.detach() for p in model.parameters()]


def check_moved(buckets):
    """Check that the large buckets are in memory shared with the agent."""
    memory = dist.group.WORLD._get_backend(
        torch.device("cpu")).attachment.memory
    large = [t for t in buckets if t.numel() * 4 >= methods.SCRATCH_MIN]
    check(not buckets or large, "no bucket is large")
    check(all(storages.is_moved(t, memory) for t in large), "buckets in place")


def case_hooked():
    """DDP averages in shared memory. Without the hook DDP divides first; for
    two ranks the rounding is the same."""
    near = torch.equal if dist.get_world_size() == 2 else functools.partial(
        torch.allclose, rtol=1e-3, atol=1e-4)
    want = trained(False, False)
    for has_views in False, True:
        got = trained(True, has_views)
        check(len(got) == len(want) and all(map(near, got, want)),
              f"gradients with the hook, views {has_views}")
    buckets = dist.group.WORLD._get_backend(torch.device("cpu")).buckets
    check(not buckets, "buckets stay open")


def case_monitored():
    late = dist.get_world_size() - 1
    if not IS_BACKEND:  # torch requests gloo by name
        with raises(ValueError, "only implemented for GLOO"):
            dist.monitored_barrier()
        return
    group = dist.new_group()
    dist.monitored_barrier(group)
    if dist.get_rank() != late:
        limit = datetime.timedelta(seconds=1)
        with raises(RuntimeError, f"Rank {late}" if dist.get_rank() == 0
                    else ""):
            dist.monitored_barrier(group, limit)
    dist.barrier()


def case_split():
    if distributed.version() < (2, 15):
        return  # torch splits only groups of accelerators
    n = dist.get_world_size()
    ranks = [list(range(n - 1)), [n - 1]]
    group = dist.split_group(split_ranks=ranks)
    mine = ranks[dist.get_rank() == n - 1]
    x = torch.ones(10)
    dist.all_reduce(x, group=group)
    check(bool((x == len(mine)).all()), x)
    dist.destroy_process_group(group)


def case_again():
    """Start a second group of the same name after the end of the first."""
    x = torch.ones(10)
    dist.all_reduce(x)
    dist.barrier()
    dist.destroy_process_group()
    os.environ["TEST_STORE"] += ".again"
    start()
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size() ** 2).all()), x)


def no_agent():
    """If an agent cannot start, each rank reports why."""
    agents.AGENT += "nonsense = 1\n"
    with raises(SumwireError, "the agent of this machine did not start",
                "nonsense"):
        start()
    print("ok no_agent")


if __name__ == "__main__":
    if sys.argv[1:] == ["no_agent"]:
        no_agent()
        sys.exit()
    start()
    run_cases(globals())
