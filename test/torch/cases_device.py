# cases_device.py - gradients through a device's stage; torch_device.py
# SPDX-License-Identifier: BSD-3-Clause
import os
import time

import torch

import models
import sumwire.torch as hvd
from sumwire.client import SumwireError
from sumwire.torch.staging import Staged
from torch_rig import check, gloo, raises, run_cases


def train_wide(steps=6):
    """Train a model with a parameter of several pieces; return its weights and
    the optimizer."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 2000), torch.nn.Tanh(),
                                torch.nn.Linear(2000, 700, bias=False),
                                torch.nn.Linear(700, 3))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        model.named_parameters())
    for step in range(steps):
        torch.manual_seed(100 * step + hvd.rank())
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().sum().backward()
        optimizer.step()
    optimizer.finish_updates()
    return models.weights(model), optimizer


def kinds(optimizer):
    return {type(b.shared) for b in optimizer._gradients.bundles}


def case_staged():
    """The bits are the same as without the stage."""
    got, optimizer = train_wide()
    check(kinds(optimizer) == {Staged}, kinds(optimizer))
    name = os.environ.pop("SUMWIRE_DEVICE")
    want, optimizer = train_wide()
    os.environ["SUMWIRE_DEVICE"] = name
    check(Staged not in kinds(optimizer), kinds(optimizer))
    check(got == want, "the stage changes the weights")


class Held:
    """Acts as a stream that waits: wait() returns at once."""

    def __init__(self, stage):
        self.stage, self.n = stage, 0

    def __enter__(self):
        self.stage.can_hold, self.stage.hold_tensor = True, self
        return self

    def __call__(self, pointer):
        self.n += 1
        return 0

    def __exit__(self, *_):
        self.stage.can_hold = False
        del self.stage.hold_tensor


def case_held():
    """With a stream that waits, the next push waits for the last sum, and so
    does the end. This device's stream cannot wait, so the thread waits."""
    want, _ = train_wide()
    _, optimizer = train_wide(1)
    gradient = optimizer._gradients.bundles[0].shared
    stage, tensor = gradient.client, gradient.tensor
    size = hvd.size()
    with Held(stage) as held:
        gradient.flat.fill_(1)
        for step in range(1000, 1004):
            stage.push(tensor, step)
            stage.wait(tensor)
            check(tensor.is_open and stage.held == {tensor}, "nobody waited")
        stage.finish()
        check(not stage.held and not tensor.is_open, "all have ended")
        check(bool((gradient.flat == size ** 4).all()), "sums of sums")
        stage.wait(tensor)
        check(held.n == 4, "what has ended is not waited for")
    stage.can_hold = True
    got, _ = train_wide()
    check(got == want, "weights")
    check(stage.held, "wait() by the stream")
    hvd.broadcast_object(None)  # barrier: otherwise the sum might end at once


def case_held_to_the_end():
    """A rank that leaves completes the last sum that a stream waits for, also
    with a late rank."""
    _, optimizer = train_wide(1)
    gradient = optimizer._gradients.bundles[0].shared
    stage, size = gradient.client, hvd.size()
    gradient.flat.fill_(1)
    if hvd.rank():
        time.sleep(1)
    with Held(stage):
        stage.push(gradient.tensor, 1000)
        stage.wait(gradient.tensor)
        hvd.shutdown()
    check(bool((gradient.flat == size).all()), "a sum")


def shared_of(name):
    return hvd.ops.calls().places[name].last


def case_summed():
    """Sum and broadcast the device's tensors, alone and in groups: other sizes
    and types under one name, another type on the wire, no elements."""
    ranks = sum(range(1, hvd.size() + 1))
    for n, dtype in ((7, torch.float32), (300000, torch.float32),
                     (7, torch.int64), (7, torch.float32)):
        ones = torch.full((n,), hvd.rank() + 1, dtype=dtype)
        check(bool((hvd.allreduce(ones, op=hvd.Sum, name="s") == ranks).all()),
              f"{n} of {dtype}")
        check(type(shared_of("allreduce.s")) is Staged, "not staged")
    half = hvd.allreduce(torch.full((50,), hvd.rank() + 1.), op=hvd.Average,
                         name="h", compression=hvd.Compression.fp16)
    check(bool((half == ranks / hvd.size()).all()), "f16 on the wire")
    group = hvd.grouped_allreduce(
        [torch.ones(3), torch.ones(2, 2, dtype=torch.int32), torch.ones(0)],
        op=hvd.Sum, name="g")
    check([t.tolist() for t in group] == [
        [hvd.size()] * 3, [[hvd.size()] * 2] * 2, []], group)
    check(type(shared_of("group.g.float32")) is Staged, "not staged")
    for dtype in (torch.float32, torch.complex64, torch.bool):
        root = hvd.size() - 1
        mine = torch.full((9,), hvd.rank() == root, dtype=dtype)
        check(bool(hvd.broadcast(mine, root, name=f"b.{dtype}").bool().all()),
              f"broadcast of {dtype}")
        check(type(shared_of(f"broadcast.b.{dtype}")) is Staged, "not staged")
    handles = [hvd.allreduce_async_(torch.ones(1000), op=hvd.Sum, name=f"a{i}")
               for i in range(20)]
    check(all(bool((hvd.synchronize(h) == hvd.size()).all())
              for h in reversed(handles)), "20 at once")


def case_hook():
    """Buckets of torch's DDP also use the device."""
    gloo()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    model.register_comm_hook(None, hvd.allreduce_hook)
    for _ in range(2):
        model.zero_grad()
        model(torch.full((1, 3), float(hvd.rank()))).sum().backward()
        check(bool((model.module.weight.grad == (hvd.size() - 1) / 2).all()),
              model.module.weight.grad)
    check(type(shared_of("bucket0")) is Staged, "not staged")


def case_summed_by_streams():
    """Where streams wait, the call still raises the error, because its thread
    waits as well."""
    hvd.allreduce(torch.ones(4), name="s")
    shared = shared_of("allreduce.s")
    with Held(shared.client) as held:
        got = hvd.allreduce(torch.ones(4), op=hvd.Sum, name="s")
        check(held.n == 1 and not shared.tensor.is_open, "both wait")
        check(bool((got == hvd.size()).all()), got)


def case_differing():
    """One rank has its tensor elsewhere: both get an error and continue."""
    if hvd.rank():
        os.environ.pop("SUMWIRE_DEVICE")
    with raises(SumwireError, "another call", "of a device"
                if hvd.rank() == 0 else "allreduce of float32 (5,)"):
        hvd.allreduce(torch.ones(5), name="d")
    os.environ["SUMWIRE_DEVICE"] = "fake"
    check(bool((hvd.allreduce(torch.ones(5), name="e") == 1).all()), "it goes on")


def case_not_at_all():
    """One rank has no device, so no rank uses the stage."""
    _, optimizer = train_wide(2)
    check(Staged not in kinds(optimizer), kinds(optimizer))


def case_written():
    """Rank 1 writes during the sum, and its device detects it."""
    _, optimizer = train_wide(2)
    gradient = optimizer._gradients.bundles[0].shared
    stage = gradient.client
    if not hvd.rank():
        time.sleep(0.5)  # so that the sum cannot end before rank 1 writes
    stage.push(gradient.tensor, 1000)
    if hvd.rank():
        with raises(SumwireError, "was written or freed while it was summed"):
            while not stage.is_done(gradient.tensor):
                gradient.flat.add_(1)
    else:
        stage.wait(gradient.tensor)


def case_lost():
    """All ranks report whose device was lost."""
    with raises(SumwireError, "rank 1", "device lost by option lost_after"):
        train_wide(1000)
    os._exit(0)  # the job has ended, so there is nothing to leave


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
