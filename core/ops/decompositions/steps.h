// SPDX-License-Identifier: BSD-3-Clause
// Operators as sequences of others. PyTorch's DTensor has no rows for some: it follows what they
// are taken apart into, and takes for a row of theirs each way of placing their inputs in which
// no step would have to move anything. (torch/distributed/tensor/_decompositions.py)
//
//   a decomposition -> the steps of one call -> rows of placements, shapes, and values
//
// A decomposition is the steps of PyTorch 2.15's in their order, written in the catalogue
// (written_steps.h), or one function that writes them from the shapes and attributes of a call.
#pragma once

#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/operator.h"

namespace reshard {

// A tensor that is given to a call, or that a step makes; kNoTensor: absent.
using StepTensor = int;
inline constexpr StepTensor kNoTensor = -1;

struct InnerCall {
  const Operator* op;
  std::vector<std::vector<StepTensor>> in;  // by argument
  OpAttributes attributes;
  StepTensor first_out;  // and those behind it
  int outs;
};

class Steps {
 public:
  // `site` must outlive it. Throws InputError where the call's arguments do not fit.
  explicit Steps(const OpSite& site);

  // ---- for decompositions

  const OpAttributes& attributes() const { return site_.attributes; }
  // By its name in the catalogue.
  bool is_called(std::string_view name) const { return site_.op.name == name; }
  // Refuses the call.
  [[noreturn]] void refuse(std::string_view why) const;
  // The call's input; kNoTensor where it is absent.
  StepTensor in(int argument) const;
  // All of a list, or the one; none where it is absent.
  std::vector<StepTensor> list(int argument) const {
    bool is_there = to_index(argument) < arguments_.size();
    return is_there ? arguments_[to_index(argument)] : std::vector<StepTensor>();
  }
  // Refuses the call where it is absent.
  const TensorMeta& meta(StepTensor tensor) const {
    if (tensor == kNoTensor) refuse("expected a tensor that it needs, found none");
    return metas_[to_index(tensor)];
  }
  const Shape& shape(StepTensor tensor) const { return meta(tensor).shape; }
  // How many elements a mean is over: of the whole tensor, also where this is a part of it.
  double count_of(StepTensor tensor) const;

  using Attributes = std::initializer_list<std::pair<const char*, OpValue>>;
  StepTensor operator()(std::string_view op, std::initializer_list<StepTensor> in,
                        Attributes attributes = {});
  // With a list as its first argument.
  StepTensor of_list(std::string_view op, std::vector<StepTensor> list, Attributes attributes);
  // Argument by argument, one tensor of what is no list.
  StepTensor of_lists(std::string_view op, std::vector<std::vector<StepTensor>> in,
                      Attributes attributes = {});
  // One that makes several: the first of them.
  StepTensor several(std::string_view op, std::initializer_list<StepTensor> in,
                     Attributes attributes = {});
  // The first that it makes.
  StepTensor step(std::string_view op, std::vector<std::vector<StepTensor>> in,
                  const OpAttributes& attributes);
  void give(StepTensor output) { outputs_.push_back(output); }

  // ---- what they come to

  const std::vector<InnerCall>& all() const { return steps_; }
  const std::vector<StepTensor>& outputs() const { return outputs_; }
  int tensors() const { return static_cast<int>(metas_.size()); }
  // The call's inputs that are there, in order.
  const std::vector<StepTensor>& inputs() const { return inputs_; }

  // How the outputs lie where the inputs lie so (what is written to by out= stands behind them), on
  // a mesh of these sizes; nothing where a step would have to move one of them.
  std::optional<std::vector<OpPlacements>> propagated(std::span<const OpPlacements* const> inputs,
                                                      std::span<const std::int32_t> sizes) const;

 private:
  const OpSite& site_;
  std::vector<std::vector<StepTensor>> arguments_;
  std::vector<StepTensor> inputs_;
  std::deque<TensorMeta> metas_;  // by tensor; stays where it is while steps are added
  std::vector<InnerCall> steps_;
  std::vector<StepTensor> outputs_;
};

struct Decomposition {
  std::string_view name;
  void (*write)(Steps& steps);
};
// Throws CheckFailure where there is none: the catalogue names only what is there.
const Decomposition& find_decomposition(std::string_view name);

std::span<const Decomposition> loss_decompositions();
std::span<const Decomposition> pointwise_decompositions();
std::span<const Decomposition> reduction_decompositions();
std::span<const Decomposition> moving_decompositions();
std::span<const Decomposition> composite_decompositions();

// Whether the operator is one of these.
bool is_decomposed(const Operator& op);
// What PyTorch does wrong with a decomposed call whose inputs lie and are wanted so; empty:
// nothing.
std::string_view fault_of_steps(const OpSite& site, std::span<const std::int32_t> sizes,
                                const std::vector<std::optional<OpPlacements>>& wanted);
// The attribute with which each rank is told how many elements a mean is over in all.
inline constexpr std::string_view kWholeCount = "whole count";

}  // namespace reshard
