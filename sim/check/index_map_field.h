// SPDX-License-Identifier: BSD-3-Clause
// Reads which indices of a dim the ranks along axes of a mesh have: {"axis": "ep", "rule":
// "round robin"}. The fields are described in docs/check.md.
#pragma once

#include "core/layout/mesh.h"
#include "core/stored/generators.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// `value` is the field `map` of a line. Throws InputError naming field and value.
MappedIndices read_index_map(const TraceFields& line, const TraceJson& value, const Mesh& mesh);

}  // namespace reshard::sim
