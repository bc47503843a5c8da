# SPDX-License-Identifier: BSD-3-Clause
"""Found by pytest if the wheel is installed; in a source tree, use `-p reshard.pytest_plugin`."""

import pytest

from ._local import LocalTensor
from ._plan import Plan, plan


@pytest.fixture
def local_tensor():
    """local_tensor(whole, mesh, placements): every rank's shard in this process."""
    return LocalTensor.of


_BUDGETS = {
    "max_bytes": ("bytes into the fullest rank", lambda plan: plan.received_bytes_max),
    "max_total_bytes": ("bytes moved", lambda plan: plan.received_bytes_total),
    "max_extra_bytes": ("bytes beyond source and destination", lambda plan: plan.extra_bytes_max),
    "max_time_us": ("microseconds", lambda plan: plan.time_ps / 1e6),
    "max_ratio": ("times the bound", lambda plan: plan.time_ps / max(plan.bound_ps, 1)),
    "max_steps": ("steps", lambda plan: plan.step_count),
}


@pytest.fixture
def assert_plan():
    """assert_plan(request, max_bytes=, max_ratio=): fails if the plan of a request is over a
    budget, and returns the plan. request: a Plan, or the arguments of `reshard.plan`, whose options
    can follow. Budgets: max_bytes (into the fullest rank), max_total_bytes, max_extra_bytes,
    max_time_us, max_ratio (time to bound), max_steps."""

    def check(*request, **options):
        budgets = {name: options.pop(name) for name in _BUDGETS if name in options}
        if not budgets:
            raise TypeError(f"assert_plan: expected a budget: {', '.join(_BUDGETS)}")
        given = len(request) == 1 and isinstance(request[0], Plan)
        made = request[0] if given and not options else plan(*request, **options)
        over = []
        for name, budget in budgets.items():
            what, value_of = _BUDGETS[name]
            if value_of(made) > budget:
                over.append(f"{value_of(made):.12g} {what}, at most {budget} ({name})")
        if over:
            pytest.fail(f"{made.request} by {made.planner}: {'; '.join(over)}", pytrace=False)
        return made

    return check
