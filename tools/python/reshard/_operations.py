# SPDX-License-Identifier: BSD-3-Clause
"""The operations of one rank, in order, as values: for callers that run a plan by their own means.
"""

import ctypes as c
from typing import List, NamedTuple, Optional, Sequence, Tuple

from . import _library as library

_KINDS = (
    "copy",
    "fill",
    "exchange",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "all_to_all",
)
_OPS = {0: "sum", 2: "min", 3: "max", 4: "product", 5: "band", 6: "bor", 7: "bxor"}



_Operation = library.struct(
    "Operation",
    *library.each(c.c_int32, "kind step part_count after_count reduce_op"),
    ("divisor", c.c_int64),
    *library.each(c.POINTER(c.c_int32), "after group"),
    *library.each(c.c_int32, "group_size member input output"),
    *library.each(c.c_int64, "input_bytes output_bytes"),
    *library.each(c.c_int32, "input_dim output_dim"),
    *library.each(library.Dims, "input_offset input_extents output_offset output_extents"),
)
_Message = library.struct(
    "Message", *library.each(c.c_int32, "receives peer move_count"), ("bytes", c.c_int64)
)
_Move = library.struct(
    "Move",
    *library.each(c.c_int32, "source destination reserved"),
    *library.each(library.Dims, "source_offset destination_offset extents"),
)
_Box = library.struct(
    "Box",
    *library.each(c.c_int32, "buffer operand_count reserved"),
    *library.each(library.Dims, "offset extents"),
)
_Facts = library.struct(
    "ProgramFacts",
    *library.each(c.c_int32, "rank operation_count buffer_count dims element_bytes"),
    ("arena_bytes", c.c_int64),
)


class Box(NamedTuple):
    """Elements of a buffer: 0 is the source, 1 the destination, higher numbers are temporaries. Of
    many tensors the t-th has 2 * t and 2 * t + 1, and temporaries come after all of them."""

    buffer: int
    slices: Tuple[slice, ...]


class Message(NamedTuple):
    peer: int  # rank
    boxes: List[Box]  # one after another, each dense and row-major


class Fold(NamedTuple):
    into: Box
    operands: List[Box]  # folded in this order


class Operation(NamedTuple):
    """`moves` of a copy, `boxes` of a fill (with zeros), `sends` and `receives` of an exchange,
    `folds` of a reduce. The other fields are for collectives; a box with a part per member has
    equal blocks."""

    kind: str
    step: int
    moves: Sequence[Tuple[Box, Box]] = ()
    boxes: Sequence[Box] = ()
    sends: Sequence[Message] = ()
    receives: Sequence[Message] = ()
    folds: Sequence[Fold] = ()
    op: str = "sum"
    divisor: int = 1
    group: Tuple[int, ...] = ()  # ranks, in order
    member: int = 0
    input: Optional[Box] = None
    output: Optional[Box] = None


class _Reader:
    def __init__(self, handle):
        self._handle = handle.pointer
        self.facts = library.asked("program_get_facts", _Facts(), self._handle)

    def _asked(self, name, result, *indices):
        return library.asked(
            "program_get_" + name, result, self._handle, *(c.c_int32(i) for i in indices)
        )

    def _box(self, buffer, offset, extents):
        dims = range(self.facts.dims)
        return Box(buffer, tuple(slice(offset[d], offset[d] + extents[d]) for d in dims))

    def _moves(self, index, message, count):
        for number in range(count):
            move = self._asked("move", _Move(), index, message, number)
            yield (
                self._box(move.source, move.source_offset, move.extents),
                self._box(move.destination, move.destination_offset, move.extents),
            )

    def _of_exchange(self, index, count):
        found = {"sends": [], "receives": []}
        for number in range(count):
            message = self._asked("message", _Message(), index, number)
            moves = self._moves(index, number, message.move_count)
            boxes = [move[message.receives] for move in moves]
            found["receives" if message.receives else "sends"].append(Message(message.peer, boxes))
        return found

    def _of_boxes(self, index, count):
        for number in range(count):
            box = self._asked("box", _Box(), index, number)
            operands = [
                self._asked("operand", _Box(), index, number, operand)
                for operand in range(box.operand_count)
            ]
            yield Fold(
                self._box(box.buffer, box.offset, box.extents),
                [self._box(each.buffer, each.offset, each.extents) for each in operands],
            )

    def operation(self, index):
        found = self._asked("operation", _Operation(), index)
        kind = _KINDS[found.kind]
        common = {
            "kind": kind,
            "step": found.step,
            "op": _OPS.get(found.reduce_op, "sum"),
            "divisor": found.divisor,
        }
        if kind == "copy":
            return Operation(moves=list(self._moves(index, 0, found.part_count)), **common)
        if kind == "fill":
            boxes = [fold.into for fold in self._of_boxes(index, found.part_count)]
            return Operation(boxes=boxes, **common)
        if kind == "exchange":
            return Operation(**self._of_exchange(index, found.part_count), **common)
        if kind == "reduce":
            return Operation(folds=list(self._of_boxes(index, found.part_count)), **common)
        return Operation(
            group=tuple(found.group[: found.group_size]),
            member=found.member,
            input=self._box(found.input, found.input_offset, found.input_extents),
            output=self._box(found.output, found.output_offset, found.output_extents),
            **common,
        )


class Program:
    """A rank's operations, which may run in listed order, and its temporaries by buffer: (offset in
    bytes within one arena, shape), and the number of the tensor that each is of."""

    def __init__(self, handle):
        reader = _Reader(handle)
        self.dims = reader.facts.dims
        self.arena_bytes = reader.facts.arena_bytes
        self.operations = [reader.operation(i) for i in range(reader.facts.operation_count)]
        self.temporaries = {}
        self.tensor_of = {}
        for buffer in range(2, reader.facts.buffer_count):
            found = library.asked(
                "program_get_buffer", library.Buffer(), handle.pointer, c.c_int32(buffer)
            )
            if found.arena_offset >= 0:
                shape = tuple(found.shape[: self.dims])
                self.temporaries[buffer] = (found.arena_offset, shape)
                self.tensor_of[buffer] = found.tensor
