# gloo.py - gloo's collectives of f32, timed size by size
# SPDX-License-Identifier: BSD-3-Clause
"""usage: gloo.py COLLECTIVE RANK SIZE ADDRESS:PORT ITERATIONS BYTES...
COLLECTIVE: all_reduce (in place), reduce_scatter, all_gather or broadcast.
Bytes are those of the larger buffer, as nccl-tests counts.  Rank 0 prints a
line per size: bytes, median seconds, wrong elements.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist

WARM_UP = 2


def prepare(collective, rank, size, n):
    """What to call, the result, and what every element of it is to be."""
    whole = torch.full((n,), float(rank + 1))
    total = size * (size + 1) / 2
    if collective == "all_reduce":
        return lambda: dist.all_reduce(whole), whole, total
    if collective == "broadcast":
        return lambda: dist.broadcast(whole, 0), whole, 1
    part = torch.full((n // size,), float(rank + 1))
    if collective == "all_gather":
        result = torch.empty(n // size * size)
        return (lambda: dist.all_gather_into_tensor(result, part),
                result[:n // size], 1)
    return lambda: dist.reduce_scatter_tensor(part, whole), part, total


def measure(collective, rank, size, iterations, n_bytes):
    call, result, want = prepare(collective, rank, size, n_bytes // 4)
    call()
    wrong = int((result != want).sum())
    if collective == "all_reduce":
        result.zero_()  # or it grows
    times = []
    for _ in range(WARM_UP + iterations):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(n_bytes, statistics.median(times[WARM_UP:]), wrong, flush=True)


def main():
    collective, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://" + sys.argv[4],
                            rank=rank, world_size=size)
    for n_bytes in sys.argv[6:]:
        measure(collective, rank, size, int(sys.argv[5]), int(n_bytes))
    dist.destroy_process_group()


main()
