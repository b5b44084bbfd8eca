# cases_bundle.py - bundles of small parameters give the same bits as single ones
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
from collections import OrderedDict

import torch
from torch import nn

import models
import sumwire.torch as hvd
from sumwire.torch import bundle
from torch_rig import check, run_cases

STEPS = 6
KIB16 = 4096  # f32 elements of the largest parameter that joins others
SIZES = OrderedDict(
    a=(3,), b=(5, 7), c=(33,), d=(KIB16,), e=(KIB16 + 1,), f=(1,), g=(9,),
    h1=(KIB16,), h2=(64, 64), h3=(KIB16,), h4=(2, 2048), big=(20000,), i=(2,))
DTYPES = {"c": torch.bfloat16, "g": torch.float64}
# A large parameter may begin a bundle, and other types do not end a type's
# bundle.
NAMES = ["a.weight+2", "c.weight", "e.weight+3", "g.weight", "h3.weight+1",
         "big.weight", "i.weight"]


class Part(nn.Module):
    def __init__(self, shape, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape, dtype=dtype))

    def forward(self, values):
        n = self.weight.numel()
        return (self.weight.flatten().float() * values[:n]).mean()


class Mixed(nn.Module):
    """Parts of all sizes and types; the order of use differs from the order of
    registration."""

    def __init__(self):
        super().__init__()
        for name in reversed(SIZES):
            self.add_module(name, Part(SIZES[name],
                                       DTYPES.get(name, torch.float32)))

    def forward(self, step, without=()):
        g = torch.Generator().manual_seed(100 * step + hvd.rank())
        values = torch.randn(20000, generator=g)
        return sum(getattr(self, name)(values) for name in SIZES
                   if name not in without)


@contextlib.contextmanager
def alone():
    """A context in which no parameter joins another."""
    was, bundle.SMALL_BYTES = bundle.SMALL_BYTES, 0
    try:
        yield
    finally:
        bundle.SMALL_BYTES = was


def start(model, **options):
    return hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        model.named_parameters(), **options)


def plain(model, optimizer, step):
    optimizer.zero_grad()
    model(step).square().backward()
    optimizer.step()


def weights(model):
    return {n: p.detach().double() for n, p in model.named_parameters()}


def check_same(turn, **options):
    """Check for the same bits bundled and alone, with and without crossing the
    barrier."""
    results = {}
    for cross in (True, False):
        for how in (contextlib.nullcontext, alone):
            with how():
                model = Mixed()
                optimizer = start(model, cross_barrier=cross, **options)
                for step in range(STEPS):
                    turn(model, optimizer, step)
                results[how.__name__, cross] = weights(model)
                n = len(optimizer._gradients.bundles)
                check((n == len(SIZES)) == (how is alone), f"{n} bundles")
    want = results["alone", False]
    check(not torch.equal(want["i.weight"], torch.ones(2).double()),
          "it was trained")
    for how, got in results.items():
        for name, value in want.items():
            check(torch.equal(got[name], value), f"{name}: other bits, {how}")
    # All ranks have the same values.
    for name, value in want.items():
        check(torch.equal(hvd.broadcast(value, 0), value), name)


def case_same_bits():
    check_same(plain)
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        check_same(plain, compression=compression)


def case_layout():
    """Check the parameters of each bundle, its name and its place."""
    model = Mixed()
    optimizer = start(model)
    plain(model, optimizer, 0)
    optimizer.synchronize()
    bundles = optimizer._gradients.bundles
    what = optimizer._gradients.what
    got = [b.shared.name for b in bundles]
    check(got == [f"{what}.{name}" for name in NAMES], f"names {got}")
    taken = []
    for p in model.parameters():
        check(p.grad.data_ptr() % 64 == 0, "a gradient is aligned")
        taken.append((p.grad.data_ptr(), p.grad.numel() *
                      p.grad.element_size()))
    taken.sort()
    for (at, n), (after, _) in zip(taken, taken[1:]):
        check(at + n <= after, "gradients overlap")
    before = model.b.weight.grad._version
    model.a.weight.grad.mul_(2)
    check(model.b.weight.grad._version == before, "versions are separate")


def case_missing():
    """A gradient in the middle of a bundle is missing: on some ranks, on all,
    always."""
    def turn(model, optimizer, step):
        without = {0: "b", 1: "b" if hvd.rank() else "", 2: "a",
                   3: "dh4"}.get(step, "")
        optimizer.zero_grad()
        model(step, without=("h2", *without)).square().backward()
        optimizer.step()
    check_same(turn)


def case_accumulated():
    """Several passes per step, and gradients kept from step to step."""
    def twice(model, optimizer, step):
        optimizer.zero_grad()
        for i in range(2):
            model(10 * step + i, without=("b",) if i else ()).backward()
        model.b(torch.ones(35)).backward()
        optimizer.step()

    def kept(model, optimizer, step):
        model(step, without=("f",) if step % 2 else ()).square().backward()
        optimizer.step()

    def zeroed(model, optimizer, step):
        optimizer.zero_grad(set_to_none=False)
        model(step, without=("d",) if step % 2 else ()).square().backward()
        optimizer.step()

    check_same(twice, backward_passes_per_step=2)
    check_same(kept)
    check_same(zeroed)


def case_frozen():
    """Some parameters are frozen from the start, some for a while, with
    gradients kept or set to None: bundles do with them what torch does."""
    for set_to_none in (True, False):
        def turn(model, optimizer, step, set_to_none=set_to_none):
            for name in ("b", "h1", "big"):
                getattr(model, name).weight.requires_grad_(step not in (2, 3))
            optimizer.zero_grad(set_to_none)
            model(step).square().backward()
            optimizer.step()
        check_same(turn)
    model = Mixed()
    model.b.weight.requires_grad = False
    optimizer = start(model)
    plain(model, optimizer, 0)
    optimizer.synchronize()
    check(optimizer._gradients.bundles[0].name == "a.weight+1" and
          model.b.weight.grad is None, "one that was frozen first has no place")


def case_added():
    """Parameters of a later group get bundles of their own."""
    model, more = Mixed(), models.Net()
    hvd.broadcast_parameters(more.state_dict())
    optimizer = start(model)
    plain(model, optimizer, 0)
    n = len(optimizer._gradients.bundles)
    optimizer.add_param_group({"params": list(more.parameters()), "lr": 0.2})
    for step in range(3):
        optimizer.zero_grad()
        loss = models.loss_of(more, step, hvd.rank())
        (loss + model(step).square()).backward()
        optimizer.step()
    added = optimizer._gradients.bundles[n:]
    check(len(added) == 1 and len(added[0].slots) ==
          len(list(more.parameters())), f"{len(added)} bundles were added")
    for p in more.parameters():
        check(torch.equal(p, hvd.broadcast(p.detach(), 0)), "equal on ranks")


def case_parallel():
    """DistributedDataParallel's gradients also form bundles."""
    results = []
    for how in (contextlib.nullcontext, alone):
        with how():
            model = Mixed()
            wrapped = hvd.DistributedDataParallel(model)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(STEPS):
                sgd.zero_grad()
                with wrapped.no_sync():
                    wrapped(step + 100).square().backward()
                wrapped(step, without=("h1",)).square().backward()
                sgd.step()
            results.append(weights(model))
    for name, value in results[0].items():
        check(torch.equal(value, results[1][name]), f"{name}: other bits")


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
