# client.py - one attachment to an agent: declare, push, wait, leave
# SPDX-License-Identifier: BSD-3-Clause
"""libsumwire for Python, without any framework.

    client = Client()
    [t] = client.declare([("weights", 1000, "f32", 0)])
    ... write t.memory ...
    client.push(t, step=0)
    client.wait(t)                  # t.memory now holds the sum

A client may be used by several threads: its lock makes them take turns to
begin, and a tensor's to wait for it.
"""
import ctypes
import math
import os
import threading

from sumwire import library, locks

DEFAULT_AGENT = "agent.sock"  # libsumwire knows where
TEXT_BYTES = 200  # of a reason that other ranks get
OPEN_S = 60  # that a client waits for the other ranks
SLICE_S = 1  # longest wait inside libsumwire; after it Ctrl-C is looked at
SLICE_MS = 1000 * SLICE_S


def open_seconds(limit_s):
    """How long to wait for agents and other ranks: SUMWIRE_OPEN_TIMEOUT; without
    it a minute, or less where the caller's own limit is shorter."""
    if "SUMWIRE_OPEN_TIMEOUT" in os.environ:
        return seconds("SUMWIRE_OPEN_TIMEOUT", OPEN_S)
    return max(1, min(OPEN_S, math.ceil(limit_s)))


class HorovodInternalError(RuntimeError):
    """Horovod's name for a collective that has failed, which its scripts catch."""


class SumwireError(HorovodInternalError):
    """What libsumwire reports.  name is that of enum sw_error ("SW_EPEER"), code
    its value, text the sentence."""

    def __init__(self, name, text):
        super().__init__(f"{text} [{name}]")
        self.name, self.text = name, text
        self.code = library.ERRORS.get(name, 0)

    def __reduce__(self):
        """For other processes: pools, torch's checkpoints."""
        return type(self), (self.name, self.text)


def seconds(variable, default):
    """The positive number of seconds in an environment variable."""
    text = os.environ.get(variable, default)
    if not str(text).isdigit() or not 0 < int(text) < 1 << 31:
        raise ValueError(f"{variable}={text}: a number of seconds, at least 1, "
                         f"was expected")
    return int(text)


class Tensor:
    """One declared tensor.  memory is a ctypes array over its bytes in shared
    memory and keeps the client's mapping alive, whoever holds it.  result is
    the address where its sums come; with several local ranks another one, and
    they are copied from there."""
    __slots__ = ("name", "n", "dtype", "pointer", "memory", "result", "handle",
                 "lock")

    def __init__(self, client, desc, pointer):
        self.name, self.n, self.dtype = desc[:3]
        self.pointer = pointer
        self.handle = None  # of the open push_pull
        self.lock = locks.make()  # who looks whether that has ended
        n_bytes = self.n * library.DTYPES[self.dtype][1]
        self.memory = (ctypes.c_uint8 * n_bytes).from_address(
            client.lib.sw_tensor_data(pointer))
        self.memory.mapping = client.mapping
        self.result = client.lib.sw_tensor_result(pointer)

    def take_result(self):
        """The sum into memory, if it is not there already."""
        if self.result != ctypes.addressof(self.memory):
            ctypes.memmove(self.memory, self.result, len(self.memory))


class Mapping:
    """The C handle; freed when nobody can reach its memory any more."""

    def __init__(self, lib, pointer):
        self.lib, self.pointer = lib, pointer

    def __del__(self):
        self.lib.sw_close(ctypes.byref(self.pointer))


class Client:
    """One attachment, as local_rank of the agent or as a launcher says.  Waits
    at most open_timeout_s (open_seconds(limit_s)) for the agent, the servers and
    all other ranks, and at most wait_timeout_s for a sum.  error_type: of what
    it raises."""

    def __init__(self, agent=None, local_rank=None, error_type=SumwireError,
                 limit_s=OPEN_S):
        self.lib, self.error_type = library.load(), error_type
        self.how_gone = None  # () -> how the agent has ended, in words
        self.agent = agent or os.environ.get("SUMWIRE_AGENT", DEFAULT_AGENT)
        self.local_rank = local_rank
        self.open_timeout_s = open_seconds(limit_s)
        self.wait_timeout_s = seconds("SUMWIRE_WAIT_TIMEOUT", 600)
        self.lock = locks.make()
        self.mapping = Mapping(self.lib, self._open())
        self.pointer = self.mapping.pointer
        self.rank = self.lib.sw_rank(self.pointer)
        self.size = self.lib.sw_size(self.pointer)
        # on this machine; at this agent
        self.local_rank = self.lib.sw_local_rank(self.pointer)
        self.local_size = self.lib.sw_local_size(self.pointer)
        self.agent_rank = self.lib.sw_agent_rank(self.pointer)
        self.agent_size = self.lib.sw_agent_size(self.pointer)
        epoch = ctypes.c_uint64()
        name = self.lib.sw_job(self.pointer, ctypes.byref(epoch)).decode()
        self.job = name, epoch.value  # two clients of one job have the same
        self.failure = None  # of a push; but for a mismatch it ends the job
        self.devices = []  # that are open (device.py)
        self.idle = lambda: None  # called while a thread waits for a sum
        self._tuner = ctypes.c_void_p()
        self._handle = ctypes.c_uint64()
        self._handle_at = ctypes.byref(self._handle)

    def _open(self):
        """sw_open in a thread of its own, so that Ctrl-C ends the wait."""
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
            # The text belongs to the thread.
            result.extend((code, self.lib.sw_last_error(None)))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(SLICE_S)
        if result[0]:
            raise self.error(*result)
        return pointer

    def error(self, code, text=None):
        """The exception for a code of the library, in the thread that got it."""
        if text is None:
            text = self.lib.sw_last_error(self.pointer)
        text = text.decode(errors="replace")
        if code == library.EEXPIRED:  # PyTorch knows one kind of timeout
            code = library.ETIMEDOUT
        if code == library.ECLOSED and self.how_gone and self.is_over():
            text += f" ({self.how_gone()})"
        return self.error_type(self.lib.sw_error_name(code).decode(), text)

    def is_over(self):
        """Is the attachment?  Its reason is that of all calls.  Asks the library
        alone: of 0 bytes there is no memory."""
        return self.lib.sw_alloc(self.pointer, 0, ctypes.byref(
            ctypes.c_void_p())) != library.EINVAL

    def declare(self, descs, is_async=False):
        """Declare (name, elements, dtype, priority)...; priority 0 is the most
        urgent.  Every rank declares the same.  is_async: the servers keep
        their values; the first round is a broadcast, then pushes are deltas.
        Returns Tensors.  Where another rank declared one otherwise, its
        pushes fail."""
        n = len(descs)
        array = library.describe(descs, is_async)
        out = (ctypes.c_void_p * n)()
        with self.lock:
            code = self.lib.sw_declare(self.pointer, array, n, out)
            if code not in (0, library.EMISMATCH):
                raise self.error(code)
        return [Tensor(self, d, p) for d, p in zip(descs, out)]

    def push(self, tensor, step):
        """Start to replace the tensor by its sum.  One push at a time."""
        with self.lock:
            self._begun(tensor, self.lib.sw_push_pull(
                self.pointer, tensor.pointer, step, self._handle_at))

    def broadcast(self, tensor, root, step):
        """Start to replace the tensor by the root's; a push like any other."""
        with self.lock:
            self._begun(tensor, self.lib.sw_broadcast(
                self.pointer, tensor.pointer, root, step, self._handle_at))

    def _begun(self, tensor, code):
        if code:
            raise self.error(code)
        tensor.handle = self._handle.value

    def is_done(self, tensor):
        """Has the tensor's push ended?  True also when none is open."""
        if not tensor.lock.acquire(blocking=False):
            return False  # another thread waits for it
        try:
            return self._ended(tensor, self.lib.sw_poll)
        finally:
            tensor.lock.release()

    def wait(self, tensor):
        """Block until the tensor's push has ended."""
        def has_ended():
            with tensor.lock:
                return self._ended(tensor, self.wait_a_slice)
        self.wait_for(tensor.name, has_ended)

    def wait_a_slice(self, pointer, handle):
        return self.lib.sw_wait_for(pointer, handle, SLICE_MS)

    def wait_for(self, name, has_ended):
        """Until has_ended(), which waits SLICE_S, says so."""
        for _ in range(0, self.wait_timeout_s, SLICE_S):
            if has_ended():
                return
            self.idle()
        text = self.lib.sw_last_error(self.pointer).decode(errors="replace")
        self.give_up(
            f"tensor '{name}': timed out, no sum in {self.wait_timeout_s} s "
            f"(SUMWIRE_WAIT_TIMEOUT){''.join(text.partition('; last')[1:])}")

    def give_up(self, text):
        """Raise an error, and end the job with it at all ranks: a late rank must
        not go on with a sum that this one never got."""
        self.failure = self.error_type("SW_ETIMEDOUT", text)
        with self.lock:
            self.lib.sw_abort(self.pointer, text.encode()[:TEXT_BYTES])
        raise self.failure

    def _ended(self, tensor, ask):
        """Has it, as that function of the library says?"""
        code = 0
        if tensor.handle is not None:
            code = ask(self.pointer, tensor.handle)
        if code in (library.EAGAIN, library.ETIMEDOUT):
            return False
        if tensor.handle is not None and not code:
            tensor.take_result()
        tensor.handle = None
        if code == library.EMISMATCH:
            raise self.error(code)  # the job goes on
        if code and not self.failure:
            self.failure = self.error(code)
        if self.failure:
            raise self.failure
        return True

    def tune(self, iteration_s):
        """The last iteration took that long: search for the partition and
        credit of the whole job with which it is shortest.  One rank calls it
        after each iteration; every decision is a line on stderr."""
        with self.lock:
            if self._tuner:
                code = self.lib.sw_autotune_observe(self._tuner, iteration_s)
            else:
                code = self.lib.sw_autotune_open(self.pointer,
                                                 ctypes.byref(self._tuner))
            if code:
                raise self.error(code)

    def check(self):
        """What the job has failed of, as an error.  Who has nothing under way
        learns it by a question to the agent: for memory, which goes back."""
        pointer = ctypes.c_void_p()
        with self.lock:
            code = self.lib.sw_alloc(self.pointer, 1, ctypes.byref(pointer))
            if not code:
                code = self.lib.sw_free(self.pointer, pointer)
            if code and code != library.ENOMEM:
                raise self.error(code)

    def leave(self):
        """Leave the job.  Memory of tensors stays as long as it is in use."""
        while self.devices:
            self.devices.pop().close()
        with self.lock:
            if self._tuner:
                self.lib.sw_autotune_close(ctypes.byref(self._tuner))
            self.lib.sw_leave(self.pointer)
