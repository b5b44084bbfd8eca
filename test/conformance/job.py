# job.py - Python workers join jobs of a real server, with and without keys
# SPDX-License-Identifier: BSD-3-Clause
"""usage: job.py BUILD [CASE]..."""
import array
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

import worker
from frames import RUNNING
from worker import Worker, run

INI = """\
[node]
role = server
name = s
runtime_dir = {folder}/run
[job]
dead_after = 2s
[serve]
udp_port = {port}
{keys}
[port u]
type = udp
ip = {ip}/8
[stats]
socket = {folder}/stats
"""
IP = "127.81.3.1"
START_S = 30


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((IP, 0))
        return s.getsockname()[1]


class Server:
    """A real server with the secrets of the jobs in keys, by job; "": for all."""

    def __init__(self, build, keys=None, options=""):
        self.sumwire = os.path.join(build, "apps", "sumwire")
        self.folder = tempfile.mkdtemp(prefix="sumwire-conformance-")
        self.port = free_port()
        lines = options
        for job, secret in (keys or {}).items():
            path = os.path.join(self.folder, (job or "all") + ".key")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                              0o600), "w", encoding="ascii") as f:
                f.write(secret.hex() + "\n")
            line = (f"key_dir = {self.folder}\n" if job else
                    f"key_file = {path}\n")
            lines += "" if line in lines else line
        self.ini = os.path.join(self.folder, "s.ini")
        with open(self.ini, "w", encoding="ascii") as f:
            f.write(INI.format(folder=self.folder, port=self.port, ip=IP,
                               keys=lines))
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        self.process = subprocess.Popen(
            [self.sumwire, "server", "--config", self.ini], stderr=self.log)
        end = time.monotonic() + START_S
        while b"is ready" not in self.text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(self.text().decode())
            time.sleep(0.02)
        self.at = (IP, self.port)

    def text(self):
        with open(self.log.name, "rb") as f:
            return f.read()

    def counters(self):
        out = subprocess.run([self.sumwire, "stats", "--all",
                              f"{self.folder}/stats"], check=True, text=True,
                             capture_output=True).stdout
        return {n: int(v) for v, n in map(str.split, out.splitlines())}

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        code = self.process.wait(START_S)
        for folder, _, files in os.walk(self.folder, topdown=False):
            for name in files:
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
        assert code == 0, code


@contextlib.contextmanager
def serving(build, **options):
    server = Server(build, **options)
    try:
        yield server
    except BaseException:
        print(server.text().decode(), file=sys.stderr)
        raise
    finally:
        server.close()


def members(server, secret, n=2, job="py", encrypts=False):
    return [Worker(f"127.81.4.{i + 1}", server.at, job, i, n, secret, encrypts)
            for i in range(n)]


def start(workers, titles):
    """Run the workers until the tensors are declared."""
    run(workers, lambda: all(w.status and w.status["state"] == RUNNING
                             for w in workers))
    for w in workers:
        w.declare(titles)
    run(workers, lambda: all(len(w.tensors) == len(titles) for w in workers))


def sum_once(workers, seed):
    """Sum a random tensor of small whole numbers for each tensor in turn."""
    drawn = random.Random(seed)
    for key in sorted(workers[0].tensors):
        parts = []
        for w in workers:
            t = w.tensors[key]
            numbers = array.array("f", (drawn.randrange(-999, 999)
                                        for _ in range(t.n)))
            parts.append(numbers)
            w.push(t, numbers.tobytes())
        want = array.array("f", map(sum, zip(*parts))).tobytes()
        run(workers, lambda: all(w.result(w.tensors[key]) for w in workers))
        for w in workers:
            assert w.result(w.tensors[key]) == want, (
                f"member {w.member}: wrong sum")


def leave(workers):
    for w in workers:
        w.leave()
    run(workers, lambda: all(w.state == worker.LEFT for w in workers))


TITLES = [("small", 3), ("chunk", 336), ("large", 5000)]


def trains(build, secret, encrypts=False, **options):
    with serving(build, **options) as server:
        workers = members(server, secret, encrypts=encrypts)
        start(workers, TITLES)
        for i in range(5):
            sum_once(workers, i)
        found = server.counters()
        leave(workers)
    assert not any(w.n_tags for w in workers)
    assert all(bool(w.n_encrypted) == encrypts for w in workers)
    return found


def test_without_a_key(build):
    trains(build, None)


def test_with_a_key(build):
    secret = random.randbytes(32)
    found = trains(build, secret, keys={"": secret},
                   options="require_key = yes\n")
    assert found["rx_tag"] == found["rx_replay"] == 0, found


def test_encrypted(build):
    secret = random.randbytes(32)
    found = trains(build, secret, encrypts=True, keys={"": secret})
    assert found["rx_tag"] == found["rx_replay"] == 0, found


def test_with_a_key_of_the_job(build):
    secret = random.randbytes(32)
    trains(build, secret, keys={"py": secret, "other": random.randbytes(32)})


def never_joins(build, secret, **options):
    """Check that no session opens, and that the log gives the reason."""
    with serving(build, **options) as server:
        workers = members(server, secret, n=1)
        with contextlib.suppress(TimeoutError, worker.Refused):
            run(workers, lambda: bool(workers[0].status), limit_s=3)
            raise AssertionError("it joined")
        found = server.counters()
        assert not found["sessions_opened"], found
        return workers[0].hint, server.text().decode()


def test_with_another_key(build):
    _, log = never_joins(build, random.randbytes(32),
                         keys={"": random.randbytes(32)})
    assert "key" in log, log


def test_without_the_key_that_is_required(build):
    hint, _ = never_joins(build, None, keys={"": random.randbytes(32)},
                          options="require_key = yes\n")
    assert "key" in hint, hint


def main():
    build, cases = sys.argv[1], sys.argv[2:]
    tests = {k[5:]: f for k, f in globals().items() if k.startswith("test_")}
    failed = 0
    for name in cases or tests:
        began = time.monotonic()
        try:
            tests[name](build)
            how = "ok"
        except Exception as e:
            how, failed = f"FAILED: {type(e).__name__}: {e}", failed + 1
        print(f"{name}: {how} ({time.monotonic() - began:.1f} s)", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
