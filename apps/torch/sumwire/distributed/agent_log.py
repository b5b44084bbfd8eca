# agent_log.py - the log of an agent that a rank has started
# SPDX-License-Identifier: BSD-3-Clause
import collections
import contextlib
import os
import re
import socket
import threading

from sumwire.client import SumwireError

LEVELS = {"warn": "warn", "info": "info", "trace": "debug"}
KEPT = 20  # number of last lines to keep
END_S = 1  # time for the last lines of an agent that has ended


def level():
    """Return [log] level as SUMWIRE_DEBUG says.  The default is warn, or info
    if SUMWIRE_LOG is set."""
    default = "info" if os.environ.get("SUMWIRE_LOG") else "warn"
    text = os.environ.get("SUMWIRE_DEBUG") or default
    if text.lower() not in LEVELS:
        raise SumwireError("SW_ECONF", f"SUMWIRE_DEBUG={text}: expected warn, "
                           f"info or trace")
    return LEVELS[text.lower()]


class Log:
    """Provide fd, for the agent's stderr, until close().  If SUMWIRE_LOG names
    a file, the agent appends to the file itself.  If it is "stderr" or not set,
    a thread copies the agent's lines to the stderr of this process."""

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
        """Close this process's descriptor, after the agent has inherited it."""
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
        """Return the last messages of an agent that has ended, on one line: its
        errors, or else its warnings."""
        if self.thread:
            self.thread.join(END_S)
        else:
            self._read()
        lines = [line.strip() for line in self.lines if not re.search(
            r"^\S+ (info|debug) ", line)]
        errors = [line for line in lines if " error " in line]
        return "; ".join([re.sub(r"^\S+ (error )?", "", line)
                          for line in errors or lines][-3:])
