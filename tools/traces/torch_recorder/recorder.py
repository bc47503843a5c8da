# SPDX-License-Identifier: BSD-3-Clause
"""Intercepts every operator on DTensors, every explicit redistribution and every collective, and
writes their lines. A dispatch mode sees operators below autograd, as DTensor does; redistributions
happen in three autograd functions of PyTorch, which are wrapped.
"""

import dataclasses

import torch
import torch.distributed.tensor._api as api
import torch.distributed.tensor._redistribute as redistribute
import torch.distributed.tensor.placement_types as placement_types
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dispatch import OpDispatcher
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.parallel.loss import customized_loss_ops
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from torch_recorder import arguments, collectives
from torch_recorder.arguments import DTYPES, placements_text, tensor_text, tensors_of
from torch_recorder.document import flat, without_trailing
from torch_recorder.place import Place

aten = torch.ops.aten

# Queries about tensors; nothing runs.
QUESTIONS = {"is_same_size", "is_pinned", "sym_size", "sym_stride", "sym_numel"}
# Operators with handlers that call other operators.
TAKEN_APART = {aten.as_strided.default}


# A tensor carries its name as an attribute, since a weak reference to the tensor would make
# torch.utils.swap_tensors fail. Copies carry the attribute too, but are not the object that was
# named.
def name_it(tensor, name):
    tensor.__dict__["_trace_name"] = (id(tensor), name)


def name_of(tensor):
    owner, name = tensor.__dict__.get("_trace_name", (None, None))
    return name if owner == id(tensor) else None


def recorded_on(device):
    """What PyTorch's costs, and so its choices, depend on. It counts one CPU per host."""
    count = max(torch.get_device_module(device).device_count(), 1)
    return {
        "torch": torch.__version__.split("+")[0],
        "device": device,
        "devices_per_host": count,
    }


def unsaid_left_out(value):
    unsaid = isinstance(value, torch.Tensor) and "_trace_unsaid" in value.__dict__
    return None if unsaid else value


@dataclasses.dataclass
class Frame:
    """What DTensor is doing."""

    quiet: bool  # nothing inside gets its own line
    moved: list = None  # the inputs' new placements, if any moved


@dataclasses.dataclass
class Call:
    func: object
    line: dict
    mesh: object
    written: list  # tensors that it writes in place
    chosen: list  # the placements of each tensor argument
    positional: int  # how many of them were given by position


class Recorder(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, document, expect):
        super().__init__()
        self.document = document
        self.counts = {name: {} for name in ("forward", "backward", "optimizer")}
        self.cpu_gathers = 0  # gathers that PyTorch runs instead of an all-to-all
        self.recording = True
        self._expect = expect
        self._place = Place()
        self._meshes = collectives.Meshes()
        self._frames = []
        self._passing = None  # the operator that is passed on to DTensor
        self._gradient = None  # of from_local, while its backward runs
        self._in_all_to_all = False

    def install(self):
        """Permanent, as this process runs nothing but the recorded script."""
        self._place.install()
        self._wrap_inputs()
        self._wrap_redistributions()
        self._wrap_all_to_all()

    # Seams of PyTorch ---------------------------------------------------------------------------

    def _wrap_inputs(self):
        """All inputs that move pass through this function."""
        move = OpDispatcher.redistribute_local_args

        def wrapped(info, schema, *rest):
            if self._frames:
                pairs = zip(info.flat_args_schema, tree_leaves(schema.args_schema))
                specs = [to for at, to in pairs if isinstance(at, DTensorSpec)]
                self._frames[-1].moved = [placements_text(spec) for spec in specs]
            return move(info, schema, *rest)

        OpDispatcher.redistribute_local_args = staticmethod(wrapped)

    def _wrap_redistributions(self):
        for function in (redistribute.Redistribute, redistribute.NestedRedistribute):
            function.forward = staticmethod(self._redistribution(function.forward))
        move, backward = api.redistribute_local_tensor, api._FromTorchTensor.backward

        def moved(local, current, target, *args, **kwargs):
            # The gradient of from_local gets the local tensor's placements, and leaves DTensor.
            if not self._quiet:
                self._redistributed(self._name(self._gradient, None), current, target)
            return self._quietly(move, local, current, target, *args, **kwargs)

        def wrapped(ctx, gradient):
            self._gradient = gradient
            return backward(ctx, gradient)

        api.redistribute_local_tensor = moved
        api._FromTorchTensor.backward = staticmethod(wrapped)

    def _redistribution(self, forward):
        def wrapped(ctx, tensor, *args):
            if self._quiet:
                return forward(ctx, tensor, *args)
            # Forward is given a table of dtypes, backward the dtype itself.
            dtype = args[3]["op_dtype"] if isinstance(args[3], dict) else args[2]
            name, before = self._name(tensor, None), tensor._spec
            out = self._quietly(forward, ctx, tensor, *args)
            name = self._cast(name, tensor.dtype, dtype)
            name = self._redistributed(name, before, out._spec)
            name_it(out, self._cast(name, dtype, out.dtype))
            return out

        return wrapped

    def _wrap_all_to_all(self):
        run = placement_types.shard_dim_alltoall

        def wrapped(*args, **kwargs):
            self._in_all_to_all = True
            try:
                return run(*args, **kwargs)
            finally:
                self._in_all_to_all = False

        placement_types.shard_dim_alltoall = wrapped

    # What happens -------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(each, DTensor) for each in types):
            if self._passing is func:
                self._passing = None
                return NotImplemented  # to DTensor, with this mode still on
            return self._call(func, args, kwargs)
        if isinstance(func, torch._ops.OpOverload):
            kind = collectives.kind_of(func)
            if kind:
                self._collective(kind, func, args, kwargs)
        return func(*args, **kwargs)

    def _collective(self, kind, func, args, kwargs):
        if not self.recording:
            return
        if self._in_all_to_all and kind == collectives.GATHER:
            kind = collectives.ALL
            self.cpu_gathers += 1
        if kind != collectives.BARRIER:  # CommDebugMode does not count barriers
            counts = self.counts[self._place.pass_name()]
            counts[kind] = counts.get(kind, 0) + 1
        if self._frames:
            return
        if kind in (collectives.SCATTER_FROM, collectives.BROADCAST) and collectives.distributes():
            return
        measured = collectives.measured(func, args, kwargs)
        if measured is None:
            self.document.leave_out(kind)
            return
        kind, ranks, size, root = measured
        mesh, groups = self._meshes.siblings(ranks)
        if mesh is not None:
            self._mesh_name(mesh)  # so that reports can name the axis
        for group in groups:
            line = {"op": "collective", "kind": kind, "ranks": group}
            if root is not None:
                line["root"] = group[root]
            if size is not None:
                line["bytes"] = size
            self.document.add({**line, **self._place.fields()})

    @property
    def _quiet(self):
        return not self.recording or bool(self._frames) and self._frames[-1].quiet

    def _quietly(self, function, *args, **kwargs):
        self._frames.append(Frame(quiet=True))
        try:
            return function(*args, **kwargs)
        finally:
            self._frames.pop()

    def _redistributed(self, name, before, after):
        """Writes the line; returns the name of the result."""
        wanted = placements_text(after)
        if placements_text(before) == wanted:
            return name
        out = self.document.fresh("t")
        line = {"op": "redistribute", "tensor": name, "to": wanted, "out": out}
        self.document.add({**line, **self._place.fields()})
        return out

    def _cast(self, name, before, after):
        if before == after:
            return name
        out = self.document.fresh("t")
        line = {"op": "call", "call": "_to_copy", "in": [name], "attr": {"dtype": DTYPES[after]}}
        self.document.call({**line, "out": [out], **self._place.fields()})
        return out

    # Calls --------------------------------------------------------------------------------------

    def _call(self, func, args, kwargs):
        # A detach of a tensor that nothing has used, such as a parameter that is being made.
        unused = func is aten.detach.default and name_of(args[0]) is None
        if self._quiet or unused or arguments.base_name(func) in QUESTIONS:
            return self._to_dtensor(func, args, kwargs)
        call = self._describe(func, args, kwargs)
        handled = func in DTensor._op_dispatcher._custom_op_handlers and func not in TAKEN_APART
        frame = Frame(quiet=handled)
        made = len(self.document)
        self._frames.append(frame)
        try:
            out = self._to_dtensor(func, args, kwargs)
        finally:
            self._frames.pop()
        # If the operator was taken apart, its parts already have their lines.
        if len(self.document) == made:
            if handled and func in customized_loss_ops:
                call.line["loss_parallel"] = True
            self._finish(call, out, frame.moved)
        return out

    def _to_dtensor(self, func, args, kwargs):
        self._passing = func
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            self._passing = None

    def _describe(self, func, args, kwargs):
        """Describes the call before it runs, as inputs may change in place."""
        mesh = next(each for each in tree_leaves((args, kwargs)) if isinstance(each, DTensor))
        mesh = mesh.device_mesh
        call = Call(func, {"op": "call", "call": arguments.call_name(func)}, mesh, [], [], 0)
        inputs = []
        for argument, value, by_position in arguments.bound(func, args, kwargs):
            if not arguments.takes_tensors(argument):
                continue
            value = unsaid_left_out(value)
            names = [self._name(each, mesh) for each in tensors_of(value)]
            inputs.append(names if isinstance(value, (list, tuple)) else names[0])
            call.chosen.extend(tensor_text(each, mesh) for each in tensors_of(value))
            call.positional += len(names) if by_position else 0
            if argument.alias_info and argument.alias_info.is_write and not call.written:
                call.written = tensors_of(value)
        call.line["in"] = without_trailing(inputs)
        given = arguments.attributes(func, args, kwargs)
        if given:
            call.line["attr"] = given
        for tensor, length in arguments.indices(func, args, kwargs):
            self.document.limit(self._name(tensor, mesh), length)
        return call

    def _finish(self, call, out, moved):
        returns = call.func._schema.returns
        outputs = tree_leaves(list(out) if isinstance(out, (list, tuple)) else [out])
        # No rule makes outputs that are not DTensors, such as a kernel's random state.
        for each in outputs:
            if isinstance(each, torch.Tensor) and not isinstance(each, DTensor):
                each.__dict__["_trace_unsaid"] = True
        outputs = [each if isinstance(each, DTensor) else None for each in outputs]
        if not any("Tensor" in str(each.type) for each in returns):
            outputs = call.written  # PyTorch returns nothing for a list changed in place
        call.line["out"] = [self._output(each) for each in outputs]
        call.line.update(self._place.fields())
        if self._expect:
            chosen, moved = list(call.chosen), iter(moved or ())
            for at in range(call.positional):
                if chosen[at] is not None:
                    chosen[at] = next(moved, chosen[at])
            made = [tensor_text(each, call.mesh) for each in outputs]
            expect = {"in": without_trailing(chosen), "out": made}
            call.line["expect"] = {**expect, **arguments.sizes(outputs)}
        self.document.call(call.line)

    # Tensors ------------------------------------------------------------------------------------

    def _output(self, tensor):
        if tensor is None:
            return None
        if name_of(tensor) is None:
            name_it(tensor, self.document.fresh("t"))
        return name_of(tensor)

    def _name(self, tensor, mesh):
        """The name of an input; writes its `tensor` line if it is new. Without placements it is
        replicated."""
        name = None if tensor is None else name_of(tensor)
        if name is not None or tensor is None:
            return name
        if isinstance(tensor, torch.nn.Parameter):
            name = self._place.parameter(tensor)
        name = self.document.name(name) if name else self.document.fresh("x")
        name_it(tensor, name)
        mesh = tensor.device_mesh if isinstance(tensor, DTensor) else mesh
        fields = {
            "shape": list(tensor.shape),
            "dtype": DTYPES[tensor.dtype],
            "placements": tensor_text(tensor, mesh),
            "mesh": self._mesh_name(mesh),
        }
        self.document.tensor(name, **fields, **self._content(tensor))
        return name

    def _mesh_name(self, mesh):
        self.document.recorded = recorded_on(mesh.device_type)
        with _disable_current_modes():
            ranks = collectives.ranks_of(mesh).flatten().tolist()
        return self.document.mesh(mesh.shape, mesh.mesh_dim_names, ranks)

    def _content(self, tensor):
        """The value of a replicated tensor of one element; or a limit for integers."""
        local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
        replicated = tensor is local or all(each.is_replicate() for each in tensor.placements)
        if isinstance(local, FakeTensor):
            return {}
        with _disable_current_modes(), torch.no_grad():
            if tensor.numel() == 1 and local.numel() == 1 and replicated:
                return {"value": arguments.plain(local.item())}
            if tensor.dtype == torch.bool:
                return {"below": 2}
            if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
                largest = int(local.max()) if local.numel() else 0
                return {"below": max(largest, 0) + 1, "guessed": True}
        return {}
