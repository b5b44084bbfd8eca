# hotpath.py - the packet path calls no allocation, system call, lock or log
# SPDX-License-Identifier: BSD-3-Clause
"""The engine, the kernels and the ports are compiled once more to assembler,
without inlining, so that each function appears by name. The walk starts at the
functions that each turn of an lcore enters. A symbol is reached if a reached
function calls it or takes its address. So the walk follows callbacks and tables
of functions; pointers set elsewhere are roots of their own. Reaching a
forbidden function is a fault, unless the path goes through a function named in
OFF_PATH."""
import os
import re
from collections import defaultdict, deque

import compiles
from tree import Fault

ROOMS = ("engine", "sum", "pmd")
# It allocates when a session begins or ends: contexts of libcrypto, and keys.
KEYS = "engine/keys/"

# (file, function): the functions that a turn of an lcore enters.
ROOTS = [
    ("engine/loop/loop.c", "sw_loop_turn"),
    ("pmd/lcores/handoff.c", "other_rx"),
    ("pmd/lcores/handoff.c", "other_tx"),
    ("pmd/lcores/handoff.c", "port_ops"),
    ("pmd/lcores/handoff.c", "loopback_ops"),
    ("engine/worker/worker.c", "sw_worker_take"),
    ("engine/server/server_rx.c", "sw_server_rx"),
    ("engine/server/server.c", "on_tick"),
    ("engine/server/server_tx.c", "sw_server_tx"),
    ("engine/worker/worker.c", "rx"),
    ("engine/worker/worker.c", "tick"),
    ("engine/worker/worker_tx.c", "sw_worker_tx"),
    ("engine/worker/round.c", "sw_tensor_kind"),
    ("engine/worker/group_end.c", "sw_stream_kind"),
    ("pmd/dpdk/io.c", "sw_dpdk_ops"),
    ("pmd/dpdk/udp.c", "sw_udp_ops"),
    ("pmd/host/lcore.c", "sw_host_complete"),
    ("pmd/host/lcore.c", "sw_host_explain"),
    ("pmd/host/lcore.c", "sw_host_take"),
    ("pmd/host/lcore.c", "sw_host_show_tuning"),
    ("sum/sum.c", "rows"),
]

# Calls that a turn may make, but not for packets of a running job.
OFF_PATH = {
    ("engine/server/admit.c", "sw_admit_join"): "a stranger; so many by source",
    ("engine/server/admit.c", "sw_pending_confirm"): "makes a session, opens a job",
    ("engine/server/admit_declare.c", "admit"): "admits tensors: all memory",
    ("engine/server/job.c", "sw_job_tell_waiting"): "a job that forms, seldom",
    ("engine/server/job.c", "sw_job_tune"): "other tuning for a job",
    ("engine/server/job.c", "number"): "the same, when all know the last",
    ("engine/worker/faults.c", "sw_lane_say"): "a line for a person",
    ("engine/worker/link.c", "bury"): "the end of a job, its server silent",
    ("engine/worker/tensors.c", "sw_link_on_declared"): "the coordinator's keys: all memory",
    ("engine/worker/link.c", "on_refused"): "the end of a job, with its reason",
    ("engine/worker/faults.c", "sw_tensor_kill"): "the end of a tensor, with its reason",
    ("engine/worker/link.c", "sw_link_on_handshake"): "before a job runs",
    ("engine/worker/link.c", "probe_again"): "before a job runs",
    ("engine/server/server_rx.c", "on_leave"): "the end of a session, perhaps of a job",
    ("engine/server/groups.c", "sw_group_end"):
        "the end of a tensor or group, with its reason",
    ("engine/server/job.c", "check_probed"): "a job begins",
    ("engine/server/server.c", "look_for_losses"): "every ten seconds",
    ("engine/worker/worker.c", "look_for_losses"): "every ten seconds",
    ("engine/server/admit_keys.c", "end_unconfirmed"): "the end of a member",
    ("engine/server/server.c", "bury"): "the end of a silent session",
    ("engine/server/job.c", "close_some"): "the end of a job",
    ("engine/worker/tensors.c", "sw_tensors_copy"): "declares: all memory",
    ("engine/worker/deaths.c", "miss"): "the end of what a rank that is gone was in",
    ("engine/worker/deaths.c", "why_gone"): "the same",
    ("engine/server/server_rx.c", "miss"): "the same, at a server",
    ("engine/server/job.c", "judge"): "the end of a job, or of its tensors",
    ("engine/worker/stall.c", "warn"): "once a stall has lasted 30 s",
    ("engine/worker/stall.c", "all_clear"): "the end of such a stall",
    ("engine/worker/faults.c", "kill_other"): "the end of a group",
    ("engine/server/groups.c", "sw_session_check_call"): "the same",
    ("engine/server/groups.c", "sw_session_differs"): "the same",
    ("engine/worker/probe.c", "sw_link_tick_probe"): "probes, before a job runs",
    ("engine/worker/probe.c", "fail"): "the end of a job, its path narrower",
    ("engine/worker/faults.c", "sw_worker_fail"):
        "the end of a job, with its reason",
    ("engine/worker/faults.c", "sw_worker_fail_for"): "the same",
    ("engine/worker/worker.c", "apply"): "the same, and joining",
    ("engine/worker/worker.c", "tick_joining"): "before a job runs",
    ("pmd/dpdk/udp.c", "read_one"): "a datagram of many frames, the kernel's",
    ("pmd/dpdk/udp.c", "write_joined"): "the same, to the kernel",
    ("pmd/client/edge.c", "sw_edge_bell_write"): "wakes a client that sleeps",
    ("pmd/host/lcore.c", "sw_host_evict"): "the end of a client that lies",
}

FORBIDDEN = re.compile(
    r"malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup|"
    r"rte_(malloc|zmalloc|calloc|realloc|free|memzone_\w+|log|vlog|"
    r"pktmbuf_pool_create\w*|eal_alarm_set)|"
    r"sw_log|v?s?n?f?d?printf|puts|fputs|putchar|fwrite|fflush|perror|syslog|"
    r"pthread_(mutex|cond|rwlock|spin)_\w+|mtx_\w+|cnd_\w+|sem_\w+|"
    r"syscall|read|write|p?poll|ppoll|select|epoll_\w+|send\w*|recv\w*|open|"
    r"close|ioctl|mmap|munmap|madvise|mprotect|futex|sched_yield|"
    r"(u|nano|clock_nano)?sleep|clock_gettime|gettimeofday|time|"
    r"exit|abort|kill|raise|getenv")

# Functions that an lcore runs, rarely or often; OFF_PATH does not apply to
# them.
LCORE = ROOTS + [
    ("apps/node/poller.c", "sw_poller_run"),
    ("apps/node/serve.c", "core_turn"),
    ("apps/node/serve.c", "first_turn"),
    ("apps/node/agent_core.c", "sw_agent_work"),
    ("apps/node/agent_core.c", "sw_agent_rest"),
    ("apps/node/agent_core.c", "sw_agent_nap"),
    ("apps/node/agent_core.c", "sw_agent_is_awaited"),
    ("apps/node/agent_core.c", "on_state"),
    ("apps/node/agent_core.c", "on_done"),
    ("apps/node/agent_core.c", "on_keep"),
    ("apps/node/agent_core.c", "on_failed"),
    ("apps/node/agent_core.c", "sw_agent_on_declared"),
    ("apps/node/agent_lane.c", "sw_agent_lane_work"),
    ("apps/node/agent_lane.c", "keep"),
    ("apps/node/reserve.c", "env_ready"),
    ("apps/node/reserve.c", "env_drop"),
    ("apps/node/reserve.c", "env_get"),
    ("apps/node/reserve.c", "env_put"),
    ("apps/node/log_lines.c", "put"),
    ("apps/node/daemon.c", "env_random"),
]

# Functions outside engine/ that may call sw_log: with an engine's environment
# it writes to a ring, which the control thread logs (apps/node/log_lines.h).
LINES = {
    ("apps/node/agent_core.c", "fail_join"): "an engine's environment",
}

NEVER = re.compile(
    r"malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup|"
    r"rte_(malloc|zmalloc|calloc|realloc|free|memzone_\w+|log|vlog|"
    r"pktmbuf_pool_create\w*)|mmap|munmap|madvise|mprotect|"
    r"v?d?f?printf|puts|fputs|putchar|fwrite|fflush|perror|syslog|"
    r"pthread_(mutex|cond|rwlock|spin)_\w+|mtx_\w+|cnd_\w+|sem_\w+|"
    r"exit|abort")

LABEL = re.compile(r"^([A-Za-z_][\w.$]*):")
SYMBOL = re.compile(r"(?<![%$\w.@])([A-Za-z_][\w.$]*)")
NOT_NAMES = {"PTR", "BYTE", "WORD", "DWORD", "QWORD"}


def references(text):
    """Return {label: symbols that its code or data names} of an assembler file."""
    edges, label = defaultdict(set), None
    for line in text.splitlines():
        m = LABEL.match(line)
        if m:
            label = m[1]
            edges[label]  # also add a function that names no symbol
            continue
        word = line.split("\t", 2)
        if label is None or len(word) < 3 or \
                word[1].startswith(".") and word[1] not in (".quad", ".long"):
            continue
        names = re.sub(r"@\w+", "", word[2])
        edges[label].update(SYMBOL.findall(names))
    return edges


class Graph:
    """References between symbols. A node is (file, name), or (None, name) for
    an import that no file of ours defines."""

    def __init__(self, compiled):
        self.edges = {}
        self.owner = {}
        self.cut = set()  # where the last walk stopped
        for c in compiled:
            source, text = c.object.source, c.assembler
            for name in re.findall(r"^\s*\.globl\s+(\S+)", text, re.M):
                self.owner[name] = source
            for name, names in references(text).items():
                self.edges[source, name] = names

    def resolve(self, source, name):
        if (source, name) in self.edges:
            return source, name
        return self.owner.get(name), name

    def walk(self, roots, cuts):
        """Return every node reached from @roots, with its predecessor; do not
        walk past @cuts."""
        self.cut = set()
        came_from = {r: None for r in roots}
        todo = deque(roots)
        while todo:
            node = todo.popleft()
            for name in self.edges.get(node, ()):
                to = self.resolve(node[0], name)
                if to in cuts:
                    self.cut.add(to)
                elif to not in came_from:
                    came_from[to] = node
                    todo.append(to)
        return came_from


def way(came_from, node):
    """Return the names from a root to @node."""
    names = []
    while node:
        names.append(node[1])
        node = came_from[node]
    return " > ".join(reversed(names))


def lcore_faults(graph, roots):
    """Return faults: symbols that an lcore must never reach, for memory, locks
    and stderr; sw_log except from an engine, or from LINES."""
    reached = graph.walk([r for r in roots if r in graph.edges], {})
    for (source, name), before in reached.items():
        if source is None and NEVER.fullmatch(name):
            yield Fault(before[0], 0, f"an lcore reaches {name}: "
                        + way(reached, (source, name)))
    for source, name in reached:
        if source and not source.startswith("engine/") and \
                "sw_log" in graph.edges.get((source, name), ()) and \
                (source, name) not in LINES:
            yield Fault(source, 0, f"an lcore logs in {name}: "
                        + way(reached, (source, name)))


def law_hotpath(tree, roots=None, lcore=None):
    """the packet path reaches no allocation, system call, lock or log; an lcore
    no allocation, no lock, and no log but a ring"""
    compiled = compiles.of(tree, [
        o for o in tree.objects(*ROOMS, "apps")
        if os.path.exists(tree.abs(o.source)) and
        not o.source.startswith(KEYS) and
        (not o.source.startswith("apps/") or
         o.source.startswith("apps/node/"))])
    yield from (c.fault for c in compiled if c.fault)
    graph = Graph(compiled)
    wanted = [r for r in roots or ROOTS if r in graph.edges]
    every = [*(roots or ROOTS), *(lcore or (() if roots else LCORE))]
    for source, name in set(every) - set(graph.edges):
        if any(s == source for s, _ in graph.edges) or \
                source.startswith(("engine", "apps")):
            yield Fault(source, 0, f"no function {name}: put the packet "
                        "path's entries right in test/lint/hotpath.py")
    if lcore or not roots:
        yield from lcore_faults(graph, lcore or LCORE)
    reached = graph.walk(wanted, OFF_PATH)
    for (source, name), before in reached.items():
        if source is None and FORBIDDEN.fullmatch(name):
            yield Fault(before[0], 0, f"the packet path reaches {name}: "
                        + way(reached, (source, name)))
    for source, name in OFF_PATH.keys() - graph.cut if not roots else ():
        yield Fault("test/lint/hotpath.py", 0,
                    f"OFF_PATH: {source} {name} is not reached")
