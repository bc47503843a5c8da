// SPDX-License-Identifier: BSD-3-Clause
// Builds the steps of a call, and carries placements through them.
#include "core/ops/decompositions/steps.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/decompositions/written_steps.h"

namespace reshard {
namespace {

constexpr std::int32_t kOneRank[]{1};

// Moving costs more than not moving.
double cost_of_moving(const TensorSpec& from, const OpPlacements& to) {
  return from.placements == to ? 0 : 1;
}

OpCall call_of(const InnerCall& step, const std::vector<TensorSpec>& tensors) {
  OpCall out{step.op, {}, step.attributes};
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    OpArgument& argument = out.arguments.emplace_back();
    argument.is_list = i < step.op->tensors.size() && step.op->tensors[i].list;
    for (StepTensor tensor : step.in[i])
      argument.tensors.push_back(tensor == kNoTensor ? nullptr : &tensors[to_index(tensor)]);
  }
  return out;
}

bool moves(const Decision& decision, const OpCall& call) {
  std::vector<const TensorSpec*> inputs = flat_inputs(call);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && *decision.wanted[i] != inputs[i]->placements) return true;
  return false;
}

}  // namespace

Steps::Steps(const OpSite& site) : site_(site) {
  for (const OpSite::Argument& argument : site.arguments) {
    std::vector<StepTensor>& tensors = arguments_.emplace_back();
    for (const TensorMeta* tensor : argument.tensors) {
      tensors.push_back(tensor ? static_cast<StepTensor>(metas_.size()) : kNoTensor);
      if (!tensor) continue;
      inputs_.push_back(tensors.back());
      metas_.push_back(*tensor);
    }
  }
  if (site.op.steps.empty()) {
    find_decomposition(site.op.row).write(*this);
  } else {
    write_steps(*this, site.op);
  }
}

void Steps::refuse(std::string_view why) const {
  throw InputError(fmt::format("{}: {}", site_.op.name, why));
}

StepTensor Steps::in(int argument) const {
  return site_.has(argument) ? arguments_[to_index(argument)].front() : kNoTensor;
}

double Steps::count_of(StepTensor tensor) const {
  std::int64_t own = element_count(shape(tensor));
  return static_cast<double>(site_.attributes.integer(kWholeCount, own));
}

StepTensor Steps::operator()(std::string_view op, std::initializer_list<StepTensor> in,
                             Attributes attributes) {
  return several(op, in, attributes);
}

StepTensor Steps::several(std::string_view op, std::initializer_list<StepTensor> in,
                          Attributes attributes) {
  std::vector<std::vector<StepTensor>> arguments;
  for (StepTensor tensor : in) arguments.push_back({tensor});
  return of_lists(op, std::move(arguments), attributes);
}

StepTensor Steps::of_list(std::string_view op, std::vector<StepTensor> list,
                          Attributes attributes) {
  return of_lists(op, {std::move(list)}, attributes);
}

StepTensor Steps::of_lists(std::string_view op, std::vector<std::vector<StepTensor>> in,
                           Attributes attributes) {
  OpAttributes named;
  for (const auto& [name, value] : attributes) named.set(name, value);
  return step(op, std::move(in), named);
}

StepTensor Steps::step(std::string_view op, std::vector<std::vector<StepTensor>> in,
                       const OpAttributes& attributes) {
  StepTensor first = tensors();
  InnerCall step{&find_operator(op), std::move(in), attributes, first, 0};
  std::vector<TensorSpec> whole;
  for (const TensorMeta& each : metas_) whole.push_back({each, {OpPlacement::replicate()}});
  Decision decision = decide(call_of(step, whole), kOneRank, cost_of_moving);
  for (const std::optional<TensorSpec>& output : decision.outputs)
    metas_.push_back(output ? output->meta : TensorMeta{});
  step.outs = static_cast<int>(decision.outputs.size());
  steps_.push_back(std::move(step));
  return first;
}

std::optional<std::vector<OpPlacements>> Steps::propagated(
    std::span<const OpPlacements* const> inputs, std::span<const std::int32_t> sizes) const {
  std::vector<TensorSpec> tensors;
  for (const TensorMeta& each : metas_) tensors.push_back({each, {}});
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    tensors[to_index(inputs_[i])].placements = *inputs[i];
  for (const InnerCall& step : steps_) {
    OpCall call = call_of(step, tensors);
    try {
      Decision decision = decide(call, sizes, cost_of_moving);
      if (moves(decision, call)) return std::nullopt;
      for (int i = 0; i < step.outs; ++i)
        if (decision.outputs[to_index(i)])
          tensors[to_index(step.first_out + i)] = *decision.outputs[to_index(i)];
    } catch (const InputError&) {  // for example a view that cannot carry its shards
      return std::nullopt;
    }
  }
  std::vector<OpPlacements> out;
  for (StepTensor output : outputs_) out.push_back(tensors[to_index(output)].placements);
  return out;
}

const Decomposition& find_decomposition(std::string_view name) {
  for (std::span<const Decomposition> part :
       {loss_decompositions(), pointwise_decompositions(), reduction_decompositions(),
        moving_decompositions(), composite_decompositions()})
    for (const Decomposition& each : part)
      if (each.name == name) return each;
  throw CheckFailure(fmt::format("no decomposition of {}", name));
}

bool is_decomposed(const Operator& op) { return op.rule && op.rule->name == "steps"; }

}  // namespace reshard
