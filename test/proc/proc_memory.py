# proc_memory.py - a server's memory for tensors, against its documented limit
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import time

import rig
from rig import Net, check

# Under meson's setting calloc writes its pages, which a daemon alone never
# does.
os.environ.pop("MALLOC_PERTURB_", None)

MIB = 1 << 20
CHUNK_BYTES = 8192


def check_budget(dtype, elem_bytes, times):
    """Check that a tensor of 128 MiB takes at least 2 and at most @times x as
    much."""
    declared = 128 * MIB
    with Net(agents=1) as net:
        net.start_all()
        fixed, job, member = (int(n) for n in net.daemons["a"].await_text(
            r"fixed part (\d+) MiB, a job (\d+) KiB and (\d+) KiB for each "
            r"of its members").groups())
        c = net.client(0, "--tensor", f"big:{declared // elem_bytes}:{dtype}",
                       "--steps", "3", "--pause")
        for _ in range(2):  # both generations
            c.say()
        c.await_out("step 1 exact")
        stats = net.stats("a")
        c.say()
        c.wait_ok()
        # The log shows the fixed part in whole MiB.
        most = (times * declared + 128 * (declared // CHUNK_BYTES) +
                (fixed + 1) * MIB + (job + member) * 1024)
        resident = stats["memory_resident_bytes"]
        check((times - 1) * declared < resident <= most,
              f"resident {resident / MIB:.1f} MiB; {most / MIB:.1f} MiB are "
              f"allowed, {fixed} of them fixed")
        used = stats["memory_used_bytes"]
        check((times - 1) * declared < used <= most, f"{used} bytes are counted")


def test_server_keeps_its_budget():
    check_budget("f32", 4, 2)


def test_16_bit_types_take_three_times_their_size():
    check_budget("f16", 2, 3)


def test_memory_comes_back():
    with Net(agents=1) as net:
        net.start_all()
        before = net.stats("a")["memory_resident_bytes"]
        for i in range(3):
            net.client(0, "--tensor", "w:8000000:f32", name=f"c{i}").wait_ok()
        net.daemons["a"].await_text(r"(?s)(job job: closed.*){3}")
        stats = net.empty_stats("a")
        end = time.monotonic() + rig.STOP_S
        while stats["memory_resident_bytes"] - before >= 8 * MIB:
            check(time.monotonic() < end, f"{before} bytes grew: {stats}")
            stats = net.stats("a")  # another thread unmaps slightly later


def test_quota_counts_all_batches():
    with Net(agents=1, quota="64MiB") as net:
        net.start_all()
        c = net.client(0, "--tensor", "a:7000000:f32", "--tensor",
                       "b:7000000:f32")
        c.wait_error(r"SW_EREFUSED: .*quota: the tensors need 10\d MiB, 64 of "
                     r"64 MiB are left")
        net.client(0, "--tensor", "a:7000000:f32", name="fits").wait_ok()


def lcore_faults(p):
    """Return the page faults of all threads of a daemon except its control
    thread."""
    n = 0
    for tid in os.listdir(f"/proc/{p.pid}/task"):
        with open(f"/proc/{p.pid}/task/{tid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        if int(tid) != p.pid:
            n += int(fields[7]) + int(fields[9])
    return n


def faults_of_job(net, n_before, *args):
    """Return the page faults of lcores during a job, at server and agent."""
    daemons = net.daemons["a"], net.daemons["agent0"]
    before = [lcore_faults(p) for p in daemons]
    for c in [net.client(r, *args, name=f"job{n_before}_{r}")
              for r in range(net.n_agents)]:
        c.wait_ok()
    daemons[0].await_text(r"(?s)(job job: closed.*){%d}" % (n_before + 1))
    return [lcore_faults(p) - n for p, n in zip(daemons, before)]


def test_lcores_take_no_page_faults():
    """200,000 chunks: their records alone need 3,100 pages at a server and
    1,200 at an agent."""
    with Net(agents=1, job={"payload": 1344}) as net:
        net.start_all()
        faults_of_job(net, 0, "--tensor", "w:4000000:f32", "--steps", "4")
        taken = faults_of_job(net, 1, "--tensor", "big:67108864:f32")
        check(max(taken) < 1000, f"page faults of lcores, server and agent: "
              f"{taken}")


def test_tables_take_no_page_faults():
    """A job has 500 pages and uses few of them, also when its first member
    leaves."""
    with Net(agents=2) as net:
        net.start_all()
        faults_of_job(net, 0, *rig.SMALL)  # warm up the ports' buffers
        taken = [faults_of_job(net, 1 + i, *rig.SMALL) for i in range(4)]
        check(max(map(max, taken)) < 100, f"page faults of lcores, server and "
              f"agent, by job: {taken}")


def resident(p):
    """Return the resident bytes; 0 if the process has ended."""
    try:
        with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except ProcessLookupError:
        return 0


def ends_in_the_middle(needed):
    """Return whether a server answers and ends while it populates this much
    memory."""
    with Net(agents=1) as net:
        net.start_all()
        server = net.daemons["a"]
        c = net.client(0, "--tensor", f"big:{needed // 8}:f32")
        end = time.monotonic() + rig.RUN_S
        while True:
            now = net.stats("a")["memory_resident_bytes"]
            check(time.monotonic() < end, f"{now} bytes are there")
            if c.code() == 0:
                return False
            if now > 256 * MIB:
                break
        server.signal(signal.SIGTERM)
        most = now
        while server.code() is None:
            check(time.monotonic() < end, "the server does not end")
            most = max(most, resident(server))
        net.daemons.pop("a")
        check(server.code() == 0, f"it ended with {server.code()}")
        c.wait_error(r"SW_E(SERVER|CLOSED)")
        return now < needed and most < needed


def test_control_thread_answers_while_memory_is_made():
    """Try five times: daemon or test may get no core for the second or two that
    3 GiB take."""
    check(any(ends_in_the_middle(3 << 30) for _ in range(5)),
          "no answer between none and all, or all was made before the end")


if __name__ == "__main__":
    rig.main(dict(globals()))
