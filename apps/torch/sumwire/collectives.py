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
import warnings

from sumwire import library, locks
from sumwire.client import SLICE_MS, SLICE_S

FULL_PAUSE_S = 100e-6  # before one more try to start, when too many are open
LIMIT_MAX_S = (1 << 31) - 1  # of a group; of a wait
MANY = 256  # open ones, after which a start looks which have ended

_ends = locks.make()  # guards followers of all calls, for a moment


class Group:
    """Ranks of the job; the lock makes threads take turns."""

    def __init__(self, name, pointer):
        self.name, self.pointer = name, pointer  # None: closed
        self.lock = locks.make()


class Call:
    """A collective that was started.  on_end(error or None) is called once, by
    whichever thread sees the end, after which the buffers are the caller's; what
    it returns, if anything, is called when nobody waits any more.
    handle: the library's; None or 0: it does not know this one, or not yet.
    limit_s: the time that until was made of; followers: what follow() added."""
    __slots__ = ("box", "group", "what", "until", "on_end", "ended", "device",
                 "limit_s", "followers")

    def __init__(self, handle, group, what, until, on_end, device,
                 limit_s=math.inf):
        self.box = ctypes.c_uint64(handle or 0)  # the library writes it
        self.group, self.device = group, device
        self.what, self.until, self.limit_s = what, until, limit_s
        self.on_end, self.followers = on_end, []
        self.ended = threading.Event()

    @property
    def handle(self):
        return self.box.value

    def end(self, error, run=lambda then: then()):
        on_end, self.on_end = self.on_end, None  # else it refers to itself
        thens = []
        try:
            thens.append(on_end(error))
        finally:
            with _ends:
                self.ended.set()
                followers, self.followers = self.followers, []
        thens += [follower(None) for follower in followers]
        for then in filter(None, thens):
            run(then)

    def follow(self, on_end):
        """on_end(None), which is as that of a call, is called when it has ended,
        with an error or without.  Returns the call; None: it had."""
        with _ends:
            has_ended = self.ended.is_set()
            if not has_ended:
                self.followers.append(on_end)
        if not has_ended:
            return self
        then = on_end(None)
        if then:
            then()
        return None


class Calls:
    """The collectives of a client.  Who waits for one waits in the library; for
    the others there is a thread, once watch() was called."""

    def __init__(self, client):
        self.client, self.lib = client, client.lib
        self.lock = locks.make()
        self.groups = set()
        self.open = {}  # calls by their handles, in the order of starts
        self.starting = set()  # calls that are not there yet
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
        try:
            self.set_timeout(group, limit_s)
        except BaseException:
            self.close_group(group)
            raise
        return group

    def opened(self, group):
        """Its pointer; with its lock."""
        if group.pointer is None:
            raise self.client.error_type(
                "SW_ECLOSED", f"this process has closed group '{group.name}'")
        return group.pointer

    def set_timeout(self, group, limit_s):
        with group.lock:
            code = self.lib.sw_group_set_timeout(
                self.opened(group), min(math.ceil(limit_s), LIMIT_MAX_S))
        if code:
            raise self.client.error(code)

    def close_group(self, group):
        """This process is through with it: what is open ends."""
        self.groups.discard(group)
        with group.lock:
            pointer, group.pointer = group.pointer, None
            if pointer and not self.is_over:
                self._warn(self.lib.sw_group_close(pointer))
        self.look()

    def abort_group(self, group, text):
        """What is open ends at all members, and says so."""
        with group.lock:
            if group.pointer and not self.is_over:
                self._warn(self.lib.sw_group_abort(
                    group.pointer, library.EABORTED, text.encode()))
        self.look()

    def _warn(self, code):
        """An end that could not be told, or takes too long, is no error of the
        caller, who goes on to end the rest.  The end of the attachment is told
        by what it ended."""
        if not code:
            return
        error = self.client.error(code)
        if not self.client.is_over():
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)

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
        call = Call(None, group, f"{kind} of group '{group.name}'", until,
                    on_end, device, limit_s)
        try:  # whatever interrupts this thread from here on, the call is known
            self.starting.add(call)
            self._start(call, args)
        finally:
            self._started(call)
        if device or len(self.open) > MANY:  # nobody may wait for the former
            self.look()
        return call

    def _start(self, call, args):
        start = call.device.collective if call.device else self.lib.sw_coll
        while True:
            with call.group.lock:
                code = start(self.opened(call.group), ctypes.byref(args),
                             ctypes.byref(call.box))
                if not code:
                    return
                error = self.client.error(code)
            if code != library.EBUSY or time.monotonic() > call.until:
                raise error
            self.look()
            time.sleep(FULL_PAUSE_S)

    def _started(self, call):
        """It is known by its handle, if the library has begun it, unless its end
        was reported."""
        with self.lock:
            if call.handle and call in self.starting:
                self.open[call.handle] = call
            self.starting.discard(call)

    # --- end ---

    def _take(self, handle, error):
        """The library has reported this end."""
        with self.lock:
            call = self.open.pop(handle, None)
            for early in tuple(self.starting):
                if early.handle == handle:
                    self.starting.discard(early)
                    call = early
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
            calls += [c for c in tuple(self.starting) if c.handle]
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
                self._warn(self.lib.sw_group_abort(
                    call.group.pointer, library.EEXPIRED,
                    f"timed out in {call.what.split()[0]} (call timeout "
                    f"{call.limit_s:g} s)".encode()))

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
            return self.lib.sw_wait_for(self.client.pointer, call.handle,
                                        SLICE_MS)
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
            code = self.lib.sw_wait_ended_for(self.client.pointer, SLICE_MS,
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
        self.is_over = True
        for call in (*self.open.values(), *self.starting):
            call.ended = threading.Event()  # another thread may have set it

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
