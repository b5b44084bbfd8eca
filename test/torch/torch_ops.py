# torch_ops.py - sums and broadcasts of tensors against gloo's
# SPDX-License-Identifier: BSD-3-Clause
import torch_rig
from torch_rig import TorchNet

CASES = ["sums", "bool", "averages", "in_place", "handles", "new_names",
         "new_sizes", "groups", "compression", "autograd", "broadcast",
         "objects", "refused"]


def test_two_ranks():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *CASES)


def test_four_ranks():
    with TorchNet(4) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *CASES)


def test_local_ranks():
    """Two processes at one agent, one at another."""
    with TorchNet(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *CASES)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
