# client.py - one attachment to an agent: declare, push, wait, leave
# SPDX-License-Identifier: BSD-3-Clause
"""libsumwire for Python, without any framework.

    client = Client()
    [t] = client.declare([("weights", 1000, "f32", 0)])
    ... write t.memory ...
    client.push(t, step=0)
    client.wait(t)                  # t.memory now holds the sum

Several threads may use one client.  The client's lock serializes starts; a
tensor's lock serializes waits for that tensor.
"""
import ctypes
import math
import os
import threading
import time

from sumwire import library, locks, timeline

DEFAULT_AGENT = "agent.sock"  # libsumwire knows its directory
TEXT_BYTES = 200  # limit of an abort reason, which other ranks get
OPEN_S = 60  # default time that a client waits for the other ranks
SLICE_S = 1  # longest wait inside libsumwire, so that Ctrl-C is handled
SLICE_MS = 1000 * SLICE_S


def open_seconds(limit_s):
    """Return the seconds to wait for agents and other ranks:
    SUMWIRE_OPEN_TIMEOUT if set, otherwise OPEN_S or the caller's shorter limit.
    """
    if "SUMWIRE_OPEN_TIMEOUT" in os.environ:
        return seconds("SUMWIRE_OPEN_TIMEOUT", OPEN_S)
    return max(1, min(OPEN_S, math.ceil(limit_s)))


class HorovodInternalError(RuntimeError):
    """Report a failed collective under the name that Horovod's scripts
    catch."""


class SumwireError(HorovodInternalError):
    """Report an error of libsumwire.  name is the name in enum sw_error, such
    as "SW_EPEER"; code is its value; text is the sentence.  If the calls of
    two ranks contradict each other, conflict says in what (a value of
    library.CONFLICTS, else 0), and ranks are these two."""

    def __init__(self, name, text, conflict=0, ranks=()):
        super().__init__(f"{text} [{name}]")
        self.name, self.text = name, text
        self.code = library.ERRORS.get(name, 0)
        self.conflict, self.ranks = conflict, ranks

    def __reduce__(self):
        """Pickle the error, for process pools and torch's checkpoints."""
        return type(self), (self.name, self.text, self.conflict, self.ranks)


def seconds(variable, default):
    """Return the positive number of seconds in an environment variable.  Raise
    ValueError for anything else."""
    text = os.environ.get(variable, default)
    if not str(text).isdigit() or not 0 < int(text) < 1 << 31:
        raise ValueError(f"{variable}={text}: expected a whole number of "
                         f"seconds, at least 1")
    return int(text)


class Tensor:
    """Hold one declared tensor.

    memory  ctypes array over its bytes in shared memory; it keeps the client's
            mapping alive
    result  address where its sums arrive; with several local ranks it differs
            from memory, and take_result() copies the sum
    handle  handle of the open push_pull, or None
    copies  copies into it that the trace does not have yet: begin, end, bytes
    """
    __slots__ = ("name", "n", "dtype", "pointer", "memory", "result", "handle",
                 "last_handle", "lock", "begun", "copies")

    def __init__(self, client, desc, pointer):
        self.name, self.n, self.dtype = desc[:3]
        self.pointer = pointer
        self.handle = self.begun = None  # begun: start of its bar in a timeline
        self.copies = []
        self.lock = locks.make()  # held while a thread polls the handle
        n_bytes = self.n * library.DTYPES[self.dtype][1]
        self.memory = (ctypes.c_uint8 * n_bytes).from_address(
            client.lib.sw_tensor_data(pointer))
        self.memory.mapping = client.mapping
        self.result = client.lib.sw_tensor_result(pointer)

    def has_result_apart(self):
        return self.result != ctypes.addressof(self.memory)

    def take_result(self):
        """Copy the sum into memory."""
        ctypes.memmove(self.memory, self.result, len(self.memory))


class Mapping:
    """Own the C handle.  Free it with the last reference to its memory."""

    def __init__(self, lib, pointer):
        self.lib, self.pointer = lib, pointer

    def __del__(self):
        self.lib.sw_close(ctypes.byref(self.pointer))


class Client:
    """Attach this process to an agent. Raise an error of error_type if that
    fails.

    agent       the agent's socket; default $SUMWIRE_AGENT, then agent.sock
    local_rank  local rank at the agent; None: the launcher's
    limit_s     the caller's limit in seconds.  The client waits at most
                open_seconds(limit_s) for the agent, the servers and all other
                ranks, and at most SUMWIRE_WAIT_TIMEOUT (600 s) for a sum"""

    def __init__(self, agent=None, local_rank=None, error_type=SumwireError,
                 limit_s=OPEN_S):
        self.lib, self.error_type = library.load(), error_type
        self.how_gone = None  # () -> how the agent has ended, as text
        self.agent = agent or os.environ.get("SUMWIRE_AGENT", DEFAULT_AGENT)
        self.local_rank = local_rank
        self.open_timeout_s = open_seconds(limit_s)
        self.wait_timeout_s = seconds("SUMWIRE_WAIT_TIMEOUT", 600)
        self.lock = locks.make()
        self.mapping = Mapping(self.lib, self._open())
        self.pointer = self.mapping.pointer
        self.rank = self.lib.sw_rank(self.pointer)
        self.size = self.lib.sw_size(self.pointer)
        # Ranks on this machine, then ranks at this agent.
        self.local_rank = self.lib.sw_local_rank(self.pointer)
        self.local_size = self.lib.sw_local_size(self.pointer)
        self.agent_rank = self.lib.sw_agent_rank(self.pointer)
        self.agent_size = self.lib.sw_agent_size(self.pointer)
        epoch = ctypes.c_uint64()
        name = self.lib.sw_job(self.pointer, ctypes.byref(epoch)).decode()
        self.job = name, epoch.value  # equal for all clients of one job
        self.is_async = bool(self.lib.sw_is_async(self.pointer))  # [job] mode
        self.failure = None  # error that ended the job; never a mismatch
        self.is_traced = 0  # as of the last push: does a trace need copies?
        self.devices = []  # open Devices
        self.timeline = timeline.from_environment(self.rank, self.local_rank)
        self.idle = lambda: None  # called while a thread waits for a sum
        self._tuner = ctypes.c_void_p()
        self._handle = ctypes.c_uint64()
        self._handle_at = ctypes.byref(self._handle)

    def _open(self):
        """Call sw_open in a thread of its own, so that Ctrl-C ends the wait."""
        pointer, result = ctypes.c_void_p(), []

        def run():
            s = library.Settings()
            self.lib.sw_settings_init_sized(ctypes.byref(s),
                                            ctypes.sizeof(s))
            s.agent = os.fsencode(self.agent)
            s.open_timeout_s = self.open_timeout_s
            s.wait_timeout_s = self.wait_timeout_s
            if self.local_rank is not None:
                s.local_rank = self.local_rank
            code = self.lib.sw_open(ctypes.byref(s), ctypes.byref(pointer))
            # sw_last_error() returns the text of the calling thread.
            result.extend((code, self.lib.sw_last_error(None)))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(SLICE_S)
        if result[0]:
            raise self.error(*result)
        return pointer

    def error(self, code, text=None):
        """Return the exception for a code of the library.  Call it in the
        thread that got the code."""
        rank, other, conflict = ctypes.c_uint32(), ctypes.c_uint32(), 0
        if text is None:
            text = self.lib.sw_last_error(self.pointer)
            conflict = self.lib.sw_last_conflict(
                self.pointer, ctypes.byref(rank), ctypes.byref(other))
        text = text.decode(errors="replace")
        if code == library.EEXPIRED:  # PyTorch has only one kind of timeout
            code = library.ETIMEDOUT
        if code == library.ECLOSED and self.how_gone and self.is_over():
            text += f" ({self.how_gone()})"
        return self.error_type(
            self.lib.sw_error_name(code).decode(), text, conflict,
            (rank.value, other.value) if conflict else ())

    def is_over(self):
        """Return True if the attachment has ended; every call then fails with
        its reason. This asks the library, not the agent: 0 bytes return EINVAL
        while the attachment lasts."""
        return self.lib.sw_alloc(self.pointer, 0, ctypes.byref(
            ctypes.c_void_p())) != library.EINVAL

    def declare(self, descs, is_async=False):
        """Declare (name, elements, dtype, priority)..., and return Tensors.
        Priority 0 is the most urgent.  Every rank declares the same tensors.
        If another rank declares one differently, pushes of that tensor fail.
        is_async: the servers keep the values; the first round is a broadcast,
        later pushes are deltas."""
        n = len(descs)
        array = library.describe(descs, is_async)
        out = (ctypes.c_void_p * n)()
        with self.lock:
            code = self.lib.sw_declare(self.pointer, array, n, out)
            if code not in (0, library.EMISMATCH):
                raise self.error(code)
        return [Tensor(self, d, p) for d, p in zip(descs, out)]

    def push(self, tensor, step):
        """Start to replace the tensor by its sum over all ranks.  Do not push
        it again before the push has ended."""
        with self.lock:
            self._begun(tensor, "push_pull", self.lib.sw_push_pull(
                self.pointer, tensor.pointer, step, self._handle_at))

    def broadcast(self, tensor, root, step):
        """Start to replace the tensor by the root's.  The rules of push()
        hold."""
        with self.lock:
            self._begun(tensor, "broadcast", self.lib.sw_broadcast(
                self.pointer, tensor.pointer, root, step, self._handle_at))

    def _begun(self, tensor, kind, code):
        if code:
            raise self.error(code)
        tensor.handle = tensor.last_handle = self._handle.value
        self.is_traced = self.lib.sw_is_traced(self.pointer)
        if tensor.copies:
            self._note_copies(tensor, False)
        if self.timeline:
            tensor.begun = self.timeline.begin(
                tensor.name, kind, len(tensor.memory), has_rounds=True)

    def copied(self, tensor, is_out, began_ns, n_bytes=None):
        """Note for a trace that a copy of a tensor, or of n_bytes of it, ends
        now. The next push reports copies into the tensor to the agent."""
        tensor.copies.append((began_ns, time.monotonic_ns(),
                              n_bytes or len(tensor.memory)))
        if is_out:
            with self.lock:
                self._note_copies(tensor, is_out)

    def _note_copies(self, tensor, is_out):
        for copy in tensor.copies:
            self.lib.sw_note_copy(self.pointer, tensor.last_handle, is_out, *copy)
        tensor.copies = []

    def is_done(self, tensor):
        """Return True if no push of the tensor is open.  Raise the error of a
        push that failed.  Does not block."""
        if not tensor.lock.acquire(blocking=False):
            return False  # another thread waits for it
        try:
            return self._ended(tensor, self.lib.sw_poll)
        finally:
            tensor.lock.release()

    def wait(self, tensor):
        """Block until the tensor's push has ended.  Raise the error if it
        failed.  After wait_timeout_s abort the job and raise SW_ETIMEDOUT."""
        def has_ended():
            with tensor.lock:
                return self._ended(tensor, self.wait_a_slice)
        self.wait_for(tensor.name, has_ended)

    def wait_a_slice(self, pointer, handle):
        return self.lib.sw_wait_for(pointer, handle, SLICE_MS)

    def wait_for(self, name, has_ended):
        """Call has_ended(), which waits for SLICE_S, until it returns True."""
        for _ in range(0, self.wait_timeout_s, SLICE_S):
            if has_ended():
                return
            self.idle()
        text = self.lib.sw_last_error(self.pointer).decode(errors="replace")
        self.give_up(
            f"tensor '{name}': timed out, no sum in {self.wait_timeout_s} s "
            f"(SUMWIRE_WAIT_TIMEOUT){''.join(text.partition('; last')[1:])}")

    def give_up(self, text):
        """Raise an error, and abort the job with it at all ranks, because a
        late rank must not continue with a sum that this rank never got."""
        self.failure = self.error_type("SW_ETIMEDOUT", text)
        with self.lock:
            self.lib.sw_abort(self.pointer, text.encode()[:TEXT_BYTES])
        raise self.failure

    def _ended(self, tensor, ask):
        """Return True if the tensor's push has ended, as the library's function
        ask says.  Raise the error of a push that failed."""
        code = 0
        if tensor.handle is not None:
            code = ask(self.pointer, tensor.handle)
        if code in (library.EAGAIN, library.ETIMEDOUT):
            return False
        if tensor.handle is not None and not code and tensor.has_result_apart():
            began_ns = time.monotonic_ns()
            tensor.take_result()
            if self.is_traced:
                self.copied(tensor, True, began_ns)
        if tensor.begun and self.timeline:
            self.timeline.end(tensor.begun, self.lib.sw_error_name(code).decode()
                              if code else None)
        tensor.begun = None
        tensor.handle = None
        if code == library.EMISMATCH:
            raise self.error(code)  # the job continues
        if code and not self.failure:
            self.failure = self.error(code)
        if self.failure:
            raise self.failure
        return True

    def tune(self, iteration_s):
        """Report the duration of the last iteration, in seconds, to the tuner.
        The tuner searches for the partition and credit of the whole job that
        make iterations shortest, and prints each decision on stderr.  One rank
        calls tune() after each iteration."""
        with self.lock:
            if self._tuner:
                code = self.lib.sw_autotune_observe(self._tuner, iteration_s)
            else:
                code = self.lib.sw_autotune_open(self.pointer,
                                                 ctypes.byref(self._tuner))
            if code:
                raise self.error(code)

    def check(self):
        """Raise the job's error if the job has failed. A process without calls
        in flight learns of a failure only by a request to the agent, so
        allocate memory and free it."""
        pointer = ctypes.c_void_p()
        with self.lock:
            code = self.lib.sw_alloc(self.pointer, 1, ctypes.byref(pointer))
            if not code:
                code = self.lib.sw_free(self.pointer, pointer)
            if code and code != library.ENOMEM:
                raise self.error(code)

    def leave(self):
        """Leave the job.  The memory of tensors stays valid while it is in
        use."""
        while self.devices:
            self.devices.pop().close()
        with self.lock:
            if self._tuner:
                self.lib.sw_autotune_close(ctypes.byref(self._tuner))
            self.lib.sw_leave(self.pointer)
        self.trace(None)

    def trace(self, new):
        """Close the timeline, and continue with a new one, or with None."""
        old, self.timeline = self.timeline, new
        if old:
            old.close()
