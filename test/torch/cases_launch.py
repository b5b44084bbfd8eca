# cases_launch.py - a rank with a launcher's variables; by torch_launch.py
# SPDX-License-Identifier: BSD-3-Clause
"""cases_launch.py LOCAL_SIZE, with the launcher's rank in TEST_RANK.  All ranks
are on this machine, at one agent or at several."""
import os
import sys

import torch

import sumwire.torch as hvd
from torch_rig import check

hvd.init()
rank, local_size = int(os.environ["TEST_RANK"]), int(sys.argv[1])
check(hvd.rank() == rank, f"rank {hvd.rank()}, but the launcher says {rank}")
check(hvd.local_size() == local_size, f"{hvd.local_size()} local ranks")
check(hvd.local_rank() == rank, f"local rank {hvd.local_rank()} of {rank}")
seen = hvd.allreduce(torch.eye(hvd.size())[rank], op=hvd.Sum)
check(bool((seen == 1).all()), f"each rank once: {seen}")
# Write once, because launchers may mix partial lines of two ranks.
os.write(1, f"rank {rank} of {hvd.size()} is right\n".encode())
