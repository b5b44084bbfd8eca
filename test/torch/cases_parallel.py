# cases_parallel.py - DDP, gradient accumulation, hooks; run by torch_train.py
# SPDX-License-Identifier: BSD-3-Clause
import warnings

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import models
import sumwire.torch as hvd
from torch_rig import check, gloo, raises, run_cases


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(wrapped, optimizer, steps=12, passes=1):
    """Train; every step accumulates the gradients of several backward passes."""
    for step in range(steps):
        optimizer.zero_grad()
        for i in range(passes - 1):
            with wrapped.no_sync():
                models.loss_of(wrapped, passes * step + i,
                               hvd.rank()).backward()
        models.loss_of(wrapped, passes * step + passes - 1,
                       hvd.rank()).backward()
        optimizer.step()


def torch_ddp(passes=1, hook=None):
    gloo()
    model = models.Net()
    wrapped = DistributedDataParallel(model)
    if hook:
        wrapped.register_comm_hook(None, hook)
    train(wrapped, sgd(model), passes=passes)
    return model


def case_ddp():
    for passes in (1, 3):
        want = torch_ddp(passes)
        model = models.Net(seed=hvd.rank())
        train(hvd.DistributedDataParallel(model), sgd(model), passes=passes)
        check(models.weights(model) == models.weights(want),
              f"DistributedDataParallel with {passes} passes: other weights")


def case_ddp_buffers():
    model = models.Net(seed=hvd.rank())
    wrapped = hvd.DistributedDataParallel(model)
    train(wrapped, sgd(model))
    wrapped(models.batch(0, 0)[0])
    means = [hvd.broadcast(model.norm.num_batches_tracked, r)
             for r in range(hvd.size())]
    check(len({int(m) for m in means}) == 1, "buffers are those of rank 0")


def case_comm_hook():
    """Use torch's own DDP, with small buckets so that there are several."""
    want = torch_ddp()
    check(models.weights(torch_ddp(hook=hvd.allreduce_hook)) ==
          models.weights(want), "the communication hook: other weights")


def case_comm_hook_fails():
    """A pass that ends with an error leaves its buckets open; the next pass has
    its own."""
    gloo()
    model = nn.Linear(3, 1)

    def hook(state, bucket):
        future = hvd.allreduce_hook(state, bucket)
        if is_bad:
            raise RuntimeError("the hook has failed")
        return future

    class First:  # the first of two buckets
        def __init__(self, bucket):
            self.buffer, self.index = bucket.buffer, bucket.index

        def is_last(self):
            return not is_bad

    for is_bad in (True, False):
        wrapped = DistributedDataParallel(model)
        wrapped.register_comm_hook(None, lambda state, bucket: hook(
            state, First(bucket)))
        model.zero_grad()
        loss = wrapped(torch.ones(1, 3)).sum() * (1 + hvd.rank())
        if is_bad:
            with raises(RuntimeError, "the hook has failed"):
                loss.backward()
        else:
            loss.backward()
    check(float(model.bias.grad) == (1 + hvd.size()) / 2, model.bias.grad)


def case_passes():
    """backward_passes_per_step accumulates as torch's DDP does with no_sync."""
    want = torch_ddp(passes=2)
    model = models.Net()
    optimizer = hvd.DistributedOptimizer(
        sgd(model), model.named_parameters(), backward_passes_per_step=2)
    for step in range(12):
        optimizer.zero_grad()
        for i in range(2):
            models.loss_of(model, 2 * step + i, hvd.rank()).backward()
        optimizer.step()
    # torch's DDP broadcasts rank 0's buffers at each forward; weights do not
    # depend on them.
    check(models.weights(model) == models.weights(want), "two passes")
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    models.loss_of(model, 0, hvd.rank()).backward()
    with raises(RuntimeError, "more than 1 times", "backward_passes_per_step"):
        models.loss_of(model, 1, hvd.rank()).backward()
    with raises(RuntimeError, "between step() and"):
        optimizer.set_backward_passes_per_step(2)


def case_clipping():
    """Call synchronize(), change gradients, then step without another sum."""
    gloo()
    models_, optimizers = [], []
    for ours in (False, True):
        model = models.Net()
        optimizer = sgd(model)
        if ours:
            forward = model
            optimizer = hvd.DistributedOptimizer(optimizer,
                                                 model.named_parameters())
        else:
            forward = DistributedDataParallel(model, broadcast_buffers=False)
        for step in range(10):
            optimizer.zero_grad()
            models.loss_of(forward, step, hvd.rank()).backward()
            if ours:
                optimizer.synchronize()
            nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            if ours:
                with optimizer.skip_synchronize():
                    optimizer.step()
            else:
                optimizer.step()
        models_.append(model)
        optimizers.append(optimizer)
    check(models.weights(models_[0]) == models.weights(models_[1]), "clipped")


class Scaler:
    """Works as torch.amp.GradScaler, which PyTorch has for CPUs since 2.3: it
    finds gradients by param_groups and changes them without autograd."""

    def __init__(self, init_scale):
        self.factor, self.is_bad, self.is_unscaled = init_scale, False, False

    def scale(self, loss):
        return loss * self.factor

    def unscale_(self, optimizer):
        self.is_unscaled = True
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.is_bad |= not bool(p.grad.isfinite().all())
                    p.grad.data.div_(self.factor)

    def step(self, optimizer):
        if not self.is_unscaled:
            self.unscale_(optimizer)
        if not self.is_bad:
            optimizer.step()

    def update(self):
        self.factor /= 2 if self.is_bad else 1
        self.is_bad = self.is_unscaled = False


def new_scaler():
    try:
        return torch.amp.GradScaler("cpu", init_scale=1024.0)
    except AttributeError:
        return Scaler(1024.0)


def scaled(is_unscaled_first, bad_step=-1, **options):
    """Train with a scaler and without synchronize(); bad_step: rank 1 has an
    infinite loss in it. Train without a scaler: is_unscaled_first is None."""
    model, scaler = models.Net(is_plain=True), new_scaler()
    optimizer = hvd.DistributedOptimizer(
        sgd(model), model.named_parameters(), **options)
    for step in range(8):
        optimizer.zero_grad()
        loss = models.loss_of(model, step, hvd.rank())
        if is_unscaled_first is None:
            loss.backward()
            optimizer.step()
            continue
        if step == bad_step and hvd.rank() == 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if is_unscaled_first:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        scaler.step(optimizer)
        scaler.update()
    return models.weights(model)


def case_scaler():
    """A power of two changes no bit; an infinite gradient of one rank makes all
    skip the step."""
    want = scaled(None)
    for cross in (False, True):
        for first in (False, True):
            got = scaled(first, cross_barrier=cross)
            check(got == want, f"scaled, {first}, {cross}: other weights")
    got = scaled(False, bad_step=3)
    check(got not in (want, scaled(False, bad_step=4)), "a step is left out")
    check(hvd.broadcast_object(got) == got, "ranks differ after it")


def case_summed_again():
    """step() after synchronize() sums again, as Horovod's does, and warns."""
    model = nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.weight)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())

    def turn(finish):
        optimizer.zero_grad()
        (model(torch.ones(1, 2)).sum() * (1 + hvd.rank())).backward()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            finish()
        return [str(w.message) for w in seen]

    def skip():
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()

    def again():
        optimizer.synchronize()
        optimizer.step()

    def look():
        check(optimizer.param_groups[0]["lr"] == 1.0, "the rate")
        optimizer.step()

    mean = (1 + hvd.size()) / 2
    for i, (finish, n) in enumerate(((optimizer.step, 0), (skip, 0), (again, 1),
                                     (optimizer.step, 0), (look, 0))):
        said = turn(finish)
        check(len(said) == n and all("skip_synchronize()" in t for t in said),
              f"{i}: {said}")
        check(torch.allclose(model.weight, torch.full(
            (1, 2), 1 - (i + 1) * mean)), f"{i}: {model.weight}")


def case_optimizer_state():
    model = models.Net()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.1 + hvd.rank()),
        model.named_parameters())
    other = models.Net()
    source = torch.optim.Adam(other.parameters(), lr=0.5)
    if hvd.rank() == 1:
        models.loss_of(other, 0, 0).backward()
        source.step()
    hvd.broadcast_optimizer_state(source, root_rank=1)
    check(source.param_groups[0]["lr"] == 0.5 and
          len(source.state) == len(list(other.parameters())),
          "the state of rank 1")
    moments = [s["exp_avg"].sum() for s in source.state.values()]
    for m in moments:
        check(torch.equal(m, hvd.broadcast(m, 1)), "moments")
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    check(optimizer.param_groups[0]["lr"] == 0.1, "options of rank 0")
    optimizer.param_groups[0]["clock"] = object()
    with raises(TypeError, "object", "broadcast_object"):
        hvd.broadcast_optimizer_state(optimizer, root_rank=1)


def case_compressed():
    want, _ = run(None)
    for c in (hvd.Compression.fp16, hvd.Compression.bf16):
        got, model = run(c)
        check(0 < (got - want).abs().max() < 0.05, f"{c}: near, but not equal")
        parts = [hvd.broadcast(got, r) for r in range(hvd.size())]
        check(all(torch.equal(p, got) for p in parts), f"{c}: equal on ranks")


def run(compression):
    model = models.Net()
    optimizer = hvd.DistributedOptimizer(
        sgd(model), model.named_parameters(),
        compression=compression or hvd.Compression.none)
    for step in range(4):
        optimizer.zero_grad()
        models.loss_of(model, step, hvd.rank()).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()]), model


def case_dtypes():
    """Use parameters of other types; sparse ones, optionally made dense."""
    for dtype in (torch.float64, torch.bfloat16):
        model = nn.Linear(5, 3).to(dtype)
        hvd.broadcast_parameters(model.state_dict())
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.5),
            model.named_parameters())
        before = model.weight.detach().clone()
        (model(torch.ones(1, 5, dtype=dtype)).sum() * hvd.rank()).backward()
        optimizer.step()
        mean = (hvd.size() - 1) / 2
        check(torch.equal(model.weight, before - 0.5 * mean), f"{dtype}")
    for choice in (False, True):
        model = nn.Embedding(6, 2, sparse=True)
        nn.init.ones_(model.weight)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            model.named_parameters(), sparse_as_dense=choice)
        model(torch.tensor([hvd.rank()])).sum().backward()
        optimizer.step()
        want = torch.ones(6, 2)
        want[:hvd.size()] -= 1 / hvd.size()
        check(torch.equal(model.weight, want) and
              model.weight.grad.is_sparse is not choice, f"dense: {choice}")
    table = torch.ones(6, 2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([table], lr=1.0))
    with raises(TypeError, "sparse", "Embedding", "sparse_as_dense"):
        nn.functional.embedding(torch.tensor([1]), table,
                                sparse=True).sum().backward()


def case_no_gradient():
    """A rank without a gradient, or without a batch, sends zeros."""
    model = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(3)])
    for layer in model:
        nn.init.ones_(layer.weight)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    for _ in range(2):
        optimizer.zero_grad()
        if hvd.rank() == 0:
            model[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()
    n = hvd.size()
    check(torch.allclose(model[0].weight, torch.full((2, 2), 1 - 2 / n)) and
          torch.equal(model[1].weight, torch.ones(2, 2)), "zeros were sent")
    bare = nn.Parameter(torch.empty(0))
    one = nn.Parameter(torch.ones(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([bare, one], lr=1.0))
    (one.sum() + bare.sum()).backward()
    optimizer.step()
    check(float(one) == 0, "a parameter without elements is no obstacle")


def case_groups():
    """Call add_param_group later, with layers that were frozen."""
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    hvd.broadcast_parameters({**a.state_dict(), **{
        "b." + k: v for k, v in b.state_dict().items()}})
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(a.parameters(), lr=1.0))
    for with_b in (False, True):
        if with_b:
            optimizer.add_param_group({"params": list(b.parameters())})
        optimizer.zero_grad()
        x = torch.full((1, 2), float(hvd.rank()))
        (b(a(x)) if with_b else a(x)).sum().backward()
        optimizer.step()
    for w in (a.weight, b.weight):
        check(torch.equal(w, hvd.broadcast(w.detach(), 0)), "equal on ranks")
    c = nn.Linear(2, 2)
    c.weight.requires_grad = False
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(c.parameters(), 0.1))
    c.weight.requires_grad = True
    c(torch.ones(1, 2)).sum().backward()
    with raises(RuntimeError, "(2, 2)", "requires_grad=False"):
        optimizer.step()


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
