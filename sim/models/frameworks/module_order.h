// SPDX-License-Identifier: BSD-3-Clause
// The order in which Hugging Face's modules register their parameters, in which FSDP1 flattens
// them. It is that of the assignments in each module's constructor, not that of the forward pass.
#pragma once

#include <vector>

#include "sim/models/frameworks/parameters.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// The parameters of a layer, or of what is outside of layers. What a file of roles added is last.
std::vector<ModelParameter> in_module_order(std::vector<ModelParameter> parameters,
                                            const Model& model);

}  // namespace reshard::sim
