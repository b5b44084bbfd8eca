# proc_replay.py - sumwire-lab replay: real processes iterate; times are not checked
# SPDX-License-Identifier: BSD-3-Clause
import glob
import json
import os
import signal
import subprocess
import tempfile

import rig
from rig import check, wait_until

MODEL = """model small
source nobody
layers 3
parameters 600000
layer 0 a forward 2ms backward 4ms
tensor a.weight 100x1000
layer 1 b forward 2ms backward 4ms
tensor b.weight 300x1000
tensor b.bias 100000
layer 2 c forward 2ms backward 4ms
tensor c.weight 100x1000
"""


def replay(*args, **env):
    with tempfile.NamedTemporaryFile("w", suffix=".model") as f:
        f.write(MODEL)
        f.flush()
        return subprocess.run(
            [rig.lab(), "replay", "--model", f.name, *args],
            capture_output=True, text=True, timeout=rig.RUN_S, check=False,
            env={**os.environ, "TMPDIR": "/tmp", **env})


def check_policy(policy, *args, **env):
    p = replay("--loopback", "--policy", policy, "--rate", "500Mb/s",
               "--iters", "3", "--dilate", "1", "--json", *args, **env)
    check(p.returncode == 0, p.stderr)
    d = json.loads(p.stdout)
    check(d["model"] == "small" and d["policy"] == policy, d)
    check(d["rate_gbit_s"] == 0.5 and d["ranks"] == 2, d)
    # No run is faster than the optimum of BS-T1.
    check(d["iteration_ms"] > 0.98 * d["ideal_ms"], d)
    check(d["speedup_over_fifo"] > 0, d)
    is_other = "--copy" in args and "--device" not in args
    check(is_other != (d["simulated_with_copies_ms"] is None), d)
    check(d["spread"] >= 0 and d["other_cores"] is not None, d)
    check("carry" in p.stderr, p.stderr)
    return d


def test_fifo():
    check(check_policy("fifo")["speedup_over_fifo"] == 1, "fifo over fifo")


@rig.is_long
def test_p3():
    check_policy("p3")


def test_bytescheduler_with_tuning():
    check_policy("bytescheduler", "--partition", "32KiB", "--credit",
                 "256KiB")


@rig.is_long
def test_global_barrier():
    d = check_policy("bytescheduler", "--barrier", "--copy", "500Mb/s",
                     "--piece", "64KiB")
    check(d["barrier"] is True, d)
    # A piece is copied out before the link and copied back after it.
    check(d["simulated_with_copies_ms"] > d["simulated_ms"] + 1, d)
    # Everything is sent, then all layers run: 2.4 MB at 0.5 Gb/s, and 18 ms.
    check(d["ideal_ms"] > 18 + 6.4, d)


def test_a_device():
    """Every tensor passes the pipeline of devices, and sums are right. Copies
    are slower than the link: the optimum includes 2.4 MB at 0.3 Gb/s."""
    d = check_policy("bytescheduler", "--device", "fake", "--copy", "300Mb/s",
                     "--piece", "64KiB")
    check(d["device"] == "fake" and d["ideal_ms"] > 64, d)
    check(d["simulated_ms"] > d["ideal_ms"], d)


def test_a_gpu():
    """The GPU's memory is outside this process's address space, and its runtime
    is a stand-in (test/cuda)."""
    d = check_policy("bytescheduler", "--device", "cuda", "--piece", "64KiB",
                     SUMWIRE_CUDART=rig.program("test/cuda/cudart-fake-13.so"))
    check(d["device"] == "cuda", d)


def test_no_gpu():
    p = replay("--loopback", "--device", "cuda", "--iters", "1", "--dilate",
               "1", SUMWIRE_CUDART="/nowhere/libcudart.so")
    check(p.returncode == 1, p.stderr)
    check("cuda device: SUMWIRE_CUDART: /nowhere/libcudart.so cannot" in
          p.stderr, p.stderr)


def test_devices_that_cannot_be():
    for args, text in [
            (["--device", "gpu"], "expected fake or cuda"),
            (["--device", "fake:gbit=1", "--loopback"], "--copy sets"),
            (["--device", "cuda", "--copy", "1Gb/s"], "leave --copy out"),
            (["--device", "fake", "--table"], "--table cannot be combined"),
            (["--device", "fake", "--piece", "5000"], "multiple of 4KiB")]:
        p = replay(*args)
        check(p.returncode == 2 and text in p.stderr and
              p.stderr.count("\n") == 1, f"{args}: {p.stderr}")


@rig.is_long
def test_tuned():
    p = replay("--loopback", "--tune", "--rate", "500Mb/s", "--iters", "3",
               "--dilate", "0.1", "--json")
    check(p.returncode == 0, p.stderr)
    check("search 1, trial 10: " in p.stderr and "; kept partition" in
          p.stderr, p.stderr)
    check(json.loads(p.stdout)["iteration_ms"] > 0, p.stdout)


@rig.is_long
def test_table():
    p = replay("--table", "--rate", "500Mb/s", "--iters", "1", "--dilate", "1",
               "--json")
    check(p.returncode == 0, p.stderr)
    cases = json.loads(p.stdout)["cases"]
    check([d["policy"] for d in cases] == ["fifo", "p3", "bytescheduler"],
          cases)
    for d in cases:
        check(d["model"] == "small" and d["rate_gbit_s"] == 0.5, d)
        check(d["iteration_ms"] > 0.98 * d["ideal_ms"], d)
        check(d["simulated_ms"] > 0.999 * d["ideal_ms"], d)


def rank_of(pid):
    """Return the command line of a rank below a process, or None."""
    for path in glob.glob(f"/proc/{pid}/task/{pid}/children"):
        with open(path, encoding="ascii") as f:
            children = f.read().split()
        for child in children:
            with open(f"/proc/{child}/cmdline", encoding="utf-8") as f:
                words = f.read().split("\0")
            if "--agent" not in words and "--report" in words:
                return words
            found = rank_of(child)
            if found:
                return found
    return None


def test_told_to_end():
    """Everything ends with it: processes, sockets, and the unfinished report."""
    for number in signal.SIGINT, signal.SIGTERM:
        with tempfile.TemporaryDirectory(dir="/tmp") as tmp:
            os.mkdir(tmp + "/run")
            env = {**os.environ, "TMPDIR": tmp + "/run"}
            p = rig.Process("replay", tmp, [
                "env", f"TMPDIR={env['TMPDIR']}", rig.lab(), "replay",
                "--loopback", "--iters", "100000", "--dilate", "1"])
            try:
                words = wait_until(lambda: rank_of(p.pid), rig.START_S, "rank")
                report = words[words.index("--report") + 1]
                p.signal(number)
                check(p.wait(rig.STOP_S) == -number, f"ended with {p.code()}")
                wait_until(lambda: not os.listdir(env["TMPDIR"]), rig.STOP_S,
                           "empty folder of the run")
                check(report.startswith("/dev/fd/") or
                      not os.path.exists(report), f"{report} is left")
            finally:
                p.destroy()


def test_bad_input():
    for args, text in [(["--policy", "fito"], "did you mean fifo"),
                       (["--credit", "4000000"], "16000000B if it counts"),
                       (["--policy", "p3", "--credit", "1MiB"], "policy p3"),
                       (["--policy", "fifo", "--tune"], "nothing to tune"),
                       (["--table", "--tune"], "cannot be combined with --tune"),
                       (["--rate", "0Gb/s"], "out of range"),
                       (["--iters", "0"], "1 to")]:
        p = replay(*args)
        check(p.returncode == 2, f"{args}: exit {p.returncode}")
        check(text in p.stderr, f"{args}: {p.stderr}")


if __name__ == "__main__":
    rig.main(dict(globals()))
