# torch_train.py - trainings against torch's own DDP over gloo
# SPDX-License-Identifier: BSD-3-Clause
import torch_rig
from torch_rig import TorchNet

PARALLEL = ["ddp", "ddp_buffers", "comm_hook", "passes", "clipping",
            "optimizer_state", "compressed", "dtypes", "no_gradient", "groups"]


def test_optimizers():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "equal_to_gloo", "barrier_is_crossed",
                     "weights_by_the_back_door")


def test_four_ranks():
    with TorchNet(4) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "gradients_in_bounds", "curves")


def test_parallel():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_parallel.py", *PARALLEL)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
