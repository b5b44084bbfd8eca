# small.py - the cost of a small tensor: its way through Python, hooks and agent
# SPDX-License-Identifier: BSD-3-Clause
"""sumwire run -np 2 python3 small.py [--tensors 1000] [--elements 64]

Rank 0 prints us per tensor, medians over rounds: of time, and of this process's
CPU time.  For an optimizer it is what it costs more than the plain one."""
import argparse
import os
import statistics
import sys
import time

import torch
from torch import nn

# Use the checkout's package if none is installed.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import sumwire.torch as hvd  # noqa: E402

WARM_UP = 3


class Scale(nn.Module):
    """A layer with one small parameter."""

    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x + self.weight


def measure(turn, n_rounds):
    """Return the median seconds of turn(): elapsed time, and CPU time."""
    taken = []
    for i in range(WARM_UP + n_rounds):
        hvd.barrier()
        before = time.perf_counter(), time.process_time()
        turn()
        after = time.perf_counter(), time.process_time()
        if i >= WARM_UP:
            taken.append([b - a for a, b in zip(before, after)])
    return [statistics.median(t) for t in zip(*taken)]


def sums(args):
    """Sum single tensors, each with a handle."""
    xs = [torch.ones(args.elements) for _ in range(args.tensors)]
    names = [f"x.{i}" for i in range(args.tensors)]

    def turn():
        for h in [hvd.allreduce_async_(x, op=hvd.Sum, name=n)
                  for x, n in zip(xs, names)]:
            hvd.synchronize(h)
    return turn


def group(args):
    xs = [torch.ones(args.elements) for _ in range(args.tensors)]
    return lambda: hvd.grouped_allreduce_(xs, op=hvd.Sum, name="x")


def training(args, distribute):
    """Make a step of a model with small parameters only."""
    model = nn.Sequential(*[Scale(args.elements) for _ in range(args.tensors)])
    optimizer = distribute(torch.optim.SGD(model.parameters(), lr=1e-9), model)
    x = torch.ones(args.elements)

    def turn():
        optimizer.zero_grad(set_to_none=True)
        model(x).sum().backward()
        optimizer.step()
    return turn


def distributed(cross):
    return lambda optimizer, model: hvd.DistributedOptimizer(
        optimizer, model.named_parameters(), cross_barrier=cross)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tensors", type=int, default=1000,
                   help="number of tensors [%(default)s]")
    p.add_argument("--elements", type=int, default=64,
                   help="f32 elements of each tensor [%(default)s]")
    p.add_argument("--rounds", type=int, default=20,
                   help="timed rounds [%(default)s]")
    args = p.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    plain = measure(training(args, lambda o, _: o), args.rounds)
    rows = [("allreduce_async_, synchronize", sums(args), (0, 0)),
            ("grouped_allreduce_", group(args), (0, 0)),
            ("DistributedOptimizer", training(args, distributed(False)), plain),
            ("DistributedOptimizer, barrier crossed", training(
                args, distributed(True)), plain)]
    for what, turn, base in rows:
        taken = measure(turn, args.rounds)
        each = [1e6 * (t - b) / args.tensors for t, b in zip(taken, base)]
        if hvd.rank() == 0:
            print(f"{what}: {each[0]:.1f} us a tensor, {each[1]:.1f} us of CPU",
                  flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
