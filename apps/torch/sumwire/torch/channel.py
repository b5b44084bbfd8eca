# channel.py - bytes from one worker to all, and what all must agree on
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes go as a stream through a few blocks that are declared once, so that what
is broadcast need not be declared, however much it is."""
import hashlib
import json
import pickle

import torch

from sumwire.client import SumwireError
from sumwire.torch.job import current
from sumwire.torch.unsupported import refuse

N_BLOCKS, BLOCK_BYTES = 4, 1 << 20
SMALL_BYTES = [4 << 10, 128 << 10]  # blocks for what is no longer than that


class Channel:
    """The blocks of a job, and a place for one number per worker.  Where ranks
    called it differently it is of no use any more: all make another."""

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

    def gather(self, number):
        """The numbers of all workers, by rank."""
        self.numbers.flat.zero_()
        self.numbers.flat[self.job.rank] = number
        self.job.push(self.numbers)
        self.wait(self.numbers)
        return self.numbers.flat.tolist()

    def stream(self, data, root):
        """Replace data, contiguous u8, by the root's."""
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


    def wait(self, shared):
        try:
            self.job.wait(shared)
        except SumwireError as e:
            if e.name == "SW_EMISMATCH":
                self.job.channel = None
            raise


def channel():
    job = current()
    if getattr(job, "channel", None) is None:
        job.n_channels = getattr(job, "n_channels", 0) + 1
        job.channel = Channel(job, job.n_channels)
    return job.channel


def check_root(root_rank):
    if not isinstance(root_rank, int) or not 0 <= root_rank < current().size:
        raise ValueError(f"root_rank={root_rank!r}: this job has ranks 0 to "
                         f"{current().size - 1}")


def as_bytes(tensor):
    """The bytes of a contiguous tensor, sharing its memory."""
    return tensor.view(-1).view(torch.uint8)


def broadcast_bytes(data, root_rank):
    """The root's bytes, at least one, on all workers."""
    n = torch.tensor([len(data)], dtype=torch.int64)
    channel().stream(as_bytes(n), root_rank)
    if int(n) < 1:
        raise SumwireError("SW_EPROTO", f"rank {root_rank} sent {int(n)} bytes")
    data = bytearray(data if current().rank == root_rank else int(n))
    channel().stream(torch.frombuffer(data, dtype=torch.uint8), root_rank)
    return bytes(data)


class Refused:
    """What the root sends instead of an object that cannot be pickled."""

    def __init__(self, error):
        self.why = f"{type(error).__name__}: {error}"


def broadcast_object(obj=None, root_rank=0, name=None, **more):
    """The root's object, on all workers.  It travels pickled, and a pickle may
    execute anything: so this trusts all ranks of the job.  Nothing else here
    sends pickles.  If it cannot be pickled, all ranks get a TypeError."""
    refuse(more)
    check_root(root_rank)
    is_root = current().rank == root_rank
    data, got = b"", obj
    if is_root:
        try:
            data = pickle.dumps(obj)
        except Exception as e:  # any that its methods raise
            got = Refused(e)
            data = pickle.dumps(got)
    data = broadcast_bytes(data, root_rank)
    if not is_root:
        got = pickle.loads(data)
    if isinstance(got, Refused):
        raise TypeError(f"broadcast_object: the object of rank {root_rank} "
                        f"cannot be pickled: {got.why}")
    return got


def broadcast_json(value, root_rank):
    """The root's value, of what JSON has, on all workers."""
    is_root = current().rank == root_rank
    data = broadcast_bytes(json.dumps(value).encode() if is_root else b"",
                           root_rank)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SumwireError("SW_EPROTO", not_ours(root_rank,
                                                 "what is not JSON")) from None


def not_ours(rank, what):
    return (f"rank {rank} sent {what}: all ranks need the same release of "
            f"sumwire")


def agree(what, values):
    """Fail on all workers if values, a dict of texts by name, are not the same
    on all of them; the error has the first name that differs and both values."""
    text = "\n".join(f"{k} {v}" for k, v in values.items())
    digest = hashlib.sha256(text.encode()).digest()[:7]
    all_digests = channel().gather(int.from_bytes(digest, "little"))
    other = next((r for r, d in enumerate(all_digests)
                  if d != all_digests[0]), None)
    if other is None:
        return
    here, there = broadcast_json(values, 0), broadcast_json(values, other)
    if not isinstance(here, dict) or not isinstance(there, dict):
        raise SumwireError("SW_EPROTO", not_ours(
            other if isinstance(here, dict) else 0, "no names"))
    for name in list(here) + list(there):
        if here.get(name) != there.get(name):
            raise ValueError(
                f"{what} differ between workers: '{name}' is "
                f"{here.get(name, 'missing')} on rank 0 and "
                f"{there.get(name, 'missing')} on rank {other}; all workers "
                f"must build the same model")
    raise ValueError(f"{what} differ between workers: rank 0 and rank {other} "
                     f"have the same ones in a different order")


def describe(tensor):
    text = f"{str(tensor.dtype)[6:]} {tuple(tensor.shape)}"
    dense = torch.empty_like(tensor)
    return text if dense.is_contiguous() else f"{text} {dense.stride()}"
