# ddp.py - a hook of DistributedDataParallel that averages in shared memory
# SPDX-License-Identifier: BSD-3-Clause
"""Without a hook, the library copies each bucket to shared memory, and the sum
back to the bucket.  The hook moves the buckets to shared memory, so that the
library copies nothing; if it cannot move a bucket, it leaves the result in shared
memory.  The servers divide by the number of ranks."""
import torch
from torch import distributed as dist

from sumwire import library
from sumwire.distributed import quick, storages
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.methods import GRACE_S, Methods

CPU = torch.device("cpu")


class Known:
    """A bucket in shared memory, as quick.c takes it.

    moved  the storages.Moved that holds it"""
    __slots__ = "moved", "n", "dtype", "args"

    def __init__(self, tensor, moved):
        self.moved, self.n, self.dtype = moved, tensor.numel(), tensor.dtype
        self.args = (moved.address, self.n, quick.CODES[self.dtype],
                     library.OPERATIONS["avg"])

    def is_same(self, tensor):
        """Return True if a dense tensor at this address is the bucket."""
        return (self.moved.block() is not None and tensor.numel() == self.n and
                tensor.dtype == self.dtype)


class Begun:
    """The work of averaging a Known bucket, which quick.c has begun."""
    __slots__ = "backend", "calls", "quick", "call", "handle_at"

    def __init__(self, backend, call, handle_at):
        # The calls keep the library's memory.
        self.backend, self.calls, self.quick = backend, backend.calls, backend.quick
        self.call, self.handle_at = call, handle_at

    def wait(self):
        code = self.quick.wait(self.call, self.handle_at)
        if code:
            quick.finish(self.backend, (code, self.call), GRACE_S)


def average(group, bucket):
    """Average a bucket; see sumwire.distributed.shared_hook()."""
    buffer = bucket.buffer()
    backend = backend_of(group, CPU if buffer.is_cpu else buffer.device)
    if backend.buckets and bucket.index() == 0:
        finish(backend)  # buckets left by an error in the previous pass
    known, begun = backend.known, NotImplemented
    if known and buffer.layout is torch.strided:
        found = known.get(buffer.data_ptr())
        if found and found.is_same(buffer):
            begun = backend.quick.begin(buffer, *found.args)
    if begun is NotImplemented:
        work, result = backend.average(buffer, lambda: has_views(bucket))
        learn(backend, buffer)
    else:
        work, result = Begun(backend, *begun), buffer
    future = torch.futures.Future(
        devices=None if buffer.is_cpu else [buffer.device])
    backend.buckets.append((work, result, future))
    error = finish(backend) if bucket.is_last() else None
    if error:
        raise error  # DDP would use a future's exception as its result
    return future


def learn(backend, tensor):
    """Remember a bucket that is in shared memory.  Forget buckets that are gone."""
    moved = tensor.layout is torch.strided and storages.found(tensor)
    if moved and backend.is_quick(tensor) and tensor.dtype in quick.CODES and (
            moved.memory is backend.attachment.memory):
        gone = [a for a, k in backend.known.items() if k.moved.block() is None]
        for address in gone:
            del backend.known[address]
        backend.known[moved.address] = Known(tensor, moved)


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
