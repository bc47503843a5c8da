// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/module_order.h"

#include <algorithm>

namespace reshard::sim {
namespace {

// Blocks of experts that register the experts before the router; the others after it.
bool has_experts_first(const Model& model) {
  return model.family == "qwen3_moe" || model.family == "glm4_moe" || model.family == "kimi_k2" ||
         model.family.starts_with("deepseek");
}

// Attention, then the MLP, then the norms of the layer; equal places are in the order of the model.
int place_of(const ModelParameter& of, const Model& model) {
  enum : int { Outer, Own, Out, Attention, Mlp, MlpLater, Shared, Switch, Norms, Last = 100 };
  if (of.weight->is_added) return Last;
  switch (of.weight->own_role()) {
    case Role::Embedding:
      return Outer;
    case Role::FinalNorm:
      return Norms;
    case Role::Head:
      return Norms + 1;
    case Role::Sinks:  // a module's own parameters come before those of the modules in it
      return Own;
    case Role::AttentionOut:
      return model.has_fused_files ? Out : Attention;  // phi3 has it first
    case Role::Gate:
    case Role::Up:
    case Role::Down:
      return Mlp;
    case Role::Router:
      return has_experts_first(model) ? MlpLater : Mlp;
    case Role::ExpertGate:
    case Role::ExpertUp:
    case Role::ExpertDown:
      return has_experts_first(model) ? Mlp : MlpLater;
    case Role::SharedGate:
    case Role::SharedUp:
    case Role::SharedDown:
      return Shared;
    case Role::SharedSwitch:
      return Switch;
    case Role::InputNorm:
      return Norms;
    case Role::PostAttentionNorm:
      return Norms + 1;
    case Role::MlpNorm:  // where there are four norms, that before the MLP
      return Norms + 2;
    case Role::PostMlpNorm:
      return Norms + 3;
    default:
      return Attention;
  }
}

}  // namespace

std::vector<ModelParameter> in_module_order(std::vector<ModelParameter> parameters,
                                            const Model& model) {
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](const ModelParameter& a, const ModelParameter& b) {
                     return place_of(a, model) < place_of(b, model);
                   });
  return parameters;
}

}  // namespace reshard::sim
