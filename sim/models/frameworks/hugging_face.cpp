// SPDX-License-Identifier: BSD-3-Clause
// Hugging Face's tensor parallelism (transformers, distributed/tensor_parallel.py), and the whole
// model on every rank, with the names of its files.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/parameters.h"

namespace reshard::sim {
namespace {

// Which modules a family's base_model_tp_plan names. The embedding is named where any is
// (distributed/mixin.py), and the head by the class of the causal model.
struct TensorPlan {
  std::string_view family;
  bool attention = true, mlp = true, shared = true, experts = true;

  bool names(const Weight& weight) const {
    switch (weight.role) {
      case Role::Embedding:
      case Role::Head:
        return true;
      case Role::Query:
      case Role::Key:
      case Role::Value:
      case Role::QueryUp:
      case Role::KeyValueUp:
      case Role::AttentionOut:
        return attention;
      case Role::Gate:
      case Role::Up:
      case Role::Down:
        return mlp;
      case Role::SharedGate:
      case Role::SharedUp:
      case Role::SharedDown:
        return shared;
      case Role::ExpertGate:
      case Role::ExpertUp:
      case Role::ExpertDown:
        return experts;
      default:
        return false;
    }
  }
};

constexpr TensorPlan kPlans[] = {
    {.family = "qwen2_moe", .shared = false},
    {.family = "deepseek_v3", .attention = false},
    {.family = "kimi_k2", .attention = false},  // whose code is deepseek_v3's
    {.family = "gpt_oss", .attention = false, .mlp = false, .shared = false, .experts = false},
    {.family = ""},  // all others
};

const TensorPlan& plan_of(const Model& model) {
  const TensorPlan* plan = kPlans;
  while (!plan->family.empty() && plan->family != model.family) ++plan;
  return *plan;
}

std::string text_of(const TensorPlan& plan) {
  if (!plan.experts) return "all but the rows of embedding and head is whole";
  std::string out = "rows of embedding and head are cut";
  if (!plan.attention) out += ", attention is whole";
  if (!plan.shared) out += ", the shared expert is whole";
  return out;
}

}  // namespace

std::int64_t hugging_face_ranks(const Model&, Parallelism& options) {
  if (options.has("tp") && options.has("ep"))
    options.fail("ep", "either tp or ep (base_model_tp_plan, base_model_ep_plan)");
  return options.number("replicas", 1, 1 << 10) * options.number("tp", 1, 1 << 10) *
         options.number("ep", 1, 1 << 10);
}

void write_hugging_face(const Side& side) {
  const std::int64_t replicas = side.options.number("replicas", 1),
                     n = side.options.number("tp", 1) * side.options.number("ep", 1);
  const bool is_ep = side.options.has("ep");
  MeshLines mesh = mesh_lines({{"replica", replicas}, {is_ep ? "ep" : "tp", n}}, side.ranks);
  const TensorPlan& plan = plan_of(side.model);
  side.notes.push_back(is_ep ? "all but the experts is whole (ep_size=tp_size, tp_plan={})"
                             : "by base_model_tp_plan of transformers 5.24: " + text_of(plan));
  for (const ModelParameter& of : parameters_of(side.model, ExpertForm::InMemory)) {
    int cut = -1;
    if (is_ep && of.is_expert) {
      require_divides(side, "ep", n, side.model.experts, "experts");
      cut = 0;
    } else if (!is_ep && (of.weight->replaced || of.weight->is_added || plan.names(*of.weight))) {
      cut = of.cut;  // by torch.chunk, so that the last ranks can have less
    }
    side.lines.buffer(of.name, mesh, of.blocks(), *of.weight,
                      cut < 0 ? "" : fmt::format("RS({})", cut), of.extras);
  }
}

std::int64_t whole_ranks(const Model&, Parallelism& options) { return options.number("ranks", 1); }

void write_whole(const Side& side) {
  MeshLines mesh = mesh_lines({{"replica", std::ssize(side.ranks)}}, side.ranks);
  for (const ModelParameter& of : parameters_of(side.model, ExpertForm::InFiles))
    side.lines.buffer(of.name, mesh, of.blocks(), *of.weight, "", of.extras);
}

}  // namespace reshard::sim
