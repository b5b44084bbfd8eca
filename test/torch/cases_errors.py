# cases_errors.py - the text of errors, and what continues; by torch_backend.py
# SPDX-License-Identifier: BSD-3-Clause
import copy
import datetime
import gc
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock
import warnings
import weakref

import torch
import torch.distributed as dist

from cases_backend import start
from sumwire import SumwireError, collectives, library, locks
from sumwire.distributed import attachment
from torch_rig import check, raises, run_cases

SOON_S = 60  # for events that take milliseconds


def attached():
    return attachment._attachment


def check_sum():
    x = torch.ones(1000)
    dist.all_reduce(x)
    check(bool((x == dist.get_world_size()).all()), x)


def caught(call, *texts):
    """Return the error that the call raises, as a program of torch's catches
    it."""
    try:
        call()
    except dist.DistBackendError as e:
        check(isinstance(e, SumwireError), type(e))
        for text in texts:
            check(text in str(e), f"'{e}' lacks '{text}'")
        return e
    raise AssertionError("no DistBackendError was raised")


def case_timeouts_are_named():
    """All members get it with the code and the words of other backends:
    programs, and PyTorch's own tests, search for " timeout "."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    dist.barrier(group)
    if dist.get_rank():
        time.sleep(4)
    error = caught(lambda: dist.barrier(group), "timed out",
                   " timeout ", "missing: rank")
    check((error.name, error.code) == ("SW_ETIMEDOUT", library.ETIMEDOUT),
          f"{error.name} {error.code}")
    for again in pickle.loads(pickle.dumps(error)), copy.copy(error):
        check(type(again) is type(error) and str(again) == str(error) and
              again.code == error.code, repr(again))
    dist.barrier()
    check_sum()


def case_flight_recorder():
    """PyTorch's analyser names the rank that called too late, from files that
    all ranks write when the group's timeout ends a collective."""
    me, folder = dist.get_rank(), common_folder()
    os.environ["TORCH_FR_DUMP_TEMP_FILE"] = os.path.join(folder, "rank_")
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    for _ in range(3):
        dist.all_reduce(torch.ones(5), group=group)
    dist.all_gather([torch.ones(2, 3)] * dist.get_world_size(), torch.ones(2, 3), group=group)
    if me == 1:
        time.sleep(4)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        caught(lambda: dist.all_reduce(torch.ones(7), group=group), "timed out")
    path = os.path.join(folder, f"rank_{me}")
    check(any(path in str(w.message) for w in said), f"{[str(w.message) for w in said]}")
    dist.barrier()
    with open(path, "rb") as f:
        dump = pickle.load(f)
    entries = [e for e in dump["entries"] if e["process_group"][0] == group.group_name]
    last, states = entries[-1], [e["state"] for e in entries]
    check(states == ["completed"] * 4 + ["scheduled" if me else "started"], states)
    check(last["input_sizes"] == [[7]] and last["input_dtypes"] == ["Float"] and
          last["timeout_ms"] == 1000 and
          "case_flight_recorder" in [f["name"] for f in last["frames"]], last)
    if me == 0:
        check_analysis(folder, "Culprit rank 1")
    dist.barrier()


def check_analysis(folder, text):
    """Check the analyser's output for the files of all ranks."""
    if not importlib.util.find_spec("torch.distributed.flight_recorder"):
        return
    p = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace",
                        folder, "-p", "rank_"], check=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=120)
    check(text in p.stdout, p.stdout)


def case_flight_recorder_elsewhere():
    """The analyser names a rank that computes and stops calling, or that has
    never called in the group, while its child leaves."""
    me = dist.get_rank()
    for n_calls in 2, 0:
        folder = common_folder()
        os.environ["TORCH_FR_DUMP_TEMP_FILE"] = os.path.join(folder, "rank_")
        group = dist.new_group(timeout=datetime.timedelta(seconds=1))
        other = dist.new_group()
        for _ in range(n_calls):
            dist.all_reduce(torch.ones(5), group=group)
        dist.all_reduce(torch.ones(5), group=other)
        if me:
            child = os.fork()
            if not child:
                sys.exit()
            os.waitpid(child, 0)
        else:
            caught(lambda: dist.all_reduce(torch.ones(7), group=group), "timed out")
        until = time.monotonic() + SOON_S
        while len(os.listdir(folder)) < dist.get_world_size() and time.monotonic() < until:
            pass
        if me == 0:
            check_analysis(folder, "missing ranks: {1}")
        dist.all_reduce(torch.ones(5), group=other)


def common_folder():
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    return folder[0]


def case_profiler():
    """The profiler's trace has our collectives by name, with their duration."""
    groups = [dist.new_group([r]) for r in range(dist.get_world_size())]
    with torch.profiler.profile() as seen:
        for _ in range(2):
            dist.all_reduce(torch.ones(5))
        dist.all_reduce(torch.ones(5), group=groups[dist.get_rank()])  # without an agent
        dist.barrier()
    counts = {e.key: e.count for e in seen.key_averages() if e.key.startswith("sumwire:")}
    check(counts == {"sumwire:all_reduce": 3, "sumwire:barrier": 1}, counts)


def case_errors_are_torchs():
    """Errors of groups, of waits, and of the library's answers have torch's
    types."""
    group = dist.new_group()
    dist.barrier(group)
    dist.barrier()  # an abort may fail a barrier that others still wait for
    ours = group._get_backend(torch.device("cpu"))
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        error = caught(lambda: dist.all_reduce(
            torch.ones(1), group=group, async_op=True).wait(
                datetime.timedelta(milliseconds=50)), "timed out")
        check(error.code == library.ETIMEDOUT, error.code)
        ours.abort()
        store.set("aborted", "")
    else:
        store.wait(["aborted"])
        error = caught(lambda: dist.all_reduce(torch.ones(1), group=group),
                       "rank 0 aborted group")
        check(error.name == "SW_EABORTED", error.name)
    error = caught(lambda: ours.calls.group("", [0]), "the name of a group")
    check(error.code == library.EINVAL, error.code)
    dist.barrier()


def case_barrier_blocks_nobody():
    """A barrier waits for earlier calls without blocking the thread that
    reports ends, which continues with other groups."""
    group, other = dist.new_group(), dist.new_group()
    for each in group, other:
        dist.barrier(each)
    calls = attached().calls
    earlier = collectives.Call(None, "an earlier one", float("inf"),
                               lambda error: None, None)
    with unittest.mock.patch.object(calls, "open_of", lambda _: [earlier]):
        barrier = dist.barrier(group, async_op=True)
    future = barrier.get_future()
    told = threading.Event()
    for _ in range(2):  # calls after the barrier
        dist.all_reduce(torch.ones(1), group=other,
                        async_op=True).get_future().then(lambda _: told.set())
        check(told.wait(SOON_S), "ends of another group are not told")
        told.clear()
    check(not future.done() and not barrier.is_completed(),
          "it has not waited for the earlier call")
    earlier.end(None)
    barrier.wait()
    future.wait()
    check_sum()


def case_interrupted_start():
    """Ctrl-C arrives after the library has begun a collective, before Python
    knows: the tensor stays alive, and the end is seen."""
    group = dist.new_group()
    dist.barrier(group)
    calls = attached().calls
    x = torch.ones(1 << 20)
    kept = weakref.ref(x.untyped_storage()), weakref.ref(x)
    coll = calls.lib.sw_coll

    def interrupted(*how):
        check(not coll(*how), "it has not begun")
        raise KeyboardInterrupt

    with unittest.mock.patch.object(calls.lib, "sw_coll", interrupted), \
            raises(KeyboardInterrupt):
        dist.all_reduce(x, group=group)
    del x
    gc.collect()
    check(kept[1]() is not None, "the library reads memory that is gone")
    dist.barrier(group)
    end = time.monotonic() + SOON_S
    while (calls.open or calls.starting) and time.monotonic() < end:
        calls.look()
    check(not calls.open and not calls.starting, "it has not ended")
    gc.collect()
    check(kept[1]() is None, "its tensor is kept for ever")
    with unittest.mock.patch.object(calls.lib, "sw_coll", interrupted_early), \
            raises(KeyboardInterrupt):
        dist.all_reduce(torch.ones(1), group=group, async_op=True)
    check(not calls.open and not calls.starting, "nothing had begun")
    check_sum()


def interrupted_early(*_):
    raise KeyboardInterrupt


def held_by(lock, is_held, may_go):
    with lock:
        is_held.set()
        may_go.wait()


def all_of_ours():
    """Return the locks of the package's objects and modules."""
    kind = type(threading.Lock())
    found = set()
    for each in gc.get_objects():
        if type(each).__module__.startswith("sumwire."):
            found |= {v for v in getattr(each, "__dict__", {}).values()
                      if isinstance(v, kind)}
            found |= {v for v in (getattr(each, s, None) for s in getattr(
                type(each), "__slots__", ())) if isinstance(v, kind)}
    for name, module in list(sys.modules.items()):
        if name.startswith("sumwire"):
            found |= {v for v in vars(module).values() if isinstance(v, kind)}
    return found


def case_forked_while_locked():
    """Other threads hold every lock: a child ends with an error at once."""
    for name in "allocate_tensor", "all_reduce", "push":
        is_held, may_go, threads = [], threading.Event(), []
        for lock in all_of_ours():
            is_held.append(threading.Event())
            threads.append(threading.Thread(
                target=held_by, args=(lock, is_held[-1], may_go), daemon=True))
            threads[-1].start()
        check(len(threads) >= 6, f"{len(threads)} locks")
        for each in is_held:
            check(each.wait(SOON_S), "a lock is held by others")
        pid = os.fork()
        if not pid:
            signal.alarm(SOON_S)
            in_child(name)
            os._exit(3)
        _, status = os.waitpid(pid, 0)
        may_go.set()
        for each in threads:
            each.join()
        code = os.waitstatus_to_exitcode(status)
        check(code == 3, f"{name}: the child ended with {code}")
    check_sum()


def in_child(name):
    """Make mistakes that a child of a DataLoader may make."""
    ours = dist.group.WORLD._get_backend(torch.device("cpu"))
    if name == "allocate_tensor":
        ours.allocate_tensor(100, dtype=torch.float32,
                             device=torch.device("cpu"))
        # Also in a new attachment's memory, which has another lock.
        check(attached() is None, "it is a member")
    elif name == "all_reduce":
        with raises(SumwireError, "forked"):
            dist.all_reduce(torch.ones(1))
    else:
        with raises(SumwireError, "forked"):
            ours.calls.client.check()
    for lock in locks.all_locks():
        check(lock.acquire(timeout=SOON_S), "a lock stays locked")
        lock.release()


def case_ends_are_told():
    """A close that takes too long reports it, and stops nothing."""
    group = dist.new_group()
    dist.barrier(group)
    calls = attached().calls
    close = calls.lib.sw_group_close

    def late(pointer):
        close(pointer)
        return library.ETIMEDOUT

    with unittest.mock.patch.object(calls.lib, "sw_group_close", late), \
            warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dist.destroy_process_group(group)
    check([w for w in said if "SW_ETIMEDOUT" in str(w.message)],
          f"warnings: {[str(w.message) for w in said]}")
    check_sum()


def case_group_that_cannot_have_a_timeout():
    """The group is closed, so its name is free."""
    calls = attached().calls
    ranks = [calls.client.rank]
    with unittest.mock.patch.object(calls.lib, "sw_group_set_timeout",
                                    lambda *_: library.ENOMEM), \
            raises(SumwireError, "SW_ENOMEM"):
        calls.group("mine", ranks, 3)
    calls.close_group(calls.group("mine", ranks, 3))


if __name__ == "__main__":
    start()
    run_cases(globals())
