# laws_source.py - the laws about the text of the sources
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import shutil
import subprocess

from tree import Fault

C_FILES = (".c", ".h", ".def")

# --- one dependency, one folder ---

# Headers that only one folder may include. test/ may include all of them.
HOMES = [
    (r"rte_.*|dpdk/.*", ("pmd/dpdk/",), "DPDK"),
    (r"libmnl/.*|linux/rtnetlink\.h", ("pmd/dpdk/netif.c",), "rtnetlink"),
    (r"sys/(socket|un|mman|shm|eventfd|epoll)\.h|netinet/.*|arpa/inet\.h"
     r"|netdb\.h|net/.*|mqueue\.h", ("pmd/client/", "pmd/host/", "pmd/nccl/",
                                      "apps/doctor/"),  # probes without a port
     "sockets and shared memory"),
    (r"numa.*|hwloc.*", ("pmd/host/",), "topology"),
    (r"cuda.*|nvml.*", ("pmd/cuda/",), "CUDA"),
    (r"iniparser.*|dictionary\.h", ("conf/",), "iniparser"),
    (r"[a-z]*intrin\.h|cpuid\.h", ("sum/",), "intrinsics"),
    (r"microhttpd\.h", ("pmd/host/http.c",), "HTTP"),
    (r"openssl/.*", ("engine/keys/crypto.c",), "libcrypto"),
    (r"Python\.h|structmember\.h", ("apps/torch/",), "Python"),
    (r"cmocka.*", ("test/",), "cmocka"),
]
# Exceptions, each with its reason.
MAY_INCLUDE = {
    ("conf/option_parse.c", "arpa/inet.h"): "inet_pton: text to number, no I/O",
    ("pmd/dpdk/gate.c", "sys/mman.h"): "stands in for munmap",
    ("pmd/dpdk/pool.c", "sys/mman.h"): "madvise: frames are not dumped",
    ("pmd/dpdk/gate.c", "sys/eventfd.h"): "in place of memif's listener",
    ("pmd/dpdk/gate.c", "sys/un.h"): "finds memif's listener",
    ("pmd/dpdk/gate.c", "sys/socket.h"): "stands in for sendmsg and setsockopt",
    ("pmd/dpdk/memif.c", "sys/socket.h"): "who listens where it connects",
    ("pmd/dpdk/memif.c", "sys/un.h"): "who listens where it connects",
    ("pmd/dpdk/netif.c", "net/if.h"): "state of a port's interface, no I/O",
    ("pmd/dpdk/packet.c", "sys/socket.h"): "what a driver's sockets receive",
    ("pmd/dpdk/rights.c", "sys/socket.h"): "what socket() refuses, no I/O",
    ("pmd/dpdk/udp.c", "netinet/in.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp.c", "netinet/udp.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp.c", "sys/socket.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp_address.h", "netinet/in.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp_open.c", "netinet/in.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp_open.c", "netinet/udp.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/udp_open.c", "sys/socket.h"): "a port over the kernel's sockets",
    ("pmd/dpdk/raw.c", "sys/mman.h"): "tensors of the raw echo, huge pages",
    ("apps/lab/sim/arena.c", "sys/mman.h"): "tables of simulated engines, huge pages",
    ("conf/scan.c", "sys/mman.h"): "a file in memory for iniparser",
    ("engine/keys/crypto.c", "sys/mman.h"): "memory for secrets: locked, in no dump",
    ("sum/bench.c", "sys/mman.h"): "arrays of the kernel benchmark, huge pages",
}
# Rooms from which a room may include; pmd/dpdk and pmd/host exclude each other.
DOWNWARD = {
    "sum": ("sum",),
    "engine": ("engine", "sum"),
    "conf": ("conf", "engine"),
    "pmd/dpdk": ("pmd/dpdk", "engine", "sum"),
    "pmd/client": ("pmd/client", "engine", "sum"),
    "pmd/cuda": ("pmd/cuda", "pmd/client", "engine", "sum"),
    "pmd/host": ("pmd/host", "pmd/client", "engine", "sum"),
    "pmd/lcores": ("pmd/lcores", "engine"),
    "pmd/nccl": ("pmd/nccl", "pmd/client"),
    "apps": ("apps", "conf", "pmd/client", "pmd/dpdk", "pmd/host", "pmd/lcores",
             "engine", "sum"),
}

# Includes outside these rules, each with its reason.
MAY_POINT = {
    ("pmd/client/client.h", "conf/launch.h"):
        "one table of launchers' variables for libsumwire and the daemons",
}


def room_of(path):
    """Return the room of a path: "engine", "pmd/dpdk", …; test and others by
    their first folder."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "pmd" else parts[0]


def law_includes(tree):
    """one dependency, one folder; includes point down, never back"""
    for path in tree.named(*C_FILES):
        room = room_of(path)
        for line, kind, what in tree.includes(path):
            for pattern, homes, name in HOMES:
                if re.fullmatch(pattern, what) and not path.startswith(
                        (*homes, "test/")) and \
                        (path, what) not in MAY_INCLUDE:
                    yield Fault(path, line,
                                f"{what}: {name} only in {', '.join(homes)}")
            if kind == '"' and "/" in what and room in DOWNWARD and \
                    room_of(what) not in DOWNWARD[room] and \
                    (path, what) not in MAY_POINT:
                yield Fault(path, line, f"{room} must not include {what}")


# --- one version ---

VERSION = re.compile(r"project\('sumwire', .*\bversion: '([^']+)'")
MAY_SAY_VERSION = {
    "meson.build": "this is where it stands",
    "CHANGELOG.md": "what each version changed",
}


def law_version(tree):
    """the version stands in meson.build alone"""
    found = VERSION.search("\n".join(tree.lines("meson.build")))
    if not found:
        yield Fault("meson.build", 0, "says no version of project('sumwire')")
        return
    said = re.compile(r"(?<![\d.])" + re.escape(found[1]) + r"(?![\d.]*\d)")
    for path in tree.files:
        for i, line in enumerate(tree.lines(path), 1):
            if path not in MAY_SAY_VERSION and said.search(line):
                yield Fault(path, i, f"says the version {found[1]} too")


# --- the engine does no I/O and reads no clock ---

# stdio.h is for snprintf; law_engine_imports checks the functions that are
# used.
ENGINE_HEADERS = {"assert.h", "inttypes.h", "limits.h", "stdarg.h",
                  "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
                  "stdio.h", "stdlib.h", "string.h"}
# The only file that calls libcrypto: it computes, and gets locked memory.
ENGINE_LIBRARY = "engine/keys/crypto.c"
# The profiling build counts ticks around stages; no decision depends on them.
ENGINE_TICKS = "engine/base/ticks.h"
CLOCK = re.compile(r"\b(__builtin_ia32_rdtscp?|__rdtscp?|_rdtsc|asm|__asm__)\b")
# Other threads read counters: sw_count stores them as relaxed atomics.
COUNTED = re.compile(r"\b(st|stats)(->|\.)\w+\s*(\+\+|--|[-+|&]?=(?!=))|"
                     r"(\+\+|--)\s*[\w>.\-]*\b(st|stats)(->|\.)\w+\s*;|"
                     r"(\+\+|--)\s*\*\s*counter\b|"
                     r"\*\s*counter\b\)?\s*(\+\+|--|[-+|&]=)")
# The same holds for any word that another thread reads by sw_word.
READ = re.compile(r"\bsw_word\(\s*&[^;]*?(\w+)\s*\)\s*[^-.\w\s]")


def law_engine_text(tree):
    """engine/ includes only C17's headers, reads no clock, counts by sw_count"""
    for path in tree.named(*C_FILES, rooms=["engine"]):
        for line, kind, what in tree.includes(path):
            if kind == "<" and what not in ENGINE_HEADERS and path != ENGINE_LIBRARY:
                yield Fault(path, line, f"engine/ must not include <{what}>")
        for i, text in enumerate(tree.lines(path), 1):
            if CLOCK.search(text) and path != ENGINE_TICKS:
                yield Fault(path, i, "a clock or assembler in engine/")
            if COUNTED.search(text):
                yield Fault(path, i, "a counter not written by sw_count")


def law_shared(tree):
    """no thread writes plainly a word that another one reads by sw_word"""
    paths = tree.named(".c", ".h", rooms=["engine", "apps"])
    names = {name for path in paths
             for name in READ.findall("\n".join(tree.lines(path)))}
    plain = re.compile(rf"([\w>.-]*\w(->|\.)({'|'.join(sorted(names))}))"
                       r"\s*(\+\+|--|[-+|&]?=(?!=))")
    for path in paths if names else ():
        for i, text in enumerate(tree.lines(path), 1):
            m = plain.search(text)
            if m:
                yield Fault(path, i, f"{m[1]}: sw_word reads it, so sw_set_word"
                            " or sw_count must write it")


# --- processes ---

STARTS = re.compile(r"\b(v?fork|exec[lv]p?e?|posix_spawnp?|popen|system)\(")
# Files that start processes, and what they use of the supervisor, or why they
# need none: they start no daemon, forward no output and pass on no signal.
MAY_START = {
    "apps/launch/proc.c": "the supervisor",
    "apps/launch/run_all.c": "becomes a daemon or a rank, in the supervisor's",
    "apps/topo/topo_read.c": "hwloc may end the process: one call, its answer",
    "apps/bench/bench.c": "other ranks, while it is one itself, in work()",
    "apps/bench/bench_raw.c": "two sides that stand still between slices",
    "apps/doctor/patience.c": "a check that may wait in the kernel for ever",
    "apps/cost/cost_count.c": "one valgrind, whose output is a file",
}


def law_processes(tree):
    """processes are begun by the supervisor in apps/launch, or for a reason"""
    begun = set()
    for path in tree.named(".c", ".h"):
        for i, text in enumerate(tree.lines(path), 1):
            if path.startswith("test/") or not STARTS.search(text):
                continue
            begun.add(path)
            if path not in MAY_START:
                yield Fault(path, i, "only apps/launch begins processes")
    for path in set(MAY_START) & set(tree.files) - begun:
        yield Fault(path, 0, "begins no process: change MAY_START")


# --- waits go by a clock that nobody sets ---

WALL = re.compile(r"CLOCK_REALTIME|\btime\(NULL\)|\bgettimeofday\(|"
                  r"\bsem_timedwait\(|\bpthread_mutex_timedlock\(|"
                  r"\btime\.time\(|\bdatetime\.(utc)?now\(")
# Files that read the time of day, and why: to print it, never to limit a wait.
MAY_READ_TIME = {
    "apps/cli/find.c": "the age of a daemon, from the time that it began",
    "apps/cli/log.c": "the time in a log line",
    "apps/cli/rates.c": "the time of a row of figures",
    "apps/node/about.c": "the time at which the daemon began, to show",
    "apps/torch/quick.c": "times in the flight recorder, as torch has them",
    "apps/torch/sumwire/distributed/agents.py":
        "the age of a folder by its time of change; agents there are asked too",
    "apps/trace/capture.c": "times of captured frames, as pcap has them",
    "apps/watch/ras.c": "the time above a table",
    "apps/watch/top.c": "the time above a table",
}


def law_wall(tree):
    """no wait goes by the time of day, which may jump; some files show it"""
    read, files = set(), [path for path in tree.named(".c", ".h", ".py")
                          if not path.startswith("test/")]
    set_there = {os.path.dirname(path) for path in files
                 if any("setclock(" in text for text in tree.lines(path))}
    for path in files:
        for i, text in enumerate(tree.lines(path), 1):
            if "clockwait(" in text:
                yield Fault(path, i, "glibc 2.28 lacks it (wheels): set the "
                            "clock of a condition")
            if "pthread_cond_timedwait(" in text and (
                    os.path.dirname(path) not in set_there):
                yield Fault(path, i, "a condition by the time of day: set its "
                            "clock")
            if not WALL.search(text):
                continue
            read.add(path)
            if path not in MAY_READ_TIME:
                yield Fault(path, i, "the time of day jumps: CLOCK_MONOTONIC")
    for path in set(MAY_READ_TIME) & set(tree.files) - read:
        yield Fault(path, 0, "reads no time of day: change MAY_READ_TIME")


# --- floating point ---

# Split so that this file does not match itself.
FAST = re.compile(r"-" + r"ffast-math|-" + r"Ofast|-funsafe-" + r"math|"
                  r"-fassociative-" + r"math|FP_CONTRACT\s+ON|fast-" +
                  r"math['\"]\)")


def law_floats(tree):
    """no fast-math anywhere; sum/ is built without contraction"""
    for path in tree.files:
        if path.endswith((".md", ".csv")):
            continue
        for i, text in enumerate(tree.lines(path), 1):
            if FAST.search(text):
                yield Fault(path, i, "fast-math changes results")
    if not tree.build:
        return
    for o in tree.objects("sum"):
        last = [a for a in o.args if a.startswith("-ffp-contract")][-1:]
        if last != ["-ffp-contract=off"] and o.source.endswith(".c"):
            yield Fault(o.source, 0, "built without -ffp-contract=off")


# --- form ---

MAX, MAX_TEST = 60, 80  # lines of a function; in tests
MANY = 800  # lines of a file that are hard to follow
SPDX = "SPDX-License-Identifier: BSD-3-Clause"


def head_faults(tree, path):
    """Check that line 1 has the file's name and purpose, line 2 the licence."""
    lines = tree.lines(path)
    first = 1 if lines[0].startswith("#!") else 0
    name = os.path.basename(path)
    if not re.match(rf"(/\*|#) ([a-z./]+/)?{re.escape(name)}( [^-]*)? - \S",
                    (lines + [""])[first]):
        yield Fault(path, first + 1, f"the first line is not '{name} - its job'")
    if path.endswith(C_FILES + (".py", ".pml", ".sh")) and \
            SPDX not in (lines + ["", ""])[first + 1]:
        yield Fault(path, first + 2, f"not '{SPDX}'")


def law_heads(tree):
    """line 1 of a file says its job, the next its licence"""
    for path in tree.named(*C_FILES, ".py", ".pml", ".sh", "meson.build"):
        yield from head_faults(tree, path)


def law_sizes(tree):
    """functions of at most 60 lines, in tests 80; warns of files over 800"""
    for path in tree.named(*C_FILES, ".py", ".pml"):
        lines = tree.lines(path)
        most = MAX_TEST if path.startswith("test/") else MAX
        if len(lines) - 1 > MANY:
            print(f"warning: {path} has {len(lines) - 1} lines")
        start = 0
        for i, text in enumerate(lines, 1) if path.endswith(C_FILES) else ():
            if text == "{":
                start = i
            elif text == "}" and start:
                if i - start + 1 > most:
                    yield Fault(path, start, f"a function of {i - start + 1} "
                                f"lines, more than {most}")
                start = 0


def law_blanks(tree):
    """no trailing blanks, no CR, one end of line at the end of a file"""
    for path in tree.files:
        if path.endswith((".csv", ".gz", ".png")):
            continue
        lines = tree.lines(path)
        for i, text in enumerate(lines, 1):
            if text != text.rstrip():
                yield Fault(path, i, "trailing blank")
            if path.endswith(".py") and "\t" in text:
                yield Fault(path, i, "a tab in Python")
        if lines != [""] and (lines[-1] or lines[-2:] == ["", ""]):
            yield Fault(path, len(lines), "not exactly one newline at the end")


def guard_of(path):
    """Return the include guard of a header: SW_ and its path. A header of
    libsumwire has the path in a program's include: SUMWIRE_COLL_H."""
    path = path.removesuffix(".in")
    public = path.removeprefix("pmd/client/sumwire/")
    name = "SW_" + path if public == path else "sumwire/" + public
    return re.sub(r"\W", "_", name).upper()


def law_guards(tree):
    """a header's include guard is its path, so no two headers share one"""
    for path in tree.named(".h", ".h.in"):
        if path.endswith(".inc.h"):  # may be included several times
            continue
        guard, lines = guard_of(path), tree.lines(path)
        first = next((i for i, text in enumerate(lines)
                      if text.startswith("#")), 0)
        if lines[first:first + 2] != [f"#ifndef {guard}", f"#define {guard}"]:
            yield Fault(path, first + 1, f"the include guard is not {guard}")


def law_format(tree):
    """C files are as clang-format-14 leaves them"""
    tool = shutil.which("clang-format-14")
    if not tool:
        print("  clang-format-14 is missing: not looked at")
        return
    paths, faulty = tree.named(".c", ".h"), {}
    for i in range(0, len(paths), 64):
        out = subprocess.run(
            [tool, "--dry-run", "-Werror", *paths[i:i + 64]],
            cwd=tree.root, capture_output=True, text=True, check=False)
        for m in re.finditer(r"^(\S+?):(\d+):\d+: error", out.stderr, re.M):
            faulty.setdefault(m[1], int(m[2]))
        if out.returncode and not faulty:
            faulty[paths[i]] = 0
    for path, line in faulty.items():
        yield Fault(path, line, "run clang-format-14 -i on it")


def law_public(tree):
    """each SW_API prototype, or group of them, has a comment before it"""
    for path in tree.named(".h"):
        lines, is_said = tree.lines(path), False
        for i, text in enumerate(lines, 1):
            if text.startswith("SW_API ") and not is_said:
                yield Fault(path, i, "a public prototype without a comment")
            is_said = text.rstrip().endswith("*/") or is_said and text != ""
