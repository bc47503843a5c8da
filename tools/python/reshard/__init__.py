# SPDX-License-Identifier: BSD-3-Clause
"""Plans, proves, times and runs the redistribution of sharded tensors.

>>> import reshard
>>> reshard.plan((8192, 8192), "bf16", (2, 4), "S(0)R", "RS(1)").received_bytes_max
"""

from . import models
from ._commands import (
    bound,
    check,
    command,
    compare,
    plan_layouts,
    replay,
    simulate,
    sweep,
    topologies,
    topology,
)
from ._digests import digest, gather_digests
from ._execute import Transfer, execute
from ._layouts import Mesh, Partial, Replicate, Shard, StridedShard
from ._library import BackendError, CheckFailure, Findings, InputError, ReshardError, version
from ._local import LocalTensor, execute_all
from ._plan import Plan, PlannedTensor, plan, plan_job

__version__ = version()

# Under their public names.
for _class in (BackendError, CheckFailure, Findings, InputError, ReshardError):
    _class.__module__ = __name__

__all__ = [
    "BackendError",
    "CheckFailure",
    "Findings",
    "InputError",
    "LocalTensor",
    "Mesh",
    "Partial",
    "Plan",
    "PlannedTensor",
    "Replicate",
    "ReshardError",
    "Shard",
    "StridedShard",
    "Transfer",
    "bound",
    "check",
    "command",
    "compare",
    "digest",
    "execute",
    "execute_all",
    "gather_digests",
    "models",
    "plan",
    "plan_job",
    "plan_layouts",
    "replay",
    "simulate",
    "sweep",
    "topologies",
    "topology",
]
