# torch_train.py - trainings against torch's own DDP over gloo
# SPDX-License-Identifier: BSD-3-Clause
import torch_rig
from torch_rig import TorchNet


def test_two_ranks():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "equal_to_gloo", "barrier_is_crossed",
                     "weights_by_the_back_door")


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
