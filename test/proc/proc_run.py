# proc_run.py - sumwire run: N processes, their output and their ends
# SPDX-License-Identifier: BSD-3-Clause
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import deny
import rig
from rig import Process, check, wait_until

SHORT_S = rig.RUN_S


class Run:
    """A sumwire run, possibly under another command; it must leave nothing
    behind."""

    def __init__(self, *args, under=()):
        self.args, self.under = args, under

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
        self.p = Process("run", self.folder, [
            "env", "TMPDIR=" + self.folder, *self.under, rig.sumwire(), "run",
            *map(str, self.args)])
        return self.p

    def __exit__(self, kind, value, trace):
        if kind:
            print(self.p.out(), self.p.log(), flush=True)
        else:  # the kernel may still be cleaning up killed processes
            with contextlib.suppress(rig.Failure):
                wait_until(lambda: not members_of_run(self.p.pid), rig.STOP_S,
                           "end of all")
        left = members_of_run(self.p.pid)
        folders = [f for f in os.listdir(self.folder)
                   if f.startswith("sumwire-run-")]
        self.p.destroy()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)
        if not kind:
            check(not left, f"processes are left: {left}")
            check(not folders, f"folders are left: {folders}")


def members_of_run(sid):
    """Return the processes in the session of a run; each has a process group of
    its own."""
    return [pid for pid, _, session, _ in rig.processes() if session == sid]


def shell(text, *options):
    return Run(*options, "--", "sh", "-c", text)


def client(*args):
    return [rig.program("test/proc/proc_client"), *args]


def test_sums_and_tags():
    with Run("-np", 2, *client("--tensor", "t:100000:f32", "--steps",
                               "3")) as p:
        p.wait_ok()
        lines = sorted(p.out().splitlines())
        want = sorted(f"[{r}] {t}" for r in (0, 1) for t in
                      (f"attached {r} of 2", "declared", "step 0 exact",
                       "step 1 exact", "step 2 exact", "ended"))
        check(lines == want, f"output: {lines}")


def test_shared_agents():
    """Two agents with two local ranks each run one job of four ranks."""
    with Run("-np", 4, "--local-ranks", 2, *client(
            "--tensor", "t:100000:f32", "--steps", "3")) as p:
        wait_until(lambda: p.code() is not None or len(p.children()) == 7,
                   SHORT_S, "a server, two agents and four ranks")
        p.wait_ok()
        for rank in range(4):
            check(f"[{rank}] attached {rank} of 4" in p.out() and
                  f"[{rank}] step 2 exact" in p.out(), f"rank {rank}")


def test_environment():
    names = ("SUMWIRE_RANK SUMWIRE_SIZE SUMWIRE_LOCAL_RANK SUMWIRE_LOCAL_SIZE "
             "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE").split()
    text = "echo " + " ".join("$" + n for n in names)
    text += " ; echo $MASTER_ADDR:$MASTER_PORT; test -S $SUMWIRE_AGENT"
    with shell(text, "-np", "3") as p:
        p.wait_ok()
        for rank in range(3):
            check(f"[{rank}]" + f" {rank} 3" * 4 + "\n" in p.out(),
                  f"rank {rank} is not told so")
        ports = set(re.findall(r"127\.0\.0\.1:(\d+)", p.out()))
        check(len(ports) == 1, f"MASTER_PORT: {ports}")


def test_lines_are_whole():
    """Two processes write half lines in turn, to stdout and stderr."""
    text = ("for i in 1 2 3 4 5; do printf a; sleep 0.01; echo b; "
            "printf c >&2; sleep 0.01; echo d >&2; done; printf last")
    with shell(text, "-np", "2") as p:
        p.wait_ok()
        check(sorted(p.out().splitlines()) == sorted(
            [f"[{r}] ab" for r in (0, 1)] * 5 +
            [f"[{r}] last" for r in (0, 1)]), "stdout is torn")
        check(sorted(p.log().splitlines()) ==
              ["[0] cd"] * 5 + ["[1] cd"] * 5, "stderr is torn")


def test_odd_folders():
    """A configuration file cannot contain these folders."""
    with tempfile.TemporaryDirectory(prefix="sumwire-proc-") as folder:
        for name in rig.layouts("x#1", "it's", "a b"):
            os.mkdir(os.path.join(folder, name))
            p = Process("run", folder, [
                "env", "TMPDIR=" + os.path.join(folder, name), rig.sumwire(),
                "run", "-np", "1", "true"])
            try:
                p.wait_ok(SHORT_S)
            finally:
                p.destroy()


def test_no_tags():
    with shell("echo hello", "-np", "2", "--no-tags") as p:
        p.wait_ok()
        check(p.out() == "hello\n" * 2, "tags, or not two lines")


def test_first_bad_exit_code():
    """Rank 1 fails; the others get SIGTERM after the grace period."""
    with shell("[ $RANK = 1 ] && exit 7; sleep 100", "-np", "3", "--grace",
               "300ms") as p:
        p.wait_error(r"rank 1 ended with exit code 7",
                     r"rank 0 still runs, sending SIGTERM", code=7, limit_s=SHORT_S)
        check("rank 2 ended" not in p.log(), "blames who was told to end")


def test_killed_rank_counts_first():
    """Rank 0 fails before rank 1 is killed, perhaps because of rank 1. Rank 0's
    pid is free once the launcher has seen its end."""
    text = ("if [ $RANK = 0 ]; then echo $$ > $TMPDIR/zero; "
            "mv $TMPDIR/zero $TMPDIR/over; exit 3; fi; "
            "while [ ! -e $TMPDIR/over ]; do sleep 0.05; done; "
            "while kill -0 $(cat $TMPDIR/over); do sleep 0.05; done; "
            "kill -KILL $$")
    with shell(text, "-np", "2", "--grace", "20s") as p:
        p.wait_error(r"rank 0 ended with exit code 3",
                     r"rank 1 was killed by signal 9", code=137,
                     limit_s=SHORT_S)


def test_asynchronous():
    """The others run as long as they like; the exit code is that of the first
    failure."""
    text = ("[ $RANK = 1 ] && exit 7; [ $RANK = 2 ] && kill -9 $$; sleep 1; "
            "echo went on")
    with shell(text, "-np", "3", "--asynchronous", "--grace", "10ms") as p:
        got = p.wait(SHORT_S)
        check(got in (7, 137), f"exit code {got}")
        for end in ("rank 1 ended with exit code 7",
                    "rank 2 was killed by signal 9"):
            check(end in p.log(), f"it does not say: {end}")
        check(p.out() == "[0] went on\n" and "SIGTERM" not in p.log(),
              "rank 0 was ended")


def test_killed_rank_is_named():
    """The other ranks get the error through sumwire, and it names the rank. The
    agent may still push what the killed rank submitted last."""
    args = client("--tensor", "t:1000000:f32", "--steps", "3")
    text = ('[ $RANK = 1 ] && set -- "$@" --steps 2 --misbehave die; exec "$@"')
    with Run("-np", 2, "--", "sh", "-c", text, "sh", *args) as p:
        p.wait_error(r"rank 1 was killed by signal 9", r"\[0\] error .*EPEER",
                     code=137, limit_s=SHORT_S)


def test_who_does_not_end_is_killed():
    # Rank 0 must fail only after rank 1 ignores signals.
    text = ("if [ $RANK = 0 ]; then while [ ! -e $TMPDIR/deaf ]; do sleep "
            "0.05; done; exit 3; fi; trap '' TERM; touch $TMPDIR/deaf; "
            "sleep 100 & sleep 100")
    with shell(text, "-np", "2", "--grace", "100ms") as p:
        p.wait_error(r"rank 1 still runs, sending SIGKILL", code=3, limit_s=SHORT_S)


def test_what_a_rank_leaves_is_ended():
    with shell("sleep 1000 & exit 0", "-np", "1") as p:
        p.wait_ok(SHORT_S)


def test_signals_are_passed_on():
    text = ("trap 'echo usr' USR1; trap 'echo int; exit 0' INT; echo ready; "
            "while :; do sleep 0.05; done")
    with shell(text, "-np", "2") as p:
        wait_until(lambda: p.out().count("ready") == 2, SHORT_S, "ranks")
        p.signal(signal.SIGUSR1)
        wait_until(lambda: p.out().count("usr") == 2, SHORT_S, "SIGUSR1")
        p.signal(signal.SIGINT)
        check(p.wait(SHORT_S) == 130, "the exit code is not that of SIGINT")
        check(p.out().count("int") == 2, "SIGINT was not passed on")


def test_a_signal_to_all():
    """Signal the daemons as well: they run as long as a rank does."""
    args = client("--tensor", "t:1000:f32", "--steps", "1000000000", "--rest", "10")
    text = "trap '' TERM INT USR1; exec \"$@\""
    for number in signal.SIGTERM, signal.SIGUSR1:
        with Run("-np", 2, "--local-ranks", 2, "--grace", "600s", "--", "sh",
                 "-c", text, "sh", *args) as p:
            wait_until(lambda: p.out().count("step 0 exact") == 2, SHORT_S,
                       "sums")
            for _ in range(2):
                for pid in [*p.children(), p.pid]:
                    os.kill(pid, number)
                time.sleep(0.5)
            n = p.out().count("exact")
            wait_until(lambda: p.out().count("exact") > n + 2, SHORT_S,
                       "more steps")
            p.signal(signal.SIGQUIT)
            p.wait(SHORT_S)


def pending(pid):
    """Return the signals that are pending at a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        found = re.search(r"ShdPnd:\s*(\w+)", f.read())
    check(found, f"process {pid} has ended")
    mask = int(found[1], 16)
    return {n for n in (signal.SIGQUIT, signal.SIGINT) if mask >> (n - 1) & 1}


def test_signal_while_daemons_stop():
    """Daemons get a second signal; the server is stopped until then."""
    with shell("while [ ! -e $TMPDIR/end ]; do sleep 0.05; done", "-np", "1",
               "--verbose") as p:
        wait_until(lambda: len(p.children()) == 3, SHORT_S, "rank")
        server = next(c for c in p.children() if is_daemon(c, "server"))
        os.kill(server, signal.SIGSTOP)
        with open(os.path.join(os.path.dirname(p.out_path), "end"), "wb"):
            pass
        wait_until(lambda: pending(server) == {signal.SIGQUIT}, SHORT_S,
                   "SIGQUIT to the server")
        p.signal(signal.SIGTERM)
        try:
            wait_until(lambda: len(pending(server)) == 2, SHORT_S,
                       "second signal")
        finally:
            os.kill(server, signal.SIGCONT)
        p.wait_error(r"\[server\] .*received a second signal, stopping at once", code=143,
                     limit_s=SHORT_S)


def test_daemon_dies():
    """The launcher names the daemon, and the rank ends with an error."""
    with Run("-np", 1, *client(
            "--tensor", "t:1000:f32", "--steps", "1000000000",
            "--no-check")) as p:
        wait_until(lambda: "step 0 exact" in p.out(), SHORT_S, "sums")
        agents = [c for c in p.children() if is_daemon(c, "agent")]
        check(len(agents) == 1, f"agents: {agents}")
        os.kill(agents[0], signal.SIGKILL)
        p.wait_error(r"agent 0 was killed by signal 9",
                     r"\[0\] error .*ECLOSED", limit_s=SHORT_S)


def test_server_gets_no_core():
    """The server is stopped for longer than the default dead_after: it has not
    ended, so the sums continue."""
    with Run("-np", 1, *client("--tensor", "t:1000:f32", "--steps",
                               "1000000000")) as p:
        p.await_out("step 0 exact")
        server = next(c for c in p.children() if is_daemon(c, "server"))
        os.kill(server, signal.SIGSTOP)
        try:
            time.sleep(12)
            n = p.out().count("exact")
        finally:
            os.kill(server, signal.SIGCONT)
        wait_until(lambda: p.code() is not None or
                   p.out().count("exact") > n + 1, SHORT_S, "more steps")
        p.signal(signal.SIGINT)
        check(p.wait(SHORT_S) == 130, "the sums have ended")


def is_daemon(pid, role):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().split(b"\0")[1:2] == [role.encode()]


def test_the_command_is_killed():
    """The kernel then ends ranks and daemons; only the folder stays."""
    run = Run("-np", 2, "sleep", "1000")
    p = run.__enter__()
    try:
        wait_until(lambda: len(p.children()) == 5, SHORT_S, "ranks")
        p.kill()
        wait_until(lambda: not members_of_run(p.pid), SHORT_S, "end of all")
    finally:
        p.destroy()
        shutil.rmtree(run.folder)


def denied(calls):
    """Run with these system calls failing, as under a container's filter."""
    return Run("-np", 2, *client("--tensor", "t:100000:f32"),
               under=(sys.executable, deny.__file__, calls))


def test_denied_system_calls():
    """The launcher uses a substitute, or reports the call in an error."""
    for calls in rig.layouts("madvise", "fallocate",
                             "setpgid,fallocate,madvise"):
        with denied(calls) as p:
            p.wait_ok()
    for call, text in (
            ("faccessat2", "faccessat2: Operation not permitted; does a "
             "seccomp filter deny it"),
            ("eventfd2", r"\(eventfd\) .*: Operation not permitted; does a "
             "seccomp filter deny it"),
            ("memfd_create", "Operation not permitted .it needs memfd_create, "
             "which a seccomp filter may deny"),
            ("signalfd4", "cannot start: signalfd4: Operation not permitted")):
        with denied(call) as p:
            check(p.wait(SHORT_S) == 1, f"without {call}: it did not fail")
            check(re.search(text, p.log()), f"without {call}: {p.log()}")


def test_bad_command_lines():
    for args, why, code in (
            (["-np", "2"], r"CMD \[ARG\]\.\.\. is missing", 2),
            (["-np", "0", "true"], r"-np: \"0\" is out of range", 2),
            (["-np", "65", "true"], r"-np: \"65\" is out of range", 2),
            (["-np", "33", "true"], r"needs 33 agents, but at most 32 are", 2),
            (["-np", "3", "--local-ranks", "2", "true"],
             r"-np 3 is not a multiple of --local-ranks 2", 2),
            (["--np", "2", "true"], r"unknown option --np; did you mean -np", 2),
            (["/no/such/program"],
             r"cannot start /no/such/program as rank 0: No such file", 1)):
        with Run(*args) as p:
            p.wait_error(why, code=code, limit_s=SHORT_S)


def test_output_that_nobody_reads():
    folder = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
    text = "{ $0 run -np 1 yes; echo code $? >&2; } | head -n 1"
    p = Process("head", folder, ["sh", "-c", text, rig.sumwire()])
    try:
        p.wait_ok(SHORT_S)
        check(p.out() == "[0] y\n", "not one line")
        check("cannot write the output" in p.log() and "code 1" in p.log(),
              p.log())
    finally:
        p.destroy()
        shutil.rmtree(folder)


if __name__ == "__main__":
    rig.main(dict(globals()))
