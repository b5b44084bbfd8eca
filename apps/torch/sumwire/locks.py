# locks.py - locks that are free in a forked child
# SPDX-License-Identifier: BSD-3-Clause
"""A fork copies a lock that another thread holds, but not the thread that would
release it.  Every lock of the package that outlives a call is made here, and a
forked child releases all of them."""
import os
import threading
import weakref

_all = weakref.WeakSet()


def make():
    """Return a threading.Lock that is free in a forked child."""
    lock = threading.Lock()
    _all.add(lock)
    return lock


def all_locks():
    return list(_all)


def _free():
    for lock in all_locks():
        lock._at_fork_reinit()  # threading does so with its own locks


os.register_at_fork(after_in_child=_free)
