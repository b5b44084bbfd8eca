# unsupported.py - names of Horovod and BytePS that sumwire does not have
# SPDX-License-Identifier: BSD-3-Clause
"""NEAREST maps each missing name to its replacement. __getattr__ of __init__.py
puts the replacement into its error."""

NO_ELASTIC = ("members are fixed while a job runs; write checkpoints and start "
              "it again with the new number")

NEAREST = {
    "SyncBatchNorm": "use torch.nn.BatchNorm with "
                     "DistributedDataParallel(broadcast_buffers=True)",
    "declare": "not needed: tensors are declared when they are used first",
    "elastic": NO_ELASTIC,
    "suspend": NO_ELASTIC,
    "resume": NO_ELASTIC,
    "run": "start the script with: sumwire run -np N python3 SCRIPT",
    "is_homogeneous": "compare local_size() of all ranks by allreduce",
    "cross_size": "use size() // local_size()",
    "cross_rank": "use rank() // local_size()",
    "get_pushpull_speed": "read rates with: sumwire top",
}



def built_without():
    """Return False: sumwire uses none of Horovod's optional libraries."""
    return False


mpi_built = mpi_enabled = mpi_threads_supported = built_without
gloo_built = gloo_enabled = nccl_built = built_without
cuda_built = rocm_built = ccl_built = ddl_built = built_without

# Maps each missing argument to its replacement.
NEAREST_ARGUMENT = {
    "comm": "pass process_sets, or start the job with those ranks only",
    "gradient_predivide_factor": "averages are divided before they are added; "
                                 "use op=Sum and scale the loss",
    "num_groups": "not needed: small parameters travel together, large "
                  "ones in parts",
    "groups": "not needed: small parameters travel together, large ones "
              "in parts",
    "staleness": "give asynchronous=True",
}


def refuse(arguments):
    """Raise TypeError for arguments that a function does not have.  Accept a
    known one that has Horovod's default value."""
    for name, value in arguments.items():
        nearest = NEAREST_ARGUMENT.get(name)
        if nearest is None:
            raise TypeError(f"unexpected argument '{name}'")
        if value not in (None, 0, 1):  # Horovod's defaults change nothing
            raise TypeError(f"sumwire.torch has no argument {name}: {nearest}")


def refuse_copy(optimizer, _):
    """Raise TypeError, as the __reduce_ex__ of a distributed optimizer."""
    raise TypeError(f"a distributed {type(optimizer).__name__} cannot be copied "
                    f"or pickled, since it belongs to a job: save its "
                    f"state_dict(), or copy the optimizer before")
