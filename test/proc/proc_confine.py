# proc_confine.py - daemons give up rights, and core dumps lack tensors
# SPDX-License-Identifier: BSD-3-Clause
import os
import pwd
import re
import signal
import struct

import proc_ps
import rig
from rig import Net, check

USER = "nobody"
# Elements of proc_client's tensors: rank 0's, rank 1's and their sum, which
# recur every 97 elements in every step.
PATTERNS = [struct.pack("<64f", *(factor * (31 * i % 97) for i in range(64)))
            for factor in (1, 2, 3)]


def status(pid):
    """Return the status of each thread of the process, as a dict."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as f:
            yield dict(line.rstrip("\n").split(":\t", 1) for line in f
                       if ":\t" in line)


def check_confined(pid, uid):
    for s in status(pid):
        check(s["Uid"].split() == [str(uid)] * 4, f"user: {s}")
        check(int(s["CapPrm"], 16) == int(s["CapEff"], 16) == 0, f"caps: {s}")
        check(s["NoNewPrivs"] == "1" and s["Seccomp"] == "2", f"filter: {s}")


def test_user():
    """Root's daemons switch to another user, serve and leave nothing behind."""
    uid = pwd.getpwnam(USER).pw_uid
    with Net(agents=2) as net:
        os.chmod(net.folder, 0o755)
        os.chown(net.folder, uid, -1)
        for ini in net.ini.values():
            ini["node"]["user"] = USER
            if "agent" in ini:
                ini["agent"]["users"] = "root"
        net.start_all()
        for name, p in net.daemons.items():
            p.await_text(rf"user {USER}.*no capabilities, system calls filtered")
            check_confined(p.pid, uid)
            check(name in proc_ps.ps(net), f"ps does not find {name}")
        os.environ["SUMWIRE_AGENT_USER"] = USER
        try:
            rig.run_steps(net, *rig.SMALL)
        finally:
            del os.environ["SUMWIRE_AGENT_USER"]
        net.stop(*net.daemons)


def test_killed():
    """The next daemon, or root's ps, removes the sockets of a killed daemon."""
    with Net(agents=1) as net:
        os.chmod(net.folder, 0o755)
        os.chown(net.folder, pwd.getpwnam(USER).pw_uid, -1)
        net.ini["a"]["node"]["user"] = USER
        del net.ini["a"]["stats"]  # default: in the runtime folder
        net.start("a")
        pid = net.daemons["a"].pid
        net.daemons.pop("a").kill()
        proc_ps.ps(net)
        left = [n for n in os.listdir("/run/sumwire") if f"-{pid}." in n]
        check(not left, f"left by {pid}: {left}")
        net.start("a")
        mine = f"stats-{net.daemons['a'].pid}.sock"
        check(os.listdir(net.path("a.run")) == [mine], os.listdir(net.path("a.run")))
        net.stop("a")
        os.rmdir(net.path("a.run"))


def test_bad_user():
    with Net(agents=1) as net:
        net.ini["a"]["node"]["user"] = "no-such-user"
        rig.run_refused(net, "a", r"\[node\] user: unknown user")
        net.ini["a"]["node"]["user"] = USER
        os.mkdir(net.path("a.run"))
        rig.run_refused(net, "a", r"runtime folder .* belongs to user 0: ")
        os.rmdir(net.path("a.run"))


def test_root():
    """Root's daemons without a user setting stay root, without root's
    capabilities."""
    with Net(agents=1) as net:
        net.ini["agent0"]["node"]["confine"] = "no"
        net.start_all()
        check_confined(net.daemons["a"].pid, 0)
        for s in status(net.daemons["agent0"].pid):
            check(s["Seccomp"] == "0" and int(s["CapEff"], 16), f"{s}")


def mappings(pid):
    """Return start, end and head of each readable mapping, and whether a core
    dump of the process includes it."""
    with open(f"/proc/{pid}/coredump_filter", encoding="utf-8") as f:
        shares = int(f.read(), 16) & 0b1001010
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        text = f.read()
    for part in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", text):
        head = part.split("\n")[0]
        if head and head.split()[1].startswith("r"):
            start, end = head.split()[0].split("-")
            is_hidden = (re.search(r"VmFlags:.* (dd|io)\b", part) or
                         head.split()[1].endswith("s") and not shares)
            yield int(start, 16), int(end, 16), head, not is_hidden


def find(pid):
    """Return the heads of mappings with tensors: of dumped ones, and of others."""
    found = {True: [], False: []}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        for start, end, head, is_dumped in mappings(pid):
            try:
                f.seek(start)
                data = f.read(end - start)
            except OSError:
                continue  # a gap that the kernel made, such as [vvar]
            if any(p in data for p in PATTERNS):
                found[is_dumped].append(head)
    return found[True], found[False]


def test_core_dumps():
    """Core dumps of agent and server contain neither tensors nor their frames."""
    with Net(agents=2) as net:
        net.start_all()
        clients = rig.start_forever(net, "--tensor", "w:200000:f32")
        for name, p in net.daemons.items():
            p.signal(signal.SIGSTOP)
            try:
                dumped, hidden = find(p.pid)
            finally:
                p.signal(signal.SIGCONT)
            check(not dumped, f"{name} would dump tensors: {dumped}")
            check(hidden, f"{name}: no tensor was found at all")
        rig.check_goes_on(clients)
        rig.end(net, clients)


if __name__ == "__main__":
    rig.main(dict(globals()))
