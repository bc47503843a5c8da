# SPDX-License-Identifier: BSD-3-Clause
"""Plans, proves, times and runs the redistribution of sharded tensors.

>>> import reshard
>>> reshard.plan((8192, 8192), "bf16", (2, 4), "S(0)R", "RS(1)").received_bytes_max
"""

from ._layouts import Mesh, Partial, Replicate, Shard, StridedShard
from ._library import BackendError, CheckFailure, Findings, InputError, ReshardError, version
from ._library import command as _command
from ._plan import Plan, plan

__version__ = version()

# As users know them.
for _class in (BackendError, CheckFailure, Findings, InputError, ReshardError):
    _class.__module__ = __name__

__all__ = [
    "BackendError",
    "CheckFailure",
    "Findings",
    "InputError",
    "Mesh",
    "Partial",
    "Plan",
    "Replicate",
    "ReshardError",
    "Shard",
    "StridedShard",
    "command",
    "plan",
]


def command(*arguments: str) -> str:
    """What `reshard ARGUMENTS` prints, for plan, simulate, replay, sweep, calibrate and topo.

    Raises InputError and so on with the program's sentence; Findings, which carries the report,
    where a check that was asked for did not hold.
    """
    return _command(arguments)
