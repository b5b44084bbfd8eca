# proc_queues.py - lcores with a queue pair each, over interfaces of the kernel
# SPDX-License-Identifier: BSD-3-Clause
import re

import lan
import rig
from lan import Lan
from rig import check

TENSORS = ("--tensor", "w:2000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:300000:i64")


def queued(net, name, lcores):
    stats = net.stats(name)
    return stats, [stats.get(f"port.lan.queue{i}.rx_frames", 0)
                   for i in range(lcores)]


def run_job(lcores, steering, steps=5, **keys):
    """Run a job and check its sums; return the server's counters."""
    port = {"steering": steering} if steering else {}
    with Lan(agents=2, lcores=lcores, port={**port, **keys}) as net:
        net.start_all()
        clients = [net.client(r, *TENSORS, "--steps", str(steps))
                   for r in range(2)]
        for c in clients:
            c.wait_ok()
        stats, queues = queued(net, "a", lcores)
        check(stats["numa_nodes"] > 1 or "lcore0.numa_node" not in stats,
              f"memory is bound on a machine of one node: {stats}")
        for name in "rx_bytes", "tx_frames", "tx_bytes", "rx_overrun", "tx_full":
            parts = [n for c, n in stats.items()
                     if re.fullmatch(rf"port\.lan\.queue\d+\.{name}", c)]
            check(parts and sum(parts) == stats[f"port.lan.{name}"],
                  f"queues' {name}: {parts} of {stats[f'port.lan.{name}']}")
        parts = [stats[f"lcore{i}.push_bytes"] for i in range(lcores)]
        check(min(parts) > 0.5 * sum(parts) / lcores,
              f"uneven over lcores: {parts}")
        rig.wait_until(
            lambda: net.stats("a")["memory_used_bytes"] == 0, rig.STOP_S,
            "memory given back")
        return stats, queues


def check_steering(stats, kind):
    kinds = {k: stats[f"port.lan.steering_{k}"]
             for k in ("rules", "rss", "handoff")}
    check(kinds.pop(kind) == 1 and not any(kinds.values()),
          f"steering: {kind} expected: {stats}")


def check_rules(lcores, steering):
    """Check that every frame arrives at its own lcore, and that none passes
    through a ring."""
    stats, queues = run_job(lcores, steering)
    check_steering(stats, "rules")
    check(min(queues) > 0.5 * sum(queues) / lcores,
          f"uneven over queues: {queues}")
    check(stats["handoff_rx"] == 0 and stats["handoff_tx"] == 0,
          f"frames were handed over: {stats}")


def test_rules_two_lcores():
    check_rules(2, "rules")


def test_auto_four_lcores():
    check_rules(4, None)


def test_rules_and_lost_frames():
    run_job(2, "rules", fault_loss="1%", fault_dup="1%", fault_reorder="1%")


def test_rss():
    """Workers try source ports until frames arrive at the right lcore."""
    stats, queues = run_job(4, "rss")
    check_steering(stats, "rss")
    check(min(queues) > 0.5 * sum(queues) / 4, f"uneven queues: {queues}")
    check(stats["handoff_misrouted"] < 0.02 * sum(queues) and
          stats["handoff_tx"] == 0, f"frames were handed over: {stats}")


def test_handoff():
    stats, queues = run_job(2, "handoff")
    check_steering(stats, "handoff")
    check(len(queues) == 2 and queues[1] == 0 and stats["handoff_rx"] > 0 and
          stats["handoff_tx"] > 0 and stats["handoff_misrouted"] == 0,
          f"{queues} {stats}")


if __name__ == "__main__":
    lan.enter()
    rig.main(dict(globals()))
