# unsupported.py - what Horovod and BytePS have and sumwire has not
# SPDX-License-Identifier: BSD-3-Clause
"""Name: what comes nearest.  __init__.py's __getattr__ reads it."""

NO_GATHER = ("the servers add and copy; use allreduce for a mean, or "
             "broadcast_object from each rank in turn")
NO_ELASTIC = ("members are fixed while a job runs; write checkpoints and start "
              "it again with the new number")
NO_TENSOR_OPS = "the servers add and copy; use torch.distributed beside it"

NEAREST = {
    "Adasum": "use op=Average or op=Sum",
    "Max": "the servers only add; use torch.distributed's all_reduce",
    "Min": "the servers only add; use torch.distributed's all_reduce",
    "Product": "the servers only add; use torch.distributed's all_reduce",
    "SyncBatchNorm": "use torch.nn.BatchNorm with "
                     "DistributedDataParallel(broadcast_buffers=True)",
    "allgather": NO_GATHER,
    "allgather_async": NO_GATHER,
    "allgather_object": NO_GATHER,
    "alltoall": NO_TENSOR_OPS,
    "alltoall_async": NO_TENSOR_OPS,
    "reducescatter": "use allreduce and take this rank's part",
    "reducescatter_async": "use allreduce_async and take this rank's part",
    "join": "let all ranks make the same number of steps; a rank without data "
            "can call step() without backward(), which sends zeros",
    "declare": "not needed: tensors are declared when they are used first",
    "elastic": NO_ELASTIC,
    "suspend": NO_ELASTIC,
    "resume": NO_ELASTIC,
    "run": "start the script with: sumwire run -np N python3 SCRIPT",
    "ProcessSet": "every operation is over all ranks of the job",
    "add_process_set": "every operation is over all ranks of the job",
    "cross_size": "use size() // local_size()",
    "cross_rank": "use rank() // local_size()",
    "start_timeline": "read counters with: sumwire stats SOCKET",
    "stop_timeline": "read counters with: sumwire stats SOCKET",
    "get_pushpull_speed": "read counters with: sumwire stats SOCKET",
    "mpi_built": "sumwire needs no MPI",
    "mpi_enabled": "sumwire needs no MPI",
    "mpi_threads_supported": "sumwire needs no MPI",
    "nccl_built": "sumwire needs no NCCL",
    "gloo_built": "sumwire needs no gloo",
    "sparse_allreduce_async": "give to_dense() to allreduce_async",
}
