# nccl.py - all_reduce by NCCL: right for all types, and how fast
# SPDX-License-Identifier: BSD-3-Clause
"""Each process is a node of NCCL's, also where all have one GPU:

    export LD_LIBRARY_PATH=$PWD/build/pmd/nccl NCCL_DEBUG=INFO
    NCCL_NET_PLUGIN=sumwire NCCL_COLLNET_ENABLE=1 NCCL_ALGO=CollnetChain \\
        build/apps/sumwire run -np 2 python3 test/peers/nccl.py
    NCCL_NET_PLUGIN=none build/apps/sumwire run -np 2 python3 test/peers/nccl.py

NCCL's log says which network it took.  It was not run so: there was no GPU.
--backend gloo tries the program itself."""
import argparse
import os
import statistics
import time

import torch
from torch import distributed as dist

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16,
         torch.int8, torch.uint8, torch.int32, torch.int64)
OPERATIONS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT,
              "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
REDUCE = {"sum": lambda x: x.sum(0), "prod": lambda x: x.prod(0),
          "min": lambda x: x.amin(0), "max": lambda x: x.amax(0)}
ROUNDS = 20


def given(rank, n):
    """Return 1 or 2: exact in all types, also in products of eight ranks."""
    return (torch.arange(n) * 7 + rank * 3) % 2 + 1


def check(place, types, n=100_003):
    """Check every type with every operation."""
    all_of_them = torch.stack([given(r, n) for r in range(dist.get_world_size())])
    for dtype in types:
        for name, op in OPERATIONS.items():
            x = given(dist.get_rank(), n).to(place, dtype)
            dist.all_reduce(x, op)
            want = REDUCE[name](all_of_them)
            assert torch.equal(x.cpu().long(), want), f"{name} of {dtype}"


def measure(place, n_bytes):
    """Return the median Gb/s of the buffer, each way."""
    x = torch.ones(n_bytes // 4, device=place)
    times = []
    for _ in range(ROUNDS):
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        start = time.perf_counter()
        dist.all_reduce(x)
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        times.append(time.perf_counter() - start)
        x.fill_(1)
    return 8e-9 * n_bytes / statistics.median(times[3:])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--backend", choices=["nccl", "gloo"], default="nccl")
    p.add_argument("--largest", type=int, default=256, help="MiB")
    args = p.parse_args()
    os.environ["NCCL_HOSTID"] = "node" + os.environ["RANK"]
    place = torch.device("cpu" if args.backend == "gloo" else "cuda")
    dist.init_process_group(args.backend)
    check(place, [t for t in TYPES if place.type == "cuda" or
                  t != torch.bfloat16])  # gloo lacks it
    mib = 1
    while mib <= args.largest:
        rate = measure(place, mib << 20)
        if dist.get_rank() == 0:
            print(f"{mib} MiB: {rate:.1f} Gb/s", flush=True)
        mib *= 4
    dist.barrier()
    dist.destroy_process_group()
    print("right", flush=True)


if __name__ == "__main__":
    main()
