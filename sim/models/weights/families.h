// SPDX-License-Identifier: BSD-3-Clause
// The families of models: their weights, and the names of the sizes in their config.json.
#pragma once

#include "sim/models/weights/config_fields.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// Sets the sizes and weights of `model` according to model.family. Throws InputError if the family
// is not known.
void add_weights(const ConfigFields& config, Model& model);

}  // namespace reshard::sim
