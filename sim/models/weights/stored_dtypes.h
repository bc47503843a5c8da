// SPDX-License-Identifier: BSD-3-Clause
// The dtypes in which a checkpoint has its weights, which can be others than its config says.
#pragma once

#include <string>
#include <vector>

#include "sim/models/weights/file_names.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// Gives weights the floating-point dtypes of their tensors, with a note where the config states
// others. In a quantised model, a weight that is stored unquantised stays so. Tensors without a
// dtype change nothing. The names are those of the model (check_file). Throws InputError
// "PLACE: TENSOR: ..." for integers, for FP8 without its scales, and for a weight in two dtypes.
void take_stored_dtypes(const std::vector<FileTensor>& tensors, Model& model,
                        const std::string& place);

}  // namespace reshard::sim
