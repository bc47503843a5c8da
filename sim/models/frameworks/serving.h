// SPDX-License-Identifier: BSD-3-Clause
// What vLLM and SGLang have in common: the tensors of a stage, on meshes that each framework
// defines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/models/frameworks/framework.h"

namespace reshard::sim {

// The meshes of a stage. Each has two axes, copies and the ranks that cut; the mesh of experts has
// three: copies, ep, tp.
struct ServingStage {
  std::vector<int> layers = {};
  bool has_embedding = false, has_head = false;
  MeshLines attention = {}, dense = {}, experts = {};
};

struct Serving {
  std::int64_t attention_tp = 1, dense_tp = 1, ep = 1, expert_tp = 1;
  std::int64_t vocabulary_multiple = 64;
  std::string expert_map = {};  // JSON; empty: every rank along ep has all experts
  std::vector<ServingStage> stages = {};
};

// The number of layers of each stage, from the word `layers` or else by the framework's rule.
std::vector<int> layer_counts(const Side& side, int stages, std::vector<int> (*rule)(int, int));

// The numbers of each rank's experts: consecutive, in turn, or slots of which the last repeat
// experts (EPLB, before it moves any). Throws InputError if ep does not divide the slots.
std::string expert_map_of(const Side& side, std::int64_t ep, bool in_turn, bool is_even);

void write_serving(const Side& side, const Serving& serving);

}  // namespace reshard::sim
