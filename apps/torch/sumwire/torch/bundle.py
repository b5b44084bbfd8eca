# bundle.py - gradients of small parameters that travel as one tensor
# SPDX-License-Identifier: BSD-3-Clause
"""A tensor on its way costs the same whatever its size.  So small parameters
that a forward pass uses one after the other travel together.  Every parameter is
in one bundle; a large one is in a bundle by itself."""
import torch

from sumwire.torch.compression import is_own, wire_dtype

SMALL_BYTES = 16 << 10   # a parameter of at most that on the wire joins others,
BUNDLE_BYTES = 64 << 10  # which then have at most that together
MAX_BUNDLES = 3072  # of a job, whose agent takes 4,096 tensors of a process
MAX_SCALE = 1 << 20
MIN_BUNDLES = 64  # of an optimizer, however many there are already
ALIGN_BYTES = 64         # where a gradient begins


class Slot:
    """One parameter, and its gradient in its bundle's memory.

    dtype          the parameter's
    n, wire        elements and type on the wire
    compression    the user's own, of which nothing is known; else None
    ctx            what its compress() returned with the gradient
    bundle, first  where it lies: from which element on
    view           that memory, in the parameter's shape
    is_direct      the view can be the parameter's gradient
    passes_left    backward passes before it is filled in; 0: it is
    is_open        it is filled in, and its sum is to be parameter.grad
    local, version parameter.grad as it was then
    late, seen     what crossing.py keeps while its update is to be done
    is_watched     a module gives it out (crossing.py)
    """
    __slots__ = ("name", "parameter", "dtype", "n", "wire", "compression",
                 "ctx", "bundle", "first", "view", "is_direct", "passes_left",
                 "is_open", "local", "version", "late", "seen", "is_watched")

    def __init__(self, name, parameter, passes, compression):
        self.name, self.parameter = name, parameter
        self.dtype = parameter.dtype
        self.compression, self.ctx = None, None
        if is_own(compression):
            self.compression = compression
            sample, _ = compression.compress(
                torch.zeros_like(parameter, requires_grad=False))
            self.n, self.wire = sample.numel(), sample.dtype
        else:
            self.n = parameter.numel()
            self.wire = wire_dtype(compression, parameter.dtype)
        self.passes_left = passes
        self.bundle = self.view = self.local = None
        self.late = self.seen = None
        self.is_open = self.is_watched = False


class Bundle:
    """Slots that share a declared tensor, which is pushed when the last of them
    has been filled in.  scale: how much larger than usual it may be.  n_missing:
    those that are not yet; 0: it was pushed, and its sum not taken.  stream: of
    a device, that of the last slot that was filled in."""
    __slots__ = ("slots", "dtype", "scale", "align", "n_elems", "n_missing",
                 "shared", "stream")

    def __init__(self, dtype, scale):
        self.slots, self.dtype, self.scale = [], dtype, scale
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
        size = element_size(self.dtype)
        return (slot.n * size <= SMALL_BYTES * self.scale and
                (self.next_first() + slot.n) * size <=
                BUNDLE_BYTES * self.scale)

    def add(self, slot):
        slot.first = self.next_first()
        self.slots.append(slot)
        self.n_elems = slot.first + slot.n
        self.n_missing += 1

    def place(self, shared):
        """It was declared: give each slot its memory."""
        self.shared = shared
        for slot in self.slots:
            p = slot.parameter
            flat = shared.part(slot.first, slot.n)
            if slot.compression:
                slot.view, slot.is_direct = flat, False
                continue
            # The strides that a gradient has: the parameter's where it is
            # dense.
            slot.view = flat.as_strided(p.shape, torch.empty_like(p).stride())
            slot.is_direct = (self.dtype == slot.dtype and
                              flat.device == p.device)


def element_size(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def make_bundles(slots, limit):
    """Bundles for slots in the order of use: the same on all ranks, as the
    order and the slots are.  Where there are more of them than the limit, larger
    parameters travel together."""
    scale = 1
    bundles = bundles_of(slots, scale)
    while len(bundles) > limit and scale < MAX_SCALE:
        scale *= 2
        bundles = bundles_of(slots, scale)
    for bundle in bundles:
        for slot in bundle.slots:
            slot.bundle = bundle
    return bundles


def bundles_of(slots, scale):
    bundles, last = [], {}  # last: of each type
    for slot in slots:
        dtype = slot.wire
        if dtype not in last or not last[dtype].has_room(slot):
            last[dtype] = Bundle(dtype, scale)
            bundles.append(last[dtype])
        last[dtype].add(slot)
    return bundles
