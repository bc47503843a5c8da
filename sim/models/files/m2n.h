// SPDX-License-Identifier: BSD-3-Clause
// The two files of NVIDIA's reshard_model_bench (nccl-extensions, M2N): the tensors of a model, and
// the parallelism of trainers and generators. The benchmark's own rules say which rank has what.
#pragma once

#include <string>
#include <string_view>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// Both sides: trainers are the ranks from 0 on, generators those behind them. Experts
// `X.experts.<number>.Y` are one tensor `X.experts.Y` with a dim of experts first. The places name
// the texts in messages. Throws InputError for what is missing, and numbers of GPUs that the
// parallelism does not fit. Tensors that the benchmark leaves out are noted.
ForeignLayouts parse_m2n(std::string_view model, const std::string& model_place,
                         std::string_view system, const std::string& system_place);
// Of two files.
ForeignLayouts read_m2n(const std::string& model_path, const std::string& system_path);

}  // namespace reshard::sim
