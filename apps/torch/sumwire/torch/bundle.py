# bundle.py - bundle the gradients of small parameters into one tensor
# SPDX-License-Identifier: BSD-3-Clause
"""Each tensor in flight has a fixed cost, independent of its size.  Therefore
small parameters that a forward pass uses in sequence travel together.  Every
dense parameter is in one bundle; a large one has a bundle of its own."""
import torch

from sumwire.torch.compression import is_own, wire_dtype

SMALL_BYTES = 16 << 10   # largest parameter, on the wire, that shares a bundle
BUNDLE_BYTES = 64 << 10  # largest bundle of several parameters
MAX_BUNDLES = 3072  # per job; the agent takes 4,096 tensors of a process
MAX_SCALE = 1 << 20
MIN_BUNDLES = 64  # allowed for each optimizer, even past MAX_BUNDLES
ALIGN_BYTES = 64         # alignment of a gradient in its bundle


class Slot:
    """Hold one parameter, and its gradient in its bundle's memory.

    dtype          dtype of the parameter
    n, wire        number of elements, and dtype, on the wire
    compression    the user's own compression, or None

    ctx            the context that compress() returned for the gradient
    bundle, first  its bundle, and the gradient's first element there
    view           that memory, in the parameter's shape
    is_direct      the view can be the parameter's gradient

    passes_left    backward passes before it is filled in; 0: it is filled in
    is_open        it is filled in, and its sum will become parameter.grad

    local, version parameter.grad, and its version, when it was filled in
    late, seen     state of crossing.py while its update is postponed
    is_watched     its module's parameters are watched (crossing.py)
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
    """Hold slots that share a declared tensor, which is pushed when the last
    slot has been filled in.

    scale      factor by which it may be larger than usual
    n_missing  number of slots to fill in; 0: it was pushed, and its sum was not
               taken
    stream     the device's stream that filled in the last slot"""
    __slots__ = ("slots", "dtype", "scale", "align", "n_elems", "n_missing",
                 "shared", "stream")

    def __init__(self, dtype, scale):
        self.slots, self.dtype, self.scale = [], dtype, scale
        self.align = ALIGN_BYTES // element_size(dtype)
        self.n_elems = self.n_missing = 0
        self.shared = self.stream = None

    @property
    def name(self):
        """Return the name of the first slot, and the number of other slots."""
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
        """Give each slot its part of the declared tensor."""
        self.shared = shared
        for slot in self.slots:
            p = slot.parameter
            flat = shared.part(slot.first, slot.n)
            if slot.compression:
                slot.view, slot.is_direct = flat, False
                continue
            # torch gives a gradient these strides: the parameter's, if dense.
            slot.view = flat.as_strided(p.shape, torch.empty_like(p).stride())
            slot.is_direct = (self.dtype == slot.dtype and
                              flat.device == p.device)


def element_size(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def make_bundles(slots, limit):
    """Return bundles for slots in the order of use.  All ranks have equal slots
    in the same order, so they get equal bundles.  If there are more bundles
    than limit, larger parameters also share bundles."""
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
    bundles, last = [], {}  # last: the latest bundle of each dtype
    for slot in slots:
        dtype = slot.wire
        if dtype not in last or not last[dtype].has_room(slot):
            last[dtype] = Bundle(dtype, scale)
            bundles.append(last[dtype])
        last[dtype].add(slot)
    return bundles
