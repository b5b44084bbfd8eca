# fork_server.py - load torch once, and fork processes that start after the import
# SPDX-License-Identifier: BSD-3-Clause
"""fork_server.py FD PATH: serve forks.py, which connects to the socket FD at
PATH.

A child behaves like a program that was started directly and has imported torch
as its first line: it has a session, an environment, arguments and files of its
own. It has no state of sumwire."""
import contextlib
import ctypes
import fcntl
import gc
import json
import os
import runpy
import select
import socket
import struct
import sys

import torch.distributed  # noqa: F401

MAX_BYTES = 100000  # of a request
NUMBER = struct.Struct("i")  # a child's pid, then its exit status
FIRST, LAST = 3, 255  # descriptors that a child must not inherit
IDLE_S = 30  # without a child or a request, before the server ends


def enter(namespace):
    """Enter the namespace of that file of /proc."""
    fd = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError(ctypes.get_errno(), namespace)


def become(asked, files):
    """Turn this process into the requested child."""
    for to, fd in enumerate(files):
        os.dup2(fd, to)
    for namespace in asked["namespaces"]:
        enter(namespace)
    os.closerange(FIRST, LAST)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv[:] = asked["args"]


def only_thread():
    """Require a single thread: a child would inherit other threads' locks, but
    not the threads."""
    n = len(os.listdir("/proc/self/task"))
    if n != 1:
        sys.exit(f"fork_server.py: torch has started {n - 1} threads")


def tell(told, number):
    """Send a number; the requester may have ended."""
    with contextlib.suppress(BrokenPipeError):
        os.write(told, NUMBER.pack(number))


def answer(children, ready):
    """Report the exit statuses of children that have ended."""
    for child in set(ready) & set(children):
        pid, told = children.pop(child)
        status = os.waitpid(pid, 0)[1]
        tell(told, os.waitstatus_to_exitcode(status))
        os.close(told)
        os.close(child)


def end_unasked(listener, path):
    """End unless a request arrives now: forks.py connects while it holds the
    lock."""
    with open(path + ".lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if not select.select([listener], [], [], 0)[0]:
            os.unlink(path)
            os._exit(0)


def serve(listener, path):
    """Serve requests; return in each child."""
    children = {}  # by the descriptor that reports its end: pid, requester
    while True:
        ready = select.select([listener, *children], [], [],
                              None if children else IDLE_S)[0]
        if not ready:
            end_unasked(listener, path)
        answer(children, ready)
        if listener not in ready:
            continue
        asked_by = listener.accept()[0]
        with asked_by:
            text, fds, _, _ = socket.recv_fds(asked_by, MAX_BYTES, 4)
        if not text:
            continue
        *files, told = fds
        only_thread()
        pid = os.fork()
        if not pid:
            listener.detach()
            os.setsid()
            tell(told, os.getpid())
            become(json.loads(text), files)
            return
        children[os.pidfd_open(pid)] = pid, told
        for fd in files:
            os.close(fd)


def go_on():
    """Run the program as Python does with these arguments."""
    if sys.argv[0] == "-u":
        del sys.argv[0]
        sys.stdout.reconfigure(write_through=True)
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    gc.freeze()  # otherwise each child scans all of torch again at its end
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    go_on()
