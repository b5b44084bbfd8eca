# quick.py - small collectives in C: what quick.c needs to know of PyTorch
# SPDX-License-Identifier: BSD-3-Clause
"""A synchronous all_reduce or broadcast of one small tensor in host memory goes
through apps/torch/quick.c, if that module was built for this Python.
Everything else, and everything without it, goes through methods.py."""
import ctypes
import functools
import importlib.machinery
import importlib.util
import logging
import math
import os
import time

import torch
from torch import distributed as dist
from torch.autograd import profiler

from sumwire import library
from sumwire.collectives import Ending
from sumwire.distributed import flight
from sumwire.distributed.local import DTYPES

log = logging.getLogger("sumwire")

NAME = "quick.abi3.so"
N_OPERATIONS = 16  # most operations of torch; the same in quick.c


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


class Slow:
    """Be the Quick of a group without one."""
    limit_s = None

    @staticmethod
    def all_reduce(_owner, _tensors, _opts):
        return NotImplemented

    broadcast = all_reduce


def candidates():
    """Return the paths to try for the module, best first."""
    paths = [os.path.join(library.HERE, "lib", NAME),
             os.path.join(library.BUILD, "apps", NAME)]
    named = os.environ.get("SUMWIRE_LIBRARY")
    if named:  # another build's
        paths.insert(0, os.path.join(os.path.dirname(os.path.abspath(named)),
                                     "../../apps", NAME))
    return paths


@functools.lru_cache(maxsize=None)
def load():
    """Load the module, once per process.  Return (module, None), or (None, why
    it cannot be used)."""
    if os.environ.get("SUMWIRE_QUICK") == "0":
        return None, "SUMWIRE_QUICK is 0"
    if not hasattr(dist.AllreduceOptions, "asyncOp"):
        return None, f"PyTorch {torch.__version__} does not say which calls wait"
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
    """Return enum sw_reduce_op by the hash of torch's operation, and the pairs
    of such a hash and a dtype.  An operation whose hash is not its own is left
    out."""
    codes, has = [-1] * N_OPERATIONS, set()
    for value, name in names.items():
        if name == "premul_sum" or value >= N_OPERATIONS or value != hash(
                dist.ReduceOp(dist.ReduceOp.RedOpType(value))):
            continue
        codes[value] = library.OPERATIONS[name]
        has |= {(value, dtype) for n, dtype in pairs if n == name}
    return codes, has


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
    is_recording = flight.is_recording()
    given = {
        "tensor_type": torch.Tensor, "strided": torch.strided,
        "dtypes": {dtype: library.DTYPES[name][0]
                   for dtype, name in DTYPES.items()},
        "pairs": has, "unset": dist.AllreduceOptions().timeout,
        "profiler": profiler, "client": client, "group": group,
        "lock": group.lock, "starting": owner.calls.starting,
        "new_call": new_call,
        "record_type": flight.Record if is_recording else None,
        "records": flight.records(), "numbers": flight.numbers(),
        "entry": type(owner).allreduce.__code__, "name": owner.name, "limit_s": owner.limit_s}
    lib = owner.calls.lib
    addresses = (*(ctypes.cast(f, ctypes.c_void_p).value
                   for f in (lib.sw_coll, lib.sw_wait_for)),
                 client.pointer.value, group.pointer.value)
    return module.Quick(given, addresses, list(owner.ranks), codes, flight.DEPTH)


def finish(owner, begun, grace_s):
    """Wait for a collective that quick.c has begun but whose end it has not
    seen: it takes long, has failed, or another thread saw its end."""
    code, call = begun
    call.limit_s = owner.limit_s + grace_s
    call.until = time.monotonic() + call.limit_s
    owner.calls.adopt(call, code)
    owner.calls.wait(call)
    flight.ended((call.record,), call.error)
    if call.error:
        owner.failed(call.error)
        raise call.error
