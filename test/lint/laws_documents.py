# laws_documents.py - the laws about documents: sentences, words, links, figures
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import sys

from tree import Fault

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..",
                             "support"))
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..",
                             "..", "doc", "measurements"))
import figures  # noqa: E402
import markdown  # noqa: E402

# Word limit of each document, without code blocks.
DOCUMENTS = {
    "README.md": 1100,
    "doc/why.md": 1000,
    "doc/tutorial.md": 1200,
    "doc/pytorch.md": 2500,
    "doc/c-api.md": 1000,
    "doc/operations.md": 3120,
    "doc/observe.md": 1500,
    "doc/nics.md": 1000,
    "doc/lab.md": 2000,  # a tutorial for sim, figures, their accuracy and speed
    "doc/figures.md": 1500,  # generated; about 80 words per figure
    "doc/arithmetic.md": 250,
    "doc/ports.md": 500,
    "doc/lessons.md": 2500,
    "doc/threads.md": 1500,
    "ARCHITECTURE.md": 4000,
    "PROTOCOL.md": 12100,  # encryption
    "apps/torch/README.md": 500,
    "conf/README.md": 400,
    "pmd/client/README.md": 400,
    "engine/README.md": 500,
    "CONTRIBUTING.md": 1200,
    "pmd/host/README.md": 600,
    "pmd/dpdk/README.md": 400,
    "sum/README.md": 560,
    "engine/keys/README.md": 350,
    "pmd/cuda/README.md": 600,
    "pmd/lcores/README.md": 400,
    "pmd/README.md": 400,
    "pmd/nccl/README.md": 450,
    "test/README.md": 550,
    "test/conformance/README.md": 300,
    "test/sim/README.md": 550,
    "test/model/README.md": 550,
    "test/fuzz/README.md": 450,
    "test/lint/README.md": 550,
    "test/proc/README.md": 450,
    "test/torch/README.md": 350,
    "test/unit/README.md": 450,
    "test/counts/README.md": 450,
    "test/abi/README.md": 450,
    "test/cuda/README.md": 450,
    "test/topo/README.md": 450,
    "test/peers/README.md": 450,
    "apps/README.md": 450,
    "apps/lab/README.md": 300,
    "apps/examples/README.md": 400,
    "conf/models/README.md": 450,
    "SECURITY.md": 1220,
    "PERFORMANCE.md": 1810,  # small sums of PyTorch, bounds of DDP's steps
    "CHANGELOG.md": 425,
    "apps/examples/data/README.md": 150,
    "doc/measurements/README.md": 300,
}
GENERATED = ("doc/configuration.md", "doc/counters.md")
TOTAL = 47650  # limit for all documents, except generated ones
README_MAX = 40  # lines of a folder's README
SENTENCE_MAX = 40  # words
CELL_MAX = 15  # words of a table cell
STARTS = re.compile(
    r"(what|who|whoever|of|that|those|such|one that|so it is)\b(?!.*\?$)", re.I)
STARTS_WELL = re.compile(
    r"(of course|that is|such as|what (is|does|are|happens)\b.*\?)", re.I)
STATES = re.compile(
    r"\b(any more|no more|no longer|but for|as ever|is none|are none|"
    r"so that one|those that|that which)\b", re.I)
MARKS = "`*\"(@-"
# The end of a sentence: after its full stop, and closing marks.
END = re.compile(r"(?<=[.!?])(?:\*\*|[)\"])*\s+(?=[A-Z`*\"(\[])")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def written(tree):
    """Return the documents written by people."""
    return [path for path in tree.named(".md") if path not in GENERATED]


def words(text):
    return sum(bool(re.search(r"\w", w)) for w in text.split())


def paragraphs(lines):
    """Return (line, text) of each paragraph and list item; no tables or
    headings."""
    first, said = 0, []
    for i, line in enumerate(lines, 1):
        is_item = re.match(r"\s*([-*+]|\d+[.)])\s", line)
        is_apart = not line.strip() or line[0] in "#|>"
        if said and (is_item or is_apart):
            yield first, " ".join(said)
            said = []
        if not is_apart:
            first = first if said else i
            said.append(re.sub(r"^\s*([-*+]|\d+[.)])\s", "", line).strip())
    if said:
        yield first, " ".join(said)


def sentence_faults(sentence):
    bare = sentence.lstrip(MARKS)
    start = STARTS.match(bare)
    if start and not STARTS_WELL.match(bare):
        yield f"a sentence starts with “{start[0]}”: name the thing that acts"
    n = words(sentence)
    if n > SENTENCE_MAX:
        yield f"a sentence of {n} words, not {SENTENCE_MAX}: “{sentence[:50]}…”"
    state = STATES.search(sentence)
    if state:
        yield f"“{state[0]}”: say what is"


def cell_faults(line):
    for cell in line.strip("|").split("|") if line.startswith("|") else ():
        if words(cell) > CELL_MAX:
            yield f"a cell of {words(cell)} words, not {CELL_MAX}: “{cell[:40]}…”"


def law_prose(tree):
    """documents: starts and lengths of sentences, cells, words"""
    for path in written(tree):
        lines = markdown.without_blocks("\n".join(tree.lines(path)))
        for line, text in paragraphs(lines):
            for sentence in END.split(text):
                for fault in sentence_faults(sentence):
                    yield Fault(path, line, fault)
        for i, line in enumerate(lines, 1):
            for fault in cell_faults(line):
                yield Fault(path, i, fault)
        n = words(" ".join(lines))
        if path not in DOCUMENTS:
            yield Fault(path, 0, "DOCUMENTS of laws_documents.py lacks it")
        elif n > DOCUMENTS[path]:
            yield Fault(path, 0, f"{n} words, not {DOCUMENTS[path]}")
        if path.endswith("/README.md") and len(tree.lines(path)) - 1 > README_MAX:
            yield Fault(path, 0, f"{len(tree.lines(path)) - 1} lines, "
                        f"not {README_MAX}")


def law_total(tree):
    """all documents together: their words, except generated ones"""
    n = sum(words(" ".join(markdown.without_blocks("\n".join(tree.lines(path)))))
            for path in written(tree))
    if n > TOTAL:
        yield Fault("README.md", 0, f"all documents have {n} words, not {TOTAL}")


def law_blocks(tree):
    """each block of a document has a language, each command its test"""
    for path in written(tree):
        text = "\n".join(tree.lines(path))
        for block in markdown.blocks(text):
            fault = markdown.fault_of(block)
            if fault:
                yield Fault(path, block.line, fault)
        for i, line in enumerate(markdown.without_blocks(text), 1):
            if re.match(r" {4}\S|\t", line):
                yield Fault(path, i, "a block by indentation: use a fence")


def anchor(heading):
    """Return the anchor that a forge derives from a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(tree, path):
    lines = markdown.without_blocks("\n".join(tree.lines(path)))
    return {anchor(line.lstrip("#")) for line in lines if line.startswith("#")}


def law_links(tree):
    """links of all documents lead to a file, and to a heading, of the checkout"""
    for path in tree.named(".md"):
        lines = markdown.without_blocks("\n".join(tree.lines(path)))
        for i, line in enumerate(lines, 1):
            for target in LINK.findall(re.sub(r"`[^`]*`", "`", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, name = target.partition("#")
                to = os.path.normpath(os.path.join(
                    os.path.dirname(path), file)) if file else path
                if not os.path.exists(tree.abs(to)):
                    yield Fault(path, i, f"dead link to {to}")
                elif name and to.endswith(".md") and name not in anchors(tree, to):
                    yield Fault(path, i, f"{to} has no heading #{name}")


def law_figures(tree):
    """charts, tables and numbers about speed are those of doc/measurements/"""
    for path, line, text in figures.faults(tree.root):
        yield Fault(path, line, text)
