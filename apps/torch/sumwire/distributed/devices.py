# devices.py - collectives of tensors in a GPU's memory
# SPDX-License-Identifier: BSD-3-Clause
"""They go from and to that memory by pieces, through pinned memory
(sumwire/device.py).  With SUMWIRE_DEVICE=fake tensors of the CPU go this way,
too, for tests.  None of it has been run on a GPU."""
import torch

from sumwire import locks
from sumwire.device import Device, is_host


class Place(Device):
    """A torch.device.  can_hold: its streams wait, instead of threads."""

    def __init__(self, client, place):
        self.place = place
        self.is_cuda = place.type == "cuda"
        self._side = None
        super().__init__(client, place.index if self.is_cuda else 0)
        self.can_hold = self.is_cuda and self.can_wait(
            torch.cuda.Stream(place).cuda_stream)

    def stream(self):
        """The current one, of this thread."""
        if not self.is_cuda:
            return None
        return torch.cuda.current_stream(self.place).cuda_stream

    def finish(self, what):
        """Call what(); what it computes is there, for every stream."""
        if not self.is_cuda:
            what()
            return
        self._side = self._side or torch.cuda.Stream(self.place)
        with torch.cuda.stream(self._side):
            what()
        self._side.synchronize()


class Places:
    """Those that an attachment has used, opened with their first tensor."""

    def __init__(self, client):
        self.client = client
        self.lock = locks.make()
        self.by_device = {}

    def of(self, tensor):
        """None: it is of this machine's memory."""
        device = tensor.device
        if device.type == "cpu" and not is_host():
            return None
        with self.lock:
            if device not in self.by_device:
                self.by_device[device] = Place(self.client, device)
            return self.by_device[device]
