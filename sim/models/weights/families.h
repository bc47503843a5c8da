// SPDX-License-Identifier: BSD-3-Clause
// The families of models: which weights they have, and how their config.json names the sizes.
#pragma once

#include "sim/models/weights/config_fields.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// Fills the sizes and weights of model.family. Throws InputError for one that is not known.
void add_weights(const ConfigFields& config, Model& model);

}  // namespace reshard::sim
