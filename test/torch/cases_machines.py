# cases_machines.py - ranks on several machines; by torch_machines.py
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

import torch
import torch.distributed as dist

from cases_backend import start
from sumwire.distributed import attachment
from torch_rig import check, run_cases


def groups():
    """(group, its ranks) of all, of a machine, of one rank of each; of those
    that this rank is in."""
    wanted = [(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)]
    made = [(dist.new_group(ranks), ranks) for ranks in wanted]
    return [pair for pair in made if dist.get_rank() in pair[1]]


def value(rank, n):
    """Small integers: sums of f32 are exact."""
    return ((torch.arange(n) * (rank + 3)) % 251).float()


def case_places():
    """Where this rank's agent is."""
    path = attachment._attachment.calls.client.agent
    with open(os.path.join(os.path.dirname(path), "agent.ini"),
              encoding="ascii") as f:
        ip = re.search(r"\[port udp\]\ntype = udp\nip = ([\d.]+)", f.read())[1]
    os.write(1, f"agent {path} {ip}\npid {os.getpid()}\n".encode())


def case_sums():
    for n in 1, 64, 70001, 3000000:
        for group, ranks in groups():
            x = value(dist.get_rank(), n)
            dist.all_reduce(x, group=group)
            check(torch.equal(x, sum(value(r, n) for r in ranks)),
                  f"sum of {n} in {ranks}")


def case_parts():
    """reduce_scatter and all_gather."""
    for n in 1, 70001:
        for group, ranks in groups():
            part = torch.empty(n)
            whole = value(dist.get_rank(), n * len(ranks))
            dist.reduce_scatter_tensor(part, whole, group=group)
            dist.all_gather_into_tensor(whole, part, group=group)
            check(torch.equal(whole, sum(value(r, n * len(ranks))
                                         for r in ranks)), f"{n} in {ranks}")


def case_moves():
    """Also what gloo does, whose interfaces nobody has named."""
    for group, ranks in groups():
        for root in ranks:
            x = value(dist.get_rank(), 1000)
            dist.broadcast(x, root, group=group)
            check(torch.equal(x, value(root, 1000)), f"broadcast of {root}")
        got = [torch.empty(10) for _ in ranks]
        is_root = dist.get_rank() == ranks[0]
        dist.gather(value(dist.get_rank(), 10), got if is_root else None,
                    ranks[0], group=group)
        check(not is_root or torch.equal(torch.stack(got), torch.stack(
            [value(r, 10) for r in ranks])), f"gather of {ranks}")


def case_for_ever():
    for step in range(1 << 30):
        dist.all_reduce(torch.ones(1000))
        if step == 10:
            print("goes on", flush=True)


if __name__ == "__main__":
    start()
    run_cases(globals())
