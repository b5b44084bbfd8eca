# torch_horovod.py - what Horovod's scripts call beside allreduce and broadcast
# SPDX-License-Identifier: BSD-3-Clause
import torch_rig
import rig
from torch_rig import TorchNet

CASES = ["join_refuses", "timeline", "reductions", "allgather", "allgather_gradient",
         "differences", "alltoall", "reducescatter", "process_sets", "sparse", "compressors",
         "optimizers", "join", "join_training", "again"]


@rig.is_long
def test_three_ranks_of_an_agent():
    with TorchNet(1, local=(3,)) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", *CASES)


def test_two_agents():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", *CASES)


BY_HOROVOD = ["sums", "averages", "extremes", "factors", "disagreements",
              "arguments", "gathers", "broadcasts", "exchanges", "parts",
              "gradients", "sets", "joins", "states"]


def test_by_horovod():
    with TorchNet(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_horovods.py", *BY_HOROVOD)


@rig.is_long
def test_many_parameters():
    with TorchNet(1, local=(2,)) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "many_parameters")


def test_gives_up():
    """A rank that waits for too long ends the sum at all ranks."""
    with TorchNet(2, job={"stall_warn": "1s"}) as net:
        net.start_all()
        net.ranks_ok("cases_horovod.py", "gives_up",
                     env={"SUMWIRE_WAIT_TIMEOUT": "4"})


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
