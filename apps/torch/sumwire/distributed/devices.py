# devices.py - collectives of tensors in a GPU's memory
# SPDX-License-Identifier: BSD-3-Clause
"""Data moves between the GPU's memory and the network in pieces, through pinned
memory (sumwire/device.py).  With SUMWIRE_DEVICE=fake, CPU tensors also take
this way, for tests."""
import torch

from sumwire import locks
from sumwire.device import Device, is_host


class Place(Device):
    """Open a torch.device.  can_hold: its streams can wait in place of threads.
    """

    def __init__(self, client, place):
        self.place = place
        self.is_cuda = place.type == "cuda"
        self._side = None
        super().__init__(client, place.index if self.is_cuda else 0)
        self.can_hold = self.is_cuda and self.can_wait(
            torch.cuda.Stream(place).cuda_stream)

    def stream(self):
        """Return this thread's current stream, or None for the CPU."""
        if not self.is_cuda:
            return None
        return torch.cuda.current_stream(self.place).cuda_stream

    def finish(self, what):
        """Call what(), and wait until its results are ready for every
        stream."""
        if not self.is_cuda:
            what()
            return
        self._side = self._side or torch.cuda.Stream(self.place)
        with torch.cuda.stream(self._side):
            what()
        self._side.synchronize()


class Places:
    """Hold the devices of an attachment; each opens with its first tensor."""

    def __init__(self, client):
        self.client = client
        self.lock = locks.make()
        self.by_device = {}
        self.is_fake = is_host()

    def of(self, tensor):
        """Return the Place of a tensor, or None if the tensor is in host
        memory. """
        if tensor.is_cpu and not self.is_fake:
            return None
        device = tensor.device
        with self.lock:
            if device not in self.by_device:
                self.by_device[device] = Place(self.client, device)
            return self.by_device[device]
