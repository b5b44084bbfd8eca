# members.py - carry out the collectives of a process set in order
# SPDX-License-Identifier: BSD-3-Clause
"""A thread of each set carries out its operations, in the order of calls, which
is the same at all members.  Each operation begins with a header, in which the
members compare their calls and exchange their numbers of rows.  If the calls
differ, all members raise the same error, and the next operation starts
normally. """
import hashlib
import queue
import threading

import torch

from sumwire.client import SumwireError
from sumwire.distributed.local import DTYPES
from sumwire.torch.joining import serves

TEXT_BYTES = 512  # length of a call's description in an error
PAUSE_S = 0.1  # period of advancing other calls during a wait
DRAIN_S = 5  # time for operations in flight when a set is closed
HEADER = 3  # checksum, state, rows; followed by one split for each member
CALLED, JOINED = 0, 1


class Operation:
    """Hold an operation that was called.

    words   description of the call, which must be equal at all members
    run     run(table) carries it out, with the members' (rows, splits), and
            returns the result; None: this rank has joined
    rows    rows of this member's tensor
    splits  rows for each member
    after   after(result) runs in the thread that waits"""

    def __init__(self, words, run, rows=0, splits=(), name=None, after=None):
        self.words, self.run, self.name = words, run, name
        self.rows, self.splits = rows, list(splits)
        self.after = after
        self.members = self.value = self.error = self.number = None
        self.ended = threading.Event()

    def describe(self):
        """Return the description for ranks that have joined."""
        return {"kind": "members", "words": self.words[:TEXT_BYTES]}

    def drop(self):
        """Wait for the end on a joined rank.  Ignore the error, which all
        members get."""
        self.ended.wait()

    def is_done(self):
        return self.ended.is_set()

    def close(self):
        """Give the name back, so that another operation can use it."""
        self.members.names.discard(self.name)

    def finish(self):
        """Wait for the operation, and return its result or raise its error."""
        job = self.members.job
        while not self.ended.wait(PAUSE_S):
            job.progress()
        if self.number is not None:
            job.joins.ended(self.number)
        if self.error is not None:
            raise self.error
        return self.after(self.value) if self.after else self.value


class Members:
    """Carry out the operations of some ranks.  ranks: their ranks in the job,
    in ascending order; me: this rank's place among them."""

    def __init__(self, job, name, ranks):
        self.job, self.ranks = job, list(ranks)
        self.me, self.n = self.ranks.index(job.rank), len(self.ranks)
        self.calls = job.collectives
        self.group = self.calls.group(name, self.ranks,
                                      job.client.wait_timeout_s)
        self.names = set()  # names of operations not synchronized yet
        self.queue = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, daemon=True,
                                       name="sumwire set")
        self.thread.start()
        job.sets.add(self)

    def submit(self, operation):
        """Queue an operation, and return it.  Raise ValueError if its name is
        in use."""
        if operation.name is not None and operation.name in self.names:
            raise ValueError(f"the name '{operation.name}' is in use: "
                             f"synchronize its handle before the next call, or "
                             f"use another name")
        if operation.name is not None:
            self.names.add(operation.name)
        operation.members = self
        if self.n == self.job.size:
            operation.number = self.job.joins.note(operation)
        self.queue.put(operation)
        return operation

    def agree(self, words):
        """Raise an error at all members if their words differ."""
        self.submit(Operation(words, lambda table: None)).finish()

    def stream(self, data, root):
        """Replace data, contiguous u8, by the data of root, a rank of the
        job."""
        self.submit(Operation(
            f"broadcast of {len(data)} bytes from rank {root}",
            lambda table: self.wait(self.start("broadcast", data, data,
                                               root=root)))).finish()

    def close(self):
        """Wait up to DRAIN_S for submitted operations, and close the group."""
        self.job.sets.discard(self)
        self.queue.put(None)
        self.thread.join(DRAIN_S)
        self.calls.close_group(self.group)

    # --- in the thread ---

    def _work(self):
        while True:
            operation = self.queue.get()
            if operation is None:
                return
            try:
                table = self._compare(operation)
                operation.value = operation.run(table)
            except Exception as e:  # finish() raises it
                operation.error = e
            operation.ended.set()
            del operation

    def _compare(self, operation):
        """Exchange headers, and return (rows, splits) of all members.  Raise an
        error if the calls differ or a member has joined."""
        state = JOINED if operation.run is None else CALLED
        mine = torch.tensor(
            [checksum(operation.words), state, operation.rows,
             *operation.splits, *[0] * (self.n - len(operation.splits))],
            dtype=torch.int64)
        table = self.all_gather(mine).view(self.n, HEADER + self.n).tolist()
        joined = [r for r, row in zip(self.ranks, table) if row[1] == JOINED]
        if joined:
            raise SumwireError(
                "SW_EMISMATCH", f"{operation.words}: rank {joined[0]} has called "
                f"join(): only allreduce works without it")
        other = next((i for i, row in enumerate(table)
                      if row[0] != table[0][0]), None)
        if other is not None:
            self._tell_difference(operation, other)
        return [(row[2], row[HEADER:]) for row in table]

    def _tell_difference(self, operation, other):
        """Raise an error with the calls of the set's first member and of the
        differing one."""
        text = operation.words.encode()[:TEXT_BYTES]
        words = self.all_gather(torch.frombuffer(
            bytearray(text.ljust(TEXT_BYTES, b"\0")), dtype=torch.uint8))
        first, differs = (
            words[i * TEXT_BYTES:(i + 1) * TEXT_BYTES].numpy().tobytes()
            .rstrip(b"\0").decode(errors="replace") for i in (0, other))
        raise SumwireError(
            "SW_EMISMATCH", f"rank {self.ranks[0]} called {first}, but rank "
            f"{self.ranks[other]} called {differs}: all members of a process "
            f"set must make the same calls in the same order")

    # --- steps of operations; tensors are contiguous and on the CPU ---

    def all_gather(self, tensor):
        """Return the tensors of all members, of one size, concatenated flat."""
        out = torch.empty(self.n * tensor.numel(), dtype=tensor.dtype)
        self.wait(self.start("all_gather", tensor, out))
        return out

    def gather_rows(self, flat, counts):
        """Return the flat tensors of all members, concatenated.  counts:
        elements of each tensor."""
        if len(set(counts)) == 1:
            return self.all_gather(flat)
        out = torch.empty(sum(counts), dtype=flat.dtype)
        parts = out.split(counts)
        parts[self.me].copy_(flat)
        self.wait(*[self.start("broadcast", part, part, root=self.ranks[i])
                    for i, part in enumerate(parts)])
        return out

    def start(self, kind, send, recv, **how):
        """Begin a collective.  Send dtypes that the library lacks as bytes.
        Return a list that gets the error, and the call, or None if there are no
        elements."""
        count, dtype = send.numel(), DTYPES.get(send.dtype)
        if dtype is None:
            count, dtype = count * send.element_size(), "u8"
        if kind == "reduce_scatter":
            count //= self.n
        errors = []
        if not count:
            return errors, None
        return errors, self.calls.start(
            self.group, kind, dtype, count, send.data_ptr(), recv.data_ptr(),
            limit_s=self.job.client.wait_timeout_s,
            on_end=lambda e: errors.extend(filter(None, [e])), **how)

    def wait(self, *begun):
        """Wait until all begun collectives have ended; raise the first
        error."""
        for _, call in begun:
            if call:
                self.calls.wait(call)
        for errors, _ in begun:
            if errors:
                raise errors[0]


def checksum(words):
    """Return a hash of a text, below 2^56."""
    digest = hashlib.sha256(words.encode()).digest()
    return int.from_bytes(digest[:7], "little")


@serves("members")
def join_in(told):
    """Tell the others that this rank has joined."""
    from sumwire.torch.process_sets import global_process_set
    return global_process_set.members().submit(Operation(told["words"], None))
