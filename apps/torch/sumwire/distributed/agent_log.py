# agent_log.py - where an agent that a rank has started writes its log
# SPDX-License-Identifier: BSD-3-Clause
import collections
import contextlib
import os
import re
import socket
import threading

from sumwire.client import SumwireError

LEVELS = {"warn": "warn", "info": "info", "trace": "debug"}
KEPT = 20  # lines
END_S = 1  # for the last lines of an agent that has ended


def level():
    """[log] level, by SUMWIRE_DEBUG; a log that is asked for is info."""
    default = "info" if os.environ.get("SUMWIRE_LOG") else "warn"
    text = os.environ.get("SUMWIRE_DEBUG") or default
    if text.lower() not in LEVELS:
        raise SumwireError("SW_ECONF", f"SUMWIRE_DEBUG={text}: warn, info or "
                           f"trace was expected")
    return LEVELS[text.lower()]


class Log:
    """fd is for the agent's stderr, until close().  SUMWIRE_LOG names a file, to
    which the agent appends by itself; with "stderr", or without that variable,
    a thread copies its lines to the stderr of this process."""

    def __init__(self):
        path = os.environ.get("SUMWIRE_LOG") or "stderr"
        self.lines, self.thread = collections.deque(maxlen=KEPT), None
        if path == "stderr":
            self.path = None
            read, self.fd = os.pipe()
            self.thread = threading.Thread(target=self._copy, args=[read],
                                           daemon=True, name="sumwire-log")
            self.thread.start()
            return
        self.path = path.replace("%h", socket.gethostname()).replace(
            "%p", str(os.getpid()))
        try:
            self.fd = os.open(self.path,
                              os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as e:
            raise SumwireError("SW_ECONF", f"SUMWIRE_LOG={path}: cannot open "
                               f"{self.path}: {e.strerror}") from None
        self.at = os.fstat(self.fd).st_size

    def close(self):
        """The agent has the descriptor."""
        os.close(self.fd)

    def _copy(self, read):
        with open(read, "rb") as f:
            for line in f:
                self.lines.append(line.decode(errors="replace"))
                with contextlib.suppress(OSError):
                    os.write(2, b"sumwire: agent: " + line)

    def _read(self):
        with contextlib.suppress(OSError), open(
                self.path, encoding="utf-8", errors="replace") as f:
            f.seek(self.at)
            self.lines.extend(f)

    def last(self):
        """What an agent that has ended said last, on one line: its errors, else
        what is worse than info."""
        if self.thread:
            self.thread.join(END_S)
        else:
            self._read()
        lines = [line.strip() for line in self.lines if not re.search(
            r"^\S+ (info|debug) ", line)]
        errors = [line for line in lines if " error " in line]
        return "; ".join([re.sub(r"^\S+ (error )?", "", line)
                          for line in errors or lines][-3:])
