# ddp.py - a hook of DistributedDataParallel that averages in shared memory
# SPDX-License-Identifier: BSD-3-Clause
"""Without a hook, the library copies each bucket to shared memory, and the sum
back to the bucket.  The hook moves the buckets to shared memory, so that the
library copies nothing; if it cannot move a bucket, it leaves the result in shared
memory.  The servers divide by the number of ranks."""
import torch
from torch import distributed as dist

from sumwire.distributed.errors import SumwireError
from sumwire.distributed.methods import Methods


def average(group, bucket):
    """Average a bucket; see sumwire.distributed.shared_hook()."""
    backend, buffer = backend_of(group, bucket.buffer().device), bucket.buffer()
    if bucket.index() == 0:
        finish(backend)  # buckets left by an error in the previous pass
    work, result = backend.average(buffer, lambda: has_views(bucket))
    future = torch.futures.Future(
        devices=[buffer.device] if buffer.is_cuda else None)
    backend.buckets.append((work, result, future))
    error = finish(backend) if bucket.is_last() else None
    if error:
        raise error  # DDP would use a future's exception as its result
    return future


def has_views(bucket):
    """Return True if gradients are views of the bucket."""
    whole = bucket.buffer().untyped_storage()._cdata
    return any(p.grad is not None and p.grad.layout is torch.strided and
               p.grad.untyped_storage()._cdata == whole
               for p in bucket.parameters())


def finish(backend):
    """Wait for all open buckets, in this thread.  Return the first error, or
    None."""
    error, (buckets, backend.buckets) = None, (backend.buckets, [])
    for work, result, future in buckets:
        try:
            work.wait()
            future.set_result(result)
        except Exception as e:
            error = error or e
            future.set_exception(e)
    return error


def backend_of(group, device):
    """Return the Methods object of a group.  Raise SumwireError if the group has
    another backend for the device."""
    group = group or dist.group.WORLD
    found = group._get_backend(device)
    if not isinstance(found, Methods):
        raise SumwireError(
            "SW_EINVAL", f"shared_hook: the group's backend for {device} is "
            f"{type(found).__name__}: pass the group of the model as the first "
            f"argument of register_comm_hook()")
    return found
