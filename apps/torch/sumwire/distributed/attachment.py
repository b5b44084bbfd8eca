# attachment.py - what all groups of this process share: its place in the job
# SPDX-License-Identifier: BSD-3-Clause
import atexit
import hashlib
import os
import threading

from sumwire.client import Client
from sumwire.collectives import Calls
from sumwire.distributed import agents, homes
from sumwire.distributed.devices import Places
from sumwire.distributed.errors import SumwireError
from sumwire.memory import Memory

NAME_MAX = 60  # bytes of a group's name that travel as they are

_lock = threading.Lock()
_attachment = None


class Attachment:
    """One client of libsumwire; n_groups is how many are open.  job is its
    (name, epoch, rank there).  ip is that of an agent of the job's own, else
    None."""

    def __init__(self, meeting, home):
        path = local_rank = self.ip = None
        if home.plan:
            path, local_rank, self.ip, how = agents.start(meeting, home)
        client = None

        def attach():
            nonlocal client
            if path:
                client = of_own_agent(path, local_rank, meeting.limit_s)
                client.how_gone = how
            else:
                client = Client(error_type=SumwireError,
                                limit_s=meeting.limit_s)
            meeting.look = client.check
            return [*client.job, client.rank]
        try:
            home.ranks = meeting.exchange(
                attach, lambda jobs: homes.job_ranks(meeting, jobs))
        except BaseException:
            if client:
                client.leave()
            raise
        self.job = (*client.job, client.rank)
        self.calls = Calls(client)
        self.memory = Memory(client)
        self.places = Places(client)
        self.rank, self.size = client.rank, client.size
        self.n_groups = 0

    def open_group(self, name, ranks, limit_s):
        """Of sumwire's ranks, in this order.  Groups of one name and different
        members are different ones."""
        members = ",".join(map(str, ranks))
        whole = f"{name}:{members}"
        if len(whole.encode()) > NAME_MAX:
            whole = hashlib.sha256(whole.encode()).hexdigest()[:NAME_MAX]
        return self.calls.group("torch." + whole, ranks, limit_s)

    def leave(self):
        self.calls.close()


def of_own_agent(path, local_rank, limit_s):
    """Its ranks are those of the group, which a launcher's need not be."""
    launcher = os.environ.get("SUMWIRE_LAUNCHER")
    os.environ["SUMWIRE_LAUNCHER"] = "none"
    try:
        return Client(path, local_rank, SumwireError, limit_s)
    finally:
        del os.environ["SUMWIRE_LAUNCHER"]
        if launcher is not None:
            os.environ["SUMWIRE_LAUNCHER"] = launcher


def job():
    """Return this process's job, as (name, epoch, rank there), or None."""
    with _lock:
        return _attachment and _attachment.job


def acquire(meeting, home):
    """Return the attachment of this process, and make it for the first group;
    release() it when the group is closed."""
    global _attachment
    with _lock:
        if home.ranks is None:
            _attachment = Attachment(meeting, home)
        elif _attachment is None:
            raise SumwireError("SW_ECLOSED", "another thread has closed this "
                               "process's last group")
        _attachment.n_groups += 1
        meeting.look = _attachment.calls.client.check
        return _attachment


def release(attachment):
    """With its last group this process leaves the job."""
    global _attachment
    with _lock:
        attachment.n_groups -= 1
        if attachment.n_groups or attachment is not _attachment:
            return
        _attachment = None
    attachment.leave()


def disown():
    """A forked child is no member, and ends nothing of its parent's."""
    global _attachment, _lock
    attachment, _attachment, _lock = _attachment, None, threading.Lock()
    if attachment:
        attachment.calls.disown()


os.register_at_fork(after_in_child=disown)


@atexit.register
def end():
    """The end of a program that has not called destroy_process_group."""
    global _attachment
    with _lock:
        attachment, _attachment = _attachment, None
    if attachment:
        attachment.leave()
