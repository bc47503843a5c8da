# SPDX-License-Identifier: BSD-3-Clause
"""Messages over a communicator of mpi4py; its ranks are the plan's ranks."""

# The MPI standard guarantees tags below this. Messages between two ranks do not overtake each
# other, so two messages with the same tag do no harm.
_TAGS = 32768


class MpiTransport:
    def __init__(self, communicator):
        self._communicator = communicator

    def exchange(self, sends, receives):
        # A message of more than 2^31-1 bytes is sent in parts.
        requests = [
            self._communicator.Irecv(part, source=each.peer, tag=each.tag % _TAGS)
            for each in receives
            for part in _parts(each.memory)
        ]
        requests += [
            self._communicator.Isend(part, dest=each.peer, tag=each.tag % _TAGS)
            for each in sends
            for part in _parts(each.memory)
        ]
        for request in requests:
            request.Wait()


def _parts(memory, most=1 << 30):
    return [memory[begin : begin + most] for begin in range(0, len(memory), most)]
