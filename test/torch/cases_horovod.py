# cases_horovod.py - calls that Horovod's scripts make; run by torch_horovod.py
# SPDX-License-Identifier: BSD-3-Clause
"""The values of a tensor identify the rank that made it."""
import json
import os
import tempfile
import time
import warnings

import torch
from torch import nn

import sumwire.torch as hvd
from sumwire import timeline
from torch_rig import check, raises, run_cases

MOVED = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
         torch.float32, torch.float64, torch.float16, torch.bfloat16,
         torch.bool]
SUMMED = [torch.int32, torch.int64, torch.float32, torch.float64, torch.float16]
SHAPES = [(4,), (4, 3), (4, 3, 2)]


def full(rank, shape, dtype=torch.float32):
    """Return the tensor of any rank."""
    return torch.full(shape, rank + 1).to(dtype)


def mine(shape, dtype=torch.float32):
    return full(hvd.rank(), shape, dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def ranks():
    return range(hvd.size())


def case_timeline():
    """The timeline is a Chrome trace: a row for each tensor and group,
    begin/end pairs with all bytes, in order."""
    path = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + "timeline_%r"
    hvd.start_timeline(path)
    with raises(ValueError):
        hvd.start_timeline(path)
    for i in range(3):
        hvd.allreduce(torch.ones(1000), name="traced")
    hvd.allgather(torch.ones(10, 4))
    hvd.stop_timeline()
    hvd.allreduce(torch.ones(1000), name="traced")
    with open(path.replace("%r", str(hvd.rank())), encoding="utf-8") as f:
        events = json.load(f)
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = {e["id"]: [x for x in events if x.get("id") == e["id"]]
             for e in events if "id" in e}
    check(all([e["ph"] for e in pair] == ["b", "e"] and pair[0]["ts"] <= pair[1]["ts"]
              for pair in spans.values()), spans)
    ours = [pair[0] for pair in spans.values() if "traced" in rows[pair[0]["tid"]]]
    check([e["args"]["bytes"] for e in ours] == [4000] * 3 and
          [e["ts"] for e in ours] == sorted(e["ts"] for e in ours), events)
    check(all(e["pid"] == hvd.rank() for e in events), events)
    check(len(spans) > 3, "the gathering has no bar")


def case_rounds():
    """Sum a gradient 25 times, for the rounds that BYTEPS_TRACE_ON records."""
    for _ in range(25):
        hvd.allreduce(torch.ones(1000), name="gradient")


def case_recorded():
    """Sum a gradient, and a model's gradients, until the test has recorded
    some."""
    model = torch.nn.Linear(100, 100)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    done = os.environ["RECORDED"]
    is_over = torch.zeros(1)
    while not is_over:  # all ranks end after the same step
        model(torch.ones(1, 100)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        hvd.allreduce(torch.ones(25000), name="gradient")
        is_over = hvd.allreduce(torch.tensor([float(os.path.exists(done))]), name="over")


def case_variables():
    """Check the defaults of BytePS's trace, and values that are refused."""
    for name in "DIR", "START_STEP", "END_STEP":
        del os.environ[f"BYTEPS_TRACE_{name}"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        made = timeline.from_environment(rank=3, local_rank=1)
        check(os.path.samefile(made.path, os.path.join(folder, "trace/1/comm.json")) and
              (made.first, made.last) == (10, 20), made.path)
        made.close()
        os.chdir("/")
    os.environ["BYTEPS_TRACE_START_STEP"] = "x"
    with raises(ValueError, "BYTEPS_TRACE_START_STEP=x: expected a number"):
        timeline.from_environment(0, 0)
    del os.environ["BYTEPS_TRACE_START_STEP"], os.environ["BYTEPS_TRACE_ON"]
    check(timeline.from_environment(0, 0) is None, "nothing asks for a trace")


def case_reductions():
    """Min, Max and Product, alone, in place and in groups."""
    for dtype in SUMMED:
        x = mine((5, 2), dtype)
        product = 1
        for r in ranks():
            product *= r + 1
        for op, value in ((hvd.Min, 1), (hvd.Max, hvd.size()),
                          (hvd.Product, product)):
            want = torch.full((5, 2), value).to(dtype)
            check(same(hvd.allreduce(x, op=op), want), f"{op} of {dtype}")
            y = x.clone()
            check(hvd.allreduce_(y, op=op, name=f"{op}") is y and same(y, want),
                  f"{op} in place")
            check(all(same(z, want) for z in hvd.grouped_allreduce(
                [x, x], op=op)), f"{op} of a group")
    lazy = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
    check(same(hvd.allreduce(lazy, op=hvd.Max), -torch.ones(3)), "negated")
    with raises(ValueError, "op='median'", "Product"):
        hvd.allreduce(torch.ones(1), op="median")
    y = mine((2,)).requires_grad_()
    with raises(RuntimeError, "with Max has no gradient"):
        hvd.allreduce(y, op=hvd.Max).sum().backward()


def case_allgather():
    for dtype in MOVED:
        for shape in SHAPES:
            got = hvd.allgather(mine(shape, dtype))
            check(same(got, torch.cat([full(r, shape, dtype) for r in ranks()])),
                  f"{dtype} {shape}")
            # rank 0 has no rows
            got = hvd.allgather(mine((3 * hvd.rank(), *shape[1:]), dtype))
            check(same(got, torch.cat([full(r, (3 * r, *shape[1:]), dtype)
                                       for r in ranks()])),
                  f"{dtype} {shape}, unlike parts")
    check(hvd.allgather(torch.empty(0, 2)).shape == (0, 2), "nothing")
    handles = [hvd.allgather_async(mine((1000 + i,)), name=f"g{i}")
               for i in range(20)]
    for i, h in enumerate(handles):
        want = torch.cat([full(r, (1000 + i,)) for r in ranks()])
        check(same(hvd.synchronize(h), want), "several at once")
    objects = hvd.allgather_object({"rank": hvd.rank(), "n": [0] * hvd.rank()})
    check([o["rank"] for o in objects] == list(ranks()), "objects")
    a, b = hvd.grouped_allgather([mine((2,)), mine((hvd.rank(), 2))])
    check(a.shape[0] == 2 * hvd.size() and
          b.shape == (sum(ranks()), 2), "a group")
    columns = torch.arange(6.).view(2, 3).t()
    check(same(hvd.allgather(columns), torch.cat([columns] * hvd.size())),
          "strided")


def case_allgather_gradient():
    """The gradient is the average of all ranks' gradients for this rank's rows."""
    x = torch.ones(hvd.rank() + 1, 2, requires_grad=True)
    y = hvd.allgather(x)
    y.backward(torch.full_like(y, hvd.rank() + 1.))
    check(same(x.grad, torch.full_like(x, (hvd.size() + 1) / 2).detach()),
          f"{x.grad}")


def case_differences():
    """Every rank gets an error with both calls; the next call succeeds."""
    other = hvd.rank() == hvd.size() - 1
    last = f"rank {hvd.size() - 1} called allgather"
    with raises(hvd.HorovodInternalError, "rank 0 called allgather of float32",
                f"{last} of int32"):
        hvd.allgather(torch.ones(2, dtype=torch.int32) if other else
                      torch.ones(2))
    with raises(RuntimeError, "rows (3,)", f"{last} of float32 rows (4,)"):
        hvd.allgather(torch.ones(2, 4 if other else 3))
    with raises(RuntimeError, "called alltoall", "called reducescatter"):
        (hvd.reducescatter if other else hvd.alltoall)(torch.ones(hvd.size()))
    check(hvd.allgather(torch.ones(1)).numel() == hvd.size(), "the next one")
    for wrong in (ValueError, RuntimeError):
        with raises(wrong, "no first dimension", "reshape"):
            hvd.reducescatter(torch.tensor(1.))
    h = hvd.allgather_async(torch.ones(1), name="twice")
    with raises(ValueError, "twice", "in use"):
        hvd.allgather_async(torch.ones(1), name="twice")
    hvd.synchronize(h)
    hvd.allgather(torch.ones(1), name="twice")
    with raises(TypeError, "allgather takes a dense"):
        hvd.allgather(torch.ones(2).to_sparse())


def case_alltoall():
    n, me = hvd.size(), hvd.rank()
    for dtype in MOVED:
        for shape in SHAPES:
            rows = (2 * n, *shape[1:])
            got = hvd.alltoall(mine(rows, dtype))
            check(same(got, torch.cat([full(r, (2, *shape[1:]), dtype)
                                       for r in ranks()])), f"{dtype} {shape}")
        # Rank r sends r + i rows to rank i.
        splits = torch.tensor([me + i for i in ranks()], dtype=torch.int32)
        got, received = hvd.alltoall(mine((int(splits.sum()), 2), dtype), splits)
        check(received.tolist() == [r + me for r in ranks()], "received")
        check(same(got, torch.cat([full(r, (r + me, 2), dtype)
                                   for r in ranks()])), f"splits of {dtype}")
    got, received = hvd.alltoall(torch.empty(0), [0] * n)
    check(got.numel() == 0 and received.tolist() == [0] * n, "nothing")
    x = torch.arange(float(n)).requires_grad_()
    got = hvd.alltoall(x)
    got.backward(torch.arange(float(n)) * (me + 1))
    check(x.grad.tolist() == [me * (r + 1) for r in ranks()], "gradients")
    for wrong in (ValueError, RuntimeError):
        with raises(wrong, f"{n + 1} rows", "pass splits"):
            hvd.alltoall(torch.ones(n + 1))
        with raises(wrong, "at most 1"):
            hvd.alltoall(torch.ones(1), [1] * n)
        with raises(wrong, "torch.float32", "torch.int32"):
            hvd.alltoall(torch.ones(n), torch.ones(n))


def case_reducescatter():
    n, me = hvd.size(), hvd.rank()
    for dtype in SUMMED:
        for shape in SHAPES:
            for rows in (4 * n, 4 * n + 1, 1):
                x = mine((rows, *shape[1:]), dtype)
                counts = [rows // n + (r < rows % n) for r in ranks()]
                total = torch.full((counts[me], *shape[1:]),
                                   n * (n + 1) // 2).to(dtype)
                got = hvd.reducescatter(x, op=hvd.Sum)
                check(same(got, total), f"{dtype} {tuple(x.shape)}")
                got = hvd.reducescatter(x, op=hvd.Max)
                check(same(got, full(n - 1, total.shape, dtype)), "Max")
        halves = hvd.grouped_reducescatter(
            [torch.ones(n, 2).to(dtype), torch.ones(n + 1).to(dtype)])
        check(halves[0].eq(1).all() and halves[1].eq(1).all(), "averages")
    check(same(hvd.reducescatter(torch.ones(n), op=hvd.Sum, prescale_factor=2,
                                 postscale_factor=3),
               torch.full((1,), 6. * n)), "factors")
    for op, factor in ((hvd.Average, 1), (hvd.Sum, n)):
        x = torch.ones(n + 1, 2, requires_grad=True)
        y = hvd.reducescatter(x, op=op)
        y.backward(torch.full_like(y, me + 1.))
        owners = [r for r in ranks() for _ in range((n + 1) // n + (r < 1))]
        check(x.grad[:, 0].tolist() == [factor * (r + 1.) for r in owners],
              f"gradient of {op}")


def case_process_sets():
    n, me = hvd.size(), hvd.rank()
    even = hvd.add_process_set(range(0, n, 2))
    odd = hvd.add_process_set(hvd.ProcessSet(list(range(1, n, 2))))
    this = odd if me % 2 else even
    theirs = this.ranks
    check(this.included() and this.size() == len(theirs) and
          theirs[this.rank()] == me, "places")
    check((odd if this is even else even).included() is False, "not included")
    check(hvd.get_process_set_ids_and_ranks()[even.process_set_id] ==
          even.ranks, "ids")
    x = mine((3, 2))
    total = float(sum(r + 1 for r in theirs))
    for op, value in ((hvd.Sum, total), (hvd.Average, total / len(theirs)),
                      (hvd.Max, theirs[-1] + 1.)):
        want = torch.full((3, 2), value)
        check(same(hvd.allreduce(x, op=op, process_set=this), want), f"{op}")
        check(all(same(y, want) for y in hvd.grouped_allreduce(
            [x, x], op=op, process_set=this)), f"{op} of a group")
    check(same(hvd.allgather(x, process_set=this),
               torch.cat([full(r, (3, 2)) for r in theirs])), "allgather")
    root = theirs[-1]
    check(same(hvd.broadcast(x, root, process_set=this), full(root, (3, 2))),
          "broadcast, whose root is a rank of the job")
    check(hvd.broadcast_object(me, root, process_set=this) == root, "object")
    check(hvd.allgather_object(me, process_set=this) == theirs, "objects")
    check(same(hvd.alltoall(mine((len(theirs),)), process_set=this),
               torch.cat([full(r, (1,)) for r in theirs])), "alltoall")
    check(same(hvd.reducescatter(mine((len(theirs),)), op=hvd.Sum,
                                 process_set=this), torch.tensor([total])),
          "reducescatter")
    hvd.barrier(process_set=this)
    y = torch.ones(2, requires_grad=True)
    hvd.allreduce(y, op=hvd.Sum, process_set=this).sum().backward()
    check(same(y.grad, torch.full((2,), float(len(theirs)))), "gradient")
    with raises(hvd.HorovodInternalError, f"rank {me} is not in ProcessSet"):
        hvd.allreduce(x, process_set=even if this is odd else odd)
    with raises(ValueError, "root_rank", "has no such rank"):
        hvd.broadcast(x, (me + 1) % n if n == 2 else
                      next(r for r in ranks() if r not in theirs),
                      process_set=this)
    with raises(ValueError, f"ranks {even.ranks} exists already"):
        hvd.add_process_set(even.ranks)
    with raises(ValueError, "ranks 0 to"):
        hvd.add_process_set([0, n])
    with raises(ValueError, "process sets differ", "add_process_set"):
        hvd.add_process_set([0] if me else [1])
    with raises(TypeError, "process_set=[0]", "expected a ProcessSet"):
        hvd.allreduce(x, process_set=[0])
    train_in_a_set(even)
    check(hvd.remove_process_set(odd) and hvd.remove_process_set(even) and
          not hvd.remove_process_set(hvd.global_process_set), "removed")
    with raises(ValueError, "not part of this job"):
        hvd.allreduce(x, process_set=even)
    check(same(hvd.allreduce(x, process_set=hvd.global_process_set), hvd.allreduce(x)),
          "that of all ranks")


def train_in_a_set(chosen):
    """Members step with their average, other ranks with their own gradients."""
    model = nn.Linear(2, 1)
    nn.init.ones_(model.weight)
    nn.init.zeros_(model.bias)
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 1.), model.named_parameters(),
        process_set=chosen)
    for _ in range(2):
        optimizer.zero_grad()
        (model(torch.ones(1, 2)) * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
    members = chosen.ranks if chosen.included() else [hvd.rank()]
    mean = sum(r + 1 for r in members) / len(members)
    check(torch.allclose(model.bias, torch.tensor([-2 * mean])), "trained")


def case_sparse():
    n, me = hvd.size(), hvd.rank()
    x = torch.sparse_coo_tensor([[me, 4], [1, 0]], [1., 2.], (n + 4, 3))
    dense = hvd.allreduce(x.to_dense(), op=hvd.Sum)
    check(same(hvd.sparse_allreduce(x, op=hvd.Sum).to_dense(), dense), "sum")
    handle = hvd.sparse_allreduce_async(x, "s", hvd.Average)
    check(torch.allclose(handle().to_dense(), dense / n), "the handle is called")
    empty = torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.int64),
                                    torch.empty(0), (2, 3))
    check(hvd.sparse_allreduce(empty).to_dense().eq(0).all(), "empty ones")
    for kind in (nn.Embedding, nn.EmbeddingBag):
        train_sparse(kind, hvd.DistributedOptimizer)
    train_sparse_only()


def train_sparse_only():
    """Train an optimizer that accepts only sparse gradients, with sums made
    dense."""
    model = nn.Embedding(9, 2, sparse=True)
    hvd.broadcast_parameters(model.state_dict())
    before = model.weight.detach().clone()
    others = hvd.add_process_set(list(ranks())[1:])
    for members in (None, others):
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SparseAdam(list(model.parameters()), lr=1.0),
            sparse_as_dense=True, process_set=members)
        if hvd.rank():
            model(torch.tensor([hvd.rank(), 7])).sum().backward()
        optimizer.step()
    changed = (model.weight != before).all(1).nonzero().view(-1).tolist()
    check(changed == [*range(1, hvd.size()), 7], f"rows {changed}")
    hvd.remove_process_set(others)


def train_sparse(kind, distributed):
    """Compare with the same steps with dense gradients; rank 0 has no gradient
    in the last."""
    torch.manual_seed(3)
    pair = [nn.Sequential(kind(20, 4, sparse=s), nn.Linear(4, 1))
            for s in (True, False)]
    pair[1].load_state_dict(pair[0].state_dict())
    options = [distributed(torch.optim.SGD(m.parameters(), 0.1),
                           m.named_parameters()) for m in pair]
    for step in range(3):
        for m, o in zip(pair, options):
            o.zero_grad()
            if step < 2 or hvd.rank():
                words = torch.tensor([[hvd.rank(), 7, step], [7, 7, 19]])
                m(words).square().sum().backward()
            if step == 1 and m is pair[0]:
                with raises(RuntimeError, "zero_grad"):
                    o.zero_grad()
            o.step()
    check(pair[0][0].weight.grad.is_sparse, "stays sparse")
    for a, b in zip(*(m.state_dict().values() for m in pair)):
        check(torch.allclose(a, b, atol=1e-6), f"{kind.__name__}")


class Halves(hvd.Compressor):
    """Sends half of the values without declaring it."""

    @staticmethod
    def compress(tensor):
        return tensor.reshape(-1)[::2].to(torch.float16), tensor.shape

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.float().repeat_interleave(2).view(ctx)


def case_compressors():
    for dtype in (torch.float32, torch.float64, torch.int32):
        x = torch.ones(4, dtype=dtype)
        for name, small in (("none", dtype), ("fp16", torch.float16),
                            ("bf16", torch.bfloat16)):
            method = getattr(hvd.Compression, name)
            sent, ctx = method.compress(x)
            check(sent.dtype == (small if dtype.is_floating_point else dtype),
                  f"{name} of {dtype}")
            check(same(method.decompress(sent, ctx), x), f"{name} back")
    x = mine((2, 2))
    mean = (hvd.size() + 1) / 2
    check(same(hvd.allreduce(x, compression=Halves), torch.full((2, 2), mean)),
          "of one's own")
    with raises(ValueError, "DistributedOptimizer take a compressor"):
        hvd.allreduce_async(x, compression=Halves)
    with raises(ValueError, "derived from sumwire.torch.Compressor"):
        hvd.DistributedOptimizer(torch.optim.SGD(nn.Linear(1, 1).parameters(),
                                                 1.), compression="fp16")
    model = nn.Linear(4, 2)
    before = model.weight.detach().clone()
    hvd.broadcast_(before, 0)
    model.weight.data.copy_(before)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 1.), model.named_parameters(),
        compression=Halves)
    (model(torch.ones(1, 4)) * (hvd.rank() + 1)).sum().backward()
    optimizer.step()
    check(torch.allclose(model.weight, before - mean), "gradients")


def case_optimizers():
    """Check minor attributes that scripts use."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].bias.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    check(model[0].bias.grad is None and all(
        p.grad.eq(0).all() for p in model.parameters() if p.requires_grad),
        "gradients of zeros")
    names = optimizer._parameter_names
    check(len(set(names.values())) == len(names) == 3, f"{names}")
    check(hvd.allgather_object(sorted(names.values())) ==
          [sorted(names.values())] * hvd.size(), "names")
    model(torch.ones(1, 2)).sum().backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    check(["optimizer.step() called without optimizer.skip_synchronize()" in
           str(w.message) for w in seen] == [True], f"{seen}")
    error = hvd.SumwireError("SW_EPEER", "x")
    check(isinstance(error, hvd.HorovodInternalError) and
          str(hvd.HorovodInternalError("why")) == "why", "HorovodInternalError")


def case_many_parameters():
    """Use more than the 4,096 tensors that an agent accepts from a process."""
    parameters = nn.ParameterList([nn.Parameter(torch.zeros(4200))
                                   for _ in range(4200)])
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(parameters.parameters(), 1.),
        parameters.named_parameters())
    (hvd.rank() * sum(p.sum() for p in parameters)).backward()
    optimizer.step()
    want = -(hvd.size() - 1) / 2
    check(all(p.eq(want).all() for p in parameters), "trained")


def case_join():
    """Ranks run out of data in turn; zeros replace their gradients."""
    n, me = hvd.size(), hvd.rank()
    for first in range(n):
        for is_new in (False, True):
            name = f"j{first}" if is_new else "j"
            if not is_new:
                hvd.allreduce(torch.ones(5), name=name)
            if me == first:
                last = hvd.join()
            else:
                a = hvd.allreduce_async(mine((5,)), name=name)
                b = hvd.allreduce_async(mine((3, 3)), op=hvd.Sum)
                rest = float(sum(r + 1 for r in ranks() if r != first))
                check(same(hvd.synchronize(b), torch.full((3, 3), rest)), "sum")
                check(same(hvd.synchronize(a), torch.full((5,), rest / n)),
                      "the average is over all ranks")
                for i, size in enumerate((1, 9, 1, 9)):
                    y = hvd.allreduce(mine((size,)), op=hvd.Sum, name="changes")
                    check(same(y, torch.full((size,), rest)), f"size {i}")
                pair = hvd.grouped_allreduce([mine((2,)), mine((4,))],
                                             op=hvd.Sum, name=name)
                check(same(pair[1], torch.full((4,), rest)), "a group")
                last = hvd.join()
            check(last != first, f"rank {last} joined last")
            check(same(hvd.allreduce(torch.ones(2)), torch.ones(2)), "together")


def case_join_refuses():
    """Operations other than allreduce fail at their callers, also as the first
    call of the job."""
    last = hvd.size() - 1
    calls = [lambda: hvd.broadcast(torch.ones(3), 0),
             lambda: hvd.allgather(torch.ones(2)),
             lambda: hvd.alltoall(torch.ones(hvd.size())),
             lambda: hvd.broadcast_object([1], 0),
             lambda: hvd.allreduce(torch.ones(2), op=hvd.Max)]
    if hvd.rank() == last:
        hvd.join()
    else:
        for call in calls:
            with raises(hvd.HorovodInternalError,
                        f"rank {last} has called join()"):
                call()
        hvd.join()
    for call in calls:
        call()


def case_join_training():
    """Ranks have different numbers of batches, and a second epoch."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 300), nn.Linear(300, 1))
    single = nn.Sequential(nn.Linear(4, 300), nn.Linear(300, 1))
    hvd.broadcast_parameters(model.state_dict(), 0)
    single.load_state_dict(model.state_dict())
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.01), model.named_parameters())
    plain = torch.optim.SGD(single.parameters(), 0.01)
    most = 2 + hvd.size()
    for epoch in range(2):
        for _ in range(2 + (hvd.rank() + epoch) % hvd.size()):
            optimizer.zero_grad()
            model(mine((1, 4))).sum().backward()
            optimizer.step()
        last = hvd.join()
        check((last + epoch) % hvd.size() == hvd.size() - 1, f"last: {last}")
        hvd.broadcast_parameters(model.state_dict(), last)
        for step in range(most - 1):
            plain.zero_grad()
            for r in ranks():
                if step < 2 + (r + epoch) % hvd.size():
                    (single(full(r, (1, 4))).sum() / hvd.size()).backward()
            plain.step()
    for a, b in zip(model.parameters(), single.parameters()):
        check(torch.allclose(a, b, atol=1e-5), "as on one rank")


def case_again():
    """A process leaves the job, and joins again with process sets."""
    hvd.shutdown()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        os.environ.update(HOROVOD_FUSION_THRESHOLD="1", HOROVOD_RANK="0",
                          BYTEPS_PARTITION_BYTES="1", BYTEPS_ENABLE_ASYNC="0")
        alone = hvd.ProcessSet([0])
        hvd.init(process_sets=[alone])
    words = [str(w.message) for w in seen]
    check(len(words) == (hvd.rank() == 0) and all(
        "BYTEPS_PARTITION_BYTES, HOROVOD_FUSION_THRESHOLD;" in w and
        "HOROVOD_RANK" not in w for w in words), f"{words}")
    if hvd.rank() == 0:
        check(same(hvd.allreduce(torch.ones(1), op=hvd.Max, process_set=alone),
                   torch.ones(1)), "a set of one")
    check(hvd.allgather(torch.ones(1)).numel() == hvd.size(), "all")


def case_gives_up():
    """The late rank gets the error of the rank that has given up, not a sum."""
    x = torch.ones(3)
    hvd.allreduce(x, name="x")
    late = hvd.rank() == hvd.size() - 1
    if late:
        time.sleep(int(os.environ["SUMWIRE_WAIT_TIMEOUT"]) + 3)
        why = ["rank 0", "tensor 'allreduce.x': timed out, no sum in"]
    else:
        why = ["tensor 'allreduce.x': timed out, no sum in", "SUMWIRE_WAIT_TIMEOUT",
               f" s for rank {hvd.size() - 1} of 2"]
    for _ in range(2):
        with raises(hvd.HorovodInternalError, *why):
            hvd.allreduce(x, name="x")


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
