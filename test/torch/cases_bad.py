# cases_bad.py - what scripts do wrong, one sentence at each rank; by torch_bad.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import os
import pickle
import signal
import time

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from sumwire import SumwireError
from sumwire.distributed import create_group
from cases_backend import IS_BACKEND, start
from torch_rig import check, raises, run_cases

LIMIT = datetime.timedelta(seconds=3)
MOST_S = 120  # for LIMIT, on a machine that is busy; without it 600


class within:
    """A context that ends with one error in time, and whose text is so."""

    def __init__(self, kind, *texts):
        self.raises = raises(kind, *texts)

    def __enter__(self):
        self.began = time.monotonic()

    def __exit__(self, kind, value, trace):
        took = time.monotonic() - self.began
        check(took < MOST_S, f"it took {took} s")
        check(kind is None or "\n" not in getattr(value, "text", ""), value)
        copied = pickle.loads(pickle.dumps(value))
        check(str(copied) == str(value), f"{copied} is not {value}")
        return self.raises.__exit__(kind, value, trace)


def goes_on():
    """Only one group failed; the others' sums are right."""
    x = torch.ones(1000)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def case_tensors():
    """They are looked at before anything is sent."""
    square = torch.ones(4, 4)
    # A newer torch answers for some of these before it asks a backend.
    sparse = "" if IS_BACKEND else "dense and contiguous"
    meta = [] if IS_BACKEND else [(square.to("meta"), "meta")]
    for bad, why in ((square.t()[1:], "dense and contiguous"),
                     (square.to_sparse_csr(), sparse),
                     (square.expand(2, 4, 4), "share memory"),
                     *meta):
        for call in (dist.all_reduce, lambda t: dist.broadcast(t, 0),
                     lambda t: dist.reduce(t, 0)):
            with within(Exception, why):
                call(bad)
    for bad in (square.to(torch.int16), square.to(torch.float8_e4m3fn)):
        with within(Exception, f"sumwire has no sum of {bad.dtype}"):
            dist.all_reduce(bad)
    for call in (lambda t: dist.broadcast(t, 0), lambda t: dist.reduce(t, 0)):
        with within(Exception, sparse):
            call(square.to_sparse())
    with within(Exception, ""):
        dist.reduce_scatter_tensor(square, torch.ones(3))
    for n in 1, 3:
        with within(Exception, "" if IS_BACKEND else f"has {n} tensors"):
            dist.all_gather([square.clone() for _ in range(n)], square)
    goes_on()


def case_orders():
    """Dimensions in memory: the order of images may differ from rank to
    rank."""
    want = torch.arange(120.).reshape(2, 3, 4, 5)
    for call, times in ((dist.all_reduce, 2), (lambda t: dist.broadcast(t, 1), 1),
                        (lambda t: dist.reduce(t, 1), 1 + dist.get_rank())):
        x = want.contiguous(memory_format=torch.channels_last) if (
            dist.get_rank()) else want.clone()
        call(x)
        check(torch.equal(x, times * want), f"{x} is not {times} * {want}")


def case_kinds():
    """Different collectives: two of sumwire, and one of gloo."""
    me = dist.get_rank()
    for mine in (lambda x, g: dist.broadcast(x, 0, group=g),
                 lambda x, g: dist.barrier(group=g),
                 lambda x, g: dist.gather(x, None, 0, group=g)):
        group = dist.new_group(timeout=LIMIT)
        with within(RuntimeError, "rank 1" if me == 0 else ""):
            (mine if me else lambda x, g: dist.all_reduce(x, group=g))(
                torch.ones(10), group)
    goes_on()


def case_sizes():
    for n, dtype in ((11, torch.float32), (10, torch.float64),
                     (0, torch.float32)):
        group = dist.new_group(timeout=LIMIT)
        x = (torch.ones(n, dtype=dtype) if dist.get_rank() == 0
             else torch.ones(10))
        with within(SumwireError, "rank 0", "rank 1"):
            dist.all_reduce(x, group=group)
    goes_on()


def case_groups():
    """Each rank has others in what is the same group to torch."""
    me = dist.get_rank()
    with within(SumwireError, "rank"):
        dist.new_group([[0, 1], [1, 2], [0, 2]][me], timeout=LIMIT)
    goes_on()


def case_alone():
    """One makes a group that the others do not."""
    if dist.get_rank() == 0:
        with within(SumwireError, "timed out after 3 s waiting for rank 1 to "
                    "join group"):
            dist.new_group([0, 1], timeout=LIMIT)
    dist.barrier()
    goes_on()


def case_own_store():
    """Groups that a program makes with a store of its own, with other ranks than
    those of the world."""
    n, me = dist.get_world_size(), dist.get_rank()
    store = dist.FileStore(os.environ["TEST_STORE"] + ".own", n)
    for i, mine in enumerate((me, n - 1 - me)):
        group = create_group(dist.PrefixStore(f"{i}", store), mine, n, LIMIT)
        options = c10d.BroadcastOptions()
        options.rootRank = 0
        x = torch.tensor([float(me)])
        group.broadcast([x], options).wait()
        check(x.item() == (n - 1 if i else 0), f"group {i}: {x}")
        group.shutdown()
    with raises(ValueError, f"rank {n} of {n}", "ranks are 0 to"):
        create_group(store, n, n)


def case_store():
    """It is there, but does not answer."""
    dist.barrier()
    if dist.get_rank() == 0:
        os.kill(int(os.environ["TEST_STORE_PID"]), signal.SIGSTOP)
    goes_on()
    with within(SumwireError, "by torch's store"):
        dist.new_group(timeout=LIMIT)
    goes_on()
    os.write(1, b"ok store\n")
    os._exit(0)  # torch's own end would wait for the store


if __name__ == "__main__":
    start()
    run_cases(globals())
