// SPDX-License-Identifier: BSD-3-Clause
// Operators as sequences of others. PyTorch's DTensor has no rows for some operators: it follows
// their decomposition, and every way of placing their inputs in which no step would have to move
// anything counts as a row. (torch/distributed/tensor/_decompositions.py)
//
//   a decomposition -> the steps of one call -> rows of placements, shapes, and values
//
// A decomposition is PyTorch 2.15's, with the steps in the same order: either written in the
// catalogue (written_steps.h), or a function that produces them from a call's shapes and
// attributes.
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

// A tensor given to a call, or produced by a step; kNoTensor: absent.
using StepTensor = int;
inline constexpr StepTensor kNoTensor = -1;

struct InnerCall {
  const Operator* op;
  std::vector<std::vector<StepTensor>> in;  // by argument
  OpAttributes attributes;
  StepTensor first_out;  // followed by its other outputs
  int outs;
};

// Values of attributes.
inline OpValue integer(std::int64_t value) { return OpValue(value); }
inline OpValue number(double value) { return OpValue(value); }
inline OpValue list(const std::vector<std::int64_t>& values) { return OpValue(values); }

class Steps {
 public:
  // `site` must outlive this. Throws InputError for arguments that do not fit.
  explicit Steps(const OpSite& site);

  // ---- for decompositions

  const OpAttributes& attributes() const { return site_.attributes; }
  // `name`: as in the catalogue.
  bool is_called(std::string_view name) const { return site_.op.name == name; }
  // Refuses the call.
  [[noreturn]] void refuse(std::string_view why) const;
  // The call's input; kNoTensor if it is absent.
  StepTensor in(int argument) const;
  // All tensors of a list, or the single one; none if it is absent.
  std::vector<StepTensor> list(int argument) const {
    bool is_there = to_index(argument) < arguments_.size();
    return is_there ? arguments_[to_index(argument)] : std::vector<StepTensor>();
  }
  // Refuses the call if it is absent.
  const TensorMeta& meta(StepTensor tensor) const {
    if (tensor == kNoTensor) refuse("expected a required tensor, found none");
    return metas_[to_index(tensor)];
  }
  const Shape& shape(StepTensor tensor) const { return meta(tensor).shape; }
  // The number of elements that a mean is over: of the whole tensor, even on a rank's shard.
  double count_of(StepTensor tensor) const;

  using Attributes = std::initializer_list<std::pair<const char*, OpValue>>;
  StepTensor operator()(std::string_view op, std::initializer_list<StepTensor> in,
                        Attributes attributes = {});
  // For an operator with a list as its first argument.
  StepTensor of_list(std::string_view op, std::vector<StepTensor> list, Attributes attributes);
  // One list per argument, with one element for an argument that is not a list.
  StepTensor of_lists(std::string_view op, std::vector<std::vector<StepTensor>> in,
                      Attributes attributes = {});
  // For an operator with several outputs; returns the first.
  StepTensor several(std::string_view op, std::initializer_list<StepTensor> in,
                     Attributes attributes = {});
  // Adds a step; returns its first output.
  StepTensor step(std::string_view op, std::vector<std::vector<StepTensor>> in,
                  const OpAttributes& attributes);
  void give(StepTensor output) { outputs_.push_back(output); }

  // ---- the result

  const std::vector<InnerCall>& all() const { return steps_; }
  const std::vector<StepTensor>& outputs() const { return outputs_; }
  int tensors() const { return static_cast<int>(metas_.size()); }
  // The call's present inputs, in order.
  const std::vector<StepTensor>& inputs() const { return inputs_; }

  // The outputs' placements for these placements of the inputs (those that out= writes to come
  // last), on a mesh of these sizes; nullopt if a step would have to move one of its inputs.
  std::optional<std::vector<OpPlacements>> propagated(std::span<const OpPlacements* const> inputs,
                                                      std::span<const std::int32_t> sizes) const;

 private:
  const OpSite& site_;
  std::vector<std::vector<StepTensor>> arguments_;
  std::vector<StepTensor> inputs_;
  std::deque<TensorMeta> metas_;  // by tensor; references stay valid
  std::vector<InnerCall> steps_;
  std::vector<StepTensor> outputs_;
};

struct Decomposition {
  std::string_view name;
  void (*write)(Steps& steps);
};
// Throws CheckFailure if there is none: the catalogue must name only those that exist.
const Decomposition& find_decomposition(std::string_view name);

std::span<const Decomposition> loss_decompositions();
std::span<const Decomposition> pointwise_decompositions();
std::span<const Decomposition> reduction_decompositions();
std::span<const Decomposition> moving_decompositions();
std::span<const Decomposition> composite_decompositions();

// Whether the operator has a decomposition.
bool is_decomposed(const Operator& op);
// What PyTorch does wrong with a decomposed call that wants its inputs in these placements;
// empty: nothing.
std::string_view fault_of_steps(const OpSite& site, std::span<const std::int32_t> sizes,
                                const std::vector<std::optional<OpPlacements>>& wanted);
// The attribute with the number of elements, on all ranks, that a mean is over.
inline constexpr std::string_view kWholeCount = "whole count";

}  // namespace reshard
