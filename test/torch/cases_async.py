# cases_async.py - asynchronous training, as every rank runs it
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import time

import torch
from torch import nn

import sumwire.torch as hvd
from torch_rig import check, raises, run_cases

STEPS = 40


def start(model, lr, **options):
    return hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=lr), model.named_parameters(),
        asynchronous=True, **options)


def flag(name):
    """A file by which ranks signal each other."""
    return os.environ["TEST_STORE"] + name


def await_flag(name, limit_s=60):
    until = time.monotonic() + limit_s
    while not os.path.exists(flag(name)):
        check(time.monotonic() < until, f"{name} did not come")
        time.sleep(0.01)


def raise_flag(name):
    with open(flag(name), "w", encoding="ascii"):
        pass


class Line:
    """y = 3 x - 1, learnt from this rank's own samples."""

    def __init__(self, **options):
        torch.manual_seed(hvd.rank())  # different samples and initial weights
        self.model = nn.Linear(1, 1)
        self.optimizer = start(self.model, 0.05, **options)

    def step(self):
        self.optimizer.zero_grad()
        x = torch.rand(16, 1) * 2 - 1
        loss = (self.model(x) - (3 * x - 1)).square().mean()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def value(self):
        """Return the servers' values."""
        self.optimizer.zero_grad()
        (0 * self.model(torch.ones(1, 1))).sum().backward()
        self.optimizer.step()
        return torch.cat([p.detach().flatten()
                          for p in self.model.parameters()])


def case_exact():
    """The value contains every step of every rank once, added to rank 0's
    initial value. All numbers are whole, so no rounding occurs."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        p = nn.Parameter(torch.full((1000, 3), 5.0 + hvd.rank(), dtype=dtype))
        q = nn.Parameter(torch.zeros(2, 2).t())
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([p, q], lr=1), [("p", p), ("q", q)],
            asynchronous=True)
        for _ in range(10):
            p.grad = torch.full_like(p, 1.0 + hvd.rank())
            optimizer.step()
        hvd.barrier()
        p.grad.zero_()
        optimizer.step()
        steps = sum(10 * (1 + r) for r in range(hvd.size()))
        check(torch.equal(p.detach(), torch.full_like(p, 5 - steps)),
              f"{dtype}: {p.flatten()[0]}, not {5 - steps}")
        check(not q.detach().any(), "q has got no gradient")


def case_two_speeds():
    """Rank 1 stalls until rank 0 has done all its steps."""
    line = Line()
    for _ in range(3):
        line.step()
    if hvd.rank() == 1:
        await_flag("fast is done")
    for _ in range(STEPS):
        line.step()
    if hvd.rank() == 0:
        raise_flag("fast is done")
    hvd.barrier()
    value = line.value()
    values = torch.zeros(hvd.size(), 2)
    values[hvd.rank()] = value
    values = hvd.allreduce(values, op=hvd.Sum)
    check(torch.equal(values[0], values[1]), "both have the same in the end")
    check((value - torch.tensor([3.0, -1.0])).abs().max() < 0.5,
          f"it has learnt {value}")
    if hvd.rank() == 0:
        os.remove(flag("fast is done"))


def case_death():
    """Rank 1 dies; rank 0 continues and cannot sum with it."""
    line = Line()
    losses = [line.step() for _ in range(5)]
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(400):
        losses.append(line.step())
        time.sleep(0.002)
    check(sum(losses[-5:]) < 0.2 * sum(losses[:5]), f"it learns: {losses[-1]}")
    with raises(hvd.SumwireError, "rank 1"):
        hvd.barrier()


def case_options():
    model = nn.Linear(2, 2)
    with raises(ValueError, "compression"):
        start(model, 0.1, compression=hvd.Compression.fp16)
    with raises(ValueError, "cross_barrier"):
        start(model, 0.1, cross_barrier=True)
    optimizer = start(model, 0.1)
    with raises(ValueError, "already distributed"):
        hvd.DistributedOptimizer(optimizer)
    os.environ["BYTEPS_ENABLE_ASYNC"] = "1"
    byteps = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters()))
    del os.environ["BYTEPS_ENABLE_ASYNC"]
    check(type(byteps).__mro__[1] is type(optimizer).__mro__[1],
          "BytePS's variable is understood")
    other = nn.Linear(2, 2 + hvd.rank())
    with raises(ValueError, "'weight'", "(2, 2) on rank 0", "(3, 2) on"):
        start(other, 0.1).step()


def case_sparse_and_steps():
    """Any optimizer and any gradient works, because each rank steps by itself."""
    table = nn.Embedding(10, 2, sparse=True)
    nn.init.zeros_(table.weight)
    optimizer = start(table, 1.0, backward_passes_per_step=2)
    for _ in range(2):
        table(torch.tensor([hvd.rank()])).sum().backward()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        optimizer.step()
    hvd.barrier()
    optimizer.zero_grad()
    optimizer.step()
    want = torch.zeros(10, 2)
    want[:hvd.size()] = -2
    check(torch.equal(table.weight.detach(), want), f"{table.weight}")


def case_synchronous_job():
    with raises(hvd.SumwireError, "asynchronous tensor",
                "is synchronous ([job] mode)"):
        Line().step()


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
