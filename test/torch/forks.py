# forks.py - run Python programs as children of a process that has loaded torch
# SPDX-License-Identifier: BSD-3-Clause
"""Loading PyTorch takes 2 to 3 s of a core, so programs that tests start often
are forked from fork_server.py. Python and PyTorch read parts of the environment
when they load. So each such environment has a server for even ranks and one for
odd ranks, which differ in the order of sets. All test programs of a build
folder, in the same namespaces, share the servers. An idle server ends after a
while."""
import contextlib
import fcntl
import hashlib
import json
import os
import select
import socket
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.path.join(HERE, "fork_server.py")
NUMBER = struct.Struct("i")  # as of fork_server.py
READ_EARLY = ("PYTHON", "TORCH", "OMP_", "LD_")  # prefixes of variables that are read at load time
READ_LATE = ("TORCHELASTIC_", "TORCHFT_", "TORCH_NCCL_", "TORCH_FR_", "PYTHON_EXEC")
NAMESPACES = ("user", "mnt", "net", "pid", "uts")
PLACE = "TEST_FORKS"  # variable in a child's environment: the servers' place


class Ended(Exception):
    """The fork server has ended before it started a child."""


class Forked:
    """Behaves as subprocess.Popen. files: stdin, stdout and stderr."""

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
            raise Ended("the fork server has ended")
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


def place(build):
    """Return where a test program finds its servers: a folder, and its
    namespaces."""
    folder = os.path.join(build, "forks")
    os.makedirs(folder, exist_ok=True)
    return [folder, *(os.readlink(f"/proc/self/ns/{n}") for n in NAMESPACES)]


def connect(where, python, early, which):
    """Connect to the server of that place; start it if necessary."""
    name = hashlib.sha256(json.dumps(
        [where[1:], python, early, which,
         os.stat(SERVER).st_mtime]).encode()).hexdigest()[:16]
    folder = os.open(where[0], os.O_RDONLY | os.O_DIRECTORY)
    # Socket paths must be short.
    path = f"/proc/self/fd/{folder}/{name}"
    found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with open(path + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                found.connect(path)
            except OSError:
                start(path, os.path.join(where[0], name), python, dict(early))
                found.connect(path)
    finally:
        os.close(folder)
    return found


def start(path, real, python, early):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, \
            open(path + ".log", "w", encoding="utf-8") as log:
        listener.bind(path)
        listener.listen(64)
        env = {k: v for k, v in os.environ.items() if not is_early(k)}
        subprocess.Popen(
            [python, SERVER, str(listener.fileno()), real],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            env={**env, **early}, pass_fds=[listener.fileno()],
            start_new_session=True)


def is_early(name):
    return name.startswith(READ_EARLY) and not name.startswith(READ_LATE)


def fork(where, python, env, which, args, files, namespaces=()):
    """Start a child with that environment; return it as Forked."""
    early = sorted((k, v) for k, v in env.items() if is_early(k))
    own = [k for k, v in early if "/sumwire-proc-" in v]
    if own:
        raise ValueError(f"{own}: each case would load PyTorch again; READ_LATE lacks it")
    with connect(where, python, early, which % 2) as server:
        return Forked(server, {
            "env": {**env, PLACE: json.dumps(where)}, "args": args,
            "folder": os.getcwd(), "namespaces": namespaces}, files)


def starter(python, env, which, namespaces=()):
    """Return a function like rig.popen for the arguments after python. env:
    variables to add, or None: to remove. namespaces: files of /proc."""
    import rig
    pairs = {k: v for k, v in {**os.environ, **env}.items() if v is not None}

    def run(args, out, log):
        read, write = os.pipe()
        forked = fork(place(rig.BUILD), python, pairs, which, args,
                      [read, out.fileno(), log.fileno()], namespaces)
        os.close(read)
        forked.stdin = os.fdopen(write, "wb")
        return forked
    return run
