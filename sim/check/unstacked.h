// SPDX-License-Identifier: BSD-3-Clause
// Layouts in which the experts of a layer are one tensor, as files have them: one by one.
#pragma once

#include <functional>
#include <string_view>

#include "sim/check/check_file.h"

namespace reshard::sim {

// Tensors "..experts.NAME" that `has` does not know, although it knows "..experts.0.NAME", become
// one tensor for each index of their first dim; buffers keep their names. Requests are left out.
ModelLayouts unstacked(ModelLayouts layouts, const std::function<bool(std::string_view)>& has);

}  // namespace reshard::sim
