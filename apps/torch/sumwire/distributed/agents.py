# agents.py - start the agents of a job that has none
# SPDX-License-Identifier: BSD-3-Clause
"""If SUMWIRE_AGENT is not set, the ranks start agents themselves.  The first
rank of each machine, and of each RANKS_PER_AGENT of its ranks, starts one
agent, which also serves as a server and uses kernel sockets.  Ranks exchange
addresses through the group's store.  An agent ends when its last process has
ended in any way, and removes its folder.  Signals to all processes of a job do
not end an agent, because its ranks may still have to save their state."""
import contextlib
import errno
import glob
import math
import os
import random
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from torch.distributed import distributed_c10d as c10d

from sumwire import library
from sumwire.client import open_seconds
from sumwire.distributed import addresses, numa
from sumwire.distributed.agent_log import Log, level
from sumwire.distributed.errors import SumwireError
from sumwire.distributed.meeting import safely
from sumwire.distributed.servers import appliances

RANKS_PER_AGENT = 64  # [agent] local_ranks
LCORES_MAX = 16  # [agent] lcores, [serve] lcores
PAYLOAD_MIN, PAYLOAD_MAX, PAYLOAD_UNIT = 1152, 8192, 64  # [job] payload
# Below the kernel's ephemeral port range.
PORTS = range(20000, 32000)
PARENT_MAX = 60  # bytes of the parent folder; a socket's path has at most 107
# Do not start a new session if Python can avoid it: Linux schedules each
# session as a whole and wakes processes of other sessions later
# (sched_autogroup_enabled).
# A filter of system calls may deny either, or both.
OWN_GROUP = [{"process_group": 0}] if sys.version_info >= (3, 11) else []
APART = [*OWN_GROUP, {"start_new_session": True}, {}]
DEAD_S = 60  # [job] dead_after, if the group's timeout is torch's default
DEAD_MIN_S, DEAD_MAX_S = 30, 600
NODES_SHOWN = 4
PAUSE_S = 0.02
END_S = 1  # time for an agent that has closed its sockets to end
TRIES = 100  # number of random ports to try
PORT_TRIES = 8  # number of starts, if another program takes a port meanwhile
IN_USE = os.strerror(errno.EADDRINUSE)
RUN_BYTES = 8  # part of torchrun's run id in a job's name of at most 31 bytes
FOLDER = "sumwire-torch-"
KEY_BYTES = 32
STALE_S = 600  # age of a stale folder; an agent starts much faster
# Signals that a running agent handles or ignores; blocked while it starts.
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP,
           signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM}
# stall_limit is long, because groups have their own timeouts.
AGENT = """\
[node]
role = both
name = {name}
runtime_dir = {folder}
drain = 600s
[job]
name = {job}
agents = {n}
agent = {agent}
server_lcores = {lcores}
dead_after = {dead_s}s
stall_limit = 86400s
join_timeout = {open_s}s
payload = {payload}
{key_line}[agent]
socket = {socket}
local_ranks = {n_local}
lcores = {lcores}
stay = no
[serve]
lcores = {lcores}
udp_port = {udp_port}
[port udp]
type = udp
ip = {ip}/{bits}
[log]
level = {level}
"""
SERVER = """\
[server s{i}]
ip = {ip}
udp_port = {udp_port}
port = udp
"""


def boot():
    """Return a text that differs between machines with the same host name and
    network namespace."""
    for path, words in (("/proc/sys/kernel/random/boot_id", r"(\S+)"),
                        ("/proc/stat", r"btime (\d+)")):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            found = re.search(words, f.read())
            if found:
                return found[1]
    return ""  # a sandbox hides both


_apart = ""  # set in a process that did not reach its first agent


def machine():
    """Return a text that is equal for processes of one machine.  It may also be
    equal for containers with different files, and for virtual machines from one
    snapshot, so start_all() checks that ranks reach their agents."""
    net = ""
    with contextlib.suppress(OSError):
        net = os.stat("/proc/self/ns/net").st_ino
    return f"{boot() or socket.gethostname()} {net} {_apart}"


def node_name(agent):
    """Return a node name that is valid in a configuration file."""
    host = re.sub("[^A-Za-z0-9_.-]", "-", socket.gethostname()[:20])
    return f"{host or 'node'}.{agent}"


def places(machines):
    """Return (agent number, ranks at this agent) for each rank."""
    places, at = [None] * len(machines), 0
    for each in dict.fromkeys(machines):
        ranks = [r for r, m in enumerate(machines) if m == each]
        for i in range(0, len(ranks), RANKS_PER_AGENT):
            here = ranks[i:i + RANKS_PER_AGENT]
            for rank in here:
                places[rank] = (at, here)
            at += 1
    return places


def lcores(homes, servers):
    """Return the number of cores on which each agent polls, and on which it
    sums.

    SUMWIRE_LCORES decides.  Without it, the result is 2 if there are several
    machines, if each has at least two cores more than ranks, and if
    SUMWIRE_SERVERS is not set; otherwise 1.  homes: (machine, number of usable
    cores) of each rank."""
    text = os.environ.get("SUMWIRE_LCORES")
    if text is None:
        machines = [m for m, _ in homes]
        spare = min(n - machines.count(m) for m, n in homes)
        is_wide = len(set(machines)) > 1 and spare >= 2 and not servers
        return 2 if is_wide else 1
    if text.isdigit() and 1 <= int(text) <= LCORES_MAX:
        return int(text)
    raise SumwireError("SW_ECONF", f"SUMWIRE_LCORES={text}: expected a number "
                       f"of polling cores, 1 to {LCORES_MAX}")


def dead_seconds(timeout_s):
    """Return the silence after which a machine counts as dead: the group's
    timeout, if the user has set one."""
    if timeout_s == c10d.default_pg_timeout.total_seconds():
        return DEAD_S
    return min(max(DEAD_MIN_S, math.ceil(timeout_s)), DEAD_MAX_S)


def payload():
    """Return the most bytes of a tensor in one frame, from SUMWIRE_PAYLOAD; 0:
    as MTUs and paths allow."""
    text = os.environ.get("SUMWIRE_PAYLOAD", "0")
    n = int(text) if re.fullmatch(r"\d{1,4}", text) else -1
    if n == 0 or PAYLOAD_MIN <= n <= PAYLOAD_MAX and n % PAYLOAD_UNIT == 0:
        return n
    raise SumwireError(
        "SW_ECONF", f"SUMWIRE_PAYLOAD={text}: expected 0 (as large as the MTU "
        f"allows) or a multiple of {PAYLOAD_UNIT} bytes from {PAYLOAD_MIN} to "
        f"{PAYLOAD_MAX}")


def ports(n_lcores):
    """Return (first, last) of the UDP ports for agents, from SUMWIRE_PORTS."""
    text = os.environ.get("SUMWIRE_PORTS")
    if text is None:
        return PORTS[0], PORTS[-1]
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    first, last = map(int, found.groups()) if found else (0, 0)
    if not 0 < first <= last < 1 << 16:
        raise SumwireError("SW_ECONF", f"SUMWIRE_PORTS={text}: expected "
                           f"FIRST-LAST between 1 and 65535, such as "
                           f"21000-21015")
    if last - first + 1 < 2 * n_lcores:
        raise SumwireError(
            "SW_ECONF", f"SUMWIRE_PORTS={text} has {last - first + 1} ports: an "
            f"agent that polls on {n_lcores} core{'s' * (n_lcores > 1)} needs "
            f"at least {2 * n_lcores}")
    return first, last


def free_port(ip, n, span):
    """Return the first of n consecutive free ports at ip, chosen at random from
    span, which is (first, last).  Raise SumwireError if none is free."""
    first, last = span
    starts = range(first, last - n + 2)
    for port in random.sample(starts, min(TRIES, len(starts))):
        try:
            for p in range(port, port + n):
                with socket.socket(addresses.family(ip),
                                   socket.SOCK_DGRAM) as s:
                    s.bind((ip, p))
        except OSError:
            continue
        return port
    raise SumwireError("SW_EBUSY", f"found no {n} consecutive free UDP ports "
                       f"at {ip} in {first}-{last}: set another range in "
                       f"SUMWIRE_PORTS")


def is_left(folder):
    """Return True if a folder is stale: it is old, and no agent listens
    there."""
    found = os.lstat(folder)
    if (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or
            time.time() - found.st_mtime < STALE_S):
        return False
    for path in glob.glob(os.path.join(glob.escape(folder), "stats-*.sock")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.setblocking(False)
            try:
                s.connect(path)
            except (ConnectionRefusedError, FileNotFoundError):
                continue
            except BlockingIOError:
                pass
            return False
    return True


def sweep(parent):
    for folder in glob.glob(os.path.join(glob.escape(parent), FOLDER + "*")):
        with contextlib.suppress(OSError):
            if is_left(folder):
                shutil.rmtree(folder)


def scratch():
    """Return a name for an agent's folder.  A socket's path in it is short
    enough, and a configuration file can contain it.  The agent makes the
    folder, so a rank that is killed before leaves nothing behind."""
    parent = tempfile.gettempdir()
    if (len(os.fsencode(parent)) >= PARENT_MAX or not parent.isprintable() or
            set(parent) & set(" \"';#\\")):
        parent = "/tmp"
    sweep(parent)
    return os.path.join(parent, FOLDER + secrets.token_hex(4))


@contextlib.contextmanager
def blocked(signals):
    """Start processes of this thread with blocked signals, inside this context.
    """
    was = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, was)


def memory_file(name):
    try:
        return os.memfd_create(name)
    except OSError as e:
        raise SumwireError("SW_EIO", f"cannot create shared memory for the "
                           f"agent: memfd_create: {e.strerror}; does a seccomp "
                           f"filter deny it?") from None


def draw_key(servers):
    """Return the secret of a new job, on rank 0 for all ranks, as hexadecimal
    digits; "" if SUMWIRE_KEY_FILE gives each agent its secret, or if there are
    SUMWIRE_SERVERS, which cannot know a new one."""
    if servers or os.environ.get("SUMWIRE_KEY_FILE"):
        return ""
    return secrets.token_hex(KEY_BYTES)


def key_file(key):
    """Return a file with the secret, which only the agent inherits, or None for
    no secret.  It has no name, so nobody else can read it."""
    if not key:
        return None
    f = open(memory_file("job.key"), "wb", buffering=0)
    os.fchmod(f.fileno(), 0o600)
    f.write(key.encode() + b"\n")
    return f


class Agent:
    """Start and end the agent of this rank.  key: the job's secret, or ""."""

    def __init__(self, conf, servers, key):
        self.folder = scratch()
        self.socket = os.path.join(self.folder, "agent.sock")
        self.log = Log()
        with contextlib.ExitStack() as stack:
            stack.callback(self.log.close)
            self.key = key_file(key)
            if self.key:
                stack.enter_context(self.key)
            ini = AGENT.format(
                folder=self.folder, socket=self.socket, level=level(),
                key_line=f"key_file = /dev/fd/{self.key.fileno()}\n"
                if self.key else "", **conf) + "".join(
                SERVER.format(i=i, ip=ip, udp_port=udp_port)
                for i, (ip, udp_port) in enumerate(servers))
            self.process = self._start(ini.encode())

    def _start(self, ini):
        """Start the agent in a process group of its own, so that Ctrl-C reaches
        only the training."""
        with open(memory_file("agent.ini"), "wb", buffering=0) as f, \
                blocked(SIGNALS):
            f.write(ini)
            process = self._popen(f)
        with contextlib.suppress(OSError):  # may need a privilege
            os.setpriority(os.PRIO_PROCESS, process.pid, 0)
        return process

    def _popen(self, stdin):
        for apart in APART:
            try:
                return subprocess.Popen(
                    [library.command(), "agent", "--config", "/dev/stdin"],
                    stdin=stdin, stdout=self.log.fd, stderr=self.log.fd,
                    cwd="/", **apart, close_fds=True,
                    pass_fds=[self.key.fileno()] if self.key else [],
                    # The group determines its ranks.
                    env={**os.environ, "SUMWIRE_LAUNCHER": "none"})
            except OSError as e:
                if not apart or e.errno not in (errno.EPERM, errno.ENOSYS):
                    raise

    def wait_ready(self, until):
        while not os.path.exists(self.socket):
            is_late = time.monotonic() > until
            if is_late:
                self.process.send_signal(signal.SIGQUIT)
            if is_late or self.process.poll() is not None:
                raise SumwireError("SW_EIO", f"the agent of this machine did "
                                   f"not start: {self.reason()}")
            time.sleep(PAUSE_S)
        threading.Thread(target=self._await_end, daemon=True,
                         name="sumwire-agent").start()

    def _await_end(self):
        """Reap the agent.  If it was killed, remove its folder."""
        if self.process.wait():
            shutil.rmtree(self.folder, ignore_errors=True)

    def ready(self, limit_s, may_retry):
        """Wait until the agent listens, and return the path of its socket.
        Return None if another program took its port and a retry is allowed."""
        try:
            self.wait_ready(time.monotonic() + limit_s)
        except SumwireError as e:
            if may_retry and IN_USE in e.text:
                return None
            raise
        return self.socket

    def stop(self):
        """Kill the agent, which no rank uses yet, and remove its folder."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def reason(self):
        """Return the reason for the agent's end, on one line."""
        return ": ".join(filter(None, [self.how(), self.log.last()]))

    def how(self):
        """Return the signal or exit code with which the agent ended, as text."""
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            return "it still runs"
        if code < 0:
            return f"it was killed by {signal.Signals(-code).name}"
        return f"it ended with exit code {code}"


def job_name():
    """Return a job name that is unique for each start, also for restarts by
    torchrun."""
    run = re.sub(r"\W", "", os.environ.get("TORCHELASTIC_RUN_ID", "none"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return f"torch-{run[:RUN_BYTES]}-{attempt}-{secrets.token_hex(5)}"


def plan(homes, timeout_s):
    """Choose the job's name, servers, cores, ports, patience, payload and
    secret, on rank 0 for all ranks."""
    servers = appliances()
    n_lcores = lcores(homes, servers)
    return [job_name(), servers, n_lcores, ports(n_lcores),
            dead_seconds(timeout_s), payload(), draw_key(servers)]


class Layout:
    """Assign ranks to agents, and agents to the ranks that start them.  home:
    this rank's Home."""

    def __init__(self, home, open_s):
        self.home, self.me, self.open_s = home, home.me, open_s
        (self.job, self.servers, self.n_lcores, self.ports,
         self.dead_s, self.payload, self.key) = home.plan
        self.n_machines = len(set(home.machines))
        self.found = places(home.machines)
        self.agent, self.here = self.found[self.me]
        self.leaders = list(dict.fromkeys(ranks[0] for _, ranks in self.found))
        self.is_local = self.n_machines == 1 and all(
            addresses.is_loopback(ip) for ip, _ in self.servers)

    def ip(self):
        """Return the address of the agent that this rank starts."""
        if self.is_local or self.home.is_on_loopback:
            # each agent has a loopback address of its own
            return f"127.77.{self.agent // 250}.{self.agent % 250 + 1}"
        if len(self.leaders) > self.n_machines:
            raise SumwireError("SW_ECONF", f"more than {RANKS_PER_AGENT} ranks "
                               f"on one of several machines need several agents "
                               f"there: start them yourself, and name each "
                               f"rank's in SUMWIRE_AGENT")
        if self.n_machines == 1:
            return addresses.needed(addresses.own(self.servers[0][0]),
                                    self.servers[0][0])
        return self.home.ip()

    def divide(self, meeting, path):
        """Check that all ranks reach the agents' sockets, and return True if
        so.  If not, count the others as another machine of their own.  path:
        socket of this rank's agent."""
        def divided(missed):
            machines, ips, new = list(self.home.machines), [], {}
            for rank, (is_there, ip) in enumerate(missed):
                if not is_there:
                    leader = self.found[rank][1][0]
                    if leader not in new:
                        new[leader] = self.n_machines + len(ips)
                        ips.append(ip)
                    machines[rank] = new[leader]
            return machines, ips
        global _apart
        if len(self.leaders) == meeting.n:
            return True
        is_there = os.path.exists(path)
        machines, ips = meeting.exchange(
            lambda: (is_there, None if is_there else safely(
                lambda: addresses.own(self.home.host))), divided)
        if not is_there:
            _apart = f"{self.job} {machines[self.me]}"
        if ips:
            self.home.divide(machines, ips)
        return not ips

    def address(self):
        """Return the agent's address and the first of its ports."""
        ip = self.ip()
        return ip, free_port(ip, 2 * self.n_lcores, self.ports)

    def doubt(self, nodes):
        """Return a hint for agents that do not hear each other, or "" on one
        machine, where no firewall is between them."""
        if self.n_machines == 1 or self.home.is_on_loopback:
            return ""
        some = ", ".join(addresses.with_port(*node)
                         for node in nodes[:NODES_SHOWN])
        more = ", …" if len(nodes) > NODES_SHOWN else ""
        return (f"the agents listen at UDP {some}{more}; TCP between the hosts "
                f"works: does a firewall drop UDP? (SUMWIRE_PORTS sets the "
                f"ports)")

    def start(self, nodes):
        """Start this rank's agent; nodes: (address, port) of each agent."""
        ip, udp_port = nodes[self.agent]
        conf = {"name": node_name(self.agent),
                "job": self.job, "lcores": self.n_lcores, "agent": self.agent,
                "n": len(self.leaders), "n_local": len(self.here),
                "open_s": self.open_s, "dead_s": self.dead_s,
                "payload": self.payload, "ip": ip,
                "bits": 64 if ":" in ip else 8,
                "udp_port": udp_port}
        numa.warn_of_quota(len(self.here), self.n_lcores)
        gpus = [self.home.gpus[r] for r in self.here]
        with numa.bound(numa.cpus_near(numa.interface_of(ip), gpus)):
            return Agent(conf, [*self.servers, *nodes], self.key)


def start(meeting, home):
    """Start the agents. All ranks of a group call it, and one rank per agent
    starts the agent. Return the path of this rank's agent, this rank's local
    rank there, the agent's address, a function that describes its end, and a
    hint for agents that do not hear each other."""
    started, left = None, PORT_TRIES
    while not started:  # the last try raises its error
        layout = Layout(home, open_seconds(meeting.limit_s))
        left -= 1
        started = start_all(meeting, layout, left > 0)
    path, ip, how, nodes = started
    return (path, layout.here.index(meeting.me), ip, how,
            layout.doubt(nodes))


def start_all(meeting, layout, may_retry):
    """Start all agents once. Return (path of this rank's agent, its address, a
    function that describes its end, addresses of all agents). If another
    program took a port of any agent, or a rank does not reach its agent, stop
    all agents and return None."""
    is_leader = meeting.me == layout.here[0]
    mine = []

    def of_leaders(found):
        return [found[r] for r in layout.leaders]

    def run():
        mine.append(layout.start(nodes))
        return mine[0].ready(layout.open_s, may_retry)
    nodes = [tuple(node) for node in meeting.exchange(
        lambda: layout.address() if is_leader else None, of_leaders)]
    is_good = False
    try:
        paths = meeting.exchange(lambda: run() if is_leader else None,
                                 of_leaders)
        is_good = all(paths) and layout.divide(meeting, paths[layout.agent])
    finally:
        if mine and not is_good:
            mine[0].stop()
    if not is_good:
        return None
    starter = layout.here[0]
    how = mine[0].how if mine else lambda: (
        f"rank {starter} started it and prints its log")
    return paths[layout.agent], nodes[layout.agent][0], how, nodes
