# markdown.py - find the code blocks of a document and how tests run them
# SPDX-License-Identifier: BSD-3-Clause
"""The words after a fence's language say which test uses the block:

    ```sh run          proc_documents runs it
    ```sh torch        torch_documents runs it, with PyTorch 2.4 or later
    ```sh wheel        torch_wheel runs the same commands
    ```sh build        test/run runs the same commands before any test
    ```sh needs=root   no test runs it, because it needs root, nic, gpu, network,
                       two-machines, torch-packages, systemd or slurm
    ```ini file=a.ini  the test writes it to that file, for the commands below
    ```text output     the command above prints these lines, in this order;
                       … stands for any text, alone on a line for any lines
    ```text            no test uses it; the same holds for other languages

All commands of a document run in one shell: blocks see earlier exports.
"""
import collections
import re

# lang: the language; words: the words after it; line: number of the first line
# of text
Block = collections.namedtuple("Block", "lang words text line")

RUNS = ("run", "torch")
DONE = ("wheel", "build")
NEEDS = ("root", "nic", "gpu", "network", "two-machines", "torch-packages",
         "systemd", "slurm")


def blocks(text):
    """Yield each fenced block of a document."""
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
    """Return the document's lines, with blocks and comments emptied."""
    def emptied(m):
        return "\n" * m[0].count("\n")
    text = re.sub(r"^```.*?^```", emptied, text, flags=re.S | re.M)
    return re.sub(r"<!--.*?-->", emptied, text, flags=re.S).split("\n")


def of_file(path):
    with open(path, encoding="utf-8") as f:
        return list(blocks(f.read()))


def file_of(block):
    """Return the file name for the block, None if it names no file."""
    names = [w[5:] for w in block.words if w.startswith("file=")]
    return names[0] if names else None


def fault_of(block):
    """Return an error for the block's words, None if they are valid."""
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
    """Return a regular expression for a line of expected output.  It has no end
    anchor: parallel programs may print on one line (python -u under torchrun)."""
    return ".*?".join(re.escape(part.strip()) if part.strip() else ""
                      for part in line.split("…"))


def missing(expected, printed):
    """Return the first expected line that is not printed after its predecessor."""
    at = 0
    for line in filter(None, map(str.strip, expected.split("\n"))):
        m = re.compile(pattern_of(line)).search(printed, at)
        if not m:
            return line
        at = m.end()
    return None
