// SPDX-License-Identifier: BSD-3-Clause
// What vLLM and SGLang have in common: the tensors of a stage, on meshes that differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/models/frameworks/framework.h"

namespace reshard::sim {

// The meshes of a stage, each of two axes: copies, and the ranks that cut; experts of three:
// copies, ep, tp.
struct ServingStage {
  std::vector<int> layers = {};
  bool has_embedding = false, has_head = false;
  MeshLines attention = {}, dense = {}, experts = {};
};

struct Serving {
  std::int64_t attention_tp = 1, dense_tp = 1, ep = 1, expert_tp = 1;
  std::int64_t vocabulary_multiple = 64;
  std::string expert_map = {};  // JSON; empty: experts are whole along ep
  std::vector<ServingStage> stages = {};
};

// Layers of each stage: those of the word `layers`, else by the framework's rule.
std::vector<int> layer_counts(const Side& side, int stages, std::vector<int> (*rule)(int, int));

// Experts' numbers by rank: linear, in turn, or slots of which the last hold experts a second time
// (EPLB, before it has moved any). Throws InputError for slots that ep does not divide.
std::string expert_map_of(const Side& side, std::int64_t ep, bool in_turn, bool is_even);

void write_serving(const Side& side, const Serving& serving);

}  // namespace reshard::sim
