# laws_commits.py - the law for commit subjects
# SPDX-License-Identifier: BSD-3-Clause
import re
import subprocess

from tree import Fault

# Commits after this one must obey the law; older ones are exempt.
FIRST = "eff3f8a87808e18ae2e27aa990fdfa4a7f26b262"
SUBJECT_MAX = 60  # characters
FORM = re.compile(r"[\w./+-]+(, [\w./+-]+)*: [^\sA-Z].*[^.\s]")
# A verb's third person, participle or past is no imperative.
NO_IMPERATIVE = re.compile(r"(?!(?:pass|process|miss|address|compress|discuss|"
                           r"suppress|bypass|focus|bring|need|feed|embed|seed|"
                           r"speed|exceed|shed|string|swing)\b)"
                           r"[a-z]+(?:ing|ed|[^s]s)\b")


def subjects(root, first):
    """Return (hash, subject) of each commit after @first; none without that
    history: an exported tree has no .git, and a shallow clone may lack @first.
    """
    git = ["git", "-c", "safe.directory=*", "-C", root]
    out = subprocess.run(
        [*git, "log", "--no-merges", "--format=%h %s", first + "..HEAD"],
        capture_output=True, text=True, check=False)
    if out.returncode:
        print(f"  no history behind {first[:8]}: not looked at")
        return
    for line in out.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        yield commit, subject


def subject_fault(subject):
    """Return the fault of a subject; None if it is good."""
    if len(subject) > SUBJECT_MAX:
        return f"{len(subject)} characters, not {SUBJECT_MAX}"
    if not FORM.fullmatch(subject):
        return "not “area: imperative”, in small letters, without a full stop"
    if NO_IMPERATIVE.match(subject.partition(": ")[2]):
        return "the verb is no imperative"
    return None


def law_commits(tree, first=FIRST):
    """subjects of commits: “area: imperative”, at most 60 characters"""
    for commit, subject in subjects(tree.root, first):
        fault = subject_fault(subject)
        if fault:
            yield Fault(commit, 0, f"“{subject}”: {fault}")
