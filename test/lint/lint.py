#!/usr/bin/env python3
# lint.py - check the project's laws on a checkout and its build
# SPDX-License-Identifier: BSD-3-Clause
"""lint.py [--root DIR] [--build DIR] [LAW]...: all laws without one.

Faults are printed as file:line: text.  Laws about objects need a full build
and skip without --build.  The closing line counts laws.
"""
import argparse
import os
import shutil
import sys

import fields
import hotpath
import laws_commits
import laws_documents
import laws_object
import laws_source
import rooms
from tree import Tree

TEXT_LAWS = {
    "includes": laws_source.law_includes,
    "rooms": rooms.law_rooms,
    "fronts": rooms.law_fronts,
    "threads": rooms.law_threads,
    "engine_text": laws_source.law_engine_text,
    "shared": laws_source.law_shared,
    "floats": laws_source.law_floats,
    "heads": laws_source.law_heads,
    "sizes": laws_source.law_sizes,
    "blanks": laws_source.law_blanks,
    "guards": laws_source.law_guards,
    "format": laws_source.law_format,
    "version": laws_source.law_version,
    "processes": laws_source.law_processes,
    "wall": laws_source.law_wall,
    "public": laws_source.law_public,
    "prose": laws_documents.law_prose,
    "blocks": laws_documents.law_blocks,
    "links": laws_documents.law_links,
    "total": laws_documents.law_total,
    "figures": laws_documents.law_figures,
    "commits": laws_commits.law_commits,
}
OBJECT_LAWS = {
    "globals": laws_object.law_globals,
    "names": laws_object.law_names,
    "engine_imports": laws_object.law_engine_imports,
    "calls": rooms.law_calls,
    "fields": fields.law_fields,
    "gate": laws_object.law_gate,
    "hotpath": hotpath.law_hotpath,
}
LAWS = {**TEXT_LAWS, **OBJECT_LAWS}


def check(name, tree):
    """Print the faults of one law; return their number."""
    print(f"{name}: {LAWS[name].__doc__}")
    n = 0
    for n, f in enumerate(sorted(set(LAWS[name](tree))), 1):
        print(f"  {f.path}:{f.line}: {f.text}")
    return n


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser()
    p.add_argument("--root", default=os.path.join(here, "..", ".."))
    p.add_argument("--build")
    p.add_argument("laws", nargs="*")
    args = p.parse_args()
    names = args.laws or list(LAWS)
    unknown = [n for n in names if n not in LAWS]
    if unknown:
        p.error(f"no law {unknown[0]}; laws: {' '.join(LAWS)}")
    can_see = args.build and shutil.which("nm")
    seen = [n for n in names if n in TEXT_LAWS or can_see]
    if not seen:
        print("skipped: needs --build and binutils")
        return 77
    tree = Tree(args.root, args.build)
    bad = [n for n in seen if check(n, tree)]
    skipped = f", {len(names) - len(seen)} skipped" if seen != names else ""
    print(f"{len(seen) - len(bad)} passed, {len(bad)} failed{skipped}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
