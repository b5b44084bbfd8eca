# cases_train.py - training compared with torch's own DDP over gloo; torch_train.py
# SPDX-License-Identifier: BSD-3-Clause
import copy
import os
import time

import torch
from torch.nn.parallel import DistributedDataParallel

import models
import sumwire.torch as hvd
import sumwire.torch.cross_barrier as byteps
from torch_rig import check, gloo, raises, run_cases

STEPS = 20 if os.environ.get("SUMWIRE_TEST_QUICK") else 50


def train(model, optimizer, forward=None, steps=STEPS):
    """Train; return the losses. The learning rate falls, so that a late update
    would show."""
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.8)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = models.loss_of(forward or model, step, hvd.rank())
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses


def train_gloo(make, steps=STEPS):
    gloo()
    model = models.Net()
    ddp = DistributedDataParallel(model, broadcast_buffers=False)
    losses = train(model, make(model.parameters()), ddp, steps)
    return models.weights(model), losses


def train_sumwire(make, steps=STEPS, **options):
    model = models.Net(seed=hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), model.named_parameters(), **options)
    losses = train(model, optimizer, steps=steps)
    return models.weights(model), losses


def case_equal_to_gloo():
    """Compare with gloo, with and without crossing the barrier."""
    for name, make in models.OPTIMIZERS.items():
        steps = STEPS if name in ("SGD", "Adam", "AdamW", "RMSprop") else 9
        want, _ = train_gloo(make, steps)
        for cross in (True, False):
            got, _ = train_sumwire(make, steps, cross_barrier=cross)
            check(got == want, f"{name}, cross_barrier={cross}: weights after "
                  f"{steps} steps are not gloo's, bit by bit")


def case_tuned():
    """Rank 0 searches while all train, and no result changes."""
    want, _ = train_sumwire(models.OPTIMIZERS["SGD"])
    model = models.Net(seed=hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    os.environ["SUMWIRE_TUNE"] = "1"
    optimizer = hvd.DistributedOptimizer(
        models.OPTIMIZERS["SGD"](model.parameters()), model.named_parameters())
    del os.environ["SUMWIRE_TUNE"]
    train(model, optimizer)
    check(models.weights(model) == want, "weights are those without the tuner")
    # Long enough for a trial on any machine.
    start, n = time.monotonic(), 0
    while not hvd.broadcast_object(n >= 50 and time.monotonic() - start > 3):
        train(model, optimizer, steps=10)
        n += 10


def case_barrier_is_crossed():
    """step() defers updates, and any read of a weight performs them."""
    def new(cross=True):
        model = models.Net(is_plain=True)
        return model, hvd.DistributedOptimizer(
            models.OPTIMIZERS["SGD"](model.parameters()),
            model.named_parameters(), cross_barrier=cross)

    def step(model, optimizer, i):
        optimizer.zero_grad()
        models.loss_of(model, i, hvd.rank()).backward()
        optimizer.step()

    want, waiting = new(cross=False)
    got, crossing = new()
    late = crossing._crossing.late
    for i in range(4):
        step(want, waiting, i)
        step(got, crossing, i)
    check(sum(len(bundle.slots) for bundle in late) ==
          len(list(want.parameters())), "all updates are late")
    check(torch.equal(got.conv.weight, want.conv.weight), "a weight by name")
    check(got.conv.bias.grad is not None, "the gradient stays")
    state = got.state_dict()
    check(not late and all(torch.equal(state[k], v)
                           for k, v in want.state_dict().items()),
          "a state_dict is current")
    step(want, waiting, 4)
    step(got, crossing, 4)
    copied = copy.deepcopy(got)
    check(type(copied.conv._parameters) is dict and
          models.weights(copied) == models.weights(want), "a copy is current")
    step(want, waiting, 5)
    step(got, crossing, 5)
    check(late and
          str(crossing.state_dict()) == str(waiting.state_dict()) and
          not late, "the optimizer's state_dict is current")
    step(want, waiting, 6)
    step(got, crossing, 6)
    crossing.zero_grad()
    check(late and
          all(p.grad is None for p in crossing.param_groups[0]["params"]),
          "zero_grad() does not wait")
    check(models.weights(got) == models.weights(want), "after zero_grad()")


def case_compiled():
    """torch.compile gives the same weights, and compiled code has no updates."""
    seen = []

    def backend(graph, _):
        seen.append(graph.code)
        return graph.forward

    make = models.OPTIMIZERS["SGD"]
    want, _ = train_sumwire(make, 4)
    for cross in (True, False):
        model = models.Net(is_plain=True)
        optimizer = hvd.DistributedOptimizer(
            make(model.parameters()), model.named_parameters(),
            cross_barrier=cross)
        compiled = torch.compile(model, backend=backend)
        train(model, optimizer, compiled.__call__, 4)
        check(seen, "something is compiled")
        check(not any("mul_" in code for code in seen), "an update is compiled")
        check(models.weights(model) == want, f"cross_barrier={cross}")


def case_gradients_in_bounds():
    """With more than two ranks, rounding depends on the order, so compare each
    sum with the exact sum of the same gradients."""
    make = models.OPTIMIZERS["SGD"]
    model = models.Net(seed=hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), model.named_parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.8)
    losses = []
    for step in range(20):
        local = copy.deepcopy(model)
        local.zero_grad(set_to_none=True)
        models.loss_of(local, step, hvd.rank()).backward()
        optimizer.zero_grad()
        loss = models.loss_of(model, step, hvd.rank())
        loss.backward()
        optimizer.synchronize()
        for p, q in zip(model.parameters(), local.parameters()):
            exact, bound = q.grad.double(), q.grad.double().abs()
            gloo().all_reduce(exact)
            gloo().all_reduce(bound)
            off = (p.grad.double() * hvd.size() - exact).abs()
            check(bool((off <= 4 * 2 ** -24 * bound).all()), "a sum is off")
        with optimizer.skip_synchronize():
            optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    check_equal_on_ranks(model)
    check_curves(losses, train_gloo(make, len(losses))[1])


def check_equal_on_ranks(model):
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    check(all(torch.equal(hvd.broadcast(flat, r, "flat"), flat)
              for r in range(hvd.size())), "weights differ between ranks")


def case_curves():
    """Cross the barrier."""
    make = models.OPTIMIZERS["AdamW"]
    model = models.Net()
    optimizer = hvd.DistributedOptimizer(
        make(model.parameters()), model.named_parameters(), cross_barrier=True)
    losses = train(model, optimizer, steps=20)
    check_equal_on_ranks(model)
    check_curves(losses, train_gloo(make, 20)[1])


def check_curves(ours, theirs):
    worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
    check(worst < 0.02, f"losses differ from gloo's by {worst:.1%}")


def case_weights_by_the_back_door():
    """Reading a weight without its module raises an error instead of giving a
    wrong gradient."""
    model, optimizer = cross_twice()
    weight = model.conv.weight
    one_more(model, optimizer)
    with raises(RuntimeError, "'conv.weight'", "without cross_barrier"):
        weight.sum().backward()
    optimizer.synchronize()


def one_more(model, optimizer):
    optimizer.zero_grad()
    models.loss_of(model, 2, hvd.rank()).backward()
    optimizer.step()


def cross_twice(make=None):
    """Return a model after two steps, and an optimizer whose step() no longer
    updates anything itself."""
    model = models.Net(is_plain=True)
    sgd = models.OPTIMIZERS["SGD"](model.parameters())
    optimizer = make(model, sgd) if make else hvd.DistributedOptimizer(
        sgd, model.named_parameters(), cross_barrier=True)
    one_more(model, optimizer)
    one_more(model, optimizer)
    return model, optimizer


def case_written_by_the_back_door():
    """Writing to a weight before its update raises an error instead of losing
    the write."""
    for write in (lambda p: p.clamp_(-0.01, 0.01), lambda p: p.mul_(0.9),
                  lambda p: p.detach().zero_(),
                  lambda p: setattr(p, "data", torch.zeros_like(p))):
        model, optimizer = cross_twice()
        weight = model.conv.weight
        one_more(model, optimizer)
        with torch.no_grad():
            write(weight)
        with raises(RuntimeError, "'conv.weight' was written", "synchronize()",
                    "without cross_barrier"):
            models.loss_of(model, 3, hvd.rank())


def late_after_step(make):
    _, optimizer = cross_twice(make)
    crossing = optimizer._crossing
    is_late = crossing is not None and bool(crossing.late)
    optimizer.synchronize()
    return is_late


def case_crossing_is_asked_for():
    """Off by default: enabled by the argument, a variable, or BytePS's
    variable."""
    def make(model, sgd, **options):
        return hvd.DistributedOptimizer(sgd, model.named_parameters(),
                                        **options)

    check(not late_after_step(make), "crossing is off by default")
    for name in ("SUMWIRE_CROSS_BARRIER", "BYTEPS_CROSS_BARRIER"):
        for value, wanted in (("1", True), ("0", False), ("", False)):
            os.environ[name] = value
            check(late_after_step(make) == wanted, f"{name}={value}")
        os.environ[name] = "1"
        check(not late_after_step(lambda *both: make(
            *both, cross_barrier=False)), "the argument wins")
        del os.environ[name]
    check(late_after_step(hvd.CrossBarrier), "CrossBarrier(model, optimizer)")
    check(late_after_step(lambda model, sgd: byteps.CrossBarrier(
        model, sgd, named_parameters=model.named_parameters(),
        compression=byteps.Compression.none, num_steps=10)), "as BytePS has it")
    with raises(TypeError, "a torch.nn.Module", "not a SGD"):
        hvd.CrossBarrier(torch.optim.SGD(models.Net().parameters(), 0.1), None)


def case_kept_list():
    """A script reads and writes parameters through a list of its own right
    after step(), as with torch's own DDP."""
    def run(model, optimizer, forward):
        kept = list(model.parameters())
        average = [p.detach().clone() for p in kept]
        norms = []
        for step in range(10):
            optimizer.zero_grad()
            models.loss_of(forward, step, hvd.rank()).backward()
            optimizer.step()
            with torch.no_grad():
                norms.append(float(sum(p.grad.norm() for p in kept)))
                for p, a in zip(kept, average):
                    p.mul_(0.999)
                    a.mul_(0.9).add_(p, alpha=0.1)
                kept[0].clamp_(-0.05, 0.05)
        return norms, average, models.weights(model)

    gloo()
    results = []
    for ours in (False, True):
        model = models.Net(is_plain=True)
        optimizer = models.OPTIMIZERS["SGD"](model.parameters())
        forward = model
        if ours:
            optimizer = hvd.DistributedOptimizer(optimizer,
                                                 model.named_parameters())
        else:
            forward = DistributedDataParallel(model, broadcast_buffers=False)
        results.append(run(model, optimizer, forward))
    (norms, average, want), (our_norms, our_average, got) = results
    check(norms == our_norms, f"norms of gradients: {our_norms}, {norms}")
    check(all(map(torch.equal, average, our_average)), "the average")
    check(got == want, "weights are not gloo's, bit by bit")


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
