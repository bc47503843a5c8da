# SPDX-License-Identifier: BSD-3-Clause
"""Where the script is: in which module, and in forward, backward or optimizer.

In backward, the module is that of the running autograd node. Nodes are numbered in the order in
which forward makes them, so the numbers at which modules begin and end show which module made a
node.
"""

import bisect
import functools
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

CLIPPING = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def in_backward():
    return torch._C._current_graph_task_id() != -1


class Place:
    def __init__(self):
        self._stack = []  # (module, name, made in backward: recomputed)
        self._names = weakref.WeakKeyDictionary()  # module: name
        self._roots = weakref.WeakSet()
        self._hooked = weakref.WeakSet()
        self._numbers = [-1]  # of autograd nodes: from this number on ...
        self._modules = [None]  # ... nodes belong to this module
        self._optimizing = 0

    def install(self):
        """Permanent, as this process runs nothing but the recorded script."""
        register_module_forward_pre_hook(self._enter)
        register_optimizer_step_pre_hook(lambda *_: self._optimize(1))
        register_optimizer_step_post_hook(lambda *_: self._optimize(-1))
        # Clipping belongs to the optimizer's step, but PyTorch has no hook for it.
        for name in CLIPPING:
            function = getattr(torch.nn.utils.clip_grad, name, None)
            if function is None:
                continue
            for module in (torch.nn.utils.clip_grad, torch.nn.utils):
                if hasattr(module, name):
                    setattr(module, name, self._clipping(function))

    def _optimize(self, change):
        self._optimizing += change

    def _clipping(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            self._optimizing += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._optimizing -= 1

        return wrapped

    def _enter(self, module, _):
        if module not in self._names:
            self._learn(module)
        if module not in self._hooked:
            # Registered on the module itself and as late as possible, to run after its other hooks,
            # such as those of parallelize_module, which belong to it.
            module.register_forward_hook(self._leave, always_call=True)
            self._hooked.add(module)
        self._stack.append((module, self._names[module], in_backward()))
        self._mark()

    def _leave(self, *_):
        self._stack.pop()
        self._mark()

    def _mark(self):
        self._numbers.append(torch.autograd._get_sequence_nr())
        self._modules.append(self._stack[-1][1] if self._stack else None)

    def _learn(self, module):
        own = type(module).__name__
        if self._stack:
            own = f"{self._stack[-1][1]}.{own}"
        else:
            self._roots.add(module)
        for name, child in module.named_modules():
            self._names.setdefault(child, f"{own}.{name}" if name else own)

    def pass_name(self):
        if in_backward():
            return "backward"
        if self._optimizing and not self._stack:
            return "optimizer"
        return "forward"

    def module(self):
        """The current module's name, such as "MLP.w1", or None."""
        if not in_backward():
            return self._stack[-1][1] if self._stack else None
        if self._stack and self._stack[-1][2]:
            return self._stack[-1][1]
        node = torch._C._current_autograd_node()
        if node is None:
            return None
        variable = getattr(node, "variable", None)  # AccumulateGrad has this, but no number
        if variable is not None:
            return self._owner(variable)
        return self._modules[bisect.bisect_right(self._numbers, node._sequence_nr()) - 1]

    def _owner(self, parameter):
        for root in self._roots:
            for module in root.modules():
                if any(own is parameter for own in module._parameters.values()):
                    return self._names.get(module)
        return None

    def parameter(self, tensor):
        """The name of a parameter of a model that has been called, or None."""
        for root in self._roots:
            for name, parameter in root.named_parameters():
                if parameter is tensor:
                    return name
        return None

    def fields(self):
        """The fields of a line; "forward" and a missing module are left out."""
        module, pass_name = self.module(), self.pass_name()
        fields = {"module": module} if module else {}
        return {**fields, "pass": pass_name} if pass_name != "forward" else fields
