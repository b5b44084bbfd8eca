# proc_tune.py - tuning of a running job: set, refused, found; times are not checked
# SPDX-License-Identifier: BSD-3-Clause
import concurrent.futures
import ctypes
import json
import os
import subprocess
import sys
import time

import rig
from rig import Net, check

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../apps/torch"))
from sumwire import library

EINVAL = -1


class Tuning(ctypes.Structure):
    _fields_ = [("policy", ctypes.c_char * 16),
                ("partition_bytes", ctypes.c_uint64),
                ("credit_bytes", ctypes.c_uint64),
                ("rate_bit_s", ctypes.c_uint64),
                ("number", ctypes.c_uint32),
                ("round", ctypes.c_uint32)]


class Client:
    """One rank, in this process."""

    def __init__(self, net, agent="agent0", size=100000):
        self.lib = ctypes.CDLL(os.path.join(
            rig.BUILD, "pmd/client/libsumwire.so"))
        self.lib.sw_last_error.restype = ctypes.c_char_p
        for name in "sw_set_partition", "sw_set_credit", "sw_set_rate":
            getattr(self.lib, name).argtypes = [
                ctypes.c_void_p, ctypes.c_uint64]
        self.lib.sw_tune.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64,
            ctypes.c_uint64]
        self.c = ctypes.c_void_p()
        s = library.Settings()
        self.lib.sw_settings_init_sized(
            ctypes.byref(s), ctypes.c_size_t(ctypes.sizeof(s)))
        s.agent = net.socket(agent).encode()
        self.ok(self.lib.sw_open(ctypes.byref(s), ctypes.byref(self.c)))
        self.t = ctypes.c_void_p()
        desc = library.Desc(ctypes.sizeof(library.Desc), b"w", size)
        self.ok(self.lib.sw_declare(
            self.c, ctypes.byref(desc), 1, ctypes.byref(self.t)))
        self.step = 0

    def ok(self, err):
        check(err == 0, f"error {err}: {self.error()}")

    def error(self):
        return self.lib.sw_last_error(self.c).decode()

    def refused(self, err, text):
        check(err == EINVAL and text in self.error(),
              f"error {err}: {self.error()}; expected: {text}")

    def now(self):
        t = Tuning()
        self.lib.sw_get_tuning_sized(
            self.c, ctypes.byref(t), ctypes.c_size_t(ctypes.sizeof(t)))
        return t

    def start(self):
        h = ctypes.c_uint64()
        self.step += 1
        self.ok(self.lib.sw_push_pull(
            self.c, self.t, self.step, ctypes.byref(h)))
        return h

    def push(self):
        self.ok(self.lib.sw_wait_for(self.c, self.start(), 600000))

    def close(self):
        self.lib.sw_close(ctypes.byref(self.c))


def test_set_and_read():
    with Net(agents=1) as net:
        net.start_all()
        c = Client(net)
        c.push()
        check(c.now().policy == b"bytescheduler" and
              c.now().partition_bytes == 16384 and
              c.now().credit_bytes == 4 << 20 and c.now().number == 0,
              "the policy's own")
        c.ok(c.lib.sw_set_partition(c.c, 65536))
        c.ok(c.lib.sw_set_credit(c.c, 1 << 20))
        c.ok(c.lib.sw_set_rate(c.c, 5000000000))
        check(c.now().partition_bytes == 65536 and
              c.now().credit_bytes == 1 << 20 and
              c.now().rate_bit_s == 5000000000, "what was set")
        c.push()
        st = net.stats(net.agents[0])
        check(st["partition_bytes"] == 65536 and
              st["credit_bytes"] == 1 << 20 and st["tuning_number"] == 0 and
              st["rate_bit_s"] == 5000000000,
              f"statistics: {st}")
        c.ok(c.lib.sw_tune(c.c, b"fifo", 0, 0))
        rig.wait_until(lambda: c.push() or c.now().number, rig.RUN_S,
                       "other tuning")
        check(c.now().number == 1 and c.now().policy == b"fifo",
              "the job's tuning have changed")
        c.refused(c.lib.sw_set_partition(c.c, 1 << 20),
                  "this policy's partition and credit are fixed")
        check(net.stats(net.agents[0])["tuning_number"] == 1, "statistics")
        c.close()


def test_wrong_values_are_refused():
    hint = "given in bytes (4 MiB is 4194304)"
    with Net(agents=1) as net:
        net.start_all()
        c = Client(net)
        for bad in 4, 1023, (1 << 36) + 1, 2**64 - 1:
            c.refused(c.lib.sw_set_partition(c.c, bad),
                      "a partition has 1 KiB to 64 GiB, " + hint)
        for bad in 4, (1 << 40) + 1, 2**64 - 4:
            c.refused(c.lib.sw_set_credit(c.c, bad),
                      "a credit has 1 KiB to 1 TiB, " + hint)
        for bad in 10, 2**64 - 1:
            c.refused(c.lib.sw_set_rate(c.c, bad),
                      "given in bits per second (10 Gb/s is 10000000000)")
        c.refused(c.lib.sw_tune(c.c, b"p4", 0, 0), "unknown policy")
        c.refused(c.lib.sw_tune(c.c, b"p3", 1 << 20, 0),
                  "policy p3, partition 1048576, credit 0: this policy's "
                  "partition and credit are fixed")
        c.refused(c.lib.sw_tune(c.c, None, 16, 0), hint)
        c.push()
        check(c.now().partition_bytes == 16384 and c.now().number == 0,
              "nothing has changed")
        c.close()


def check_all_changed(net):
    """Check the number of changes: the job numbers a change when all agents
    know the one before; the last may come after one agent has left."""
    changes = [net.stats(a)["tuning_changes"] for a in net.agents]
    check(0 < max(changes) <= min(changes) + 1,
          f"changes at the agents: {changes}")


def test_training_is_tuned():
    with Net() as net:
        net.start_all()
        result = net.train_ok("--tune", epochs=2)
        check(result["is_reference_identical"], result)
        check_all_changed(net)


RATE_BIT_S = 64000000
PUSH_BYTES = 8000000  # 1 s at that rate


def check_rate(ports=1, **keys):
    """Check that an agent's ports carry PUSH_BYTES per push. A rate set later
    takes the same time as the same rate from the start."""
    port = {"rate": f"{RATE_BIT_S // ports // 1000000}Mb/s",
            **keys.pop("port", {})}
    with Net(port=port, **keys) as net, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        net.start_all()
        clients = list(pool.map(
            lambda a: Client(net, a, PUSH_BYTES // 4), net.agents))

        def push_all():
            start = time.monotonic()
            handles = [c.start() for c in clients]
            for c, h in zip(clients, handles):
                c.ok(c.lib.sw_wait_for(c.c, h, 600000))
            return time.monotonic() - start
        push_all()
        from_start_s = push_all()
        for c in clients:
            check(c.now().rate_bit_s == RATE_BIT_S, "rate from the start")
            c.ok(c.lib.sw_set_rate(c.c, 10 * RATE_BIT_S))
        push_all()
        for c in clients:
            c.ok(c.lib.sw_set_rate(c.c, RATE_BIT_S))
        print(f"{from_start_s:.2f} s at the rate from the start, which allows 1 s")
        rig.measured(push_all, lambda s: 0.75 < s < 2 * from_start_s)
        for c in clients:
            c.close()


def test_a_rate_is_that_of_a_port_with_one_queue():
    """All four lcores send through lcore 0, and only lcore 0 is paced."""
    check_rate(agents=1, lcores=4, lanes=(4,))


@rig.is_long
def test_a_rate_is_divided_among_queues():
    check_rate(agents=1, lcores=2, lanes=(2,), port={"queues": 2})


def test_a_rate_is_that_of_serving_lcores_as_well():
    """Each agent pushes half of a tensor to the other, and sends results of the
    other half from four lcores without a part of a worker."""
    for queues in rig.layouts(1, 4):
        check_rate(servers=0, colocated=True, lcores=4, port={"queues": queues})


def test_a_rate_is_divided_among_ports():
    check_rate(2, agents=1, servers=2)


@rig.is_long
def test_engine():
    p = subprocess.run(
        [rig.lab(), "tune", "--engine", "--rate", "4Gb/s", "--later",
         "1Gb/s", "--json"], capture_output=True, text=True, timeout=rig.TEST_S,
        check=False, env={**os.environ, "TMPDIR": "/tmp"})
    check(p.returncode == 0, p.stderr)
    rates = json.loads(p.stdout)["rates"]
    check(len(rates) == 2 and all(len(r["grid"]) == 20 for r in rates), rates)
    check(rates[0]["noticed_after"] == 0 and rates[1]["noticed_after"] > 0 and
          rates[1]["tuned_after"] > rates[1]["noticed_after"], rates)
    check("search 2, trial 1: " in p.stderr, p.stderr)


if __name__ == "__main__":
    rig.main(dict(globals()))
