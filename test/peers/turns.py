# turns.py - processes of one peer: stopped outside their turns; their CPU time
# SPDX-License-Identifier: BSD-3-Clause
"""All peers live side by side. A peer without a turn is stopped by SIGSTOP,
every process of it, so that no polling thread (sumwire's lcores, OpenMPI's
ranks) takes time from the others. Processes are known by a mark in their
environment, which goes through mpirun, nsenter and daemons.
"""
import contextlib
import os
import signal
import statistics
import subprocess
import threading
import time

MARK = "SUMWIRE_PEER"
SETTLE_S = 0.002  # after a turn: the last acknowledgements
TURN_S = 120


def take_turn(call, iterations):
    """Median seconds, after one call that is not timed."""
    times = []
    for _ in range(1 + iterations):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


class Turns:
    """with Turns() as t: t.start(…) …, then t.take(…) again and again."""
    n_marks = 0

    def __init__(self):
        Turns.n_marks += 1
        self.mark = f"{os.getpid()}-{Turns.n_marks}"
        self.programs = []
        self.pids = []  # all of them, once the first turn is over

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def environment(self, **more):
        return {**os.environ, MARK: self.mark, **more}

    def start(self, args, **env):
        """A program that takes turns by lines; the first one's answers count."""
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
        """The processes with our mark."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if wanted in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass  # it is gone, or not ours
        return found

    def signal(self, number):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def cpu(self):
        """CPU seconds so far, and threads, of all its processes."""
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
        """The first program's next line, within a limit."""
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
        """A turn: {seconds (median), cores, threads, CPU seconds of a call}."""
        before, start = self.cpu()[0], time.monotonic()
        self.signal(signal.SIGCONT)
        for p in self.programs[:tell]:
            with contextlib.suppress(BrokenPipeError):  # answer() says why
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
