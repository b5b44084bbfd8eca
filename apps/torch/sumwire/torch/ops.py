# ops.py - sums of single tensors: allreduce, handles
# SPDX-License-Identifier: BSD-3-Clause
import functools
import heapq
import re
import zlib

import torch

from sumwire.client import SumwireError
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
    """A name of allreduce: one declared tensor per size and type it has had.

    Ranks that call it with other sizes would push different tensors, and wait
    without end.  So a call whose size is not that of the last one first pushes
    the last one's tensor: its sum is dropped, but all have the tag of the new
    call there, or they learn that they differ.  Then they have differed in
    nothing before: the tensors of a place, and its counts, are the same on all
    ranks."""

    def __init__(self, name, number=None):
        self.name = name
        self.number = number  # of those without a name
        self.made = {}  # by elements, type on the wire, stage
        self.n_made = self.n_calls = 0
        self.last = None  # of the last call
        self.is_open = False

    def next_name(self):
        """That of one more tensor.  Counting, not the size, makes it: so other
        ranks that have another size here are found out when it is
        declared."""
        self.n_made += 1
        return self.name + (f"#{self.n_made}" if self.n_made > 1 else "")

    def forget(self):
        """A call has failed, on all ranks: the next one is a first one."""
        self.made, self.last = {}, None


@functools.lru_cache(maxsize=4096)
def checksum(words):
    return zlib.crc32(repr(words).encode())


def describe(words):
    """A call as its user wrote it."""
    what, shape, dtype, *rest = words
    shape = "" if shape is None else f" {tuple(shape)}"
    rest = "".join(f", {r}" for r in rest if r is not None)
    return f"{what} of {str(dtype).replace('torch.', '')}{shape}{rest}"


class Call:
    """An operation that has begun and not been synchronized.

    words   what all ranks must say alike: operation, shape, type, …
    key     elements and type on the wire; source is what is to be sent
    stage   of the device in whose memory it is; None: in this machine's
    shared  the tensor in shared memory, or a device's, None when there are no
            elements; view is that in the shape of the source
    error   why it has failed, found while something else was waited for
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
        """Send the source, at once or when that can be."""
        self.words = words = (*words, "of a device" if self.stage else None)
        if "\0" in str(name) or not isinstance(priority, int) or \
                not 0 <= priority < 1 << 31:
            raise ValueError(
                f"name={name!r}, priority={priority!r}: a name without NUL and "
                f"a priority of at least 0, which is the most urgent, were "
                f"expected")
        self.number = None
        place = calls().place(name)
        try:
            self.begin_at(place, checksum(words), key, priority, source)
        except BaseException:  # nobody gets a handle
            calls().give_back(place)
            raise

    def begin_at(self, place, crc, key, priority, source):
        """The same, at a place that is now this call's."""
        self.place, self.key, self.priority = place, key, priority
        self.crc = crc
        self.number = current().joins.note(self, is_sum=self.can_join)
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

    can_join = True  # do ranks that have joined add zeros?

    def describe(self):
        """For ranks that have joined: other tags than the call's own make it
        fail at all ranks."""
        return {"kind": "call", "name": self.place.name,
                "number": self.place.number,
                "crc": self.crc + (not self.can_join),
                "n": self.key[0], "dtype": str(self.key[1])[6:],
                "priority": self.priority}

    def go_on(self):
        """All ranks make this call: with its own tensor now."""
        shared = self.place.made.get((self.key, self.stage))
        if shared is not None:
            self.begin(shared)
            return
        self.desc = (self.place.next_name(), *self.key, self.priority)
        current().declare_later(self)

    def keep(self):
        """The source is to be sent later, and the caller may change it."""
        if self.source is not None and self.output is not self.source:
            self.source = self.output.copy_(self.source.detach())

    def begin(self, shared):
        """The tensor is declared: send the source."""
        self.shared = self.place.last = shared
        self.place.made[self.key, self.stage] = shared
        source, self.source = self.source, None
        self.fill(source)
        self.is_begun = True
        self.push(shared)

    def fill(self, source):
        """The source into the shared memory."""
        if source.requires_grad:
            source = source.detach()
        self.view = self.shared.view(source.shape)
        self.view.copy_(scaled(source, self.prescale))

    def push(self, shared):
        current().push(shared, self.tag)

    def is_done(self):
        """Also true when it has failed, as finish() will say."""
        if self.place is None or self.error is not None:
            return True
        current().progress()
        try:
            return self.is_begun and current().is_done(self.shared)
        except SumwireError as e:
            self.error = e
            return True

    def close(self):
        """Others may have its place."""
        if self.place is not None:
            calls().give_back(self.place)

    def finish(self):
        """Wait, and return the result."""
        if self.place is not None:
            try:
                self.wait()
            finally:
                current().joins.ended(self.number)
            self.take()
        return self.output

    def wait(self):
        job = current()
        if not self.is_begun:
            job.progress_until(lambda: self.is_begun or self.error)
        try:
            if self.error is not None:
                raise self.error
            if self in job.changing:  # for too long
                self.shared.client.wait(self.shared.tensor)
            elif not self.is_begun:
                raise RuntimeError(f"'{self.place.name}' was not declared; the "
                                   f"error before this one says why")
            job.wait(self.shared)
            if self.stage:  # an error is this call's, not a later one's
                self.stage.settle(self.shared.tensor)
        except SumwireError as e:
            if e.name != "SW_EMISMATCH":
                raise
            self.place.forget()
            raise self.explained(e) from None

    def explained(self, error):
        """With this rank's call.  Of two tags that differ no one can tell what
        they stand for."""
        text = re.sub(r"rank (\d+) pushes step \d+, rank (\d+) pushes step \d+",
                      r"rank \1 makes another call than rank \2", error.text)
        return SumwireError(error.name, f"{text}; this is rank "
                            f"{current().rank}, which calls "
                            f"{describe(self.words)}"
                            f"{current().joins.words()}")

    def take(self):
        """The result, written into output."""
        output = self.output
        if output.requires_grad:  # only then: no_grad costs as much as a copy
            output = output.detach()
        output.copy_(self.view)
        divide(output, self.op, self.factor)


class Calls:
    """The places and open handles of a job."""

    def __init__(self):
        self.places = {}
        self.unnamed, self.free = [], []  # all, numbers of those not open
        self.open = {}
        self.n_handles = 0

    def place(self, name):
        """The place of a name; without one the first that is not open, which
        is the same on all ranks since they make the same calls."""
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
        """Where the others have called what a rank that has joined adds to."""
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
        raise TypeError(f"a torch.Tensor is needed, not a "
                        f"{type(tensor).__name__}; broadcast_object takes "
                        f"anything")
    if tensor.is_sparse:
        raise TypeError("the tensor is sparse, which sumwire cannot sum: pass "
                        "its to_dense()")
    dtype_name(tensor.dtype, "tensor")


def hold(call):
    """A handle for a call that has begun."""
    all_calls = calls()
    all_calls.n_handles += 1
    all_calls.open[all_calls.n_handles] = call
    return all_calls.n_handles


def start(tensor, output, name, op, priority, compression, prescale, postscale,
          process_set):
    """Begin an allreduce; returns its handle."""
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
    """Would synchronize(handle) return at once?  Never blocks."""
    return open_call(handle).is_done()


def take_call(handle):
    """End the handle of an operation that has begun, which is returned."""
    call = open_call(handle)
    del calls().open[handle]
    return call


def synchronize(handle):
    """Wait for an operation; returns its result and ends the handle."""
    call = take_call(handle)
    call.close()
    return call.finish()


def allreduce_async_(tensor, average=None, name=None, op=None,
                     prescale_factor=1.0, postscale_factor=1.0, priority=0,
                     compression=Compression.none, process_set=None, **more):
    """Begin to replace tensor by its average (or by what op says) over all
    ranks.  Returns a handle for poll and synchronize; until then it must not
    be used.
    name: the same on all ranks; without one, calls are matched by order.
    op: Average, Sum, Min, Max or Product.
    priority: of a new name; 0 is the most urgent.
    process_set: a ProcessSet, whose members call it; None: all ranks.  Calls of
    a process set, and those of Min, Max and Product, are matched by order."""
    refuse(more)
    return start(tensor, tensor, name, choose_op(average, op), priority,
                 compression, prescale_factor, postscale_factor, process_set)


def allreduce_async(tensor, average=None, name=None, op=None,
                    prescale_factor=1.0, postscale_factor=1.0, priority=0,
                    compression=Compression.none, process_set=None, **more):
    """As allreduce_async_, into a new tensor."""
    refuse(more)
    check_tensor(tensor)
    return start(tensor, torch.empty_like(tensor, requires_grad=False), name,
                 choose_op(average, op), priority, compression,
                 prescale_factor, postscale_factor, process_set)


def allreduce_(tensor, *args, **kwargs):
    """Replace tensor by its average (or sum) over all ranks."""
    return synchronize(allreduce_async_(tensor, *args, **kwargs))


def check_gradient(options):
    """Raise an error where gradients do not flow through an allreduce."""
    op = choose_op(options["average"], options["op"])
    if op not in (Average, Sum):
        raise RuntimeError(f"gradients flow through an allreduce with Average or "
                           f"Sum, not with {op.name}")


class Allreduce(torch.autograd.Function):
    """The gradient of a sum over ranks is the sum of the gradients."""

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
    """The average (or sum) of tensor over all ranks, as a new tensor;
    arguments as of allreduce_async, in Horovod's order.  Gradients flow
    through it."""
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
    """Return when all ranks, or the members of a process set, have called it.
    """
    refuse(more)
    allreduce_(torch.zeros(1, dtype=torch.int32), op=Sum, name="barrier",
               process_set=process_set)


class Absent(Call):
    """Zeros that a rank adds which has joined, to a call of the others."""
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
        """Wait for it; that others have an error is as it should be."""
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
