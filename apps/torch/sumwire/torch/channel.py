# channel.py - broadcasts of bytes, and agreement of all ranks
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes travel as a stream through a few blocks, which are declared once.
Therefore a broadcast of any size needs no declaration of its own."""
import contextlib
import hashlib
import json
import pickle

import torch

from sumwire.client import SumwireError
from sumwire.torch.job import current
from sumwire.torch.joining import serves
from sumwire.torch.unsupported import refuse

N_BLOCKS, BLOCK_BYTES = 4, 1 << 20
REFUSED = 1 << 16  # added to a push's number, to differ from all ranks
SMALL_BYTES = [4 << 10, 128 << 10]  # sizes of blocks for short broadcasts


class Noted:
    """Describe an operation of this module for joining.py."""

    def __init__(self, told):
        self.told = told

    def describe(self):
        return self.told


@contextlib.contextmanager
def noted(job, told):
    """Note an operation of all ranks, which runs inside this context."""
    number = job.joins.note(Noted(told))
    try:
        yield
    finally:
        job.joins.ended(number)


class Channel:
    """Hold the blocks of a job, and a tensor with one number per rank.  After
    ranks have used it differently it is unusable, and all ranks make another.
    """

    def __init__(self, job, number):
        self.job = job
        name = f"sumwire#{number}" if number > 1 else "sumwire"
        made = job.declare(
            [(f"{name}.numbers", job.size, torch.int64, 0)] +
            [(f"{name}.block{i}", BLOCK_BYTES, torch.uint8, 0)
             for i in range(N_BLOCKS)] +
            [(f"{name}.small{i}", n_bytes, torch.uint8, 0)
             for i, n_bytes in enumerate(SMALL_BYTES)])
        self.numbers, self.blocks = made[0], made[1:1 + N_BLOCKS]
        self.small = made[1 + N_BLOCKS:]

    def gather(self, number, key=None):
        """Return the numbers of all ranks, by rank.  key: goes into the agreed
        set of ranks that have joined."""
        with noted(self.job, {"kind": "gather", "value": number, "key": key}):
            return self.gather_noted(number)

    def gather_noted(self, number):
        self.numbers.flat.zero_()
        self.numbers.flat[self.job.rank] = number
        self.job.push(self.numbers)
        self.wait(self.numbers)
        return self.numbers.flat.tolist()

    def stream(self, data, root):
        """Replace data, contiguous u8, by the root's data."""
        with noted(self.job, {"kind": "stream", "bytes": len(data)}):
            self.stream_noted(data, root)

    def stream_noted(self, data, root):
        for block in self.small:
            if len(data) <= len(block.flat):
                self.send(block, data, root)
                self.take(block, data, root)
                return
        pieces = list(data.split(BLOCK_BYTES))
        for i in range(len(pieces) + N_BLOCKS):
            block = self.blocks[i % N_BLOCKS]
            if i >= N_BLOCKS:
                self.take(block, pieces[i - N_BLOCKS], root)
            if i < len(pieces):
                self.send(block, pieces[i], root)

    def send(self, block, piece, root):
        if self.job.rank == root:
            block.flat[:len(piece)].copy_(piece)
        self.job.broadcast(block, root)

    def take(self, block, piece, root):
        self.wait(block)
        if self.job.rank != root:
            piece.copy_(block.flat[:len(piece)])

    def refuse_stream(self, n_bytes):
        """Make a broadcast of the other ranks fail, on a rank that has
        joined."""
        blocks = [b for b in self.small if n_bytes <= len(b.flat)][:1] or \
            self.blocks[:-(-n_bytes // BLOCK_BYTES)]
        for block in blocks:
            self.job.push(block, block.n_pushes + REFUSED)
        for block in blocks:
            with contextlib.suppress(SumwireError):
                self.wait(block)

    def wait(self, shared):
        try:
            self.job.wait(shared)
        except SumwireError as e:
            if e.name == "SW_EMISMATCH":
                self.job.channel = None
                raise SumwireError(
                    e.name, e.text + self.job.joins.words()) from None
            raise


def channel():
    job = current()
    if getattr(job, "channel", None) is None:
        job.n_channels = getattr(job, "n_channels", 0) + 1
        job.channel = Channel(job, job.n_channels)
    return job.channel


@serves("gather")
def gather_along(told):
    channel().gather_noted(told["value"])
    current().agreed.add(told["key"])


@serves("stream")
def refuse_along(told):
    channel().refuse_stream(told["bytes"])


def is_global(process_set):
    """Return True if the argument process_set means all ranks of the job.
    Raise TypeError for anything that is not a process set."""
    if process_set is not None and not hasattr(process_set, "process_set_id"):
        raise TypeError(f"process_set={process_set!r}: expected a ProcessSet")
    return process_set is None or process_set.process_set_id == 0


def way(process_set):
    """Return the object that carries bytes to all ranks, or to the members of a
    process set."""
    return channel() if is_global(process_set) else process_set.members()


def check_root(root_rank, process_set=None):
    if isinstance(root_rank, int) and root_rank >= 0:
        if not is_global(process_set) and root_rank in process_set.ranks:
            return
        if is_global(process_set) and root_rank < current().size:
            return
    raise ValueError(f"root_rank={root_rank!r}: this job has ranks 0 to "
                     f"{current().size - 1}" if is_global(process_set) else
                     f"root_rank={root_rank!r}: {process_set} has no such rank")


def as_bytes(tensor):
    """Return the bytes of a contiguous tensor, as a view of its memory."""
    return tensor.view(-1).view(torch.uint8)


def broadcast_bytes(data, root_rank, process_set=None):
    """Return the root's bytes, at least one, on all ranks."""
    n = torch.tensor([len(data)], dtype=torch.int64)
    way(process_set).stream(as_bytes(n), root_rank)
    if int(n) < 1:
        raise SumwireError("SW_EPROTO", not_ours(
            root_rank, f"{int(n)} as the length of its object"))
    data = bytearray(data if current().rank == root_rank else int(n))
    way(process_set).stream(torch.frombuffer(data, dtype=torch.uint8), root_rank)
    return bytes(data)


class Refused:
    """Replace an object that the root cannot pickle."""

    def __init__(self, error):
        self.why = f"{type(error).__name__}: {error}"


def broadcast_object(obj=None, root_rank=0, name=None, process_set=None, **more):
    """Return the root's object on all ranks; other ranks' obj is ignored.  The
    object travels pickled, and a pickle can execute code: call it only if you
    trust all ranks of the job.  If the object cannot be pickled, all ranks raise
    TypeError.  All ranks call it; name is ignored."""
    refuse(more)
    check_root(root_rank, process_set)
    is_root = current().rank == root_rank
    data, got = b"", obj
    if is_root:
        try:
            data = pickle.dumps(obj)
        except Exception as e:  # its methods may raise any error
            got = Refused(e)
            data = pickle.dumps(got)
    data = broadcast_bytes(data, root_rank, process_set)
    if not is_root:
        got = pickle.loads(data)
    if isinstance(got, Refused):
        raise TypeError(f"broadcast_object: the object of rank {root_rank} "
                        f"cannot be pickled: {got.why}")
    return got


def broadcast_json(value, root_rank, process_set=None):
    """Return the root's value, which JSON can hold, on all ranks."""
    is_root = current().rank == root_rank
    data = broadcast_bytes(json.dumps(value).encode() if is_root else b"",
                           root_rank, process_set)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SumwireError("SW_EPROTO", not_ours(
            root_rank, "a message that is not JSON")) from None


def not_ours(rank, what):
    return (f"rank {rank} sent {what}: all ranks need the same release of "
            f"sumwire")


def agree(what, values, process_set=None, key=None):
    """Raise ValueError on all ranks if values, a dict of texts by name, differ
    between ranks.  The error has the first name that differs, and both values.
    key: goes into the job's agreed set if all values are equal."""
    text = "\n".join(f"{k} {v}" for k, v in values.items())
    if not is_global(process_set):
        process_set.members().agree(f"{what}: {text}")
        return
    digest = hashlib.sha256(text.encode()).digest()[:7]
    all_digests = channel().gather(int.from_bytes(digest, "little"), key)
    other = next((r for r, d in enumerate(all_digests)
                  if d != all_digests[0]), None)
    if other is None:
        current().agreed.add(key)
        return
    here, there = broadcast_json(values, 0), broadcast_json(values, other)
    if not isinstance(here, dict) or not isinstance(there, dict):
        raise SumwireError("SW_EPROTO", not_ours(
            other if isinstance(here, dict) else 0, "no names"))
    for name in list(here) + list(there):
        if here.get(name) != there.get(name):
            raise ValueError(
                f"{what} differ between ranks: '{name}' is "
                f"{here.get(name, 'missing')} on rank 0 and "
                f"{there.get(name, 'missing')} on rank {other}; all ranks "
                f"must build the same model")
    raise ValueError(f"{what} differ between ranks: rank 0 and rank {other} "
                     f"have the same ones in a different order")


def describe(tensor):
    text = f"{str(tensor.dtype)[6:]} {tuple(tensor.shape)}"
    dense = torch.empty_like(tensor)
    return text if dense.is_contiguous() else f"{text} {dense.stride()}"
