// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a model as Hugging Face has them, in memory or in files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/side_lines.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// The dim along which tensor parallelism cuts a weight of this role; -1: it is not cut.
int cut_dim(const Weight& weight);

// How weights are joined to one parameter: one after another, each cut by itself or all cut as one;
// or with their rows in turn.
enum class Joined : std::uint8_t { Each, AsOne, InTurn };

struct ModelParameter {
  std::string name;
  std::vector<const Weight*> weights;  // joined along `extras.dim`
  Joined joined;
  BufferExtras extras;
  int cut;               // as that of all of its weights
  bool is_expert;        // of all experts: its first dim is their number
  const Weight* weight;  // the first

  std::vector<std::string> blocks() const;  // as lines of layouts have them
  std::int64_t rows() const;                // along dim 0
};

// In files each expert has its own tensors; in memory (transformers 5) the experts of a layer are
// one parameter.
enum class ExpertForm : std::uint8_t { InFiles, InMemory };
// In the order of the model. A head that is tied to the embedding is left out.
std::vector<ModelParameter> parameters_of(const WeightGroup& group, const Model& model,
                                          ExpertForm form);
std::vector<ModelParameter> parameters_of(const Model& model, ExpertForm form);

}  // namespace reshard::sim
