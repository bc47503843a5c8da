// SPDX-License-Identifier: BSD-3-Clause
// Reads the two files of NVIDIA's reshard_model_bench (nccl-extensions, M2N): the tensors of a
// model, and the parallelism of trainers and generators. Which rank has what follows the
// benchmark's own rules.
#pragma once

#include <string>
#include <string_view>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// Trainers are the ranks from 0 on, followed by the generators. The experts `X.experts.<number>.Y`
// become one tensor `X.experts.Y` with experts as the first dim. The places name the texts in
// messages. Throws InputError if something is missing, or if the parallelism does not fit the
// number of GPUs. Notes list the tensors that the benchmark leaves out.
ForeignLayouts parse_m2n(std::string_view model, const std::string& model_place,
                         std::string_view system, const std::string& system_place);
// The same, from files.
ForeignLayouts read_m2n(const std::string& model_path, const std::string& system_path);

}  // namespace reshard::sim
