// SPDX-License-Identifier: BSD-3-Clause
// A call of an operator on sharded tensors: what a decision is made from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "core/ops/attributes.h"

namespace reshard {

// How a tensor of an operator lies along one axis. Beside Placement's kinds the two partials that
// PyTorch's operators make and that nobody writes:
//   NormPartial  addends x whose norm of order p is meant: (sum of |x|^p)^(1/p)
//   MaskPartial  as input of a look-up: indices of which each rank knows its own, as output: rows
//                of which each rank has those it knew, sum of them
struct OpPlacement {
  enum class Kind : std::uint8_t {
    Replicate,
    Shard,
    StridedShard,
    Partial,
    NormPartial,
    MaskPartial
  };
  Kind kind = Kind::Replicate;
  std::int8_t dim = 0;            // Shard, StridedShard: tensor dim. MaskPartial: dim that is cut
  ReduceOp op = ReduceOp::Sum;    // Partial
  std::int64_t split_factor = 1;  // StridedShard
  double norm = 0;                // NormPartial: p, finite and not 0
  bool norm_is_number = false;    // and whether it was written as one: 2.0, not 2
  Shape mask_shape = {};          // MaskPartial: of the tensor that is looked up in
  std::int8_t mask_dims = 0;      // and how many leading dims have the indices; 0: not known

  OpPlacement() = default;
  OpPlacement(const Placement& placement);
  static OpPlacement replicate() { return {}; }
  static OpPlacement shard(int dim) { return Placement::shard(dim); }
  static OpPlacement partial(ReduceOp op) { return Placement::partial(op); }
  static OpPlacement norm_partial(double norm, bool is_number = false);
  static OpPlacement mask_partial(const Shape& mask_shape, int dim, int mask_dims = 0);

  bool is_replicate() const { return kind == Kind::Replicate; }
  bool is_shard_like() const { return kind == Kind::Shard || kind == Kind::StridedShard; }
  // Of any kind.
  bool is_partial() const { return !is_replicate() && !is_shard_like(); }
  bool is_partial(ReduceOp of) const { return kind == Kind::Partial && op == of; }
  // What moves it: a norm's and a look-up's addends are summed.
  Placement carried() const;
  friend bool operator==(const OpPlacement&, const OpPlacement&) = default;
};
// As PyTorch prints it: "S(0)", "P(sum)", "_NormP(2)", "MaskP(sum, torch.Size([32, 12]), 0)".
std::string text(const OpPlacement& placement);

using OpPlacements = std::vector<OpPlacement>;  // one per axis
std::string text(const OpPlacements& placements);
// Of the tensors of a call, none where one is absent: "S(0)R, -".
using PlacedTensors = std::vector<std::optional<OpPlacements>>;
std::string text(const PlacedTensors& tensors);
// The way back, of one tensor on so many axes. Throws InputError naming `field`.
OpPlacements parse_op_placements(std::string_view text, int axes, std::string_view field);
bool has_strided(const OpPlacements& placements);
// The axes that cut a dim.
std::vector<int> axes_cutting(const OpPlacements& placements, int dim);
// A dim of `length` as a tensor of its own, on a mesh of these axes alone: which parts of it there
// are. `sizes`: of all axes.
Layout layout_of_dim(std::int64_t length, const OpPlacements& placements, int dim,
                     const std::vector<int>& axes, std::span<const std::int32_t> sizes);

// Of a call's tensor: as parse_dtype has it, and u64 as i64. Those are seeds and offsets of random
// generators, which are copied and never compared.
DType call_dtype(std::string_view text, std::string_view field = "dtype");

struct TensorMeta {
  Shape shape;
  DType dtype;
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

// A tensor as an operator sees it. `of_view`: a view made its _StridedShard, as PyTorch remembers,
// whose cost model then takes its gathers for free. `at_least_zero`: no element or addend is below,
// as far as is known.
struct TensorSpec {
  TensorMeta meta;
  OpPlacements placements;
  bool of_view = false;
  bool at_least_zero = false;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};
// "f32[64, 32](S(0)R)".
std::string text(const TensorSpec& spec);

// One tensor argument, or a list of them; null where there is none.
struct OpArgument {
  bool is_list = false;
  std::vector<const TensorSpec*> tensors;
};

// Arguments that our rule of an operator does not cover, and PyTorch's does. Where it is known what
// PyTorch chose for them that may be taken instead; what PyTorch refuses too is an InputError.
class NotCovered : public InputError {
 public:
  using InputError::InputError;
};

struct Operator;

// Tensors in the order of the operator's arguments, absent ones at the end may be left out.
struct OpCall {
  const Operator* op;
  std::vector<OpArgument> arguments;
  OpAttributes attributes;
  bool loss_parallel = false;  // as inside PyTorch's context of that name
};

}  // namespace reshard
