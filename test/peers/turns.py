# turns.py - a peer's processes: stopped outside their turns; their CPU time
# SPDX-License-Identifier: BSD-3-Clause
"""All peers run at the same time. SIGSTOP stops every process of a peer without
a turn, so that no polling thread (sumwire's lcores, OpenMPI's ranks) takes time
from the others. A mark in the environment, which mpirun, nsenter and daemons
inherit, identifies the processes."""
import contextlib
import os
import signal
import statistics
import subprocess
import threading
import time

MARK = "SUMWIRE_PEER"
SETTLE_S = 0.002  # after a turn, for the last acknowledgements
TURN_S = 120


def take_turn(call, iterations):
    """Return the median seconds, after one untimed call."""
    times = []
    for _ in range(1 + iterations):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


class Turns:
    """Use: with Turns() as t: t.start(…) …, then t.take(…) repeatedly."""
    n_marks = 0

    def __init__(self):
        Turns.n_marks += 1
        self.mark = f"{os.getpid()}-{Turns.n_marks}"
        self.programs = []
        self.pids = []  # all processes, once the first turn is over

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def environment(self, **more):
        return {**os.environ, MARK: self.mark, **more}

    def start(self, args, **env):
        """Start a program that takes turns by lines; the first program's
        answers count."""
        p = subprocess.Popen(args, stdin=subprocess.PIPE, text=True,
                             stdout=subprocess.PIPE, bufsize=1,
                             stderr=subprocess.PIPE,
                             env=self.environment(**env))
        p.said = []
        p.reader = threading.Thread(target=lambda: p.said.extend(p.stderr),
                                    daemon=True)
        p.reader.start()
        self.programs.append(p)
        return p

    def find(self):
        """Return the processes with our mark."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if wanted in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass  # ended, or not ours
        return found

    def signal(self, number):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cpu(self):
        """Return the CPU seconds so far, and the threads, of all its processes."""
        seconds, threads = 0.0, 0
        for pid in self.pids:
            try:
                for tid in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{tid}/schedstat",
                              encoding="ascii") as f:
                        seconds += int(f.read().split()[0]) / 1e9
                        threads += 1
            except OSError:
                pass
        return seconds, threads

    def answer(self, what):
        """Return the first program's next line, within a limit."""
        line = []
        reader = threading.Thread(
            target=lambda: line.append(self.programs[0].stdout.readline()),
            daemon=True)
        reader.start()
        reader.join(TURN_S)
        if not line or not line[0]:
            said = "".join("".join(p.said[-10:]) for p in self.programs)
            raise RuntimeError(f"{what}: no answer: {said}")
        return line[0]

    def take(self, what, n_bytes, iterations, tell=None):
        """Run a turn; return {seconds (median), cores, threads, CPU seconds of
        a call}."""
        before, start = self.cpu()[0], time.monotonic()
        self.signal(signal.SIGCONT)
        for p in self.programs[:tell]:
            with contextlib.suppress(BrokenPipeError):  # answer() reports the reason
                p.stdin.write(f"{n_bytes} {iterations}\n")
                p.stdin.flush()
        got, seconds, wrong = self.answer(what).split()
        time.sleep(SETTLE_S)
        self.pids = self.pids or self.find()
        self.signal(signal.SIGSTOP)
        wall = time.monotonic() - start
        after, threads = self.cpu()
        if int(wrong) or int(got) > n_bytes:
            raise RuntimeError(f"{what}: {wrong} wrong elements")
        return {"seconds": float(seconds), "cores": (after - before) / wall,
                "threads": threads, "cpu": (after - before) / (1 + iterations)}

    def close(self):
        self.signal(signal.SIGCONT)
        for p in self.programs:
            with contextlib.suppress(BrokenPipeError):
                p.stdin.close()
        for p in self.programs:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.programs = []
