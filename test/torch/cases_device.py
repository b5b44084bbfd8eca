# cases_device.py - gradients over the stage of a device; torch_device.py
# SPDX-License-Identifier: BSD-3-Clause
import os

import torch

import models
import sumwire.torch as hvd
from sumwire.client import SumwireError
from sumwire.torch.staging import Staged
from torch_rig import check, raises, run_cases


def train_wide(steps=6):
    """A model with a parameter of several pieces; returns its weights and the
    optimizer."""
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
    """The same bits as without."""
    got, optimizer = train_wide()
    check(kinds(optimizer) == {Staged}, kinds(optimizer))
    name = os.environ.pop("SUMWIRE_DEVICE")
    want, optimizer = train_wide()
    os.environ["SUMWIRE_DEVICE"] = name
    check(Staged not in kinds(optimizer), kinds(optimizer))
    check(got == want, "the stage changes the weights")


def case_not_at_all():
    """One rank has no device: so nobody uses the stage."""
    _, optimizer = train_wide(2)
    check(Staged not in kinds(optimizer), kinds(optimizer))


def case_written():
    """While it is summed, by rank 1, whose device finds it."""
    _, optimizer = train_wide(2)
    gradient = optimizer._gradients.bundles[0].shared
    stage = gradient.client
    stage.push(gradient.tensor, 1000)
    if hvd.rank():
        with raises(SumwireError, "was written or freed while it was summed"):
            while not stage.is_done(gradient.tensor):
                gradient.flat.add_(1)
    else:
        stage.wait(gradient.tensor)


def case_lost():
    """All ranks know whose device it was."""
    with raises(SumwireError, "rank 1", "device that is none was lost"):
        train_wide(1000)
    os._exit(0)  # the job is over: there is nothing to leave


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
