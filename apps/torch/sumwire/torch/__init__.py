# __init__.py - sumwire for PyTorch, with the interface of Horovod and BytePS
# SPDX-License-Identifier: BSD-3-Clause
"""Train with sumwire by changing one line of a Horovod or BytePS script:

    import sumwire.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

Tensors are dense, of any shape and strides, on the CPU or on a CUDA device.
Sums take f32, f64, f16, bf16, u8, i8, i32, i64 and bool, whose Sum is a logical
or; broadcasts take every dtype.  Results are on the tensor's device and have
its dtype.

Call these functions from one thread, after init().  A job's failure raises
SumwireError, which is a HorovodInternalError, at all ranks; bad arguments raise
ValueError or TypeError.
"""
import sumwire.distributed  # registers the backend "sumwire" with torch
from sumwire.client import HorovodInternalError, SumwireError
from sumwire.torch.broadcasts import (
    broadcast, broadcast_, broadcast_async, broadcast_async_,
    broadcast_optimizer_state, broadcast_parameters)
from sumwire.torch.byteps import (
    push_pull, push_pull_async, push_pull_async_inplace, push_pull_inplace)
from sumwire.torch.channel import broadcast_object
from sumwire.torch.compression import Compression, Compressor
from sumwire.torch.gathers import (
    allgather, allgather_async, allgather_object, alltoall, alltoall_async,
    grouped_allgather, grouped_allgather_async, grouped_reducescatter,
    grouped_reducescatter_async, reducescatter, reducescatter_async,
    sparse_allreduce, sparse_allreduce_async)
from sumwire.torch.group import (
    grouped_allreduce, grouped_allreduce_, grouped_allreduce_async,
    grouped_allreduce_async_)
from sumwire.torch.job import (
    init, is_initialized, local_rank, local_size, rank, shutdown, size,
    start_timeline, stop_timeline)
from sumwire.torch.joining import join
from sumwire.torch.ops import (
    allreduce, allreduce_, allreduce_async, allreduce_async_, barrier, poll,
    synchronize)
from sumwire.torch.optimizer import CrossBarrier, DistributedOptimizer
from sumwire.torch.parallel import DistributedDataParallel, allreduce_hook
from sumwire.torch.process_sets import (
    ProcessSet, add_process_set, get_process_set_ids_and_ranks,
    global_process_set, remove_process_set)
from sumwire.torch.reductions import Adasum, Average, Max, Min, Product, Sum
from sumwire.torch.unsupported import (
    ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled, mpi_built,
    mpi_enabled, mpi_threads_supported, nccl_built, rocm_built)

__all__ = [
    "Adasum", "Average", "Compression", "Compressor", "CrossBarrier",
    "DistributedDataParallel", "DistributedOptimizer", "HorovodInternalError",
    "Max", "Min", "ProcessSet", "Product", "Sum", "SumwireError",
    "add_process_set", "allgather", "allgather_async", "allgather_object",
    "allreduce", "allreduce_", "allreduce_async", "allreduce_async_",
    "allreduce_hook", "alltoall", "alltoall_async", "barrier", "broadcast",
    "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "ccl_built",
    "cuda_built", "ddl_built", "get_process_set_ids_and_ranks",
    "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "grouped_reducescatter_async", "init",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll", "push_pull",
    "push_pull_async", "push_pull_async_inplace", "push_pull_inplace", "rank",
    "reducescatter", "reducescatter_async", "remove_process_set",
    "rocm_built", "shutdown", "size", "sparse_allreduce",
    "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize"]


def __getattr__(name):
    from sumwire.torch.unsupported import NEAREST
    if name in NEAREST:
        raise AttributeError(f"sumwire.torch has no {name}: {NEAREST[name]}")
    raise AttributeError(f"module 'sumwire.torch' has no attribute '{name}'")
