# text.py - a small Transformer learns the text of Python's own help pages
# SPDX-License-Identifier: BSD-3-Clause
"""sumwire run -np 2 python3 text.py [--ddp gloo] [--layers 4] ..."""
import pydoc_data.topics

import torch
from torch import nn

import common


def load():
    """Return the text as a tensor of character numbers, and the number of
    characters."""
    text = "\n".join(pydoc_data.topics.topics.values())
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([number[c] for c in text]), len(number)


class Transformer(nn.Module):
    """Predicts the next character from those before it."""

    def __init__(self, n_chars, width, n_layers, length):
        super().__init__()
        self.chars = nn.Embedding(n_chars, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0,
                                       batch_first=True, norm_first=True)
            for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, n_chars, bias=False)
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        h = self.chars(x) + self.places.weight
        for layer in self.layers:
            h = layer(h, self.mask)
        return self.head(self.norm(h))


def main():
    options = common.options(__doc__, steps=100, batch=8, width=128, lr=1e-3)
    options.add_argument("--layers", type=int, default=2,
                         help="transformer layers [%(default)s]")
    options.add_argument("--length", type=int, default=64,
                         help="characters in a sample [%(default)s]")
    args = options.parse_args()
    job = common.start(args)
    text, n_chars = load()
    text = text.to(args.device)
    model = Transformer(n_chars, args.width, args.layers, args.length).to(
        args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    span = torch.arange(args.length + 1, device=args.device)

    def loss_of(net, step):
        g = torch.Generator().manual_seed(step)
        at = torch.randint(len(text) - args.length - 1,
                           (job.size, args.batch, 1), generator=g)
        piece = text[at[job.rank].to(args.device) + span]
        out = net(piece[:, :-1])
        return nn.functional.cross_entropy(out.flatten(0, 1),
                                           piece[:, 1:].flatten())

    clock, loss = common.run(args, job, model, loss_of, optimizer)
    common.report(args, job, clock, model, f"loss {loss:.3f}")


if __name__ == "__main__":
    main()
