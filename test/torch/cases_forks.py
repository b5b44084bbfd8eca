# cases_forks.py - a process of fork_server.py; by torch_faults.py
# SPDX-License-Identifier: BSD-3-Clause
"""cases_forks.py HOW: print its state, read a line, and end in the way HOW."""
import json
import os
import signal
import sys

print(json.dumps({
    "args": sys.argv[1:], "path": sys.path[0], "input": sys.stdin.readline(),
    "environment": [os.environ.get(name) for name in ("TEST_ADDED", "HOME")],
    "is a session": os.getsid(0) == os.getpid(),
    "threads": len(os.listdir("/proc/self/task")),
    # Do not count the descriptor of the folder itself.
    "files": len(os.listdir("/proc/self/fd")) - 1,
    "has torch": "torch" in sys.modules,
    "has sumwire": any(m.startswith("sumwire") for m in sys.modules)}),
    flush=True)
print(hash("the order of sets"), file=sys.stderr, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[1] == "raises":
    raise ValueError("this is wrong")
sys.exit(7)
