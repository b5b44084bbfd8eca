# channel.py - bytes from one worker to all, and what all must agree on
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes go as a stream through a few blocks that are declared once, so that what
is broadcast need not be declared, however much it is."""
import hashlib
import pickle

import torch

from sumwire.torch.job import current

N_BLOCKS, BLOCK_BYTES = 4, 1 << 20
SMALL_BYTES = [4 << 10, 128 << 10]  # blocks for what is no longer than that


class Channel:
    """The blocks of a job, and a place for one number per worker."""

    def __init__(self, job):
        self.job = job
        made = job.declare(
            [("sumwire.numbers", job.size, torch.int64, 0)] +
            [(f"sumwire.block{i}", BLOCK_BYTES, torch.uint8, 0)
             for i in range(N_BLOCKS)] +
            [(f"sumwire.small{i}", n_bytes, torch.uint8, 0)
             for i, n_bytes in enumerate(SMALL_BYTES)])
        self.numbers, self.blocks = made[0], made[1:1 + N_BLOCKS]
        self.small = made[1 + N_BLOCKS:]

    def gather(self, number):
        """The numbers of all workers, by rank."""
        self.numbers.flat.zero_()
        self.numbers.flat[self.job.rank] = number
        self.job.push(self.numbers)
        self.job.wait(self.numbers)
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
        self.job.wait(block)
        if self.job.rank != root:
            piece.copy_(block.flat[:len(piece)])


def channel():
    job = current()
    if not hasattr(job, "channel"):
        job.channel = Channel(job)
    return job.channel


def check_root(root_rank):
    if not isinstance(root_rank, int) or not 0 <= root_rank < current().size:
        raise ValueError(f"root_rank={root_rank!r}: this job has ranks 0 to "
                         f"{current().size - 1}")


def as_bytes(tensor):
    """The bytes of a contiguous tensor, sharing its memory."""
    return tensor.view(-1).view(torch.uint8)


def broadcast_object(obj=None, root_rank=0, name=None):
    """The root's object, on all workers; it travels pickled."""
    check_root(root_rank)
    is_root = current().rank == root_rank
    data = pickle.dumps(obj) if is_root else b""
    n = torch.tensor([len(data)], dtype=torch.int64)
    channel().stream(as_bytes(n), root_rank)
    if is_root:
        buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    else:
        buffer = torch.empty(int(n), dtype=torch.uint8)
    channel().stream(buffer, root_rank)
    return obj if is_root else pickle.loads(buffer.numpy().tobytes())


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
    here = broadcast_object(values, 0)
    there = broadcast_object(values, other)
    for name in list(here) + list(there):
        if here.get(name) != there.get(name):
            raise ValueError(
                f"{what} differ between workers: '{name}' is "
                f"{here.get(name, 'missing')} on rank 0 and "
                f"{there.get(name, 'missing')} on rank {other}; all workers "
                f"must build the same model")
    raise ValueError(f"{what} differ between workers: rank 0 and rank {other} "
                     f"have the same ones in another order")


def describe(tensor):
    text = f"{str(tensor.dtype)[6:]} {tuple(tensor.shape)}"
    dense = torch.empty_like(tensor)
    return text if dense.is_contiguous() else f"{text} {dense.stride()}"
