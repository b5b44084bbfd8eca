# torch_ops.py - sums and broadcasts of tensors, compared with gloo's
# SPDX-License-Identifier: BSD-3-Clause
import os
import tempfile

import torch_rig
import rig
from torch_rig import ROOT, TorchNet

CASES = ["sums", "bool", "averages", "integers_are_scaled", "in_place",
         "handles", "new_names", "new_sizes", "groups", "compression",
         "autograd", "threads", "copied_types", "horovod_api", "broadcast",
         "objects", "refused"]


def test_two_ranks():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *CASES)


def test_four_ranks():
    """Skip in quick runs: local_ranks also has more than two."""
    with TorchNet(4) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *(CASES[:2] if rig.IS_QUICK else CASES))


def test_without_numpy():
    with tempfile.TemporaryDirectory() as folder, TorchNet(2) as net:
        with open(os.path.join(folder, "numpy.py"), "w",
                  encoding="ascii") as f:
            f.write("raise ModuleNotFoundError('hidden')\n")
        net.start_all()
        net.ranks_ok("cases_ops.py", "without_numpy", env={
            "PYTHONPATH": f"{folder}:{os.path.join(ROOT, 'apps', 'torch')}"})


def test_local_ranks():
    """Run two processes at one agent, one at another."""
    with TorchNet(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_ops.py", *CASES)


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
