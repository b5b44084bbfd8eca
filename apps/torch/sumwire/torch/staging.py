# staging.py - tensors in a GPU's memory, which travel through pinned memory
# SPDX-License-Identifier: BSD-3-Clause
"""If all parameters are on one CUDA device, their gradient buffers lie in its
memory, and sums arrive there in place (sumwire/device.py).  If one rank cannot
do so, all ranks copy through unpinned memory.  Tensors of allreduce and of
groups are treated alike, except that each rank decides for itself; if ranks
decide differently, the call fails.  With SUMWIRE_DEVICE=fake, CPU tensors also
take this way, for tests."""
import warnings

import torch

from sumwire.client import SumwireError
from sumwire.device import Device, is_host
from sumwire.torch.channel import channel
from sumwire.torch.job import current, dtype_name, short


class Staged:
    """Hold a tensor of a device, with the interface of job.Shared."""
    __slots__ = ("tensor", "client", "flat", "n_pushes")

    def __init__(self, device, tensor, dtype):
        self.client, self.tensor = device, tensor
        self.flat = torch.zeros(tensor.n, dtype=dtype, device=device.place)
        device.kept.append(self.flat)
        tensor.address = self.flat.data_ptr()
        self.n_pushes = 0

    def part(self, first, count):
        """Return some elements as a tensor of its own: .data counts its changes
        separately."""
        return self.flat[first:first + count].data

    def follow(self, stream):
        return self.client.follow(stream)

    def view(self, shape):
        return self.flat.view(shape)


class Stage(Device):
    """Open a torch.device.  can_hold: its streams can wait in place of threads.
    A tensor for which a stream waits may stay open until its next push."""

    def __init__(self, client, place):
        self.place = place
        self.held = set()  # tensors for which a stream waits
        self.kept = []  # device memory that must live until the stage closes
        number = place.index if place.type == "cuda" else 0
        super().__init__(client, number)
        self.can_hold = place.type == "cuda" and self.can_wait(
            torch.cuda.Stream(place).cuda_stream)

    def stream(self):
        if self.place.type != "cuda":
            return None
        return torch.cuda.current_stream(self.place).cuda_stream

    def push(self, tensor, step):
        self.settle(tensor)
        super().push(tensor, step)

    def broadcast(self, tensor, root, step):
        self.settle(tensor)
        super().broadcast(tensor, root, step)

    def wait(self, tensor):
        if not self.can_hold:
            super().wait(tensor)
        elif tensor.is_open:
            self.held.add(tensor)
            self.wait_by_stream(tensor)

    def finish(self):
        """Wait for all tensors for which streams wait, and raise their
        error."""
        for tensor in list(self.held):
            self.settle(tensor)

    def settle(self, tensor):
        """Wait for a tensor in this thread if a stream waits for it."""
        if tensor not in self.held:
            return
        self.held.remove(tensor)
        if tensor.is_open:
            super().wait(tensor)

    def follow(self, stream):
        """Make the current stream wait for the work of another stream, unless
        it is None.  Return the current stream, or None for the CPU."""
        if self.place.type != "cuda":
            return None
        now = torch.cuda.current_stream(self.place)
        if stream is not None and stream != now:
            now.wait_stream(stream)
        return now

    def make(self, descs):
        """Declare (name, elements, torch dtype, priority)..., and return a
        Staged for each."""
        tensors = self.declare([
            (short(name), n, dtype_name(dtype, name), priority)
            for name, n, dtype, priority in descs])
        return [Staged(self, t, d[2]) for t, d in zip(tensors, descs)]


def place_of(tensors):
    """Return the device of all tensors, if it is one device and can have a
    stage; otherwise None."""
    places = {t.device for t in tensors}
    if len(places) != 1:
        return None
    place = places.pop()
    return place if place.type == "cuda" or (
        place.type == "cpu" and is_host()) else None


def find_stage(job, parameters):
    """Return a Stage for the parameters, if every rank can open one; otherwise
    None.  All ranks call it."""
    place, stage, why = place_of(parameters), None, "they are of several devices"
    if place is not None:
        try:
            stage = job.stages.get(place) or Stage(job.client, place)
            job.stages[place] = stage
        except SumwireError as e:
            why = e.text
    have = channel().gather(int(stage is not None))
    if all(have):
        return stage
    if stage is not None:
        why = f"rank {have.index(0)} has no pinned memory for them"
    if any(p.is_cuda for p in parameters):
        warnings.warn(f"sumwire copies CUDA gradients one at a time, through "
                      f"unpinned memory, which is slower: {why}", stacklevel=2)
    return None


def stage_of(tensors):
    """Return this rank's Stage for tensors of one call, or None if they are
    copied to shared memory."""
    job, place = current(), place_of(tensors)
    if place is None or place in job.stages:
        return job.stages.get(place)
    try:
        job.stages[place] = Stage(job.client, place)
    except SumwireError as e:
        job.stages[place] = None
        warnings.warn(f"sumwire copies tensors of {place} through unpinned "
                      f"memory: {e.text}", stacklevel=2)
    return job.stages[place]
