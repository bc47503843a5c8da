# SPDX-License-Identifier: BSD-3-Clause
"""Runs a rank's program with torch on tensors of any device: messages as batches, collectives on
existing process groups. Everything is enqueued on the current stream; nothing waits on the host.
Folds of the plan's own steps keep its order; those of a collective follow the library's.
"""

import math

import torch
import torch.distributed as dist

from ._layouts import torch_name

_FOLDS = {
    "sum": torch.add,
    "min": torch.minimum,
    "max": torch.maximum,
    "product": torch.mul,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}
_REDUCE_OPS = {
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "product": dist.ReduceOp.PRODUCT,
    "band": dist.ReduceOp.BAND,
    "bor": dist.ReduceOp.BOR,
    "bxor": dist.ReduceOp.BXOR,
}


def run_steps(plan, rank, arrays, group=None, groups=()):
    """arrays: by tensor the rank's source and destination, None if it has none. Messages go over
    `group` (default: all ranks). A collective uses the one of `groups` with exactly its ranks in
    its order, or else messages."""
    run = _Run(plan, plan.operations(rank), arrays, group, groups)
    for operation in run.program.operations:
        getattr(run, operation.kind)(operation)


class _Run:
    def __init__(self, plan, program, arrays, group, groups):
        self.program = program
        self._group = group
        self._groups = {tuple(dist.get_process_group_ranks(each)): each for each in groups}
        tensors = [tensor for pair in arrays for tensor in pair]
        like = next(tensor for tensor in tensors if tensor is not None)
        self._buffers = {
            buffer: _with_dims(tensor, program.dims)
            for buffer, tensor in enumerate(tensors)
            if tensor is not None
        }
        arena = like.new_empty(program.arena_bytes, dtype=torch.uint8)
        for buffer, (offset, shape) in program.temporaries.items():
            number = program.tensor_of[buffer]
            shards = [tensor for tensor in arrays[number] if tensor is not None]
            dtype = shards[0].dtype if shards else _dtype(plan.tensors[number].dtype)
            size = math.prod(shape) * dtype.itemsize
            self._buffers[buffer] = arena[offset : offset + size].view(dtype).view(shape)

    def _at(self, box):
        return self._buffers[box.buffer][box.slices]

    def copy(self, operation):
        for source, destination in operation.moves:
            self._at(destination).copy_(self._at(source))

    def fill(self, operation):
        for box in operation.boxes:
            self._at(box).zero_()

    def reduce(self, operation):
        for fold in operation.folds:
            self._fold(
                [self._at(box) for box in fold.operands],
                self._at(fold.into),
                operation.op,
                operation.divisor,
            )

    @staticmethod
    def _fold(operands, into, op, divisor):
        value = operands[0]
        for operand in operands[1:]:
            value = _FOLDS[op](value, operand)
        into.copy_(value if divisor == 1 else value / divisor)

    def exchange(self, operation):
        sends = [(each.peer, self._packed(each.boxes)) for each in operation.sends]
        landed = [(each, self._landing(each.boxes)) for each in operation.receives]
        self._carry(sends, [(each.peer, tensor) for each, tensor in landed])
        for message, tensor in landed:
            self._unpack(message.boxes, tensor)

    def _views(self, boxes):
        """In the order in which they are packed. Of several dtypes they are packed as bytes, the
        largest elements first, so that all are aligned."""
        views = [self._at(box) for box in boxes]
        if any(view.dtype != views[0].dtype for view in views):
            views.sort(key=lambda view: -view.element_size())
            return views, torch.uint8
        return views, views[0].dtype

    def _packed(self, boxes):
        views, dtype = self._views(boxes)
        if len(views) == 1 and views[0].is_contiguous():
            return views[0].reshape(-1)
        # A column, reshaped, still has its stride, with which bytes of it cannot be viewed.
        return torch.cat([view.reshape(-1).contiguous().view(dtype) for view in views])

    def _landing(self, boxes):
        views, dtype = self._views(boxes)
        if len(views) == 1 and views[0].is_contiguous():
            return views[0].view(-1)
        size = sum(view.numel() * view.element_size() for view in views)
        return views[0].new_empty(size // dtype.itemsize, dtype=dtype)

    def _unpack(self, boxes, tensor):
        views, dtype = self._views(boxes)
        if len(views) == 1 and views[0].data_ptr() == tensor.data_ptr():
            return
        begin = 0
        for view in views:
            end = begin + view.numel() * view.element_size() // dtype.itemsize
            view.copy_(tensor[begin:end].view(view.dtype).view(view.shape))
            begin = end

    def _carry(self, sends, receives):
        asked = [dist.P2POp(dist.irecv, tensor, peer, self._group) for peer, tensor in receives]
        asked += [dist.P2POp(dist.isend, tensor, peer, self._group) for peer, tensor in sends]
        for work in dist.batch_isend_irecv(asked) if asked else ():
            work.wait()

    # ---- collectives: on the group with the same ranks, else as messages

    def _ends(self, operation):
        """Input and output as flat tensors, and a function that copies the output into place."""
        given = self._at(operation.input).reshape(-1)
        place = self._at(operation.output)
        taken = place.view(-1) if place.is_contiguous() else place.new_empty(place.numel())

        def land():
            if not place.is_contiguous():
                place.copy_(taken.view(place.shape))

        return given, taken, land

    def _group_of(self, operation):
        return self._groups.get(operation.group)

    def _others(self, operation):
        return [(i, r) for i, r in enumerate(operation.group) if i != operation.member]

    def all_gather(self, operation):
        given, taken, land = self._ends(operation)
        if group := self._group_of(operation):
            dist.all_gather_into_tensor(taken, given, group=group)
        else:
            blocks = taken.chunk(len(operation.group))
            blocks[operation.member].copy_(given)
            others = self._others(operation)
            self._carry([(r, given) for _, r in others], [(r, blocks[i]) for i, r in others])
        land()

    def all_to_all(self, operation):
        given, taken, land = self._ends(operation)
        if group := self._group_of(operation):
            dist.all_to_all_single(taken, given, group=group)
        else:
            self._all_to_all(operation, given, taken)
        land()

    def _all_to_all(self, operation, given, taken):
        count = len(operation.group)
        to, back = given.chunk(count), taken.chunk(count)
        back[operation.member].copy_(to[operation.member])
        others = self._others(operation)
        self._carry([(r, to[i]) for i, r in others], [(r, back[i]) for i, r in others])

    def reduce_scatter(self, operation):
        given, taken, land = self._ends(operation)
        if group := self._group_of(operation):
            dist.reduce_scatter_tensor(taken, given, _REDUCE_OPS[operation.op], group=group)
            self._divide(taken, operation)
        else:
            addends = given.new_empty(len(operation.group) * taken.numel())
            self._all_to_all(operation, given, addends)
            addends = addends.chunk(len(operation.group))
            self._fold(addends, taken, operation.op, operation.divisor)
        land()

    def all_reduce(self, operation):
        given, taken, land = self._ends(operation)
        if group := self._group_of(operation):
            taken.copy_(given)
            dist.all_reduce(taken, _REDUCE_OPS[operation.op], group=group)
            self._divide(taken, operation)
        else:
            others = self._others(operation)
            addends = [
                given if i == operation.member else torch.empty_like(given)
                for i in range(len(operation.group))
            ]
            self._carry([(r, given) for _, r in others], [(r, addends[i]) for i, r in others])
            self._fold(addends, taken, operation.op, operation.divisor)
        land()

    @staticmethod
    def _divide(tensor, operation):
        if operation.divisor != 1:
            tensor.div_(operation.divisor)


def _with_dims(tensor, dims):
    """In a plan all tensors have the same number of dims, at least one."""
    return tensor.view(*[1] * (dims - tensor.ndim), *tensor.shape) if tensor.ndim < dims else tensor


def _dtype(text):
    return getattr(torch, torch_name(text))
