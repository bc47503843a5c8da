// SPDX-License-Identifier: BSD-3-Clause
// Reads lines that describe the tensors of a model and the buffers of the ranks that hold them.
#pragma once

#include <string_view>

#include "core/stored/stored.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// Reads {"tensor": "q_proj", "shape": [8, 3], "dtype": "bf16"} or {"tensor": "lm_head", "alias_of":
// "embed_tokens"}.
void read_tensor(TraceFields& fields, ModelTensors& tensors);

// Reads {"side": "from", "buffer": "qkv", "mesh": "tp=2", "fused": ["q_proj:2 k_proj:1 v_proj:1
// x2"], "placements": "S(0)"} and the other kinds of buffers. The side "both" adds the buffer to
// source and destination. Buffers of the side "named" are on no rank; other lines refer to them.
void read_buffer(TraceFields& fields, Stored& source, Stored& destination, Stored& named);

// Reads "0:4,:", with or without brackets. Throws InputError naming `field`.
Box parse_box(std::string_view text, const Shape& shape, std::string_view field);
// A list of at most kMaxDims integers, each at least 0.
DimVector read_integers(const TraceFields& fields, std::string_view key, const TraceJson& value);

}  // namespace reshard::sim
