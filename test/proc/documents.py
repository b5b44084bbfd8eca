# documents.py - run the commands of a document, as its reader would
# SPDX-License-Identifier: BSD-3-Clause
"""Helper of proc_documents and torch_documents. A document's commands run in
one shell, in a folder that looks like a checkout with a build; their files stay
there. test/support/markdown.py defines which blocks run."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import lan
import rig
from rig import check

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.append(os.path.join(ROOT, "test", "support"))
import markdown  # noqa: E402

LIMIT_S = 300  # for one document
HEAD = """\
set -e -o pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT
"""


def script_of(blocks, word):
    """Return (script, [expected]); the script prints a line "== I" before the
    output of block I."""
    script, expected = [HEAD], []
    for i, b in enumerate(blocks):
        name = markdown.file_of(b)
        if name:
            # Use bash alone, because the PATH may have no other programs.
            script.append(f"IFS= read -r -d '' text <<'END-OF-{i}' || true\n"
                          f"{b.text}END-OF-{i}\nprintf %s \"$text\" >{name}\n")
        elif b.lang == "sh" and word in b.words:
            expected.append("")
            script.append(f"echo == {len(expected) - 1}\n{b.text}")
        elif b.words == ["output"] and i and word in blocks[i - 1].words:
            expected[-1] = b.text
    return "".join(script), expected


def checkout(folder):
    """Fill a folder with the files that a reader has after the build."""
    for name in os.listdir(ROOT):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.symlink(os.path.abspath(rig.BUILD), os.path.join(folder, "build"))


def run(document, word, **env):
    """Run the blocks of a document that have this word; compare their output."""
    blocks = markdown.of_file(os.path.join(ROOT, document))
    script, expected = script_of(blocks, word)
    check(expected, f"{document} has no block to {word}")
    folder = tempfile.mkdtemp(prefix="sumwire-doc-", dir="/tmp")
    checkout(folder)
    p = rig.Process("commands", folder, [
        "env", "-C", folder, f"TMPDIR={folder}", "OMP_NUM_THREADS=1",
        *(f"{k}={v}" for k, v in env.items()),
        "bash", "-c", "exec 2>&1\n" + script])
    try:
        p.wait_ok(LIMIT_S)
        printed = re.split(r"^== \d+\n", p.out(), flags=re.M)[1:]
        check(len(printed) == len(expected), "a block is missing")
        for said, wanted in zip(printed, expected):
            line = markdown.missing(wanted, said)
            check(line is None, f"{document} promises “{line}”")
    finally:
        print(p.out())
        p.destroy()
        shutil.rmtree(folder)


def enter():
    """Enter namespaces of our own, without other daemons or their sockets."""
    lan.enter("-Urnm")
    lan.ip("link", "set", "dev", "lo", "up")
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)
