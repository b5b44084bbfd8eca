# storages.py - give PyTorch's storages memory that the agent reads and writes
# SPDX-License-Identifier: BSD-3-Clause
"""A c10::StorageImpl owns its memory by three words: an address, a function
that frees the memory, and the function's argument.  If two storages exchange
these words, they exchange their memory, and all tensors over them follow.
words_at() finds the words from samples.
"""
import ctypes
import functools
import logging
import os
import weakref

import torch

log = logging.getLogger("sumwire")

WORD, LOOKED_AT = 8, 16  # bytes of a word; words of an object to search
N_WORDS = 3
SAMPLE = 4096  # bytes of a sample

_moved = {}  # address of a storage: Moved
_left = []  # in a forked child: storages that hold the parent's memory


class Moved:
    """The memory of a storage that move() has exchanged.

    block      a weak reference; the storage keeps the block alive
    memory     the Memory of the block
    has_views  True if gradients are views of the storage"""

    def __init__(self, block, memory, has_views):
        self.block, self.memory = weakref.ref(block), memory
        self.address, self.n_bytes = ctypes.addressof(block), len(block)
        self.has_views = has_views


def found(tensor):
    """Return the Moved of a dense tensor whose memory move() has exchanged, or
    None."""
    moved = _moved.get(tensor.untyped_storage()._cdata)
    return moved if moved is not None and moved.block() is not None and (
        moved.address == tensor.data_ptr()) else None


def is_moved(tensor, memory):
    """Return True if move() has exchanged the memory of this tensor."""
    moved = found(tensor)
    return moved is not None and moved.memory is memory


def move(tensor, memory, has_views):
    """Move a contiguous tensor that has a storage of its own to a block of a
    Memory.  Return False, and do nothing, if that is impossible.  has_views:
    gradients show the tensor's values between its collectives."""
    storage, at = tensor.untyped_storage(), words_at()
    if at is None or tensor.storage_offset() or not tensor.is_contiguous() or (
            words(storage, at)[1] != words(of_torch(SAMPLE), at)[1]):
        return False
    n_bytes = storage.nbytes()
    block = memory.block(n_bytes)
    if block is None:
        return False
    new = torch.frombuffer(block, dtype=torch.uint8, count=n_bytes)
    new.untyped_storage().copy_(storage)
    exchange(words(storage, at), words(new.untyped_storage(), at))
    for address in [a for a, m in list(_moved.items()) if m.block() is None]:
        del _moved[address]
    _moved[storage._cdata] = Moved(block, memory, has_views)
    return True


def unshare():
    """Give moved storages new memory in a forked child, which would otherwise
    write into the parent's memory.  Only buckets with views keep their values:
    copying all would cost each child the memory of all buckets."""
    for address, moved in _moved.items():
        mine = (ctypes.c_uint64 * N_WORDS).from_address(address + words_at())
        if moved.block() is None or mine[0] != moved.address:
            continue
        own = of_torch(moved.n_bytes)
        if moved.has_views:
            ctypes.memmove(own.data_ptr(), moved.address, moved.n_bytes)
        exchange(mine, words(own, words_at()))
        _left.append(own)
    _moved.clear()


os.register_at_fork(after_in_child=unshare)


def of_torch(n_bytes):
    """Return a storage that PyTorch has allocated."""
    return torch.empty(n_bytes, dtype=torch.uint8).untyped_storage()


def words(storage, at):
    return (ctypes.c_uint64 * N_WORDS).from_address(storage._cdata + at)


def exchange(one, other):
    one[:], other[:] = other[:], one[:]


@functools.lru_cache(maxsize=None)
def words_at():
    """Find, once per process, the offset in bytes of the words in a storage, and
    test an exchange.  Return None if this PyTorch lays out storages
    differently."""
    try:
        at = find_words()
        if at is not None and can_exchange(at):
            return at
        why = "they differ"
    except (AttributeError, OSError, OverflowError) as e:
        why = e
    log.debug("the words of PyTorch's storages were not found: %s", why)
    return None


def find_words():
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        # Read this way, a wrong address raises an error, not a signal.
        def read(storage):
            image = os.pread(memory.fileno(), WORD * LOOKED_AT, storage._cdata)
            return [int.from_bytes(image[i:i + WORD], "little")
                    for i in range(0, len(image), WORD)]
        lent = [torch.frombuffer(bytearray(SAMPLE), dtype=torch.uint8)
                .untyped_storage() for _ in range(2)]
        own = [of_torch(SAMPLE) for _ in range(2)]
        lents, owns = ([(s.data_ptr(), read(s)) for s in some]
                       for some in (lent, own))
    found = [i for i in range(LOOKED_AT - N_WORDS + 1) if all(
        image[i] == address for address, image in lents + owns)]
    if len(found) != 1:
        return None
    i = found[0]
    frees = [{image[i + 1] for _, image in some} for some in (lents, owns)]
    has_form = (all(len(each) == 1 for each in frees) and
                not frees[0] & frees[1] and
                all(image[i + 2] == address for address, image in owns) and
                all(image[i + 2] != address for address, image in lents))
    return WORD * i if has_form else None


def can_exchange(at):
    """Exchange two samples.  Return True if each then has the other's memory, and
    frees that memory at its end."""
    buffer = (ctypes.c_uint8 * SAMPLE)()
    block, own = weakref.ref(buffer), of_torch(SAMPLE)
    lent = torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage()
    del buffer
    before = lent.data_ptr(), own.data_ptr()
    exchange(words(lent, at), words(own, at))
    if (own.data_ptr(), lent.data_ptr()) != before:
        return False
    del lent
    is_alive = block() is not None
    del own
    return is_alive and block() is None
