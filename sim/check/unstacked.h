// SPDX-License-Identifier: BSD-3-Clause
// Splits the experts of a layer, which layouts can have as one tensor, into a tensor per expert, as
// files have them.
#pragma once

#include <functional>
#include <string_view>

#include "sim/check/check_file.h"

namespace reshard::sim {

// If `has` knows "..experts.0.NAME" but not "..experts.NAME", the tensor of the latter name becomes
// one tensor for each index of its first dim. Buffers keep their names. Requests are omitted.
ModelLayouts unstacked(ModelLayouts layouts, const std::function<bool(std::string_view)>& has);

}  // namespace reshard::sim
