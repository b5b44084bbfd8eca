# timeline.py - begin and end of each sum of this process, as a Chrome trace
# SPDX-License-Identifier: BSD-3-Clause
"""Perfetto (ui.perfetto.dev) and chrome://tracing open the file.  Each tensor and each
group has a row.  A bar lasts from the call until the program, or the thread that watches,
has learned of the end.  The variables are those of Horovod and BytePS:

    HOROVOD_TIMELINE=FILE    rank 0 writes FILE; if it contains %r, each rank writes one
    BYTEPS_TRACE_ON=1        each rank writes BYTEPS_TRACE_DIR/LOCAL_RANK/comm.json (trace),
                             with rounds BYTEPS_TRACE_START_STEP to BYTEPS_TRACE_END_STEP
                             (10, 20)
"""
import collections
import json
import math
import os
import threading
import time
import warnings

MANY = 1000  # events that are written together


class Timeline:
    """Write a trace. Any thread may call it.

    path         file, which is replaced
    rank         rank of this process in the job
    first, last rounds of a tensor to show, counted from 0 at its first in the
    trace"""

    def __init__(self, path, rank, first=0, last=math.inf):
        self.path, self.rank, self.first, self.last = path, rank, first, last
        self.lock = threading.Lock()
        self.rows, self.events, self.n_spans = {}, [], 0
        self.rounds = collections.Counter()  # number of rounds of each tensor so far
        self.pid = os.getpid()
        self.zero_ns = time.time_ns() - time.perf_counter_ns()
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self.file = open(path, "w", encoding="utf-8")
        self.file.write("[\n")
        self._add({"name": "process_name", "ph": "M", "args": {"name": f"rank {rank}"}})

    def begin(self, row, kind, n_bytes, has_rounds=False):
        """Return the argument for end(), or None if this round is not shown."""
        number = None
        if has_rounds:
            with self.lock:
                number = self.rounds[row]
                self.rounds[row] += 1
            if not self.first <= number <= self.last:
                return None
        return row, kind, n_bytes, number, time.perf_counter_ns()

    def end(self, begun, error=None):
        row, kind, n_bytes, number, began_ns = begun
        args = {"bytes": n_bytes}
        if number is not None:
            args["round"] = number
        if error is not None:
            args["error"] = str(error)
        now_ns = time.perf_counter_ns()
        with self.lock:
            if row not in self.rows:
                self.rows[row] = len(self.rows) + 1
                self._add({"name": "thread_name", "ph": "M", "tid": self.rows[row],
                           "args": {"name": row}})
            # Collectives of a group overlap, so they are pairs and not bars.
            self.n_spans += 1
            common = {"name": kind, "cat": "sumwire", "tid": self.rows[row],
                      "id": f"{self.rank}.{self.n_spans}"}
            self._add({**common, "ph": "b", "ts": self._us(began_ns), "args": args})
            self._add({**common, "ph": "e", "ts": self._us(now_ns)})
            if len(self.events) >= MANY:
                self._write()

    def close(self):
        with self.lock:
            self._write("\n]\n")
            if self.file:
                self.file.close()
            self.file = None

    def _us(self, ns):
        return (self.zero_ns + ns) / 1000

    def _add(self, event):
        self.events.append(json.dumps({"pid": self.rank, **event}))

    def _write(self, end=""):
        """Write the events so far.  A full disk ends the trace, not the training."""
        text, self.events = ",\n".join(self.events), []
        if not self.file or os.getpid() != self.pid:  # a forked child must not write
            return
        try:
            more = ",\n" if text and self.file.tell() > len("[\n") else ""
            self.file.write(more + text + end)
            self.file.flush()
        except OSError as e:
            warnings.warn(f"the timeline {self.path} ends here: {e}")
            self.file = None


def for_rank(path, rank):
    """Return the Timeline of this rank, or None if another rank writes the only one."""
    if rank and "%r" not in path:
        return None
    return Timeline(path.replace("%r", str(rank)), rank)


def from_environment(rank, local_rank):
    """Return the Timeline that the environment asks for, or None."""
    path = os.environ.get("HOROVOD_TIMELINE", "DYNAMIC")
    if path != "DYNAMIC":  # Horovod's value that leaves the start to start_timeline()
        return for_rank(path, rank)
    if os.environ.get("BYTEPS_TRACE_ON") != "1":
        return None
    folder = os.environ.get("BYTEPS_TRACE_DIR", "trace")
    return Timeline(os.path.join(folder, str(local_rank), "comm.json"), rank,
                    number("BYTEPS_TRACE_START_STEP", 10),
                    number("BYTEPS_TRACE_END_STEP", 20))


def number(variable, default):
    """Return the number in an environment variable.  Raise ValueError for other text."""
    text = os.environ.get(variable, str(default))
    if not text.isdigit():
        raise ValueError(f"{variable}={text}: expected a number of at least 0")
    return int(text)
