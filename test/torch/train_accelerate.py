# train_accelerate.py - a training run by Accelerate; by torch_frameworks.py
# SPDX-License-Identifier: BSD-3-Clause
"""train_accelerate.py BACKEND...: two ranks, started by torchrun, train with
one backend after another. On CPUs Accelerate itself chooses gloo, whatever
InitProcessGroupKwargs says, but accepts an existing group."""
import os
import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import set_seed

import sumwire.torch  # noqa: F401

STEPS = 6


def say(line):
    """Write once, because two ranks share this output."""
    os.write(1, f"{line}\n".encode())


def train(backend):
    set_seed(0)
    dist.init_process_group(backend)
    accelerator = Accelerator(cpu=True)
    x = torch.randn(16 * STEPS, 8)
    data = torch.utils.data.TensorDataset(x, x.square().sum(1, keepdim=True))
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    model, optimizer, batches = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.1),
        torch.utils.data.DataLoader(data, batch_size=8))
    for i, (x, y) in enumerate(batches):
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()
        mean = accelerator.gather(loss.detach()).mean()
        if accelerator.is_main_process:
            say(f"loss {i} {mean:.5f}")
    say(f"backend {dist.get_backend()}")
    dist.barrier()
    rank = dist.get_rank()
    accelerator.end_training()  # also destroys the group
    AcceleratorState._reset_state(reset_partial_state=True)
    if rank == 0:
        say("ended")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        train(name)
