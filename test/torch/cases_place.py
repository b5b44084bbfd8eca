# cases_place.py - collectives of torch.distributed on a device; torch_device.py
# SPDX-License-Identifier: BSD-3-Clause
import os

import torch
from torch import distributed as dist

import cases_backend
from sumwire.client import SumwireError
from sumwire.distributed import attachment
from sumwire.distributed.devices import Place
from rig import wait_until
from torch_rig import check, raises, run_cases

N = 700_001  # elements: three pieces


def place():
    found = attachment._attachment.places.of(torch.empty(1))
    check(isinstance(found, Place), found)
    return found


def whole(n=N):
    """Check all ranks' values and their sum."""
    x = torch.arange(n, dtype=torch.float32) % 1000
    size = dist.get_world_size()
    return x * (dist.get_rank() + 1), x * (size * (size + 1) / 2)


def case_placed():
    """Tensors use the device, also those in lists."""
    x, total = whole()
    dist.all_reduce(x)
    check(bool((x == total).all()), "sum")
    check(place().pointer, "no device")
    parts = [torch.empty(5) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.full((5,), float(dist.get_rank())))
    check([int(p[0]) for p in parts] == list(range(len(parts))), parts)


def case_held():
    """wait() needs a stream, which this device lacks: so the thread waits, and
    the end is seen later."""
    here = place()
    here.can_hold = True
    try:
        for _ in range(5):
            x, total = whole()
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            check(bool((x == total).all()), "sum")
            work.wait()
        wait_until(lambda: cases_backend.is_done(work), 60, "its end")
        x, total = whole()
        work = dist.all_reduce(x, async_op=True)
        work.get_future().wait()
        work.wait()
        check(bool((x == total).all()), "sum")
    finally:
        here.can_hold = False


def case_mixed():
    """Each rank chooses for itself where its buffers are."""
    places = attachment._attachment.places
    places.is_fake = dist.get_rank() % 2 == 0
    try:
        for n in 3, N:
            x, total = whole(n)
            dist.all_reduce(x)
            dist.barrier()
            check(bool((x == total).all()), "sum")
            x += dist.get_rank()
            dist.broadcast(x, 0)
            check(bool((x == total).all()), "broadcast")
    finally:
        places.is_fake = True


def trained():
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(64, 900), torch.nn.Tanh(), torch.nn.Linear(900, 500),
        torch.nn.Linear(500, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        torch.manual_seed(100 * step + dist.get_rank())
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().sum().backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def case_trained():
    """All ranks have the same weights, equal to those of a run in memory except
    for rounding by order."""
    got = trained()
    attachment._attachment.places.is_fake = False
    want = trained()
    attachment._attachment.places.is_fake = True
    check(torch.allclose(got, want, rtol=1e-4, atol=1e-6), "weights")
    least, most = got.clone(), got.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    check(bool((least == most).all()), "ranks differ")


def case_written():
    """Rank 1 writes during the sum, and its device detects it; the group
    continues."""
    x = torch.ones(N)
    work = dist.all_reduce(x, async_op=True)
    if dist.get_rank():
        with raises(RuntimeError, "was written or freed while it was summed"):
            while not cases_backend.is_done(work):
                x.add_(1)
            work.wait()
    else:
        work.wait()
    x, total = whole()
    dist.all_reduce(x)
    check(bool((x == total).all()), "sum")


def case_lost():
    """All ranks report whose device was lost."""
    x = torch.ones(N)
    with raises(SumwireError, "rank 1", "device lost by option lost_after"):
        for _ in range(1000):
            dist.all_reduce(x)
    os._exit(0)  # the job has ended, so there is nothing to leave


if __name__ == "__main__":
    cases_backend.start()
    run_cases(globals())
