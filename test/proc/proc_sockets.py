# proc_sockets.py - the place of sockets configured by name only, and leftovers
# SPDX-License-Identifier: BSD-3-Clause
"""Root's folder for sockets is the system's, where other tests' daemons have
theirs at the same time. So these tests give root an empty /run."""
import os
import signal
import subprocess
import sys

import rig
from rig import Net, check

CONF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                    "conf")


class Home:
    """A user's folder for sockets; root's is the system's."""

    def __init__(self, net):
        self.net = net
        xdg = net.path("xdg")
        os.mkdir(xdg, 0o700)
        self.env = "XDG_RUNTIME_DIR=" + xdg
        self.folder = ("/run/sumwire" if os.geteuid() == 0
                       else os.path.join(xdg, "sumwire"))
        self.before = self.files()

    def files(self):
        try:
            return set(os.listdir(self.folder))
        except FileNotFoundError:
            return set()

    def run(self, name, *command):
        return self.net.run(name, "env", self.env, *command)

    def daemon(self, role):
        p = self.run(role, rig.sumwire(), role, "--config",
                     os.path.join(CONF, f"loopback-{role}.ini"))
        p.await_text(r"is ready")
        return p

    def close(self):
        check(self.files() == self.before,
              f"left behind: {self.files() - self.before}")
        for name in "xdg/sumwire", "xdg":
            if os.path.isdir(self.net.path(name)):
                os.rmdir(self.net.path(name))


def end(*daemons):
    for p in daemons:
        p.signal(signal.SIGTERM)
    for p in daemons:
        check(p.wait(rig.STOP_S) == 0, f"{p.name} did not end well")


def test_ready_files():
    """The packaged files work unchanged, in a folder that only their user can
    write to."""
    with Net(agents=1) as net:
        home = Home(net)
        server, agent = home.daemon("server"), home.daemon("agent")
        here = {"agent.sock", "agent.sock.error", "loopback.sock",
                "loopback.sock.lock",
                *(f"{what}-{p.pid}.sock" for p in (server, agent)
                  for what in ("stats", "daemon", "trace"))}
        check(home.files() - home.before == here, f"{home.files()}")
        mode = os.stat(home.folder).st_mode
        check(not mode & 0o022, f"{home.folder} has mode {mode:o}")
        home.run("train", rig.example_train(), "--agent", "agent.sock",
                 "--epochs", "1", "--target-accuracy", "0.5").wait_ok()
        end(agent, server)
        home.close()


def test_killed_daemons():
    """The next daemons remove the sockets that killed ones left behind."""
    with Net(agents=1) as net:
        home = Home(net)
        for p in home.daemon("server"), home.daemon("agent"):
            p.kill()
        check({"agent.sock", "loopback.sock"} <= home.files(), "no sockets")
        end(home.daemon("agent"), home.daemon("server"))
        home.close()


def run_killed(net, limit_s=rig.START_S):
    """Kill sumwire run while its rank runs; return the folder that it leaves."""
    p = net.run("run", "env", "TMPDIR=" + net.folder, rig.sumwire(), "run",
                "-np", "1", "sh", "-c", "echo here; exec sleep 100")
    p.await_out(r"here", limit_s)
    p.kill()
    left = [n for n in os.listdir(net.folder) if n.startswith("sumwire-run-")]
    check(len(left) == 1, f"left: {left}")
    return net.path(left[0])


def test_killed_run():
    with Net(agents=1) as net:
        left = run_killed(net)
        net.run("again", "env", "TMPDIR=" + net.folder, rig.sumwire(), "run",
                "-np", "1", "true").wait_ok()
        check(not os.path.exists(left), f"{left} is left")


def test_default_agent():
    """Neither a file nor a variable gives the agent's path."""
    with Net(agents=1) as net:
        home = Home(net)
        server, agent = home.daemon("server"), home.daemon("agent")
        p = net.run("client", "env", "-u", "SUMWIRE_AGENT", home.env,
                    rig.program("test/proc/proc_client"), *rig.SMALL)
        p.await_out(r"attached 0 of 1")
        p.wait_ok()
        end(agent, server)
        home.close()


def enter():
    """Continue with a /run of our own if possible."""
    if os.geteuid() or os.environ.get("SUMWIRE_RUN"):
        return
    run = ["unshare", "-m", "sh", "-c",
           "mount -t tmpfs -o mode=755 none /run && exec \"$@\"", "sh"]
    if subprocess.run([*run, "true"], check=False).returncode:
        return
    os.environ["SUMWIRE_RUN"] = "1"
    os.execvp(run[0], [*run, sys.executable, *sys.argv])


if __name__ == "__main__":
    enter()
    rig.main(dict(globals()))
