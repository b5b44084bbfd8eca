# cases_ends.py - ends of groups and ranks of the backend; by torch_ends.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

from sumwire import SumwireError
from cases_backend import start
from own_agent import agent_of_rank, agent_pid
from sumwire.distributed import agents
from torch_rig import check, raises, run_cases

LIMIT_S = 3
SOON_S = 90  # until a death is known on a busy machine
FORK_S = 120  # until a child ends


def child_code(run):
    """Return the exit status of a forked child that runs this."""
    pid = os.fork()
    if not pid:
        run()
        sys.exit(3)
    end = time.monotonic() + FORK_S
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "not at all"


def in_child():
    """Check that the child is no member."""
    with raises(SumwireError, "forked"):
        dist.all_reduce(torch.ones(1))


def case_forked():
    for run in (lambda: None, in_child, dist.destroy_process_group):
        code = child_code(run)
        check(code == 3, f"the child ended with {code}")
        check_sum()


def check_sum():
    x = torch.ones(1000)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def work_with_future():
    work = dist.all_reduce(torch.ones(10), async_op=True)
    work.get_future()
    return work


def case_forked_while_watched():
    """Works with futures have a thread that a child lacks; fork with open
    works."""
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        works = [work_with_future()]
        code = child_code(lambda: None)
        store.set("forked 0", "")
        store.wait(["forked 1"])
        works.append(work_with_future())
    else:
        store.wait(["forked 0"])
        works = [work_with_future(), work_with_future()]
        code = child_code(lambda: None)
        store.set("forked 1", "")
    for w in works:
        w.wait()
    check(code == 3, f"the child ended with {code}")
    check_sum()


def case_closed_by_a_callback():
    """A callback destroys all groups after it has waited for a future of its
    own."""
    def end(future):
        work_with_future().get_future().wait()
        dist.destroy_process_group()
        return future.value()
    work = work_with_future()
    work.get_future().then(end).wait()
    check(not dist.is_initialized(), "it is closed")
    os.environ["TEST_STORE"] += ".again"
    start()
    check_sum()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        return torch.tensor(float(i * i))


def case_loaders():
    for batch in torch.utils.data.DataLoader(Squares(), num_workers=2,
                                             batch_size=5):
        check_sum()
        check(batch.shape == (5,), batch)


def case_many_groups():
    """Create more groups than may be open at once."""
    for _ in range(300):
        group = dist.new_group()
        x = torch.ones(10)
        dist.all_reduce(x, group=group)
        check(bool((x == dist.get_world_size()).all()), x)
        dist.destroy_process_group(group)


def case_closed():
    """A rank gets an error when it waits for one that has ended the group."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    if dist.get_rank():
        dist.destroy_process_group(group)
    else:
        with raises(SumwireError, "rank 1", "closed"):
            dist.all_reduce(torch.ones(1), group=group)
    check_sum()


def case_limit():
    group = dist.new_group(timeout=datetime.timedelta(seconds=LIMIT_S))
    began = time.monotonic()
    if dist.get_rank() == 0:
        with raises(SumwireError, "all_reduce", "rank 1", str(LIMIT_S)):
            dist.all_reduce(torch.ones(1), group=group)
        took = time.monotonic() - began
        check(took >= LIMIT_S, f"it took {took} s")
    dist.barrier()
    check_sum()


def case_left():
    """One rank ends its part early; the others have a group of their own."""
    rest = dist.new_group(list(range(1, dist.get_world_size())))
    dist.barrier()
    for _ in range(100 if dist.get_rank() else 0):
        x = torch.ones(1000)
        dist.all_reduce(x, group=rest)
        check(bool((x == dist.get_world_size() - 1).all()), x)
        time.sleep(0.02)
    if dist.get_rank():
        dist.barrier(group=rest)
    dist.destroy_process_group()


# --- cases in which one rank dies ---

def check_rest(group, n, seed):
    """Check the exact sum over ranks 0 to n - 1, waited for in three ways, and
    collectives of other kinds."""
    me = dist.get_rank()
    tensors = [value(me, seed + i, size)
               for i, size in enumerate((1, 5000, 700001))]
    works = [dist.all_reduce(x, group=group, async_op=True) for x in tensors]
    works[1].get_future().wait()
    for w in works[2], works[0]:
        w.wait()
    part = torch.empty(3000)
    dist.reduce_scatter_tensor(part, value(me, seed, 3000 * n), group=group)
    dist.barrier(group=group)
    tensors.append(torch.empty(3000 * n))
    dist.all_gather_into_tensor(tensors[-1], part, group=group)
    for i, x in enumerate(tensors):
        want = sum(value(r, (seed + i) if i < 3 else seed, len(x))
                   for r in range(n))
        check(torch.equal(x, want), f"{len(x)} elements, seed {seed}")


def value(rank, seed, size):
    """Small integers: sums of f32 are exact."""
    return ((torch.arange(size) + seed) * (rank + 3) % 251).float()


def without_the_last(end, *texts):
    """End the last rank while all others wait for it; their errors must have
    these texts. Return the group of the others, and its size."""
    me, n = dist.get_rank(), dist.get_world_size() - 1
    store = dist.distributed_c10d._get_default_store()
    rest = dist.new_group(list(range(n)))
    dist.all_reduce(torch.ones(1))
    if me == n:
        store.wait([f"waits {r}" for r in range(n)])
        time.sleep(0.5)
        end()
    check_rest(rest, n, 0)
    work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
    store.set(f"waits {me}", "")
    began = time.monotonic()
    with raises(SumwireError, *texts) as said:
        work.wait()
    took = time.monotonic() - began
    os.write(1, f"after {took:.1f} s: {said.text}\n".encode())
    check(took < SOON_S, f"it took {took} s")
    return rest, n


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def case_the_last_is_killed():
    """The others continue in groups without it."""
    rest, n = without_the_last(kill, f"rank {dist.get_world_size() - 1} (")
    for seed in range(1, 10):
        check_rest(rest, n, seed)
    with raises(SumwireError, f"rank {n} ("):
        dist.all_reduce(torch.ones(1))
    later = dist.new_group(list(range(n)))
    check_rest(later, n, 10)
    dist.destroy_process_group(later)
    check_rest(rest, n, 11)
    dist.destroy_process_group()


def kill_with_agent():
    """Its folder stays until another agent starts."""
    os.kill(agent_pid(agent_of_rank()[0]), signal.SIGKILL)
    kill()


def case_the_last_machine_dies():
    """The dead machine's agent summed a part for all groups, so every group
    ends."""
    rest, _ = without_the_last(kill_with_agent, " silent for ")
    with raises(SumwireError, " silent for "):
        dist.all_reduce(torch.ones(1 << 20), group=rest)
    dist.destroy_process_group()



def goes_on():
    for step in range(1 << 30):
        dist.all_reduce(torch.ones(1000))
        print("goes on", flush=True)
        yield step


def leave_by(end):
    for step in goes_on():
        if step == 5 and dist.get_rank() == 1:
            end()


def case_exits():
    leave_by(lambda: sys.exit(0))


def case_raises():
    leave_by(lambda: 1 // 0)


def case_is_killed():
    leave_by(kill)


def case_is_killed_in_ddp():
    """torch's C++ half waits for DDP's buckets."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(99, 9))
    for step in range(1 << 30):
        model(torch.ones(5, 99)).mean().backward()
        if step == 5 and dist.get_rank() == 1:
            kill()


def case_until_the_end():
    leave_by(lambda: None)


def case_restarted():
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    dist.barrier()
    job = agent_of_rank()[1].partition("[job]\nname = ")[2].split()[0]
    os.write(1, f"attempt {attempt} in {job}\n".encode())
    dist.barrier()
    if attempt == "0" and dist.get_rank() == 1:
        sys.exit(5)
    check_sum()


if __name__ == "__main__":
    agents.AGENT = agents.AGENT.replace(
        "dead_after = {dead_s}s", "dead_after = " + os.environ.get(
            "TEST_DEAD_AFTER", "30s"))
    start()
    run_cases(globals())
