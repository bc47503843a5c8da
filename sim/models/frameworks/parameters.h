// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a model as Hugging Face's code has them, in memory or in files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/side_lines.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

enum class CutBy : std::uint8_t { None, Rows, Columns };  // of each matrix, by tensor parallelism

struct ModelParameter {
  std::string name;
  std::vector<std::string> blocks;  // joined along `extras.dim`
  const Weight* weight;             // one of them
  BufferExtras extras;
  CutBy cut;
  bool is_expert;  // of all experts: its first dim is their number
};

// In files experts are tensors of their own; in memory (transformers 5) those of a layer are one
// parameter.
enum class ExpertForm : std::uint8_t { InFiles, InMemory };
// In the order of the model; a head that is the embedding is left out.
std::vector<ModelParameter> parameters_of(const WeightGroup& group, const Model& model,
                                          ExpertForm form);
std::vector<ModelParameter> parameters_of(const Model& model, ExpertForm form);

}  // namespace reshard::sim
