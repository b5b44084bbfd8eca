# tree.py - the input of lint: the files of a checkout and the objects of a build
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re
import shlex
import subprocess
from collections import namedtuple

# A broken law; line 0: the file as a whole.
Fault = namedtuple("Fault", "path line text")
# A compiled file: its path in the checkout, its object, its compile command.
Object = namedtuple("Object", "source path folder args")

ROOMS = ("engine", "sum", "conf", "pmd", "apps")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Tree:
    """A checkout at @root and, for laws about objects, its @build folder.

    Files are tracked by git or untracked and not ignored; without git (a
    tarball, a self-test) all files except build folders."""

    def __init__(self, root, build=None):
        self.root = os.path.realpath(root)
        self.build = build
        self.files = sorted(f for f in self._git_files() or self._all_files()
                            if os.path.isfile(self.abs(f)))
        self._lines = {}
        self.compiles = None  # set by compiles.py

    def _git_files(self):
        out = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co",
             "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True, check=False) \
            if os.path.exists(self.abs(".git")) else None
        return out.stdout.split("\n")[:-1] if out and not out.returncode else []

    def _all_files(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [d for d in folders
                          if d not in ("build", ".git", "__pycache__")]
            for f in files:
                yield os.path.relpath(os.path.join(folder, f), self.root)

    def abs(self, path):
        return os.path.join(self.root, path)

    def lines(self, path):
        """Return the lines of a file, without line ends."""
        if path not in self._lines:
            with open(self.abs(path), encoding="utf-8", errors="replace",
                      newline="") as f:
                self._lines[path] = f.read().split("\n")
        return self._lines[path]

    def named(self, *endings, rooms=None):
        """Return the files with one of these endings, in @rooms (folders) or
        anywhere."""
        return [f for f in self.files if f.endswith(endings) and (
            rooms is None or f.startswith(tuple(r + "/" for r in rooms)))]

    def includes(self, path):
        """Return (line, "<" or '"', name) of each include in a file."""
        for i, line in enumerate(self.lines(path), 1):
            m = INCLUDE.match(line)
            if m:
                yield i, m[1], m[2]

    def objects(self, *rooms):
        """Return the compiled files of @rooms, from the build's compile
        commands."""
        with open(os.path.join(self.build, "compile_commands.json"),
                  encoding="utf-8") as f:
            entries = json.load(f)
        for e in entries:
            folder = e["directory"]
            source = os.path.relpath(os.path.realpath(
                os.path.join(folder, e["file"])), self.root)
            if source.startswith(tuple(r + "/" for r in rooms)):
                yield Object(source, os.path.join(folder, e["output"]), folder,
                             shlex.split(e["command"]))


def output_of(*command, cwd=None):
    """Return stdout of a command that must succeed."""
    out = subprocess.run(command, cwd=cwd, capture_output=True, text=True,
                         check=False)
    if out.returncode:
        raise RuntimeError(" ".join(command[:3]) + " …: " + out.stderr[-500:])
    return out.stdout
