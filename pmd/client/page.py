# page.py - write sumwire(3) from the headers of libsumwire
# SPDX-License-Identifier: BSD-3-Clause
"""page.py VERSION HEADER... prints the page: what each header says at its begin, then its
declarations, each with the comment before it."""
import os
import re
import sys

COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
HEAD = """.\\" sumwire.3 - made from the headers of libsumwire
.TH SUMWIRE 3 "" "sumwire {version}"
.SH NAME
sumwire \\- sum tensors over all ranks of a job
.SH SYNOPSIS
.B #include <sumwire/sumwire.h>
.PP
.B cc \\fIprogram.c\\fP $(pkg\\-config \\-\\-cflags \\-\\-libs sumwire)
"""


def escaped(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    line = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in line)
    return "\\&" + line if line[:1] in (".", "'") else line


def told(comment):
    """A comment's text. Its lists keep their lines."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.split("\n")]
    for line in lines:
        if not line:
            yield ".PP"
        elif re.match(r"@|\s{2}|\d\. |[A-Z][a-z]+:( |$)|sw_\w+ - ", line):
            yield ".br"
            yield escaped(line.strip())
        else:
            yield escaped(line.strip())


def declared(code):
    """Whether a piece of a header belongs on the page."""
    return re.search(r"\bSW_API\b|^(struct|enum|static inline|#define SW_)", code, re.MULTILINE)


def page(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    about = COMMENT.search(text)
    said = about.group(1).split("\n *\n", 1)
    yield f".SH <sumwire/{os.path.basename(path)}>"
    yield from told(said[-1])
    for piece in re.split(r"\n\n(?=\S)", text[about.end():]):
        code = piece.strip()
        comment = COMMENT.match(code)
        if comment:
            code = code[comment.end():].strip()
        if not declared(code) or code.startswith(("#define SUMWIRE_", "#define SW_API")):
            continue
        names = re.findall(r"\b(sw_\w+)\(", code.split("{")[0]) or \
            re.findall(r"\b(?:struct|enum) (sw_\w+)|#define (\w+)", code)[:1]
        name = names[0] if names and isinstance(names[0], str) else "".join(names[0]) \
            if names else ""
        yield f".SS {name}"
        if comment:
            yield from told(comment.group(1).strip())
            yield ".PP"
        yield ".nf"
        yield from (escaped(line) for line in code.replace("SW_API ", "").split("\n"))
        yield ".fi"


def main():
    print(HEAD.format(version=sys.argv[1]), end="")
    for path in sys.argv[2:]:
        print("\n".join(page(path)))
    print(".SH SEE ALSO\n.BR sumwire (1),\n.BR sumwire.conf (5)")


if __name__ == "__main__":
    main()
