# own_agent.py - the agent that a rank has started
# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import re

from sumwire.distributed import attachment


def agent_pid(path):
    """Return the pid of the process behind an agent's socket, from the name of
    its socket for counters."""
    [stats] = glob.glob(os.path.join(os.path.dirname(path), "stats-*.sock"))
    return int(re.search(r"(\d+)\.sock$", stats)[1])


def agent_of_rank():
    """Return socket and configuration of this rank's own agent."""
    path = attachment._attachment.calls.client.agent
    with open(f"/proc/{agent_pid(path)}/fd/0", encoding="ascii") as f:
        return path, f.read()
