# SPDX-License-Identifier: BSD-3-Clause
"""A drawn model with two parallelisms, and what every buffer of its ranks holds before the transfer
and after it: the numbers of elements, worked out with lists that are cut as the frameworks cut
tensors (tests/tools/models)."""

import pathlib
import sys

import reshard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from model_layouts import short  # noqa: E402
from models.configs import ConfiguredJob  # noqa: E402
from models.numbers import flat  # noqa: E402

PADDING = 0x77  # what is in destinations before the transfer
BYTES = {"bf16": 2, "f32": 4}


class DrawnTransfer:
    def __init__(self, seed, **options):
        self.job = ConfiguredJob(seed)
        self.model = reshard.models.config(self.job.config())
        words = self.job.words()
        self.words = dict(zip(words[::2], words[1::2]))
        self.transfer = reshard.models.transfer(
            self.model.side(self.words["--from"]), self.model.side(self.words["--to"]),
            ranks=self.words["--ranks"], to_ranks=self.words["--to-ranks"], **options,
        )  # fmt: skip
        self.numbers = {}
        for which, side in zip(self.job.sides(), ("from", "to")):
            for (rank, name), numbers in self.job.buffers(which).items():
                self.numbers[side, rank, short(name)] = flat(numbers)

    def held(self, side, rank):
        """By the names of the buffers, the numbers that they hold; -1 is padding."""
        found = self.transfer.buffers(side, rank)
        return {each.name: (each, self.numbers[side, rank, short(each.name)]) for each in found}

    def source(self, rank):
        return {name: _bytes(each, numbers, b"\0")
                for name, (each, numbers) in self.held("from", rank).items()}  # fmt: skip

    def expected(self, rank):
        fill = bytes([PADDING])
        return {name: _bytes(each, numbers, fill)
                for name, (each, numbers) in self.held("to", rank).items()}  # fmt: skip

    def destination(self, rank):
        return {each.name: bytearray([PADDING]) * each.bytes
                for each in self.transfer.buffers("to", rank)}  # fmt: skip

    def unlisted(self):
        """Buffers that the plan does not have, and the other way round."""
        want = {key for key, numbers in self.numbers.items() if numbers}
        found = {(side, each.rank, short(each.name))
                 for side in ("from", "to") for each in self.transfer.buffers(side) if each.bytes}
        return want ^ found


def _bytes(buffer, numbers, fill):
    """Elements as their numbers, of which two bytes are enough in models of this size. A buffer in
    f32 of weights in bf16 (GLM's routers when served) has them in its upper half."""
    size = BYTES[buffer.dtype]
    shift = 16 if buffer.dtype == "f32" and buffer.name.endswith("mlp.gate.weight") else 0
    assert len(numbers) * size == buffer.bytes, f"{buffer}: {len(numbers)} elements"
    assert max([0, *numbers]) < 1 << 16
    return bytearray().join(
        (number << shift).to_bytes(size, sys.byteorder) if number >= 0 else fill * size
        for number in numbers
    )
