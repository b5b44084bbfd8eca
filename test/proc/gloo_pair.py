# gloo_pair.py - an all_reduce of gloo between two machines, one process on each
# SPDX-License-Identifier: BSD-3-Clause
"""gloo_pair.py RANK ADDRESS SETTLE SECONDS: rank 0 is at ADDRESS. After SETTLE
seconds the process counts for SECONDS, prints the number of bytes summed as a
JSON list of one, and both processes end. As many bytes went each way. Needs
PyTorch."""
import json
import sys
import time

import torch
import torch.distributed as dist

ELEMENTS = 1000000  # as a job's tensor in proc_bottleneck
PORT = 5202


def main(rank, address, settle, seconds):
    dist.init_process_group("gloo", f"tcp://{address}:{PORT}", rank=rank, world_size=2)
    tensor, goes_on = torch.zeros(ELEMENTS), torch.ones(1)
    dist.all_reduce(tensor)
    print("begins", flush=True)
    begin, n = None, 0
    start = time.monotonic()
    while goes_on:
        now = time.monotonic()
        if begin is None and now >= start + settle:
            begin, n = now, 0
        dist.all_reduce(tensor)
        n += 1
        now = time.monotonic()
        goes_on.fill_(begin is None or now < begin + seconds)
        dist.broadcast(goes_on, 0)
    if rank == 0:
        print(json.dumps([n * ELEMENTS * 4 * seconds / (now - begin)]), flush=True)
    dist.destroy_process_group()


main(int(sys.argv[1]), sys.argv[2], *map(float, sys.argv[3:]))
