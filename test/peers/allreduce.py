# allreduce.py - gloo's all-reduce of f32 in place, timed size by size
# SPDX-License-Identifier: BSD-3-Clause
"""usage: allreduce.py RANK SIZE ADDRESS:PORT ITERATIONS BYTES...
Rank 0 prints a line per size: bytes, median seconds, wrong elements.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist

WARM_UP = 2


def measure(rank, size, iterations, n_bytes):
    t = torch.full((n_bytes // 4,), float(rank + 1))
    dist.all_reduce(t)
    wrong = int((t != size * (size + 1) / 2).sum())
    t.zero_()
    times = []
    for _ in range(WARM_UP + iterations):
        start = time.perf_counter()
        dist.all_reduce(t)
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(n_bytes, statistics.median(times[WARM_UP:]), wrong, flush=True)


def main():
    rank, size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://" + sys.argv[3],
                            rank=rank, world_size=size)
    for n_bytes in sys.argv[5:]:
        measure(rank, size, int(sys.argv[4]), int(n_bytes))
    dist.destroy_process_group()


main()
