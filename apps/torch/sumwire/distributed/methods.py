# methods.py - the collectives of torch.distributed over those of libsumwire
# SPDX-License-Identifier: BSD-3-Clause
"""A group's class derives from Methods and from torch's class for backends,
which depends on PyTorch's version (backend.py, group.py).  gloo carries out
operations that the library lacks: gather, scatter, alltoall, send, recv, and
sums of sparse tensors."""
import ctypes
import functools
import os
import sys
import time

import torch
from torch import distributed as dist
from torch.distributed import distributed_c10d as c10d

from sumwire import library
from sumwire.distributed import (
    attachment, contacts, flight, gloo, homes, layout, machines, quick, storages)
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.local import DTYPES
from sumwire.distributed.meeting import Meeting
from sumwire.distributed.monitored import Monitored
from sumwire.distributed.work import One, Work, held, release, seconds

OPERATIONS = {kind.value: name for kind, name in (
    (dist.ReduceOp.SUM, "sum"), (dist.ReduceOp.AVG, "avg"),
    (dist.ReduceOp.MIN, "min"), (dist.ReduceOp.MAX, "max"),
    (dist.ReduceOp.PRODUCT, "prod"), (dist.ReduceOp.BAND, "band"),
    (dist.ReduceOp.BOR, "bor"), (dist.ReduceOp.BXOR, "bxor"),
    (dist.ReduceOp.PREMUL_SUM, "premul_sum"))}

# Limits in bytes for a list's tensors that travel through one block of shared
# memory.
SCRATCH_MIN, SCRATCH_MAX = 16 << 10, 64 << 20
GRACE_S = 10  # time past the group's timeout for the library to end collectives

# Open groups by id: torch keeps no reference to the Python half of a group.
_groups = {}


def keep_for_ever():
    """Never destroy gloo's groups and stores in a forked child: their
    destructors would wait for threads that only the parent has."""
    for group in _groups.values():
        for what in group, group.gloo, group.opts.store:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


os.register_at_fork(after_in_child=keep_for_ever)


def outermost(method):
    """Exclude a method from torch.compile, by torch.compiler.disable().  Do so
    only after the compiler has been imported, because its import is slow."""
    chosen = method

    @functools.wraps(method)
    def call(*arguments, **more):
        nonlocal chosen
        if chosen is method and "torch._dynamo" in sys.modules:
            chosen = torch.compiler.disable(method)
        return chosen(*arguments, **more)
    return call


def on_memory(method):
    """Give a method tensors in memory."""
    @functools.wraps(method)
    def call(self, *arguments, **more):
        if more:
            more = {k: in_memory(v) for k, v in more.items()}
        return method(self, *map(in_memory, arguments), **more)
    return call


def not_compiled(method):
    """Exclude a method from torch.compile, and give it tensors in memory."""
    return outermost(on_memory(method))


def in_memory(argument):
    """Return an argument, or a list of arguments, with tensors that lie in
    memory.  The result of a functional collective only wraps such a tensor:
    wait for it, because the wrapper itself has no address."""
    kind = type(argument)
    if kind is torch.Tensor:
        return argument
    if kind is list or kind is tuple:
        return [each if type(each) is torch.Tensor else in_memory(each)
                for each in argument]
    if not is_wrapper(kind):
        return argument
    if hasattr(argument, "trigger_wait"):
        return argument.trigger_wait()
    raise ValueError(f"unsupported tensor type {type(argument).__name__}: pass "
                     f"a plain tensor, for example x.to_local()")


@functools.lru_cache(maxsize=64)
def is_wrapper(kind):
    """Return True for a class whose tensors only wrap others."""
    return hasattr(kind, "__tensor_flatten__")


class Methods:
    """Carry out the collectives of a group. self.ranks has the job's rank of
    each member, in the group's order.

    ended  makes the work for a call that has ended and whose caller waits; None:
           torch needs none"""
    ended = None

    def begin(self, opts):
        self.opts, self.name = opts, str(opts.group_id)
        self.me, self.n = opts.group_rank, opts.group_size
        self.limit_s = opts.timeout.total_seconds()
        self.counts = flight.Counts()
        self.error = None
        self.buckets = []  # (work, result, future) of ddp.average
        self.known = {}  # its Known buckets, by address
        members = list(opts.global_ranks_in_group)
        self.global_rank = members[self.me] if members else self.me
        flight.open_group(self.name, members, self.n, self.global_rank)
        self.attachment = self.group = self.machines = None
        self.use(quick.Slow())
        if self.n > 1:
            self._meet()
        else:
            self._open_gloo(opts.store, None)
        _groups[id(self)] = self

    def _meet(self):
        """Make the group at all of its ranks, or fail at all of them."""
        with Meeting(self.opts) as meeting:
            home = homes.Home(meeting, meeting.exchange(
                lambda: homes.mark(meeting, library.problem(),
                                   attachment.job()),
                lambda marks: homes.agree(meeting, marks)))
            self.attachment = attachment.acquire(meeting, home)
            try:
                self._attach(meeting, home)
            except BaseException:
                Methods.shutdown(self)
                raise

    def _attach(self, meeting, home):
        self.calls, self.places = self.attachment.calls, self.attachment.places
        self.ranks = home.ranks
        find_machines = machines.find(self, meeting, home)

        def build():
            self.group = self.attachment.open_group(
                self.name, self.ranks, self.limit_s)
            self.machines = find_machines and find_machines()
            self._open_gloo(meeting.store, home)
            self.use(quick.make(self, OPERATIONS, PAIRS))
        meeting.exchange(build, lambda _: None)

    def _open_gloo(self, store, home):
        self.gloo = gloo.group(store, self.me, self.n, self.opts.timeout,
                               gloo.address(self.attachment, home))
        self.contacts = contacts.Contacts(self.gloo, self.n)
        self.monitored = Monitored(store, self.me, self.n)

    def use(self, new):
        """Let a Quick begin small collectives from now on, also directly from
        the program."""
        self.quick = new
        for name in quick.ENTRIES:
            vars(self).pop(name, None)
        vars(self).update(quick.entries(self, Methods))

    def shutdown(self):
        """Close the group for this process."""
        _groups.pop(id(self), None)
        self.use(quick.Slow())
        if self.attachment:
            attached, self.attachment = self.attachment, None
            if self.machines:
                self.machines.close()
            if self.group:
                self.calls.close_group(self.group)
            attachment.release(attached)

    def abort(self):
        """Abort open collectives with an error, at all members, and close the
        group for this process.  Transfers by gloo end at their timeout: gloo
        cannot abort them.  (A receive that times out closes its connections,
        but ends the process if one has failed before.)"""
        if self.attachment:
            self.calls.abort_group(self.group, "abort() was called")
            if self.machines:
                self.machines.abort("abort() was called")
        self.shutdown()

    def _set_default_timeout(self, timeout):
        self.set_timeout(timeout)

    def set_timeout(self, timeout):
        """Set the timeout of later collectives."""
        self.limit_s = timeout.total_seconds()
        self.gloo._set_default_timeout(timeout)
        self.quick.limit_s = self.limit_s
        if self.group:
            self.calls.set_timeout(self.group, self.limit_s)

    def _set_sequence_number_for_group(self):
        self.counts.calls = 0

    def _get_sequence_number_for_group(self):
        return self.counts.calls

    # --- memory that collectives use in place ---

    def supports_tensor_alloc(self, device):
        """Return True for the CPU.  Return False to C++, which passes a device
        index, because torch's call from C++ to allocate_tensor() fails."""
        return isinstance(device, torch.device) and device.type == "cpu"

    def allocate_tensor(self, size, *, dtype, device):
        block = None
        if self.attachment and size:
            block = self.attachment.memory.block(size * dtype.itemsize)
        if block is None:
            return torch.empty(size, dtype=dtype, device=device)
        return torch.frombuffer(block, dtype=dtype, count=size)

    # --- reductions ---

    @outermost
    def allreduce(self, tensors, opts=None, timeout=None, *, op=None):
        return self.rest_of_allreduce(
            self.quick.all_reduce(tensors, opts), tensors, opts, timeout, op=op)

    @outermost
    def rest_of_allreduce(self, begun, tensors, opts=None, timeout=None, *,
                          op=None):
        """Do the work that a Quick has left; begun: its result."""
        if begun is NotImplemented:
            return self._allreduce(tensors, opts, timeout, op=op)
        return self.end_of(begun, tensors)

    def end_of(self, begun, tensors):
        """Wait for a collective that a Quick has begun."""
        if held:
            release()
        if begun:
            quick.finish(self, begun, GRACE_S)
        return self.ended and self.ended(tensors)

    @on_memory
    def _allreduce(self, tensors, opts, timeout, *, op):
        tensors, opts = listed(tensors), options(
            c10d.AllreduceOptions, opts, reduceOp=op, timeout=timeout)
        for t in tensors:
            if t.layout is torch.sparse_coo:
                return self._allreduce_sparse(tensors, opts)
        how = operation("all_reduce", tensors, opts.reduceOp)
        if len(tensors) == 1 and "scale" not in how and (
                self.is_quick(tensors[0])):
            return self.one("all_reduce", tensors, opts, how["op"])
        flat, back = layout.targets(tensors)
        layout.check_apart(flat, "all_reduce")
        work = self.work("all_reduce", tensors, back)
        for t in flat:
            if self.machines and self.machines.takes(t, how["op"]):
                self.record(work, seconds(opts.timeout), "all_reduce", t, t)
                self.machines.start(work, t, how)
            else:
                self.add(work, opts, "all_reduce", t, t, **how)
        return work.seal()

    def average(self, tensor, has_views):
        """Begin to average a tensor, whose content is then undefined. Return a
        work, and the tensor that holds the average after the work: in shared
        memory if possible. If the tensor has a storage of its own, move the
        tensor there as well; has_views(): see storages.move()."""
        if tensor.layout is torch.sparse_coo:
            return self.allreduce([tensor.div_(self.n)]), tensor
        if tensor.is_complex():
            work, result = self.average(torch.view_as_real(tensor), has_views)
            return work, torch.view_as_complex(result)
        opts = c10d.AllreduceOptions()
        opts.reduceOp = dist.ReduceOp.AVG
        how = operation("all_reduce", [tensor], opts.reduceOp)
        if self.n == 1 or not tensor.numel() or not layout.is_usual(tensor) or (
                self.places.of(tensor) or
                self.machines and self.machines.takes(tensor, how["op"]) or
                self._is_in_place(tensor, has_views)):
            return self.allreduce([tensor], opts), tensor
        result = self.allocate_tensor(tensor.numel(), dtype=tensor.dtype,
                                      device=tensor.device).view(tensor.shape)
        work = self.work("all_reduce", [result])
        self.add(work, opts, "all_reduce", tensor, result, **how)
        return work.seal(), result

    def _is_in_place(self, tensor, has_views):
        """Return True for a tensor in shared memory.  Move a new one there."""
        memory = self.attachment.memory
        return storages.is_moved(tensor, memory) or (
            tensor.numel() * tensor.element_size() >= SCRATCH_MIN and
            storages.move(tensor, memory, has_views()))

    def _allreduce_sparse(self, tensors, opts):
        """Sum sparse tensors with gloo, which gathers the indices and values of
        all ranks and adds them up."""
        for t in tensors:
            layout.check_sparse(t)
        self.counts.calls += 1
        return self.gloo.allreduce(tensors, opts)

    @not_compiled
    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    @not_compiled
    def reduce(self, tensors, opts=None, op=None, timeout=None, *, root=None):
        tensors = listed(tensors)
        opts = options(c10d.ReduceOptions, opts, rootRank=root, reduceOp=op,
                       timeout=timeout)
        root = opts.rootRank
        how = operation("reduce", tensors, opts.reduceOp)
        flat, back = layout.targets(tensors)
        layout.check_apart(flat, "reduce")
        work = self.work("reduce", tensors, back)
        for t in flat:
            self.add(work, opts, "reduce", t,
                     t if self.me == root else None, root=root, **how)
        return work.seal()

    @not_compiled
    def reduce_scatter(self, outputs, inputs, opts=None, timeout=None, *,
                       op=None):
        outputs, inputs = listed(outputs), lists(inputs)
        opts = options(c10d.ReduceScatterOptions, opts, reduceOp=op,
                       timeout=timeout)
        for out, parts in zip(outputs, inputs):
            self.check_list(parts, out, "reduce_scatter")
        return self.reduce_scatter_single_coalesced(
            outputs, [self._one(parts) for parts in inputs], opts)

    def _one(self, parts):
        """Return the tensors as one: without a copy if they are contiguous in
        memory or the library takes their addresses, otherwise with one copy, in
        memory where the library takes it."""
        parts = [layout.source(t) for t in parts]
        whole = self._whole(parts)
        if whole is None:
            sizes = [t.numel() for t in parts]
            whole, began_ns = self.scratch(sum(sizes), parts[0]), time.monotonic_ns()
            layout.copy((to, t.view(-1))
                        for to, t in zip(whole.split(sizes), parts))
            layout.noted(whole, began_ns)
        return whole

    def _whole(self, parts, are_results=False):
        """Return one tensor, or Rows, that stands for these tensors; None if
        they need a copy."""
        whole = layout.joined(parts)
        if whole is None and self.n > 1 and layout.are_rows(
                parts, are_results) and not self.places.of(parts[0]):
            return layout.Rows(parts, self.me)
        return whole

    @not_compiled
    def reduce_scatter_single(self, output, tensor, opts=None):
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    @not_compiled
    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        opts = options(c10d.ReduceScatterOptions, opts, reduceOp=None)
        how = operation("reduce_scatter", outputs, opts.reduceOp)
        flat, back = layout.targets(outputs)
        wholes = [t if isinstance(t, layout.Rows) else layout.source(t)
                  for t in inputs]
        for out, t in zip(flat, wholes):
            self.parted(out, t, "reduce_scatter")
        wholes = layout.apart(wholes, flat, "reduce_scatter", [
            self.is_own(out, t) for out, t in zip(flat, wholes)])
        work = self.work("reduce_scatter", outputs, back)
        for out, t in zip(flat, wholes):
            self.add(work, opts, "reduce_scatter", t, out, **how)
        return work.seal()

    # --- movement of data ---

    @outermost
    def broadcast(self, tensors, opts=None, timeout=None, *, root=None):
        return self.rest_of_broadcast(
            self.quick.broadcast(tensors, opts), tensors, opts, timeout,
            root=root)

    @outermost
    def rest_of_broadcast(self, begun, tensors, opts=None, timeout=None, *,
                          root=None):
        if begun is NotImplemented:
            return self._broadcast(tensors, opts, timeout, root=root)
        return self.end_of(begun, tensors)

    @on_memory
    def _broadcast(self, tensors, opts, timeout, *, root):
        tensors = listed(tensors)
        opts = options(c10d.BroadcastOptions, opts, rootRank=root,
                       timeout=timeout)
        if len(tensors) == 1 and self.is_quick(tensors[0]):
            return self.one("broadcast", tensors, opts, "sum", opts.rootRank)
        flat, back = layout.targets(tensors)
        layout.check_apart(flat, "broadcast")
        work = self.work("broadcast", tensors, back)
        for t in flat:
            self.add(work, opts, "broadcast", t, t, root=opts.rootRank)
        return work.seal()

    @not_compiled
    def allgather(self, outputs, inputs, opts=None, *, timeout=None):
        outputs, inputs = lists(outputs), listed(inputs)
        opts = options(c10d.AllgatherOptions, opts, timeout=timeout)
        for parts, t in zip(outputs, inputs):
            self.check_list(parts, t, "all_gather")
            for out in parts:
                layout.check_result(out)
        if any(o.shape != parts[0].shape for parts in outputs for o in parts):
            return self._gather_uneven(outputs, inputs, opts)
        flat, copied = [], []
        for parts, t in zip(outputs, inputs):
            whole = self._whole(parts, are_results=True)
            if whole is None:
                whole = self.scratch(self.n * t.numel(), t)
                copied += [(out, part.view(out.shape)) for out, part in
                           zip(parts, whole.chunk(self.n))]
            flat.append(whole)
        after = layout.Back(copied) if copied else None
        return self._gather(flat, inputs, opts, outputs, after)

    def _gather_uneven(self, outputs, inputs, opts):
        """Gather tensors of different sizes: each rank broadcasts its tensor,
        as with NCCL."""
        flat, back = layout.targets(sum(outputs, []))
        layout.check_apart(flat, "all_gather")
        work = self.work("all_gather", outputs, back)
        for i, out in enumerate(flat):
            mine = inputs[i // self.n] if i % self.n == self.me else None
            self.add(work, opts, "broadcast", out if mine is None else
                     layout.source(mine), out, root=i % self.n)
        return work.seal()

    @not_compiled
    def allgather_coalesced(self, outputs, inputs, opts=None):
        """Gather several tensors.  outputs has one list for each rank."""
        return self.allgather(list(zip(*outputs)), inputs, opts)

    @not_compiled
    def all_gather_single(self, output, tensor, opts=None):
        return self.all_gather_single_coalesced([output], [tensor], opts)

    @not_compiled
    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        flat, back = layout.targets(outputs)
        return self._gather(flat, inputs,
                            options(c10d.AllgatherOptions, opts, timeout=None),
                            outputs, back)

    def _gather(self, wholes, inputs, opts, results, after):
        """Gather each input of all ranks into one plain tensor of wholes, in
        the group's order."""
        parts = [layout.source(t) for t in inputs]
        for whole, t in zip(wholes, parts):
            self.parted(t, whole, "all_gather")
        parts = layout.apart(parts, wholes, "all_gather", [
            self.is_own(t, whole) for whole, t in zip(wholes, parts)])
        work = self.work("all_gather", results, after)
        for whole, t in zip(wholes, parts):
            self.add(work, opts, "all_gather", t, whole)
        return work.seal()

    @not_compiled
    def barrier(self, opts=None, timeout=None):
        """Wait for all ranks, and for all earlier collectives of this group, as
        gloo and NCCL do."""
        opts = options(c10d.BarrierOptions, opts, timeout=timeout)
        before = self.calls.open_of(self.group) if self.n > 1 else []
        if self.machines and self.machines.last:
            before.append(self.machines.last)
        work = self.work("barrier", [])
        work.blocks = True
        for call in before:
            work.begin(None, call.follow)
        if self.n > 1:
            limit_s = seconds(getattr(opts, "timeout", None))
            self.record(work, limit_s, "barrier", None, None)
            work.add(self.group, "barrier", "u8", 1, None, None,
                     limit_s=limit_s or self.limit_s + GRACE_S)
        return work.seal()

    def monitored_barrier(self, opts=None, wait_all_ranks=False):
        """Wait for all ranks, and name missing ranks in the error.  opts:
        torch's options of a barrier, a timedelta, or None.  A timeout of 0
        expires at once; -1 means the group's timeout."""
        timeout = getattr(opts, "timeout", opts)
        limit_s = None if timeout is None else timeout.total_seconds()
        if limit_s is None or limit_s < 0:
            limit_s = self.limit_s
        self.monitored.wait(limit_s, self.limit_s, wait_all_ranks)

    # names before PyTorch 2.13
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- shared parts ---

    def work(self, kind, results, after=None):
        self.counts.calls += 1
        return Work(self.calls if self.n > 1 else None, results, after,
                    self.failed, flight.profile(kind))

    def is_quick(self, tensor):
        """Return True for a usual tensor in host memory, if nothing watches the
        calls of this group."""
        return (self.n > 1 and not self.machines and not self.places.is_fake and
                layout.is_usual(tensor) and tensor.numel() > 0 and
                not flight.is_profiled() and not self.calls.client.timeline)

    def one(self, kind, tensors, opts, op, root=0):
        """Start a collective on a list of one quick tensor, in place, and
        return its work. It is a cheaper work(), add() and seal()."""
        self.counts.calls += 1
        self.counts.parts += 1
        t = tensors[0]
        limit_s = seconds(opts.timeout)
        work = One(self, kind, tensors, limit_s or self.limit_s + GRACE_S,
                   flight.begin(self.name, self.counts.parts, kind, t, t,
                                limit_s or self.limit_s))
        count, dtype, place = t.numel(), DTYPES.get(t.dtype), t.data_ptr()
        if dtype is None:  # the collective only moves data
            count, dtype = count * t.element_size(), "u8"
        try:
            self.calls.begin(work, kind, dtype, count, place, place,
                             self.ranks[root], op, 1.0)
        except SumwireError as e:
            work.end(e)
        return work

    def failed(self, error):
        if not self.error:
            self.error = error
            if self.attachment:
                self.attachment.watch.failed(error)

    def record(self, work, limit_s, kind, send, recv):
        """Keep a part of work for the flight recorder.  limit_s: the call's own
        limit, or None."""
        self.counts.parts += 1
        work.records.append(flight.begin(
            self.name, self.counts.parts, kind, send, recv, limit_s or self.limit_s))

    def add(self, work, opts, kind, send, recv, root=0, **how):
        """Start a collective of plain tensors as a part of work.  In a group of
        one member, copy instead.  Without a timeout in opts, add GRACE_S to the
        group's, because the library enforces that one itself."""
        if recv is not send and recv is not None and (
                recv.device != send.device):
            raise ValueError(f"{kind} from {send.device} to {recv.device}: "
                             f"sumwire takes tensors of one device")
        if self.n == 1:
            if recv is not send:
                recv.copy_(send.view(recv.shape))
            if "scale" in how:
                recv.mul_(how["scale"])
            return
        limit_s = seconds(getattr(opts, "timeout", None))
        self.record(work, limit_s, kind, send, recv)
        limit_s = limit_s or self.limit_s + GRACE_S
        count, dtype = send.numel(), DTYPES.get(send.dtype)
        if kind == "reduce_scatter":
            count //= self.n
        if dtype is None:  # the collective only moves data
            count, dtype = count * send.element_size(), "u8"
        if count:
            work.add(self.group, kind, dtype, count, send, recv,
                     root=self.ranks[root], limit_s=limit_s,
                     device=self.places.of(send), **how)
        else:  # take part, so that a mismatch with other ranks is detected
            work.add(self.group, "barrier", "u8", 1, None, None,
                     limit_s=limit_s)

    # Arguments have torch's names.
    @not_compiled
    def send(self, tensors, dstRank, tag):
        return self.contacts.call("send", dstRank, layout.for_gloo(
            "send", [tensors, dstRank, tag]))

    @not_compiled
    def recv(self, tensors, srcRank, tag):
        return self.contacts.call("recv", srcRank, layout.for_gloo(
            "recv", [tensors, srcRank, tag]))

    def scratch(self, count, like):
        """Return a tensor of count elements for one call, in shared memory if
        that saves a copy.  Sizes are powers of two, because the library keeps
        such memory for later calls."""
        n_bytes = count * like.element_size()
        if like.is_cpu and self.n > 1 and (
                SCRATCH_MIN <= n_bytes <= SCRATCH_MAX):
            size = (1 << (n_bytes - 1).bit_length()) // like.element_size()
            return self.allocate_tensor(size, dtype=like.dtype,
                                        device=like.device)[:count]
        return torch.empty(count, dtype=like.dtype, device=like.device)

    def parted(self, part, whole, what):
        if part.numel() * self.n != whole.numel() or part.dtype != whole.dtype:
            raise ValueError(
                f"{what}: expected {self.n} times {part.numel()} elements of "
                f"{part.dtype}, a part for each rank of the group; found "
                f"{whole.numel()} of {whole.dtype}")

    def is_own(self, part, whole):
        """Return True if part is this rank's part of whole, as in a collective
        in place."""
        if isinstance(whole, layout.Rows):
            return part.data_ptr() == whole.addresses[self.me]
        return part.data_ptr() == (whole.data_ptr() + self.me * part.numel() *
                                   part.element_size())

    def check_list(self, parts, single, what):
        """Raise ValueError unless parts has one tensor for each rank, like the
        single tensor of this rank."""
        if len(parts) != self.n:
            raise ValueError(f"{what}: the list has {len(parts)} tensors: pass "
                             f"one for each of the group's {self.n} ranks")
        mine = parts[self.me]
        if mine.numel() != single.numel():
            raise ValueError(f"{what}: the tensor has shape "
                             f"{list(single.shape)}, but this rank's in the "
                             f"list has {list(mine.shape)}: pass tensors with "
                             f"the same number of elements")
        for t in parts:
            if (t.dtype, t.device) != (single.dtype, single.device):
                raise ValueError(f"{what} of {single.dtype} on {single.device} "
                                 f"with {t.dtype} on {t.device}: pass tensors "
                                 f"of one dtype on one device")


def by_gloo(name):
    """Return a method that passes its arguments to gloo."""
    @not_compiled
    def method(self, *arguments, **more):
        arguments = layout.for_gloo(
            name, [a for a in arguments if a is not None])
        return getattr(self.gloo, name)(
            *arguments, **{k: v for k, v in more.items() if v is not None})
    method.__name__ = name
    return method


def options(kind, opts, **fields):
    """Return options of torch's class kind.  In torch's short forms callers
    pass the fields instead, the first one by name or in place of opts."""
    if isinstance(opts, kind):
        return opts
    if hasattr(opts, "timeout"):  # another class, as for coalesced methods
        fields = {name: getattr(opts, name, None) for name in fields}
        fields["timeout"] = opts.timeout
    elif opts is not None:
        fields[next(iter(fields))] = opts
    made = kind()
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    return made


def listed(tensors):
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def lists(tensors):
    """Return a list of lists.  A flat list of tensors becomes its first
    list."""
    if tensors and isinstance(tensors[0], torch.Tensor):
        return [list(tensors)]
    return [list(each) for each in tensors]


def operation(what, tensors, op):
    """Return the library's arguments for an operation of torch.  Raise
    ValueError if the library lacks it for a tensor's dtype."""
    kind = getattr(op, "op", op)
    name = OPERATIONS.get(kind.value)
    for t in tensors:
        if (name, t.dtype) not in PAIRS:
            raise ValueError(f"{what}: sumwire has no {name or kind} of "
                             f"{t.dtype}: convert the tensor, or choose another "
                             f"operation")
    if name != "premul_sum":
        return {"op": name}
    return {"op": name, "scale": float(op.__getstate__()[1])}


def has(name, dtype):
    """Return True if the library has the operation for the dtype."""
    if name == "premul_sum":
        return dtype.is_floating_point
    if name == "avg":
        return dtype != torch.bool
    return name not in ("band", "bor", "bxor") or not dtype.is_floating_point


PAIRS = {(name, dtype) for name in OPERATIONS.values() for dtype in DTYPES
         if has(name, dtype)}
