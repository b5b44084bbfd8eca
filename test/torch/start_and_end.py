# start_and_end.py - two ranks start and end repeatedly, in many ways
# SPDX-License-Identifier: BSD-3-Clause
"""start_and_end.py N: run N jobs; after each, nothing may be left: no process,
file, socket, port or shared memory. Run by torch_ends.py, in a TMPDIR of its
own. The ranks are forks of this process, which has loaded torch."""
import contextlib
import gc
import os
import random
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist

import torch_rig  # noqa: F401
from backend_rig import agents_in
from cases_backend import start
from torch_rig import check

LIMIT_S = 90  # until nothing is left
OPEN_S = 8  # how long an agent waits for killed ranks
TMP = os.environ["TMPDIR"]


def sums(n):
    for _ in range(n):
        x = torch.ones(1000)
        dist.all_reduce(x)
        check(bool((x == 2).all()), x)


def destroyed(rank):
    sums(3)
    dist.destroy_process_group()


def not_destroyed(rank):
    sums(3)
    dist.barrier()


def interrupted(rank):
    try:
        while True:
            sums(1)
    except KeyboardInterrupt:
        pass


def killed(rank):
    try:
        sums(3)
    finally:  # also if the other ended first
        os.kill(os.getpid(), signal.SIGKILL)


def one_killed(rank):
    try:
        sums(3)
        if rank:
            os.kill(os.getpid(), signal.SIGKILL)
        sums(1 << 30)
    except RuntimeError as e:
        check("rank 1" in str(e), e)


def while_it_starts(rank):
    """This process kills the ranks during their start."""
    sums(1 << 30)


WAYS = [destroyed, not_destroyed, interrupted, killed, one_killed,
        while_it_starts]
WELL = [0, -signal.SIGKILL]


def fork_rank(way, rank, i):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                          TEST_STORE=os.path.join(TMP, f"store{i}"),
                          SUMWIRE_OPEN_TIMEOUT=str(OPEN_S))
        start()
        way(rank)
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    sys.exit(0)


def left():
    """Return a description of everything that any job has left."""
    found = [f"file {f}" for f in os.listdir(TMP) if "sumwire" in f]
    found += [f"shared memory {f}" for f in os.listdir("/dev/shm")
              if "sumwire" in f]
    found += [f"process {pid}" for pid in agents_in(TMP)]
    with open("/proc/net/udp", encoding="ascii") as f:
        found += [f"port {line.split()[1]}" for line in f
                  if line.split()[1][4:8] == "4D7F"]  # 127.77
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        found += [f"socket {line.split()[-1]}" for line in f if TMP in line]
    return found


def run(i):
    way = WAYS[i % len(WAYS)]
    ranks = [fork_rank(way, rank, i) for rank in (0, 1)]
    if way in (interrupted, while_it_starts):
        time.sleep(0.5 + random.random() if way is interrupted
                   else random.random() / 2)
        for pid in ranks:
            os.kill(pid, signal.SIGINT if way is interrupted else
                    signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]
    well = [*WELL, 1, -signal.SIGINT] if way is interrupted else WELL
    check(all(c in well for c in codes), f"{i}, {way.__name__}: {codes}")
    end = time.monotonic() + LIMIT_S
    while left():
        check(time.monotonic() < end, f"{i}, {way.__name__}: {left()}")
        time.sleep(0.02)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(TMP, f"store{i}"))


def main(n):
    torch.set_num_threads(1)
    gc.freeze()  # as fork_server.py
    began = time.monotonic()
    for i in range(n):
        run(i)
    n_fds = len(os.listdir("/proc/self/fd"))
    print(f"{n} starts and ends in {time.monotonic() - began:.0f} s, "
          f"{n_fds} files open")


if __name__ == "__main__":
    main(int(sys.argv[1]))
