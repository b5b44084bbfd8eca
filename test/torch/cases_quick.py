# cases_quick.py - small collectives in C, compared with methods.py; by torch_quick.py
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import gc
import os
import signal
import sys
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist

from cases_backend import sample, start
from cases_errors import attached, check_sum
from sumwire import SumwireError, distributed
from sumwire.distributed import flight, methods, quick, work as works
from sumwire.distributed.local import DTYPES
from torch_rig import check, raises, run_cases

SOON_S = 30
LATE_S = 1.5  # longer than one wait of quick.c
ME, N = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def ours(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))


class Only:
    """A context that counts the collectives that methods.py handles."""

    def __init__(self, *names):
        self.names, self.n = names or ("_allreduce", "_broadcast"), 0
        self.real = {name: getattr(methods.Methods, name) for name in self.names}

    def __enter__(self):
        for name, real in self.real.items():
            setattr(methods.Methods, name, self.counting(real))
        return self

    def counting(self, real):
        def method(*arguments, **more):
            self.n += 1
            return real(*arguments, **more)
        return method

    def __exit__(self, *_):
        for name, real in self.real.items():
            setattr(methods.Methods, name, real)


def is_quick(call):
    with Only() as asked:
        call()
    return asked.n == 0


def both(call, tensor):
    """Return the tensor after call(tensor) in C, and after the same call in
    methods.py."""
    fast, slow, group = tensor.clone(), tensor.clone(), ours()
    check(is_quick(lambda: call(fast)), f"{tensor.dtype} is not quick")
    kept = group.quick
    group.use(quick.Slow())
    check(not is_quick(lambda: call(slow)), "it is quick without a Quick")
    group.use(kept)
    return fast, slow


def case_fields():
    """quick.c finds the fields of options, and rejects a wrong sample."""
    reduces, broadcasts = quick.samples()
    check(None not in quick.fields(), f"fields: {quick.fields()}")
    for found, size in (reduces, broadcasts):
        for i in range(3):
            wrong = list(found)
            numbers = list(wrong[5][1])
            numbers[i] += 1
            wrong[5] = wrong[5][0], tuple(numbers)
            check(quick.find_fields(wrong, size) is None, f"{i} of {size} bytes")


def case_asked():
    """Without known offsets of fields, quick.c reads attributes of the options."""
    group = ours()
    kept, found = group.quick, quick.fields
    quick.fields = lambda: (None, None)
    try:
        group.use(quick.make(group, methods.OPERATIONS, methods.PAIRS))
    finally:
        quick.fields = found
    case_equal()
    group.use(kept)


def case_equal():
    """Every operation and type gives the result of methods.py, which opens the
    streams."""
    for call in dist.all_reduce, lambda x: dist.broadcast(x, 0):
        check(not is_quick(lambda call=call: call(torch.ones(1))), "a first call")
    for value, name in methods.OPERATIONS.items():
        for dtype in DTYPES:
            if name == "premul_sum" or (name, dtype) not in methods.PAIRS:
                continue
            op = dist.ReduceOp(dist.ReduceOp.RedOpType(value))
            fast, slow = both(lambda t, op=op: dist.all_reduce(t, op),
                              sample(dtype, (3, 7)))
            check(fast.equal(slow), f"{name} of {dtype}: {fast} {slow}")
    for dtype in *DTYPES, torch.complex64, torch.int16:
        for root in range(N):
            fast, slow = both(lambda t, root=root: dist.broadcast(t, root),
                              sample(dtype, (5,)))
            check(fast.equal(slow) and fast.equal(sample(
                dtype, (5,), rank=root)), f"broadcast of {dtype}")


class Sub(torch.Tensor):
    pass


def case_others():
    """quick.c leaves calls with more than a plain small tensor in memory to
    methods.py, with its results and errors."""
    group, opts = ours(), dist.AllreduceOptions()
    opts.asyncOp = False
    x = torch.ones(4)
    matrix = torch.ones(4, 4)
    for what, t in [("channels_last", torch.ones(2, 3, 4, 4).to(
            memory_format=torch.channels_last)),
                    ("neg", torch._neg_view(torch.ones(3))),
                    ("large", torch.ones((64 << 10) + 4, dtype=torch.uint8)),
                    ("empty", torch.ones(0)), ("class", x.as_subclass(Sub)),
                    ("parameter", torch.nn.Parameter(x.clone()).requires_grad_(
                        False))]:
        before = t.clone()
        check(not is_quick(lambda t=t: dist.all_reduce(t)), f"{what} is quick")
        check(t.equal(before * N), f"{what}: {t}")
    check(not is_quick(lambda: dist.all_reduce(x.clone(), async_op=True).wait()),
          "a call that does not wait is quick")
    check(not is_quick(lambda: group.allreduce([x.clone(), x.clone()], opts)
                       .wait()), "a list is quick")
    check(not is_quick(lambda: group.allreduce(x.clone()).wait()),
          "a call without options is quick")
    opts.timeout = datetime.timedelta(seconds=50)
    check(not is_quick(lambda: group.allreduce([x.clone()], opts).wait()),
          "a call with a timeout is quick")
    scaled = dist._make_nccl_premul_sum(2.)
    check(not is_quick(lambda: dist.all_reduce(x.clone(), scaled)), "a factor")
    freed = torch.ones(4)
    freed.untyped_storage().resize_(8)
    for t, op, text in [(matrix[:, 1], dist.ReduceOp.SUM, "contiguous"),
                        (x[:1].expand(4), dist.ReduceOp.SUM, "share memory"),
                        (freed, dist.ReduceOp.SUM, "freed"),
                        (x, dist.ReduceOp.BXOR, "no bxor of"),
                        (torch.ones(2, dtype=torch.int16), dist.ReduceOp.SUM,
                         "no sum of")]:
        with Only() as asked, raises(ValueError, text):
            dist.all_reduce(t, op)
        check(asked.n == 1, f"{text}: {asked.n}")
    for arguments in (None, None), ([3], opts), ([x], 3), (3, opts):
        check(group.quick.all_reduce(*arguments) is NotImplemented,
              f"{arguments}")
    with raises(TypeError):
        group.quick.all_reduce([x])
    check_sum()


def case_recorded():
    """The flight recorder has the same entries for both."""
    def last():
        return flight.dump()["entries"][-1]
    x, seen = torch.ones(2, 3), []
    group, real = ours(), ours().quick
    for one in real, quick.Slow():
        group.use(one)
        dist.all_reduce(x)
        seen.append(last())
    group.use(real)
    fast, slow = seen
    for each in seen:
        check(each["time_discovered_completed_ns"] >= each["time_created_ns"] >
              1e18, f"times: {each}")
        for name in list(each):
            if "_ns" in name or name == "duration_ms":
                del each[name]
    check(slow["op_id"] == fast["op_id"] + 1 and
          slow["record_id"] == fast["record_id"] + 1, f"{fast} {slow}")
    for each in seen:
        for name in "op_id", "record_id", "collective_seq_id":
            del each[name]
    check(fast["frames"][0]["name"] == "all_reduce" and
          fast["frames"][2]["name"] == "case_recorded", f"{fast['frames']}")
    check(fast == slow, f"{fast}\n{slow}")
    n = group._get_sequence_number_for_group()
    dist.all_reduce(x)
    check(group._get_sequence_number_for_group() == n + 1, "number of calls")


def case_ended():
    """When torch's C++ calls a group, the call returns a work."""
    group, opts, x = ours(), dist.AllreduceOptions(), torch.ones(2)
    opts.asyncOp = False
    group.ended = works.Ended
    group.use(group.quick)
    with Only() as asked:
        work = group.allreduce([x], opts)
        dist.all_reduce(x)
    del group.ended
    group.use(group.quick)
    check(asked.n == 0 and x.tolist() == [N * N] * 2, f"{asked.n} {x}")
    check(work.wait() and work.is_completed() and work.is_success() and
          work.exception() is None, "the end of a work")
    check(work.get_future().wait()[0] is x and work.result()[0] is x, "results")


def case_entered():
    """A program's call enters C directly until the group is closed. A class
    with methods of its own keeps them, and methods.py handles keyword
    arguments."""
    group = dist.new_group()
    mine, names, x = ours(group), set(quick.ENTRIES), torch.ones(2)
    kind = type(mine)

    class Other(kind):
        def allreduce(self, *arguments, **more):
            return super().allreduce(*arguments, **more)
    check(names <= vars(mine).keys(), f"{vars(mine).keys()}")
    mine.__class__ = Other
    mine.use(mine.quick)
    check(names & vars(mine).keys() == {"broadcast"}, f"{vars(mine).keys()}")
    mine.__class__ = kind
    mine.use(mine.quick)
    dist.all_reduce(x, group=group)
    check(not is_quick(lambda: mine.allreduce(
        [x], timeout=datetime.timedelta(seconds=50)).wait()), "a timeout")
    check(not is_quick(lambda: mine.broadcast(x, root=1).wait()), "a root")
    check(x.tolist() == [N * N] * 2, x)
    kept = mine.allreduce
    dist.barrier()
    dist.destroy_process_group(group)
    check(not names & vars(mine).keys(), "a closed group has entries")
    with raises(SumwireError, "closed"):
        kept([x], dist.AllreduceOptions()).wait()


def case_hooked():
    """C begins the buckets of DDP's hook, in memory that it knows, and waits for
    them. Their records and their late ends are those of methods.py."""
    model, group = torch.nn.Linear(128, 64), ours()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(None, distributed.shared_hook)

    def step():
        ddp.zero_grad()
        ddp(torch.full((1, 128), ME + 1.)).sum().backward()
        check((model.weight.grad == (N + 1) / 2).all(), model.weight.grad)
        last = flight.dump()["entries"][-1]
        del last["frames"][4:]  # the callers of step() differ
        return last
    for _ in range(3):  # DDP makes its buckets anew after the first step
        step()
    fast = []
    check(is_quick(lambda: fast.append(step())), "the hook is not quick")
    group.known.clear()
    check(not is_quick(step), "an unknown bucket is quick")
    group.known.clear()
    slow = step()
    check(len(group.known) == 1, f"{group.known}")
    for name in "frames", "input_sizes", "profiling_name", "state", "timeout_ms":
        check(fast[0][name] == slow[name], f"{name}: {fast[0]}\n{slow}")
    check(not is_quick(lambda: profiled(step)), "the profiler misses a bucket")
    adopted, adopt = [], group.calls.adopt
    group.calls.adopt = lambda call, code: (adopted.append(code), adopt(call, code))
    dist.barrier()
    if ME == 1:
        time.sleep(LATE_S)
    check(step()["state"] == "completed", "a late end")
    del group.calls.adopt
    check(len(adopted) == (0 if ME == 1 else 1), adopted)
    check(not group.calls.open and not group.calls.starting, "calls are left")
    for arguments in (), (1, 2, 3):
        for method in group.quick.begin, group.quick.wait:
            with raises(TypeError):
                method(*arguments)


def profiled(call):
    with torch.profiler.profile():
        call()


def case_late():
    """A wait that outlasts one wait of C continues in Python."""
    group, adopted = dist.new_group(), []
    dist.all_reduce(torch.ones(1), group=group)  # opens the group's stream
    calls, adopt = ours(group).calls, ours(group).calls.adopt
    calls.adopt = lambda call, code: (adopted.append(code), adopt(call, code))
    x = torch.ones(2)
    for i in range(2):
        dist.barrier()
        if ME == 1:
            time.sleep(LATE_S)
        dist.all_reduce(x, group=group)
    check(x.tolist() == [N * N] * 2, x)
    check(len(adopted) == (0 if ME == 1 else 2), adopted)
    check(not calls.open and not calls.starting, "calls are left")
    del calls.adopt
    dist.barrier()


def case_differing():
    """All ranks get the error of a mismatched call, and the group's other calls
    fail."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    for _ in range(2):
        with raises(SumwireError, "all_reduce"):
            dist.all_reduce(torch.ones(1 + ME), group=group)
    check(ours(group).error is not None, "the group's error")
    calls = ours(group).calls
    check(not calls.open and not calls.starting, "calls are left")
    check_sum()


def case_expired():
    """A group's timeout ends the call at a waiting rank."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=2))
    dist.all_reduce(torch.ones(1), group=group)
    if ME == 0:
        with raises(SumwireError, "timed out", "missing: rank"), \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    check_sum()


def case_aborted():
    """Another thread aborts or destroys a group in which this one waits."""
    for end in "abort", "shutdown":
        group = dist.new_group()
        dist.all_reduce(torch.ones(1), group=group)
        dist.barrier()
        if ME == 0:
            timer = threading.Timer(0.3, getattr(ours(group), end))
            timer.start()
            with raises(SumwireError, "abort" if end == "abort" else "clos"):
                dist.all_reduce(torch.ones(1), group=group)
            timer.join()
            with raises(SumwireError, "closed"):
                dist.all_reduce(torch.ones(1), group=group)
        dist.barrier()
    check_sum()


def case_threads():
    """Threads of one group and of several: each call is atomic, and a thread of
    torch also detects ends."""
    groups = [dist.new_group() for _ in range(3)]
    same, wrong = dist.new_group(), []
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()

    def work(group, seed):
        for i in range(300):
            x = torch.full((5,), float(seed + i + ME))
            dist.all_reduce(x, group=group)
            if x[0] != N * (seed + i) + N * (N - 1) / 2:
                wrong.append((seed, i, x))
    # All calls of a group are equal, so their order does not matter.
    def equal():
        for _ in range(300):
            x = torch.full((5,), 1.)
            dist.all_reduce(x, group=same)
            if x[0] != N:
                wrong.append(x)
    threads = [threading.Thread(target=work, args=(g, 10 * i))
               for i, g in enumerate(groups)]
    threads += [threading.Thread(target=equal) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not wrong, wrong[:3])
    calls = ours().calls
    check(not calls.starting, "calls are left")
    dist.barrier()


def case_seen_by_another():
    """Another thread that polls for ends may detect the end."""
    calls, is_over = ours().calls, threading.Event()

    def look():
        while not is_over.is_set():
            calls.look()
    thread = threading.Thread(target=look)
    thread.start()
    x = torch.ones(3)
    for _ in range(300):
        x.fill_(1)
        dist.all_reduce(x)
        check(x.tolist() == [N] * 3, x)
    is_over.set()
    thread.join()
    check(not calls.open and not calls.starting, "calls are left")


def case_interrupted():
    """Ctrl-C ends the wait; the tensor stays alive until the library has its
    sum."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    calls = ours(group).calls
    dist.barrier()
    if ME == 0:
        x = torch.ones(5)
        kept = weakref.ref(x)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        before = time.monotonic()
        with raises(KeyboardInterrupt):
            dist.all_reduce(x, group=group)
        check(time.monotonic() - before < SOON_S, "it took long")
        timer.join()
        del x
        gc.collect()
        check(kept() is not None, "the library writes memory that is gone")
        dist.barrier()
        end = time.monotonic() + SOON_S
        while (calls.open or calls.starting) and time.monotonic() < end:
            calls.look()
        check(not calls.open and not calls.starting, "it has not ended")
        gc.collect()
        check(kept() is None, "its tensor is kept for ever")
    else:
        dist.barrier()
        dist.all_reduce(torch.ones(5), group=group)
    x = torch.ones(2)
    check(is_quick(lambda: dist.all_reduce(x, group=group)), "it is not quick")
    check(x.tolist() == [N] * 2, x)
    check_sum()


def case_forked():
    """A child is no member, and neither is a child of a waiting thread."""
    group = dist.new_group()
    dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    waiting = threading.Thread(target=dist.all_reduce, args=(torch.ones(1),),
                               kwargs={"group": group})
    if ME == 0:
        waiting.start()
        time.sleep(0.2)
    pid = os.fork()
    if not pid:
        signal.alarm(SOON_S)
        for g in None, group:
            with raises(SumwireError, "forked"):
                dist.all_reduce(torch.ones(1), group=g)
        os._exit(3)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    check(code == 3, f"the child ended with {code}")
    dist.barrier()
    if ME == 0:
        waiting.join()
    else:
        dist.all_reduce(torch.ones(1), group=group)
    check_sum()


def case_without():
    """SUMWIRE_QUICK=0: methods.py handles every call, and reports why."""
    module, why = quick.load()
    check(module is None and "SUMWIRE_QUICK" in why, f"{module}, {why}")
    check(not is_quick(check_sum), "it is quick")


def case_killed():
    """The death of a rank ends the call at the others."""
    dist.all_reduce(torch.ones(1))
    print("ok killed", flush=True)
    if ME == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    with raises(SumwireError, "rank 1"):
        dist.all_reduce(torch.ones(1))
    os._exit(0)


def case_left_waiting():
    """A thread of the program still waits when the program ends."""
    dist.all_reduce(torch.ones(1))
    if ME == 0:
        threading.Thread(target=dist.all_reduce, args=(torch.ones(1),),
                         daemon=True).start()
        time.sleep(0.2)
    print("ok left_waiting", flush=True)
    sys.exit()


if __name__ == "__main__":
    start()
    check(attached() is not None, "attached")
    run_cases(globals())
