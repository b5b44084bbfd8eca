# markdown.py - the code blocks of a document, and how each is tried
# SPDX-License-Identifier: BSD-3-Clause
"""The words behind a fence's language say what happens to a block:

    ```sh run          proc_documents runs it
    ```sh torch        torch_documents runs it, with PyTorch 2.4 or later
    ```sh wheel        torch_wheel does the same
    ```sh build        test/run does the same before any test
    ```sh needs=root   nobody runs it: it needs root, nic, gpu, network,
                       two-machines, torch-packages, systemd or slurm
    ```ini file=a.ini  is written to that file, for the commands behind it
    ```text output     the command before it prints these lines, in this order;
                       … stands for any text, alone on a line for any lines
    ```text            is only shown, as all other languages are

A run of commands is one shell: what a block exports, the next one has.
"""
import collections
import re

# lang: its language; words: what follows; line: of its first line of text
Block = collections.namedtuple("Block", "lang words text line")

RUNS = ("run", "torch")
DONE = ("wheel", "build")
NEEDS = ("root", "nic", "gpu", "network", "two-machines", "torch-packages",
         "systemd", "slurm")


def blocks(text):
    """Each fenced block of a document."""
    lines, opened = [], None
    for i, line in enumerate(text.split("\n"), 1):
        m = re.match(r"```(\S*)(.*)", line)
        if opened and line.startswith("```"):
            yield Block(*opened[:2], "".join(lines), opened[2])
            opened = None
        elif m:
            opened, lines = (m[1], m[2].split(), i + 1), []
        elif opened:
            lines.append(line + "\n")


def without_blocks(text):
    """The document's lines; those of blocks and comments are empty."""
    def emptied(m):
        return "\n" * m[0].count("\n")
    text = re.sub(r"^```.*?^```", emptied, text, flags=re.S | re.M)
    return re.sub(r"<!--.*?-->", emptied, text, flags=re.S).split("\n")


def of_file(path):
    with open(path, encoding="utf-8") as f:
        return list(blocks(f.read()))


def file_of(block):
    """The name under which it is written, None if it is not."""
    names = [w[5:] for w in block.words if w.startswith("file=")]
    return names[0] if names else None


def fault_of(block):
    """Return the fault of a block's words, None if they are good."""
    words = [w for w in block.words if not w.startswith("file=")]
    if not block.lang:
        return "a block has no language"
    if block.lang != "sh":
        if words and (block.lang, words) != ("text", ["output"]):
            return f"{block.lang} {' '.join(words)}: unknown words"
        return None
    needs = [w[6:] for w in words if w.startswith("needs=")]
    if len(words) == 1 and (words[0] in RUNS + DONE or
                            needs and needs[0] in NEEDS):
        return None
    return (f"sh {' '.join(words)}: one of {', '.join(RUNS + DONE)} or "
            f"needs=REASON is wanted")


def pattern_of(line):
    """A regular expression for a line of expected output.  It ends early, since
    programs side by side may print on one line (python -u under torchrun)."""
    return ".*?".join(re.escape(part.strip()) if part.strip() else ""
                      for part in line.split("…"))


def missing(expected, printed):
    """The first expected line that is not printed behind the one before it."""
    at = 0
    for line in filter(None, map(str.strip, expected.split("\n"))):
        m = re.compile(pattern_of(line)).search(printed, at)
        if not m:
            return line
        at = m.end()
    return None
