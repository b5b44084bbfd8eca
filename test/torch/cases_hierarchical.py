# cases_hierarchical.py - gradients summed within each of two machines first
# SPDX-License-Identifier: BSD-3-Clause
"""By torch_hierarchical.py."""
import os
import signal
import time
import warnings

import torch
from torch import nn

import models
import stream_rig
import sumwire.torch as hvd
from sumwire.client import SumwireError
from torch_rig import check, raises, run_cases

SIZES = (1, 3, 33, 5000, 70001, 400000)
ALONE = 3  # a bundle
DTYPES = (torch.float32, torch.float64, torch.float16)


class Many(nn.Module):
    """Parameters of all sizes and types; with has_order they are used
    backwards."""

    def __init__(self, dtypes=DTYPES):
        super().__init__()
        self.parts = nn.ParameterList(
            nn.Parameter(torch.zeros(n, dtype=t)) for t in dtypes for n in SIZES)

    def forward(self, values, order, without=()):
        return sum((self.parts[i] * values[i]).sum().double() for i in order
                   if i not in without)


def whole(i, n, rank, step, dtype):
    """Return numbers whose sums are exact."""
    return ((torch.arange(n) * (rank + 3) + i + step) % 51).to(dtype)


def values_of(model, rank, step, value=whole):
    return [value(i, p.numel(), rank, step, p.dtype)
            for i, p in enumerate(model.parts)]


def make(model, hierarchical=True, **options):
    return hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(),
        hierarchical=hierarchical, **options)


def one_step(model, optimizer, step, order=None, without=(), value=whole):
    """Make one step; return its gradients."""
    optimizer.zero_grad()
    order = order or range(len(model.parts))
    model(values_of(model, hvd.rank(), step, value), order,
          without).backward()
    optimizer.synchronize()
    return [p.grad.clone() for p in model.parts if p.requires_grad]


def wanted(model, step, value=whole):
    """Return the expected gradients, computed in f64."""
    every = [values_of(model, r, step, value) for r in range(hvd.size())]
    return [sum(v.double() for v in each) for each in zip(*every)]


def check_exact(got, want, what):
    for i, (g, w) in enumerate(zip(got, want)):
        check(torch.equal(g.double(), w), f"{what}: parameter {i}")


def is_used(optimizer):
    return optimizer._gradients.hierarchy is not None


def case_sums():
    model = Many()
    optimizer = make(model, op=hvd.Sum)
    for step in range(4):
        got = one_step(model, optimizer, step)
        check_exact(got, wanted(model, step), f"step {step}")
    want = hvd.size() > 2 and hvd.local_size() > 1
    check(is_used(optimizer) == want, f"hierarchical: {want} was expected")


def case_averages():
    """The sum is divided once, by four, so without rounding."""
    model = Many()
    optimizer = make(model)
    for step in range(2):
        check_exact(one_step(model, optimizer, step),
                    [w / hvd.size() for w in wanted(model, step)], "averages")


def random(i, n, rank, step, dtype):
    g = torch.Generator().manual_seed(1000 * step + 100 * rank + i)
    return torch.randn(n, generator=g).to(dtype)


def case_floats():
    """Rounding errors stay within those of as many additions, as for a flat
    sum."""
    for hierarchical in (True, False):
        model = Many()
        got = one_step(model, make(model, hierarchical, op=hvd.Sum), 0,
                       value=random)
        every = [values_of(model, r, 0, random) for r in range(hvd.size())]
        for g, w, parts in zip(got, wanted(model, 0, random), zip(*every)):
            bound = 2 * torch.finfo(g.dtype).eps * sum(
                p.double().abs() for p in parts)
            check(bool(((g.double() - w).abs() <= bound).all()),
                  f"{g.dtype} of {len(g)}: off by more than it may")


def case_any_order():
    """Each rank's backward produces gradients in an order of its own."""
    model = Many()
    optimizer = make(model, op=hvd.Sum)
    n = len(model.parts)
    for step in range(8):
        g = torch.Generator().manual_seed(step * (1 + hvd.rank()))
        order = torch.randperm(n, generator=g).tolist()
        check_exact(one_step(model, optimizer, step, order),
                    wanted(model, step), f"step {step}")


def case_missing():
    """Missing gradients count as zeros; no rank sends frozen ones."""
    model = Many()
    optimizer = make(model, op=hvd.Sum)
    out = len(model.parts) - 1
    for step in range(4):
        without = (0, 4, out) if hvd.rank() == 1 else ()
        want = wanted(model, step)
        for i in (0, 4, out):
            want[i] -= whole(i, len(want[i]), 1, step,
                             model.parts[i].dtype).double()
        if not model.parts[ALONE].requires_grad:
            del want[ALONE]
        check_exact(one_step(model, optimizer, step, without=without), want,
                    f"step {step}")
        if step == 1:
            model.parts[ALONE].requires_grad_(False)
    check(is_used(optimizer), "hierarchical")


def train(hierarchical, **options):
    model = models.Net(seed=1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        model.named_parameters(), hierarchical=hierarchical, **options)
    losses = []
    passes = options.get("backward_passes_per_step", 1)
    for step in range(8):
        optimizer.zero_grad()
        for i in range(passes):
            loss = models.loss_of(model, passes * step + i, hvd.rank())
            loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    check(is_used(optimizer) == bool(hierarchical), "hierarchical")
    same = [hvd.broadcast(p.detach(), 1) for p in model.parameters()]
    check(all(map(torch.equal, same, model.parameters())),
          "all ranks have the same weights")
    return losses


def check_near(got, want, by):
    check(all(abs(g - w) < by for g, w in zip(got, want)), f"{got} and {want}")


def case_trained():
    check_near(train("gloo"), train(False), 1e-4)


def case_options():
    for by, options in ((1e-4, {"backward_passes_per_step": 3}),
                        (1e-2, {"compression": hvd.Compression.fp16})):
        check_near(train(True, **options), train(False, **options), by)
    model = Many()
    with raises(ValueError, "cross_barrier=True", "leave one of the two out"):
        make(model, cross_barrier=True)
    with raises(ValueError, "asynchronous=True", "leave hierarchical out"):
        make(model, asynchronous=True)
    with raises(ValueError, "hierarchical='mpi'", "gloo or nccl"):
        make(model, "mpi")


def case_parallel():
    """DistributedDataParallel: two models in one backward, and a separate sum."""
    pair = [Many((torch.float32,)) for _ in range(2)]
    wrapped = [hvd.DistributedDataParallel(m, hierarchical=True) for m in pair]
    for step in range(3):
        values = values_of(pair[0], hvd.rank(), step)
        handle = hvd.allreduce_async(torch.ones(step + 1), name="beside",
                                     op=hvd.Sum)
        (wrapped[0](values, range(6)) + wrapped[1](
            values, range(5, -1, -1))).backward()
        check(float(hvd.synchronize(handle)[0]) == hvd.size(), "beside")
        for model in pair:
            check_exact([p.grad * hvd.size() for p in model.parts],
                        wanted(model, step), "DistributedDataParallel")
            for p in model.parts:
                p.grad = None


def case_by_variable():
    model = Many()
    optimizer = make(model, None, op=hvd.Sum)
    check_exact(one_step(model, optimizer, 0), wanted(model, 0), "sums")
    check(is_used(optimizer) and optimizer._crossing is None, "hierarchical")


def case_refused():
    """All ranks refuse with one sentence; the job continues."""
    model = Many()
    with raises(SumwireError, "hierarchical: rank 0: nccl adds tensors of CUDA "
                "devices, not of the cpu"):
        one_step(model, make(model, "nccl"), 0)
    check(float(hvd.allreduce(torch.ones(1))) == 1, "the job goes on")


def case_differing():
    model = Many()
    with raises(ValueError, "hierarchical", "on rank 0", "False on rank 1"):
        one_step(model, make(model, hvd.rank() != 1), 0)


def by_stream():
    """Return (model, optimizer, its sums) after a step."""
    model = Many((torch.float32,))
    optimizer = make(model, op=hvd.Sum)
    one_step(model, optimizer, 0)
    hierarchy = optimizer._gradients.hierarchy
    hierarchy.sums = stream_rig.put_under(hierarchy.sums)
    return model, optimizer, hierarchy.sums


def backward(model, optimizer, step):
    optimizer.zero_grad()
    model(values_of(model, hvd.rank(), step),
          range(len(model.parts))).backward()


def case_by_stream():
    """synchronize() returns before a step's sums complete; the next step's
    synchronize() waits for them."""
    model, optimizer, sums = by_stream()
    gate = sums.stream.stream.gate
    for step in range(1, 5):
        gate.clear()
        backward(model, optimizer, step)
        n_waits = sums.calls.n_waits
        if step > 1:
            n_waits += len(optimizer._gradients.bundles)
        optimizer.synchronize()
        got = sums.calls.n_waits
        check(got == n_waits, f"{got} waits, not {n_waits}")
        check(not torch.equal(model.parts[3].grad.double(),
                              wanted(model, step)[3]), "it was done already")
        gate.set()
        stream_rig.current().drain()
        check_exact([p.grad for p in model.parts], wanted(model, step),
                    f"step {step}")


def case_by_stream_fails():
    """The next step raises a step's error; after the last step, shutdown()
    does."""
    model, optimizer, sums = by_stream()
    backward(model, optimizer, 1)
    optimizer.synchronize()
    stream_rig.current().drain()
    sums.held[0].error = SumwireError("SW_EPEER", "rank 9: it is gone")
    with raises(SumwireError, "rank 9: it is gone"):
        hvd.shutdown()


def case_uneven():
    model = Many()
    with raises(SumwireError, "hierarchical sums need the same number of ranks "
                "on each machine: that of rank 0 has 2, that of rank 2 has 1"):
        one_step(model, make(model), 0)
    check(float(hvd.allreduce(torch.ones(1))) == 1, "the job goes on")


def steps_until(rank, what):
    """Make one rank meet its fate in the middle of a step."""
    model = Many()
    optimizer = make(model)
    for step in range(1000):
        if step == 3 and hvd.rank() == rank:
            model.parts[9].register_hook(what)
        one_step(model, optimizer, step)


def case_raises():
    def out(_):
        raise KeyError("no such thing")
    steps_until(1, out)


def case_is_killed():
    steps_until(3, lambda _: os.kill(os.getpid(), signal.SIGKILL))


def case_is_late():
    def sleep(_):
        time.sleep(15)
        os._exit(3)
    steps_until(2, sleep)


def case_gives_up():
    """Raise an error inside the sums' own code, as for exhausted memory."""
    model = Many()
    optimizer = make(model)
    one_step(model, optimizer, 0)
    if hvd.rank():
        for step in range(1, 1000):
            one_step(model, optimizer, step)
    local = optimizer._gradients.hierarchy.sums.local
    local.gather = lambda flat: (_ for _ in ()).throw(ValueError("given up"))
    with raises(ValueError, "given up"):
        one_step(model, optimizer, 1)
    with raises(SumwireError, "rank 0: ValueError: given up"):
        optimizer.synchronize()
    time.sleep(3)  # until the others have the error


def case_recorded():
    """Gradients of a model, until the test has recorded some."""
    model = nn.Linear(100, 100)
    optimizer = make(model)
    is_over = torch.zeros(1)
    while not is_over:  # all ranks end with the same step
        model(torch.ones(1, 100)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        is_over = hvd.allreduce(torch.tensor(
            [float(os.path.exists(os.environ["RECORDED"]))]), name="over")
    check(is_used(optimizer), "not hierarchical")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    hvd.init()
    run_cases(globals())
