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
    "grouped_allgather": NO_GATHER,
    "grouped_allgather_async": NO_GATHER,
    "alltoall": NO_TENSOR_OPS,
    "alltoall_async": NO_TENSOR_OPS,
    "reducescatter": "use allreduce and take this rank's part",
    "reducescatter_async": "use allreduce_async and take this rank's part",
    "grouped_reducescatter": "use grouped_allreduce and take this rank's part",
    "grouped_reducescatter_async": "use grouped_allreduce_async and take this "
                                   "rank's part",
    "join": "let all ranks make the same number of steps; a rank without data "
            "can call step() without backward(), which sends zeros",
    "declare": "not needed: tensors are declared when they are used first",
    "elastic": NO_ELASTIC,
    "suspend": NO_ELASTIC,
    "resume": NO_ELASTIC,
    "run": "start the script with: sumwire run -np N python3 SCRIPT",
    "ProcessSet": "every operation is over all ranks of the job",
    "add_process_set": "every operation is over all ranks of the job",
    "remove_process_set": "every operation is over all ranks of the job",
    "global_process_set": "every operation is over all ranks of the job",
    "is_homogeneous": "compare local_size() of all ranks by allreduce",
    "cross_size": "use size() // local_size()",
    "cross_rank": "use rank() // local_size()",
    "start_timeline": "read counters with: sumwire stats SOCKET",
    "stop_timeline": "read counters with: sumwire stats SOCKET",
    "get_pushpull_speed": "read counters with: sumwire stats SOCKET",
    "sparse_allreduce_async": "give to_dense() to allreduce_async",
}



def built_without():
    """False: sumwire has and needs none of what Horovod may be built with."""
    return False


mpi_built = mpi_enabled = mpi_threads_supported = built_without
gloo_built = gloo_enabled = nccl_built = built_without
cuda_built = rocm_built = ccl_built = ddl_built = built_without

# What comes nearest to an argument.
NEAREST_ARGUMENT = {
    "process_set": "every operation is over all ranks of the job",
    "process_sets": "every operation is over all ranks of the job",
    "comm": "every operation is over all ranks of the job",
    "gradient_predivide_factor": "averages are divided before they are added; "
                                 "use op=Sum and scale the loss",
    "num_groups": "not needed: small parameters travel together, large "
                  "ones in parts",
    "groups": "not needed: small parameters travel together, large ones "
              "in parts",
    "staleness": "give asynchronous=True",
}


def refuse(arguments):
    """An error for arguments that a function does not have."""
    for name, value in arguments.items():
        nearest = NEAREST_ARGUMENT.get(name)
        if nearest is None:
            raise TypeError(f"there is no argument '{name}'")
        if value not in (None, 0, 1):  # Horovod's defaults change nothing
            raise TypeError(f"sumwire.torch has no argument {name}: {nearest}")


def refuse_copy(optimizer, _):
    """The __reduce_ex__ of a distributed optimizer: an error for copies."""
    raise TypeError(f"a distributed {type(optimizer).__name__} cannot be copied "
                    f"or pickled, since it belongs to a job: save its "
                    f"state_dict(), or copy the optimizer before")
