# gpu.py - collectives and trainings on a GPU; test/cuda/run starts it
# SPDX-License-Identifier: BSD-3-Clause
"""sumwire run -np 2 python3 test/cuda/gpu.py NAME...

Each rank runs case_NAME() for each name.  All ranks may share one GPU.  The
default group uses sumwire; another group of the same ranks uses gloo.
SUMWIRE_TEST_PLACE=cpu tries the program without a GPU."""
import json
import os
import statistics
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

try:
    import sumwire.torch as hvd
except ImportError:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                 "..", "..", "apps", "torch"))
    import sumwire.torch as hvd

PLACE = torch.device(os.environ.get("SUMWIRE_TEST_PLACE", "cuda"))
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
N = 300_007  # elements: several full chunks and a partial one
IS_SMALL = os.environ.get("SUMWIRE_TEST_SMALL") == "1"
ROUNDS = 3 if IS_SMALL else 15
STREAMS = 40


def check(is_so, text):
    if not is_so:
        raise AssertionError(f"rank {dist.get_rank()}: {text}")


def sample(dtype, n=N, rank=None):
    """Values that differ by rank; their sums are exact in every type."""
    rank = dist.get_rank() if rank is None else rank
    return ((torch.arange(n, device=PLACE) * 7 + rank * 3) % 5).to(dtype)


def all_samples(dtype, n=N):
    return torch.stack([sample(dtype, n, r)
                        for r in range(dist.get_world_size())])


def synchronize():
    if PLACE.type == "cuda":
        torch.cuda.synchronize()


def delay(cycles=50_000_000):
    """Keep the current stream busy for some 30 ms."""
    if PLACE.type == "cuda":
        torch.cuda._sleep(cycles)


def case_collectives():
    """Compare every kind and type with the results that PyTorch computes."""
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype in FLOATS + INTEGERS:
        each = all_samples(dtype)
        for op, want in ((dist.ReduceOp.SUM, each.sum(0).to(dtype)),
                         (dist.ReduceOp.MIN, each.amin(0)),
                         (dist.ReduceOp.MAX, each.amax(0)),
                         (dist.ReduceOp.PRODUCT, each.prod(0).to(dtype))):
            x = sample(dtype)
            dist.all_reduce(x, op)
            check(torch.equal(x, want), f"all_reduce {op} of {dtype}")
        x = sample(dtype)
        dist.broadcast(x, size - 1)
        check(torch.equal(x, each[size - 1]), f"broadcast of {dtype}")
        x = torch.empty(size * N, dtype=dtype, device=PLACE)
        dist.all_gather_into_tensor(x, sample(dtype))
        check(torch.equal(x, each.flatten()), f"all_gather of {dtype}")
        part = torch.empty(N, dtype=dtype, device=PLACE)
        whole = sample(dtype, size * N)
        dist.reduce_scatter_tensor(part, whole)
        want = all_samples(dtype, size * N).sum(0).to(dtype)
        check(torch.equal(part, want[rank * N:(rank + 1) * N]),
              f"reduce_scatter of {dtype}")
    x = sample(torch.float32)
    dist.reduce(x, 0)
    if rank == 0:
        check(torch.equal(x, all_samples(torch.float32).sum(0)), "reduce")
    dist.barrier()


def case_streams():
    """A call waits for the work in its stream, and later work in that stream
    sees the sum, even if wait() does not block the thread."""
    size = dist.get_world_size()
    total = size * (size + 1) / 2
    side = torch.cuda.Stream() if PLACE.type == "cuda" else None
    for stream in (None, side):
        with torch.cuda.stream(stream):
            for n in (5, N, 4_000_000):
                x = torch.zeros(n, device=PLACE)
                began = time.perf_counter()
                delay()
                x += dist.get_rank() + 1
                work = dist.all_reduce(x, async_op=True)
                work.wait()
                waited = time.perf_counter() - began
                y = x * 2
                x.zero_()
                synchronize()
                check(bool((y == 2 * total).all()), f"sum of {n}")
                if dist.get_rank() == 0:
                    print(json.dumps({
                        "wait_behind_busy_stream": n,
                        "blocked_ms": round(1e3 * waited, 2), "of_ms": round(
                            1e3 * (time.perf_counter() - began), 2)}),
                        flush=True)
    works = []
    for i in range(30):
        x = torch.full((10_000 * (i % 3 + 1),), float(dist.get_rank() + 1),
                       device=PLACE)
        works.append((x, dist.all_reduce(x, async_op=True)))
    for x, work in reversed(works):
        work.wait()
        check(bool((x == total).all()), "30 at once")


def case_many_streams():
    """40 user streams, each with work before and after its own sum."""
    if PLACE.type != "cuda":
        streams = [None] * STREAMS
    else:
        streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    total = sum(r + 1 for r in range(dist.get_world_size()))
    began, results = time.perf_counter(), []
    for i, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            x = torch.full((50_000,), float(dist.get_rank() + 1), device=PLACE)
            delay(1_000_000)
            work = dist.all_reduce(x, async_op=True)
            results.append((i, work, x))
    for i, work, x in results:
        with torch.cuda.stream(streams[i]):
            work.wait()
            x += i
    synchronize()
    for i, _, x in results:
        check(bool((x == total + i).all()), f"stream {i}")
    if dist.get_rank() == 0:
        print(json.dumps({"streams": STREAMS, "ms": round(
            1e3 * (time.perf_counter() - began), 1)}), flush=True)


def case_captured():
    """Inside a capture a call fails with a message; a capture in another thread
    is not affected."""
    if PLACE.type != "cuda":
        return
    x = torch.ones(1000, device=PLACE)
    graph, text = torch.cuda.CUDAGraph(), ""
    try:
        with torch.cuda.graph(graph):
            try:
                dist.all_reduce(x)
            except Exception as e:  # pylint: disable=broad-except
                text = str(e)
    except RuntimeError:
        pass
    check("captur" in text, f"captured: {text!r}")
    y, stop = torch.zeros(1000, device=PLACE), threading.Event()

    def sum_meanwhile():
        torch.cuda.set_device(0)
        for _ in range(50):
            with torch.cuda.stream(torch.cuda.Stream()):
                x.fill_(1)
                dist.all_reduce(x)
        stop.set()
    torch.cuda.synchronize()
    thread = threading.Thread(target=sum_meanwhile)
    thread.start()
    n = 0
    stream = torch.cuda.Stream()
    while not stop.is_set():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            y.add_(1)
            graph.capture_end()
        graph.replay()
        stream.synchronize()
        torch.cuda.synchronize()
        n += 1
    thread.join()
    check(int(y[0]) == n, f"{n} replays gave {int(y[0])}")


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(256, 2000), torch.nn.Tanh(),
                               torch.nn.Linear(2000, 1500), torch.nn.Tanh(),
                               torch.nn.Linear(1500, 10)).to(PLACE)


def train(net, optimizer, steps=8):
    losses = []
    for step in range(steps):
        torch.manual_seed(100 * step + dist.get_rank())
        optimizer.zero_grad()
        loss = net(torch.randn(16, 256).to(PLACE)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def weights(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


def trained_by_gloo():
    net = model()
    group = dist.new_group(backend="gloo")
    losses = train(DistributedDataParallel(net, process_group=group),
                   torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    return losses, weights(net)


def case_ddp():
    """With two ranks, DDP over sumwire has the same bits as DDP over gloo."""
    net = model()
    losses = train(DistributedDataParallel(net),
                   torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    want, want_weights = trained_by_gloo()
    if dist.get_world_size() == 2:
        check(losses == want, f"losses {losses} beside {want}")
        check(torch.equal(weights(net), want_weights), "weights")
    check(torch.allclose(weights(net), want_weights, atol=1e-5), "weights")


def case_horovod():
    """hvd.DistributedOptimizer trains to the same weights, and hvd's calls sum.
    Runs alone."""
    net = model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
        net.named_parameters())
    train(net, optimizer)
    _, want = trained_by_gloo()
    check(torch.allclose(weights(net), want, rtol=1e-4, atol=1e-5), "weights")
    x = hvd.allreduce(torch.full((N,), float(hvd.rank()), device=PLACE),
                      op=hvd.Sum, name="x")
    check(x.device.type == PLACE.type, x.device)
    check(bool((x == sum(range(hvd.size()))).all()), "allreduce")
    x = hvd.broadcast(torch.full((N,), float(hvd.rank()), device=PLACE), 1,
                      name="b")
    check(bool((x == 1).all()), "broadcast")


def case_sharded():
    """fully_shard trains to the same weights as DDP."""
    from torch.distributed.fsdp import fully_shard
    net = model()
    for layer in net:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    train(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    got = torch.cat([p.full_tensor().detach().reshape(-1)
                     for p in net.parameters()])
    _, want = trained_by_gloo()
    check(torch.allclose(got, want, rtol=1e-4, atol=1e-5), "weights")


def timed(call, n):
    synchronize()
    dist.barrier()
    began = time.perf_counter()
    for _ in range(n):
        call()
    synchronize()
    return (time.perf_counter() - began) / n


def quartiles(values):
    q = statistics.quantiles(values, n=4)
    return {"p25": q[0], "p50": q[1], "p75": q[2]}


def case_rates():
    """Time all_reduce of GPU memory over sumwire and over gloo alternately."""
    group = dist.new_group(backend="gloo")
    sizes = 4 << 10, 64 << 10, 1 << 20, 25 << 20, 256 << 20
    for n_bytes in sizes[:3] if IS_SMALL else sizes:
        x = torch.zeros(n_bytes // 4, device=PLACE)
        n = max(1, min(50, (8 << 20) // n_bytes))
        rounds = ROUNDS if n_bytes < 256 << 20 else 5
        for g in (None, group):
            timed(lambda g=g: dist.all_reduce(x, group=g), 2)
        times = {"sumwire": [], "gloo": []}
        for _ in range(rounds):
            for name, g in (("sumwire", None), ("gloo", group)):
                times[name].append(
                    timed(lambda g=g: dist.all_reduce(x, group=g), n))
        ratio = [b / a for a, b in zip(times["sumwire"], times["gloo"])]
        if dist.get_rank() == 0:
            print(json.dumps({
                "all_reduce_bytes": n_bytes,
                "sumwire_us": {k: round(1e6 * v, 1) for k, v in
                               quartiles(times["sumwire"]).items()},
                "gloo_us": {k: round(1e6 * v, 1) for k, v in
                            quartiles(times["gloo"]).items()},
                "gloo_over_sumwire": {k: round(v, 2) for k, v in
                                      quartiles(ratio).items()}}), flush=True)


def main():
    if PLACE.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) %
                              torch.cuda.device_count())
    is_horovod = "horovod" in sys.argv  # a rank is in one job at a time
    dist.init_process_group("gloo" if is_horovod else "sumwire")
    if is_horovod:
        hvd.init()
    for name in sys.argv[1:]:
        began = time.perf_counter()
        globals()["case_" + name]()
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"ok {name} ({time.perf_counter() - began:.1f} s)",
                  flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
