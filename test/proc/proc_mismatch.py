# proc_mismatch.py - one rank calls a tensor differently: that call fails everywhere
# SPDX-License-Identifier: BSD-3-Clause
import re

import rig
from rig import Net, check

STEPS = 5
TENSORS = ("--tensor", "w:300000:f32", "--tensor", "v:70001:i64")
ROOT = ("rank {} broadcasts from rank {}, rank {} from rank {}", 1, 0)
STEP = ("rank {} pushes step {}, rank {} pushes step {}", 7, 6)


def check_clients(clients, n_fails, pattern):
    """Check that all end well, that w failed n_fails times at each, and v
    never. Each failure has one sentence; two servers may detect it at once and
    name other pairs of ranks."""
    for c in clients:
        c.wait_ok()
        found = re.findall("mismatch (?:wait|declare): (.*)", c.out())
        fails = c.out().count("mismatch wait: tensor w: ")
        check(fails == n_fails, f"{c.name}: w failed {fails} times: {found}")
        check(c.out().count(" exact") == STEPS, f"{c.name}: v is not exact")
        check(len(set(found)) == 1 and re.fullmatch(pattern, found[0]),
              f"{c.name} says {set(found)}, not '{pattern}'")


def odd_one(text, *both, odd=1, others="[02]"):
    """Return the pattern for either order of the two ranks: @text with rank and
    call, of the odd rank and of one of the others."""
    first, second = ((odd, both[0]), (others, both[1]))
    return "|".join(
        "tensor w: " + text.format(*a, *b) for a, b in (
            (first, second), (second, first)))


def run_mismatch(how, pattern, n_fails=STEPS - 1, first=0, local=None, **keys):
    """Rank 1 calls w differently: in step 1, the first broadcast, or (step) in
    all. Run two jobs on the same daemons: the first leaves no state behind."""
    with Net(agents=3, servers=2, local=local, **keys) as net:
        net.start_all()
        places = [(w, i) for w in range(3)
                  for i in range(local[w] if local else 1)]
        for job in range(2):
            args = (*TENSORS, "--copy", "--steps", str(STEPS), "--first-step",
                    str(first), "--mismatch")
            clients = [
                net.client(w, *args, how if r == 1 else "none",
                           *(("--local-rank", str(i)) if local else ()),
                           name=f"j{job}r{r}")
                for r, (w, i) in enumerate(places)]
            check_clients(clients, n_fails, pattern)
        for server in net.servers if not keys.get("colocated") else ():
            net.empty_stats(server)


def test_one_sums_and_one_broadcasts():
    run_mismatch("sum", odd_one("rank {} takes part in {}, rank {} in {}",
                                "a sum", "a broadcast"))


def test_another_root():
    run_mismatch("root", odd_one(*ROOT))


def test_another_step():
    run_mismatch("step", odd_one(*STEP), n_fails=STEPS, first=6)


def test_lanes():
    run_mismatch("root", odd_one(*ROOT), lcores=2, lanes=(2, 1, 2))


def test_colocated():
    """Contributions are lent to the sums."""
    run_mismatch("step", odd_one(*STEP), n_fails=STEPS, first=6, colocated=True)


def test_local_ranks():
    """Ranks 0 and 1 share an agent, which detects it."""
    run_mismatch("root", odd_one(*ROOT, others="0"), local=(2, 1, 1))


def test_local_ranks_declare_another_shape():
    """The agent detects it, or the server, which knows a node by its first
    rank."""
    with Net(local=(2, 1)) as net:
        net.start_all()
        more = ("--tensor", "v:70001:i64", "--mismatch", "none", "--steps",
                str(STEPS))
        clients = [
            net.client(w, "--tensor", f"w:{n}:f32", *more, "--local-rank",
                       str(i), name=f"c{w}{i}")
            for w, i, n in ((0, 0, 100), (0, 1, 200), (1, 0, 100))]
        check_clients(clients, STEPS, odd_one(
            "rank {} declares {} x f32, priority 0; rank {} declared {} x f32, "
            "priority 0", 200, 100, odd="[01]"))


if __name__ == "__main__":
    rig.main(dict(globals()))
