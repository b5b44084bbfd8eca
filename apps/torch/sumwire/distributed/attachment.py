# attachment.py - this process's attachment to the job, shared by all groups
# SPDX-License-Identifier: BSD-3-Clause
import atexit
import contextlib
import hashlib
import os
import sys
import threading

from sumwire.client import Client
from sumwire.collectives import Calls
from sumwire.distributed import agents, flight, homes
from sumwire.distributed.devices import Places
from sumwire.distributed.errors import SumwireError
from sumwire.memory import Memory

NAME_MAX = 60  # longest group name in bytes; longer names are hashed
DOUBT_S = 5  # agents that are ready connect much faster

_lock = threading.Lock()
_attachment = None


class Attachment:
    """Hold the client of libsumwire for all groups of this process.

    n_groups  number of open groups
    job       (name, epoch, rank of this process in the job)
    ip        address of the agent, if the job's ranks have started it; or None
    """

    def __init__(self, meeting, home):
        path = local_rank = self.ip = None
        if home.plan:
            path, local_rank, self.ip, how, doubt = agents.start(meeting, home)
        client = None

        def attach():
            nonlocal client
            if path:
                with doubted(doubt, local_rank):
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
        self.watch = flight.Watch(client)
        self.memory = Memory(client)
        self.places = Places(client)
        self.rank, self.size = client.rank, client.size
        self.n_groups = 0

    def open_group(self, name, ranks, limit_s):
        """Open a group of the job's ranks, in this order.  The library's name
        contains the members, so groups with one name and different members
        differ."""
        members = ",".join(map(str, ranks))
        whole = f"{name}:{members}"
        if len(whole.encode()) > NAME_MAX:
            whole = hashlib.sha256(whole.encode()).hexdigest()[:NAME_MAX]
        return self.calls.group("torch." + whole, ranks, limit_s)

    def leave(self):
        self.calls.close()
        self.watch.end()


@contextlib.contextmanager
def doubted(doubt, local_rank):
    """Print the doubt if the code inside takes long, once per agent, and append
    it to the error of its timeout."""
    timer = threading.Timer(DOUBT_S, print, [
        f"sumwire: the agents have not met after {DOUBT_S} s: {doubt}"],
        {"file": sys.stderr, "flush": True})
    timer.daemon = True
    if doubt and not local_rank:
        timer.start()
    try:
        yield
    except SumwireError as e:
        if not doubt or e.name != "SW_ETIMEDOUT":
            raise
        raise SumwireError(e.name, f"{e.text}; {doubt}") from None
    finally:
        timer.cancel()


def of_own_agent(path, local_rank, limit_s):
    """Attach to an agent that this group has started, without the launcher's
    variables: the launcher's ranks may differ from the group's."""
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
    """Return the attachment of this process.  The first group makes it.  Call
    release() when the group is closed."""
    global _attachment
    with _lock:
        if home.ranks is None:
            _attachment = Attachment(meeting, home)
        elif _attachment is None:
            raise SumwireError("SW_ECLOSED", "cannot create the group: another "
                               "thread has closed this process's last group, "
                               "and so left the job")
        _attachment.n_groups += 1
        meeting.look = _attachment.calls.client.check
        return _attachment


def release(attachment):
    """Count the end of a group.  The last group's end leaves the job."""
    global _attachment
    with _lock:
        attachment.n_groups -= 1
        if attachment.n_groups or attachment is not _attachment:
            return
        _attachment = None
    attachment.leave()


def disown():
    """Forget the attachment in a forked child, which is not a member and must
    not end anything of its parent."""
    global _attachment, _lock
    attachment, _attachment, _lock = _attachment, None, threading.Lock()
    if attachment:
        attachment.calls.disown()


os.register_at_fork(after_in_child=disown)


@atexit.register
def end():
    """Leave the job at the end of a program that has not called
    destroy_process_group."""
    global _attachment
    with _lock:
        attachment, _attachment = _attachment, None
    if attachment:
        attachment.leave()
