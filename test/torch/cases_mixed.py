# cases_mixed.py - groups with a backend for each type of device
# SPDX-License-Identifier: BSD-3-Clause
"""Run by torch_backend.py, which sets the backends in TEST_BACKENDS. Without a
GPU one of them never gets a tensor: gloo stands in for NCCL."""
import os

import torch
import torch.distributed as dist

import sumwire.torch  # noqa: F401
from sumwire.collectives import Calls
from torch_rig import check, run_cases


def start():
    dist.init_process_group(
        os.environ["TEST_BACKENDS"], rank=int(os.environ["RANK"]),
        init_method=f"file://{os.environ['TEST_STORE']}",
        world_size=int(os.environ["WORLD_SIZE"]))


def case_cpu_is_sumwires():
    check(started(collectives) >= 5, "sumwire has made too few of them")


def case_cpu_is_others():
    check(started(collectives) == 0, "sumwire has made what is gloo's")
    check(dist.get_backend_config() == os.environ["TEST_BACKENDS"],
          dist.get_backend_config())


def started(run):
    """Return how many collectives run() starts in the library."""
    start_one, n = Calls.start, []

    def count(*args, **more):
        n.append(args)
        return start_one(*args, **more)
    Calls.start = count
    try:
        run()
    finally:
        Calls.start = start_one
    return len(n)


def collectives():
    n, me = dist.get_world_size(), dist.get_rank()
    for group in None, dist.new_group():
        x = torch.full((3,), 1. + me)
        dist.all_reduce(x, group=group)
        check(bool((x == n * (n + 1) / 2).all()), x)
        dist.broadcast(x.fill_(me), 1, group=group)
        check(bool((x == 1).all()), x)
        parts = [torch.zeros(1) for _ in range(n)]
        dist.all_gather(parts, torch.full((1,), float(me)), group=group)
        check([int(p) for p in parts] == list(range(n)), parts)
        dist.all_to_all_single(torch.zeros(n), torch.ones(n), group=group)
        if me == 0:
            dist.send(x, 1, group=group)
        elif me == 1:
            dist.recv(x, 0, group=group)
        dist.barrier(group=group)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    model(torch.full((1, 3), float(me))).sum().backward()
    check(bool((model.module.weight.grad == (n - 1) / 2).all()), "DDP")


if __name__ == "__main__":
    start()
    run_cases(globals())
