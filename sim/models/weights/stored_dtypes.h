// SPDX-License-Identifier: BSD-3-Clause
// The dtypes in which a checkpoint has its weights, which can be others than its config says.
#pragma once

#include <string>
#include <vector>

#include "sim/models/weights/file_names.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// Weights get the floating-point dtypes that the tensors have, with a note where those are not the
// config's. Where the model is quantised, one that is stored as before is not quantised. Tensors
// without a dtype say nothing. The names are those of the model (check_file). Throws InputError
// "PLACE: TENSOR: ..." for integers, for FP8 without its scales, and for a weight in two dtypes.
void take_stored_dtypes(const std::vector<FileTensor>& tensors, Model& model,
                        const std::string& place);

}  // namespace reshard::sim
