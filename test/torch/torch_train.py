# torch_train.py - training compared with torch's own DDP over gloo
# SPDX-License-Identifier: BSD-3-Clause
import os

import torch_rig
import rig
from proc_tune import check_all_changed
from rig import check
from torch_rig import TorchNet

PARALLEL = ["ddp", "ddp_buffers", "comm_hook", "comm_hook_fails",
            "passes", "clipping", "scaler", "summed_again", "optimizer_state", "compressed", "dtypes", "no_gradient", "groups"]
BUNDLES = ["layout", "same_bits", "missing", "accumulated", "frozen", "added",
           "parallel"]


def test_optimizers():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "equal_to_gloo", "barrier_is_crossed",
                     "weights_by_the_back_door",
                     "written_by_the_back_door", "kept_list",
                     "crossing_is_asked_for")


def test_four_ranks():
    with TorchNet(4) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "gradients_in_bounds", "curves")


def test_tuned():
    with TorchNet(2) as net:
        net.start_all()
        ranks = net.ranks_ok("cases_train.py", "tuned")
        check("search 1, trial 1: " in ranks[0].log(), ranks[0].log())
        check("search" not in ranks[1].log(), "one rank decides")
        check_all_changed(net)


def test_compiled():
    torch_rig.need_compile()
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_train.py", "compiled")


def test_parallel():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_parallel.py", *PARALLEL)


def test_bundles():
    """Run two ranks; then two at one agent and one at another, whose sums are
    copied."""
    for local in rig.layouts((1, 1), (2, 1)):
        with TorchNet(2, local=local) as net:
            net.start_all()
            net.ranks_ok("cases_bundle.py", *BUNDLES)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
