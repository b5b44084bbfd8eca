# ops.py - sums of single tensors: allreduce, push_pull, handles
# SPDX-License-Identifier: BSD-3-Clause
import torch

from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.job import current


class Op:
    """What is done over the workers."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"sumwire.torch.{self.name}"


Average, Sum = Op("Average"), Op("Sum")


def choose_op(average, op):
    if op is not None and average is not None:
        raise ValueError("average and op say the same: give one of them")
    if op is None:
        op = Sum if average is False else Average
    if op not in (Average, Sum):
        raise ValueError(f"op={op!r}: the servers only add; sumwire has Average "
                         f"and Sum")
    return op


class Place:
    """A name of allreduce: one declared tensor per size and type it has had."""

    def __init__(self, name):
        self.name = name
        self.made = {}
        self.is_open = False

    def take(self, n, dtype, priority):
        job = current()
        shared = self.made.get((n, dtype))
        if shared is None:
            # Counting, not the size, makes the name: so other workers that
            # have another size here are found out when it is declared.
            count = f"#{len(self.made) + 1}" if self.made else ""
            [shared] = job.declare([(self.name + count, n, dtype, priority)])
            self.made[n, dtype] = shared
        self.is_open = True
        return shared


class Call:
    """An operation that has begun and not been synchronized.  view is the
    tensor in shared memory, None when there are no elements."""
    __slots__ = ("place", "shared", "view", "output", "op", "factor")

    def __init__(self, output, op, factor):
        self.place = self.shared = self.view = None
        self.output, self.op, self.factor = output, op, factor

    def finish(self):
        """The result, written into output."""
        with torch.no_grad():
            if self.shared is not None:
                current().wait(self.shared)
                self.output.copy_(self.view)
            divide(self.output, self.op, self.factor)
        return self.output


def divide(output, op, factor):
    size = current().size
    if op is Average and not is_scaled_first(output.dtype):
        if output.dtype == torch.bool:
            raise TypeError("a bool has no average; use op=sumwire.torch.Sum, "
                            "which is a logical or")
        if output.is_floating_point():
            output.div_(size)
        else:
            output.div_(size, rounding_mode="floor")
    if factor != 1:
        output.mul_(factor)


def is_scaled_first(dtype):
    """16-bit floats are divided before they are added: f16 ends at 65504."""
    return dtype in (torch.float16, torch.bfloat16)


class Calls:
    """The places and open handles of a job."""

    def __init__(self):
        self.places = {}
        self.open = {}
        self.n_handles = 0

    def place(self, name):
        """The place of a name; without one the first that is not open, which
        is the same on all workers since they make the same calls."""
        if name is None:
            i = 0
            while (f"unnamed.{i}" in self.places and
                   self.places[f"unnamed.{i}"].is_open):
                i += 1
            name = f"unnamed.{i}"
        place = self.places.setdefault(name, Place(name))
        if place.is_open:
            raise ValueError(f"the name '{name}' is in use: synchronize its "
                             f"handle before the next call, or use another "
                             f"name")
        return place


def calls():
    job = current()
    if not hasattr(job, "calls"):
        job.calls = Calls()
    return job.calls


def check_tensor(tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a torch.Tensor is needed, not a "
                        f"{type(tensor).__name__}; broadcast_object takes "
                        f"anything")
    if tensor.is_sparse:
        raise TypeError("the tensor is sparse, which sumwire cannot sum: give "
                        "its to_dense()")


def open_place(call, name, n, wire, priority):
    """Give the call a declared tensor of its own until it is synchronized."""
    call.place = calls().place(name)
    call.shared = call.place.take(n, wire, priority)


def begin(call):
    """Push what was written into the call's view; returns the handle."""
    if call.shared is not None:
        current().push(call.shared)
    return hold(call)


def hold(call):
    """A handle for a call that has begun."""
    all_calls = calls()
    all_calls.n_handles += 1
    all_calls.open[all_calls.n_handles] = call
    return all_calls.n_handles


def start(tensor, output, name, op, priority, compression, prescale, postscale):
    """Begin an allreduce; returns its handle."""
    check_tensor(tensor)
    wire = wire_dtype(compression, tensor.dtype)
    call = Call(output, op, postscale)
    if op is Average and is_scaled_first(tensor.dtype):
        prescale /= current().size
    if tensor.numel():
        open_place(call, f"allreduce.{name}" if name else None, tensor.numel(),
                   wire, priority)
        call.view = call.shared.flat.view(tensor.shape)
        with torch.no_grad():
            call.view.copy_(tensor if prescale == 1 else tensor * prescale)
    return begin(call)


def open_call(handle):
    call = calls().open.get(handle)
    if call is None:
        raise ValueError(f"no operation with handle {handle!r} is open: it was "
                         f"synchronized already, or never begun")
    return call


def poll(handle):
    """Would synchronize(handle) return at once?  Never blocks."""
    call = open_call(handle)
    return call.shared is None or current().is_done(call.shared)


def synchronize(handle):
    """Wait for an operation; returns its result and ends the handle."""
    call = open_call(handle)
    del calls().open[handle]
    if call.place is not None:
        call.place.is_open = False
    return call.finish()


def allreduce_async_(tensor, average=None, name=None, op=None,
                     prescale_factor=1.0, postscale_factor=1.0, priority=0,
                     compression=Compression.none):
    """Begin to replace tensor by its average (or sum) over all workers.
    Returns a handle for poll and synchronize; until then it must not be used.
    name: the same on all workers; without one, calls are matched by order."""
    return start(tensor, tensor, name, choose_op(average, op), priority,
                 compression, prescale_factor, postscale_factor)


def allreduce_async(tensor, average=None, name=None, op=None,
                    prescale_factor=1.0, postscale_factor=1.0, priority=0,
                    compression=Compression.none):
    """As allreduce_async_, into a new tensor."""
    check_tensor(tensor)
    return start(tensor, torch.empty_like(tensor, requires_grad=False), name,
                 choose_op(average, op), priority, compression,
                 prescale_factor, postscale_factor)


def allreduce_(tensor, *args, **kwargs):
    """Replace tensor by its average (or sum) over all workers."""
    return synchronize(allreduce_async_(tensor, *args, **kwargs))


class Allreduce(torch.autograd.Function):
    """The gradient of a sum over workers is the sum of the gradients."""

    @staticmethod
    def forward(ctx, tensor, args, kwargs):
        ctx.args, ctx.kwargs = args, kwargs
        return synchronize(allreduce_async(tensor, *args, **kwargs))

    @staticmethod
    def backward(ctx, grad):
        return allreduce(grad, *ctx.args, **ctx.kwargs), None, None


def allreduce(tensor, *args, **kwargs):
    """The average (or sum) of tensor over all workers, as a new tensor;
    arguments as of allreduce_async.  Gradients flow through it."""
    check_tensor(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return Allreduce.apply(tensor, args, kwargs)
    return synchronize(allreduce_async(tensor, *args, **kwargs))


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, **rest):
    """allreduce_async_ of several tensors; returns a list of handles."""
    return [allreduce_async_(t, average, f"{name}.{i}" if name else None, op,
                             **rest) for i, t in enumerate(tensors)]


def grouped_allreduce_(tensors, average=None, name=None, op=None, **rest):
    """allreduce_ of several tensors, all on their way together."""
    return [synchronize(h) for h in
            grouped_allreduce_async_(tensors, average, name, op, **rest)]


def grouped_allreduce(tensors, average=None, name=None, op=None, **rest):
    """allreduce of several tensors, all on their way together."""
    return grouped_allreduce_([t.detach().clone() for t in tensors], average,
                              name, op, **rest)


def barrier():
    """Return when all workers have called it."""
    allreduce_(torch.zeros(1, dtype=torch.int32), op=Sum, name="barrier")


# BytePS's names for the same.

def check_version(version):
    if version:
        raise ValueError(f"version={version}: sumwire counts versions itself; "
                         f"leave it out")


def push_pull_async_inplace(tensor, average=True, name=None, version=0,
                            priority=0):
    """BytePS's allreduce_async_."""
    check_version(version)
    return allreduce_async_(tensor, average, name, priority=priority)


def push_pull_async(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_async."""
    check_version(version)
    return allreduce_async(tensor, average, name, priority=priority)


def push_pull_inplace(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_."""
    return synchronize(push_pull_async_inplace(tensor, average, name, version,
                                               priority))


def push_pull(tensor, average=True, name=None, version=0, priority=0,
              compression=Compression.none):
    """BytePS's allreduce."""
    check_version(version)
    return allreduce(tensor, average, name, priority=priority,
                     compression=compression)
