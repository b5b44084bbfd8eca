# flight.py - the last collectives of this process, in the form of PyTorch's own recorder
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's flight recorder keeps the last collectives of NCCL and gloo, and
writes them to a file when one times out. torchfrtrace compares the files of all
ranks, and names ranks that did not call or called differently. This module does
the same for sumwire, with the same variables (TORCH_FR_BUFFER_SIZE,
TORCH_FR_DUMP_TEMP_FILE) and the same format:
torch/csrc/distributed/c10d/FlightRecorder.hpp."""
import collections
import ctypes
import dis
import itertools
import os
import pickle
import sys
import threading
import time
import warnings

import torch
from torch.autograd import profiler

from sumwire import library, locks, timeline

VERSION = "2.10"  # format version
SIZE = 2000  # number of collectives to keep
DEPTH = 12  # number of callers to keep per collective
# torchfrtrace rejects operations of unknown libraries.
LIBRARY = "gloo"
# A collective that ends within this part of its timeout did not time out
# itself: its group had already failed.
SOON = 0.1
WATCH_MS = 3600000  # one wait of the watch; a failed group ends the wait at once
WRITE_S = 10  # longest time that the end of a program waits for a file
# Errors that mean that a rank did not call, or called differently.
WRITTEN = ("SW_ETIMEDOUT", "SW_EEXPIRED", "SW_ESTALL", "SW_EMISMATCH")

_records = collections.deque(maxlen=timeline.number("TORCH_FR_BUFFER_SIZE", SIZE))
_numbers = itertools.count()
# Files of functions that do not count as callers: torch.compiler.disable()
# wraps ours.
_SKIPPED = (os.path.dirname(os.path.abspath(__file__)),
            os.path.join(os.path.dirname(torch.__file__), "_dynamo"))
_groups = {}  # group's name: (description, ranks of the default group)
_rank = 0  # this process's rank in the default group
_writing = locks.make()
os.register_at_fork(after_in_child=_records.clear)


class Record:
    """Hold one collective. sent and received are (shape, dtype). is_late: it
    began after the group's timeout, so other ranks waited for this one."""
    __slots__ = ("number", "group", "seq", "kind", "sent", "received", "limit_s",
                 "callers", "created", "completed", "is_late")


class Counts(ctypes.Structure):
    """Count the calls of a group, and its collectives; quick.c also counts
    here."""
    _fields_ = [("calls", ctypes.c_uint64), ("parts", ctypes.c_uint64)]


def open_group(name, ranks, size, rank):
    """Note a group of that size, by torch's name and its ranks in the default
    group; no ranks: the default group. rank: this process's rank there."""
    global _rank
    _rank = rank
    _groups[name] = ("undefined", ranks) if ranks else ("default_pg", list(range(size)))


def is_recording():
    return bool(_records.maxlen)


def records():
    """Return the records, for quick.c, which begins some of them itself."""
    return _records


def numbers():
    return _numbers


def begin(group, seq, kind, sent, received, limit_s):
    """Add a collective that begins now, and return its Record; None: recording
    is off."""
    if not _records.maxlen:
        return None
    r = Record()
    r.number, r.group, r.seq, r.kind = next(_numbers), group, seq, kind
    r.sent = (sent.shape, sent.dtype) if sent is not None else ((1,), torch.uint8)
    r.received = r.sent if received is None or received is sent else (
        received.shape, received.dtype)
    r.limit_s, r.callers = limit_s, callers()
    r.created, r.completed, r.is_late = time.time_ns(), None, False
    _records.append(r)
    return r


def ended(records, error):
    """Note that all of a work's records have ended, well or with an error."""
    now = time.time_ns()
    for r in records:
        if r is None:
            continue
        if not error:
            r.completed = now
        elif getattr(error, "name", None) in WRITTEN:
            r.is_late = now - r.created < r.limit_s * SOON * 1e9


def callers():
    """Return code and instruction offset of the functions that called
    torch.distributed, in one tuple, which costs the garbage collector least."""
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    found = []
    for _ in range(DEPTH):
        if not frame:
            break
        found += frame.f_code, frame.f_lasti
        frame = frame.f_back
    return tuple(found)


def line_of(code, offset):
    """Return the line of an instruction, or None."""
    found = code.co_firstlineno
    for start, line in dis.findlinestarts(code):
        if start > offset:
            break
        found = line
    return found


def dump():
    """Return the recorded collectives as PyTorch's recorder does, not yet pickled."""
    return {"version": VERSION,
            "pg_config": {name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
                          for name, (desc, ranks) in _groups.items()},
            "pg_status": {},
            "entries": [_entry(r) for r in list(_records)]}


def _entry(r):
    shown = f"{LIBRARY}:{r.kind}"
    return {"record_id": r.number, "pg_id": int(r.group) if r.group.isdigit() else 0,
            "process_group": (r.group, _groups[r.group][0]), "collective_seq_id": r.seq,
            "p2p_seq_id": 0, "op_id": r.seq, "is_p2p": False, "profiling_name": shown,
            "time_created_ns": r.created, "time_discovered_started_ns": r.created,
            "time_discovered_completed_ns": r.completed,
            "duration_ms": r.completed and (r.completed - r.created) / 1e6,
            "input_sizes": [list(r.sent[0])], "input_dtypes": [_name(r.sent[1])],
            "output_sizes": [list(r.received[0])], "output_dtypes": [_name(r.received[1])],
            "state": "completed" if r.completed else (
                "scheduled" if r.is_late else "started"), "retired": bool(r.completed),
            "timeout_ms": int(r.limit_s * 1000), "frames": [
                {"name": code.co_name, "filename": code.co_filename,
                 "line": line_of(code, offset)} for code, offset in
                zip(r.callers[::2], r.callers[1::2])]}


def _name(dtype):
    """Return "Float", "BFloat16", ..."""
    return torch.empty(0, dtype=dtype).type().rpartition(".")[2][:-len("Tensor")]


def write(rank, prefix=None):
    """Write the collectives to prefix + rank, and return the path. The default
    prefix is PyTorch's: TORCH_FR_DUMP_TEMP_FILE, or a file in the user's cache.
    """
    prefix = prefix or os.environ.get("TORCH_FR_DUMP_TEMP_FILE") or os.environ.get(
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE") or os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
            "torch", "comm_lib_trace_rank_")
    path = f"{prefix}{rank}"
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with _writing, open(path + ".new", "wb") as f:
        pickle.dump(dump(), f)
        os.replace(path + ".new", path)
    return path


def report():
    """Write the collectives, and print the path."""
    try:
        path = write(_rank)
    except OSError as e:
        warnings.warn(f"cannot write the flight recorder's file: {e}")
        return
    warnings.warn(f"the last {len(_records)} collectives of rank {_rank} are in {path}: "
                  f"compare the files of all ranks with torchfrtrace")


class Watch:
    """Write the collectives when a group of the job fails, in a thread of its
    own, because this rank may be the one that does not call. The thread sleeps
    in the library."""

    def __init__(self, client):
        self.client, self.thread = client, None
        self.n_seen = 0  # failed groups of the job already reported
        if is_recording():
            self.thread = threading.Thread(target=self._run, daemon=True,
                                           name="sumwire-flight")
            self.thread.start()

    def _wait(self, limit_ms):
        """Return the library's code, and the number of failed groups of the
        job."""
        n = ctypes.c_uint32(self.n_seen)
        return self.client.lib.sw_wait_group_failed_for(
            self.client.pointer, limit_ms, ctypes.byref(n)), n.value

    def _run(self):
        code = 0
        while code in (0, library.ETIMEDOUT):
            code, n = self._wait(WATCH_MS)
            if not code and n != self.n_seen:  # otherwise the failed call has reported it
                self.n_seen = n
                report()

    def failed(self, error):
        """Write the collectives if they explain this error of a call."""
        if is_recording() and getattr(error, "name", None) in WRITTEN:
            self.n_seen = self._wait(0)[1]
            report()

    def end(self):
        """Wait for the thread, which may be writing. Call after the client has
        left the job."""
        if self.thread:
            self.thread.join(WRITE_S)


# --- PyTorch's profiler ---

def is_profiled():
    return profiler._is_profiler_enabled


def profile(kind):
    """Begin a range of PyTorch's profiler, and return it; None: no profiler is
    active."""
    if not profiler._is_profiler_enabled:
        return None
    shown = profiler.record_function(f"sumwire:{kind}")
    shown.__enter__()
    return shown
