# digits.py - a convolutional net learns handwritten digits on several ranks
# SPDX-License-Identifier: BSD-3-Clause
"""sumwire run -np 2 python3 digits.py [--ddp gloo] [--width 2048] ...

--width is that of the hidden layer: 2048 makes the net communication-bound."""
import os

import torch
from torch import nn

import common

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "examples", "data", "digits.csv")


def load():
    """Return images and labels for training, and for the test: every fifth."""
    with open(DATA, encoding="ascii") as f:
        rows = torch.tensor([[int(v) for v in line.split(",")] for line in f])
    images = rows[:, :64].float().view(-1, 1, 8, 8) / 16
    test = torch.arange(len(rows)) % 5 == 4
    return (images[~test], rows[~test, 64]), (images[test], rows[test, 64])


def build(width):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, width), nn.ReLU(),
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def main():
    args = common.options(__doc__, steps=300, batch=32, width=256,
                          lr=0.05).parse_args()
    job = common.start(args)
    (images, labels), (test_images, test_labels) = (
        [t.to(args.device) for t in part] for part in load())
    model = build(args.width).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    def loss_of(net, step):
        # The whole batch is the same on all ranks; each takes its part.
        g = torch.Generator().manual_seed(step)
        pick = torch.randint(len(images), (job.size, args.batch), generator=g)
        x, y = images[pick[job.rank]], labels[pick[job.rank]]
        return nn.functional.cross_entropy(net(x), y)

    clock, loss = common.run(args, job, model, loss_of, optimizer)
    with torch.no_grad():
        right = model(test_images).argmax(1) == test_labels
    accuracy = job.mean(right.float().mean())
    common.report(args, job, clock, model,
                  f"loss {loss:.3f}, test accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
