# locks.py - locks that are free in a forked child
# SPDX-License-Identifier: BSD-3-Clause
"""A fork copies a lock that another thread holds, and the child has no thread
that would release it.  Every lock of the package that outlives a call is made
here, so the child finds all of them free."""
import os
import threading
import weakref

_all = weakref.WeakSet()


def make():
    """A threading.Lock."""
    lock = threading.Lock()
    _all.add(lock)
    return lock


def all_locks():
    return list(_all)


def _free():
    for lock in all_locks():
        lock._at_fork_reinit()  # as threading does with its own


os.register_at_fork(after_in_child=_free)
