# parts.py - the CPU time of the backends' processes, by part of the work
# SPDX-License-Identifier: BSD-3-Clause
"""perf samples the CPU clock of all processes of all backends, which take turns.
The first row of ROWS that fits a sample names its part.  Root is needed, and perf.
"""
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

NS = 400000  # CPU time of a sample
ATTACH_S = 1  # for perf, to open its events

# The part, whether the kernel runs it, and patterns of the function, of one of
# its callers, and of the thread.
ROWS = [(part, in_kernel, *map(re.compile, names)) for part, in_kernel, *names in (
    ("kernel: copies", True, "^_copy_(from|to)_iter$", "", ""),
    ("kernel: arrival of packets", True, "",
     "^(net_rx_action|__napi_poll|handle_softirqs|tcp_v4_do_rcv)$", ""),
    ("waits and switches", True, "", "^try_to_wake_up$", ""),
    ("kernel: sends", True, "", "sendmsg|sendto|writev", ""),
    ("kernel: receives", True, "", "recvmsg|recvfrom", ""),
    ("waits and switches", True, "",
     "schedule|sched_yield|poll|futex|eventfd|ksys_(read|write)$", ""),
    ("kernel: other", True, "", "", ""),
    ("hashes", False, "polyval|crc|^macs|aes|judge_tags", "", ""),
    ("sums", False, "^b?f[136]\\w*_(sum|add|divide)|gloo::sum", "", ""),
    ("copies by the agent", False, "^copy_|^stream_[0-9]|mem(move|cpy)", "", "^rte-"),
    ("copies by the ranks", False, "mem(move|cpy)", "", ""),
    ("agent: protocol, ports, polling", False, "", "", "^(rte-|sumwire|eal-)"),
    ("gloo: algorithm, loop", False, "", "", "gloo"),
    ("Python, PyTorch", False, "", "", ""))]


def why_not():
    """Return why perf cannot sample here, or None."""
    if not shutil.which("perf"):
        return "perf is not installed"
    return None if os.geteuid() == 0 else "perf needs root here"


@contextlib.contextmanager
def sampled(owners):
    """Sample the processes of owners, {pid: backend}, inside the context; yield
    a Counter of samples by (backend, part), filled at the end."""
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        with subprocess.Popen(
                ["perf", "record", "-q", "-e", "cpu-clock", "-c", str(NS), "-g",
                 "-o", path, "-p", ",".join(map(str, owners))],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
            time.sleep(ATTACH_S)
            try:
                yield counts
            finally:
                perf.send_signal(signal.SIGINT)
        for pid, thread, chain in read(path):
            if pid in owners:
                counts[owners[pid], part_of(thread, chain)] += 1


def read(path):
    """Yield each sample: pid, thread's name, [(function, file)], inmost first."""
    script = subprocess.run(
        ["perf", "script", "-i", path, "-F", "comm,pid,tid,ip,sym,dso"],
        capture_output=True, text=True, check=True).stdout
    for sample in script.split("\n\n"):
        lines = sample.strip("\n").splitlines()
        head = re.match(r"\s*(.+?)\s+(\d+)/\d+", lines[0]) if lines else None
        chain = [(m[1].split("+")[0].strip(), m[2]) for m in (
            re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)\s*$", x) for x in lines[1:]) if m]
        if head and chain:
            yield int(head[2]), head[1], chain


def part_of(thread, chain):
    function, file = chain[0]
    in_kernel = "kernel" in file or "kallsyms" in file
    return next(
        part for part, is_kernels, leaf, caller, name in ROWS
        if is_kernels == in_kernel and leaf.search(function) and
        name.search(thread) and any(caller.search(f) for f, _ in chain))


def table(counts, calls, backends):
    """Return {part: {backend: ms of CPU of a call and rank}}. calls is the number
    of calls of all ranks together."""
    parts = sorted({p for _, p in counts}, key=[r[0] for r in ROWS].index)
    return {p: {b: counts[b, p] * NS / 1e6 / calls for b in backends}
            for p in parts}
