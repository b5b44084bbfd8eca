# proc_bench.py - sumwire bench as a user meets it: interrupted, and misused
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re
import signal

import rig
from rig import Net, check


def folder_of(bench):
    """Return the loopback's folder, from a daemon's command line."""
    for pid in bench.children():
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            found = re.search(r"(/[^\0]*/sumwire-run-\w+)/", f.read())
        if found:
            return found[1]
    return None


def interrupt(net, args, number):
    p = net.run("bench", rig.sumwire(), "bench", "--loopback", *args)
    folder = rig.wait_until(lambda: folder_of(p), rig.START_S, "folder")
    return p, folder, lambda: os.killpg(p.pid, number)


def test_interrupted_while_it_measures():
    """Signal the whole group, as Ctrl-C does: bench leaves nothing behind."""
    with Net(agents=1) as net:
        p, folder, stop = interrupt(net, ("--min", "4KiB", "--max", "4KiB",
                                          "--iters", "1000000"), signal.SIGINT)
        p.await_out(r"algbw")
        stop()
        check(p.wait(rig.STOP_S) == 128 + signal.SIGINT, "exit code")
        check(not os.path.exists(folder), f"{folder} is left")


def test_stopped_while_it_starts():
    with Net(agents=1) as net:
        p, folder, stop = interrupt(net, (), signal.SIGTERM)
        stop()
        check(p.wait(rig.STOP_S) == 128 + signal.SIGTERM, "exit code")
        check(not os.path.exists(folder), f"{folder} is left")


def test_over_udp():
    """Measure on lo, in a network of its own, with exact sums."""
    with Net(agents=1) as net:
        p = net.run("bench", rig.sumwire(), "bench", "--loopback", "--port",
                    "udp", "--min", "1MiB", "--max", "1MiB", "--iters", "5",
                    "--json")
        folder = rig.wait_until(lambda: folder_of(p), rig.START_S, "folder")
        p.wait_ok()
        row = json.loads(p.out())["results"][0]
        check(row["wrong"] == 0, f"the benchmark: {row}")
        check(not os.path.exists(folder), f"{folder} is left")


def test_beside_the_raw_echo():
    """Measure in slices; alone, and over IPv6 with a rank that waits meanwhile."""
    with Net(agents=1) as net:
        for name, more in (("one", ()), ("two", ("--colocated", "--ipv6"))):
            p = net.run(name, rig.sumwire(), "bench", "--loopback", "--raw",
                        "--min", "64KiB", "--max", "64KiB", "--iters", "20",
                        "--json", *more)
            p.wait_ok()
            row = json.loads(p.out())["results"][0]
            check(row["wrong"] == 0 and row["iterations"] == 30 and
                  row["raw_gbit_s"] > 0 and
                  0 < row["raw_ratio_q1"] <= row["raw_ratio"] <=
                  row["raw_ratio_q3"], f"{row}")


def bench_collective(net, name, *more):
    p = net.run(name, rig.sumwire(), "bench", "--collective", name, "--min",
                "64KiB", "--max", "64KiB", "--iters", "20", *more,
                *[w for a in net.agents for w in ("--agent", net.socket(a))])
    p.wait_ok()
    return p.out()


def test_collectives():
    """Sizes and factors of bus bandwidth match those of nccl-tests."""
    n = 3
    with Net(agents=n, servers=0, colocated=True) as net:
        net.start_all()
        for name, factor, more in (
                ("all_reduce", 2 * (n - 1) / n, ()),
                ("reduce_scatter", (n - 1) / n, ("--staged", "--dtype", "bf16")),
                ("all_gather", (n - 1) / n, ("--in-place",)),
                ("broadcast", 1, ("--staged", "--in-place")),
                ("reduce", 1, ("--op", "max", "--dtype", "i64"))):
            row = json.loads(bench_collective(net, name, "--json", *more))
            row = row["results"][0]
            size = row["size_bytes"]
            algbw = 8 * size / row["time_us"] / 1e3
            check(row["wrong"] == 0 and row["collective"] == name and
                  row["ranks"] == n and (64 << 10) - 8 * n < size <= 64 << 10
                  and abs(row["algbw_gbit_s"] / algbw - 1) < 1e-6 and
                  abs(row["busbw_gbit_s"] / algbw / factor - 1) < 1e-6 and
                  0 < row["p50_us"] <= row["p99_us"], f"{name}: {row}")
        for name, call in (("all_reduce", "sum +-1"), ("reduce", "sum +0"),
                           ("broadcast", "none +0")):
            said = bench_collective(net, name)
            check(re.search(r"(?m)^# +size +count +type +redop +root +time "
                            r"+algbw +busbw +#wrong +time +algbw +busbw +#wrong",
                            said), said)
            check(re.search(rf"(?m)^ +65\d+ +\d+ +f32 +{call} +[\d.]+ ", said),
                  said)


def bench(net, name, *args):
    p = net.run(name, rig.sumwire(), "bench", *args)
    p.wait_ok()
    return p.out()


def test_options_of_nccl_tests():
    """-b, -e and -f, GB/s, both buffers; without arguments, a loopback."""
    with Net(agents=1) as net:
        said = bench(net, "table", "-b", "1K", "-e", "64K", "-f", "8", "-n",
                     "20")
        sizes = re.findall(r"(?m)^ +(\d+) +\d+ +f32 ", said)
        check(sizes == ["1024", "8192", "65536"], said)
        check("(GB/s)" in said and "# Avg bus bandwidth" in said, said)
        row, = json.loads(bench(
            net, "json", "--loopback", "--colocated", "--collective",
            "all_reduce", "-b", "64K", "-e", "64K", "-n", "20", "--json"))[
                "results"]
        check(abs(row["busbw_gbyte_s"] * 8 / row["busbw_gbit_s"] - 1) < 1e-6
              and row["in_place_time_us"] > 0 and not row["in_place_wrong"],
              f"{row}")


def test_bad_options():
    cases = ((("--loopback", "--agent", "/nowhere"),
              r"give either --agent NAME or --loopback"),
             (("--loopback", "--min", "1MiB", "--max", "4KiB"),
              r"--min is 1048576 bytes, --max 4096: there is no size"),
             (("--loopback", "--port", "eth"), r"--port eth: memif, af_packet"),
             (("--loopback", "--port", "udp", "--device", "eth0"),
              r"--device: with --port udp the loopback is always on lo"),
             (("--loopback", "--port", "udp", "--faults", "1%"),
              r"--faults: ports of type udp cannot inject faults; use memif"),
             (("--loopback", "--policy", "lifo"),
              r"--policy lifo: bytescheduler, p3 or fifo"),
             (("--loopback", "--faults", "5"), r"--faults: \"5\" has no unit"),
             (("--agent", "/nowhere", "--rate", "1Gb/s"),
              r"--rate is for --loopback"),
             (("--loopback", "--iters", "-1"), r"--iters: .*has a sign"),
             (("--loopback", "--turns"), r"--turns needs one --agent"),
             (("--colocated", "--agent", "/nowhere"), r"--loopback"))
    with Net(agents=1) as net:
        for i, (args, pattern) in enumerate(cases):
            p = net.run(f"bench{i}", rig.sumwire(), "bench", *args)
            p.wait_error(pattern, code=2)


if __name__ == "__main__":
    rig.main(dict(globals()))
