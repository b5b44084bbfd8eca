# laws_words.py - the law about the words that users and readers meet
# SPDX-License-Identifier: BSD-3-Clause
import ast
import os
import re

from tree import Fault

LIST = os.path.join(os.path.dirname(os.path.realpath(__file__)), "words.txt")
# What was measured stays as it was written on the day.
AS_WRITTEN = ("test/results/xeon", "test/results/epyc")
CODE_ROOMS = ["engine", "sum", "conf", "pmd", "apps"]
# Comments, characters and strings of C, whichever comes first.
C_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|"
                     r'"(?:\\.|[^"\\\n])*"', re.S)


def retired(part):
    """(pattern, the word to use, files where it may stay) of each line: of the
    texts' part of the list (0), or of the names' (1)."""
    with open(LIST, encoding="utf-8") as f:
        rows = f.read().split("[names]\n")[part].splitlines()
    for row in rows:
        if not row.strip() or row[0] == "#":
            continue
        # a pattern may have a | of its own: the last two separate
        pattern, instead, where = (part.strip() for part in row.rsplit("|", 2))
        edges = (r"(?<![a-z0-9])", r"(?![a-z0-9])") if part else (r"\b", r"\b")
        yield (re.compile(f"{edges[0]}(?:{pattern}){edges[1]}", re.I), instead,
               [] if where == "-" else where.replace(",", " ").split())


def texts_of_document(lines):
    """A document's lines, without code blocks and `code`."""
    is_fenced = False
    for i, line in enumerate(lines, 1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and not line.startswith("    "):
            yield i, re.sub(r"`[^`]*`", "`", line)


def texts_of_c(lines):
    """A C file's strings; neighbours that the compiler joins are one."""
    code = "\n".join(lines)
    text, start, end = "", 0, 0
    for m in C_TOKEN.finditer(code):
        if m[0][0] != '"':
            continue
        if text and code[end:m.start()].strip():
            yield code.count("\n", 0, start) + 1, text
            text = ""
        if not text:
            start = m.start()
        text, end = text + m[0][1:-1], m.end()
    if text:
        yield code.count("\n", 0, start) + 1, text


def texts_of_python(lines):
    """A Python file's strings, docstrings and parts of f-strings too."""
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def texts(tree, path):
    """(line, text) of what a user or reader of this file meets."""
    lines = tree.lines(path)
    if path.endswith(".md"):
        return texts_of_document(lines)
    if path.endswith(".py"):
        return texts_of_python(lines)
    if path.endswith((".c", ".h", ".def")):
        return texts_of_c(lines)
    return enumerate(lines, 1)


def law_words(tree):
    """no retired word (words.txt) in documents, help, logs and messages"""
    rows = list(retired(0))
    paths = tree.named(".md") + tree.named(
        ".c", ".h", ".def", ".py", ".1.in", ".ini", rooms=CODE_ROOMS)
    for path in paths:
        if path.startswith(AS_WRITTEN):
            continue
        for line, text in texts(tree, path):
            text = " ".join(text.split())
            if " " not in text:  # a name, not a text
                continue
            for pattern, instead, where in rows:
                m = pattern.search(text)
                if m and path not in where:
                    yield Fault(path, line, f"“{m[0]}”: {instead}")


def law_identifiers(tree):
    """no retired word (words.txt, [names]) in C names and comments"""
    rows = list(retired(1))
    for path in tree.named(".c", ".h", ".def", rooms=CODE_ROOMS):
        for i, line in enumerate(tree.lines(path), 1):
            for pattern, instead, where in rows:
                m = pattern.search(line)
                if m and path not in where:
                    yield Fault(path, i, f"“{m[0]}”: {instead}")
