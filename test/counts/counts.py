# counts.py - measure instructions by stage and compare them with the record
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")
PARTS = ("engine", "crc", "add", "copy", "port")
CHUNKS_PER_S = 1e9 / 8 / 8192  # at 1 Gb/s
READER = 0.01  # more than this share of a server's instructions is refused
RISE = 0.03  # more than this, and
SLACK = 2.0  # more than so many instructions of a chunk, is refused

HEAD = """\
# recorded - instructions of a chunk by stage: sumwire-lab engine --instructions
# SPDX-License-Identifier: BSD-3-Clause
#
# Written by: test/counts/run --renew.  One line: members, bytes of a tensor, stage;
# then, for each chunk of a member, instructions of the engine, of crc, add and copy,
# and of the wire's copies, in place of a port's; server_look: for a reader of the
# status.  localN/: N local ranks of a member;
# coll/, gather/: of all_reduces, all_gathers in place of tensors; keyed/: with tags in place of CRCs;
# encrypted/: so, and encrypted.
"""


def measure(build):
    """Return (compiler, {(members, bytes, stage): [instructions per chunk by part]})."""
    out = subprocess.run([os.path.join(build, "apps", "sumwire-lab"),
                          "engine", "--instructions", "--json"],
                         check=True, stdout=subprocess.PIPE).stdout
    found = json.loads(out)
    return found["compiler"], {
        (r["members"], r["size_bytes"],
         (f"local{r['local_ranks']}/" if r["local_ranks"] > 1 else "") +
         ("encrypted/" if r["is_encrypted"] else
          "keyed/" if r["is_keyed"] else "") +
         ("gather/" if r["is_gather"] else
          "coll/" if r["is_collective"] else "") + s["name"]):
        [round(s[p] / (s["units"] if s["name"] == "server_look" else r["chunks"]), 1)
         for p in PARTS]
        for r in found["results"] for s in r["stages"] if s["units"]}


def write(path, compiler, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEAD + f"compiler {compiler}\n")
        for (members, size, stage), values in rows.items():
            f.write(f"{members:2} {size:6} {stage:16}" +
                    "".join(f"{v:9.1f}" for v in values) + "\n")


def read(path):
    """Read a record; return the same as measure."""
    compiler, rows = "", {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if line.startswith("compiler "):
                compiler = line[len("compiler "):].strip()
            elif words and words[0] != "#":
                rows[int(words[0]), int(words[1]), words[2]] = \
                    [float(w) for w in words[3:]]
    return compiler, rows


def reader_shares(rows):
    """(members, bytes of a tensor, share) of the instructions of a server that folds
    1 Gb/s, which a reader of the status takes that asks each second."""
    for (members, size, stage), look in rows.items():
        if stage == "server_look":
            chunk = sum(sum(v[:-1]) for k, v in rows.items() if k[:2] == (members, size) and
                        k[2].startswith("server_") and k[2] != stage)
            yield members, size, sum(look[:-1]) / (chunk * CHUNKS_PER_S)


def changes(old, new):
    """Yield (name, old, new) for each figure that changed beyond the limits."""
    for key in sorted(old.keys() | new.keys()):
        before = old.get(key, [0.0] * len(PARTS))
        after = new.get(key, [0.0] * len(PARTS))
        for part, b, a in zip(PARTS, before, after):
            if abs(a - b) > SLACK and abs(a - b) > RISE * b:
                members, size, stage = key
                yield (f"{members} members, tensors of {size} bytes, "
                       f"{stage}, {part}", b, a)
