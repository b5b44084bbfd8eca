# proc_lost.py - a rank or an agent dies: groups without it continue
# SPDX-License-Identifier: BSD-3-Clause
import re

import rig
from rig import Net, check, program

NAMES = ["coll", "sum", "later"]


def start(net, *options):
    net.start_all()
    return [net.run(f"lost{i}.{j}", program("test/proc/proc_lost"), "--agent",
                    net.socket(f"agent{i}"), *options)
            for i, m in enumerate(net.local) for j in range(m)]


def check_living(procs, sentence):
    """Check that everything that needs the dead rank ends at all others with
    one sentence, and that the group of the others continues."""
    said = set()
    for p in procs:
        p.wait_ok()
        got = re.findall(r"^ended (\w+) (\w+) (.*)$", p.out(), re.M)
        check([e[0] for e in got] == NAMES, p.out())
        check(all(e[1] == "SW_EPEER" for e in got), p.out())
        check("living goes on" in p.out(), p.out())
        said |= {e[2] for e in got}
    check(len(said) == 1 and re.fullmatch(sentence, said.pop()),
          f"not one \"{sentence}\": {said}")


def run(local, **keys):
    with Net(agents=len(local), local=local, **keys) as net:
        net.local = local
        procs = start(net)
        dead = []
        for p in procs:
            p.await_out(r"dies|ended later")
            if "dies" in p.out():
                dead.append(p)
                p.wait(rig.RUN_S)
        check(len(dead) == 1, "one dies")
        node = len(local) - 1
        which = f", local rank {local[-1] - 1}" if local[-1] > 1 else ""
        check_living([p for p in procs if p not in dead],
                     rf"rank {sum(local) - 1} \(node agent{node}\){which}: "
                     r"training process \d+: .*")


def test_a_member():
    run((1, 1, 1))


def test_a_member_with_two_servers():
    run((1, 1, 2, 1), servers=2)


def test_a_local_rank():
    run((1, 2))


def test_a_local_rank_of_nodes_that_serve():
    run((2, 2), servers=0, colocated=True)


def test_a_local_rank_with_lanes():
    run((1, 2), lanes=(2, 2), servers=2)


def test_an_agent():
    """No process reports why. The error names ranks, not members."""
    local = (2, 1, 1)
    with Net(agents=3, local=local, job={"dead_after": "2s"}) as net:
        net.local = local
        procs = start(net, "--stay")
        procs[3].await_out("stays")
        net.kill("agent2")
        check_living(procs[:3], r"rank 3 \(node agent2\) silent for 2 s")
        procs[3].kill()
        net.start("agent2")  # it removes the killed agent's files


if __name__ == "__main__":
    rig.main(dict(globals()))
