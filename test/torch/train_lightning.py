# train_lightning.py - a training run by Lightning; by torch_frameworks.py
# SPDX-License-Identifier: BSD-3-Clause
"""train_lightning.py BACKEND...: two ranks, started by torchrun, train with one
backend after another."""
import os
import sys

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy

import sumwire.torch  # noqa: F401

STEPS = 6


def say(line):
    """Write once, because two ranks share this output."""
    os.write(1, f"{line}\n".encode())


class Squares(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def training_step(self, batch, i):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        if not i:
            say(f"backend {dist.get_backend()}")
        mean = self.all_gather(loss.detach()).mean()
        if self.global_rank == 0:
            say(f"loss {i} {mean:.5f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def train(backend):
    lightning.seed_everything(0)
    x = torch.randn(16 * STEPS, 8)
    data = torch.utils.data.TensorDataset(x, x.square().sum(1, keepdim=True))
    trainer = lightning.Trainer(
        strategy=DDPStrategy(process_group_backend=backend),
        accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]),
        max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Squares(), torch.utils.data.DataLoader(data, batch_size=8))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        train(name)
        dist.barrier()
        rank = dist.get_rank()
        dist.destroy_process_group()
        if rank == 0:
            say("ended")
