# compiles.py - compile every file once for the laws: its calls, its uses of fields
# SPDX-License-Identifier: BSD-3-Clause
"""Laws that ask the compiler share one pass over the files, without inlining.
Its assembler code names the functions that each function calls. Its warnings
name each use of a field, because all fields are deprecated in the headers that
it reads."""
import os
import re
import subprocess
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from tree import Fault

TOPS = ("engine", "apps", "pmd")

# One file: its assembler code and warnings, or the error that stopped the
# compiler.
Compiled = namedtuple("Compiled", "object assembler warnings fault")

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\s*\n[ \t]*#(?:\\\n|[^\n])*|"
                   r'"(?:\\.|[^"\\])*"|\w+|\s+|.', re.S)


def room_of(path):
    """Return the room of a path: "engine/wire", "pmd/host"; "apps" for files of
    apps/ itself."""
    return os.path.dirname("/".join(path.split("/")[:3]))


def marked(text, room):
    """Return a header in which each field is deprecated, as room:struct."""
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


def write_headers(tree, folder):
    """Write the headers of all rooms to @folder, each field marked."""
    for path in tree.named(".h", ".def", rooms=TOPS):
        to = os.path.join(folder, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "w", encoding="utf-8") as f:
            text = "\n".join(tree.lines(path))
            f.write(marked(text, room_of(path)) if path.endswith(".h") else text)


class Compiles:
    """The compiled files of a tree, by source, and the folder of its headers."""

    def __init__(self, tree):
        self.folder = tempfile.TemporaryDirectory()
        self.headers = os.path.realpath(self.folder.name)
        self.by_source = {}
        write_headers(tree, self.headers)


def compile_one(o, headers):
    args, skip = [], False
    for a in o.args:
        if skip or a in ("-o", "-MF", "-MQ", "-MT"):
            skip = not skip
        elif a not in ("ccache", "-c", "-MD", "-MMD", "-g") and \
                not re.match(r"-(O\d?|flto|Werror|fsanitize)", a):
            args.append(a)
    args[1:1] = ["-I" + headers]
    args += ["-O0", "-S", "-o", "-", "-fno-asynchronous-unwind-tables",
             "-Wdeprecated-declarations", "-fno-diagnostics-show-caret",
             "-fdiagnostics-color=never"]
    out = subprocess.run(args, cwd=o.folder, capture_output=True, text=True,
                         env={**os.environ, "LC_ALL": "C"}, check=False)
    fault = Fault(o.source, 0, "not compiled: " + out.stderr[-300:]) \
        if out.returncode else None
    return Compiled(o, out.stdout, out.stderr, fault)


def of(tree, objects):
    """Return Compiled for the .c files of @objects, one for each source."""
    if tree.compiles is None:
        tree.compiles = Compiles(tree)
    done = tree.compiles.by_source
    sources = {o.source: o for o in objects if o.source.endswith(".c")}
    missing = [o for source, o in sources.items() if source not in done]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for c in pool.map(lambda o: compile_one(o, tree.compiles.headers),
                          missing):
            done[c.object.source] = c
    return [done[source] for source in sources]
