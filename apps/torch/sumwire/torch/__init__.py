# __init__.py - sumwire for PyTorch, with the interface of Horovod and BytePS
# SPDX-License-Identifier: BSD-3-Clause
"""One changed line: import sumwire.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
"""
import sumwire.distributed  # makes its name known to torch
from sumwire.client import SumwireError
from sumwire.torch.broadcasts import (
    broadcast, broadcast_, broadcast_async, broadcast_async_,
    broadcast_optimizer_state, broadcast_parameters)
from sumwire.torch.channel import broadcast_object
from sumwire.torch.compression import Compression
from sumwire.torch.group import (
    grouped_allreduce, grouped_allreduce_, grouped_allreduce_async,
    grouped_allreduce_async_)
from sumwire.torch.job import (
    init, is_initialized, local_rank, local_size, rank, shutdown, size)
from sumwire.torch.ops import (
    Average, Sum, allreduce, allreduce_, allreduce_async, allreduce_async_,
    barrier, poll, push_pull, push_pull_async, push_pull_async_inplace,
    push_pull_inplace, synchronize)
from sumwire.torch.optimizer import CrossBarrier, DistributedOptimizer
from sumwire.torch.parallel import DistributedDataParallel, allreduce_hook
from sumwire.torch.unsupported import (
    ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built,
    mpi_enabled, mpi_threads_supported, nccl_built, rocm_built)

__all__ = [
    "Average", "Compression", "CrossBarrier", "DistributedDataParallel",
    "DistributedOptimizer", "Sum", "SumwireError", "allreduce", "allreduce_",
    "allreduce_async", "allreduce_async_", "allreduce_hook", "barrier",
    "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters",
    "ccl_built", "cuda_built", "ddl_built", "gloo_built", "gloo_enabled",
    "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "init", "is_initialized", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll", "push_pull",
    "push_pull_async", "push_pull_async_inplace", "push_pull_inplace", "rank",
    "rocm_built",
    "shutdown", "size", "synchronize"]


def __getattr__(name):
    from sumwire.torch.unsupported import NEAREST
    if name in NEAREST:
        raise AttributeError(f"sumwire.torch has no {name}: {NEAREST[name]}")
    raise AttributeError(f"module 'sumwire.torch' has no attribute '{name}'")
