# cases_beside.py - features that gloo and NCCL also have; run by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
import gc
import os
import warnings
import weakref
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec

from cases_backend import INTEGERS, sample, start, twins
from sumwire import SumwireError
from sumwire.distributed import addresses, work as works
from torch_rig import check, raises, run_cases


def case_whole_averages():
    """Averages of integers are rounded as NCCL does: towards zero."""
    for group, gloo in twins():
        n = dist.get_world_size(group)
        for dtype in INTEGERS:
            x = sample(dtype, (3, 5)) - (0 if dtype == torch.uint8 else 10)
            total = x.clone()
            dist.all_reduce(total, group=gloo)
            want = torch.div(total, n, rounding_mode="trunc")
            y = x.clone()
            dist.all_reduce(y, ReduceOp.AVG, group=group)
            check(torch.equal(y, want), f"average of {dtype}: {y}")
            y = x.clone()
            root = dist.get_process_group_ranks(gloo)[0]
            dist.reduce(y, root, ReduceOp.AVG, group=group)
            check(dist.get_rank() != root or torch.equal(y, want), y)
            part = torch.empty_like(x)
            dist.reduce_scatter_tensor(part, x.repeat(n, 1), ReduceOp.AVG,
                                       group=group)
            check(torch.equal(part, want), f"reduce_scatter of {dtype}")


def check_interfaces():
    for pattern, ip in (
            ("eth1", "10.1.0.1"), ("eth10", "10.2.0.1"), ("eth", "10.1.0.1"),
            ("=eth1", "10.1.0.1"), ("wlan,ib", "10.3.0.7"),
            ("ib0,eth1", "10.1.0.1"), ("^eth,docker", "10.3.0.7"),
            ("^=eth1", "10.2.0.1"), ("10.2.0.0/16", "10.2.0.1"),
            ("172.17.0.9/24,wlan", "172.17.0.1"), ("lo", "127.0.0.1")):
        found = addresses.of_interface(pattern, None)
        check(found == ip, f"{pattern}: {found}")
    for pattern, text in (
            ("=eth", "; there are: lo 127.0.0.1, eth1 10.1.0.1, "),
            ("^eth,ib,docker", "address matches"), (",", "address matches"),
            ("10.9.0.0/33", "'10.9.0.0/33' does not appear to be")):
        with raises(SumwireError, f"SUMWIRE_IFNAME={pattern}: ", text):
            addresses.of_interface(pattern, None)


def case_interfaces():
    """NCCL's and gloo's variables name interfaces, as SUMWIRE_IFNAME does."""
    there = [("lo", "127.0.0.1"), ("eth1", "10.1.0.1"), ("eth10", "10.2.0.1"),
             ("ib0", "10.3.0.7"), ("docker0", "172.17.0.1")]
    with mock.patch.object(addresses, "interfaces", lambda: there):
        check_interfaces()
    check(addresses.checked("127.0.0.1") == "127.0.0.1", "our own address")
    for ip in "192.0.2.1", "nowhere":
        with raises(SumwireError, f"SUMWIRE_ADDRESS={ip}: not an address "
                    "of machine "):
            addresses.checked(ip)


def case_sparse():
    """Gather indices and values of all ranks, as with gloo; embeddings in DDP."""
    n, me = dist.get_world_size(), dist.get_rank()
    for group, gloo in twins():
        for nnz in 3, me, 0:
            g = torch.Generator().manual_seed(me)
            x = torch.sparse_coo_tensor(
                torch.randint(0, 5, (1, nnz), generator=g),
                torch.ones(nnz, 2), (5, 2))
            y = x.clone()
            dist.all_reduce(x, group=group)
            dist.all_reduce(y, group=gloo)
            check(torch.equal(x.to_dense(), y.to_dense()), f"{x} is not {y}")
    weights = []
    for group in None, dist.new_group(backend="gloo"):
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Embedding(10, 3, sparse=True), process_group=group)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.tensor([me, step, 7])).square().sum().backward()
            optimizer.step()
        weights.append(model.module.weight.detach().clone())
    check(torch.allclose(*weights), f"{weights[0]} is not {weights[1]}")
    x = torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long),
                                torch._neg_view(torch.ones(1)), (2,))
    dist.all_reduce(x)
    check(x.to_dense().tolist() == [-n, 0], x)


def case_join():
    """DDP's C++ half asks a work for its future after Python has dropped the
    work."""
    me = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    with model.join(divide_by_initial_world_size=False):
        for _ in range(2 + me):
            model.zero_grad()
            model(torch.full((1, 4), 1. + me)).sum().backward()
            # The ranks before this one have no batch in its last step.
            check(model.module.bias.grad.item() == 1, "average of the rest")


def case_let_go():
    """A work that C++ refers to answers until C++ drops it."""
    for elems in 10, 300000:
        x = torch.ones(elems)
        kept = dist.all_reduce(x, async_op=True).boxed()
        dist.barrier()
        gc.collect()
        work = dist.Work.unbox(kept)
        work.wait()
        [got] = work.get_future().wait()
        check(got is x or got.data_ptr() == x.data_ptr(), "its result")
        check(bool((x == dist.get_world_size()).all()), "its sum")
        there = weakref.ref(work)
        del work, kept, got
        gc.collect()
        dist.all_reduce(x)
        check(there() is None, "nobody refers to it")


def case_uncounted():
    """If PyTorch keeps the counts elsewhere, the latest works that Python has
    dropped still answer C++, and older ones are freed."""
    check(works.is_counted(), "references() of a new work")
    references = works.references
    works.references = lambda _: 0
    works.is_counted.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = torch.ones(10)
        work = dist.all_reduce(x, async_op=True)
        there, kept = weakref.ref(work), work.boxed()
        del work
        dist.barrier()
        gc.collect()
        dist.Work.unbox(kept).wait()
    check(bool((x == dist.get_world_size()).all()), "its sum")
    check([str(w.message)[:40] for w in said] == [
        "sumwire cannot read the reference counts"], said)
    check(there() is not None, "its Python half")
    for _ in range(works.KEPT):
        works.Work(None, [], None, None)
    check(there() is None, f"more than {works.KEPT} works are kept")
    works.references = references
    works.is_counted.cache_clear()
    check(works.is_counted(), "references() of a new work")


def case_count_elsewhere():
    """A wrong address of the count must not crash."""
    address = works.count_address
    works.is_counted.cache_clear()
    for wrong in 0, 8, (1 << 64) - 8:
        works.count_address = lambda _: wrong
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            check(not works.is_counted(), f"a count at {wrong:#x}")
            check(len(said) == 1, said)
        works.is_counted.cache_clear()
    works.count_address = address
    check(works.is_counted(), "references() of a new work")


def case_unmade():
    """Ctrl-C may arrive before a work has its C++ half."""
    works.Work.__new__(works.Work)


def case_sharded():
    """torch chooses CUDA if a group other than gloo's supports it."""
    types = [d.type for d in dist.group.WORLD._device_types]
    check(("cuda" in types) == torch.cuda.is_available(), types)
    n, me = dist.get_world_size(), dist.get_rank()
    spec = ChunkShardingSpec(0, [f"rank:{r}/cpu" for r in range(n)])
    whole = torch.zeros(5, 3) if me == 0 else None
    sharded_tensor.ones(spec, 5, 3).gather(0, whole)
    check(whole is None or bool((whole == 1).all()), whole)


def case_recorded():
    """Use tensors that are not dense, until the test has recorded some."""
    x = torch.ones(2, 3, 100, 100).to(memory_format=torch.channels_last)
    results = [torch.empty_like(x) for _ in range(2)]
    is_over = torch.zeros(1)
    while not is_over:  # all ranks end after the same step
        dist.all_reduce(x, ReduceOp.MAX)
        dist.all_gather(results, x)
        is_over += os.path.exists(os.environ["RECORDED"])
        dist.all_reduce(is_over)


if __name__ == "__main__":
    start()
    run_cases(globals())
