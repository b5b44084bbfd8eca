# collectives.py - ordered collectives of groups of ranks, and who sees them end
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives over libsumwire for Python, without any framework.

    calls = Calls(Client())
    group = calls.group("all", range(calls.client.size))
    call = calls.start(group, "all_reduce", "f32", 1000, address, address)
    calls.wait(call, 60)

Any thread may call; one group's collectives start in one order at all members.
"""
import ctypes
import math
import threading
import time

from sumwire import library
from sumwire.client import SLICE_S, SumwireError

FULL_PAUSE_S = 100e-6  # before one more try to start, when too many are open
LIMIT_MAX_S = (1 << 31) - 1  # of a group; of a wait
MANY = 256  # open ones, after which a start looks which have ended


class Group:
    """Ranks of the job; the lock makes threads take turns."""

    def __init__(self, name, pointer):
        self.name, self.pointer = name, pointer  # None: closed
        self.lock = threading.Lock()

    def opened(self):
        """Its pointer; with the lock."""
        if self.pointer is None:
            raise SumwireError("SW_ECLOSED",
                               f"this process has closed group '{self.name}'")
        return self.pointer


class Call:
    """A collective that was started.  on_end(error or None) is called once, by
    whichever thread sees the end, after which the buffers are the caller's; what
    it returns, if anything, is called when nobody waits any more.
    handle: the library's; None: it does not know this one."""
    __slots__ = ("handle", "group", "what", "until", "on_end", "ended",
                 "device")

    def __init__(self, handle, group, what, until, on_end, device):
        self.handle, self.group, self.device = handle, group, device
        self.what, self.until = what, until
        self.on_end = on_end
        self.ended = threading.Event()

    def end(self, error, run=lambda then: then()):
        on_end, self.on_end = self.on_end, None  # else it refers to itself
        then = None
        try:
            then = on_end(error)
        finally:
            self.ended.set()
        if then:
            run(then)


class Calls:
    """The collectives of a client.  Who waits for one waits in the library; for
    the others there is a thread, once watch() was called."""

    def __init__(self, client):
        self.client, self.lib = client, client.lib
        self.lock = threading.Lock()
        self.groups = set()
        self.open = {}  # calls by their handles, in the order of starts
        self.early = {}  # errors, of ends that came before start() was through
        self.threads = []  # the last one watches
        self.is_over = False

    # --- start ---

    def group(self, name, ranks, limit_s=0):
        """Open a group; all members do, with the same name and ranks.  What has
        not ended in limit_s makes the library abort it; 0: nothing does."""
        pointer, n = ctypes.c_void_p(), len(ranks)
        code = self.lib.sw_group_open(
            self.client.pointer, name.encode(), (ctypes.c_uint32 * n)(*ranks),
            n, ctypes.byref(pointer))
        if code:
            raise self.client.error(code)
        group = Group(name, pointer)
        self.groups.add(group)
        self.set_timeout(group, limit_s)
        return group

    def set_timeout(self, group, limit_s):
        with group.lock:
            code = self.lib.sw_group_set_timeout(
                group.opened(), min(math.ceil(limit_s), LIMIT_MAX_S))
        if code:
            raise self.client.error(code)

    def close_group(self, group):
        """This process is through with it: what is open ends."""
        self.groups.discard(group)
        with group.lock:
            pointer, group.pointer = group.pointer, None
            if pointer and not self.is_over:
                self.lib.sw_group_close(pointer)
        self.look()

    def abort_group(self, group, text):
        """What is open ends at all members, and says so."""
        with group.lock:
            if group.pointer and not self.is_over:
                self.lib.sw_group_abort(group.pointer, text.encode())
        self.look()

    def start(self, group, kind, dtype="u8", count=1, send=None, recv=None, *,
              root=0, op="sum", scale=1.0, limit_s=600, on_end=lambda error: None,
              device=None):
        """Start a collective of @count elements between addresses; its buffers
        must stay until on_end.  root: a rank of the job.  device: they are in
        its memory, and it begins behind what its stream has."""
        args = library.CollArgs(
            ctypes.sizeof(library.CollArgs), library.COLLECTIVES[kind],
            library.DTYPES[dtype][0], count, root,
            library.OPERATIONS[op], send, recv, scale)
        until = time.monotonic() + limit_s
        handle = self._start(group, args, until, device)
        call = Call(handle, group, f"{kind} of group '{group.name}'", until,
                    on_end, device)
        with self.lock:
            has_ended = handle in self.early
            error = self.early.pop(handle, None)
            if not has_ended:
                self.open[handle] = call
        if has_ended:
            call.end(error)
        if device or len(self.open) > MANY:  # nobody may wait for the former
            self.look()
        return call

    def _start(self, group, args, until, device):
        handle = ctypes.c_uint64()
        start = device.collective if device else self.lib.sw_coll
        while True:
            with group.lock:
                code = start(group.opened(), ctypes.byref(args),
                             ctypes.byref(handle))
                if not code:
                    return handle.value
                error = self.client.error(code)
            if code != library.EBUSY or time.monotonic() > until:
                raise error
            self.look()
            time.sleep(FULL_PAUSE_S)

    # --- end ---

    def _take(self, handle, error):
        """The library has reported this end."""
        with self.lock:
            call = self.open.pop(handle, None)
            if call is None:
                self.early[handle] = error
        if call:
            call.end(error)

    def _look_at(self, call):
        """Has it ended?  Another thread may be about to say so."""
        code = self.lib.sw_poll(self.client.pointer, call.handle)
        if code in (library.EAGAIN, library.EINVAL):
            return call.ended.is_set()
        self._take(call.handle, self.client.error(code) if code else None)
        return True

    def look(self):
        """End those that have ended, or whose time is over."""
        now = time.monotonic()
        with self.lock:
            calls = list(self.open.values())
        for call in calls:  # we may be late, not others
            self._look_at(call)
        for call in calls:
            if now > call.until and not self._look_at(call):
                self._give_up(call)
                self._look_at(call)

    def _give_up(self, call):
        """The library leaves its buffers alone then, and it ends."""
        call.until = math.inf
        with call.group.lock:
            if call.group.pointer and not self.is_over:
                self.lib.sw_group_abort(
                    call.group.pointer,
                    f"{call.what.split()[0]} took too long".encode())

    def open_of(self, group):
        """Those of a group that have not ended, as far as is known."""
        with self.lock:
            return [c for c in self.open.values() if c.group is group]

    def is_done(self, call):
        if call.handle not in self.open:
            return call.ended.is_set()
        return self._look_at(call)

    def wait(self, call, limit_s=None):
        """Has it ended?  Waits until it has, for at most limit_s.  Without a
        limit it does end: one is given up when its time is over, here or by
        another thread, and what is given up ends."""
        until = time.monotonic() + limit_s if limit_s else math.inf
        while not self._wait_a_moment(call, min(until, call.until)):
            now = time.monotonic()
            if now > until:
                return False
            if now > call.until:
                self._give_up(call)
        return True

    def _wait_a_moment(self, call, until):
        """Has it ended?  Waits for at most SLICE_S."""
        if call.handle in self.open:
            code = self._wait(call)
            if code == library.ETIMEDOUT:
                return False
            if code != library.EINVAL:
                self._take(call.handle, self.client.error(code) if code else None)
                return True
        left = min(until - time.monotonic(), SLICE_S)  # another thread ends it
        return call.ended.wait(max(0, left))

    def _wait(self, call):
        """What the library says, after SLICE_S at the latest."""
        try:
            return self.lib.sw_wait(self.client.pointer, call.handle)
        except BaseException:  # Ctrl-C
            self._resume(call)
            raise

    def _resume(self, call):
        """Nobody waits for it now.  What the library has reported meanwhile is
        known to another thread, or lost."""
        code = self.lib.sw_poll(self.client.pointer, call.handle)
        if code == library.EINVAL and call.ended.wait(SLICE_S):
            return
        if code != library.EAGAIN:
            self._take(call.handle, self.client.error(code) if code else None)

    def hold(self, call):
        """What the current stream of its device is given from now on waits for
        it; this thread goes on, where streams can wait."""
        code = call.device.hold(call.handle)
        if code == library.EINVAL:  # another thread has seen it end
            call.ended.wait()
        elif code:
            raise self.client.error(code)

    # --- the thread ---

    def watch(self):
        """From now on the ends of all calls are seen, whether anybody waits or
        not.  Who calls it while an end is told may wait for another one: if that
        is the thread, a new one takes its place."""
        me = threading.current_thread()
        with self.lock:
            if self.is_over or self.threads and self.threads[-1] is not me:
                return
            thread = threading.Thread(target=self._watch, daemon=True,
                                      name="sumwire")
            self.threads = [t for t in self.threads if t.is_alive()] + [thread]
            thread.start()

    def _watch(self):
        handle, next_look = ctypes.c_uint64(), 0
        while not self.is_over and (
                self.threads[-1] is threading.current_thread()):
            code = self.lib.sw_wait_ended(self.client.pointer,
                                          ctypes.byref(handle))
            if handle.value:
                self._take(handle.value,
                           self.client.error(code) if code else None)
            elif code != library.ETIMEDOUT:
                return  # there is nothing to wait for any more
            if time.monotonic() > next_look:
                self.look()
                next_look = time.monotonic() + SLICE_S

    def disown(self):
        """In a forked child, where only this thread is left: nothing is its
        own.  Calls return the library's error."""
        self.is_over, self.lock = True, threading.Lock()
        for group in self.groups:
            group.lock = threading.Lock()

    def close(self):
        """Leave the job; what is open ends with an error.  May be called while
        an end is told."""
        with self.lock:
            self.is_over = True
        self.client.leave()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join()
        self.look()
