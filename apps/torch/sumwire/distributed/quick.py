# quick.py - small collectives in C: the facts that quick.c needs about PyTorch
# SPDX-License-Identifier: BSD-3-Clause
"""A synchronous all_reduce or broadcast of one small tensor in host memory uses
apps/torch/quick.c, if that module was built for this Python. All other calls
use methods.py."""
import ctypes
import datetime
import functools
import importlib.machinery
import importlib.util
import logging
import math
import os
import time
import types

import torch
from torch import distributed as dist
from torch.autograd import profiler

from sumwire import library
from sumwire.collectives import Ending
from sumwire.distributed import flight
from sumwire.distributed.local import DTYPES
from sumwire.distributed.work import held

log = logging.getLogger("sumwire")

NAME = "quick.abi3.so"
N_OPERATIONS = 16  # most operations of torch; the same in quick.c
FIELD_BYTES = 48  # find_fields() reads this much of an object
CODES = {dtype: library.DTYPES[name][0] for dtype, name in DTYPES.items()}


class Call(Ending):
    """Be the Call of a collective that quick.c has begun.

    kept    its tensors, until it ends
    record  its flight.Record, or None"""
    device = followers = _event = kept = record = error = None
    is_ended = False
    kind, until, limit_s = "collective", math.inf, math.inf

    def __init__(self, group):
        self.group = group
        self.box = ctypes.c_uint64()  # the library writes it

    def on_end(self, error):
        self.error, self.kept = error, None


# Methods of a group that have an Entry, and whether each is a broadcast.
ENTRIES = {"allreduce": False, "broadcast": True}


class Slow:
    """Replace the Quick of a group without one."""
    limit_s = None

    @staticmethod
    def all_reduce(_tensors, _opts):
        return NotImplemented

    broadcast = all_reduce

    @staticmethod
    def begin(*_):
        return NotImplemented


def candidates():
    """Return the paths to try for the module, best first."""
    paths = [os.path.join(library.HERE, "lib", NAME),
             os.path.join(library.BUILD, "apps", NAME)]
    named = os.environ.get("SUMWIRE_LIBRARY")
    if named:  # another build's
        paths.insert(0, os.path.join(os.path.dirname(os.path.abspath(named)),
                                     "../../apps", NAME))
    return paths


def dlpack():
    """Return the capsule of DLPack's functions, or None before PyTorch 2.10."""
    return getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)


@functools.lru_cache(maxsize=None)
def load():
    """Load the module, once per process. Return (module, None), or (None, the
    reason why it cannot be used)."""
    if os.environ.get("SUMWIRE_QUICK") == "0":
        return None, "SUMWIRE_QUICK is 0"
    if not hasattr(dist.AllreduceOptions, "asyncOp"):
        return None, f"PyTorch {torch.__version__} does not say which calls wait"
    if dlpack() is None:
        return None, f"the tensors of PyTorch {torch.__version__} lack DLPack's functions"
    path = next(filter(os.path.exists, candidates()), None)
    if path is None:
        return None, f"{NAME} was not built"
    try:
        loader = importlib.machinery.ExtensionFileLoader("quick", path)
        module = importlib.util.module_from_spec(
            importlib.util.spec_from_file_location("quick", path, loader=loader))
        loader.exec_module(module)
    except ImportError as e:
        return None, str(e)
    return module, None


def operations(names, pairs):
    """Return enum sw_reduce_op by the hash of torch's operation, and, by the
    same hash, the set of enum sw_dtype that support it. Skip operations that
    share a hash."""
    codes, has = [-1] * N_OPERATIONS, [0] * N_OPERATIONS
    for value, name in names.items():
        if name == "premul_sum" or value >= N_OPERATIONS or value != hash(
                dist.ReduceOp(dist.ReduceOp.RedOpType(value))):
            continue
        codes[value] = library.OPERATIONS[name]
        for n, dtype in pairs:
            if n == name:
                has[value] |= 1 << CODES[dtype]
    return codes, has


def samples():
    """Return torch's options objects of both kinds, and the numbers written
    into them: (the field that differs by kind, asyncOp, timeout in ms)."""
    reduces, broadcasts = [], []
    for i, op in enumerate((dist.ReduceOp.SUM, dist.ReduceOp.BXOR,
                            dist.ReduceOp.MAX, dist.ReduceOp.AVG) * 2):
        common = i in (1, 2, 4, 7), 123456789 + 1000003 * i
        for found, kind, name, value, number in (
                (reduces, dist.AllreduceOptions, "reduceOp", op, op.value),
                (broadcasts, dist.BroadcastOptions, "rootRank", 99 + i, 99 + i)):
            o = kind()
            setattr(o, name, value)
            o.asyncOp = common[0]
            o.timeout = datetime.timedelta(milliseconds=common[1])
            found.append((o, (number, *common)))
    return (reduces, 1), (broadcasts, 8)


def find_fields(found, size):
    """Find where C++ objects keep the numbers that samples() wrote: after
    Python's header, pybind11 has the object's address. Return (type, offsets,
    value of no timeout), or None if a number is not at exactly one place in all
    objects. size: bytes of the first number."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        # Reading a wrong address this way is an error, not a signal.
        def read(o):
            at = ctypes.c_size_t.from_address(id(o) + object.__basicsize__)
            return os.pread(memory.fileno(), FIELD_BYTES, at.value)
        images = [(read(o), numbers) for o, numbers in found]
        unset = read(type(found[0][0])())
    offsets = []
    for i, n in enumerate((size, 1, 8)):
        at = [k for k in range(0, FIELD_BYTES - n + 1, n) if all(
            int.from_bytes(image[k:k + n], "little", signed=True) == numbers[i]
            for image, numbers in images)]
        if len(at) != 1:
            return None
        offsets += at
    none = unset[offsets[2]:offsets[2] + 8]
    return type(found[0][0]), *offsets, int.from_bytes(none, "little", signed=True)


@functools.lru_cache(maxsize=None)
def fields():
    """Find once per process where C++ keeps the fields of torch's options,
    because reading one through Python takes a thousand instructions."""
    try:
        return tuple(find_fields(*each) for each in samples())
    except (OSError, OverflowError) as e:
        log.debug("the fields of PyTorch's options were not found: %s", e)
        return None, None


def make(owner, names, pairs):
    """Return a Quick for a group of methods.py, or Slow if all collectives need
    methods.py.  names, pairs: OPERATIONS and PAIRS of methods.py."""
    module, why = load()
    if module is None:
        log.debug("small collectives go through Python: %s", why)
    if module is None or owner.machines or owner.places.is_fake:
        return Slow()
    codes, has = operations(names, pairs)
    group, client = owner.group, owner.calls.client

    def new_call():
        call = Call(group)
        return call, ctypes.addressof(call.box)
    given = {
        "tensor_type": torch.Tensor, "storage_type": torch.UntypedStorage,
        "frame_type": types.FrameType, "dlpack": dlpack(),
        "dtypes": CODES, "unset": dist.AllreduceOptions().timeout,
        "profiler": vars(profiler), "client": vars(client), "group": group,
        "lock": group.lock, "starting": owner.calls.starting,
        "new_call": new_call,
        "record_type": flight.Record if flight.is_recording() else None,
        "records": flight.records(), "numbers": flight.numbers(),
        "counts": owner.counts, "entry": type(owner).allreduce.__code__,
        "name": owner.name, "limit_s": owner.limit_s}
    lib = owner.calls.lib
    addresses = (*(ctypes.cast(f, ctypes.c_void_p).value
                   for f in (lib.sw_coll, lib.sw_wait_for)),
                 client.pointer.value, group.pointer.value,
                 ctypes.addressof(owner.counts))
    return module.Quick(given, addresses, (list(owner.ranks), codes, has),
                        fields(), flight.DEPTH)


def entries(owner, methods):
    """Return replacements for methods of a group, by their names: the same methods
    in C, unless its class overrides them or returns works."""
    if isinstance(owner.quick, Slow) or owner.ended:
        return {}
    return {name: load()[0].Entry(owner.quick, is_broadcast,
                                  getattr(owner, f"rest_of_{name}"), held)
            for name, is_broadcast in ENTRIES.items()
            if getattr(type(owner), name) is getattr(methods, name)}


def finish(owner, begun, grace_s):
    """Wait for a collective that quick.c has begun but not seen end: it takes
    long, has failed, or another thread saw its end."""
    code, call = begun
    call.limit_s = owner.limit_s + grace_s
    call.until = time.monotonic() + call.limit_s
    owner.calls.adopt(call, code)
    owner.calls.wait(call)
    flight.ended((call.record,), call.error)
    if call.error:
        owner.failed(call.error)
        raise call.error
