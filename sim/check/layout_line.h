// SPDX-License-Identifier: BSD-3-Clause
// Lines with the tensors of a model, and the buffers of the ranks in which they lie.
#pragma once

#include <string_view>

#include "core/stored/stored.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// {"tensor": "q_proj", "shape": [8, 3], "dtype": "bf16"}, or {"tensor": "lm_head", "alias_of":
// "embed_tokens"}.
void read_tensor(TraceFields& fields, ModelTensors& tensors);

// {"side": "from", "buffer": "qkv", "mesh": "tp=2", "fused": ["q_proj:2 k_proj:1 v_proj:1 x2"],
// "placements": "S(0)"} and the other kinds. "both" sides have equal buffers; those of the side
// "named" are no rank's, other lines name them.
void read_buffer(TraceFields& fields, Stored& source, Stored& destination, Stored& named);

// "0:4,:", with or without brackets. Throws InputError naming `field`.
Box parse_box(std::string_view text, const Shape& shape, std::string_view field);
// A list of integers of at most kMaxDims, each at least 0.
DimVector read_integers(const TraceFields& fields, std::string_view key, const TraceJson& value);

}  // namespace reshard::sim
