# ops.py - sums of single tensors: allreduce, push_pull, handles
# SPDX-License-Identifier: BSD-3-Clause
import heapq

import torch

from sumwire.torch.compression import Compression, wire_dtype
from sumwire.torch.job import current, dtype_name
from sumwire.torch.unsupported import refuse


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

    def __init__(self, name, number=None):
        self.name = name
        self.number = number  # of those without a name
        self.made = {}
        self.is_open = False

    def next_name(self):
        """That of one more tensor.  Counting, not the size, makes it: so other
        workers that have another size here are found out when it is
        declared."""
        return self.name + (f"#{len(self.made) + 1}" if self.made else "")


class Call:
    """An operation that has begun and not been synchronized.  shared and view
    are the tensor in shared memory, None when there are no elements; source is
    what is to be sent once that is declared."""
    __slots__ = ("place", "shared", "view", "output", "op", "factor", "source",
                 "prescale", "desc")

    def __init__(self, output, op, factor):
        self.place = self.shared = self.view = self.source = None
        self.output, self.op, self.factor = output, op, factor

    def begin(self, shared):
        """The tensor is declared: send the source."""
        if self.shared is None:
            self.place.made[self.desc[1:3]] = shared
        self.shared = shared
        source, self.source = self.source, None
        if source.requires_grad:
            source = source.detach()
        self.view = shared.view(source.shape)
        self.view.copy_(source if self.prescale == 1
                        else source * self.prescale)
        current().push(shared)

    def check_begun(self):
        if self.source is not None:
            current().declare_new()
        if self.source is not None:
            raise RuntimeError(f"'{self.desc[0]}' was not declared; an error "
                               f"before this one has said why")

    def is_done(self):
        self.check_begun()
        return self.shared is None or current().is_done(self.shared)

    def close(self):
        """Others may have its place."""
        if self.place is not None:
            calls().give_back(self.place)

    def finish(self):
        """Wait, and return the result."""
        self.check_begun()
        if self.shared is not None:
            current().wait(self.shared)
            self.take()
        return self.output

    def take(self):
        """The result, written into output."""
        output = self.output
        if output.requires_grad:  # only then: no_grad costs as much as a copy
            output = output.detach()
        output.copy_(self.view)
        divide(output, self.op, self.factor)


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
        self.unnamed, self.free = [], []  # all, numbers of those not open
        self.groups = set()  # names and contents that all workers agree on
        self.open = {}
        self.n_handles = 0

    def place(self, name):
        """The place of a name; without one the first that is not open, which
        is the same on all workers since they make the same calls."""
        if name is None:
            place = self.unnamed_place()
        else:
            place = self.places.get(name)
            if place is None:
                place = self.places[name] = Place(name)
        if place.is_open:
            raise ValueError(f"the name '{name}' is in use: synchronize its "
                             f"handle before the next call, or use another "
                             f"name")
        place.is_open = True
        return place

    def unnamed_place(self):
        if self.free:
            return self.unnamed[heapq.heappop(self.free)]
        number = len(self.unnamed)
        self.unnamed.append(Place(f"unnamed.{number}", number))
        return self.unnamed[number]

    def give_back(self, place):
        place.is_open = False
        if place.number is not None:
            heapq.heappush(self.free, place.number)


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
    dtype_name(tensor.dtype, "tensor")


def new_desc(call, n, wire, priority):
    """What to declare for a call whose place has no such tensor yet."""
    name = call.place.next_name()
    if "\0" not in name and isinstance(priority, int) and 0 <= priority < 1 << 31:
        return name, n, wire, priority
    call.close()
    raise ValueError(f"name={name!r}, priority={priority!r}: a name without NUL "
                     f"and a priority of at least 0, which is the most urgent, "
                     f"were expected")


def open_place(call, name, n, wire, priority):
    """Give the call a declared tensor of its own until it is synchronized."""
    call.place = calls().place(name)
    call.shared = call.place.made.get((n, wire))
    if call.shared is None:
        [call.shared] = current().declare([new_desc(call, n, wire, priority)])
        call.place.made[n, wire] = call.shared


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
    n = tensor.numel()
    if n:
        call.place = place = calls().place(f"allreduce.{name}" if name else None)
        call.source, call.prescale = tensor, prescale
        shared = call.shared = place.made.get((n, wire))
        if shared is not None:
            call.begin(shared)
        else:
            if output is not tensor:  # which the caller may change meanwhile
                call.source = output.copy_(tensor.detach())
            call.desc = new_desc(call, n, wire, priority)
            current().declare_later(call)
    return hold(call)


def open_call(handle):
    call = calls().open.get(handle)
    if call is None:
        raise ValueError(f"no operation with handle {handle!r} is open: it was "
                         f"synchronized already, or never begun")
    return call


def poll(handle):
    """Would synchronize(handle) return at once?  Never blocks."""
    return open_call(handle).is_done()


def synchronize(handle):
    """Wait for an operation; returns its result and ends the handle."""
    call = open_call(handle)
    del calls().open[handle]
    call.close()
    return call.finish()


def allreduce_async_(tensor, average=None, name=None, op=None,
                     prescale_factor=1.0, postscale_factor=1.0, priority=0,
                     compression=Compression.none, **more):
    """Begin to replace tensor by its average (or sum) over all workers.
    Returns a handle for poll and synchronize; until then it must not be used.
    name: the same on all workers; without one, calls are matched by order.
    priority: of a new name; 0 is the most urgent."""
    refuse(more)
    return start(tensor, tensor, name, choose_op(average, op), priority,
                 compression, prescale_factor, postscale_factor)


def allreduce_async(tensor, average=None, name=None, op=None,
                    prescale_factor=1.0, postscale_factor=1.0, priority=0,
                    compression=Compression.none, **more):
    """As allreduce_async_, into a new tensor."""
    refuse(more)
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
    def forward(ctx, tensor, options):
        ctx.options = options
        return synchronize(allreduce_async(tensor, **options))

    @staticmethod
    def backward(ctx, grad):
        return allreduce(grad, **ctx.options), None


def allreduce(tensor, average=None, name=None, compression=Compression.none,
              op=None, prescale_factor=1.0, postscale_factor=1.0, **rest):
    """The average (or sum) of tensor over all workers, as a new tensor;
    arguments as of allreduce_async, in Horovod's order.  Gradients flow
    through it."""
    options = {"average": average, "name": name, "compression": compression,
               "op": op, "prescale_factor": prescale_factor,
               "postscale_factor": postscale_factor, **rest}
    check_tensor(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        return Allreduce.apply(tensor, options)
    return synchronize(allreduce_async(tensor, **options))


def barrier():
    """Return when all workers have called it."""
    allreduce_(torch.zeros(1, dtype=torch.int32), op=Sum, name="barrier")


# BytePS's names for the same.  Its highest priority is the most urgent, and
# those that it gives are 0 and below.

def check_version(version):
    if version:
        raise ValueError(f"version={version}: sumwire counts versions itself; "
                         f"leave it out")


def push_pull_async_inplace(tensor, average=True, name=None, version=0,
                            priority=0):
    """BytePS's allreduce_async_."""
    check_version(version)
    return allreduce_async_(tensor, average, name, priority=max(0, -priority))


def push_pull_async(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_async."""
    check_version(version)
    return allreduce_async(tensor, average, name, priority=max(0, -priority))


def push_pull_inplace(tensor, average=True, name=None, version=0, priority=0):
    """BytePS's allreduce_."""
    return synchronize(push_pull_async_inplace(tensor, average, name, version,
                                               priority))


def push_pull(tensor, average=True, name=None, version=0, priority=0,
              compression=Compression.none):
    """BytePS's allreduce."""
    check_version(version)
    return allreduce(tensor, average, name, priority=max(0, -priority),
                     compression=compression)
