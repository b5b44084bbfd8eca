# torch_faults.py - wrong calls and failures: named errors, clean ends
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import signal

import torch_rig
import forks
import rig
from rig import check
from torch_rig import HERE, TorchNet


def test_wrong_calls():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_faults.py", "before_init", "names",
                     "changed_parameter", "written_gradient", "other_models", "shutdown")


def test_one_job_after_the_other():
    for local in rig.layouts((2,), (4,)):
        with TorchNet(1, local=local) as net:
            net.start_all()
            net.ranks_ok("cases_faults.py", "jobs")


def test_pickles_are_not_executed():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_faults.py", "pickles_are_not_executed")


def test_what_cannot_be_sent():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_faults.py", "what_cannot_be_sent")


def test_other_sizes():
    with TorchNet(2) as net:
        net.start_all()
        net.ranks_ok("cases_faults.py", "other_sizes", "known_sizes",
                     "handles_that_fail", "other_root", "other_groups",
                     "other_models")
        net.ranks_ok("cases_faults.py", "before_init")


def test_other_sizes_at_one_agent():
    with TorchNet(1, local=(2,)) as net:
        net.start_all()
        net.ranks_ok("cases_faults.py", "other_sizes", "known_sizes",
                     "handles_that_fail", "other_root", "other_groups")


def survivor_says(case, code, *texts, and_then=()):
    """Rank 1 ends with this code, which is detected at once. Rank 0 ends with
    an exception, and the daemons serve the next job."""
    with TorchNet(2) as net:
        net.start_all()
        zero, one = net.cases("cases_faults.py", case)
        got = one.wait(rig.RUN_S)
        check(got == code, f"rank 1 ended with {got}")
        zero.wait_error("Traceback", "SumwireError", *texts, code=1)
        check(" silent for " not in zero.log(), "nobody has to be silent")
        for name in and_then:
            net.ranks_ok("cases_faults.py", name)


def test_a_rank_exits():
    survivor_says("exits_early", 0, r"rank 1 \(node agent1\) left")


def test_a_rank_raises():
    survivor_says("raises", 1, r"rank 1 \(node agent1\)")


def test_a_rank_is_killed():
    survivor_says("is_killed", -signal.SIGKILL, r"rank 1 \(node agent1\)",
                  and_then=("before_init",))


def test_an_agent_dies():
    with TorchNet(2, job={"dead_after": "10s"}) as net:
        net.start_all()
        zero, one = net.cases("cases_faults.py", "until_the_end")
        zero.await_out("five steps")
        net.kill("agent1")
        one.wait_error("Traceback", "SumwireError", "agent1.sock has ended",
                       code=1, limit_s=rig.RUN_S)
        zero.wait_error("Traceback", "SumwireError", r"rank 1 \(node agent1\)",
                        code=1)
        for left in (net.socket("agent1"), net.stats_socket("agent1")):
            os.remove(left)


def test_no_agent():
    with TorchNet(2) as net:
        p = net.rank(0, os.path.join(HERE, "cases_faults.py"), "names",
                     env={"SUMWIRE_OPEN_TIMEOUT": "1"})
        p.wait_error("no agent listens at .*agent0.sock", "sumwire run",
                     "sumwire agent",
                     code=1, limit_s=rig.RUN_S)
        p = net.rank(1, os.path.join(HERE, "cases_faults.py"), "names",
                     env={"SUMWIRE_OPEN_TIMEOUT": "soon"})
        p.wait_error("SUMWIRE_OPEN_TIMEOUT=soon", code=1, limit_s=rig.RUN_S)


def test_limits_and_interrupts():
    """Ctrl-C ends both waits, and the error at the limit names the tensor."""
    with TorchNet(2) as net:
        net.start_all()
        script = os.path.join(HERE, "cases_faults.py")
        zero = net.rank(0, script, "names")
        zero.await_text("waiting for", limit_s=rig.RUN_S)
        zero.signal(signal.SIGINT)
        zero.wait_error("KeyboardInterrupt", limit_s=rig.RUN_S,
                        code=-signal.SIGINT)
        zero, one = net.cases("cases_faults.py", "waits",
                              env={"SUMWIRE_WAIT_TIMEOUT": "2"})
        zero.wait_error("'allreduce.lonely': timed out, no sum in 2 s",
                        "SUMWIRE_WAIT_TIMEOUT", code=1, limit_s=rig.RUN_S)
        one.signal(signal.SIGKILL)
        one.wait(rig.STOP_S)
        zero, one = net.cases("cases_faults.py", "waits")
        zero.await_out("waiting")
        zero.signal(signal.SIGINT)
        zero.wait_error("KeyboardInterrupt", limit_s=rig.RUN_S,
                        code=-signal.SIGINT)
        one.signal(signal.SIGKILL)
        one.wait(rig.STOP_S)


WAYS = {"exits": 7, "raises": 1, "killed": -signal.SIGKILL}


def test_a_rank_is_a_process_of_its_own():
    """A forked rank acts as a process of its own; the next one has another
    order of sets."""
    orders = set()
    with TorchNet(3) as net:
        for rank, (how, code) in enumerate(WAYS.items()):
            start = forks.starter(torch_rig.python(), {
                **net.environment(rank), "TEST_ADDED": how, "HOME": None}, rank)
            p = net.run(f"rank{rank}", os.path.join(HERE, "cases_forks.py"), how,
                        start=start)
            p.say("a line")
            got = p.wait(rig.RUN_S)
            check(got == code, f"{how}: it ended with {got}")
            check(json.loads(p.out()) == {
                "args": [how], "path": HERE, "input": "a line\n",
                "environment": [how, None], "is a session": True, "threads": 1,
                "files": 3, "has torch": True, "has sumwire": False}, p.out())
            check((how == "raises") == ("ValueError: this is wrong" in p.log()),
                  p.log())
            orders.add(p.log().split()[0])
    check(len(orders) == 2, f"hashes: {orders}")


if __name__ == "__main__":
    torch_rig.main(dict(globals()))
