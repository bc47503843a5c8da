// SPDX-License-Identifier: BSD-3-Clause
// The weights of a model, named as in its checkpoint at Hugging Face, and the role of each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/layout/box.h"

namespace reshard::sim {

// The role of a weight, which decides how frameworks cut, join and name it. The experts of a layer
// are one tensor, with the expert's number as the first dim.
enum class Role : std::uint8_t {
  Embedding,
  Head,
  FinalNorm,
  InputNorm,          // before attention
  MlpNorm,            // before the MLP or the experts
  PostAttentionNorm,  // after attention, before it is added (Gemma 2 and 3)
  PostMlpNorm,
  Query,
  Key,
  Value,
  AttentionOut,
  QueryNorm,
  KeyNorm,
  Sinks,        // one number per query head
  QueryLatent,  // MLA: q_a_proj
  QueryLatentNorm,
  QueryUp,         // q_b_proj
  KeyValueLatent,  // kv_a_proj_with_mqa
  KeyValueLatentNorm,
  KeyValueUp,  // kv_b_proj
  Gate,
  Up,
  Down,
  SharedGate,  // of the experts that see all tokens
  SharedUp,
  SharedDown,
  SharedSwitch,  // shared_expert_gate
  Router,
  RouterBias,
  ExpertGate,
  ExpertUp,
  ExpertDown,
  // Roles that a file of roles gives to other weights.
  Whole,
  Column,  // the first dim is cut by tensor parallelism
  Row,     // the last dim is cut
};
inline constexpr int kRoleCount = static_cast<int>(Role::Row) + 1;
std::string_view text(Role role);
// Throws InputError naming `field`.
Role parse_role(std::string_view text, std::string_view field);

struct Weight {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  Role role;
  Shape shape;
  DType dtype;
  std::optional<Role> replaced = {};  // the role in its family, if a file of roles changed it
  bool is_added = false;              // a file of roles added it to those of its family
  bool is_quantised = true;           // if the model is; a checkpoint may have left it as it was
  // The role that it has in checkpoints and in Hugging Face's code.
  Role own_role() const { return replaced.value_or(role); }
  bool is_bias() const { return name.ends_with("bias") && role != Role::RouterBias; }
};

// Weights that a pipeline stage has all of or none of.
struct WeightGroup {
  std::string prefix;  // "model.layers.3."
  std::vector<Weight> weights;

  bool has(Role role) const { return find(role) != nullptr || find(role, true) != nullptr; }
  const Weight* find(Role role, bool bias = false) const;
  const Weight* find_own(Role own_role, bool bias = false) const;
};

struct Model {
  std::string family;  // its model_type
  std::string file;    // that the model was read from
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0,
               value_dim = 0;  // 0: the weights of MLA imply their own
  std::int64_t experts = 0;
  std::int64_t expert_groups =
      0;  // groups from which a token's experts are chosen (n_group); 0: none
  std::int64_t more_layers =
      0;  // extra layers after the last one, for multi-token prediction; not among `layers`
  bool is_tied = false;          // the head is the embedding
  bool has_paired_gate = false;  // gate and up rows alternate at Hugging Face (gpt_oss)
  bool has_fused_files = false;  // q, k, v are one tensor in files, and so are gate, up (phi3)
  // If weights have scales (FP8), the rows and columns of a block.
  std::optional<std::array<std::int64_t, 2>> scale_block = {};
  WeightGroup embedding;
  std::vector<WeightGroup> layers;
  WeightGroup head;  // with the final norm
  // What the model has but this description does not, and assumptions; one sentence each.
  std::vector<std::string> notes = {};

  // Whether some layer has such a weight.
  bool has(Role role) const;

  // Calls visit(weight) for each, in the order of a checkpoint.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Weight& weight : embedding.weights) visit(weight);
    for (const WeightGroup& layer : layers)
      for (const Weight& weight : layer.weights) visit(weight);
    for (const Weight& weight : head.weights) visit(weight);
  }
};

// Whether the weight has block scales: FP8 checkpoints quantise the matrices of attention and of
// MLPs.
bool has_scales(const Weight& weight);

}  // namespace reshard::sim
