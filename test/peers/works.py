# works.py - run collectives and training steps over a backend of torch, on request
# SPDX-License-Identifier: BSD-3-Clause
"""usage: works.py BACKEND RANK SIZE, with MASTER_ADDR and MASTER_PORT. Each
line on standard input is a turn: the number of a work in work_list.py, and
iterations. Rank 0 answers with that number, median seconds, wrong elements. It
knows only sumwire's name and import, except in fsdp_memory, ddp_hook and
sw_coll, for which PEERS_COLL names the library of coll.c."""
import ctypes
import os
import statistics
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.join(HERE, "..", "..", "apps", "torch")
sys.path += [TORCH, os.path.join(TORCH, "examples")]

import digits  # noqa: E402
import text  # noqa: E402
from turns import take_turn  # noqa: E402
from work_list import WORKS  # noqa: E402

BATCH = 8
MOMENTUM = 0.9


def all_reduce(n):
    x = torch.ones(n)
    dist.all_reduce(x)
    wrong = int((x != dist.get_world_size()).sum())
    x.zero_()  # otherwise it grows
    return lambda: dist.all_reduce(x), wrong


class InC:
    """Calls all_reduce by sw_coll in the C of coll.c."""

    def __init__(self, n):
        self.x, pointer = torch.zeros(n), ctypes.c_void_p
        self.lib = ctypes.CDLL(os.environ["PEERS_COLL"])
        self.lib.sw_peer_turn.argtypes = [pointer, pointer, pointer,
                                          ctypes.c_uint64, ctypes.c_uint32,
                                          pointer]

    def turn(self, iterations):
        """Return the median seconds, as take_turn does."""
        ours, seconds = dist.group.WORLD, (ctypes.c_double * iterations)()
        ours = ours._get_backend(torch.device("cpu"))
        if self.lib.sw_peer_turn(
                ours.calls.client.pointer, ours.group.pointer,
                self.x.data_ptr(), self.x.numel(), iterations, seconds):
            raise RuntimeError("sw_coll has failed")
        return statistics.median(seconds)


def future(n):
    """Return a future like the one of DDP for a bucket."""
    x = torch.zeros(n)
    return lambda: dist.all_reduce(x, async_op=True).get_future().wait(), 0


def reduce_scatter(n):
    size = dist.get_world_size()
    whole, part = torch.ones(n), torch.empty(n // size)
    dist.reduce_scatter_tensor(part, whole)
    return (lambda: dist.reduce_scatter_tensor(part, whole),
            int((part != size).sum()))


def net_of_digits(width, batch):
    (images, labels), _ = digits.load()
    model = digits.build(width)

    def loss_of(net):
        at = torch.randint(len(images), (batch,))
        return torch.nn.functional.cross_entropy(net(images[at]), labels[at])
    return model, loss_of


def net_of_text(width, length, batch):
    chars, n = text.load()
    model = text.Transformer(n, width, 2, length)
    span = torch.arange(length + 1)

    def loss_of(net):
        piece = chars[torch.randint(len(chars) - length - 1, (batch, 1)) + span]
        return torch.nn.functional.cross_entropy(
            net(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
    return model, loss_of


# In digits-one, communication is the bottleneck. Computation reads and writes
# each parameter a few times, however small the batch is, so a step of
# digits-wide is mostly computation if the ranks share memory. With one sample
# and without momentum, at least half of gloo's step is communication.
NETS = {"digits": lambda: net_of_digits(256, BATCH),
        "digits-wide": lambda: net_of_digits(2048, BATCH),
        "digits-one": lambda: net_of_digits(2048, 1),
        "text": lambda: net_of_text(128, 64, BATCH),
        "text-wide": lambda: net_of_text(512, 16, 2)}


def sharded(model, has_memory):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    model = fully_shard(model)
    if has_memory and dist.get_backend() != "gloo":
        model.set_allocate_memory_from_process_group_for_comm(True)
    return model


def sum_nothing(_, bucket):
    """A hook of DDP that leaves buckets unchanged, so that only DDP's own
    copies to its buckets and back remain."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def training(how, net):
    torch.manual_seed(1)
    model, loss_of = NETS[net]()
    model = (DistributedDataParallel(model) if how.startswith("ddp")
             else sharded(model, how == "fsdp_memory"))
    if how == "ddp_alone":
        model.register_comm_hook(None, sum_nothing)
    if how == "ddp_hook" and dist.get_backend() != "gloo":
        import sumwire.distributed
        model.register_comm_hook(None, sumwire.distributed.shared_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01,
                                momentum=0 if net == "digits-one" else MOMENTUM)
    torch.manual_seed(2 + dist.get_rank())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model).backward()
        optimizer.step()
    return step, 0


COLLECTIVES = {"all_reduce": all_reduce, "reduce_scatter": reduce_scatter,
               "future": future, "sw_coll": InC}


def begin(work):
    what, size, *unit = work.split()
    if what in COLLECTIVES:
        n = int(size) * (250000 if unit == ["MB"] else 1)
        made = COLLECTIVES[what](n)
        return (made, 0) if isinstance(made, InC) else made
    return training(what, size)


def main():
    backend, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    if backend == "sumwire":
        import sumwire.torch  # noqa: F401
    dist.init_process_group(backend, rank=rank, world_size=size)
    known = {}
    for line in iter(sys.stdin.readline, ""):
        i, iterations = map(int, line.split())
        if i not in known:
            known[i] = begin(list(WORKS)[i])
        call, wrong = known[i]
        seconds = call.turn(iterations) if isinstance(call, InC) else take_turn(
            call, iterations)
        if rank == 0:
            print(i, seconds, wrong, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
