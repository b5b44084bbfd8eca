# proc_lanes.py - agents that poll on several cores, on two shared ones
# SPDX-License-Identifier: BSD-3-Clause
import json
import time

import proc_ends
import rig
from proc_ends import ABORTED, ALL, CLOSED_OPEN, check_ends
from rig import Net, check, start_forever

TENSORS = ("--tensor", "w:1000001:f32", "--tensor", "b:7:i32",
           "--tensor", "v:350000:i64")
STEP_BYTES = 4 * 1000001 + 4 * 7 + 8 * 350000
FAULTS = {"fault_loss": "1%", "fault_dup": "1%", "fault_reorder": "1%"}
DEAD_AFTER_S = 2
SLACK_S = 30


def check_lanes(net, name, lanes, pushed):
    """Check that each lane has pushed its part, and all lanes together
    everything once."""
    def parts():
        stats = net.stats(name)
        check(stats["lanes"] == lanes, f"{name}: {stats}")
        found = [stats[f"lane{i}.push_bytes"] for i in range(lanes)]
        return found if sum(found) == pushed else None
    found = rig.wait_until(parts, rig.STOP_S, f"{pushed} bytes from {name}")
    check(min(found) > 0.3 * pushed / lanes, f"{name}, by lane: {found}")


def all_steps(net, n, steps, *args, local=1, **keys):
    clients = [net.client(0, *args, "--steps", str(steps), agent=a,
                          name=f"{a}c{i}", **keys)
               for a in net.agents[:n] for i in range(local)]
    for c in clients:
        c.wait_ok()
        check(f"step {steps - 1} exact" in c.out(),
              f"{c.name} did not see the last step")


def run_job(lanes, steps=5, local=None, **keys):
    """Run twice on the same daemons: the second job reuses freed memory."""
    n = len(lanes)
    with Net(agents=n, lanes=lanes, local=(local,) * n if local else None,
             **keys) as net:
        net.start_all()
        for _ in range(2):
            all_steps(net, n, steps, *TENSORS, local=local or 1)
        for name, count in zip(net.agents, lanes):
            check_lanes(net, name, count, 2 * steps * STEP_BYTES)
        for name in net.servers + (net.agents if keys.get("colocated")
                                   else []):
            net.empty_stats(name)


def test_two_lanes_two_servers():
    run_job((2, 2), servers=2)


def test_nodes_differ_with_faults():
    run_job((4, 1, 3), steps=2, lcores=4, port=FAULTS)


def test_two_lanes_and_local_ranks():
    run_job((2, 2), lcores=2, local=3)


def test_colocated_alone():
    run_job((2, 2), servers=0, lcores=2, colocated=True)


def test_colocated_beside_a_server_more_lanes_than_cores_that_sum():
    run_job((4, 2), servers=1, lcores=2, steps=3, colocated=True)


def run_colls(lanes, seed, local=None, colls=40, make=Net, **keys):
    """Run collectives of several groups and all kinds; check each."""
    n = len(lanes)
    local = local or (1,) * n
    with make(agents=n, lanes=lanes, local=local, **keys) as net:
        net.start_all()
        procs = [net.run(f"coll{i}.{k}", rig.program("test/proc/proc_coll"),
                         "--agent", net.socket(f"agent{i}"), "--seed",
                         str(seed), "--colls", str(colls))
                 for i, m in enumerate(local) for k in range(m)]
        for p in procs:
            p.wait_ok()
            check("exact" in p.out(), p.out())
        for name, count in zip(net.agents, lanes):
            stats = net.stats(name)
            pushed = [stats[f"lane{i}.push_bytes"] for i in range(count)]
            check(min(pushed) > 0, f"{name}, by lane: {pushed}")


def test_collectives_of_two_lanes_two_servers():
    run_colls((2, 2), 1, servers=2)


def test_collectives_of_nodes_that_differ_with_faults():
    run_colls((4, 1, 3), 2, lcores=4, port=FAULTS)


def test_collectives_colocated_alone():
    run_colls((2, 2), 3, servers=0, lcores=2, colocated=True)


def test_collectives_colocated_of_one_lane_and_two():
    run_colls((1, 2), 4, servers=0, lcores=2, colocated=True)


def test_collectives_of_local_ranks():
    run_colls((2, 2), 5, local=(2, 1), servers=1, lcores=2, colocated=True)


def ends_of(what, lanes=(2, 2), **keys):
    return proc_ends.run(what, lanes=lanes, lcores=2, **keys)


def test_group_aborted():
    check_ends(ends_of("abort"), [ALL, ["later"]], "SW_EABORTED",
               ABORTED.format(1))
    check_ends(ends_of("abort_own", (2, 1), k=1),
               [["later"], ALL], "SW_EABORTED", ABORTED.format(1))


def test_group_aborted_where_frames_are_lost():
    check_ends(ends_of("abort", k=1, colocated=False, local=(2, 2),
                       port=FAULTS), [ALL] * 3 + [["later"]], "SW_EABORTED",
               ABORTED.format(3))


def test_group_waits_too_long():
    check_ends(ends_of("timeout"), [ALL, ["later"]], "SW_EEXPIRED",
               r"rank 0 timed out in all_reduce 1 of group 'dp' "
               r"\(group timeout 1 s\); "
               "missing: rank 1 of 2")


def test_group_called_differently():
    check_ends(ends_of("mismatch"), [ALL, ["first", "later"]],
               "SW_EMISMATCH", r"group dp: rank \d calls "
               r"all_reduce with another count or root than rank \d "
               r"\(collective 1\)")


def test_group_closed():
    for out in ends_of("reopen", k=1, colocated=False):
        check("reopened" in out, out)
    check_ends(ends_of("close", (1, 2))[:1], [["first", "later"]],
               "SW_EABORTED", CLOSED_OPEN)


def test_member_of_a_group_dies():
    outs = ends_of("die", (2, 1, 2), n=3)[:2]
    check(all("SW_EPEER" in o and "rank 2 (node" in o for o in outs), outs)


def test_broadcast():
    with Net(lanes=(2, 2), lcores=2) as net:
        net.start_all()
        all_steps(net, 2, 3, "--copy", *TENSORS)


def test_many_small_tensors():
    """The other lane takes no part in a tensor of one frame."""
    with Net(lanes=(2, 2), lcores=2) as net:
        net.start_all()
        p = net.run("bench", rig.sumwire(), "bench", "--agent",
                    net.socket("agent0"), "--agent", net.socket("agent1"),
                    "--tensors", "2048", "--min", "1KiB", "--max", "1KiB",
                    "--iters", "20", "--json")
        p.wait_ok()
        row = json.loads(p.out())["results"][0]
        check(row["wrong"] == 0, f"the benchmark: {row}")
        check_lanes(net, "agent0", 2, (20 + 3) * 2048 * 1024)


def test_benchmark():
    """sumwire bench starts daemons with several lcores."""
    with Net(agents=1) as net:
        p = net.run("bench", rig.sumwire(), "bench", "--loopback", "--lcores",
                    "2", "--min", "1MiB", "--max", "1MiB", "--iters", "5",
                    "--json")
        p.wait_ok()
        row = json.loads(p.out())["results"][0]
        check(row["wrong"] == 0, f"the benchmark: {row}")


@rig.is_long
def test_training_is_the_same():
    """The weights after training equal those of one lcore, bit by bit."""
    epochs = []
    for lanes, lcores in ((1, 1), 1), ((4, 2), 4):
        with Net(lanes=lanes, lcores=lcores) as net:
            net.start_all()
            epochs.append(net.train_ok()["epochs"])
    check(epochs[0] == epochs[1],
          "several lcores train to other weights or losses")


def test_two_jobs():
    """Two agents of another job per node share the servers of both."""
    with Net(agents=2, servers=1, lcores=2, lanes=(2, 2)) as net:
        for i, name in enumerate(net.agents):
            net.ini[name]["job"].update(name=f"job{i}", agents=1, agent=0)
        net.start_all()
        all_steps(net, 2, 10, *TENSORS)


def test_server_of_a_lane_killed():
    """Lane 1 of each agent finds that its server is dead; the coordinator
    forwards the first report to the other agent."""
    with Net(servers=2, lanes=(2, 1),
             job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.kill("b")
        start = time.monotonic()
        for c in clients:
            c.wait_error(r"server b \(10\.77\.\d+\.1\) "
                         rf"silent for {DEAD_AFTER_S} s")
        took = time.monotonic() - start
        check(took < DEAD_AFTER_S + SLACK_S, f"that took {took:.1f} s")
        net.start("b")
        all_steps(net, 2, 2, *TENSORS)


def test_agent_killed():
    with Net(servers=2, lanes=(2, 2),
             job={"dead_after": f"{DEAD_AFTER_S}s"}) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.kill("agent1")
        clients[0].wait_error(r"rank 1 \(node agent1\) silent")
        clients[1].wait_error(r"agent1.sock has ended")
        net.start("agent1")
        all_steps(net, 2, 2, *TENSORS)


def test_agent_stops_in_mid_job():
    with Net(servers=2, lanes=(2, 2)) as net:
        net.start_all()
        clients = start_forever(net, *TENSORS, step=0)
        net.stop("agent1")
        clients[1].wait_error(r"the agent stops")
        clients[0].wait_error(
            r"error wait SW_EPEER: .*rank 1 \(node agent1\) left")


def test_over_quota_at_the_server_of_a_lane():
    with Net(servers=2, lanes=(2, 2)) as net:
        net.ini["b"]["serve"] = {"quota": "1MiB"}
        net.start_all()
        clients = [net.client(r, *TENSORS) for r in range(2)]
        for c in clients:
            c.wait_error(r"quota: the tensors need \d+ MiB, \d+ of 1 MiB")


def test_bad_numbers():
    cases = ((("agent", "lcores", 17), r"17.*1 to 16"),
             (("agent", "lcores", 3), r"3, but there are 2 polling cores that "
              r"sum .*: 2 at most"),
             (("lcore", "cpus", "0"), r"1.*2 lcores|2.*lcores"))
    for (section, key, value), pattern in cases:
        with Net(agents=1, lcores=2, lanes=(2,)) as net:
            net.ini["agent0"].setdefault(section, {})[key] = value
            net.run("bad", rig.sumwire(), "agent", "--config",
                    net.write_ini("agent0")).wait_error(pattern, code=1)


if __name__ == "__main__":
    rig.main(dict(globals()))
