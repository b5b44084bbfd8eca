# cases_machines.py - ranks on several machines; by torch_machines.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import os
import re
import time

import torch
import torch.distributed as dist

from cases_backend import start
from sumwire import SumwireError
from sumwire.distributed import agents, attachment, methods, numa
from torch_rig import check, raises, run_cases


def groups():
    """(group, its ranks) of all, of a machine, of one rank of each; of those
    that this rank is in."""
    wanted = [(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)]
    made = [(dist.new_group(ranks), ranks) for ranks in wanted]
    return [pair for pair in made if dist.get_rank() in pair[1]]


def value(rank, n):
    """Small integers: sums of f32 are exact."""
    return ((torch.arange(n) * (rank + 3)) % 251).float()


def agent():
    """Of this rank: its socket, its configuration."""
    path = attachment._attachment.calls.client.agent
    with open(os.path.join(os.path.dirname(path), "agent.ini"),
              encoding="ascii") as f:
        return path, f.read()


def case_places():
    """Where this rank's agent is."""
    path, text = agent()
    ip = re.search(r"\[port udp\]\ntype = udp\nip = ([\d.]+)", text)[1]
    os.write(1, f"agent {path} {ip}\npid {os.getpid()}\n".encode())


def case_lcores():
    """On how many the agent polls, for itself and as a server; and what others
    would have."""
    n = os.environ["TEST_LCORES"]
    check(agent()[1].count(f"lcores = {n}\n") == 3, agent()[1])
    for homes, servers, want in (
            ([("a", 3), ("b", 3)], [], 2),
            ([("a", 3), ("b", 2)], [], 1),
            ([("a", 4), ("a", 4), ("b", 4), ("b", 4)], [], 2),
            ([("a", 64), ("b", 4), ("b", 4), ("b", 4)], [], 1),
            ([("a", 64), ("a", 64)], [], 1),
            ([("a", 64), ("b", 64)], [("10.0.0.9", 5700)], 1)):
        got = agents.lcores(homes, servers)
        check(got == want, f"{homes} {servers}: {got}")


class Gpu:
    pci_domain_id, pci_bus_id, pci_device_id = 0, 0x3b, 0


def have_gpu():
    """As a rank that computes on one."""
    torch.cuda.is_initialized = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device: Gpu


def case_near():
    """The agent may run on the one CPU of its node; this rank on all."""
    cpu = {int(os.environ["TEST_CPU"])}
    folder = os.path.dirname(attachment._attachment.calls.client.agent)
    agents = [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
              if folder in numa.read("/proc", pid, "cmdline")]
    check(agents and all(
        os.sched_getaffinity(pid) == cpu for pid in agents), f"{cpu} {agents}")
    check(os.sched_getaffinity(0) > cpu, "this rank may use all")


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


def first():
    """What does large tensors each machine first."""
    return [g.machines for g in methods._groups.values() if g.machines]


def check_sums(dtype, n, op, got, what):
    every = [value(r, n).to(dtype) for r in range(4)]
    want = sum(every)
    if op == dist.ReduceOp.AVG:
        want = want / 4
    if op == dist.ReduceOp.MAX:
        want = torch.stack(every).amax(0)
    check(torch.equal(got, want), f"{what}: {dtype} {n} {op}")


def case_first():
    check(len(first()) == 1, "one group is of several machines")
    sums = first()[0].sums
    for dtype in torch.float32, torch.float64, torch.int32, torch.int64:
        for n in 1 << 19, 524309, 5000011:
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG,
                       dist.ReduceOp.MAX):
                if op == dist.ReduceOp.AVG and not dtype.is_floating_point:
                    continue
                x = value(dist.get_rank(), n).to(dtype)
                dist.all_reduce(x, op)
                check_sums(dtype, n, op, x, "first")
    check(len(sums) == 1, "it was used")


def case_first_in_order():
    """Several at a time, large ones and small ones, which end in any order."""
    sizes = [700001, 5, 1 << 20, 3000, 2000003, 1]
    for step in range(5):
        tensors = [value(dist.get_rank(), n) for n in sizes]
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        futures = [w.get_future() for w in works[::2]]
        for i in torch.randperm(len(sizes)).tolist():
            works[i].wait()
            check_sums(torch.float32, sizes[i], dist.ReduceOp.SUM, tensors[i],
                       f"step {step}, {i}")
        for f in futures:
            f.wait()


def case_first_trained():
    """torch's DDP; the sums are exact, so weights are those of one process."""
    def step(model, inputs):
        for x in inputs:
            (model(x).sum() / len(inputs)).backward()
    torch.manual_seed(1)
    model = torch.nn.Linear(2000, 700, bias=False)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    xs = [value(r, 2000)[None] for r in range(4)]
    step(ddp, [xs[dist.get_rank()]])
    alone = torch.nn.Linear(2000, 700, bias=False)
    step(alone, xs)
    check(torch.equal(model.weight.grad, alone.weight.grad), "gradients")


def case_first_aborted():
    group = dist.new_group()
    check(len(first()) == 2, "the new group's")
    x = torch.ones(1 << 20)
    dist.all_reduce(x, group=group)
    if dist.get_rank() == 3:
        group.abort()
    else:
        for _ in range(2):
            with raises(SumwireError, "rank 3"):
                dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
    dist.barrier()
    dist.all_reduce(x)


def case_first_late():
    group = dist.new_group(timeout=datetime.timedelta(seconds=4))
    x = torch.ones(1 << 20)
    dist.all_reduce(x, group=group)
    if dist.get_rank() == 1:
        time.sleep(10)
        os._exit(0)
    try:
        dist.all_reduce(x, group=group)
    except SumwireError as e:
        os.write(1, f"late: {e}\n".encode())
    time.sleep(3)  # all are told while it is there
    os._exit(0)


def case_for_ever():
    for step in range(1 << 30):
        dist.all_reduce(torch.ones(1000))
        if step == 10:
            print("goes on", flush=True)


if __name__ == "__main__":
    numa.SYS = os.environ.get("TEST_SYS", numa.SYS)
    if "TEST_GPU" in os.environ:
        have_gpu()
    start()
    run_cases(globals())
