# models.py - small models and data for the training tests
# SPDX-License-Identifier: BSD-3-Clause
import torch
from torch import nn


class Net(nn.Module):
    """A layer of each kind: convolution, normalization with buffers, embedding,
    a tied weight, and a layer used without its forward."""

    def __init__(self, seed=0, is_plain=False):
        super().__init__()
        torch.manual_seed(seed)
        self.is_plain = is_plain  # uses every layer through its forward
        self.embed = nn.Embedding(16, 12)
        self.conv = nn.Conv1d(12, 8, 3, padding=1)
        self.norm = nn.BatchNorm1d(8)
        self.rnn = nn.GRU(8, 12, batch_first=True)
        self.head = nn.Linear(12, 12)
        self.bias = nn.Parameter(torch.zeros(16))

    def forward(self, x):
        h = self.embed(x).transpose(1, 2)
        h = torch.relu(self.norm(self.conv(h))).transpose(1, 2)
        h, _ = self.rnn(h)
        if self.is_plain:
            h = self.head(h)
        else:
            h = nn.functional.linear(h, self.head.weight, self.head.bias)
        return nn.functional.linear(h, self.embed.weight) + self.bias


def batch(step, rank, n=6):
    g = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randint(0, 16, (n, 10), generator=g)
    return x, (x * 3 + 1) % 16


def loss_of(model, step, rank):
    x, y = batch(step, rank)
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9,
                                     weight_decay=1e-3, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=3e-3, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=3e-3),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5,
                                             centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=1e-2),
    "Rprop": lambda p: torch.optim.Rprop(p),
}


def weights(model):
    """Return all bytes of the parameters."""
    return b"".join(p.detach().contiguous().numpy().tobytes()
                    for p in model.parameters())
