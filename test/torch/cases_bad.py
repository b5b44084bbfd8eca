# cases_bad.py - errors of scripts: one sentence at each rank; by torch_bad.py
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
MOST_S = 120  # for LIMIT on a busy machine; without it 600


class within:
    """A context that must end with one error in time, with this text."""

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
    """Check that only one group failed: another group's sums are right."""
    x = torch.ones(1000)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def case_tensors():
    """The backend checks tensors before it sends anything."""
    square = torch.ones(4, 4)
    # A newer torch rejects some of these before it calls a backend.
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
    """The order of dimensions in memory may differ from rank to rank, as in
    images."""
    want = torch.arange(120.).reshape(2, 3, 4, 5)
    for call, times in ((dist.all_reduce, 2), (lambda t: dist.broadcast(t, 1), 1),
                        (lambda t: dist.reduce(t, 1), 1 + dist.get_rank())):
        x = want.contiguous(memory_format=torch.channels_last) if (
            dist.get_rank()) else want.clone()
        call(x)
        check(torch.equal(x, times * want), f"{x} is not {times} * {want}")


def case_kinds():
    """Ranks call different collectives: two of sumwire, and one of gloo."""
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
    """Ranks have different members in a group that is one for torch."""
    me = dist.get_rank()
    with within(SumwireError, "rank"):
        dist.new_group([[0, 1], [1, 2], [0, 2]][me], timeout=LIMIT)
    goes_on()


def case_alone():
    """Only one rank creates the group."""
    if dist.get_rank() == 0:
        with within(SumwireError, "timed out after 3 s waiting for rank 1 to "
                    "join group"):
            dist.new_group([0, 1], timeout=LIMIT)
    dist.barrier()
    goes_on()


def case_own_store():
    """A program creates groups with a store of its own, and with ranks other
    than the world's."""
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
    """The store accepts connections but does not answer."""
    dist.barrier()
    if dist.get_rank() == 0:
        os.kill(int(os.environ["TEST_STORE_PID"]), signal.SIGSTOP)
    goes_on()
    with within(SumwireError, "through torch's store"):
        dist.new_group(timeout=LIMIT)
    goes_on()
    os.write(1, b"ok store\n")
    os._exit(0)  # torch's own exit would wait for the store


if __name__ == "__main__":
    start()
    run_cases(globals())
