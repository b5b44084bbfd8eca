# device.py - tensors in a device's memory, through pinned memory
# SPDX-License-Identifier: BSD-3-Clause
"""<sumwire/device.h> for Python.  With SUMWIRE_DEVICE=fake the device is this
machine's memory, which tests use."""
import ctypes
import os

from sumwire import library
from sumwire.client import SLICE_MS


def is_host():
    """Does the environment want a device that is none?"""
    return os.environ.get("SUMWIRE_DEVICE", "").split(":")[0] == "fake"


class DeviceTensor:
    """One declared tensor; address is where it lies in the device's memory,
    which lives as long as the device is open.  is_open: a call has not ended,
    as far as anybody has looked."""
    __slots__ = ("name", "n", "dtype", "pointer", "address", "is_open")

    def __init__(self, desc, pointer):
        self.name, self.n, self.dtype = desc[:3]
        self.pointer = pointer
        self.address, self.is_open = None, False


class Device:
    """A device, over a Client.  Goes with it, or by close.  Calls have the names
    of the client's, and mean the same."""

    def __init__(self, client, number):
        self.client, self.lib, self.number = client, client.lib, number
        s = library.DeviceSettings()
        s.size, s.number = ctypes.sizeof(s), number
        self.pointer = ctypes.c_void_p()
        code = self.lib.sw_device_open(client.pointer, ctypes.byref(s),
                                       ctypes.byref(self.pointer))
        if code:
            raise client.error(code)
        client.devices.append(self)

    def declare(self, descs):
        """As Client.declare; the caller sets address."""
        n = len(descs)
        array = library.describe(descs)
        out = (ctypes.c_void_p * n)()
        with self.client.lock:
            code = self.lib.sw_device_declare(self.pointer, array, n, out)
            if code not in (0, library.EMISMATCH):
                raise self.client.error(code)
        return [DeviceTensor(d, p) for d, p in zip(descs, out)]

    def stream(self):
        """The stream behind whose work a call begins."""
        return None

    def collective(self, group, args, handle):
        """sw_coll with both buffers in its memory; pointers, as of ctypes."""
        if not self.pointer:
            return library.ECLOSED
        return self.lib.sw_coll_device(self.pointer, group, args,
                                       self.stream(), handle)

    def hold(self, handle):
        """What the stream is given from now on waits for the collective; where
        streams cannot, this thread does."""
        if not self.pointer:
            return library.ECLOSED
        return self.lib.sw_coll_hold(self.pointer, handle, self.stream())

    def can_wait(self, stream):
        """Does that stream wait, where else a thread would?"""
        code = self.lib.sw_device_can_hold(self.pointer, stream)
        if code not in (0, library.ENOENT):
            raise self.client.error(code)
        return not code

    def push(self, tensor, step):
        """Start to replace the tensor by its sum, when the stream is there."""
        self._begin(self.lib.sw_push_pull_device, tensor, step)

    def broadcast(self, tensor, root, step):
        """Start to replace it by the root's, the same."""
        self._begin(self.lib.sw_broadcast_device, tensor, step, root)

    def _begin(self, start, tensor, step, root=0):
        call = library.DeviceCall()
        call.size = ctypes.sizeof(call)
        setattr(call, "from", tensor.address)  # a word of Python's
        call.to = tensor.address
        call.stream, call.step = self.stream(), step & 0xffffffff
        call.root = root
        code = start(tensor.pointer, ctypes.byref(call))
        if code:
            raise self.client.error(code)
        tensor.is_open = True

    def is_done(self, tensor):
        return not tensor.is_open or self._ended(tensor,
                                                 self.lib.sw_device_poll)

    def wait(self, tensor):
        """Block until the call has ended; the sum is there for any stream."""
        self.client.wait_for(tensor.name, lambda: self._ended(
            tensor, self.wait_a_slice))

    def wait_a_slice(self, pointer):
        return self.lib.sw_device_wait_for(pointer, SLICE_MS)

    def wait_by_stream(self, tensor):
        """What the stream is given from now on waits for the sum; where
        streams cannot, this thread does.  An error that comes later is that of
        the next wait()."""
        if not self._ended(tensor, self.hold_tensor, True):
            self.wait(tensor)

    def hold_tensor(self, pointer):
        return self.lib.sw_device_hold(pointer, self.stream())

    def _ended(self, tensor, ask, stays_open=False):
        """stays_open: what is asked does not say how it ends."""
        code = ask(tensor.pointer)
        if code in (library.EAGAIN, library.ETIMEDOUT):
            return False
        tensor.is_open = code == library.EPERM or (stays_open and not code)
        if code:
            raise self.client.error(code)
        return True

    def close(self):
        self.lib.sw_device_close(ctypes.byref(self.pointer))
