# proc_ends.py - ends of groups: all ranks get one sentence, other groups continue
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import time

import rig
from rig import Net, check, program

LOOKS = 10
# Memory that a daemon allocates ahead and partly uses (SW_RESERVE_STOCK).
STOCK = 4 << 20


def run(what, n=2, k=0, colocated=True, local=None, **keys):
    """Return the output of each process, by rank."""
    with Net(agents=n, servers=k, colocated=colocated, local=local,
             **keys) as net:
        net.start_all()
        procs = [net.run(f"ends{i}.{j}", program("test/proc/proc_ends"),
                         "--agent", net.socket(f"agent{i}"), "--do", what)
                 for i, m in enumerate(local or (1,) * n) for j in range(m)]
        for p in procs:
            if what == "die":
                p.wait(rig.RUN_S)
            else:
                p.wait_ok()
                check("other goes on" in p.out(), p.out())
        # Daemons assign local ranks in the order of attachment.
        return sorted((p.out() for p in procs), key=lambda out: int(
            re.search(r"^rank (\d+)$", out, re.M)[1]))


def ends(out):
    return re.findall(r"^ended (\w+) (\w+) (.*)$", out, re.M)


def check_ends(outs, names, error, sentence):
    """Check that all calls end with this error and the same sentence, to which
    a rank may append its own call."""
    said = set()
    for out, expected in zip(outs, names):
        got = ends(out)
        check([e[0] for e in got] == expected, f"not {expected}: {out}")
        check(all(e[1] == error for e in got), f"not {error}: {out}")
        said |= {e[2].partition("; here: ")[0] for e in got}
    check(len(said) == 1 and re.fullmatch(sentence, said.pop()),
          f"not one \"{sentence}\": {outs}")


ALL = ["first", "second", "later"]
ABORTED = "rank {} aborted group 'dp': enough"
# Either event may come first.
CLOSED_OPEN = (r"group dp: rank (1 closed the group with work open|0 waits "
               r"for rank 1, which has closed the group)")


def test_abort():
    check_ends(run("abort"), [ALL, ["later"]], "SW_EABORTED",
               ABORTED.format(1))


def test_abort_of_three_with_a_server():
    check_ends(run("abort", n=3, k=1), [ALL, ALL, ["later"]], "SW_EABORTED",
               ABORTED.format(2))


def test_abort_with_work_open():
    check_ends(run("abort_own", n=3, k=1, colocated=False),
               [ALL, ["later"], ALL], "SW_EABORTED", ABORTED.format(2))


def test_abort_by_a_local_rank():
    check_ends(run("abort", local=(2, 2)), [ALL] * 3 + [["later"]],
               "SW_EABORTED", ABORTED.format(3))


def test_abort_where_frames_are_lost():
    check_ends(run("abort", k=1, colocated=False,
                   port={"fault_loss": "5%", "fault_dup": "5%",
                         "fault_reorder": "5%"}),
               [ALL, ["later"]], "SW_EABORTED", ABORTED.format(1))


def test_timeout():
    for local in (None, (2, 2)):
        outs = run("timeout", n=2, local=local)
        last = 3 if local else 1
        check_ends(outs, [ALL] * last + [["later"]], "SW_EEXPIRED",
                   r"rank 0 timed out in all_reduce 1 of group 'dp' "
                   r"\(group timeout 1 s\); "
                   f"missing: rank{'s 2, 3 of 4' if local else ' 1 of 2'}")


def test_timeout_of_several():
    """The other waiting rank may also be missing when the first one times out."""
    for k in (0, 2):
        check_ends(run("timeouts", n=3, k=k), [ALL] * 2 + [["later"]],
                   "SW_EEXPIRED", r"rank [01] timed out in all_reduce 1 of "
                   r"group 'dp' \(group timeout 1 s\); "
                   r"missing: rank(s [01],)? 2 of 3")


def test_mismatch():
    outs = run("mismatch")
    check_ends(outs, [ALL, ["first", "later"]], "SW_EMISMATCH",
               r"group dp: rank \d calls all_reduce with another "
               r"count or root than rank \d \(collective 1\)")
    for out, count in zip(outs, (5000, 4999)):
        own = f"; here: all_reduce of {count} x i32"
        # The sentence lacks it if rank 0's barrier stream was declared after
        # the end of the group.
        check(all(e[2].endswith(own) for e in ends(out)) or
              (count == 5000 and "; here" not in out), out)


def kinds(what, kind, **keys):
    """All ranks fail before the timeout, except ranks that only give."""
    outs = run(what, **keys)
    ranks = "[0-9]"
    sentence = (rf"group dp: rank {ranks} calls (all_reduce, rank {ranks} "
                rf"{kind}|{kind}, rank {ranks} all_reduce) \(collective 1\)")
    last = ends(outs[-1])
    if what == "kinds_giver" and last[0][1] == "SW_OK":
        check_ends(outs[:-1], [["first", "later"]] * (len(outs) - 1),
                   "SW_EMISMATCH", sentence)
    else:
        check_ends(outs, [["first", "later"]] * len(outs), "SW_EMISMATCH",
                   sentence)


def test_other_kinds():
    for n, k in (2, 0), (2, 1), (3, 2):
        kinds("kinds", "broadcast", n=n, k=k)


def test_other_kinds_of_parts():
    kinds("kinds_part", "all_gather", n=3, k=0)


def test_other_kinds_of_who_only_gives():
    for k in 0, 2:
        kinds("kinds_giver", "broadcast", n=3, k=k)


def test_other_kinds_of_local_ranks():
    kinds("kinds", "broadcast", n=2, local=(2, 2))
    kinds("kinds", "broadcast", n=1, k=1, colocated=False, local=(2,))


def test_other_order():
    for local in None, (2, 1):
        check_ends(run("swapped", n=2, local=local), [ALL] * (3 if local else 2),
                   "SW_EMISMATCH", r"group dp: rank "
                   r"\d calls \w+ as collective [12], rank \d as [12]|"
                   r"group dp: rank \d calls \w+, rank \d \w+ "
                   r"\(collective [12]\)")


def test_close_and_open_again():
    # The quota holds "other" and two windows of "dp"; twelve would need more.
    for out in run("reopen", k=1, colocated=False, quota="40MiB"):
        check("reopened" in out, out)


def held(procs):
    """Return the bytes and descriptors of all processes, by name; the last
    closed group is freed slightly later. File pages do not count, because other
    processes share them."""
    size = {}
    for _ in range(LOOKS):
        for p in procs:
            with open(f"/proc/{p.pid}/smaps_rollup", encoding="ascii") as f:
                pss = 1024 * sum(map(int, re.findall(
                    r"^Pss_(?:Anon|Shmem): +(\d+)", f.read(), re.M)))
            fds = len(os.listdir(f"/proc/{p.pid}/fd"))
            for name, n in ((p.name, pss), (p.name + ".fds", fds)):
                size[name] = min(n, size.get(name, n))
        time.sleep(0.05)
    return size


def again(limit_s, **keys):
    """Open more groups than keys have indices, one after another: memory must
    not grow."""
    with Net(**keys) as net:
        for ini in net.ini.values():  # opening a group waits for several threads in turn
            ini["lcore"] = {"spin": "20ms"}
        net.start_all()
        local = keys.get("local") or (1,) * net.n_agents
        procs = [net.run(f"ends{i}.{j}", program("test/proc/proc_ends"),
                         "--agent", net.socket(f"agent{i}"), "--do", "again")
                 for i, m in enumerate(local) for j in range(m)]
        sizes = []
        for when in "early", "late":
            for p in procs:
                p.await_text(rf"(?m)^{when}$", limit_s, p.out)
            sizes.append(held([*procs, *net.daemons.values()]))
            for p in procs:
                p.say("")
        for p in procs:
            p.wait_ok()
        for name, early in sizes[0].items():
            grown = sizes[1][name] - early
            few = (STOCK if name in net.daemons else 0) + (128 << 10)
            check(grown <= (0 if name.endswith("fds") else few),
                  f"{name}: {early}, and {grown} more later")


@rig.is_long
def test_open_again_and_again():
    for keys in rig.layouts({}, {"local": (2, 1)}):
        again(300, agents=2, servers=1, **keys)


def test_close_with_local_ranks():
    for out in run("reopen", local=(2, 1)):
        check("reopened" in out, out)


def test_more_groups_than_the_quota_holds():
    """The group that exceeds the quota ends at all ranks with one sentence."""
    for keys in ({"k": 1, "colocated": False, "quota": "40MiB"},
                 {"k": 2, "colocated": False, "quota": "40MiB",
                  "local": (2, 1)}):
        outs = run("fill", **keys)
        check_ends(outs, [["first", "later"]] * len(outs), "SW_EREFUSED",
                   r"stream g\d+/all_reduce: quota: the tensors need \d MiB, "
                   r"\d of 40 MiB are left")


def test_close_with_work_open():
    outs = run("close", n=2)
    check([e[:2] for e in ends(outs[1])] == [("first", "SW_ECLOSED")],
          outs[1])
    check_ends(outs[:1], [["first", "later"]], "SW_EABORTED", CLOSED_OPEN)


def test_close_before_others_are_through():
    check_ends(run("close_early", n=2)[:1], [["first", "later"]],
               "SW_EABORTED", r"group dp: rank 0 waits for rank "
               r"1, which has closed the group")


def test_close_without_a_call():
    for local in (None, (2, 1)):
        outs = run("close_unused", n=2, local=local)
        last = len(outs) - 1
        check_ends(outs[:last], [["first", "later"]] * last,
                   "SW_EABORTED", rf"group dp: rank \d waits for rank "
                   rf"{last}, which has closed the group")


def test_leave_without_closing():
    """A group ends for a rank that calls it again, although the leaver's agent
    stays."""
    for k in 0, 1:
        outs = run("leave", k=k, local=(2, 1))
        check_ends(outs[2:], [["first"]], "SW_EABORTED", r"group pair: "
                   r"rank 2 waits for rank 1, which has closed the group")


def test_a_member_dies():
    outs = run("die", n=3)[:2]
    check(all("SW_EPEER" in o and "rank 2 (node" in o for o in outs), outs)
    said = {e[2] for o in outs for e in ends(o)}
    check(len({re.sub(r"^.*?: rank 2", "rank 2", s) for s in said}) == 1, outs)


if __name__ == "__main__":
    rig.main(dict(globals()))
