# ops.py - sums of single tensors: allreduce, handles
# SPDX-License-Identifier: BSD-3-Clause
import functools
import heapq
import time
import zlib

import torch

from sumwire.client import SumwireError
from sumwire.library import CONFLICTS
from sumwire.torch.channel import is_global
from sumwire.torch.compression import Compression, is_own, wire_dtype
from sumwire.torch.job import current, dtype_name
from sumwire.torch.joining import serves
from sumwire.torch.process_sets import global_process_set
from sumwire.torch.reductions import (
    Average, Sum, choose_op, divide, how, is_scaled_first, reduce_in, scaled)
from sumwire.torch.staging import stage_of
from sumwire.torch.unsupported import refuse


class Place:
    """Hold the declared tensors of one allreduce name, one per size and type.

    Ranks that pass different sizes for one name would push different tensors
    and wait forever.  Therefore a call whose size differs from the previous
    call's first pushes the previous tensor with the new call's tag.  The sum
    is dropped; if the tags differ, every rank gets an error.  Up to that call
    the tensors and counts of a place are the same on all ranks."""

    def __init__(self, name, number=None):
        self.name = name
        self.number = number  # index in Calls.unnamed; None: it has a name
        self.made = {}  # declared tensors, by ((elements, wire dtype), stage)
        self.n_made = self.n_calls = 0
        self.last = None  # the tensor of the last call
        self.is_open = False

    def next_name(self):
        """Return the name of the next tensor of this place.  The name contains
        a count instead of the size: if a rank has another size, it declares the
        same name differently, and the next push fails."""
        self.n_made += 1
        return self.name + (f"#{self.n_made}" if self.n_made > 1 else "")

    def forget(self):
        """Forget all tensors after a call that failed on all ranks; the next
        call counts as the first one."""
        self.made, self.last = {}, None


@functools.lru_cache(maxsize=4096)
def checksum(words):
    return zlib.crc32(repr(words).encode())


def describe(words):
    """Describe a call for an error message, as its user wrote it."""
    what, shape, dtype, *rest = words
    shape = "" if shape is None else f" {tuple(shape)}"
    rest = "".join(f", {r}" for r in rest if r is not None)
    return f"{what} of {str(dtype).replace('torch.', '')}{shape}{rest}"


class Call:
    """Keep an operation from its start until it is synchronized.

    words   arguments that must be equal on all ranks: operation, shape, dtype…
    key     number of elements, and dtype on the wire
    source  the tensor to send, until it is copied into shared
    stage   Stage of the device that holds the tensor; None: host memory
    shared  the declared tensor in shared or device memory; None: no elements
    view    the memory of shared, in the shape of the source
    error   the error that another wait found; finish() raises it
    """
    __slots__ = ("place", "words", "key", "priority", "shared", "view",
                 "output", "op", "factor", "source", "prescale", "desc", "tag",
                 "stage", "is_begun", "error", "crc", "number")

    def __init__(self, output, op, factor, prescale=1, stage=None):
        self.place = self.shared = self.view = self.source = self.error = None
        self.output, self.op, self.factor = output, op, factor
        self.stage = stage
        self.prescale, self.is_begun = prescale, False

    def start(self, name, words, key, priority, source):
        """Send the source: now, or as soon as its tensor is declared."""
        self.words = words = (*words, "of a device" if self.stage else None)
        if "\0" in str(name) or not isinstance(priority, int) or \
                not 0 <= priority < 1 << 31:
            raise ValueError(
                f"name={name!r}, priority={priority!r}: expected a name without "
                f"NUL, and a priority of at least 0, which is the most urgent")
        self.number = None
        place = calls().place(name)
        try:
            self.begin_at(place, checksum(words), key, priority, source)
        except BaseException:  # the caller gets no handle to end it with
            calls().give_back(place)
            raise

    def begin_at(self, place, crc, key, priority, source):
        """Send the source at a place that this call has taken."""
        self.place, self.key, self.priority = place, key, priority
        self.crc = crc
        self.number = current().joins.note(self)
        place.n_calls += 1
        self.tag = crc + place.n_calls & 0xffff
        self.source = source
        shared = place.made.get((key, self.stage))
        if place.last is shared and shared is not None:
            self.begin(shared)
            return
        self.keep()
        if place.last is None:
            self.go_on()
            return
        self.shared = place.last
        self.push(place.last)
        current().changing.append(self)

    can_join = True  # ranks that have joined add zeros to it

    def describe(self):
        """Return the description for ranks that have joined.  If they cannot
        take part (can_join), their tag differs, so the call fails on all
        ranks."""
        return {"kind": "call", "name": self.place.name,
                "number": self.place.number,
                "crc": self.crc + (not self.can_join),
                "n": self.key[0], "dtype": str(self.key[1])[6:],
                "priority": self.priority}

    def go_on(self):
        """Continue with the call's own tensor, because all ranks make the same
        call."""
        shared = self.place.made.get((self.key, self.stage))
        if shared is not None:
            self.begin(shared)
            return
        self.desc = (self.place.next_name(), *self.key, self.priority)
        current().declare_later(self)

    def keep(self):
        """Copy a source that is sent later, because the caller may change it.
        """
        if self.source is not None and self.output is not self.source:
            self.source = self.output.copy_(self.source.detach())

    def begin(self, shared):
        """Send the source; the tensor is declared now."""
        self.shared = self.place.last = shared
        self.place.made[self.key, self.stage] = shared
        source, self.source = self.source, None
        client = shared.client
        began_ns = client.is_traced and time.monotonic_ns()
        self.fill(source)
        if began_ns and source is not None:
            client.copied(shared.tensor, False, began_ns)
        self.is_begun = True
        self.push(shared)

    def fill(self, source):
        """Copy the source, scaled, into the shared memory."""
        if source.requires_grad:
            source = source.detach()
        self.view = self.shared.view(source.shape)
        self.view.copy_(scaled(source, self.prescale))

    def push(self, shared):
        current().push(shared, self.tag)

    def is_done(self):
        """Return True if the call has ended.  If it failed, finish() raises
        the error."""
        if self.place is None or self.error is not None:
            return True
        current().progress()
        try:
            return self.is_begun and current().is_done(self.shared)
        except SumwireError as e:
            self.error = e
            return True

    def close(self):
        """Give the place back, so that another call can use it."""
        if self.place is not None:
            calls().give_back(self.place)

    def finish(self):
        """Wait for the end of the call, and return its result."""
        if self.place is not None:
            try:
                self.wait()
            finally:
                current().joins.ended(self.number)
            client = self.shared.client
            began_ns = client.is_traced and time.monotonic_ns()
            self.take()
            if began_ns:
                client.copied(self.shared.tensor, True, began_ns)
        return self.output

    def wait(self):
        job = current()
        if not self.is_begun:
            job.progress_until(lambda: self.is_begun or self.error)
        try:
            if self.error is not None:
                raise self.error
            if self in job.changing:  # progress_until() has timed out
                self.shared.client.wait(self.shared.tensor)
            elif not self.is_begun:
                raise RuntimeError(f"'{self.place.name}' was not declared; the "
                                   f"error before this one says why")
            job.wait(self.shared)
            if self.stage:  # raise an error here, not in a later call
                self.stage.settle(self.shared.tensor)
        except SumwireError as e:
            if e.name != "SW_EMISMATCH":
                raise
            self.place.forget()
            raise self.explained(e) from None

    def explained(self, error):
        """Return the error with this rank's call instead of the tags, because a
        tag does not identify its call."""
        text = error.text
        if error.conflict == CONFLICTS["step"]:
            text = "tensor {}: rank {} makes another call than rank {}".format(
                self.shared.tensor.name, *error.ranks)
        return SumwireError(error.name, f"{text}; this is rank "
                            f"{current().rank}, which calls "
                            f"{describe(self.words)}"
                            f"{current().joins.words()}")

    def take(self):
        """Write the result into output."""
        output = self.output
        if output.requires_grad:  # only then: no_grad costs as much as a copy
            output = output.detach()
        output.copy_(self.view)
        divide(output, self.op, self.factor)


class Calls:
    """Hold the places and open handles of a job."""

    def __init__(self):
        self.places = {}
        # All places without a name, by number; heap of the unused numbers.
        self.unnamed, self.free = [], []
        self.open = {}
        self.n_handles = 0

    def place(self, name):
        """Take the place of a name.  Without a name, take the free unnamed
        place with the lowest number: it is the same on all ranks, because they
        make the same calls in the same order.  Raise ValueError if the name is
        in use."""
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

    def served_place(self, told):
        """Take the place at which the other ranks have made a call, so that
        this rank, which has joined, adds zeros to it."""
        number = told["number"]
        if number is None:
            return self.place(told["name"])
        while len(self.unnamed) <= number:
            self.unnamed.append(Place(f"unnamed.{len(self.unnamed)}",
                                      len(self.unnamed)))
            heapq.heappush(self.free, len(self.unnamed) - 1)
        self.free.remove(number)
        heapq.heapify(self.free)
        self.unnamed[number].is_open = True
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
        raise TypeError(f"expected a torch.Tensor, not a "
                        f"{type(tensor).__name__}; broadcast_object takes "
                        f"anything")
    if tensor.is_sparse:
        raise TypeError("sumwire cannot sum a sparse tensor: pass its "
                        "to_dense()")
    dtype_name(tensor.dtype, "tensor")


def hold(call):
    """Return a new handle for a call that has begun."""
    all_calls = calls()
    all_calls.n_handles += 1
    all_calls.open[all_calls.n_handles] = call
    return all_calls.n_handles


def start(tensor, output, name, op, priority, compression, prescale, postscale,
          process_set):
    """Begin an allreduce, and return its handle."""
    check_tensor(tensor)
    if op not in (Average, Sum) or not is_global(process_set):
        return hold(reduce_in(process_set or global_process_set, tensor, output,
                              op, name, compression, prescale, postscale))
    wire = wire_dtype(compression, tensor.dtype)
    words = ("allreduce", tensor.shape, tensor.dtype, op.name,
             *how(tensor.dtype, wire, prescale, postscale))
    if op is Average and is_scaled_first(tensor.dtype):
        prescale /= current().size
    call = Call(output, op, postscale, prescale, stage_of([tensor]))
    if tensor.numel():
        call.start(f"allreduce.{name}" if name else None, words,
                   (tensor.numel(), wire), priority, tensor)
    return hold(call)


def open_call(handle):
    call = calls().open.get(handle)
    if call is None:
        raise ValueError(f"no operation with handle {handle!r} is open: it was "
                         f"synchronized already, or never started")
    return call


def poll(handle):
    """Return True if synchronize(handle) would return or raise an error at
    once.  Do not wait.  Raise ValueError if the handle has ended."""
    return open_call(handle).is_done()


def take_call(handle):
    """End a handle, and return its operation."""
    call = open_call(handle)
    del calls().open[handle]
    return call


def synchronize(handle):
    """Wait for an operation, and return its result: a tensor, or a list for a
    grouped operation.  Raise SumwireError if the operation failed, ValueError
    if the handle has ended.  The handle ends in all cases."""
    call = take_call(handle)
    call.close()
    return call.finish()


def allreduce_async_(tensor, average=None, name=None, op=None,
                     prescale_factor=1.0, postscale_factor=1.0, priority=0,
                     compression=Compression.none, process_set=None, **more):
    """Begin to replace tensor by its average over all ranks, or by the result
    of op.  Return a handle, an int, for poll and synchronize.  Do not read or
    write the tensor until synchronize returns.

    tensor           dense, of any shape
    average          False: Sum; pass either average or op
    name             name of the tensor, the same on all ranks; calls without a
                     name are matched by their order
    op               Average (default), Sum, Min, Max or Product
    prescale_factor  factor for each rank's tensor before the sum
    postscale_factor factor for the result
    priority         urgency of a new name; 0 is the most urgent
    compression      Compression.none, .fp16 or .bf16: dtype on the wire
    process_set      the ProcessSet whose members make this call; None: all
                     ranks.  Calls of a process set, and calls with Min, Max or
                     Product, are matched by their order

    If ranks pass different shapes, dtypes or arguments, synchronize raises
    SumwireError (SW_EMISMATCH) on all of them.  Raise ValueError if the name is
    in use, TypeError for a tensor that cannot be summed."""
    refuse(more)
    return start(tensor, tensor, name, choose_op(average, op), priority,
                 compression, prescale_factor, postscale_factor, process_set)


def allreduce_async(tensor, average=None, name=None, op=None,
                    prescale_factor=1.0, postscale_factor=1.0, priority=0,
                    compression=Compression.none, process_set=None, **more):
    """Begin an allreduce as allreduce_async_ does, into a new tensor, which
    synchronize returns.  The tensor stays unchanged; do not write it until
    synchronize returns."""
    refuse(more)
    check_tensor(tensor)
    return start(tensor, torch.empty_like(tensor, requires_grad=False), name,
                 choose_op(average, op), priority, compression,
                 prescale_factor, postscale_factor, process_set)


def allreduce_(tensor, *args, **kwargs):
    """Replace tensor by its average over all ranks, or by the result of op,
    and return it.  Arguments are those of allreduce_async_."""
    return synchronize(allreduce_async_(tensor, *args, **kwargs))


def check_gradient(options):
    """Raise RuntimeError if gradients do not flow through an allreduce with
    these options."""
    op = choose_op(options["average"], options["op"])
    if op not in (Average, Sum):
        raise RuntimeError(f"allreduce with {op.name} has no gradient; with "
                           f"Average and Sum it has")


class Allreduce(torch.autograd.Function):
    """Differentiate an allreduce: the gradient of a sum over ranks is the sum
    of the ranks' gradients."""

    @staticmethod
    def forward(ctx, tensor, options):
        ctx.options = options
        return synchronize(allreduce_async(tensor, **options))

    @staticmethod
    def backward(ctx, grad):
        check_gradient(ctx.options)
        return allreduce(grad, **ctx.options), None


def allreduce(tensor, average=None, name=None, compression=Compression.none,
              op=None, prescale_factor=1.0, postscale_factor=1.0, **rest):
    """Return the average of tensor over all ranks, or the result of op, as a
    new tensor.  Arguments are those of allreduce_async_, in Horovod's order;
    compression may also be a Compressor of your own.  Gradients flow through it
    if op is Average or Sum; with another op, backward() raises RuntimeError."""
    options = {"average": average, "name": name, "compression": compression,
               "op": op, "prescale_factor": prescale_factor,
               "postscale_factor": postscale_factor, **rest}
    check_tensor(tensor)
    if is_own(compression):
        small, ctx = compression.compress(tensor)
        options["compression"] = Compression.none
        return compression.decompress(allreduce(small, **options), ctx)
    if tensor.requires_grad and torch.is_grad_enabled():
        return Allreduce.apply(tensor, options)
    return synchronize(allreduce_async(tensor, **options))


def barrier(process_set=None, **more):
    """Wait until all ranks, or all members of a process set, have called
    barrier.  Raise SumwireError if one of them fails."""
    refuse(more)
    allreduce_(torch.zeros(1, dtype=torch.int32), op=Sum, name="barrier",
               process_set=process_set)


class Absent(Call):
    """Add zeros to a call of the other ranks, from a rank that has joined."""
    __slots__ = ()

    def __init__(self, told):
        super().__init__(None, Sum, 1)
        dtype = getattr(torch, told["dtype"])
        self.begin_at(calls().served_place(told), told["crc"],
                      (told["n"], dtype), told["priority"], None)

    def fill(self, source):
        self.view = self.shared.flat.zero_()

    def explained(self, error):
        return error

    def drop(self):
        """Wait for the end of the call.  Ignore a mismatch: the other ranks
        raise it themselves."""
        self.close()
        try:
            self.wait()
        except SumwireError as e:
            if e.name != "SW_EMISMATCH":
                raise


@serves("call")
def add_zeros(told):
    current().joins.drop_done()
    return Absent(told)
