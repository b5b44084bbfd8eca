# rooms.py - the rooms of engine/, apps/ and pmd/: allowed uses, no cycles
# SPDX-License-Identifier: BSD-3-Clause
import os
import re

from laws_object import all_built, symbols_of
from tree import Fault

# Rooms that a room may include and call, besides itself.
MAY_USE = {
    "engine/base": "",
    "engine/keys": "sum",
    "engine/wire": "engine/base engine/keys sum",
    "engine/flow": "engine/base engine/wire",
    "engine/sched": "engine/base",
    "engine/sums": "engine/base engine/wire engine/sched sum",
    "engine/loop": "engine/base engine/wire",
    "engine/peer": "engine/base engine/wire engine/flow engine/sched "
                   "engine/keys",
    "engine/server": "engine/base engine/wire engine/flow engine/sched "
                     "engine/sums engine/loop engine/peer engine/keys "
                     "sum",
    "engine/worker": "engine/base engine/wire engine/flow engine/sched "
                     "engine/loop engine/peer engine/keys sum",
    "apps/cli": "",
    "apps/node": "apps/cli",
    "apps/launch": "apps/cli",
    "apps/bench": "apps/cli apps/launch",
    "apps/cost": "apps/cli",
    "apps/lab": "apps/cli apps/launch apps/topo",
    "apps/examples": "apps/cli apps/launch",
    "apps/topo": "apps/cli",
    "apps/watch": "apps/cli",
    "apps/trace": "apps/cli",
    "apps/doctor": "apps/cli",
}
# Public headers of a room; only tests may include its other headers from
# outside. A room has one, unless its users do different things with it: then
# each header names its users. engine/base and apps/cli are collections of small
# things, all of them public.
FRONTS = {
    "engine/keys": {
        "keyring.h": "daemons: the secrets that they hand over",
        "crypto.h": "daemons: random numbers, and memory for secrets",
        "noise.h": "engine/peer: the handshake",
        "seal.h": "engine/wire, engine/peer: tags of frames"},
    "engine/wire": {
        "frame.h": "ports: a frame, whatever it says",
        "wire.h": "both ends: what frames say",
        "coll.h": "streams: what they say of collectives",
        "cipher.h": "encrypted sessions: nonces of payloads"},
    "engine/flow": {
        "flow.h": "what comes and goes",
        "fanout.h": "the turns of many flows of one sender",
        "losses.h": "warnings of paths that lose many frames"},
    "engine/sched": {
        "sched.h": "what starts parts of tensors",
        "policy.h": "options and tuning: the numbers that it goes by",
        "place.h": "which server has which chunk",
        "order.h": "the numbers by which tensors go",
        "due.h": "who has something to send",
        "drr.h": "turns of jobs by weight"},
    "engine/sums": {"shard.h": ""},
    "engine/loop": {
        "loop.h": "daemons, which turn it",
        "engine.h": "server and worker, which are turned",
        "port.h": "pmd/, over which it turns"},
    "engine/peer": {
        "peer.h": "server and worker: sessions and links",
        "peer_view.h": "daemons: what is known of a path",
        "handshake.h": "those of keyed jobs, before they are open"},
    "engine/server": {"server.h": ""},
    "engine/worker": {"worker.h": ""},
    "pmd/client": {
        "edge.h": "pmd/host: messages and rings",
        "segment.h": "pmd/host, pmd/cuda: shared memory",
        "agent_error.h": "daemons: where an agent keeps its last error",
        "denied.h": "pmd/host: system calls that a filter denies",
        "huge.h": "pmd/host: addresses of huge pages",
        "client.h": "pmd/cuda: a client from inside of libsumwire",
        "client_coll.h": "pmd/cuda: collectives of a device",
        "client_device.h": "pmd/cuda: what a device needs of a client",
        "client_push.h": "pmd/cuda: tensors that grow",
        "rows.h": "pmd/cuda: what is copied of a piece",
        "sized.h": "pmd/cuda: structs of callers",
        "release.h": "pmd/nccl: a group at once out of use",
        "folder.h": "apps/node, pmd/host, pmd/nccl: where sockets lie",
        "user.h": "apps/node: who is trusted"},
    "pmd/client/tuner": {
        "tuner.h": "apps/lab: a search by rounds",
        "tune_search.h": "apps/lab: a search by points",
        "tune_live.h": "apps/lab: a search in a running job"},
    "pmd/cuda": {},
    "pmd/dpdk": {
        "eal.h": "DPDK's start and end, lcores",
        "port.h": "ports",
        "cpus.h": "which CPUs there are",
        "netif.h": "doctor: whose an address is",
        "udp_need.h": "doctor: the buffer of a socket",
        "raw.h": "bench: what to compare with",
        "telemetry.h": "daemons: commands of DPDK's telemetry"},
    "pmd/host": {
        "attach.h": "the agent: all of its clients",
        "bell.h": "what ends an lcore's sleep",
        "memory.h": "pages before they are used",
        "nodes.h": "NUMA nodes of memory",
        "daemons.h": "what a daemon says of itself, and who reads it",
        "feed.h": "daemons and trace: a stream for one reader",
        "http.h": "metrics: a text over HTTP",
        "machine.h": "topo: a machine's devices",
        "notify.h": "daemons: what systemd hears of them",
        "confine.h": "rights that a daemon gives up",
        "stale.h": "sockets that killed daemons left",
        "stats_serve.h": "daemons: their counters",
        "stats_read.h": "those of another process",
        "tell.h": "daemons: one text for each reader",
        "tcp_port.h": "run: a free TCP port"},
    "pmd/lcores": {"handoff.h": ""},
    "pmd/nccl": {},
    "apps/node": {},
    "apps/launch": {
        "crew.h": "those that start processes",
        "run.h": "those that start daemons and ranks"},
    "apps/bench": {},
    "apps/cost": {},
    "apps/lab": {
        "plan_sim.h": "figures: iterations at best",
        "tune.h": "figures: what a search costs",
        "array.h": "sim, figures: memory",
        "model.h": "sim: networks to train",
        "svg.h": "sim: plots"},
    "apps/examples": {},
    "apps/topo": {
        "plan_share.h": "apps/lab: shares of CPU and GPU machines",
        "topo.h": "apps/lab: plans of machines, for a figure"},
    "apps/watch": {},
    "apps/trace": {},
    "apps/doctor": {},
}
# The agent's threads: their files, and the threads whose headers they may
# include. agent.c and agent_mail.c start and connect the threads, so they may
# include all.
THREADS = {
    "several threads": ("agent_shared.c agent_shared.h agent_mail.h",
                        "agent_shared"),
    "control": ("agent_group.c agent_group.h agent_job.c agent_job.h",
                "agent_shared agent_mail agent_group agent_job"),
    "lcore 0": ("agent_core.c agent_core.h",
                "agent_shared agent_mail agent_core agent_lane"),
    "the other lcores": ("agent_lane.c agent_lane.h",
                         "agent_shared agent_lane"),
    "all": ("agent.c agent.h agent_mail.c", ""),
}


def room_of(path):
    """Return the room: "engine/wire"; "" for a folder without rooms."""
    room = "/".join(path.split("/")[:2])
    return room if room in MAY_USE else ""


def law_rooms(tree):
    """rooms include only rooms that they may use"""
    for path in tree.named(".c", ".h", rooms=["engine", "apps"]):
        room = room_of(path)
        top = path.split("/")[0]
        if not room:
            if path.count("/") > 1 and not path.startswith("apps/torch/"):
                yield Fault(path, 0, "in no room of test/lint/rooms.py")
            continue
        may = (room + " " + MAY_USE[room]).split()
        for line, kind, what in tree.includes(path):
            other = room_of(what) or what.split("/")[0]
            if kind == '"' and "/" in what and other not in may and (
                    other.startswith(top) or
                    (top == "engine" and other == "sum")):
                yield Fault(path, line, f"{room} must not use {other}")


def law_fronts(tree):
    """code outside a room includes its public headers only"""
    used = set()
    paths = [p for p in tree.named(".c", ".h") if not p.startswith("test/")]
    for path in paths:
        for line, kind, what in tree.includes(path):
            room, name = os.path.split(what)
            if kind != '"' or room not in FRONTS or \
                    os.path.dirname(path) == room:
                continue
            used.add(what)
            if name not in FRONTS[room]:
                yield Fault(path, line, f"{what} is its room's own")
    for room, headers in FRONTS.items():
        for name in headers:
            what = f"{room}/{name}"
            if what not in used and len(paths) > 300:  # in a complete tree
                yield Fault(what, 0, "is for nobody outside its room")


def law_threads(tree):
    """a thread of the agent includes no header of another thread's part"""
    owner = {f"apps/node/{name}": thread for thread, (names, _) in
             THREADS.items() for name in names.split()}
    for path in tree.named(".c", ".h", rooms=["apps"]):
        if not path.startswith("apps/node/agent"):
            continue
        thread = owner.get(path)
        if not thread:
            yield Fault(path, 0, "of no thread in THREADS of "
                        "test/lint/rooms.py")
            continue
        may = [f"apps/node/{name}.h" for name in THREADS[thread][1].split()]
        for line, _, what in tree.includes(path):
            if what.startswith("apps/node/agent") and may and what not in may:
                yield Fault(path, line, f"{what} is of another thread than "
                            f"{thread}")


# --- calls ---

def calls_of(tree):
    """Return {file: files whose symbols it uses} for all except sum/ and test/,
    and faults."""
    objects, faults = all_built(tree, "engine", "apps", "pmd", "conf")
    defines, uses = {}, {o.source: set() for o in objects}
    for o, line in symbols_of(objects, "-g"):
        if m := re.fullmatch(r"[0-9a-f]+ \w (\S+)", line):
            defines.setdefault(m[1], o.source)
        elif m := re.fullmatch(r"\s+[UwV] (\S+)", line):
            uses[o.source].add(m[1])
    return {source: {defines[n] for n in names if n in defines} - {source}
            for source, names in uses.items()}, faults


def circles(graph):
    """Return the strongly connected components with more than one file
    (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            i = stack.index(v)
            if len(stack) - i > 1:
                found.append(frozenset(stack[i:]))
            del stack[i:]

    for v in sorted(graph):
        if v not in index:
            visit(v)
    return found


def law_calls(tree):
    """files call no file that calls them, rooms no room that they may not use"""
    graph, faults = calls_of(tree)
    yield from faults
    for source, others in sorted(graph.items()):
        room = room_of(source)
        may = (room + " " + MAY_USE.get(room, "")).split()
        for other in sorted(others):
            if other.startswith(source.split("/")[0] + "/") and room and \
                    room_of(other) not in ["", *may]:
                yield Fault(source, 0, f"{room} must not call {other}")
    for found in circles(graph):
        yield Fault(min(found), 0, "calls go round: " + " ".join(
            sorted(found)))
