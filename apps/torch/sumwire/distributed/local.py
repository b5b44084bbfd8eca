# local.py - sums among the ranks of one machine, by a group of torch's own
# SPDX-License-Identifier: BSD-3-Clause
"""One half of hierarchical sums (BytePS, OSDI'20 section 4.2): the ranks of a
machine add up their tensors, each gets one part of the sum, adds it over the
network to those of its place on the other machines, and all gather the parts.
A network then carries each byte once a machine, not once a rank."""
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

# What torch calls the element types of enum sw_dtype.
DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16",
          torch.bfloat16: "bf16", torch.uint8: "u8", torch.int8: "i8",
          torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
BACKENDS = ("gloo", "nccl")
ALIGN = 16  # elements: where parts begin
GRACE_S = 10  # of a group, past the limit: the words for what is late are ours
SOON_S = 1  # in which a job learns of a process that has ended
LOOK_S = 0.2  # between two looks at what others say
PAUSE_S = 100e-6  # between two looks at a work
TEXT_BYTES = 1000
ASK, ANSWER = b"\1", b"\2"  # texts do not begin so
LOOPBACK = "127.0.0.1"


_all = weakref.WeakSet()  # that are open
_kept = set()  # whose sums have failed


def keep_for_ever():
    """In a forked child a group would wait at its end for threads that only the
    parent has."""
    for each in list(_all):
        for what in each.scatters, each.gathers, each.store:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


os.register_at_fork(after_in_child=keep_for_ever)


def asked_for(wanted):
    """False, True, or the name of the local backend: the argument; without one,
    the variable."""
    if wanted is None:
        wanted = os.environ.get("SUMWIRE_HIERARCHICAL", "0")
    wanted = {"": False, "0": False, "1": True}.get(wanted, wanted)
    if wanted not in (False, True, *BACKENDS):
        raise ValueError(f"hierarchical={wanted!r}: True, False, or the local "
                         f"backend, {' or '.join(BACKENDS)}, was expected")
    return wanted


def choose_backend(wanted, device):
    """Its name; a ValueError says why it is not to be had."""
    kind = wanted if wanted in BACKENDS else (
        "nccl" if device.type == "cuda" else "gloo")
    if kind == "nccl" and device.type != "cuda":
        raise ValueError(f"nccl adds tensors of CUDA devices, not of the "
                         f"{device.type}")
    if not getattr(dist, f"is_{kind}_available", lambda: dist.is_available())():
        raise ValueError(f"this PyTorch has no {kind} for the sums of a "
                         f"machine")
    return kind


def lay_out(machines, me):
    """(ranks of this one's machine, ranks of its place on each machine), both in
    one order.  machines: by rank."""
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
    """Tells the other ranks of a machine that one has failed, and asks whether
    they wait, too.  By datagrams: who is asked may be dead or frozen, and nobody
    waits."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        self.socket.setblocking(False)
        # What others know of it: a word that strangers do not, and its port.
        self.number = (secrets.randbits(40) << 16 |
                       self.socket.getsockname()[1])
        self.rank, self.others = 0, {}  # the numbers of others, by rank
        self.silent = set()  # ranks that were asked, and have not answered

    def meet(self, rank, numbers):
        """This is rank; numbers: of all on this machine, by rank."""
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
        """Who waits answers when it hears of it."""
        self.silent = set(self.others)
        for rank in self.others:
            self._send(rank, ASK + str(self.rank).encode())

    def heard(self):
        """What another one said of its end, or None."""
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
    """torch's, of these ranks, without a world around it."""
    limit = datetime.timedelta(seconds=limit_s + GRACE_S)
    if kind == "nccl":
        return dist.ProcessGroupNCCL(store, me, n, limit)
    options = dist.ProcessGroupGloo._Options()
    options._timeout = limit
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=LOOPBACK)]
    return dist.ProcessGroupGloo(store, me, n, options)


class Local:
    """The n ranks of this machine, of which this is me.  Scatters are in the
    same order at all of them, and gathers; none waits, but wait()."""

    def __init__(self, kind, store, me, n, limit_s, bell):
        self.kind, self.store, self.me, self.n = kind, store, me, n
        self.limit_s, self.bell = limit_s, bell
        # Of a group NCCL does one after the other, and a gather may wait for
        # other machines.
        self.scatters, self.gathers = (
            make_group(kind, dist.PrefixStore(what, store), me, n, limit_s)
            for what in ("scatters/", "gathers/"))
        _all.add(self)

    def keep(self):
        """Until the process ends.  What torch's group has under way when a sum
        fails may end at its time limit alone, and its destructor waits for that,
        in whichever thread collects garbage."""
        _kept.add(self)

    def padded(self, n_elems):
        """Elements of a tensor whose parts are equal and begin well."""
        step = self.n * ALIGN
        return -(-n_elems // step) * step

    def part(self, flat):
        """This rank's."""
        count = flat.numel() // self.n
        return flat[self.me * count:(self.me + 1) * count]

    def scatter(self, flat):
        """This rank's part becomes the sum of all; what becomes of the others
        is not said.  Returns torch's work."""
        if self.kind == "nccl":
            return self.scatters._reduce_scatter_base(self.part(flat), flat)
        # gloo has no other: one of its own is n of these, or is not there.
        return self.scatters.allreduce([flat])

    def gather(self, flat):
        """The parts of all ranks, at all of them."""
        if self.kind == "nccl":
            return self.gathers._allgather_base(flat, self.part(flat))
        return self.gathers.allgather([list(flat.chunk(self.n))],
                                      [self.part(flat)])

    def wait(self, work, look):
        """Until it has ended; look(), which may raise, is called meanwhile."""
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
        """Those who do not wait, too, are waited for."""
        who = self.silent(lambda: None)  # that the job ends comes of this
        return SumwireError(
            "SW_ETIMEDOUT", f"missing for {self.limit_s:g} s: {who}" if who else
            f"{self.kind} among the ranks of this machine has not ended in "
            f"{self.limit_s:g} s, though all of them wait for it")

    def silent(self, look):
        """Ranks of this machine that do not wait for this sum, in words; "" if
        all do."""
        self.bell.ask()
        self.explain(look)
        who = sorted(self.bell.silent)
        return (f"rank{'s' if len(who) > 1 else ''} "
                f"{', '.join(map(str, who))} of this machine" if who else "")

    def check(self, work, look):
        """It has ended: well?  A stream waits for what a device does."""
        try:
            work.wait()
        except RuntimeError as e:
            who = self.silent(look)
            text = (f"{self.kind} among the ranks of this machine: "
                    f"{str(e).partition(chr(10))[0]}")
            raise SumwireError("SW_EPEER", f"{who} missing; {text}" if who
                               else text) from None

    def explain(self, look):
        """Of who has gone the job soon knows more than a broken connection."""
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
    """One for the ranks of a machine; port 0: any, that the leader takes."""
    return dist.TCPStore(LOOPBACK, port, None, is_leader,
                         datetime.timedelta(seconds=limit_s),
                         wait_for_workers=False)


class Mark:
    """What a stream had been given when this was made."""

    def __init__(self, stream):
        self.device, self.event = stream.device, stream.record_event()

    def is_reached(self):
        return self.event.query()

    def join(self):
        """What the current stream is given from now on comes behind it."""
        refuse_graphs()
        torch.cuda.current_stream(self.device).wait_event(self.event)


def refuse_graphs():
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a sum over other machines cannot be captured in a "
                           "CUDA graph: leave it out of the graph")


class Stream:
    """That on which a device does what is hierarchical; of the CPU none."""

    def __init__(self, place):
        self.stream = (torch.cuda.Stream(place) if place.type == "cuda"
                       else None)

    def mark(self):
        """Here the current stream has filled something in."""
        if self.stream is None:
            return None
        refuse_graphs()
        return Mark(torch.cuda.current_stream(self.stream.device))

    def done(self):
        """Here this stream is."""
        return self.stream and Mark(self.stream)

    def wait(self):
        """Until what it was given is done."""
        if self.stream is not None:
            self.stream.synchronize()

    def uses(self, tensor):
        """Nothing else gets its memory before what this stream has is done."""
        if self.stream is not None:
            tensor.record_stream(self.stream)

    def after(self, mark):
        """A context: what is done in it comes behind the mark."""
        if self.stream is None:
            return contextlib.nullcontext()
        if mark is not None:
            self.stream.wait_event(mark.event)
        return torch.cuda.stream(self.stream)
