// SPDX-License-Identifier: BSD-3-Clause
// What vLLM and SGLang have in common: the tensors of a stage, on meshes that each framework
// defines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/models/frameworks/framework.h"

namespace reshard::sim {

// The meshes of a stage. Each has two axes, copies and the ranks that cut; the mesh of experts has
// three: copies, ep, tp.
struct ServingStage {
  std::vector<int> layers = {};
  bool has_embedding = false, has_head = false;
  MeshLines attention = {}, dense = {}, experts = {}, expert_firsts = {};
};

struct Serving {
  std::int64_t attention_tp = 1, dense_tp = 1, ep = 1, expert_tp = 1;
  std::int64_t vocabulary_multiple = 64, head_multiple = 64;  // of the padded rows
  bool head_is_dense = false;    // cut by all ranks of a stage, not by those of attention
  bool shared_is_whole = false;  // shared experts, on every rank
  std::string expert_map = {};   // JSON; empty: experts are whole along ep
  // Names in which the frameworks differ: of what reads MLA's latents, and of experts' biases.
  std::string_view latents = "fused_qkv_a_proj", expert_bias = "bias";
  std::string_view tied_head = {};  // its name where a stage has no embedding; empty: that one's
  std::vector<std::pair<std::string_view, std::string_view>> renames = {};
  std::vector<ServingStage> stages = {};
};

// The meshes of a stage's experts, whose ranks are given with the experts' tensor parallelism
// fastest.
void set_experts(ServingStage& stage, std::int64_t copies, const Serving& serving,
                 const std::vector<Rank>& ranks);

// Layers of each stage: those of the word `layers`, else by the framework's rule.
std::vector<int> layer_counts(const Side& side, int stages, std::vector<int> (*rule)(int, int));

// The numbers of each rank's experts: consecutive, in turn, or slots of which the last repeat
// experts (EPLB, before it moves any). Throws InputError if ep does not divide the slots.
std::string expert_map_of(const Side& side, std::int64_t ep, bool in_turn, bool is_even);

void write_serving(const Side& side, const Serving& serving);

}  // namespace reshard::sim
