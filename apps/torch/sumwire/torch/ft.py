# ft.py - a process group for torchft, whose members change while it trains
# SPDX-License-Identifier: BSD-3-Clause
"""With torchft 0.2 (pip install torchft):

    from torchft import Manager
    from sumwire.torch.ft import ProcessGroup

    manager = Manager(pg=ProcessGroup(timeout=timedelta(seconds=30)), ...)

torchft's manager calls configure() with a new store and new members whenever a
replica dies, leaves or comes.  Each time sumwire makes a new job for them, with
agents of its own, and the old one ends."""
from datetime import timedelta

from torchft.process_group import ProcessGroupWrapper

from sumwire.distributed import create_group


class ProcessGroup(ProcessGroupWrapper):
    """sumwire's group as torchft wants it.

    timeout  of configure(), which waits for the other members, and of collectives
    """

    def __init__(self, timeout=timedelta(seconds=60)):
        super().__init__(timeout)
        self._error = None  # of a group that was aborted

    def configure(self, *arguments, **more):
        self._error = None
        super().configure(*arguments, **more)

    def _create_pg(self, store, rank, world_size):
        return create_group(store, rank, world_size, self._timeout,
                            f"torchft.{self._quorum_id}")

    def getBackendName(self):
        return "torchft-sumwire"

    def abort(self, errored=True):
        """End what is under way, at all members; torchft then configures again."""
        if errored and self._pg is not None:
            self._error = self._pg.error or RuntimeError("abort() was called")
        super().abort(errored)

    def errored(self):
        """The first error of the group, after which it must be configured again;
        or None."""
        return self._error or getattr(self._pg, "error", None)

    def set_timeout(self, timeout):
        super().set_timeout(timeout)
        if self._pg is not None:
            self._pg.set_timeout(timeout)

    def shutdown(self):
        """Leave the job."""
        if self._pg is not None:
            self._pg.shutdown()
        super().shutdown()
