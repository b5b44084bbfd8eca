# torch_ends.py - the end of a group and of a process leaves nothing behind
# SPDX-License-Identifier: BSD-3-Clause
"""SUMWIRE_TEST_ENDS=200 python3 test/torch/torch_ends.py build starts_and_ends
makes 200 ends instead of 6, one in each way."""
import os
import re
import signal

import torch_rig
import rig
from backend_rig import Alone, WithServer, folders_in, main
from rig import check

N_ENDS = int(os.environ.get("SUMWIRE_TEST_ENDS", "6"))
rig.TEST_S += 10 * N_ENDS


def test_forked():
    """A forked child harms no other process, and ends by itself."""
    with Alone() as net:
        net.ranks_ok("cases_ends.py", "forked", "forked_while_watched",
                     "loaders")
        net.await_nothing()


def test_closed():
    """The end of a group frees its resources at all ranks."""
    with Alone() as net:
        net.ranks_ok("cases_ends.py", "many_groups", "closed",
                     "closed_by_a_callback")
        net.await_nothing()


def test_limit():
    """The others name the missing rank within the group's timeout."""
    with Alone() as net:
        net.ranks_ok("cases_ends.py", "limit")
        net.await_nothing()


def survivor_says(case, code):
    """End rank 1 in this way, in the middle of collectives."""
    with Alone() as net:
        zero, one = net.cases("cases_ends.py", case)
        if code == -signal.SIGINT:
            one.await_out("goes on")
            one.signal(signal.SIGINT)
        got = one.wait(rig.RUN_S)
        check(got == code, f"rank 1 ended with {got}")
        zero.wait_error("SumwireError.* rank 1 ", code=1)
        n_said = zero.log().count("SumwireError:")
        check(n_said == 1, f"rank 0 says {n_said} sentences")
        check(" silent for " not in zero.log(), "nobody has to be silent")
        net.remove_files()
        net.await_nothing()


def test_a_rank_exits():
    survivor_says("exits", 0)


def test_a_rank_raises():
    survivor_says("raises", 1)


def test_a_rank_is_killed():
    survivor_says("is_killed", -signal.SIGKILL)


def test_a_rank_is_killed_in_ddp():
    survivor_says("is_killed_in_ddp", -signal.SIGKILL)


def test_a_rank_is_interrupted():
    survivor_says("until_the_end", -signal.SIGINT)


def others_go_on(net, **env):
    """Kill rank 2: ranks 0 and 1 get one sentence, and continue to sum."""
    *rest, dead = net.cases("cases_ends.py", "the_last_is_killed", env=env)
    got = dead.wait(rig.RUN_S)
    check(got == -signal.SIGKILL, f"rank 2 ended with {got}")
    said = set()
    for p in rest:
        p.wait_ok(rig.RUN_S)
        said |= set(re.findall(r"after \S+ s: (.*)\n", p.out()))
    check(len(said) == 1 and re.match(
        r"rank 2 \(node \S+\).*: training process \d+: ", *said),
        f"they say {said}")
    net.remove_files()
    net.await_nothing()


def test_others_go_on():
    """All ranks share one agent."""
    with Alone(3) as net:
        others_go_on(net)


def test_others_go_on_by_agents():
    """Each rank has an agent: the agent of the dead rank continues to sum."""
    with Alone(3) as net:
        others_go_on(net, TEST_RANKS_PER_AGENT="1")


def test_others_go_on_by_a_server():
    with WithServer(3) as net:
        others_go_on(net, TEST_RANKS_PER_AGENT="1", **net.start_server())


def test_a_machine_dies():
    """Its agent also sums for the others, so their job ends."""
    with Alone(3) as net:
        *rest, dead = net.cases("cases_ends.py", "the_last_machine_dies", env={
            "TEST_RANKS_PER_AGENT": "1", "TEST_DEAD_AFTER": "3s"})
        got = dead.wait(rig.RUN_S)
        check(got == -signal.SIGKILL, f"rank 2 ended with {got}")
        for p in rest:
            p.wait_ok(rig.RUN_S)
        net.remove_files()
        for folder in folders_in(net.path("tmp")):
            os.utime(folder, (0, 0))
        net.ranks_ok("cases_agents.py", "sums")
        net.await_nothing()


def test_killed():
    """Agents end with their killed processes."""
    with Alone() as net:
        ranks = net.cases("cases_ends.py", "until_the_end")
        for p in ranks:
            p.await_out("goes on")
        check(net.running(), "no agent was found")
        for p in ranks:
            p.kill()
        net.await_nothing()


def test_one_leaves():
    """Its agent stays while others need its sums."""
    with Alone(3) as net:
        net.ranks_ok("cases_ends.py", "left")
        net.await_nothing()


def test_restarted():
    """torchrun restarts all ranks: the new job does not conflict with the old
    one."""
    with Alone() as net:
        p = net.torchrun(os.path.join(os.path.dirname(__file__),
                                      "cases_ends.py"), "restarted",
                         restarts=1)
        p.wait_ok()
        jobs = [set(re.findall(rf"attempt {i} in (\S+)", p.out()))
                for i in (0, 1)]
        check(all(len(j) == 1 for j in jobs), f"jobs {jobs}")
        for i, (job,) in enumerate(jobs):
            check(re.fullmatch(rf"torch-\S+-{i}-[0-9a-f]+", job), job)
        net.await_nothing()


def test_starts_and_ends():
    """Run many in a row, in all ways, with a check after each."""
    with Alone() as net:
        p = net.run("ends", "/usr/bin/env",
                    *[f"{k}={v}" for k, v in net.environment(0).items()],
                    torch_rig.python(), os.path.join(os.path.dirname(__file__),
                                               "start_and_end.py"),
                    str(N_ENDS))
        p.wait_ok(rig.RUN_S + 10 * N_ENDS)
        print(p.out())
        net.await_nothing()


if __name__ == "__main__":
    main(dict(globals()))
