# own_agent.py - the agent of this rank, which a rank has started
# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import re

from sumwire.distributed import attachment


def agent_pid(path):
    """The process behind an agent's socket, by the name of that for counters."""
    [stats] = glob.glob(os.path.join(os.path.dirname(path), "stats-*.sock"))
    return int(re.search(r"(\d+)\.sock$", stats)[1])


def agent_of_rank():
    """Settings of this rank's own agent, which a rank has started: socket,
    configuration."""
    path = attachment._attachment.calls.client.agent
    with open(f"/proc/{agent_pid(path)}/fd/0", encoding="ascii") as f:
        return path, f.read()
