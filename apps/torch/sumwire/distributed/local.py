# local.py - sums among the ranks of one machine, by a group of torch
# SPDX-License-Identifier: BSD-3-Clause
"""This module does the local half of hierarchical sums (BytePS, OSDI'20 section
4.2).  The ranks of a machine reduce-scatter their tensors.  Each rank sums its
part over the network with the ranks at its place on the other machines.  Then
the ranks of a machine gather the parts.  The network carries each byte once per
machine instead of once per rank."""
import contextlib
import ctypes
import datetime
import os
import secrets
import socket
import time
import weakref

import torch
from torch import distributed as dist

from sumwire.distributed.errors import SumwireError

# Names of torch's dtypes in enum sw_dtype.
DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16",
          torch.bfloat16: "bf16", torch.uint8: "u8", torch.int8: "i8",
          torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
BACKENDS = ("gloo", "nccl")
ALIGN = 16  # alignment of parts, in elements
GRACE_S = 10  # torch's timeout past the limit, so that sumwire's error is first
SOON_S = 1  # time in which a job learns that a process has ended
LOOK_S = 0.2  # period of polling for messages of other ranks
PAUSE_S = 100e-6  # period of polling a work
TEXT_BYTES = 1000
ASK, ANSWER = b"\1", b"\2"  # first bytes; no text begins with them
LOOPBACK = "127.0.0.1"


_all = weakref.WeakSet()  # all Local objects
_kept = set()  # Local objects whose sums have failed


def keep_for_ever():
    """Never destroy groups in a forked child: their destructors would wait for
    threads that only the parent has."""
    for each in list(_all):
        for what in each.scatters, each.gathers, each.store:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


os.register_at_fork(after_in_child=keep_for_ever)


def asked_for(wanted):
    """Return False, True, or the name of the local backend: the argument, or
    for None what SUMWIRE_HIERARCHICAL says."""
    if wanted is None:
        wanted = os.environ.get("SUMWIRE_HIERARCHICAL", "0")
    wanted = {"": False, "0": False, "1": True}.get(wanted, wanted)
    if wanted not in (False, True, *BACKENDS):
        raise ValueError(f"hierarchical={wanted!r}: expected True, False, or "
                         f"the backend inside a machine, "
                         f"{' or '.join(BACKENDS)}")
    return wanted


def choose_backend(wanted, device):
    """Return the name of the local backend for a device.  Raise ValueError if
    the backend is not available for it."""
    kind = wanted if wanted in BACKENDS else (
        "nccl" if device.type == "cuda" else "gloo")
    if kind == "nccl" and device.type != "cuda":
        raise ValueError(f"nccl adds tensors of CUDA devices, not of the "
                         f"{device.type}: use gloo")
    if not getattr(dist, f"is_{kind}_available", lambda: dist.is_available())():
        raise ValueError(f"sums inside a machine need {kind}, and this PyTorch "
                         f"was built without it")
    return kind


def lay_out(machines, me):
    """Return (ranks of this rank's machine, ranks at its place on each
    machine), in the same order on all ranks.  machines: the machine of each
    rank.  Raise SumwireError if machines have different numbers of ranks."""
    rows = {}
    for rank, machine in enumerate(machines):
        rows.setdefault(machine, []).append(rank)
    here, *others = rows.values()
    for row in others:
        if len(row) != len(here):
            raise SumwireError(
                "SW_EREFUSED", f"hierarchical sums need the same number of "
                f"ranks on each machine: that of rank {here[0]} has "
                f"{len(here)}, that of rank {row[0]} has {len(row)}")
    mine = rows[machines[me]]
    return mine, [row[mine.index(me)] for row in rows.values()]


class Bell:
    """Tell the other ranks of a machine that this rank has failed, and ask
    which of them wait.  Datagrams never block the sender, even if the receiver
    is dead or frozen."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        self.socket.setblocking(False)
        # Other ranks know this number: a secret, and the port.
        self.number = (secrets.randbits(40) << 16 |
                       self.socket.getsockname()[1])
        self.rank, self.others = 0, {}  # numbers of the other ranks, by rank
        self.silent = set()  # ranks that have not answered ask() yet

    def meet(self, rank, numbers):
        """Set this rank, and the numbers of all ranks on this machine."""
        self.rank = rank
        self.others = {r: n for r, n in numbers.items() if r != rank}

    def _send(self, rank, said):
        number = self.others[rank]
        with contextlib.suppress(OSError):
            self.socket.sendto(number.to_bytes(8, "little") + said,
                               (LOOPBACK, number & 0xffff))

    def ring(self, text):
        for rank in self.others:
            self._send(rank, text.encode()[:TEXT_BYTES])

    def ask(self):
        """Ask all other ranks whether they wait.  Each waiting rank answers,
        and its answer removes it from silent."""
        self.silent = set(self.others)
        for rank in self.others:
            self._send(rank, ASK + str(self.rank).encode())

    def heard(self):
        """Answer questions, and return another rank's error text, or None."""
        with contextlib.suppress(BlockingIOError):
            while True:
                said = self.socket.recv(8 + TEXT_BYTES)
                if said[:8] != self.number.to_bytes(8, "little"):
                    continue
                kind, rank = said[8:9], said[9:].decode(errors="replace")
                if kind == ASK:
                    self._send(int(rank), ANSWER + str(self.rank).encode())
                elif kind == ANSWER:
                    self.silent.discard(int(rank))
                else:
                    return said[8:].decode(errors="replace")
        return None


def make_group(kind, store, me, n, limit_s):
    """Make a group of torch without init_process_group()."""
    limit = datetime.timedelta(seconds=limit_s + GRACE_S)
    if kind == "nccl":
        return dist.ProcessGroupNCCL(store, me, n, limit)
    options = dist.ProcessGroupGloo._Options()
    options._timeout = limit
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=LOOPBACK)]
    return dist.ProcessGroupGloo(store, me, n, options)


class Local:
    """Connect the n ranks of this machine; this one is at place me.  All of
    them call scatter() in one order, and gather() in one order.  Only wait()
    and check() wait."""

    def __init__(self, kind, store, me, n, limit_s, bell):
        self.kind, self.store, self.me, self.n = kind, store, me, n
        self.limit_s, self.bell = limit_s, bell
        # NCCL serializes a group's operations, and a gather may wait for other
        # machines, so scatters have a group of their own.
        self.scatters, self.gathers = (
            make_group(kind, dist.PrefixStore(what, store), me, n, limit_s)
            for what in ("scatters/", "gathers/"))
        _all.add(self)

    def keep(self):
        """Keep the groups until the process ends.  After a failed sum,
        operations in torch's group may end only at their timeout, and its
        destructor would wait for them in the thread that collects garbage."""
        _kept.add(self)

    def padded(self, n_elems):
        """Return n_elems, rounded up so that parts are equal and aligned."""
        step = self.n * ALIGN
        return -(-n_elems // step) * step

    def part(self, flat):
        """Return this rank's part of flat."""
        count = flat.numel() // self.n
        return flat[self.me * count:(self.me + 1) * count]

    def scatter(self, flat):
        """Replace this rank's part by the sum over the machine's ranks, and
        return torch's work.  The content of the other parts is undefined."""
        if self.kind == "nccl":
            return self.scatters._reduce_scatter_base(self.part(flat), flat)
        # gloo's reduce-scatter is n allreduces, or is missing.
        return self.scatters.allreduce([flat])

    def gather(self, flat):
        """Gather the parts of all ranks at all of them, and return torch's
        work. """
        if self.kind == "nccl":
            return self.gathers._allgather_base(flat, self.part(flat))
        return self.gathers.allgather([list(flat.chunk(self.n))],
                                      [self.part(flat)])

    def wait(self, work, look):
        """Wait until the work has ended, for at most limit_s.  Meanwhile call
        look(), which may raise."""
        start = time.monotonic()
        due = start + LOOK_S
        while not work.is_completed():
            now = time.monotonic()
            if now > start + self.limit_s:
                raise self.late()
            if now > due:
                due = now + LOOK_S
                self.hear(look)
            time.sleep(PAUSE_S)
        self.check(work, look)

    def late(self):
        """Return the error for a wait past its limit.  It names the ranks that
        do not wait themselves: they are the missing ones."""
        who = self.silent(lambda: None)  # a failed job would be a consequence
        return SumwireError(
            "SW_ETIMEDOUT", f"{self.kind} timed out after {self.limit_s:g} s, "
            f"missing {who}" if who else
            f"{self.kind} between the ranks of this machine timed out after "
            f"{self.limit_s:g} s, though all of them wait for it")

    def silent(self, look):
        """Return the ranks of this machine that do not wait for this sum, as
        text; "" if all of them wait."""
        self.bell.ask()
        self.explain(look)
        who = sorted(self.bell.silent)
        return (f"rank{'s' if len(who) > 1 else ''} "
                f"{', '.join(map(str, who))} of this machine" if who else "")

    def check(self, work, look):
        """Raise an error if the work has failed.  For a device, the current
        stream waits for the work."""
        try:
            work.wait()
        except RuntimeError as e:
            who = self.silent(look)
            text = (f"{self.kind} between the ranks of this machine: "
                    f"{str(e).partition(chr(10))[0]}")
            raise SumwireError("SW_EPEER", f"{who} missing; {text}" if who
                               else text) from None

    def explain(self, look):
        """Give the job SOON_S to report a dead rank, because its error says
        more than a broken connection."""
        until = time.monotonic() + SOON_S
        while time.monotonic() < until:
            self.hear(look)
            time.sleep(LOOK_S)

    def hear(self, look):
        look()
        said = self.bell.heard()
        if said:
            raise SumwireError("SW_EABORTED", said)


def store_of(port, is_leader, limit_s):
    """Return a store for the ranks of a machine.  port 0: the leader takes any
    free port."""
    return dist.TCPStore(LOOPBACK, port, None, is_leader,
                         datetime.timedelta(seconds=limit_s),
                         wait_for_workers=False)


class Mark:
    """Mark the work given to a stream so far."""

    def __init__(self, stream):
        self.device, self.event = stream.device, stream.record_event()

    def is_reached(self):
        return self.event.query()

    def join(self):
        """Make later work in the current stream follow the mark."""
        refuse_graphs()
        torch.cuda.current_stream(self.device).wait_event(self.event)


def refuse_graphs():
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a sum over other machines cannot be captured in a "
                           "CUDA graph: leave it out of the graph")


class Stream:
    """Hold a device's stream for hierarchical sums.  The CPU has no stream."""

    def __init__(self, place):
        self.stream = (torch.cuda.Stream(place) if place.type == "cuda"
                       else None)

    def mark(self):
        """Mark the current stream after it has filled in a tensor."""
        if self.stream is None:
            return None
        refuse_graphs()
        return Mark(torch.cuda.current_stream(self.stream.device))

    def done(self):
        """Mark this stream."""
        return self.stream and Mark(self.stream)

    def wait(self):
        """Wait until the stream has done all its work."""
        if self.stream is not None:
            self.stream.synchronize()

    def uses(self, tensor):
        """Keep the tensor's memory from reuse until this stream has done its
        work."""
        if self.stream is not None:
            tensor.record_stream(self.stream)

    def after(self, mark):
        """Return a context whose work runs on this stream, after the mark."""
        if self.stream is None:
            return contextlib.nullcontext()
        if mark is not None:
            self.stream.wait_event(mark.event)
        return torch.cuda.stream(self.stream)
