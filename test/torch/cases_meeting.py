# cases_meeting.py - groups that form, or fail to; by torch_meeting.py
# SPDX-License-Identifier: BSD-3-Clause
"""The default group is gloo's: each case decides which ranks sumwire's groups
have, and in which order they are created."""
import datetime
import os
import socket
import sys
import threading
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist

import sumwire.torch  # noqa: F401
from sumwire import SumwireError
from sumwire.distributed import agents, gloo, meeting, version
from torch_rig import check, raises, run_cases

LIMIT_S = 300  # timeout of a group; errors must reach all ranks sooner
SOON_S = 90  # on a busy machine
REQUESTS = 24  # store requests of a rank for its first group, except waits
STORE_RANKS = 64


def new_group(ranks, limit_s=LIMIT_S, backend="sumwire"):
    return dist.new_group(ranks, backend=backend,
                          timeout=datetime.timedelta(seconds=limit_s))


def start(backend="gloo", store=None):
    path = os.environ["TEST_STORE"]
    dist.init_process_group(
        backend, rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=datetime.timedelta(
            seconds=int(os.environ.get("TEST_LIMIT_S", LIMIT_S))),
        **({"store": store} if store else {"init_method": f"file://{path}"}))


def adds(group, n):
    x = torch.ones(1000)
    dist.all_reduce(x, group=group)
    check(bool((x == n).all()), x)


class soon:
    """A context that must raise a SumwireError with these texts, long before
    the group's limit."""

    def __init__(self, *texts):
        self.inner = raises(SumwireError, *texts)

    def __enter__(self):
        self.began = time.monotonic()

    def __exit__(self, *error):
        took = time.monotonic() - self.began
        check(took < SOON_S, f"it took {took:.1f} s")
        return self.inner.__exit__(*error)


def case_later_rank():
    """Two ranks have a job, the third has none: all ranks get an error."""
    me = dist.get_rank()
    first = new_group([0, 1])
    with soon("ranks 0-1 to job torch-", "rank 2 to none",
              "create a group of all ranks first"):
        new_group([0, 1, 2])
    if me < 2:
        adds(first, 2)
    dist.barrier()


def case_one_job():
    """First no rank has a job, then all have the same one."""
    whole = new_group([0, 1, 2])
    part = new_group([2, 0])
    adds(whole, 3)
    if dist.get_rank() != 1:
        adds(part, 2)
    dist.destroy_process_group(whole)
    if dist.get_rank() != 1:
        dist.destroy_process_group(part)
    dist.barrier()
    again = new_group([0, 1, 2])
    adds(again, 3)
    dist.destroy_process_group(again)


def case_two_jobs():
    """Ranks are in two jobs, at the same places in them and at different ones."""
    me = dist.get_rank()
    mine = [new_group([0, 1]), new_group([2, 3])][me // 2]
    for ranks in ([0, 3], [0, 2]):
        if me in ranks:
            with soon("rank 0 to job torch-", f", rank {ranks[1]} to job"):
                new_group(ranks)
        else:
            new_group(ranks)
    adds(mine, 2)
    dist.barrier()


def case_hands():
    """One rank names an agent, the other starts its own."""
    if dist.get_rank():
        os.environ["SUMWIRE_AGENT"] = "/nowhere/agent.sock"
    with soon("SUMWIRE_AGENT is set at rank 1, but not at rank 0"):
        new_group([0, 1])
    dist.barrier()


def case_other_agents():
    """Each rank names the agent of another job."""
    with soon("rank 0 to job", "rank 1 to job", " of epoch "):
        new_group([0, 1])
    dist.barrier()


def case_absent():
    """All others name an absent rank at the group's limit."""
    me, n = dist.get_rank(), dist.get_world_size()
    limit_s = 3
    for absent in (0, 1, n - 1):
        ranks = list(range(n))
        dist.barrier()  # processes that start late are not absent
        if me == absent:
            time.sleep(2 * limit_s)
            dist.barrier()
            # Count the group as torch does.
            dist.distributed_c10d._world.group_count += 1
            continue
        began = time.monotonic()
        with raises(SumwireError, f"waiting for rank {absent} to join",
                    f"({n - 1} of {n} ranks are here)", "timed out"):
            new_group(ranks, limit_s)
        took = time.monotonic() - began
        check(limit_s <= took < limit_s + SOON_S, f"it took {took} s")
        dist.barrier()


def case_gloo_fails():
    """One rank cannot create gloo's half: all fail at once."""
    me = dist.get_rank()
    if me == 1:
        os.environ["GLOO_SOCKET_IFNAME"] = "nothing0"
    with soon("nothing0"):
        new_group([0, 1, 2])
    dist.barrier()


def case_port_taken():
    """Another program takes the agent's port after the check."""
    taken, drawn = [], []
    free_port = agents.free_port

    def late(ip, n, span):
        port = free_port(ip, n, span)
        drawn.append(port)
        if len(drawn) < 3:
            taken.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken[-1].bind((ip, port))
        return port
    agents.free_port = late
    adds(new_group([0, 1]), 2)
    agents.free_port = free_port
    check(len(drawn) == (3 if dist.get_rank() == 0 else 0), drawn)
    for each in taken:
        each.close()


# --- requests to the store ---

class Counting(dist.Store):
    """A store that counts its requests by kind."""

    def __init__(self, store):
        super().__init__()
        self.store, self.counts = store, {}

    def n(self):
        """Return the number of requests except waits."""
        return sum(self.counts.values()) - self.counts.get("check", 0)


def counted(name):
    def method(self, *arguments):
        self.counts[name] = self.counts.get(name, 0) + 1
        return getattr(self.store, name)(*arguments)
    return method


for _name in ("set", "get", "add", "check", "wait", "compare_set", "multi_get",
              "multi_set", "delete_key", "append"):
    setattr(Counting, _name, counted(_name))
Counting.has_extended_api = lambda self: self.store.has_extended_api()


def meet(store, me, n):
    """Make two exchanges, as a group does."""
    opts = SimpleNamespace(
        group_rank=me, group_size=n, group_id="g", store=store,
        timeout=datetime.timedelta(seconds=LIMIT_S), global_ranks_in_group=[])
    with meeting.Meeting(opts) as m:
        check(m.exchange(lambda: me) == list(range(n)), "values")
        check(m.exchange(lambda: me, sum) == n * (n - 1) // 2, "sum")


def requests(n, shared):
    """Run each of n ranks as a thread; return its requests."""
    stores = [Counting(shared) for _ in range(n)]
    threads = [threading.Thread(target=meet, args=(s, r, n))
               for r, s in enumerate(stores)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return stores


def case_counts():
    """The number of a rank's requests is independent of the number of ranks and
    of earlier use of the store."""
    shared = dist.HashStore()
    for n in 2, 8, STORE_RANKS:
        found = [s.n() for s in requests(n, shared)]
        check(max(found) <= REQUESTS // 2, found)


def case_group_counts():
    """Count for the first group and for later ones; gloo's half makes its
    requests at its first use."""
    n = int(os.environ["WORLD_SIZE"])
    store = Counting(dist.TCPStore(
        "127.0.0.1", int(os.environ["TEST_PORT"]), n,
        os.environ["RANK"] == "0"))
    keep.append(store)
    start("sumwire", store)
    for _ in range(3):
        check(store.n() <= REQUESTS, store.counts)
        store.counts.clear()
        group = new_group(list(range(n)))
        adds(group, n)
    if version() >= gloo.LAZY_SINCE:
        store.counts.clear()
        parts = [torch.empty(3) for _ in range(n)]
        dist.gather(torch.ones(3), parts if dist.get_rank() == 0 else None, 0,
                    group=group)
        check(store.n() > 0, "gloo has been there before")


keep = []  # torch keeps only the C++ half of a store


def case_two_of_three():
    """Two ranks send and receive, with and without a source, while the third is
    busy."""
    me = dist.get_rank()
    x = torch.full((5,), float(me))
    if me == 0:
        dist.send(x + 7, 1)
        dist.send(x + 8, 1)
        dist.recv(x, 1)
        check(bool((x == 9).all()), x)
    elif me == 1:
        dist.recv(x, 0)
        check(bool((x == 7).all()), x)
        check(dist.recv(x) == 0 and bool((x == 8).all()), x)
        dist.send(x + 1, 0)
    adds(dist.group.WORLD, 3)
    parts = [torch.empty(2) for _ in range(3)]
    dist.gather(torch.full((2,), float(me)), parts if me == 2 else None, 2)
    check(me < 2 or [int(p[0]) for p in parts] == [0, 1, 2], parts)


def case_joined():
    """The rank uses the address on its route to the others, and so does gloo's
    half."""
    n = int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "sumwire", init_method=os.environ["TEST_INIT"], world_size=n,
        rank=int(os.environ["RANK"]),
        timeout=datetime.timedelta(seconds=LIMIT_S))
    adds(None, n)
    parts = [torch.empty(2) for _ in range(n)]
    dist.gather(torch.ones(2), parts if dist.get_rank() == 0 else None, 0)


if __name__ == "__main__":
    if not {"counts", "group_counts", "joined"} & set(sys.argv):
        start(os.environ.get("TEST_BACKEND", "gloo"))
    run_cases(globals())
