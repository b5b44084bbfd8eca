#!/usr/bin/env python3
# selftest.py - plant a violation of each law in a copy, and check that the law finds it
# SPDX-License-Identifier: BSD-3-Clause
"""Each row copies one file of the checkout (with the headers) to a temporary
folder and checks it twice. Unchanged, the law must find only what `lint.py`
already reports; with the plant, one fault more, in that file."""
import json
import os
import shutil
import sys
import tempfile

import laws_commits
import laws_source
from hotpath import law_hotpath
from lint import LAWS
from tree import ROOMS, Tree, output_of

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
NOT_FAST = "-" + "ffast-math"  # split so that the law does not match this file
CFLAGS = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-fPIC"]


def after(text):
    """Return a plant: append @text to the file."""
    return lambda old: old + text + "\n"


def instead(old_part, new_part):
    """Return a plant: replace one part of the file."""
    def plant(old):
        assert old_part in old, f"the plant's place is gone: {old_part}"
        return old.replace(old_part, new_part, 1)
    return plant


with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as build_file:
    VERSION = laws_source.VERSION.search(build_file.read())[1]
LONG = "int sw_x(void);\nint sw_x(void)\n{\n" + "\t;\n" * 80 + "\treturn 0;\n}"
CORE = "\tsw_reserve_turn(c->reserve);\n"
TURN = "uint32_t sw_loop_turn(struct sw_loop *l, uint64_t now_ns)\n{\n"

# (law, file, plant).
TEXT_PLANTS = [
    ("includes", "engine/base/log.c", after("#include <rte_mbuf.h>")),
    ("includes", "engine/base/log.c", after("#include <iniparser/iniparser.h>")),
    ("includes", "pmd/dpdk/io.c", after("#include <sys/socket.h>")),
    ("includes", "pmd/client/edge.c", after("#include <rte_eal.h>")),
    ("includes", "conf/scan.c", after("#include <immintrin.h>")),
    ("includes", "apps/cli/args.c", after("#include <sys/mman.h>")),
    ("includes", "apps/cli/args.c", after("#include <cuda_runtime.h>")),
    ("includes", "sum/sum.c", after("#include <cmocka.h>")),
    ("includes", "sum/sum.c", after('#include "engine/base/log.h"')),
    ("includes", "engine/base/log.c", after('#include "pmd/client/edge.h"')),
    ("includes", "pmd/client/edge.c", after('#include "pmd/dpdk/port.h"')),
    ("includes", "pmd/client/edge.c", after('#include "apps/cli/args.h"')),
    ("fronts", "apps/cli/args.c", after('#include "pmd/dpdk/port_int.h"')),
    ("fronts", "apps/node/agent.c", after('#include "engine/worker/link.h"')),
    ("fronts", "apps/node/serve.c", after('#include "engine/server/server_int.h"')),
    ("fronts", "pmd/host/slot.c", after('#include "pmd/client/client_declare.h"')),
    ("fronts", "engine/server/job.c", after('#include "engine/sums/rules.h"')),
    ("threads", "apps/node/agent_group.c", after('#include "apps/node/agent_core.h"')),
    ("threads", "apps/node/agent_core.c", after('#include "apps/node/agent_job.h"')),
    ("threads", "apps/node/agent_lane.c", after('#include "apps/node/agent.h"')),
    ("threads", "apps/node/agent_mail.h", after('#include "apps/node/agent_group.h"')),
    ("rooms", "engine/base/log.c", after('#include "engine/wire/wire.h"')),
    ("rooms", "engine/server/job.c", after('#include "engine/worker/worker.h"')),
    ("rooms", "engine/loop/loop.c", after('#include "sum/sum.h"')),
    ("rooms", "apps/cli/args.c", after('#include "apps/node/daemon.h"')),
    ("fronts", "apps/lab/plan.c", after('#include "apps/launch/proc.h"')),
    ("processes", "apps/lab/plan.c", after("int t(void)\n{\n\treturn fork();\n}")),
    ("processes", "apps/topo/topo_read.c", instead("fork()", "-1")),
    ("wall", "pmd/nccl/progress.c", instead("CLOCK_MONOTONIC", "CLOCK_" + "REALTIME")),
    ("wall", "pmd/client/client.c", instead("setclock", "set")),
    ("wall", "pmd/client/client.c", instead("cond_timedwait", "cond_clockwait")),
    ("wall", "apps/cli/log.c", instead("CLOCK_" + "REALTIME", "CLOCK_MONOTONIC")),
    ("engine_text", "engine/base/log.c", after("#include <time.h>")),
    ("engine_text", "engine/base/log.c", after("#include <unistd.h>")),
    ("engine_text", "engine/base/bytes.h", after("#define T() __rdtsc()")),
    ("engine_text", "engine/base/log.c", after("#define T(w) w->stats.lost++")),
    ("engine_text", "engine/base/log.c", after("#define T(w, n) w->stats.lost = n")),
    ("engine_text", "engine/base/log.c", after("#define T(w) ++w->stats.lost;")),
    ("engine_text", "engine/base/log.c", after("#define T(counter) ++*counter;")),
    ("shared", "engine/server/share.c", after(
        "#define R(s) sw_word(&s->n_x)\n#define W(s) s->n_x++")),
    ("shared", "engine/server/server.c", after(
        "#define R(s) sw_word(&s->n_x)\n#define W(s) s->e.n_x = 0")),
    ("floats", "sum/meson.build", after(f"x = ['{NOT_FAST}']")),
    ("floats", "engine/base/log.c", after("#pragma STDC FP_" + "CONTRACT ON")),
    ("heads", "engine/base/log.c", instead("/* log.c - ", "/* ")),
    ("heads", "engine/base/log.c", instead(" * SPDX-", " * ")),
    ("heads", "engine/meson.build", instead(" - ", " ")),
    ("sizes", "engine/base/log.c", after(LONG)),
    ("blanks", "engine/base/log.c", after("int x; ")),
    ("blanks", "engine/base/log.c", after("")),
    ("blanks", "engine/base/log.c", lambda old: old[:-1]),
    ("blanks", "engine/base/log.c", lambda old: old.replace("\n", "\r\n")),
    ("version", "apps/meson.build", after(f"# {VERSION}")),
    ("version", "meson.build", instead(VERSION, "")),
    ("includes", "pmd/dpdk/io.c", after("#include <libmnl/libmnl.h>")),
    ("prose", "README.md", after("\nWhat is here is " + "told.")),
    ("prose", "README.md", after("\nIt is not read " + "any more.")),
    ("prose", "doc/why.md", after("\nIt is" + " long" * 40 + ".")),
    ("prose", "doc/why.md", after("\n" + "More is said. " * 400)),
    ("prose", "doc/why.md", after("\n| a" + " long" * 16 + " | cell |")),
    ("prose", "sum/README.md", after("\nx\n" * 40)),
    ("total", "README.md", after("\n" + "More is said. " * 20000)),
    ("figures", "PERFORMANCE.md", instead("| Zen 3 |", "| Zen 9 |")),
    ("figures", "PERFORMANCE.md", after("\nIt is 1.2345 times as fast.")),
    ("figures", "README.md", instead(" × gloo |", "0 × gloo |")),
    ("figures", "doc/figures/step.svg", instead("Zen 3", "Zen 9")),
    ("figures", "doc/measurements/zen3/groups-c39bef46.json", instead(
        '"commit"', '"comet"')),
    ("blocks", "doc/why.md", after("\n```\nls\n```")),
    ("blocks", "doc/why.md", after("\n```sh\nls\n```")),
    ("blocks", "doc/why.md", after("\n```sh needs=luck\nls\n```")),
    ("blocks", "doc/why.md", after("\n```c output\nint x;\n```")),
    ("blocks", "doc/why.md", after("\n    ls")),
    ("links", "README.md", after("[x](doc/nowhere" + ".md)")),
    ("links", "README.md", after("[x](#no-such-" + "heading)")),
    ("guards", "apps/node/log_lines.h", lambda old: old.replace(
        "SW_APPS_NODE_LOG_LINES_H", "SW_LINES_H")),
    ("guards", "apps/node/log_lines.h", instead(
        "#define SW_APPS_NODE_", "#define SW_NODE_")),
    ("guards", "pmd/client/sumwire/coll.h", instead("SUMWIRE_", "SW_")),
    ("public", "pmd/client/sumwire/sumwire.h", after("\nSW_API int sw_new(void);")),
]
if shutil.which("clang-format-14"):
    TEXT_PLANTS += [("format", "engine/base/error.h", after("int  sw_x( void );"))]
OBJECT_PLANTS = [
    ("globals", "engine/base/error.c", after("int sw_count;")),
    ("globals", "engine/base/error.c", after(
        "int sw_next(void);\nint sw_next(void)\n{\n\tstatic int n = 3;\n\n"
        "\treturn n++;\n}")),
    ("globals", "sum/dtype.h", after("_Thread_local int sw_t;")),
    ("names", "engine/base/error.c", after("int next(void);\nint next(void)\n"
                                      "{\n\treturn 0;\n}")),
    ("engine_imports", "engine/base/error.c", after(
        "#include <stdio.h>\nint sw_x(void);\nint sw_x(void)\n{\n"
        "\treturn getchar();\n}")),
    ("engine_imports", "engine/base/error.c", after(
        "long time(long *);\nlong sw_x(void);\nlong sw_x(void)\n{\n"
        "\treturn time(0);\n}")),
    ("fields", "engine/server/share.c", after(
        "int sw_x(struct sw_orders *o);\nint sw_x(struct sw_orders *o)\n"
        "{\n\treturn o->n_numbered != 0;\n}")),
    ("fields", "engine/server/share.c", after(
        "int sw_x(struct sw_drr *d);\nint sw_x(struct sw_drr *d)\n"
        "{\n\treturn d->deficit[0] != 0;\n}")),
    ("fields", "engine/worker/todo.c", instead(  # the first field of its header
        "sw_bitmap_first(&p->sets[SW_TODO])", "p->sets[SW_TODO].n_levels")),
    ("fields", "engine/peer/peer.c", instead(
        "= sw_flow_n_timeouts(&p->flow)", "= p->flow.n_timeouts")),
    ("fields", "pmd/host/lcore.c", instead(
        "sw_spsc_own(&p->submits)", "p->submits.own")),
    ("fields", "apps/node/poller.c", after(
        "int sw_x(struct sw_loop *l);\nint sw_x(struct sw_loop *l)\n"
        "{\n\treturn l->n_ports != 0;\n}")),
    ("gate", "pmd/dpdk/pci.c", after(
        '#if 0\n#include "pmd/dpdk/gate.h"\n#endif\nextern int sw_gates;\n'
        "int sw_x(void);\nint sw_x(void)\n{\n\treturn sw_gates;\n}")),
    ("hotpath", "engine/loop/loop.c", instead(
        TURN, "#include <stdlib.h>\n" + TURN + "\tfree(malloc(1));\n")),
    ("hotpath", "apps/node/serve.c", instead(
        CORE, CORE + '\tsw_log(&c->serve->daemon->log, SW_LOG_INFO, "x");\n')),
    ("hotpath", "apps/node/serve.c", instead(CORE, CORE + "\tfree(malloc(1));\n")),
    ("hotpath", "engine/loop/loop.c", instead(
        TURN, "#include <stdio.h>\nstatic int say(void)\n{\n"
        '\treturn puts("x");\n}\nstatic int (*const table[])(void) = {say};\n'
        + TURN + "\ttable[l->n_ports & 0]();\n")),
]


def compiled(root, source, flags=()):
    """Compile @source there; return the folder of its compile commands."""
    build = os.path.join(root, "build")
    os.makedirs(build, exist_ok=True)
    args = ["gcc", *CFLAGS, *flags, "-I" + root, "-o", "planted.o", "-c",
            os.path.join(root, source)]
    output_of(*args, cwd=build)
    with open(os.path.join(build, "compile_commands.json"), "w",
              encoding="utf-8") as f:
        json.dump([{"directory": build, "command": " ".join(args),
                    "file": os.path.join(root, source),
                    "output": "planted.o"}], f)
    return build


def copied(path, root):
    """Copy a file of the checkout to a folder."""
    to = os.path.join(root, path)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(os.path.join(ROOT, path), to)


def faults_of(law, path, root, is_object):
    """Return the faults of a law in @path of a temporary checkout."""
    build = None
    if is_object:
        source = path
        if path.endswith(".h"):
            source = "engine/planted.c"
            with open(os.path.join(root, source), "w", encoding="utf-8") as f:
                f.write(f'#include "{path}"\n')
        build = compiled(root, source)
        path = source
    tree = Tree(root, build)
    if law == "hotpath":
        found = law_hotpath(tree, roots=[("engine/loop/loop.c", "sw_loop_turn")],
                            lcore=[("apps/node/serve.c", "core_turn")])
    else:
        found = LAWS[law](tree)
    return {f for f in found if f.path == path}


def is_found(law, path, plant, is_object):
    """Does the law find a new fault after the plant?"""
    with tempfile.TemporaryDirectory() as root:
        if law == "figures":
            for file in Tree(ROOT).named("README.md", "PERFORMANCE.md", ".svg",
                                         ".json"):
                copied(file, root)
        if is_object:
            for header in Tree(ROOT).named(".h", ".def",
                                           rooms=ROOMS):
                copied(header, root)
        for file in {path, "meson.build", ".clang-format"}:
            copied(file, root)
        before = faults_of(law, path, root, is_object)
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = plant(f.read())
        with open(os.path.join(root, path), "w", encoding="utf-8",
                  newline="") as f:
            f.write(text)
        found = faults_of(law, path, root, is_object) - before
    return bool(found)


def is_contraction_found():
    """Does the law find sum/ compiled without the flag that forbids
    contraction?"""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "sum"))
        with open(os.path.join(root, "sum/x.c"), "w", encoding="utf-8") as f:
            f.write("int sw_x;\n")
        good = compiled(root, "sum/x.c", ["-ffp-contract=off"])
        if list(LAWS["floats"](Tree(root, good))):
            return False
        bad = compiled(root, "sum/x.c")
        return bool(list(LAWS["floats"](Tree(root, bad))))


# Commit subjects, and whether the law allows them.
SUBJECTS = [
    ("server: end a job whose last agent leaves", True),
    ("sums, host: correct two comments", True),
    ("server: end a job whose last agent leaves without a word at all", False),
    ("end a job whose last agent leaves", False),
    ("server: End a job whose last agent leaves", False),
    ("server: end a job whose last agent leaves.", False),
    ("server: ends a job whose last agent leaves", False),
    ("server: ending a job whose last agent leaves", False),
]


def is_subject_judged(subject, is_good):
    """Does the law judge a commit with @subject, after the first one of a
    repository, as expected?"""
    with tempfile.TemporaryDirectory() as root:
        git = ["git", "-C", root, "-c", "user.name=x", "-c", "user.email=x@x"]
        output_of(*git, "init", "-q")
        for text in ("Anything goes before the first one.", subject):
            output_of(*git, "commit", "-q", "--allow-empty", "-m", text)
        first = output_of(*git, "rev-parse", "HEAD~1").strip()
        found = list(laws_commits.law_commits(Tree(root), first))
        # Without that history the law must check nothing.
        shallow = list(laws_commits.law_commits(Tree(root), "0" * 40))
    return (not found) == is_good and not shallow


# Calls between files, and the number of faults that the law must find.
CALLS = [
    ({"engine/base/a.c": "b", "engine/base/b.c": "c", "engine/base/c.c": ""}, 0),
    ({"engine/base/a.c": "b", "engine/base/b.c": "c", "engine/base/c.c": "a"}, 1),
    ({"engine/base/a.c": "b", "engine/wire/b.c": ""}, 1),
    ({"apps/node/a.c": "b", "engine/wire/b.c": ""}, 0),
    ({"apps/cli/a.c": "b", "apps/node/b.c": ""}, 1),
    ({"pmd/host/a.c": "b", "pmd/host/b.c": ""}, 0),
    ({"pmd/host/a.c": "b", "pmd/host/b.c": "a"}, 1),
]


def are_calls_judged(calls, n_faults):
    """Does law_calls find the faults in files sw_a … that call one another?"""
    with tempfile.TemporaryDirectory() as root:
        entries = []
        for path, callee in calls.items():
            name = os.path.basename(path)[:-2]
            body = f"sw_{callee}();" if callee else ""
            os.makedirs(os.path.join(root, os.path.dirname(path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(f"void sw_{callee or name}(void);\n"
                        f"void sw_{name}(void);\n"
                        f"void sw_{name}(void) {{ {body} }}\n")
            build = compiled(root, path)
            with open(os.path.join(build, "compile_commands.json"),
                      encoding="utf-8") as f:
                entry = json.load(f)[0]
            os.rename(os.path.join(build, "planted.o"),
                      os.path.join(build, name + ".o"))
            entries.append(dict(entry, output=name + ".o"))
        with open(os.path.join(build, "compile_commands.json"), "w",
                  encoding="utf-8") as f:
            json.dump(entries, f)
        return len(list(LAWS["calls"](Tree(root, build)))) == n_faults


def main():
    results = [("calls", " ".join(calls), are_calls_judged(calls, n))
               for calls, n in CALLS]
    for plants, is_object in ((TEXT_PLANTS, False), (OBJECT_PLANTS, True)):
        for law, path, plant in plants:
            results.append((law, path, is_found(law, path, plant, is_object)))
    results.append(("floats", "sum/ without the flag", is_contraction_found()))
    results += [("commits", subject, is_subject_judged(subject, is_good))
                for subject, is_good in SUBJECTS]
    for law, path, ok in results:
        print(f"{'found ' if ok else 'MISSED'} {law:<16}{path}")
    n_ok = sum(ok for _, _, ok in results)
    unproven = set(LAWS) - {law for law, _, _ in results}
    for law in unproven if shutil.which("clang-format-14") else ():
        print(f"MISSED {law:<16}has no plant")
        results.append((law, "", False))
    print(f"{n_ok} passed, {len(results) - n_ok} failed")
    return 0 if n_ok == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
