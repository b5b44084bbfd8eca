# proc_jobs.py - two jobs on one server, four agents on one host
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re

import rig
from rig import Net, check, check_goes_on, run_steps, start_forever

RED, BLUE = ("agent0", "agent1"), ("agent2", "agent3")


def two_jobs():
    """Assign agents 0 and 1 to job red, 2 and 3 to blue; ranks start at 0 in
    each."""
    net = Net(agents=4)
    for name, agents in (("red", RED), ("blue", BLUE)):
        for rank, agent in enumerate(agents):
            net.ini[agent]["job"].update(name=name, agents=2, agent=rank)
    return net


def wait_trained(p):
    p.wait_ok()
    result = json.loads(p.out())
    check(result["is_ok"] and result["is_identical"],
          f"{p.name} is not as it must be: {result}")


def test_both_train():
    with two_jobs() as net:
        net.ini["a"]["share red"] = {"weight": 3}
        net.start_all()
        both = [net.train("--epochs", "1", "--target-accuracy", "0.5",
                          agents=agents, name=name)
                for name, agents in (("red", RED), ("blue", BLUE))]
        for p in both:
            wait_trained(p)
        stats = net.await_stats("a", lambda s: s["sessions_closed"] == 4,
                                "four ends")
        check(stats["chunks_done"] > 0, f"odd counters: {stats}")


def test_a_job_that_may_not():
    """A job missing in [serve] jobs gets an error; the other one trains."""
    with two_jobs() as net:
        net.ini["a"].setdefault("serve", {})["jobs"] = "reds,red*"
        for agent in RED:
            net.start(agent)
        net.start("a")
        net.start(BLUE[0])
        blue = net.client(2, "--tensor", "w:1000:f32")
        blue.wait_error(r"does not serve job blue: add it to its \[serve\] jobs")
        run_steps(net, agents=RED, name="red")


def test_a_death_harms_no_other_job():
    with two_jobs() as net:
        for agent in RED:
            net.ini[agent]["job"]["dead_after"] = "2s"
        net.start_all()
        blue = start_forever(net, agents=BLUE, name="blue")
        red = [net.client(0, "--tensor", "w:100000:f32", "--steps", "3",
                          "--misbehave", "die"),
               net.client(1, "--tensor", "w:100000:f32", "--steps", "1000")]
        red[1].wait_error(r"SW_EPEER: .*rank 0 ")
        red[0].wait(rig.RUN_S)
        check_goes_on(blue)
        for p in blue:
            p.kill()


def test_a_job_over_quota_harms_no_other_job():
    with two_jobs() as net:
        net.ini["a"]["share red"] = {"quota": "1MiB"}
        net.start_all()
        red = [net.client(r, "--tensor", "w:1000000:f32") for r in (0, 1)]
        blue = [net.client(r, "--tensor", "w:1000000:f32", "--steps", "5")
                for r in (2, 3)]
        for p in red:
            p.wait_error(r"SW_EREFUSED: .*quota of job red: the tensors need "
                         r"8 MiB, 1 of 1 MiB are left")
        for p in blue:
            p.wait_ok()


def test_a_weight_of_zero():
    with two_jobs() as net:
        net.ini["a"]["share blue"] = {"weight": 0}
        p = net.launch("a")
        p.wait_error(r"\[share blue\] weight: \"0\" is out of range: 1 to 100")
        net.daemons.clear()


def test_daemons_of_one_name_in_one_folder():
    with two_jobs() as net:
        folder = net.path("shared")
        os.mkdir(folder)
        for ini in net.ini.values():
            ini["node"].update(name="same.host", runtime_dir=folder)
            del ini["stats"]
        net.start_all()
        for p in [net.client(r, "--tensor", "w:1000:f32", "--steps", "3")
                  for r in range(4)]:
            p.wait_ok()
        paths = [re.search(r"sumwire stats (\S+)", d.log())[1]
                 for d in net.daemons.values()]
        check(len(set(paths)) == 5, f"counters collide: {paths}")
        for name in list(net.daemons):
            net.stop(name)
        os.rmdir(folder)


if __name__ == "__main__":
    rig.main(dict(globals()))
