# common.py - shared by the examples: options, both ways of summing, timing
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import os
import statistics
import sys
import time

import torch

# Use the checkout's package if none is installed.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


def options(about, **defaults):
    """Return a parser with the options that all examples have; the caller adds
    others."""
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--ddp", choices=["sumwire", "gloo"], default="sumwire",
                   help="library that sums gradients: sumwire, or torch's DDP "
                        "over gloo [sumwire]")
    p.add_argument("--cross-barrier", action="store_true",
                   help="do not wait for sums in step(): update parameters "
                        "before their next use")
    p.add_argument("--asynchronous", action="store_true",
                   help="do not wait for other ranks; needs sumwire run "
                        "--asynchronous")
    p.add_argument("--device", type=torch.device, default="cpu",
                   help="device that computes, such as cpu, cuda or cuda:1 "
                        "[cpu]")
    p.add_argument("--bf16", action="store_true",
                   help="compute in bfloat16 where possible (autocast)")
    p.add_argument("--steps", type=int, default=defaults["steps"],
                   help="training steps [%(default)s]")
    p.add_argument("--batch", type=int, default=defaults["batch"],
                   help="samples per rank and step [%(default)s]")
    p.add_argument("--width", type=int, default=defaults["width"],
                   help="width of the layers [%(default)s]")
    p.add_argument("--lr", type=float, default=defaults["lr"],
                   help="learning rate [%(default)s]")
    return p


class Sumwire:
    """Sum gradients by sumwire."""

    def __init__(self, args):
        import sumwire.torch as hvd
        hvd.init()
        self.hvd, self.args = hvd, args
        self.rank, self.size = hvd.rank(), hvd.size()

    def wrap(self, model, optimizer):
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return model, self.hvd.DistributedOptimizer(
            optimizer, model.named_parameters(),
            cross_barrier=self.args.cross_barrier or None,
            asynchronous=self.args.asynchronous or None)

    def mean(self, value):
        return float(self.hvd.allreduce(torch.tensor(float(value)),
                                        name="mean"))

    def end(self):
        self.hvd.shutdown()


class Gloo:
    """Sum gradients by torch's DistributedDataParallel over gloo."""

    def __init__(self, args):
        import torch.distributed as dist
        dist.init_process_group("gloo")
        self.dist = dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def wrap(self, model, optimizer):
        return torch.nn.parallel.DistributedDataParallel(model), optimizer

    def mean(self, value):
        value = torch.tensor(float(value))
        self.dist.all_reduce(value)
        return float(value) / self.size

    def end(self):
        # Without it, gloo's threads may abort the program at its end.
        self.dist.barrier()
        self.dist.destroy_process_group()


def start(args):
    """Return the chosen way of summing; set the same seed on all ranks."""
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    return Gloo(args) if args.ddp == "gloo" else Sumwire(args)


class Clock:
    """Time steps, including the device's work. The first of each kind do not
    count, because they set up."""
    WARM_UP = 3

    def __init__(self, device):
        self.device = device
        self.times = {}
        self.began = None

    def begin(self):
        self.began = time.perf_counter()

    def end(self, kind):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.times.setdefault(kind, []).append(time.perf_counter() - self.began)

    def median_ms(self, kind):
        times = self.times[kind][self.WARM_UP:] or self.times[kind]
        return 1000 * statistics.median(times)


def run(args, job, model, loss_of, optimizer):
    """Train for args.steps; rank 0 prints the loss and a step's time.
    loss_of(model, step) computes the loss of this rank's part of a batch."""
    clock = Clock(args.device)
    if args.bf16:
        loss_of = torch.autocast(args.device.type, torch.bfloat16)(loss_of)
    # Time a step without communication, to compute its share. The weights stay
    # unchanged, and so does the run.
    for step in range(2 * Clock.WARM_UP + 4):
        clock.begin()
        loss_of(model, step).backward()
        model.zero_grad(set_to_none=True)
        clock.end("alone")
    model_run, optimizer = job.wrap(model, optimizer)
    mean = None
    for step in range(args.steps):
        clock.begin()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model_run, step)
        loss.backward()
        optimizer.step()
        clock.end("step")
        mean = float(loss.detach()) if mean is None else 0.9 * mean + 0.1 * float(loss.detach())
        if job.rank == 0 and (step + 1) % max(1, args.steps // 5) == 0:
            print(f"step {step + 1}: loss {mean:.3f}", flush=True)
    return clock, job.mean(mean)


def report(args, job, clock, model, result):
    """Print one line for a table; the update counts as communication."""
    job.end()
    if job.rank:
        return
    step, alone = clock.median_ms("step"), clock.median_ms("alone")
    n = sum(p.numel() for p in model.parameters())
    print(f"{args.ddp}: {job.size} ranks, {n:,} parameters, {result}, "
          f"step {step:.1f} ms, forward and backward alone {alone:.1f} ms, "
          f"remainder {max(0, 1 - alone / step):.0%}", flush=True)
