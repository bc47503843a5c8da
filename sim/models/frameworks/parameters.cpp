// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/parameters.h"

#include <fmt/core.h>

namespace reshard::sim {

int cut_dim(const Weight& weight) {
  switch (weight.role) {
    case Role::Embedding:
    case Role::Head:
    case Role::Query:
    case Role::Key:
    case Role::Value:
    case Role::Sinks:
    case Role::QueryUp:
    case Role::KeyValueUp:
    case Role::Gate:
    case Role::Up:
    case Role::SharedGate:
    case Role::SharedUp:
    case Role::Column:
      return 0;
    case Role::ExpertGate:
    case Role::ExpertUp:
      return 1;
    case Role::AttentionOut:
    case Role::Down:
    case Role::SharedDown:
    case Role::ExpertDown:
    case Role::Row:
      return weight.is_bias() ? -1 : weight.shape.size() - 1;
    default:
      return -1;
  }
}

namespace {

// "model.layers.3.mlp.experts.gate_proj.weight" with another projection: "gate_up_proj"; of biases
// in memory, "gate_up_proj_bias".
std::string expert_name(const Weight& weight, std::string_view projection) {
  std::size_t at = weight.name.find("experts.");
  return fmt::format("{}experts.{}{}", weight.name.substr(0, at), projection,
                     weight.is_bias() ? "_bias" : "");
}

class Parameters {
 public:
  Parameters(const WeightGroup& group, const Model& model, ExpertForm form)
      : group_(group), model_(model), form_(form) {}

  std::vector<ModelParameter> list() {
    for (const Weight& weight : group_.weights) {
      const Role role = weight.own_role();
      if (role == Role::Head && model_.is_tied) continue;
      if (weight.is_added)
        add(weight);
      else if (role == Role::ExpertGate || role == Role::ExpertUp || role == Role::ExpertDown)
        add_expert(weight);
      else if (!model_.has_fused_files || !add_fused(weight))
        add(weight);
    }
    return std::move(out_);
  }

 private:
  void put(std::string name, std::vector<const Weight*> weights, Joined joined, BufferExtras extras,
           bool is_expert) {
    const Weight* first = weights.front();
    out_.push_back({std::move(name), std::move(weights), joined, std::move(extras), cut_dim(*first),
                    is_expert, first});
  }
  void add(const Weight& weight) { put(weight.name, {&weight}, Joined::Each, {}, false); }

  // Whether the weight is part of q, k and v or of gate and up in one; the first of them adds it.
  bool add_fused(const Weight& weight) {
    switch (weight.own_role()) {
      case Role::Query:
        return add_joined(weight, "qkv_proj", {Role::Query, Role::Key, Role::Value});
      case Role::Gate:
        return add_joined(weight, "gate_up_proj", {Role::Gate, Role::Up});
      case Role::Key:
      case Role::Value:
      case Role::Up:
        return true;
      default:
        return false;
    }
  }

  bool add_joined(const Weight& weight, std::string_view projection,
                  const std::vector<Role>& roles) {
    std::size_t end = weight.name.rfind('.'), begin = weight.name.rfind('.', end - 1);
    std::vector<const Weight*> weights;
    for (Role role : roles) weights.push_back(group_.find_own(role, weight.is_bias()));
    put(weight.name.substr(0, begin + 1) + std::string(projection) + weight.name.substr(end),
        std::move(weights), Joined::AsOne, {}, false);
    return true;
  }

  void add_expert(const Weight& weight) {
    if (form_ == ExpertForm::InFiles && !model_.has_paired_gate) {
      // One tensor per expert: "..experts.17.gate_proj.weight".
      std::size_t at = weight.name.find("experts.") + std::string_view("experts.").size();
      std::string name = weight.name.substr(0, at) + "{}." + weight.name.substr(at);
      return put(std::move(name), {&weight}, Joined::Each, {.each = "global"}, true);
    }
    // The matrices of gpt_oss are transposed, and its gate and up rows alternate.
    BufferExtras extras;
    if (model_.has_paired_gate && !weight.is_bias()) extras.order = "[0, 2, 1]";
    if (weight.own_role() == Role::ExpertDown) {
      put(expert_name(weight, "down_proj"), {&weight}, Joined::Each, extras, true);
    } else if (weight.own_role() == Role::ExpertGate) {
      extras.dim = 1;
      put(expert_name(weight, "gate_up_proj"),
          {&weight, group_.find_own(Role::ExpertUp, weight.is_bias())},
          model_.has_paired_gate ? Joined::InTurn : Joined::Each, extras, true);
    }
  }

  const WeightGroup& group_;
  const Model& model_;
  ExpertForm form_;
  std::vector<ModelParameter> out_;
};

}  // namespace

std::vector<std::string> ModelParameter::blocks() const {
  std::vector<std::string> out;
  if (weights.size() == 1 || joined == Joined::Each) {
    for (const Weight* each : weights) out.push_back(each->name);
    return out;
  }
  // As one: a single group, which has all rows of each.
  std::string sections;
  for (const Weight* each : weights)
    sections +=
        fmt::format("{}:{} ", each->name, joined == Joined::InTurn ? 1 : each->shape[extras.dim]);
  return {sections + "x1"};
}

std::int64_t ModelParameter::rows() const {
  if (extras.dim != 0) return weight->shape[0];
  std::int64_t out = 0;
  for (const Weight* each : weights) out += each->shape[0];
  return out;
}

std::vector<ModelParameter> parameters_of(const WeightGroup& group, const Model& model,
                                          ExpertForm form) {
  return Parameters(group, model, form).list();
}

std::vector<ModelParameter> parameters_of(const Model& model, ExpertForm form) {
  std::vector<ModelParameter> out = parameters_of(model.embedding, model, form);
  auto add = [&](const WeightGroup& group) {
    for (ModelParameter& each : parameters_of(group, model, form)) out.push_back(std::move(each));
  };
  for (const WeightGroup& layer : model.layers) add(layer);
  add(model.head);
  return out;
}

}  // namespace reshard::sim
