# cases_faults.py - user errors and failures; by torch_faults.py
# SPDX-License-Identifier: BSD-3-Clause
import copy
import os
import pickle
import signal
import sys
import time
import types

import torch
from torch import nn

import sumwire.torch as hvd
from sumwire.torch import channel
from torch_rig import check, raises, run_cases


def start(model, **options):
    return hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        model.named_parameters(), **options)


def one_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()


def case_other_models():
    """All ranks get the same error, and the job continues."""
    rank = hvd.rank()
    wide = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 5 + rank))
    texts = "'1.weight'", "(5, 8) on rank 0", "(6, 8) on rank 1"
    with raises(ValueError, *texts):
        hvd.broadcast_parameters(wide.state_dict())
    with raises(ValueError, *texts):
        one_step(wide, start(wide))
    other = nn.Linear(8, 2).to(torch.float64 if rank else torch.float32)
    with raises(ValueError, "'weight'", "float32 (2, 8) on rank 0",
                "float64 (2, 8) on rank 1"):
        hvd.broadcast_parameters(other.state_dict())
    layers = [nn.Linear(8, 8) for _ in range(2 + rank)]
    with raises(ValueError, "'2.weight'", "missing on rank 0", "(8, 8) on"):
        hvd.broadcast_parameters(nn.Sequential(*layers).state_dict())
    same = nn.Linear(8, 2)
    with raises(ValueError, "compression",
                "none, Average, 1, False on rank 0",
                "float16, Average, 1, False on rank 1"):
        c = hvd.Compression.fp16 if rank else hvd.Compression.none
        one_step(same, start(same, compression=c))
    hvd.broadcast_parameters(same.state_dict())
    one_step(same, start(same))


def fails(call, *texts):
    """Check that the call fails on all ranks, with a sentence that names both."""
    with raises(hvd.SumwireError, "SW_EMISMATCH", "rank 0", "rank 1",
                f"this is rank {hvd.rank()}, which calls ", *texts):
        call()


def works(name, shape=(2, 3)):
    """Check that the same call succeeds when all make it."""
    ones = torch.ones(shape)
    check(torch.equal(hvd.allreduce(ones, name=name), ones), f"{name} works")


def case_other_sizes():
    """A mismatched call fails on all ranks, and the error names both calls; the
    next call and the job continue."""
    rank = hvd.rank()
    other = torch.ones((2, 3) if rank else (3, 2))
    for texts in ("300", "301"), (f"{300 + rank}",):
        fails(lambda: hvd.allreduce(torch.ones(300 + rank), name="x"),
              "allreduce.x", *texts)
        works("x")
    fails(lambda: hvd.allreduce(other, name="shape"), "allreduce.shape",
          f"allreduce of float32 {tuple(other.shape)}, Average")
    works("shape")
    fails(lambda: hvd.allreduce(other, name="shape"))
    works("shape", (3, 2))
    works("shape")
    fails(lambda: hvd.allreduce(other, name=None))
    works(None)
    fails(lambda: hvd.allreduce(torch.ones(
        5, dtype=torch.float64 if rank else torch.float32), name="type"))
    works("type")
    fails(lambda: hvd.allreduce(other.view(6), name="op",
                                op=hvd.Sum if rank else hvd.Average))
    fails(lambda: hvd.allreduce(other.view(6), name="op",
                                prescale_factor=1. + rank), "prescale_factor"
          if rank else "Average")
    works("op")


def case_known_sizes():
    """A name was used with two sizes, and one rank calls with the wrong one."""
    rank = hvd.rank()
    for shape in (3,), (70000,), (3,):
        works("two", shape)
    fails(lambda: hvd.allreduce(torch.ones(70000 if rank else 3), name="two"))
    for shape in (70000,), (3,), (70000,):
        works("two", shape)
    fails(lambda: hvd.allreduce(torch.ones(4 + rank), name="two"))
    works("two")


def case_handles_that_fail():
    """One of many open calls fails; ranks wait in different orders, for new
    sizes and known ones."""
    rank = hvd.rank()
    for turn in range(3):
        xs = [torch.ones(10 + i + 10 * turn) for i in range(8)]
        xs[3] = torch.ones(50 + rank)
        handles = [(i, hvd.allreduce_async(x, name=f"h{i}"))
                   for i, x in enumerate(xs)]
        for i, h in handles if rank else reversed(handles):
            if i == 3:
                while rank and not hvd.poll(h):
                    pass
                fails(lambda: hvd.synchronize(h), "h3")
            else:
                check(torch.equal(hvd.synchronize(h), xs[i]), f"h{i}")
    works("h3")


def case_other_root():
    rank = hvd.rank()
    x = torch.full((3,), float(rank))
    for name in ("b", None):
        for _ in range(2):
            fails(lambda: hvd.broadcast(x, rank, name), "broadcast",
                  f"root {rank}")
            check(torch.equal(hvd.broadcast(x, 1, name), torch.ones(3)),
                  "a broadcast after that")
    for _ in range(2):
        with raises(hvd.SumwireError, "SW_EMISMATCH", "rank 0", "rank 1"):
            hvd.broadcast_object({"rank": rank}, root_rank=rank)
        check(hvd.broadcast_object({"rank": rank}, 1) == {"rank": 1},
              "broadcast_object after that")
    model = nn.Linear(3, 3)
    with raises(ValueError, "root_rank", "0 on rank 0", "1 on rank 1"):
        hvd.broadcast_parameters(model.state_dict(), root_rank=rank)
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)


def case_other_groups():
    rank = hvd.rank()
    xs = [torch.ones(3), torch.ones(2, 2)]
    hvd.grouped_allreduce(xs, name="g")
    fails(lambda: hvd.grouped_allreduce(
        xs if rank else [torch.ones(7), torch.ones(0)], name="g"), "group")
    out = hvd.grouped_allreduce(xs, name="g")
    check(torch.equal(out[1], xs[1]), "a group after that")


class Stubborn:
    def __reduce__(self):
        raise ZeroDivisionError("on purpose")


def case_what_cannot_be_sent():
    """All ranks get the root's error, and the job continues."""
    is_root = hvd.rank() == 1
    for obj, why in (lambda: 0, "lambda"), (Stubborn(), "on purpose"):
        with raises(TypeError, "rank 1", "cannot be pickled", why):
            hvd.broadcast_object(obj if is_root else None, 1)
        check(hvd.broadcast_object(hvd.rank(), 1) == 1, "the next one")
    sgd = torch.optim.SGD([torch.ones(2)], lr=0.1)
    if is_root:
        sgd.state_dict = Stubborn().__reduce__
    with raises(TypeError, "rank 1", "on purpose"):
        hvd.broadcast_optimizer_state(sgd, 1)
    check(hvd.broadcast_object(hvd.rank(), 1) == 1, "an object after that")


class Evil:
    """Creates a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


class Bytes(bytes):
    def encode(self):
        return bytes(self)


def case_pickles_are_not_executed():
    """One rank sends a pickle where the library expects its own data: the other
    rank does not execute it, and names the sender."""
    path = os.environ["TEST_STORE"] + ".evil"
    sent = Bytes(pickle.dumps(Evil(path)))
    rank, fake = hvd.rank(), types.SimpleNamespace(
        dumps=lambda *_: sent, loads=lambda *_: "")

    def sends_pickles(who, call):
        was = {n: getattr(channel, n, None) for n in ("pickle", "json")}
        if rank == who:
            channel.pickle = channel.json = fake
        try:
            call()
            error = "no error"
        except (TypeError, ValueError, RuntimeError) as e:
            error = str(e)
        for name, module in was.items():
            setattr(channel, name, module)
        hvd.barrier()
        check(not os.path.exists(path), "the pickle was executed")
        check(rank == who or f"rank {who} sent a message that is not JSON"
              in error, error)

    # Where ranks differ, each reports its own state.
    sends_pickles(1, lambda: hvd.broadcast_parameters(
        nn.Linear(1, 1 + rank).state_dict()))
    # Here the order of use differs.
    model = nn.Linear(8, 2)
    sends_pickles(0, lambda: one_step(model, start(model)))
    # Here options and state differ.
    sends_pickles(0, lambda: hvd.broadcast_optimizer_state(
        torch.optim.SGD(model.parameters(), lr=0.1)))


def case_before_init():
    for call in (hvd.rank, hvd.size, lambda: hvd.allreduce(torch.ones(1)),
                 lambda: hvd.broadcast_object(1),
                 lambda: start(nn.Linear(1, 1))):
        with raises(hvd.SumwireError, "call sumwire.torch.init() first"):
            call()
    check(not hvd.is_initialized(), "is_initialized()")
    hvd.init()
    hvd.init()
    check(hvd.is_initialized() and hvd.size() == 2, "init() twice")


def case_names():
    a = nn.Linear(2, 2)
    sgd = torch.optim.SGD(a.parameters(), lr=0.1)
    with raises(ValueError, "used twice: w"):
        hvd.DistributedOptimizer(sgd, [("w", a.weight), ("w", a.bias)])
    with raises(ValueError, "1 parameters", "missing in named_parameters"):
        hvd.DistributedOptimizer(sgd, [("w", a.weight)])
    with raises(ValueError, "pairs"):
        hvd.DistributedOptimizer(sgd, a.parameters())
    with raises(ValueError, "already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(sgd))
    with raises(ValueError, "backward_passes_per_step=0"):
        hvd.DistributedOptimizer(sgd, backward_passes_per_step=0)
    with raises(ValueError, "LBFGS", "cross_barrier"):
        hvd.DistributedOptimizer(torch.optim.LBFGS(a.parameters()),
                                 cross_barrier=True)
    with raises(TypeError, "complex64"):
        hvd.DistributedOptimizer(torch.optim.SGD(
            [nn.Parameter(torch.ones(2, dtype=torch.complex64))], lr=0.1))
    with raises(ValueError, "compression='fp16'", "Compression.none"):
        hvd.DistributedOptimizer(sgd, compression="fp16")
    with raises(TypeError, "torch.optim", "not a Linear"):
        hvd.DistributedOptimizer(a)
    with raises(TypeError, "SGD cannot be copied", "state_dict()"):
        copy.deepcopy(hvd.DistributedOptimizer(sgd))
    with raises(ValueError, "state_dict()"):
        hvd.broadcast_parameters(a)
    tied = hvd.DistributedOptimizer(sgd, [
        ("w", a.weight), ("b", a.bias), ("w again", a.weight)])
    one_step(nn.Sequential(nn.Linear(8, 2), a), tied)
    tied.synchronize()
    check(len(tied._gradients.bundles[0].slots) == 2, "one name is enough")
    long = nn.Sequential()
    inner = long
    for _ in range(60):
        inner.layer = nn.Sequential()
        inner = inner.layer
    inner.layer = nn.Linear(8, 1)
    long.forward = inner.layer.forward
    one_step(long, start(long))


def case_changed_parameter():
    """The type of a parameter changes after its gradient got a place."""
    model = nn.Linear(8, 2)
    optimizer = start(model)
    one_step(model, optimizer)
    optimizer.zero_grad()
    model.double()  # torch then makes AccumulateGrad nodes without our hooks
    model(torch.ones(4, 8, dtype=torch.float64)).sum().backward()
    with raises(RuntimeError, "'weight' has torch.float64",
                "had torch.float32", "create it again"):
        optimizer.step()


def case_written_gradient():
    for cross in (True, False):
        model = nn.Linear(8, 2)
        hvd.broadcast_parameters(model.state_dict())
        optimizer = start(model, cross_barrier=cross)
        for spoil in (lambda p: p.grad.mul_(2),
                      lambda p: setattr(p, "grad", torch.ones_like(p))):
            one_step(model, optimizer)
            optimizer.zero_grad()
            model(torch.ones(4, 8)).sum().backward()
            with raises(RuntimeError, "between backward() and step()"):
                optimizer.zero_grad()
            spoil(model.weight)
            with raises(RuntimeError, "'weight' was written", "synchronize()",
                        "skip_synchronize()"):
                optimizer.step()
            model = nn.Linear(8, 2)
            hvd.broadcast_parameters(model.state_dict())
            optimizer = start(model, cross_barrier=cross)


def case_shutdown():
    """Memory outlives the job, and a second job may follow."""
    model = nn.Linear(8, 2)
    hvd.broadcast_parameters(model.state_dict())
    optimizer = start(model, cross_barrier=True)
    before = model.weight.detach().clone()
    one_step(model, optimizer)
    hvd.shutdown()
    hvd.shutdown()
    check(not torch.equal(model.weight, before), "the last update was done")
    grad = model.weight.grad
    check(torch.equal(grad, torch.full((2, 8), 4.0)), "the gradient is there")
    grad.zero_()
    with raises(hvd.SumwireError, "init() first"):
        hvd.allreduce(grad)
    hvd.init()
    check(float(hvd.allreduce(torch.ones(1), op=hvd.Sum)) == 2, "a second job")


def case_jobs():
    """Run one job after another; no rank waits until the others have left."""
    for _ in range(30):
        hvd.init()
        hvd.barrier()
        hvd.shutdown()


# --- cases in which one rank dies; the other must report why ---

def train_on(limit_s=60):
    model = nn.Linear(8, 200)
    hvd.broadcast_parameters(model.state_dict())
    optimizer = start(model)
    for step in range(1 << 30):
        one_step(model, optimizer)
        yield step


def leave_by(end):
    for step in train_on():
        if step == 5:
            print("five steps", flush=True)
            if hvd.rank() == 1:
                end()


def case_exits_early():
    leave_by(lambda: sys.exit(0))


def case_raises():
    def fail():
        raise ZeroDivisionError("on purpose")
    leave_by(fail)


def case_is_killed():
    leave_by(lambda: os.kill(os.getpid(), signal.SIGKILL))


def case_until_the_end():
    for step in train_on():
        if step == 5:
            print("five steps", flush=True)


def case_waits():
    """Rank 1 never sums: rank 0 is interrupted, or gets an error after the
    limit."""
    if hvd.rank() == 1:
        time.sleep(3600)
    print("waiting", flush=True)
    hvd.allreduce(torch.ones(1), name="lonely")


if __name__ == "__main__":
    if "before_init" not in sys.argv:
        hvd.init()
    run_cases(globals())
