# torch_backend.py - compare init_process_group("sumwire") with gloo
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

import torch_rig
import torch_site
import rig
from backend_rig import Alone, Net, main
from proc_ps import named
from recorded import await_copies
from rig import check

CASES = ["sums", "averages", "operations", "premultiplied", "broadcasts",
         "gathers", "scatters", "by_gloo", "of_any", "asked", "objects",
         "dtensors", "asynchronous", "futures", "coalesced", "empty",
         "compiled_ones", "threads", "refused", "late", "differing", "given_up",
         "given_up_by_another", "aborted", "timeouts", "allocated", "hooked",
         "monitored", "split"]


def losses(ranks):
    """Return the losses by rank, of programs that ended well."""
    for p in ranks:
        p.wait_ok()
    return [[float(x) for x in re.findall(r"loss \d+ ([\d.]+)", p.out())]
            for p in ranks]


def run_cases(local, *names):
    with Net(len(local), local=local) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py", *names)


def test_two_ranks():
    run_cases((1, 1), *CASES, "again")


def test_three_ranks():
    run_cases((2, 1), *CASES)


def test_forms():
    with Net(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_forms.py", "unwaited", "looked_at_late",
                     "short_forms")


def test_copies_in_a_trace():
    """Python copies tensors that are not dense, besides libsumwire's copies of
    the same bytes; gathered tensors are copied out of one buffer."""
    def has_all(copies):
        n = copies["copy out", 4]  # steps
        return n and copies["copy in", 240000] > 3 * n and (
            copies["copy out", 240000] > 1.5 * n and copies["copy out", 480000])
    with named(Net(2)) as net:
        await_copies(net, "cases_beside.py", has_all)


def test_peers():
    with Net(3) as net:
        net.start_all()
        net.ranks_ok("cases_peers.py", "sent_first", "awaited_first",
                     "never_met", "by_keyword", "monitored")


def test_errors():
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_errors.py", "timeouts_are_named", "errors_are_torchs",
                     "flight_recorder", "flight_recorder_elsewhere",
                     "barrier_blocks_nobody", "interrupted_start",
                     "forked_while_locked", "ends_are_told",
                     "group_that_cannot_have_a_timeout", "profiler")


def test_four_ranks():
    """Skip in quick runs: three ranks cover most of it."""
    run_cases((1, 1, 1, 1), *(CASES[:2] if rig.IS_QUICK else CASES))


def test_beside():
    with Net(2, local=(2, 1)) as net:
        net.start_all()
        net.ranks_ok("cases_beside.py", "interfaces", "whole_averages", "sparse", "join",
                     "let_go", "uncounted", "count_elsewhere", "unmade",
                     "sharded")


def test_mixed():
    """Use a backend for each type of device; sumwire is the first or the last."""
    with Net(2) as net:
        net.start_all()
        ways = [("cpu:gloo,cuda:sumwire", "cpu_is_others"),
                ("cuda:gloo,cpu:sumwire", "cpu_is_sumwires"),
                ("cuda:sumwire,cpu:gloo", "cpu_is_others"),
                ("cpu:sumwire,cuda:gloo", "cpu_is_sumwires")]
        for backends, case in ways[:1] if rig.IS_QUICK else ways:
            net.ranks_ok("cases_mixed.py", case,
                         env={"TEST_BACKENDS": backends})


def test_layouts():
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_layout.py", "layouts", "layouts_by_gloo", "shared",
                     "rows", "lists", "elsewhere")


@rig.is_long
def test_detail():
    torch_site.need_fsdp()
    with Net(2) as net:
        net.start_all()
        net.ranks_ok("cases_backend.py", "sums", "gathers",
                     env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
        both = losses(net.ranks(
            os.path.join(torch_rig.HERE, "train_backend.py"), "sumwire",
            "plain", "fsdp", env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}))
        check([len(each) for each in both] == [12, 12], f"losses: {both}")
        net.remove_files()


def trained(n, *kinds):
    """Check that losses equal gloo's, except for rounding by order."""
    with Net(n) as net:
        net.start_all()
        each = losses(net.ranks(os.path.join(
            torch_rig.HERE, "train_backend.py"), "gloo,sumwire", *kinds))
        net.remove_files()
    for rank, both in enumerate(each):
        check(len(both) == 12 * len(kinds), f"{len(both)} losses")
        half = len(both) // 2
        for i, (x, y) in enumerate(zip(both[:half], both[half:])):
            check(abs(x - y) <= 2e-3 * x, f"rank {rank}, {kinds[i // 6]}, step "
                  f"{i % 6}: {y} is not gloo's {x}")


def test_two_train():
    trained(2, "plain", "views", "static", "unused", "compiled", "zero")


@rig.is_long
def test_two_train_in_parts():
    torch_site.need_fsdp()
    trained(2, "fsdp", "memory", "saved")


@rig.is_long
def test_four_train():
    torch_site.need_fsdp()
    trained(4, "hsdp")


def test_torchrun():
    with Alone() as net:
        p = net.torchrun(os.path.join(torch_rig.HERE, "train_backend.py"),
                         "sumwire", "plain")
        [both] = losses([p])
        check(len(both) == 12, f"losses: {both}")
        net.await_nothing()


def test_no_agent():
    with Alone() as net:
        for p in net.cases("cases_backend.py", "no_agent"):
            p.wait_ok()
            check("ok no_agent" in p.out(), p.out())
        net.remove_files()
        net.await_nothing()


if __name__ == "__main__":
    main(dict(globals()))
