// SPDX-License-Identifier: BSD-3-Clause
// Reads which indices of a dim each rank along some axes of a mesh has: {"axis": "ep", "rule":
// "round robin"}. docs/check.md describes the fields.
#pragma once

#include "core/layout/mesh.h"
#include "core/stored/generators.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// `value` is the field `map` of a line. Throws InputError naming the field and the value.
MappedIndices read_index_map(const TraceFields& line, const TraceJson& value, const Mesh& mesh);

}  // namespace reshard::sim
