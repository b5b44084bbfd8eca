# device.py - tensors in a device's memory, through pinned memory
# SPDX-License-Identifier: BSD-3-Clause
"""This module wraps <sumwire/device.h>.  With SUMWIRE_DEVICE=fake, host memory
acts as the device, for tests."""
import ctypes
import os

from sumwire import library
from sumwire.client import SLICE_MS


def is_host():
    """Return True if the environment asks for the fake device."""
    return os.environ.get("SUMWIRE_DEVICE", "").split(":")[0] == "fake"


class DeviceTensor:
    """Hold one declared tensor.  address is its place in the device's memory,
    which must stay valid while the device is open.  is_open is true until a
    thread has seen the call end."""
    __slots__ = ("name", "n", "dtype", "pointer", "address", "is_open")

    def __init__(self, desc, pointer):
        self.name, self.n, self.dtype = desc[:3]
        self.pointer = pointer
        self.address, self.is_open = None, False


class Device:
    """Open a device for a Client, until close() or until the client leaves.
    Methods have the names and meanings of the client's."""
    is_traced = 0  # libsumwire itself notes its copies for a trace

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
        """Declare tensors as Client.declare does, and return DeviceTensors.
        The caller must set their addresses."""
        n = len(descs)
        array = library.describe(descs)
        out = (ctypes.c_void_p * n)()
        with self.client.lock:
            code = self.lib.sw_device_declare(self.pointer, array, n, out)
            if code not in (0, library.EMISMATCH):
                raise self.client.error(code)
        return [DeviceTensor(d, p) for d, p in zip(descs, out)]

    def stream(self):
        """Return the stream that a call follows; None: the default stream."""
        return None

    def collective(self, group, args, handle):
        """Call sw_coll_device, with both buffers in the device's memory, and
        return its code.  Arguments are ctypes pointers."""
        if not self.pointer:
            return library.ECLOSED
        return self.lib.sw_coll_device(self.pointer, group, args,
                                       self.stream(), handle)

    def hold(self, handle):
        """Make later work in the stream wait for the collective; this thread
        waits if the stream cannot.  Return the library's code."""
        if not self.pointer:
            return library.ECLOSED
        return self.lib.sw_coll_hold(self.pointer, handle, self.stream())

    def can_wait(self, stream):
        """Return True if the stream can wait in place of a thread."""
        code = self.lib.sw_device_can_hold(self.pointer, stream)
        if code not in (0, library.ENOENT):
            raise self.client.error(code)
        return not code

    def push(self, tensor, step):
        """Start to replace the tensor by its sum, after the work in the stream.
        """
        self._begin(self.lib.sw_push_pull_device, tensor, step)

    def broadcast(self, tensor, root, step):
        """Start to replace the tensor by the root's, after the work in the
        stream."""
        self._begin(self.lib.sw_broadcast_device, tensor, step, root)

    def _begin(self, start, tensor, step, root=0):
        call = library.DeviceCall()
        call.size = ctypes.sizeof(call)
        setattr(call, "from", tensor.address)  # from is a keyword of Python
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
        """Block until the call has ended.  Any stream can then use the sum."""
        self.client.wait_for(tensor.name, lambda: self._ended(
            tensor, self.wait_a_slice))

    def wait_a_slice(self, pointer):
        return self.lib.sw_device_wait_for(pointer, SLICE_MS)

    def wait_by_stream(self, tensor):
        """Make later work in the stream wait for the sum; this thread waits if
        the stream cannot.  The next wait() raises an error that occurs
        later."""
        if not self._ended(tensor, self.hold_tensor, True):
            self.wait(tensor)

    def hold_tensor(self, pointer):
        return self.lib.sw_device_hold(pointer, self.stream())

    def _ended(self, tensor, ask, stays_open=False):
        """Return True if the call has ended, as ask says.  stays_open: ask
        starts a wait of the stream, so the end of the call is still to be
        seen."""
        code = ask(tensor.pointer)
        if code in (library.EAGAIN, library.ETIMEDOUT):
            return False
        tensor.is_open = code == library.EPERM or (stays_open and not code)
        if code:
            raise self.client.error(code)
        return True

    def close(self):
        self.lib.sw_device_close(ctypes.byref(self.pointer))
