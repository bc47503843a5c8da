// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a model as Hugging Face has them, in memory or in files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/side_lines.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

enum class CutBy : std::uint8_t { None, Rows, Columns };  // how tensor parallelism cuts each matrix

struct ModelParameter {
  std::string name;
  std::vector<std::string> blocks;  // joined along `extras.dim`
  const Weight* weight;             // one of them
  BufferExtras extras;
  CutBy cut;
  bool is_expert;  // of all experts of a layer; the first dim is the expert's number
};

// In files each expert has its own tensors; in memory (transformers 5) the experts of a layer are
// one parameter.
enum class ExpertForm : std::uint8_t { InFiles, InMemory };
// In the order of the model. A head that is tied to the embedding is left out.
std::vector<ModelParameter> parameters_of(const WeightGroup& group, const Model& model,
                                          ExpertForm form);
std::vector<ModelParameter> parameters_of(const Model& model, ExpertForm form);

}  // namespace reshard::sim
