# cases_train.py - trainings against torch's own DDP over gloo; torch_train.py
# SPDX-License-Identifier: BSD-3-Clause
import torch
from torch.nn.parallel import DistributedDataParallel

import models
import sumwire.torch as hvd
from torch_rig import check, gloo, run_cases

STEPS = 50


def train(model, optimizer, forward=None, steps=STEPS):
    """Returns the losses; the rate falls, so that a late update would show."""
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.8)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = models.loss_of(forward or model, step, hvd.rank())
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss))
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
    for name, make in models.OPTIMIZERS.items():
        want, _ = train_gloo(make)
        got, _ = train_sumwire(make)
        check(got == want, f"{name}: weights after {STEPS} steps are not "
              f"gloo's, bit by bit")


if __name__ == "__main__":
    hvd.init()
    run_cases(globals())
