# SPDX-License-Identifier: BSD-3-Clause
"""Runs a rank's program with torch on tensors of any device: messages as batches, collectives on
existing process groups. Everything is enqueued on the current stream; nothing waits on the host.
Folds of the plan's own steps keep its order; those of a collective follow the library's.
"""

import torch
import torch.distributed as dist

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


def run_steps(plan, rank, source, destination, group=None, groups=()):
    """source, destination: the rank's shards, None if it has none. Messages go over `group`
    (default: all ranks). A collective uses the one of `groups` with exactly its ranks in its order,
    or else messages."""
    program = plan.operations(rank)
    run = _Run(program, source, destination, group, groups)
    for operation in program.operations:
        getattr(run, operation.kind)(operation)


class _Run:
    def __init__(self, program, source, destination, group, groups):
        like = source if source is not None else destination
        self._group = group
        self._groups = {tuple(dist.get_process_group_ranks(each)): each for each in groups}
        arena = like.new_empty(program.arena_bytes, dtype=torch.uint8)
        self._buffers = {}
        for buffer, tensor in enumerate((source, destination)):
            if tensor is not None:
                # A plan gives a scalar one dim.
                self._buffers[buffer] = tensor.view(1) if tensor.ndim == 0 else tensor
        for buffer, (offset, shape) in program.temporaries.items():
            elements = 1
            for extent in shape:
                elements *= extent
            size = elements * like.element_size()
            self._buffers[buffer] = arena[offset : offset + size].view(like.dtype).view(shape)

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

    def _packed(self, boxes):
        views = [self._at(box) for box in boxes]
        if len(views) == 1 and views[0].is_contiguous():
            return views[0].reshape(-1)
        return torch.cat([view.reshape(-1) for view in views])

    def _landing(self, boxes):
        views = [self._at(box) for box in boxes]
        if len(views) == 1 and views[0].is_contiguous():
            return views[0].view(-1)
        return views[0].new_empty(sum(view.numel() for view in views))

    def _unpack(self, boxes, tensor):
        views = [self._at(box) for box in boxes]
        if len(views) == 1 and views[0].data_ptr() == tensor.data_ptr():
            return
        begin = 0
        for view in views:
            view.copy_(tensor[begin : begin + view.numel()].view(view.shape))
            begin += view.numel()

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
