# rig.py - start servers, agents and clients in a folder, and stop them
# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests of real processes.

    with Net(agents=2, servers=1) as net:
        net.start_all()
        train = net.train("--epochs", "1")
        train.wait_ok()

A Net is a folder with a configuration file, a log and sockets per daemon.
Daemon names: servers are a, b, ...; agents agent0, agent1, .... Leaving the
with block stops every daemon by SIGTERM and checks exit code 0 and that nothing
is left behind. After a failure it prints the ends of all logs.

A test is a function whose name begins with test_; main() runs the tests of a
file."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

# Limits, generous because other programs may use the machine's cores.
START_S = 60  # until a daemon is ready
STOP_S = 60  # until a daemon ends after SIGTERM
RUN_S = 400  # for a short training, or a client
TEST_S = 900  # for a whole test
TAIL_LINES = 120
SMALL = ("--tensor", "w:100000:f32")  # for a client
BUILD = None  # set by main()
IS_QUICK = bool(os.environ.get("SUMWIRE_TEST_QUICK"))
# The section lcore of all daemons. In a quick run they sleep sooner than by default,
# because polling took half of the CPU time of many tests.
LCORE = {"spin": "2us"} if IS_QUICK else {}


def is_long(test):
    """Decorate a test that plain test/run leaves out; it still runs by name."""
    test.is_long = True
    return test


def layouts(*all_of_them):
    """Return the layouts to run a case in; in a quick run only the last."""
    return all_of_them[-1:] if IS_QUICK else all_of_them


class Failure(AssertionError):
    """The failure of a test."""


class Skip(Exception):
    """The reason why a test cannot run here."""


def check(is_true, text):
    if not is_true:
        raise Failure(text)


def wait_until(fn, limit_s, what):
    """Return the first true value of fn(); fail after limit_s."""
    end = time.monotonic() + limit_s
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"no {what} within {limit_s} s")
        time.sleep(0.02)


def measured(fn, is_good, tries=5):
    """Return the first value of fn() that is good. Other programs may spoil a
    measurement; a defect spoils all of them."""
    for _ in range(tries):
        value = fn()
        if is_good(value):
            return value
        print(f"not good, load {os.getloadavg()[0]:.1f}: {value}", flush=True)
    raise Failure(f"none of {tries} measurements is good")


def popen(args, out, log):
    return subprocess.Popen(args, stdin=subprocess.PIPE, stdout=out, stderr=log,
                            start_new_session=True)


class Process:
    """A program in a process group of its own; its output goes to files."""

    def __init__(self, name, folder, args, start=popen):
        self.name = name
        self.out_path = os.path.join(folder, name + ".out")
        self.log_path = os.path.join(folder, name + ".log")
        with open(self.out_path, "wb") as out, open(self.log_path, "wb") as log:
            self.popen = start(args, out, log)
        self.pid = self.popen.pid

    def out(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def code(self):
        """Return the exit code, -SIGNAL, or None while it runs."""
        return self.popen.poll()

    def say(self, line=""):
        self.popen.stdin.write((line + "\n").encode())
        self.popen.stdin.flush()

    def await_text(self, pattern, limit_s=START_S, read=None):
        """Wait for a match of pattern in the log (or in read())."""
        read = read or self.log

        def look():
            is_over = self.code() is not None
            found = re.search(pattern, read())
            if not found and is_over:
                raise Failure(f"{self.name} ended with {self.code()} "
                              f"without \"{pattern}\"")
            return found
        return wait_until(look, limit_s, f"\"{pattern}\" from {self.name}")

    def await_out(self, pattern, limit_s=START_S):
        return self.await_text(pattern, limit_s, self.out)

    def wait(self, limit_s):
        """Return the exit code; fail if the process does not end within
        limit_s."""
        try:
            return self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} runs after {limit_s} s") from None

    def wait_ok(self, limit_s=RUN_S):
        code = self.wait(limit_s)
        check(code == 0, f"{self.name} ended with {code}, not 0")

    def wait_error(self, *patterns, limit_s=RUN_S, code=None):
        """Check that it ends with an error, and that its output matches all
        patterns."""
        got = self.wait(limit_s)
        codes = (1, 78) if code == 1 else (code,)  # 78: a configuration error
        check(got in codes if code is not None else got > 0,
              f"{self.name} ended with {got}, not "
              f"{'an error' if code is None else code}")
        for pattern in patterns:
            check(re.search(pattern, self.out() + self.log()),
                  f"{self.name} does not say \"{pattern}\"")

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        """Send SIGKILL to this process alone."""
        self.signal(signal.SIGKILL)
        self.popen.wait(STOP_S)

    def destroy(self):
        """Kill it and all its children, after a failed test."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait(STOP_S)
        self.popen.stdin.close()

    def children(self):
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        with open(path, encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]


def processes():
    """Return all live processes: (pid, process group, session, words of the
    command line). Skip zombies."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii",
                      errors="replace") as f:
                state, _, group, session = f.read().rsplit(")", 1)[1].split()[:4]
            with open(f"/proc/{pid}/cmdline", encoding="utf-8",
                      errors="replace") as f:
                words = f.read().split("\0")
        except OSError:
            continue
        if state != "Z":
            yield int(pid), int(group), int(session), words


def group_is_empty(pgid):
    """Is the process group empty?"""
    return all(group != pgid for _, group, _, _ in processes())


def run_refused(net, name, *patterns):
    """Check that a daemon refuses to start with these messages and exit code 1."""
    net.launch(name)
    net.daemons.pop(name).wait_error(*patterns, code=1)


def run_steps(net, *tensors, steps=5, agents=None, name="client"):
    """Push from a client at each of the agents (default all); check every
    element of the sums."""
    clients = [net.client(0, *(tensors or SMALL), "--steps", str(steps), agent=a,
                          name=f"{name}{i}")
               for i, a in enumerate(agents or net.agents)]
    for c in clients:
        c.wait_ok()
        check(f"step {steps - 1} exact" in c.out(),
              f"{c.name} did not see the last step")


def start_forever(net, *tensors, step=3, rest_ms=2, agents=None, name="client"):
    """Start endless pushes at every rank; return after exact sums up to that
    step. Ranks rest after each step, because otherwise ranks and daemons take
    all cores from the test."""
    clients = [net.client(0, *(tensors or SMALL), "--steps", "1000000", "--rest",
                          str(rest_ms), agent=a, name=f"{name}{i}")
               for i, a in enumerate(agents or net.agents)]
    for c in clients:
        c.await_out(rf"step {step} exact")
    return clients


def check_goes_on(clients, steps=3):
    """Check that the clients complete this many exact steps from now on."""
    for c in clients:
        made = max(map(int, re.findall(r"step (\d+) exact", c.out())))
        c.await_out(rf"step {made + steps} exact")


def end(net, clients):
    for c in clients:
        c.kill()
    net.check_alive(*net.servers, *net.agents)


def program(name):
    path = os.path.join(BUILD, name)
    check(os.access(path, os.X_OK), f"{path} is not built")
    return path


def sumwire():
    return program("apps/sumwire")


def lab():
    return program("apps/sumwire-lab")


def example_train():
    return program("apps/example_train")


class Net:
    """A job's servers and agents in a folder; change ini before the start."""

    def __init__(self, agents=2, servers=1, job=None, port=None, quota=None,
                 colocated=False, local=None, lcores=1,
                 lanes=None):
        self.folder = tempfile.mkdtemp(prefix="sumwire-proc-", dir="/tmp")
        self.n_agents, self.n_servers = agents, servers
        self.servers = [chr(ord("a") + i) for i in range(servers)]
        self.agents = [f"agent{i}" for i in range(agents)]
        self.daemons = {}  # running or killed, by name
        self.processes = []  # every process started
        self.killed = set()  # daemons that could not clean up
        self.ini = {}
        self.options = {}  # command-line options of a daemon
        for s, name in enumerate(self.servers):
            self.ini[name] = self.common("server", name, 0)
            if quota:
                self.ini[name]["serve"] = {"quota": quota}
            for w in range(agents):
                self.add_port(name, self.link(s, w), "listen", **(port or {}))
        for w, name in enumerate(self.agents):
            self.ini[name] = self.common("agent", name, w)
            self.ini[name]["agent"] = {"socket": self.socket(name)}
            if local:
                self.ini[name]["agent"]["local_ranks"] = local[w]
            if lanes:
                self.ini[name]["agent"]["lcores"] = lanes[w]
            for s, server in enumerate(self.servers):
                self.add_port(name, self.link(s, w), "connect", **(port or {}))
                self.add_server(name, server, self.link(s, w))
        if colocated:
            self.colocate(port or {})
        for ini in self.ini.values():
            ini["job"].update(job or {})
            if lcores > 1:
                ini.setdefault("serve", {})["lcores"] = lcores
                ini["job"]["server_lcores"] = lcores

    # --- configuration ---

    def path(self, name):
        return os.path.join(self.folder, name)

    def socket(self, agent):
        return self.path(agent + ".sock")

    def stats_socket(self, daemon):
        return self.path(daemon + ".stats")

    def link(self, server_i, agent):
        return server_i * self.n_agents + agent

    def common(self, role, name, rank):
        return {"node": {"role": role, "name": name,
                         "runtime_dir": self.path(name + ".run")},
                "job": {"agents": self.n_agents, "agent": rank},
                "lcore": dict(LCORE),
                "stats": {"socket": self.stats_socket(name)}}

    def add_port(self, name, link, side, **keys):
        host = 1 if side == "listen" else 2
        self.ini[name][f"port link{link}"] = {
            "type": "memif", "socket": self.path(f"link{link}"), "side": side,
            "ip": f"10.77.{link}.{host}/30", **keys}

    def add_server(self, agent, server, link):
        self.ini[agent][f"server {server}"] = {
            "ip": f"10.77.{link}.1", "port": f"link{link}"}

    def colocate(self, port):
        """Make every agent a server as well; a memif joins each pair."""
        ends = {}  # [i, j]: address of agent j on its link to agent i
        for j in range(self.n_agents):
            for i in range(j):
                link = self.n_servers * self.n_agents + len(ends) // 2
                self.add_port(self.agents[i], link, "listen", **port)
                self.add_port(self.agents[j], link, "connect", **port)
                ends[j, i] = (f"10.77.{link}.1", f"link{link}")
                ends[i, j] = (f"10.77.{link}.2", f"link{link}")
        for i, name in enumerate(self.agents):
            self.ini[name]["node"]["role"] = "both"
            for j, server in enumerate(self.agents):
                # A node may use its address on any of its links for itself.
                ip, port_name = ends[i, j] if i != j else next(
                    v for (_, to), v in sorted(ends.items()) if to == i)
                self.ini[name][f"server {server}"] = {
                    "ip": ip, "port": port_name}

    def write_ini(self, name):
        path = self.path(name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            for section, keys in self.ini[name].items():
                f.write(f"[{section}]\n")
                f.writelines(f"{k} = {v}\n" for k, v in keys.items())
        return path

    # --- processes ---

    def run(self, name, *args, start=popen):
        p = Process(name, self.folder, args, start)
        self.processes.append(p)
        return p

    def launch(self, name):
        """Start a daemon without waiting until it is ready."""
        role = self.ini[name]["node"]["role"]
        p = self.run(name, sumwire(), "agent" if role == "both" else role, "--config", self.write_ini(name),
                     *self.options.get(name, ()))
        self.daemons[name] = p
        return p

    def start(self, *names):
        for p in [self.launch(name) for name in names]:
            p.await_text(r"is ready")

    def start_all(self):
        self.start(*self.servers, *self.agents)

    def stop(self, *names):
        """Send SIGTERM to all and check for exit code 0. Return the last one's
        log."""
        stopped = [self.daemons.pop(name) for name in names]
        for p in stopped:
            check(p.code() is None, f"{p.name} has ended with {p.code()}")
            p.signal(signal.SIGTERM)
        for p in stopped:
            code = p.wait(STOP_S)
            check(code == 0, f"{p.name} ended with {code} after SIGTERM")
        return stopped[-1].log()

    def kill(self, name):
        self.daemons.pop(name).kill()
        self.killed.add(name)

    def check_alive(self, *names):
        for name in names:
            code = self.daemons[name].code()
            check(code is None, f"{name} has ended with {code}")

    def train(self, *args, agents=None, name="train"):
        sockets = []
        for agent in agents or self.agents:
            sockets += ["--agent", self.socket(agent)]
        return self.run(name, example_train(), "--json", "--timeout", "100s",
                        *sockets, *args)

    def train_ok(self, *args, epochs=1):
        """Run a short training that must succeed; return its JSON object."""
        p = self.train("--epochs", str(epochs), "--target-accuracy", "0.9",
                       *args)
        p.wait_ok()
        result = json.loads(p.out())
        check(result["is_ok"] and result["is_identical"] and
              result.get("is_reference_identical", True),
              f"training is not as it must be: {result}")
        return result

    def client(self, rank, *args, name=None, agent=None):
        return self.run(name or f"client{rank}",
                        program("test/proc/proc_client"),
                        "--agent", self.socket(agent or self.agents[rank]),
                        *args)

    def stats(self, daemon):
        """Return the daemon's counters. The command gives up after 5 s; ask
        again, because the daemon's thread may have had no core."""
        end = time.monotonic() + START_S
        while True:
            p = subprocess.run(
                [sumwire(), "stats", "--json", self.stats_socket(daemon)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=START_S,
                check=False)
            if p.returncode == 0:
                return json.loads(p.stdout)
            check(time.monotonic() < end and daemon in self.daemons and
                  self.daemons[daemon].code() is None,
                  f"stats of {daemon}: {p.stderr.decode()}")
            time.sleep(0.1)

    def await_stats(self, daemon, fn, what):
        """Return the first counters for which fn is true. Clients end before
        their agent has told all servers, and messages may be repeated."""
        def look():
            stats = self.stats(daemon)
            return stats if fn(stats) else None
        return wait_until(look, STOP_S, f"{what} of {daemon}")

    def empty_stats(self, daemon):
        """Wait until a server keeps nothing; return its counters."""
        return self.await_stats(
            daemon, lambda s: s["open_chunks"] == 0 and
            s["memory_used_bytes"] == 0, "empty memory")

    # --- the end ---

    def check_clean(self):
        """Check that only files of the rig are left.

        A killed daemon's runtime folder stays, empty, because only the daemon
        that created a folder removes it. A killed agent's last error also
        stays."""
        for p in self.processes:
            # A sanitizer's symbolizer ends a moment after its parent.
            wait_until(lambda p=p: group_is_empty(p.pid), STOP_S,
                       f"end of all processes that {p.name} left")
        for name in self.killed:
            os.rmdir(self.path(name + ".run"))
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name + ".sock.error"))
        mine = {f"{p.name}{end}" for p in self.processes
                for end in (".log", ".out")}
        mine |= {name + ".ini" for name in self.ini}
        left = sorted(set(os.listdir(self.folder)) - mine)
        check(not left, f"left behind: {', '.join(left)}")

    def show_logs(self):
        for p in self.processes:
            lines = (p.out() + p.log()).splitlines()[-TAIL_LINES:]
            print(f"---- {p.name} (exit code {p.code()}) ----")
            print("\n".join(lines))
        print("----", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                if self.daemons:
                    self.stop(*self.daemons)
                for p in self.processes:
                    check(p.code() is not None, f"{p.name} still runs")
                self.check_clean()
        except (Failure, OSError):
            self.show_logs()
            raise
        finally:
            if kind is not None:
                self.show_logs()
            for p in self.processes:
                p.destroy()
            shutil.rmtree(self.folder, ignore_errors=True)


# --- running tests ---

def on_alarm(number, frame):
    at = " < ".join(f"{f.name}:{f.lineno}" for f in
                    reversed(traceback.extract_stack(frame)[-4:]))
    raise Failure(f"the test takes longer than {TEST_S} s, now in {at}")


def where(error):
    """Return the test's lines that the exception passed, and the load of the
    machine."""
    lines = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in
             traceback.extract_tb(error.__traceback__)
             if os.path.basename(f.filename) != "rig.py"]
    return f"{' > '.join(lines)}, load {os.getloadavg()[0]:.1f}"


def end_by_sigterm():
    """Turn SIGTERM into an exception, so that the process stops its daemons
    first."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def run_one(name, fn):
    start = time.monotonic()
    signal.alarm(TEST_S)
    try:
        fn()
        result, problem = "PASS", None
    except Skip as e:
        result, problem = "SKIP", e
    except Exception as e:  # any exception fails only this test
        result, problem = "FAIL", f"{type(e).__name__}: {e} ({where(e)})"
        for text in (getattr(e, "stdout", None), getattr(e, "stderr", None)):
            print(str(text)[-2000:] if text else "", end="", flush=True)
    signal.alarm(0)
    print(f"{result} {name} {time.monotonic() - start:.1f} s"
          f"{f': {problem}' if problem else ''}", flush=True)
    return result


def main(tests):
    """Run the tests, all or the named ones: FILE.py BUILD [TEST]...."""
    global BUILD
    tests = {n[5:]: f for n, f in tests.items() if n.startswith("test_")}
    names = [n.removeprefix("test_") for n in sys.argv[2:]] or [
        n for n, f in tests.items() if not (IS_QUICK and hasattr(f, "is_long"))]
    unknown = [n for n in names if n not in tests]
    if len(sys.argv) < 2 or unknown:
        print(f"usage: {sys.argv[0]} BUILD [TEST]...; tests: "
              f"{' '.join(tests)}", file=sys.stderr)
        sys.exit(2)
    BUILD = os.path.abspath(sys.argv[1])
    os.environ["SUMWIRE_LAUNCHER"] = "none"  # configuration files set the ranks
    # A shell's "&" and nohup make these ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in signal.SIGQUIT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, on_alarm)
    end_by_sigterm()
    results = [run_one(name, tests[name]) for name in names]
    n_ok, n_bad, n_skip = map(results.count, ("PASS", "FAIL", "SKIP"))
    print(f"{n_ok} passed, {n_bad} failed, {n_skip} skipped")
    sys.exit(1 if n_bad else 0 if n_ok else 77)
