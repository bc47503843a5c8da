// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/parameters.h"

#include <fmt/core.h>

namespace reshard::sim {
namespace {

CutBy cut_of(const Weight& weight) {
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
    case Role::ExpertGate:
    case Role::ExpertUp:
    case Role::Column:
      return CutBy::Rows;
    case Role::AttentionOut:
    case Role::Down:
    case Role::SharedDown:
    case Role::ExpertDown:
    case Role::Row:
      return weight.is_bias() ? CutBy::None : CutBy::Columns;
    default:
      return CutBy::None;
  }
}

// Replaces the projection in "model.layers.3.mlp.experts.gate_proj.weight", for example by
// "gate_up_proj"; a bias in memory becomes "gate_up_proj_bias".
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
      if (weight.role == Role::Head && model_.is_tied) continue;
      switch (weight.role) {
        case Role::ExpertGate:
        case Role::ExpertUp:
        case Role::ExpertDown:
          add_expert(weight);
          break;
        case Role::Query:
          if (model_.has_fused_files)
            add_joined(weight, "qkv_proj", {Role::Query, Role::Key, Role::Value});
          else
            add(weight);
          break;
        case Role::Gate:
          if (model_.has_fused_files)
            add_joined(weight, "gate_up_proj", {Role::Gate, Role::Up});
          else
            add(weight);
          break;
        case Role::Key:
        case Role::Value:
        case Role::Up:
          if (!model_.has_fused_files) add(weight);
          break;
        default:
          add(weight);
      }
    }
    return std::move(out_);
  }

 private:
  void add(const Weight& weight) {
    out_.push_back({weight.name, {weight.name}, &weight, {}, cut_of(weight), false});
  }

  void add_joined(const Weight& weight, std::string_view projection,
                  const std::vector<Role>& roles) {
    std::size_t end = weight.name.rfind('.'), begin = weight.name.rfind('.', end - 1);
    ModelParameter out{
        weight.name.substr(0, begin + 1) + std::string(projection) + weight.name.substr(end),
        {},
        &weight,
        {},
        cut_of(weight),
        false};
    for (Role role : roles) out.blocks.push_back(group_.find(role, weight.is_bias())->name);
    out_.push_back(std::move(out));
  }

  void add_expert(const Weight& weight) {
    if (form_ == ExpertForm::InFiles && !model_.has_paired_gate) {
      // One tensor per expert: "..experts.17.gate_proj.weight".
      std::size_t at = weight.name.find("experts.") + std::string_view("experts.").size();
      std::string name = weight.name.substr(0, at) + "{}." + weight.name.substr(at);
      out_.push_back({name, {weight.name}, &weight, {.each = "global"}, cut_of(weight), true});
      return;
    }
    // The matrices of gpt_oss are transposed, and its gate and up rows alternate.
    BufferExtras extras;
    if (model_.has_paired_gate && !weight.is_bias()) extras.order = "[0, 2, 1]";
    if (weight.role == Role::ExpertDown) {
      out_.push_back(
          {expert_name(weight, "down_proj"), {weight.name}, &weight, extras, cut_of(weight), true});
    } else if (weight.role == Role::ExpertGate) {
      extras.dim = 1;
      const std::string& up = group_.find(Role::ExpertUp, weight.is_bias())->name;
      std::vector<std::string> blocks{weight.name, up};
      if (model_.has_paired_gate) blocks = {fmt::format("{}:1 {}:1 x1", weight.name, up)};
      out_.push_back({expert_name(weight, "gate_up_proj"), std::move(blocks), &weight, extras,
                      cut_of(weight), true});
    }
  }

  const WeightGroup& group_;
  const Model& model_;
  ExpertForm form_;
  std::vector<ModelParameter> out_;
};

}  // namespace

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
