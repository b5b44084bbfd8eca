# collectives.py - ordered collectives of groups of ranks, and their ends
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives over libsumwire for Python, without any framework.

    calls = Calls(Client())
    group = calls.group("all", range(calls.client.size))
    call = calls.start(group, "all_reduce", "f32", 1000, address, address)
    calls.wait(call, 60)

Any thread may call.  All members start a group's collectives in one order.
"""
import ctypes
import math
import threading
import time
import warnings

from sumwire import library, locks
from sumwire.client import SLICE_MS, SLICE_S

FULL_PAUSE_S = 100e-6  # pause before a retry while too many calls are open
LIMIT_MAX_S = (1 << 31) - 1  # longest timeout of a group
MANY = 256  # number of open calls above which a start polls all of them

_ends = locks.make()  # guards the followers of all calls; held briefly


class Group:
    """Hold a group of ranks of the job.  Its lock serializes threads."""
    __slots__ = "name", "pointer", "lock", "_args"

    def __init__(self, name, pointer):
        self.name, self.pointer = name, pointer  # None: closed
        self.lock = locks.make()
        self._args = {}  # CollArgs by everything except count and addresses

    def args(self, kind, dtype, count, send, recv, root, op, scale,
             parts=None):
        """Return (CollArgs, its reference), which the next call overwrites: the
        library copies it.  The caller holds the lock."""
        key = kind, dtype, root, op
        args = self._args.get(key)
        if args is None:
            made = library.CollArgs(
                ctypes.sizeof(library.CollArgs), library.COLLECTIVES[kind],
                library.DTYPES[dtype][0], root=root, op=library.OPERATIONS[op])
            args = self._args[key] = made, ctypes.byref(made)
        args[0].count, args[0].scale = count, scale
        args[0].send, args[0].recv, args[0].parts = send, recv, parts
        return args


class Ending:
    """Be the end of a Call, or of a work that is a Call as well."""
    __slots__ = ()

    @property
    def handle(self):
        return self.box.value

    @property
    def what(self):
        return f"{self.kind} of group '{self.group.name}'"

    def trace(self, timeline, row, kind, n_bytes):
        """Show the call in a timeline, from now to its end."""
        begun, on_end = timeline.begin(row, kind, n_bytes), self.on_end

        def ended(error):
            timeline.end(begun, error)
            return on_end(error)
        self.on_end = ended

    def end(self, error, run=lambda then: then()):
        on_end, self.on_end = self.on_end, None  # break a reference cycle
        thens = []
        try:
            thens.append(on_end(error))
        finally:
            with _ends:
                self.is_ended, event = True, self._event
                followers, self.followers = self.followers, None
            if event:
                event.set()
        for follower in followers or ():
            thens.append(follower(None))
        for then in thens:
            if then:
                run(then)

    def await_end(self, limit_s=None):
        """Wait until another thread has ended the call, for at most limit_s
        seconds.  Return False if it has not by then."""
        with _ends:
            if self.is_ended:
                return True
            self._event = event = self._event or threading.Event()
        return event.wait(limit_s)

    def disown(self):
        """Forget in a forked child the threads that wait for the end."""
        self._event = None

    def follow(self, on_end):
        """Call on_end(None) when this call ends, with or without an error.  A
        function that on_end returns is run as in Call.  Return the call; if it
        had ended before, run everything now and return None."""
        with _ends:
            has_ended = self.is_ended
            if not has_ended:
                self.followers = [*(self.followers or ()), on_end]
        if not has_ended:
            return self
        then = on_end(None)
        if then:
            then()
        return None


class Call(Ending):
    """Hold a collective that was started.

    on_end     on_end(error or None) is called once, by the thread that sees the
               end; the caller then owns the buffers again.  If it returns a
               function, end() runs that function after waiters are released
    handle     the library's handle; 0: the library has not begun it
    limit_s    the limit from which until was computed
    is_ended   on_end has returned
    followers  functions that follow() added"""
    __slots__ = ("box", "group", "kind", "until", "on_end", "is_ended",
                 "device", "limit_s", "followers", "_event")

    def __init__(self, group, kind, until, on_end, device, limit_s=math.inf):
        self.box = ctypes.c_uint64()  # the library writes it
        self.group, self.device = group, device
        self.kind, self.until, self.limit_s = kind, until, limit_s
        self.on_end, self.followers = on_end, None
        self.is_ended, self._event = False, None  # threads in await_end share it


class Calls:
    """Start and end the collectives of a client.  A waiting thread waits inside
    the library.  After watch(), a thread of this object sees the ends of calls
    that no thread waits for."""

    def __init__(self, client):
        self.client, self.lib = client, client.lib
        self.lock = locks.make()
        self.groups = set()
        self.open = {}  # calls by handle, in the order of their starts
        self.starting = set()  # calls that _started() has not moved to open
        self.threads = []  # watching threads; only the last one is active
        self.is_over = False

    # --- start ---

    def group(self, name, ranks, limit_s=0):
        """Open a group.  All members open it with the same name and ranks.  If
        a collective does not end in limit_s seconds, the library aborts the
        group; 0: no limit."""
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
        """Return the group's pointer, or raise an error if it is closed.  The
        caller holds the group's lock."""
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
        """Close a group for this process.  Its open collectives end with an
        error."""
        self.groups.discard(group)
        with group.lock:
            pointer, group.pointer = group.pointer, None
            if pointer and not self.is_over:
                self._warn(self.lib.sw_group_close(pointer))
        self.look()

    def abort_group(self, group, text):
        """Abort a group: its open collectives end at all members with an error
        that contains the text."""
        with group.lock:
            if group.pointer and not self.is_over:
                self._warn(self.lib.sw_group_abort(
                    group.pointer, library.EABORTED, text.encode()))
        self.look()

    def _warn(self, code):
        """Warn of a failed close or abort instead of raising, so that the
        caller closes the remaining objects.  If the attachment has ended, stay
        silent: the calls that it ended report it."""
        if not code:
            return
        error = self.client.error(code)
        if not self.client.is_over():
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)

    def start(self, group, kind, dtype="u8", count=1, send=None, recv=None, *,
              parts=None, root=0, op="sum", scale=1.0, limit_s=600,
              on_end=lambda error: None, device=None):
        """Start a collective of count elements of dtype, and return its Call.
        Raise an error if it cannot start.

        send, recv  addresses; the buffers must stay valid until on_end runs
        parts       address of an array of addresses, in place of send or recv
        root        a rank of the job
        limit_s     seconds after which the group is aborted
        device      Device that holds the buffers; the collective begins after
                    the work in the device's current stream"""
        call = Call(group, kind, time.monotonic() + limit_s, on_end, device,
                    limit_s)
        if self.client.timeline:
            call.trace(self.client.timeline, group.name, kind,
                       count * library.DTYPES[dtype][1])
        self.begin(call, kind, dtype, count, send, recv, root, op, scale, parts)
        return call

    def begin(self, call, *what):
        """Start a new call, as start() does."""
        try:  # keep track of the call even if Ctrl-C interrupts this thread
            self.starting.add(call)
            self._start(call, what)
        finally:
            self._started(call)
        if call.device or len(self.open) > MANY:  # a stream may wait, no thread
            self.look()

    def _start(self, call, what):
        start = call.device.collective if call.device else self.lib.sw_coll
        group, box = call.group, ctypes.byref(call.box)
        while True:
            with group.lock:
                code = start(group.pointer or self.opened(group),
                             group.args(*what)[1], box)
                if not code:
                    return
                error = self.client.error(code)
            if code != library.EBUSY or time.monotonic() > call.until:
                raise error
            self.look()
            time.sleep(FULL_PAUSE_S)

    def _started(self, call):
        """Move a call to open if the library has begun it and its end was not
        reported yet."""
        handle = call.box.value
        with self.lock:
            if handle and call in self.starting:
                self.open[handle] = call
            self.starting.discard(call)

    def adopt(self, call, code):
        """Continue a call in starting that C has begun.  Its wait there has
        returned code."""
        error = None
        try:
            if code not in (library.ETIMEDOUT, library.EINVAL):
                error = self.client.error(code)
        finally:
            self._started(call)
            if error:
                self._take(call.handle, error)

    # --- end ---

    def note_copies(self, copies):
        """Note for a trace the copies of calls that have ended: (Call, is it out
        of shared memory, begin and end in ns, bytes)."""
        for call, *copy in copies:
            self.lib.sw_note_copy(self.client.pointer, call.handle, *copy)

    def _take(self, handle, error):
        """End the call whose end the library has reported."""
        with self.lock:
            call = self.open.pop(handle, None)
            if not call:
                for early in tuple(self.starting):
                    if early.handle == handle:
                        self.starting.discard(early)
                        call = early
        if call:
            call.end(error)

    def _look_at(self, call):
        """Return True if the call has ended.  EINVAL means that another thread
        took the end and may not have published it yet."""
        code = self.lib.sw_poll(self.client.pointer, call.handle)
        if code in (library.EAGAIN, library.EINVAL):
            return call.is_ended
        self._take(call.handle, self.client.error(code) if code else None)
        return True

    def look(self):
        """End all calls that the library has ended, and abort the groups of
        calls past their limit."""
        now = time.monotonic()
        with self.lock:
            calls = list(self.open.values())
            calls += [c for c in tuple(self.starting) if c.handle]
        for call in calls:  # first: this thread may be late, not the call
            self._look_at(call)
        for call in calls:
            if now > call.until and not self._look_at(call):
                self._give_up(call)
                self._look_at(call)

    def _give_up(self, call):
        """Abort the group of a call past its limit.  The call then ends, and
        the library does not touch its buffers afterwards."""
        call.until = math.inf
        with call.group.lock:
            if call.group.pointer and not self.is_over:
                self._warn(self.lib.sw_group_abort(
                    call.group.pointer, library.EEXPIRED,
                    f"timed out in {call.what.split()[0]} (call timeout "
                    f"{call.limit_s:g} s)".encode()))

    def open_of(self, group):
        """Return the calls of a group whose end no thread has seen yet."""
        with self.lock:
            return [c for c in self.open.values() if c.group is group]

    def is_done(self, call):
        if call.handle not in self.open:
            return call.is_ended
        return self._look_at(call)

    def wait(self, call, limit_s=None):
        """Wait until the call has ended, for at most limit_s seconds.  Return
        False if it has not ended by then.  Without limit_s the wait ends at the
        call's own limit: the group is aborted, and its calls end."""
        until = time.monotonic() + limit_s if limit_s else math.inf
        while not self._wait_a_moment(call, until):
            now = time.monotonic()
            if now > until:
                return False
            if now > call.until:
                self._give_up(call)
        return True

    def _wait_a_moment(self, call, until):
        """Wait for at most SLICE_S, and return True if the call has ended."""
        handle = call.box.value
        if handle in self.open:
            code = self._wait(call, handle)
            if code == library.ETIMEDOUT:
                return False
            if code != library.EINVAL:
                self._take(handle, self.client.error(code) if code else None)
                return True
        # Another thread took it.
        left = min(min(until, call.until) - time.monotonic(), SLICE_S)
        return call.await_end(max(0, left))

    def _wait(self, call, handle):
        """Return the library's code for the call, within SLICE_S."""
        try:
            return self.lib.sw_wait_for(self.client.pointer, handle, SLICE_MS)
        except BaseException:  # Ctrl-C
            self._resume(call)
            raise

    def _resume(self, call):
        """Take the end of a call after Ctrl-C interrupted its wait.  The
        library may have reported the end to another thread, or to the
        interrupted wait, which lost it."""
        code = self.lib.sw_poll(self.client.pointer, call.handle)
        if code == library.EINVAL and call.await_end(SLICE_S):
            return
        if code != library.EAGAIN:
            self._take(call.handle, self.client.error(code) if code else None)

    def hold(self, call):
        """Make later work in the device's current stream wait for the call.
        This thread does not wait if the stream can."""
        code = call.device.hold(call.handle)
        if code == library.EINVAL:  # another thread took its end
            call.await_end()
        elif code:
            raise self.client.error(code)

    # --- the thread ---

    def watch(self):
        """Start a thread that sees the ends of all calls, if none runs.  If the
        watching thread itself calls watch(), from an on_end that may wait, a
        new thread replaces it."""
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
                return  # the attachment has ended
            if time.monotonic() > next_look:
                self.look()
                next_look = time.monotonic() + SLICE_S

    def disown(self):
        """Give up all calls in a forked child, which owns none of them and has
        only this thread.  Later calls return the library's error."""
        self.is_over = True
        for call in (*self.open.values(), *self.starting):
            call.disown()

    def close(self):
        """Leave the job.  Open calls end with an error.  An on_end may call
        it."""
        with self.lock:
            self.is_over = True
        self.client.leave()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join()
        self.look()
