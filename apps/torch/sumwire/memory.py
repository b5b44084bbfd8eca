# memory.py - blocks of memory that the agent reads and writes in place
# SPDX-License-Identifier: BSD-3-Clause
"""The library keeps its blocks until the attachment ends. Memory reuses a block
after the last reference to it has been dropped."""
import ctypes
import weakref

from sumwire import locks

PAGE = 4096
SPARE = 2  # reuse a block only for at least half of its size


class Memory:
    """Allocate blocks of shared memory.  Any thread may call it."""

    def __init__(self, client):
        self.client = client
        self.lock = locks.make()
        self.free = []  # (bytes, address)

    def block(self, n_bytes):
        """Return a ctypes array of at least n_bytes with arbitrary content, or
        None if there is no memory.  The block can be reused after the last
        reference to it."""
        n_bytes = -(-n_bytes // PAGE) * PAGE
        found = self._again(n_bytes) or self._new(n_bytes)
        if found is None:
            return None
        block = (ctypes.c_uint8 * n_bytes).from_address(found[1])
        block.mapping = self.client.mapping
        weakref.finalize(block, self.free.append, found).atexit = False
        return block

    def _again(self, n_bytes):
        with self.lock:
            fit = min((b for b in list(self.free)
                       if n_bytes <= b[0] <= SPARE * n_bytes), default=None)
            if fit:
                self.free.remove(fit)
            return fit

    def _new(self, n_bytes):
        pointer = ctypes.c_void_p()
        code = self.client.lib.sw_alloc(self.client.pointer, n_bytes,
                                        ctypes.byref(pointer))
        return None if code else (n_bytes, pointer.value)
