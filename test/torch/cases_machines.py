# cases_machines.py - ranks on several machines; by torch_machines.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import functools
import os
import re
import threading
import time

import torch
import torch.distributed as dist

import stream_rig
from cases_backend import start
from own_agent import agent_of_rank, agent_pid
from sumwire import SumwireError
from sumwire.distributed import agents, local, methods, numa, sums
from torch_rig import check, raises, run_cases


def groups():
    """Return groups and their ranks: all ranks, each machine's, one rank of
    each machine; only groups with this rank."""
    wanted = [(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)]
    made = [(dist.new_group(ranks), ranks) for ranks in wanted]
    return [pair for pair in made if dist.get_rank() in pair[1]]


def value(rank, n):
    """Small integers: sums of f32 are exact."""
    return ((torch.arange(n) * (rank + 3)) % 251).float()


def case_places():
    """Check where this rank's agent is."""
    path, text = agent_of_rank()
    ip = re.search(r"\[port udp\]\ntype = udp\nip = ([^/]+)", text)[1]
    os.write(1, f"agent {path} {ip}\npid {os.getpid()}\n".encode())


def case_lcores():
    """Check on how many cores the agent polls, for itself and as a server, and
    the numbers for other layouts."""
    n, (_, text) = os.environ["TEST_LCORES"], agent_of_rank()
    check(text.count(f"lcores = {n}\n") == 3, text)
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
    """Pretend that this rank computes on a GPU."""
    torch.cuda.is_initialized = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device: Gpu


def case_near():
    """The agent may use only the one CPU of its node; this rank may use all."""
    cpu = {int(os.environ["TEST_CPU"])}
    cpus = os.sched_getaffinity(agent_pid(agent_of_rank()[0]))
    check(cpus == cpu, f"the agent may use {cpus}, not {cpu}")
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
    """Also use gloo's methods; no variable names gloo's interfaces."""
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
    """Return the methods that sum large tensors within each machine first."""
    return [g.machines for g in methods._groups.values() if g.machines]


@functools.lru_cache(maxsize=None)
def reduced(n, op):
    """Return the result for the values of all four ranks, exact in each type."""
    every = torch.stack([value(r, n) for r in range(4)])
    if op == dist.ReduceOp.MAX:
        return every.amax(0)
    return every.sum(0) / (4 if op == dist.ReduceOp.AVG else 1)


def check_sums(dtype, n, op, got, what):
    check(torch.equal(got, reduced(n, op).to(dtype)),
          f"{what}: {dtype} {n} {op}")


def case_first():
    check(len(first()) == 1, "one group is of several machines")
    sums = first()[0].sums
    for n in 1 << 19, 524309, 5000011:
        mine = value(dist.get_rank(), n)
        for dtype in torch.float32, torch.float64, torch.int32, torch.int64:
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG,
                       dist.ReduceOp.MAX):
                if op == dist.ReduceOp.AVG and not dtype.is_floating_point:
                    continue
                x = mine.to(dtype, copy=True)
                dist.all_reduce(x, op)
                check_sums(dtype, n, op, x, "first")
    check(len(sums) == 1, "it was used")


def case_first_in_order():
    """Start several large and small ones at once; they end in any order."""
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
    tensors = [value(dist.get_rank(), n) for n in sizes]
    for x in tensors:
        dist.all_reduce(x, async_op=True)
    dist.barrier()
    for n, x in zip(sizes, tensors):
        check_sums(torch.float32, n, dist.ReduceOp.SUM, x, "behind a barrier")


def case_first_then():
    """A dependent call waits for the one before."""
    def again(future):
        [x] = future.value()
        dist.all_reduce(x, async_op=True).get_future().wait()
        dist.barrier()
        return x
    x = torch.ones(1 << 20)
    x = dist.all_reduce(x, async_op=True).get_future().then(again).wait()
    check(bool((x == dist.get_world_size() ** 2).all()), x)


def case_first_trained():
    """Use torch's DDP; the sums are exact, so weights equal those of one
    process."""
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
    dist.barrier()  # an abort may fail a sum that other ranks still wait for
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
    time.sleep(3)  # until all have the error
    os._exit(0)


def backend_of(group=None):
    """Return the group's backend. Its works are ours; a group's are torch's
    from 2.14 on."""
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


def by_streams(group=None):
    """Send the group's large tensors by streams (stream_rig) from now on.
    Return the object that sums them."""
    machines = backend_of(group).machines
    if not machines.sums:
        dist.all_reduce(torch.ones(1 << 20), group=group)
    [(device, way)] = machines.sums.items()
    if not isinstance(way, sums.StreamSums):
        way = machines.sums[device] = stream_rig.put_under(way)
        machines.calls = machines.group.calls = way.calls
    return way


def case_streams():
    """wait() returns before the sum completes; the waiting stream then has the
    sum."""
    way = by_streams()
    gate = way.stream.stream.gate
    for n in 1 << 19, 524309, 5000011:
        for op in dist.ReduceOp.SUM, dist.ReduceOp.AVG:
            x = value(dist.get_rank(), n)
            gate.clear()
            work = backend_of().allreduce(x, op)
            work.wait()
            check(torch.equal(x, value(dist.get_rank(), n)), "it is done")
            check(not work.is_completed(), "it has ended")
            with raises(SumwireError, "timed out after 0.1 s"):
                work.wait(datetime.timedelta(seconds=0.1))
            gate.set()
            stream_rig.current().drain()
            check_sums(torch.float32, n, op, x, "streams")
            check(work.is_completed(), "it has not ended")
            for used in way.stream.stream.used, way.gathers.stream.used:
                check(any(t.data_ptr() == x.data_ptr() for t in used), "memory")
    check(threading.active_count() < 20, "threads")


def case_streams_behind():
    """A call starts after the earlier work of the current stream."""
    by_streams()
    caller = stream_rig.current()
    for n in 1 << 19, 524309:
        x = torch.zeros(n)
        caller.gate.clear()
        caller.do(lambda: x.copy_(value(dist.get_rank(), n)))
        dist.all_reduce(x)
        caller.gate.set()
        caller.drain()
        check_sums(torch.float32, n, dist.ReduceOp.SUM, x, "behind")


def case_streams_together():
    """The second tensor is scattered and sent to the other machine while the
    first still waits for it."""
    way, me = by_streams(), dist.get_rank()
    stream = way.stream.stream
    if me >= 2:
        stream.gate.clear()
    both = [value(me, n) for n in (524309, 1 << 19)]
    works = [backend_of().allreduce(x) for x in both]
    if me >= 2:
        dist.recv(torch.empty(1), me - 2)
        stream.gate.set()
    else:
        stream.drain()
        check(not works[0].is_completed(), "the first is open")
        dist.send(torch.ones(1), me + 2)
    for work, x in zip(works, both):
        work.wait()
        stream_rig.current().drain()
        check_sums(torch.float32, len(x), dist.ReduceOp.SUM, x, "together")


def case_streams_in_order():
    """Each rank waits in an order of its own, for large and small tensors."""
    by_streams()
    sizes = [700001, 5, 1 << 20, 3000, 2000003, 1]
    for step in range(5):
        tensors = [value(dist.get_rank(), n) for n in sizes]
        works = [backend_of().allreduce(x) for x in tensors]
        g = torch.Generator().manual_seed(10 * step + dist.get_rank())
        for i in torch.randperm(len(sizes), generator=g).tolist():
            works[i].wait()
            stream_rig.current().drain()
            check_sums(torch.float32, sizes[i], dist.ReduceOp.SUM, tensors[i],
                       f"step {step}, {i}")


def case_streams_future():
    """The future completes when the other machines have finished, and its
    stream waits for the remaining steps."""
    way = by_streams()
    x = value(dist.get_rank(), 1 << 20)
    way.gathers.stream.gate.clear()
    work = backend_of().allreduce(x)
    [got] = work.get_future().wait()
    check(got is x and not work.is_completed(), "the gather is held up")
    event = work.marks[0].event
    [stream] = [s for s in stream_rig.of_threads if event in s.awaited]
    way.gathers.stream.gate.set()
    stream.drain()
    check_sums(torch.float32, len(x), dist.ReduceOp.SUM, x, "future")


def case_streams_fail():
    """Waiting calls return; the future gets the error, and so does the next
    call at all ranks, including ranks of another place."""
    group, me = dist.new_group(), dist.get_rank()
    way = by_streams(group)
    dist.barrier()  # all have done the sums of by_streams()
    if me >= 2:
        way.stream.stream.gate.clear()
    work = backend_of(group).allreduce(torch.ones(1 << 20))
    future = work.get_future()
    work.wait()
    if me == 3:
        way.calls.abort_group(way.cross, "it has enough")
    way.stream.stream.gate.set()
    stream_rig.current().drain()
    if me % 2:
        with raises(RuntimeError, "rank 3 aborted", "it has enough"):
            future.wait()
        with raises(SumwireError, "rank 3 aborted", "it has enough"):
            work.wait()
    else:
        future.wait()
    dist.barrier()
    for n in 1 << 20, 1 << 20, 3:
        with raises(SumwireError, "rank 3 aborted", "it has enough"):
            dist.all_reduce(torch.ones(n), group=group)
    dist.destroy_process_group(group)
    x = value(me, 1 << 20)
    dist.all_reduce(x)
    stream_rig.current().drain()
    check_sums(torch.float32, len(x), dist.ReduceOp.SUM, x, "another group")


def case_streams_closed():
    """Open calls end, and torch's groups are kept."""
    group = dist.new_group()
    way = by_streams(group)
    way.stream.stream.gate.clear()
    work = backend_of(group).allreduce(torch.ones(1 << 20))
    work.wait()
    dist.barrier()
    dist.destroy_process_group(group)
    check(way.local.real in local._kept, "kept")
    way.stream.stream.gate.set()
    stream_rig.current().drain()
    with raises(SumwireError, "has closed"):
        work.wait()


def case_for_ever():
    for step in range(1 << 30):
        dist.all_reduce(torch.ones(1000))
        if step == 10:
            print("goes on", flush=True)


def case_until_told():
    """Sum until a file exists."""
    os.write(1, f"agent_pid {agent_pid(agent_of_rank()[0])}\n".encode())
    told, step = torch.zeros(1), 0
    while not told.item():
        told.fill_(os.path.exists(os.environ["TEST_TOLD"]))
        dist.all_reduce(told, op=dist.ReduceOp.MAX)
        x = value(dist.get_rank(), 70001)
        dist.all_reduce(x)
        check(torch.equal(x, sum(value(r, 70001) for r in
                                 range(dist.get_world_size()))), f"step {step}")
        step += 1
        if step == 10:
            print("goes on", flush=True)


if __name__ == "__main__":
    numa.SYS = os.environ.get("TEST_SYS", numa.SYS)
    if "TEST_CPUS" in os.environ:
        numa.allowed = lambda: set(range(int(os.environ["TEST_CPUS"])))
    if "TEST_GPU" in os.environ:
        have_gpu()
    start()
    run_cases(globals())
