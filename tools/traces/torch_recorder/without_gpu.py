# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts that say "cuda" on a machine without a GPU: their tensors and meshes are on the CPU
instead. Attention on DTensors uses the kernels that it would use on a GPU.
"""

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from torch_recorder import gpu_attention

IDLE = ["set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"]


def on_cpu(value):
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    return value


class WithoutGpu(TorchFunctionMode):
    """In effect while entered; for meshes, permanently."""

    def __init__(self):
        super().__init__()
        for name in IDLE:
            setattr(torch.cuda, name, lambda *args, **kwargs: None)
        self._kernels = gpu_attention.install()
        make = DeviceMesh.__init__

        def wrapped(mesh, device_type, *args, **kwargs):
            make(mesh, on_cpu(device_type), *args, **kwargs)

        DeviceMesh.__init__ = wrapped

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.nn.functional.scaled_dot_product_attention:
            if gpu_attention.is_meant(*args, **(kwargs or {})):
                return gpu_attention.on_gpu(*args, **(kwargs or {}))
        if "device" in (kwargs or {}):
            kwargs = {**kwargs, "device": on_cpu(kwargs["device"])}
        if func is torch.Tensor.to:
            args = tree_map(on_cpu, args)
        return func(*args, **(kwargs or {}))
