# fields.py - a room's structs: which fields other rooms may name
# SPDX-License-Identifier: BSD-3-Clause
import functools
import os
import re

import compiles
from compiles import TOPS, room_of
from laws_object import all_built
from tree import Fault

# Structs with fields that other rooms may name, by room, each with its reason;
# "*": all. The fields of all other structs are private to their room; other
# rooms embed, own and pass the structs.
OPEN = [
    ("engine/base", "sw_env sw_log sw_params", "given to an engine"),
    ("engine/base", "sw_ip", "two numbers"),
    ("engine/base", "sw_stat_row sw_stat_times sw_histogram", "counters and their names"),
    ("engine/keys", "sw_secret sw_keyring sw_keyring_entry", "daemons fill them"),
    ("engine/keys", "sw_seal sw_taken", "a session's keys, and what it has taken"),
    ("engine/keys", "sw_result_keys sw_result_row", "a run's keys of results"),
    ("engine/wire", "*", "what frames say"),
    ("engine/loop", "sw_engine sw_port sw_port_ops", "others implement them"),
    ("engine/loop", "sw_engine_peer sw_engine_tensor", "answers"),
    ("engine/peer", "sw_peer", "a session and a link are one each"),
    ("engine/peer", "sw_peer_view", "an answer"),
    ("engine/sched", "sw_place sw_place_job sw_place_map",
     "where chunks are: plain results"),
    ("engine/sched", "sw_policy sw_job_tuning", "a policy and its numbers"),
    ("engine/sched", "sw_task", "who schedules fills it (CONTRIBUTING.md)"),
    ("engine/sums", "sw_begun sw_pushed sw_sgroup", "answers"),
    ("engine/sums", "sw_shard sw_stensor",
     "the server reads what was declared and counted"),
    ("engine/sums", "sw_shard_look sw_shard_wait", "a look that goes on"),
    ("engine/server", "sw_server_view sw_server_job sw_server_member "
                      "sw_server_wait", "what a daemon shows of it"),
    ("pmd/host", "sw_found_daemon sw_found_daemons sw_daemon_job "
                 "sw_daemon_member sw_daemon_wait sw_daemon_path sw_daemon_process "
                 "sw_daemon_port sw_daemon_core sw_daemon_group sw_daemon_session",
     "what a daemon says of itself"),
    ("engine/worker", "sw_worker_job sw_worker_round", "questions"),
    ("engine/worker", "sw_worker_path sw_worker_view sw_worker_wait sw_worker_waits "
                      "sw_worker_group", "answers"),
    ("engine/flow", "sw_flow_view sw_flow_losses", "answers"),
    ("pmd/client", "sw_submit sw_completion sw_edge_attach sw_edge_attached sw_edge_control "
     "sw_edge_coll sw_edge_place_at sw_edge_declare sw_edge_declared sw_edge_desc sw_edge_msg sw_edge_open sw_edge_request sw_edge_tune "
     "sw_edge_end sw_edge_free sw_edge_note sw_edge_text sw_edge_why "
     "sw_edge_tuning", "what agent and process say to each other"),
    ("pmd/client", "sw_tune_point sw_tune_space sw_tuner_settings",
     "questions and answers of the tuner"),
    ("pmd/client", "sw_call_device sw_client_part", "pmd/cuda fills them"),
    ("pmd/client", "sw_rows", "what is to be copied"),
    ("pmd/client", "sw_segment", "memory: where, how much, its descriptor"),
    ("pmd/client", "sw_tune sw_tune_live sw_tuner", "lab/ studies the tuner from inside"),
    ("pmd/dpdk", "sw_netif", "an answer"),
    ("pmd/dpdk", "sw_dpdk_params sw_dpdk_port_params "
     "sw_raw", "parameters"),
    ("pmd/host", "sw_host_coll sw_host_note sw_host_submit sw_host_tensor sw_host_tuning", "passed on"),
    ("pmd/host", "sw_confine", "parameters"),
    ("pmd/host", "sw_http_page", "an answer"),
    ("pmd/host", "sw_numa_facts sw_numa_plan", "question and answer"),
    ("pmd/host", "sw_machine sw_machine_device sw_machine_numa_node "
     "sw_machine_switch", "an answer"),
    ("apps/cli", "sw_arg_list sw_args", "a command line"),
    ("apps/cli", "sw_chrome", "its file, to which callers add"),
    ("apps/cli", "sw_counter", "a row of the tables"),
    ("apps/cli", "sw_pcapng_packet", "what a file says of a packet"),
    ("apps/cli", "sw_quartiles", "three figures"),
    ("apps/cli", "sw_trace_ask sw_trace_block sw_trace_event sw_trace_frame "
                 "sw_trace_hello sw_trace_name sw_trace_peer", "what a trace consists of"),
    ("apps/cli", "sw_scratch", "its path"),
    ("apps/topo", "sw_plan_share", "an answer"),
    ("apps/topo", "sw_topo_plan", "a question and its answer"),
    ("apps/topo", "sw_topo_choice", "an answer"),
    ("apps/launch", "sw_crew sw_net sw_proc sw_run",
     "what is to be started, and how it ended"),
]
USE = re.compile(r"^(\S+?):(\d+):\d+: warning: .(\w+). is deprecated: "
                 r"(\S+?):(\w+) \[", re.M)


@functools.lru_cache(maxsize=None)  # the same headers in each file's warnings
def named(at, headers, root):
    at = os.path.realpath(at)
    return os.path.relpath(at, headers if at.startswith(headers + "/") else root)


def uses_of(tree, c):
    """Return (file, line, field, room, struct) for each field that a compiled
    file names, except in initialisers."""
    found = set()
    for at, line, field, room, struct in USE.findall(c.warnings):
        at = named(os.path.join(c.object.folder, at), tree.compiles.headers, tree.root)
        found.add((at, int(line), field, room, struct))
    return found


def law_fields(tree):
    """a room's structs: no other room names their fields, but those in OPEN"""
    is_open = {(room, name) for room, names, _ in OPEN for name in names.split()}
    needed = set()
    objects, faults = all_built(tree, *TOPS)
    compiled = compiles.of(tree, objects)
    yield from faults + [c.fault for c in compiled if c.fault]
    uses = set().union(*(uses_of(tree, c) for c in compiled))
    for path, line, field, room, struct in uses:
        rows = {(room, struct), (room, "*")}
        needed |= rows if room_of(path) != room else set()
        if room_of(path) != room and not rows & is_open:
            yield Fault(path, line, f"{field} of struct {struct}, which is "
                        f"{room}'s own")
    if len(objects) > 100:  # only in a complete build
        for room, struct in is_open - needed:
            yield Fault("test/lint/fields.py", 0, f"{room}: {struct} need not "
                        "be open any more")
