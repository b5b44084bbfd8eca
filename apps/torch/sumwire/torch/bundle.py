# bundle.py - gradients of small parameters that travel as one tensor
# SPDX-License-Identifier: BSD-3-Clause
"""A tensor on its way costs the same whatever its size.  So small parameters
that a forward pass uses one after the other travel together.  Every parameter is
in one bundle; a large one is in a bundle by itself."""
import torch

from sumwire.torch.compression import wire_dtype

SMALL_BYTES = 16 << 10   # a parameter of at most that on the wire joins others,
BUNDLE_BYTES = 64 << 10  # which then have at most that together
ALIGN_BYTES = 64         # where a gradient begins


class Slot:
    """One parameter, and its gradient in its bundle's memory.

    dtype          the parameter's
    bundle, first  where it lies: from which element on
    view           that memory, in the parameter's shape
    is_direct      the view can be the parameter's gradient
    passes_left    backward passes before it is filled in; 0: it is
    is_open        it is filled in, and its sum is to be parameter.grad
    local, version parameter.grad as it was then
    late, seen     what crossing.py keeps while its update is to be done
    is_watched     a module gives it out (crossing.py)
    """
    __slots__ = ("name", "parameter", "dtype", "bundle", "first", "view",
                 "is_direct", "passes_left", "is_open", "local", "version",
                 "late", "seen", "is_watched")

    def __init__(self, name, parameter, passes):
        self.name, self.parameter = name, parameter
        self.dtype = parameter.dtype
        self.passes_left = passes
        self.bundle = self.view = self.local = None
        self.late = self.seen = None
        self.is_open = self.is_watched = False


class Bundle:
    """Slots that share a declared tensor, which is pushed when the last of them
    has been filled in.  n_missing: those that are not yet; 0: it was pushed,
    and its sum not taken.  stream: of a device, that of the last slot that was
    filled in."""
    __slots__ = ("slots", "dtype", "align", "n_elems", "n_missing", "shared",
                 "stream")

    def __init__(self, dtype):
        self.slots, self.dtype = [], dtype
        self.align = ALIGN_BYTES // element_size(dtype)
        self.n_elems = self.n_missing = 0
        self.shared = self.stream = None

    @property
    def name(self):
        """The first one's, and how many more there are."""
        more = len(self.slots) - 1
        return self.slots[0].name + (f"+{more}" if more else "")

    def next_first(self):
        return -(-self.n_elems // self.align) * self.align

    def has_room(self, slot):
        n, size = slot.parameter.numel(), element_size(self.dtype)
        return (n * size <= SMALL_BYTES and
                (self.next_first() + n) * size <= BUNDLE_BYTES)

    def add(self, slot):
        slot.bundle, slot.first = self, self.next_first()
        self.slots.append(slot)
        self.n_elems = slot.first + slot.parameter.numel()
        self.n_missing += 1

    def place(self, shared):
        """It was declared: give each slot its memory."""
        self.shared = shared
        for slot in self.slots:
            p = slot.parameter
            flat = shared.part(slot.first, p.numel())
            # The strides that a gradient has: the parameter's where it is
            # dense.
            slot.view = flat.as_strided(p.shape, torch.empty_like(p).stride())
            slot.is_direct = (self.dtype == slot.dtype and
                              flat.device == p.device)


def element_size(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def make_bundles(slots, compression):
    """Bundles for slots in the order of use: the same on all workers, as the
    order and the slots are."""
    bundles, last = [], {}  # last: of each type
    for slot in slots:
        dtype = wire_dtype(compression, slot.dtype)
        if dtype not in last or not last[dtype].has_room(slot):
            last[dtype] = Bundle(dtype)
            bundles.append(last[dtype])
        last[dtype].add(slot)
    return bundles
