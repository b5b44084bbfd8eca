# laws_object.py - the laws about compiled objects
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import tempfile

from laws_source import ENGINE_LIBRARY
from tree import ROOMS, Fault, output_of


def built(tree, *rooms):
    """Return existing objects of @rooms; a fault in place of a missing one."""
    for o in tree.objects(*rooms):
        if os.path.exists(o.path):
            yield o, None
        else:
            yield o, Fault(o.source, 0, "not built: lint wants a full build")


def all_built(tree, *rooms):
    """Return existing objects of @rooms, and faults for missing ones."""
    pairs = list(built(tree, *rooms))
    return [o for o, fault in pairs if not fault], \
        [fault for _, fault in pairs if fault]


def symbols_of(objects, *options):
    """Return (object, line of nm) for each symbol of @objects, with one call of
    nm."""
    by_path = {o.path: o for o in objects}
    out = output_of("nm", "-A", *options, *by_path) if by_path else ""
    for line in out.splitlines():
        path, _, symbol = line.partition(":")
        yield by_path[path], symbol


# --- no writable globals ---

# Exceptions, each with its reason.
MAY_BE_GLOBAL = {
    ("pmd/dpdk/gate.c", "sw_gates"): "munmap() is called by the driver's own "
                                     "thread, which has no handle of ours",
    ("pmd/client/client.c", "error"): "per thread, as errno is: several may "
                                      "call at once",
    ("apps/torch/module.c", "module"): "Python writes its definition of a module",
    ("pmd/nccl/process.c", "process"): "version 8 of NCCL's interface has no "
                                       "context, and a process attaches once",
}
WRITABLE = re.compile(r"\.data(?!\.rel\.ro)|\.bss|\.tdata|\.tbss|\*COM\*")


def law_globals(tree):
    """no writable object outside a handle, static ones included"""
    objects, faults = all_built(tree, *ROOMS)
    yield from faults
    sources = {o.path: o.source for o in objects}
    source = None
    for line in output_of("objdump", "-t", *sources).splitlines():
        if ":     file format " in line:
            source = sources[line.partition(":     file format ")[0]]
        # Value, seven flags, section, size, name; O = object.
        m = re.match(r"[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+\s+(?:\.hidden )?"
                     r"(\S+)$", line)
        if m and "d" not in m[1] and WRITABLE.match(m[2]) and \
                (source, m[3]) not in MAY_BE_GLOBAL:
            yield Fault(source, 0, f"{m[3]} is writable ({m[2]})")


# --- names ---

MAY_BE_NAMED = {
    ("apps/main.c", "main"): "what libc calls",
    ("conf/page.c", "main"): "what libc calls",
    ("apps/main_lab.c", "main"): "what libc calls",
    ("apps/examples/all_reduce.c", "main"): "what libc calls",
    ("apps/examples/push_pull.c", "main"): "what libc calls",
    ("apps/examples/train.c", "main"): "what libc calls",
    ("apps/torch/module.c", "PyInit_quick"): "what Python looks for",
    ("pmd/nccl/versions.c", "ncclNetPlugin_v8"): "what NCCL looks for",
    ("pmd/nccl/versions.c", "ncclNetPlugin_v11"): "what NCCL looks for",
    ("pmd/nccl/versions.c", "ncclCollNetPlugin_v8"): "what NCCL looks for",
    ("pmd/nccl/versions.c", "ncclCollNetPlugin_v11"): "what NCCL looks for",
    ("pmd/dpdk/gate.c", "munmap"): "stands in for libc's",
    ("pmd/dpdk/gate.c", "sendmsg"): "stands in for libc's",
    ("pmd/dpdk/gate.c", "poll"): "stands in for libc's",
    ("pmd/dpdk/gate.c", "setsockopt"): "stands in for libc's",
}


def law_names(tree):
    """symbols that other files see begin with sw_"""
    objects, faults = all_built(tree, *ROOMS)
    yield from faults
    for o, line in symbols_of(objects, "-g", "--defined-only"):
        name = line.split()[-1]
        if not name.startswith("sw_") and \
                (o.source, name) not in MAY_BE_NAMED:
            yield Fault(o.source, 0, f"{name} does not begin with sw_")


# --- the gate is an option ---

GATE = "pmd/dpdk/gate.c"
GATE_SYMBOL = re.compile(r"sw_gates?(_\w+)?")


def law_gate(tree):
    """without -DSW_DPDK_GATE=1 nothing of gate.c is in an object or the program"""
    objects = list(tree.objects("pmd/dpdk"))
    program = os.path.join(tree.build, "apps", "sumwire")
    if not any(o.source == GATE for o in objects) and os.path.exists(program):
        stands_in = {name for source, name in MAY_BE_NAMED if source == GATE}
        out = output_of("nm", "--defined-only", program)
        for name in re.findall(r"^[0-9a-f]+ \w (\S+)$", out, re.M):
            if name in stands_in or GATE_SYMBOL.fullmatch(name):
                yield Fault(GATE, 0, f"{name} is in the program without gate")
    for o in objects:
        if o.source == GATE or "pmd/dpdk/gate.h" not in (
                what for _, _, what in tree.includes(o.source)):
            continue
        with tempfile.NamedTemporaryFile(suffix=".o") as out:
            args = [a for a in o.args if not a.startswith("-DSW_DPDK_GATE")]
            for option, to in ("-o", out.name), ("-MF", os.devnull):
                if option in args:
                    args[args.index(option) + 1] = to
            output_of(*args, "-DSW_DPDK_GATE=0", cwd=o.folder)
            symbols = output_of("nm", out.name)
        for name in re.findall(r" \w (\S+)$", symbols, re.M):
            if GATE_SYMBOL.fullmatch(name):
                yield Fault(o.source, 0, f"uses {name} without gate")


# --- the engine does no I/O and reads no clock ---

ENGINE_IMPORTS = {
    "aligned_alloc", "calloc", "free", "malloc",  # when a job is admitted
    "memchr", "memcmp", "memcpy", "memmove", "memset",
    "snprintf", "vsnprintf",  # text into the caller's memory
    "strcmp", "strlen", "strncmp", "strncpy", "strnlen", "strstr",
    "__assert_fail",  # for our own bugs, in debug builds
    "_GLOBAL_OFFSET_TABLE_",
}
# Symbols of the compiler: arithmetic, stack protector, sanitizers, checked
# libc.
COMPILER = re.compile(r"__(popcount|ctz|clz|u?div|u?mod|mul)\w*|__stack_chk.*|"
                      r"__(asan|ubsan|tsan|gcov|sanitizer)_.*|"
                      r"__(\w+)_chk")


def law_engine_imports(tree):
    """engine/'s objects import only sw_, plain memory and text; but for the one
    that calls libcrypto"""
    objects, faults = all_built(tree, "engine")
    objects = [o for o in objects if o.source != ENGINE_LIBRARY]
    yield from faults
    for o, line in symbols_of(objects, "-u"):
        name = line.split()[-1]
        plain = re.sub(r"^__(\w+)_chk$", r"\1", name)
        if not name.startswith("sw_") and plain not in ENGINE_IMPORTS and \
                not COMPILER.fullmatch(plain):
            yield Fault(o.source, 0, f"imports {name}")
