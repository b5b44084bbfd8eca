# staging.py - tensors in a GPU's memory: which go through pinned memory
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of one CUDA device have the buffers of their gradients in its
memory; sums go there in place (sumwire/device.py).  Where one rank cannot, all
copy through memory that is not pinned.  So it is with tensors of allreduce and
of groups, but each rank decides for itself: of those that differ one call fails.
With SUMWIRE_DEVICE=fake what is of the CPU goes this way, too, for tests."""
import warnings

import torch

from sumwire.client import SumwireError
from sumwire.device import Device, is_host
from sumwire.torch.channel import channel
from sumwire.torch.job import current, dtype_name, short


class Staged:
    """A tensor of a device; as job.Shared."""
    __slots__ = ("tensor", "client", "flat", "n_pushes")

    def __init__(self, device, tensor, dtype):
        self.client, self.tensor = device, tensor
        self.flat = torch.zeros(tensor.n, dtype=dtype, device=device.place)
        device.kept.append(self.flat)
        tensor.address = self.flat.data_ptr()
        self.n_pushes = 0

    def part(self, first, count):
        """Some elements, a tensor by itself: .data counts its own changes."""
        return self.flat[first:first + count].data

    def follow(self, stream):
        return self.client.follow(stream)

    def view(self, shape):
        return self.flat.view(shape)


class Stage(Device):
    """A device as torch knows it.  can_hold: its streams wait for sums, instead
    of threads; one that was waited for so may be open until its next push."""

    def __init__(self, client, place):
        self.place = place
        self.held = set()  # tensors that a stream waits for
        self.kept = []  # as long as it is open: it copies from and to them
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
        """All that streams wait for has ended, or an error says why not."""
        for tensor in list(self.held):
            self.settle(tensor)

    def settle(self, tensor):
        """If a stream waits for it, the thread does, too."""
        if tensor not in self.held:
            return
        self.held.remove(tensor)
        if tensor.is_open:
            super().wait(tensor)

    def follow(self, stream):
        """What is done now comes behind what that stream has, None: nothing.
        Returns the stream of now."""
        if self.place.type != "cuda":
            return None
        now = torch.cuda.current_stream(self.place)
        if stream is not None and stream != now:
            now.wait_stream(stream)
        return now

    def make(self, descs):
        """Declare (name, elements, torch dtype, priority)..."""
        tensors = self.declare([
            (short(name), n, dtype_name(dtype, name), priority)
            for name, n, dtype, priority in descs])
        return [Staged(self, t, d[2]) for t, d in zip(tensors, descs)]


def place_of(tensors):
    """The one device of all of them that a stage is for, or None."""
    places = {t.device for t in tensors}
    if len(places) != 1:
        return None
    place = places.pop()
    return place if place.type == "cuda" or (
        place.type == "cpu" and is_host()) else None


def find_stage(job, parameters):
    """A Stage, if each rank has one for its own; else None.  All ranks call
    it."""
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
        why = f"rank {have.index(0)} has no stage"
    if any(p.is_cuda for p in parameters):
        warnings.warn(f"sumwire copies gradients of CUDA devices through "
                      f"unpinned memory, one after the other: {why}",
                      stacklevel=2)
    return None


def stage_of(tensors):
    """Of what this rank sums by name; None: it copies to shared memory."""
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
