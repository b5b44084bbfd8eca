# forks.py - Python programs as children of one that has loaded torch
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch takes 2 s of a core to load: programs that a test starts many of are
forked from fork_server.py.  What Python and PyTorch read of the environment
as they are loaded is the server's: there is one for each such environment, and of
these one for even ranks and one for odd ones, whose sets have other orders.
"""
import functools
import json
import os
import select
import socket
import struct
import subprocess

from rig import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBER = struct.Struct("i")  # as of fork_server.py
READ_EARLY = ("PYTHON", "TORCH", "OMP_", "LD_")  # variables, by their beginning


class Forked:
    """As subprocess.Popen.  files: stdin, stdout and stderr."""

    def __init__(self, server, asked, files):
        read, told = os.pipe()
        socket.send_fds(server, [json.dumps(asked).encode()], [*files, told])
        os.close(told)
        self.told = os.fdopen(read, "rb", buffering=0)
        self.returncode = None
        self.pid = self._number()

    def _number(self):
        got = self.told.read(NUMBER.size)
        if not got:
            raise Failure("the fork server has ended")
        return NUMBER.unpack(got)[0]

    def _look(self, limit_s):
        if self.returncode is None and select.select(
                [self.told], [], [], limit_s)[0]:
            self.returncode = self._number()
        return self.returncode

    def poll(self):
        return self._look(0)

    def wait(self, timeout=None):
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)


@functools.lru_cache(maxsize=None)
def server(python, early, which):
    """The socket of one; it ends with this process.  which: of several."""
    del which
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        subprocess.Popen(
            [python, os.path.join(HERE, "fork_server.py"), str(its.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**os.environ, **dict(early)}, pass_fds=[its.fileno()],
            start_new_session=True)
    return ours


def starter(python, env, which, namespaces=()):
    """As rig.popen, for what follows python on a command line.  env: what is added,
    None: removed.  namespaces: files of /proc."""
    early = tuple(sorted((k, v) for k, v in env.items()
                         if v is not None and k.startswith(READ_EARLY)))

    def start(args, out, log):
        read, write = os.pipe()
        forked = Forked(server(python, early, which % 2), {
            "env": env, "args": args, "namespaces": namespaces}, [read, out.fileno(), log.fileno()])
        os.close(read)
        forked.stdin = os.fdopen(write, "wb")
        return forked
    return start
