# proc_frozen.py - an agent with a control thread that gets no CPU for 2 s
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import ctypes
import errno
import os
import time

import rig
from rig import Net, Skip, check

FROZEN_S = 2
LOCAL = (2, 2)  # processes of each agent
N_TENSORS = 600  # more than the queues between threads can hold in one turn
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207


def ptrace(request, tid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                            ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, None, None):
        number = ctypes.get_errno()
        if number == errno.EPERM:
            raise Skip("ptrace is not permitted")
        raise OSError(number, f"ptrace: {os.strerror(number)}")


@contextlib.contextmanager
def frozen(tid):
    """Stop one thread; a signal would stop the whole process."""
    ptrace(PTRACE_SEIZE, tid)
    ptrace(PTRACE_INTERRUPT, tid)
    _, status = os.waitpid(tid, 0x40000000)  # __WALL
    check(os.WIFSTOPPED(status), f"thread {tid} ended: {status}")
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, tid)


def start(net):
    """Push all tensors at all ranks except the last, which waits for a command."""
    tensors = [a for i in range(N_TENSORS)
               for a in ("--tensor", f"t{i}:16:f32")]
    places = [(a, i) for a, n in zip(net.agents, LOCAL) for i in range(n)]
    clients = [net.client(0, *tensors, "--pause", "--local-rank", str(i),
                          name=f"c{rank}", agent=a)
               for rank, (a, i) in enumerate(places)]
    for c in clients:
        c.await_out(r"declared")
    for c in clients[:-1]:
        c.say()
    rig.wait_until(lambda: net.stats("agent0")["push_bytes"] >= 64 * N_TENSORS,
                   rig.RUN_S, "pushes of agent0")
    return clients


def check_admits(net):
    """Check that later jobs can run, one after another."""
    for i in range(5):
        later = [net.client(0, *rig.SMALL, name=f"later{i}.{k}", agent=a)
                 for k, a in enumerate(net.agents * 2)]
        for c in later:
            c.wait_ok()


def frozen_net():
    return Net(local=LOCAL, job={"stall_warn": "1s"})


def test_a_job_goes_on():
    """Sums need only the lcore."""
    with frozen_net() as net:
        net.start_all()
        clients = start(net)
        with frozen(net.daemons["agent0"].pid):
            time.sleep(FROZEN_S)
            clients[-1].say()
            for c in clients:
                c.await_out(r"step 0 exact")
        for c in clients:
            c.wait_ok()
        check_admits(net)


def test_a_job_fails():
    """Waiting callers get the error when the thread runs again."""
    with frozen_net() as net:
        net.start_all()
        clients = start(net)
        with frozen(net.daemons["agent0"].pid):
            time.sleep(FROZEN_S)
            clients[-1].kill()
            clients[-2].wait_error(r"error wait SW_EPEER: .*rank 3")
        for c in clients[:2]:
            c.wait_error(r"error wait SW_EPEER: .*rank 3 \(node agent1\)")
        check_admits(net)


if __name__ == "__main__":
    rig.main(dict(globals()))
