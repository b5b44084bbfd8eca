# gloo.py - time gloo's collectives of f32, on request
# SPDX-License-Identifier: BSD-3-Clause
"""usage: gloo.py COLLECTIVE RANK SIZE ADDRESS:PORT
COLLECTIVE: all_reduce (in place), reduce_scatter, all_gather or broadcast.
Each line on standard input is a turn: bytes, those of the larger buffer, as
nccl-tests counts, and iterations.  Rank 0 answers with bytes, median seconds,
wrong elements.
"""
import sys

import torch
import torch.distributed as dist

from turns import take_turn


def prepare(collective, rank, size, n):
    """Return the call, its result, and the expected value of every element."""
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


def begin(collective, rank, size, n_bytes):
    """Make a checked call; return the call for timing, and the number of wrong
    elements."""
    call, result, want = prepare(collective, rank, size, n_bytes // 4)
    call()
    wrong = int((result != want).sum())
    if collective == "all_reduce":
        result.zero_()  # otherwise it grows
    call()
    return call, wrong


def main():
    collective, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://" + sys.argv[4],
                            rank=rank, world_size=size)
    known = {}
    for line in iter(sys.stdin.readline, ""):
        n_bytes, iterations = map(int, line.split())
        if n_bytes not in known:
            known[n_bytes] = begin(collective, rank, size, n_bytes)
        call, wrong = known[n_bytes]
        seconds = take_turn(call, iterations)
        if rank == 0:
            print(n_bytes, seconds, wrong, flush=True)
    dist.destroy_process_group()


main()
