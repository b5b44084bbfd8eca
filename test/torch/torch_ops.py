# torch_ops.py - sums and broadcasts of tensors against gloo's
# SPDX-License-Identifier: BSD-3-Clause
import os
import tempfile

import torch_rig
from rig import check
from slurm import free_port
from torch_rig import HERE, TorchNet

CASES = ["sums", "bool", "averages", "in_place", "handles", "compression",
         "autograd", "broadcast", "objects", "refused"]


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


def test_torchrun():
    """Ranks by its variables, all at one agent."""
    with tempfile.TemporaryDirectory() as logs, \
            TorchNet(1, local=(2,)) as net:
        net.start_all()
        pairs = net.environment(0)
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TEST_STORE",
                     "SUMWIRE_LAUNCHER"):
            del pairs[name]
        p = net.run("torchrun", "/usr/bin/env", "-u", "SUMWIRE_LAUNCHER",
                    *[f"{k}={v}" for k, v in pairs.items()],
                    torch_rig.python(), "-m", "torch.distributed.run",
                    # not --standalone, which needs this host's name resolved
                    "--nnodes=1", f"--master_port={free_port()}",
                    "--nproc_per_node", "2",
                    # PyTorch 1.13 cannot do without them on Python 3.11.
                    "--redirects=1", "--tee=1", "--log_dir", logs,
                    os.path.join(HERE, "cases_ops.py"), "ranks", "sums")
        p.wait_ok()
        check(p.out().count("ok ranks") == 2 and p.out().count("ok sums") == 2,
              "two ranks ran")


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
