# torch_agents.py - agents started by ranks: signals, logs, unusual machines
# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import subprocess

import torch_rig
import rig
from backend_rig import Alone, folders_in, main
from rig import Skip, check

CASES = "cases_agents.py"


def ok(net, *cases, **env):
    net.ranks_ok(CASES, *cases, env=env)
    net.await_nothing()


def test_a_signal_to_all():
    """Slurm sends the signal to all processes of a job."""
    for number in rig.layouts(signal.SIGINT, signal.SIGUSR1, signal.SIGTERM):
        with Alone() as net:
            ranks = net.cases(CASES, "checkpoint")
            for p in ranks:
                p.await_out("goes on")
            for pid in [*net.running(), *(p.pid for p in ranks)]:
                os.kill(pid, number)
            for p in ranks:
                p.wait_ok()
            net.remove_files()
            net.await_nothing()


def test_port_is_taken():
    with Alone() as net:
        ok(net, "port_is_taken")


def test_keys():
    """Jobs are keyed by default, or by SUMWIRE_KEY_FILE."""
    with Alone() as net:
        path = net.path("job.key")
        subprocess.run([rig.sumwire(), "key", path], check=True)
        net.ranks_ok(CASES, "is_keyed")
        net.ranks_ok(CASES, "has_a_key_file", env={"SUMWIRE_KEY_FILE": path})
        os.chmod(path, 0o644)
        net.ranks_ok(CASES, "has_a_bad_key_file",
                     env={"SUMWIRE_KEY_FILE": path})
        os.unlink(path)
        net.await_nothing()


def test_agent_is_killed():
    with Alone() as net:
        ok(net, "agent_is_killed")


def test_left_folders():
    """Clean up after agents killed with all of their ranks; keep other folders
    and recent ones."""
    with Alone() as net:
        names = [net.path(f"tmp/sumwire-torch-{i}") for i in range(2)]
        for i, name in enumerate(names):
            os.mkdir(name)
            if not i:
                os.utime(name, (0, 0))
        net.ranks_ok(CASES, "sums")
        rig.wait_until(lambda: folders_in(net.path("tmp")) == names[1:],
                       rig.STOP_S, "the old folder alone is gone")
        os.rmdir(names[1])
        net.await_nothing()


def test_logs():
    """Logs go to the terminal, and to a file of each rank that starts an agent."""
    with Alone() as net:
        p, _ = net.ranks_ok(CASES, "sums", env={"SUMWIRE_DEBUG": "INFO"})
        check("sumwire: agent: 2" in p.log() and "is ready at" in p.log(),
              p.log())
        p, _ = net.ranks_ok(CASES, "sums")
        check("is ready at" not in p.log(), p.log())
        path = net.path("tmp/of-%p.log")
        p, _ = net.ranks_ok(CASES, "sums", env={"SUMWIRE_LOG": path})
        check("is ready at" not in p.log(), p.log())
        with open(path.replace("%p", str(p.pid)), encoding="utf-8") as f:
            check("is ready at" in f.read(), "the file says nothing")
        net.await_nothing()


def test_wrong_logs():
    for case, env in (("wrong_level", {"SUMWIRE_DEBUG": "loud"}),
                      ("no_log", {"SUMWIRE_LOG": "/nowhere/agent.log"})):
        with Alone() as net:
            ok(net, case, **env)


def test_no_warning():
    with Alone() as net:
        ok(net, "no_warning")


def test_bound():
    """Bind ranks to one CPU, as OMP_PROC_BIND does."""
    with Alone() as net:
        ok(net, "bound", "quotas")


def test_denied_system_calls():
    for name in "denied", "no_memory_files":
        with Alone() as net:
            ok(net, name)


def test_odd_folders():
    """A configuration file cannot contain such paths."""
    for name in rig.layouts("x#1", "it's", 'say "a"', "a;b", "a b"):
        with Alone() as net:
            folder = net.path(f"tmp/{name}")
            os.mkdir(folder)
            net.ranks_ok(CASES, "sums", env={"TMPDIR": folder})
            check(os.listdir(folder) == [], os.listdir(folder))
            os.rmdir(folder)
            net.await_nothing()


HIDE = """\
set -e
printf %s "$1" >/proc/sys/kernel/hostname
mount -t tmpfs none /proc/sys/kernel/random
[ "$2" = yes ] && mount -t tmpfs none /sys
echo
exec cat"""


COVER = """\
set -e
mount -t tmpfs none "$1"
echo
exec cat"""


class Held(Alone):
    """Ranks in the namespaces of a shell that has run a script there."""

    def hold(self, *script):
        self.holder = subprocess.Popen(
            ["unshare", "-mu", "sh", "-c", script[0], "sh", *script[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not self.holder.stdout.readline():
            self.end_holder()
            raise Skip("no right to a mount namespace")

    def namespaces(self, rank):
        return [f"/proc/{self.holder.pid}/ns/{kind}" for kind in ("mnt", "uts")]

    def end_holder(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(rig.STOP_S)

    def __exit__(self, kind, value, trace):
        try:
            return super().__exit__(kind, value, trace)
        finally:
            self.end_holder()


class Bare(Held):
    """Ranks on a machine that hides its identity, such as a sandbox."""

    def __init__(self, name, has_sys):
        super().__init__()
        self.hold(HIDE, name, "no" if has_sys else "yes")


class Apart(Held):
    """Ranks in containers on the host's network: rank 0 in one, the others in
    another with a /tmp of its own, without rank 0's files."""

    def __init__(self):
        super().__init__(3)
        self.hold(COVER, self.path("tmp"))

    def namespaces(self, rank):
        return super().namespaces(rank) if rank else []


def test_apart():
    with Apart() as net:
        ok(net, "two_agents")


def test_bare_machines():
    """The machine has no boot id, or a name that no node can have."""
    for name in rig.layouts("a b", "h\xf6st", "(none)"):
        with Bare(name, has_sys=True) as net:
            ok(net, "sums")


def test_no_sys():
    with Bare("node", has_sys=False) as net:
        ok(net, "no_sys")


if __name__ == "__main__":
    main(dict(globals()))
