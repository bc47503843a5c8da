# SPDX-License-Identifier: BSD-3-Clause
"""The planners of the library, as it lists them itself, so that tests also try a new one."""

import functools

import reshard


@functools.lru_cache(maxsize=None)
def planners():
    rows = reshard.sweep((4,), (2,), placements="R")["rows"]
    return tuple(dict.fromkeys(row["planner"] for row in rows))


@functools.lru_cache(maxsize=None)
def planners_between_meshes():
    """Those that plan from one mesh to another."""
    found = []
    for planner in planners():
        try:
            reshard.plan((4,), "f32", 2, "S(0)", "R", to_mesh=3, planner=planner)
        except reshard.InputError:
            continue
        found.append(planner)
    return tuple(found)
