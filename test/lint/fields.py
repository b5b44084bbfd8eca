# fields.py - a room's structs: whose fields no other room names
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from laws_object import built
from tree import Fault

TOPS = ("engine", "apps", "pmd")

# Structs whose fields others name, by room, each row with its reason; "*": all.
# All others are their room's own: others embed, own and pass them.
OPEN = [
    ("engine/base", "sw_env sw_log sw_params", "given to an engine"),
    ("engine/base", "sw_stat_row", "names of counters"),
    ("engine/wire", "*", "what frames say"),
    ("engine/loop", "sw_engine sw_port sw_port_ops", "others implement them"),
    ("engine/peer", "sw_peer", "a session and a link are one each"),
    ("engine/sched", "sw_place sw_place_job sw_place_map",
     "where chunks are: plain results"),
    ("engine/sched", "sw_policy sw_job_tuning", "a policy and its numbers"),
    ("engine/sched", "sw_task", "who schedules fills it (CONTRIBUTING.md)"),
    ("engine/sums", "sw_begun sw_pushed sw_stensor_view", "answers"),
    ("engine/worker", "sw_worker_job sw_worker_round", "questions"),
    ("engine/worker", "sw_worker_view", "an answer"),
    ("pmd/client", "sw_submit sw_completion sw_edge_attach sw_edge_attached sw_edge_control "
     "sw_edge_coll sw_edge_place_at sw_edge_declare sw_edge_declared sw_edge_desc sw_edge_msg sw_edge_open sw_edge_request sw_edge_tune "
     "sw_edge_end sw_edge_free sw_edge_text "
     "sw_edge_tuning", "what agent and process say to each other"),
    ("pmd/client", "sw_tune_point sw_tune_space sw_tuner_settings",
     "questions and answers of the tuner"),
    ("pmd/client", "sw_call_device sw_client_part", "pmd/cuda fills them"),
    ("pmd/client", "sw_rows", "what is to be copied"),
    ("pmd/client", "sw_segment", "memory: where, how much, its descriptor"),
    ("pmd/client", "sw_tune sw_tune_live sw_tuner", "lab/ studies the tuner from inside"),
    ("pmd/dpdk", "sw_dpdk_params sw_dpdk_port_params "
     "sw_raw", "parameters"),
    ("pmd/host", "sw_host_coll sw_host_submit sw_host_tensor sw_host_tuning", "passed on"),
    ("pmd/host", "sw_numa_facts sw_numa_plan", "question and answer"),
    ("pmd/host", "sw_machine sw_machine_device sw_machine_numa_node "
     "sw_machine_switch", "an answer"),
    ("apps/cli", "sw_arg_list sw_args", "a command line"),
    ("apps/cli", "sw_quartiles", "three figures"),
    ("apps/cli", "sw_scratch", "its path"),
    ("apps/lab", "sw_plan_share", "an answer"),
    ("apps/launch", "sw_crew sw_net sw_proc sw_run",
     "what is to be started, and how it ended"),
]
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\s*\n[ \t]*#(?:\\\n|[^\n])*|"
                   r'"(?:\\.|[^"\\])*"|\w+|\s+|.', re.S)


def room_of(path):
    """ "engine/wire", "pmd/host"; "apps" for what lies there itself."""
    return os.path.dirname("/".join(path.split("/")[:3]))


def marked(text, room):
    """A header in which each field is deprecated, as room:struct."""
    out, stack, words, is_start = [], [], [], False
    for token in TOKEN.findall(text):
        is_code = not token.isspace() and \
            not token.lstrip().startswith(("/*", "//", "#"))
        if is_code and is_start and token != "}" and stack[-1] and token not in (
                "_Static_assert", "static_assert"):
            out.append(f'__attribute__((deprecated("{room}:{stack[-1]}"))) ')
        if is_code:
            is_start = False
        if token == "{":
            head = [w for w in words if w not in ("const", "static", "typedef")]
            outer = next((s for s in reversed(stack) if s), None)
            is_struct = head[:1] in (["struct"], ["union"]) and \
                all(re.fullmatch(r"\w+", w) for w in head)
            name = head[1] if is_struct and len(head) > 1 else "?"
            stack.append((outer or name) if is_struct else None)
            is_start = is_struct
            words = []
        elif token == "}":
            stack.pop()
            words = []
        elif token == ";":
            is_start = bool(stack and stack[-1])
            words = []
        elif is_code:
            words.append(token)
        out.append(token)
    return "".join(out)


def overlay_of(tree, folder):
    """Write the headers of all rooms to @folder, each field marked."""
    for path in tree.named(".h", ".def", rooms=TOPS):
        to = os.path.join(folder, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "w", encoding="utf-8") as f:
            text = "\n".join(tree.lines(path))
            f.write(marked(text, room_of(path)) if path.endswith(".h") else text)


USE = re.compile(r"^(\S+?):(\d+):\d+: warning: .(\w+). is deprecated: "
                 r"(\S+?):(\w+) \[", re.M)
WITH_VALUE = ("-o", "-MF", "-MQ", "-MT")


def uses_of(tree, o, overlay):
    """(file, line, field, room, struct) of each field that a file names, but
    for initialisers; a Fault if it does not compile."""
    args = [a for before, a in zip([""] + o.args, o.args)
            if before not in WITH_VALUE and a not in WITH_VALUE and
            a not in ("ccache", "-c", "-MD", "-MMD", "-Werror")]
    args[1:1] = ["-fsyntax-only", "-Wdeprecated-declarations", "-I" + overlay]
    args += ["-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]
    out = subprocess.run(args, cwd=o.folder, capture_output=True, text=True,
                         env={**os.environ, "LC_ALL": "C"}, check=False)
    if out.returncode:
        return Fault(o.source, 0, "not compiled: " + out.stderr[-300:])
    found = set()
    for at, line, field, room, struct in USE.findall(out.stderr):
        at = os.path.realpath(os.path.join(o.folder, at))
        top = overlay if at.startswith(overlay + "/") else tree.root
        found.add((os.path.relpath(at, top), int(line), field, room, struct))
    return found


def law_fields(tree):
    """a room's structs: no other room names their fields, but those in OPEN"""
    is_open = {(room, name) for room, names, _ in OPEN for name in names.split()}
    needed, objects = set(), []
    for o, fault in built(tree, *TOPS):
        if fault:
            yield fault
        else:
            objects.append(o)
    with tempfile.TemporaryDirectory() as folder:
        overlay = os.path.realpath(folder)
        overlay_of(tree, overlay)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda o: uses_of(tree, o, overlay), objects))
    yield from (f for f in found if isinstance(f, Fault))
    uses = set().union(*(f for f in found if not isinstance(f, Fault)))
    for path, line, field, room, struct in uses:
        rows = {(room, struct), (room, "*")}
        needed |= rows if room_of(path) != room else set()
        if room_of(path) != room and not rows & is_open:
            yield Fault(path, line, f"{field} of struct {struct}, which is "
                        f"{room}'s own")
    if len(objects) > 100:  # a whole build
        for room, struct in is_open - needed:
            yield Fault("test/lint/fields.py", 0, f"{room}: {struct} need not "
                        "be open any more")
