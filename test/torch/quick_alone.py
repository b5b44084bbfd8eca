# quick_alone.py MODULE - quick.c without PyTorch: any Python runs it
# SPDX-License-Identifier: BSD-3-Clause
"""Objects of this file replace PyTorch's, and Python functions replace
libsumwire's. Exits with 0 if each call acted as quick.c documents, and leaked
no reference and dropped none."""
import collections
import ctypes
import gc
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
import types

ETIMEDOUT, EBUSY, CODE = -5, -4, 7
COLL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                        ctypes.POINTER(ctypes.c_uint64))
WAIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64,
                        ctypes.c_uint32)
ROUNDS = 2000
UNSET = object()
FEW = 100  # random changes in the number of references


@COLL
def begins(_group, _args, handle):
    handle[0] = CODE
    return 0


COLLS = {0: begins, EBUSY: COLL(lambda *_: EBUSY)}
WAITS = {0: WAIT(lambda _client, handle, _ms: handle - CODE),
         ETIMEDOUT: WAIT(lambda *_: ETIMEDOUT)}


class Storage:
    def nbytes(self):
        return 64


class Tensor:
    dtype, shape = "f32", (16,)
    form = {"data": 1 << 47, "device": 1, "n_dims": 2, "code": 2, "bits": 32,
            "lanes": 1}

    def is_neg(self):
        return False
    is_conj = is_neg

    def untyped_storage(self):
        return Storage()

    def storage_offset(self):
        return 0


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("device_i", ctypes.c_int32), ("n_dims", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


DESCRIBE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                             ctypes.POINTER(DLTensor))
# The third dimension is not dense.
SHAPE, STRIDES = (ctypes.c_int64 * 3)(4, 4, 2), (ctypes.c_int64 * 3)(4, 1, 9)


@DESCRIBE
def describe(tensor, out):
    if not tensor.form:
        return -1
    for name, value in tensor.form.items():
        setattr(out[0], name, value)
    out[0].shape = ctypes.addressof(SHAPE)
    out[0].strides = ctypes.addressof(STRIDES)
    out[0].offset = 0
    return 0


class Functions(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("unused", ctypes.c_void_p * 4), ("describe", ctypes.c_void_p)]


def capsule(functions):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(functions), NAME, None)


NAME = b"dlpack_exchange_api"
FUNCTIONS, OTHERS = [Functions(major, 3, describe=ctypes.cast(
    describe, ctypes.c_void_p)) for major in (1, 2)]


class Options:
    asyncOp, timeout, reduceOp, rootRank = False, UNSET, 0, 1


PROFILER, CLIENT = {"_is_profiler_enabled": False}, {"timeline": None}


class Group:
    def __init__(self):
        self.pointer = 1


class Counts(ctypes.Structure):
    _fields_ = [("calls", ctypes.c_uint64), ("parts", ctypes.c_uint64)]


class Plain:
    """A record whose attributes need a lookup."""


class Record:
    """A record whose attributes are slots."""
    __slots__ = ("number", "group", "seq", "kind", "sent", "received", "limit_s",
                 "callers", "created", "completed", "is_late")


def content(record):
    return {name: getattr(record, name) for name in Record.__slots__}


class Call:
    def __init__(self):
        self.box = ctypes.c_uint64()


def loaded(path):
    loader = importlib.machinery.ExtensionFileLoader("quick", path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_file_location("quick", path, loader=loader))
    loader.exec_module(module)
    return module


module = loaded(sys.argv[1])
group = Group()
records, starting = collections.deque(maxlen=10), set()


def new_call():
    call = Call()
    return call, ctypes.addressof(call.box)


def made(coll=0, wait=0, **more):
    """Return a Quick with open streams."""
    quick = new(coll, wait, **more)
    for method in quick.all_reduce, quick.broadcast:
        assert method([Tensor()], Options) is NotImplemented
    return quick


def new(coll, wait, record=Record, counts=None, functions=FUNCTIONS):
    counts = counts or Counts()
    return module.Quick(
        {"tensor_type": Tensor, "storage_type": Storage,
         "frame_type": types.FrameType, "dlpack": capsule(functions),
         "dtypes": {"f32": 0}, "unset": UNSET, "profiler": PROFILER,
         "client": CLIENT, "group": group, "lock": threading.Lock(),
         "starting": starting, "new_call": new_call, "record_type": record,
         "records": records, "numbers": itertools.count(), "counts": counts,
         "entry": entry.__code__, "name": "g", "limit_s": 3},
        (*(ctypes.cast(f, ctypes.c_void_p).value
           for f in (COLLS[coll], WAITS[wait])), 1, 1,
         ctypes.addressof(counts)),
        ([5, 6], [0] + [-1] * 15, [1] + [0] * 15), (None, None), 12)


def entry(method, *arguments):
    return method(*arguments)


def refused(call, error):
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def run(tensor):
    """Take every path through a method once."""
    counts = Counts()
    good, late, busy = (made(counts=counts), made(wait=ETIMEDOUT, record=Plain),
                        made(coll=EBUSY))
    for method in good.all_reduce, good.broadcast:
        assert entry(method, [tensor], Options) is None
    code, call = entry(late.all_reduce, [tensor], Options)
    assert code == ETIMEDOUT and starting == {call}, (code, starting)
    assert call.kept is tensor and call.record is records[-1], vars(call)
    assert call.box.value == CODE and call.kind == "all_reduce", vars(call)
    starting.clear()
    wrong = [(busy, [tensor]), (good, [tensor, tensor]), (good, []),
             (good, [3]), (good, None), (good, (tensor,))]
    for quick, tensors in wrong:
        got = entry(quick.all_reduce, tensors, Options)
        assert got is NotImplemented and not starting, (tensors, got)
    assert entry(good.all_reduce, [tensor], 3) is NotImplemented
    group.pointer = None
    assert entry(good.all_reduce, [tensor], Options) is NotImplemented
    group.pointer = 1
    refused(lambda: good.all_reduce([tensor]), TypeError)
    assert counts.calls == counts.parts == 2, (counts.calls, counts.parts)


def enter(tensor):
    """Take every path through an Entry once."""
    held, rests = set(), []

    def rest(*arguments, **more):
        rests.append((arguments, more))
        return "rest"
    good, late = made(), made(wait=ETIMEDOUT)
    for is_broadcast in False, True:
        call = module.Entry(good, is_broadcast, rest, held)
        assert call([tensor], Options) is None and not rests, rests
        kind, called = records[-1].kind, records[-1].callers[0]
        assert kind == ("broadcast" if is_broadcast else "all_reduce"), kind
        assert called is enter.__code__, called
        held.add(1)
        assert call([tensor], Options) == "rest", "held"
        held.clear()
        for arguments in ([3], Options), ([tensor],), (), ([tensor], Options, 3):
            assert call(*arguments) == "rest", arguments
        assert call([tensor], opts=Options) == "rest", "a name"
        begun, *others = [a[0] for a, _ in rests]
        assert begun is None and others == [NotImplemented] * 5, rests
        assert rests[-1] == ((NotImplemented, [tensor]), {"opts": Options}), rests
        rests.clear()
    module.Entry(late, False, rest, held)([tensor], Options)
    (code, _), *others = rests[0][0]
    assert code == ETIMEDOUT and others == [[tensor], Options], rests
    starting.clear()
    refused(lambda: module.Entry(good, False), TypeError)
    failing = module.Entry(good, False, lambda *_: 1 / 0, held)
    refused(lambda: failing([3], Options), ZeroDivisionError)


def main():
    tensor = Tensor()
    run(tensor)
    first = records[0]
    assert content(first) == {
        "number": 0, "group": "g", "seq": 1, "kind": "all_reduce",
        "sent": ((16,), "f32"), "received": ((16,), "f32"), "limit_s": 3,
        "callers": first.callers, "created": first.created,
        "completed": first.completed, "is_late": False}, content(first)
    assert type(records[2]) is Plain and (
        vars(records[2]).keys() == set(Record.__slots__)), records
    assert first.callers[0] is run.__code__ and (
        first.callers[2] is main.__code__), first.callers
    assert first.completed >= first.created > 1e18, content(first)
    enter(tensor)
    for name, value in [("data", 0), ("device", 2), ("bits", 4), ("lanes", 2),
                        ("n_dims", 3), ("code", 5)]:
        form = Tensor.form
        kept, Tensor.is_conj = Tensor.is_conj, lambda self: True
        for other in {**form, name: value}, None:
            Tensor.form = other
            got = entry(made().all_reduce, [tensor], Options)
            assert got is NotImplemented, other
        Tensor.form, Tensor.is_conj = form, kept
    refused(lambda: new(0, 0, functions=OTHERS), ImportError)
    for name in "untyped_storage", "is_neg", "dtype":
        kept, good = getattr(Tensor, name), made()
        setattr(Tensor, name, property(lambda self: 1 / 0))
        got = entry(good.all_reduce, [tensor], Options)
        assert got is NotImplemented, name
        setattr(Tensor, name, kept)
    refused(module.Quick, TypeError)
    refused(lambda: module.Quick({}, (1, 2, 3, 4, 5), ([1], [0] * 16, [0] * 16),
                                 (None, None), 3), KeyError)
    seen = (None, NotImplemented, tensor, Options, Tensor, CLIENT, group, Record,
            Plain, PROFILER, True, False, begins, UNSET)
    for _ in range(FEW):
        run(tensor)
        enter(tensor)
    gc.collect()
    before = [sys.getrefcount(each) for each in seen]
    blocks = sys.getallocatedblocks()
    for _ in range(ROUNDS):
        run(tensor)
        enter(tensor)
    gc.collect()
    blocks = sys.getallocatedblocks() - blocks
    assert abs(blocks) < FEW, f"{blocks} blocks of memory"
    for each, n in zip(seen, before):
        change = sys.getrefcount(each) - n
        assert abs(change) < FEW, f"{each}: {change} references"


main()
