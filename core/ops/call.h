// SPDX-License-Identifier: BSD-3-Clause
// A call of an operator on sharded tensors: the input of a decision.
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

// How an operator's tensor is placed along one axis: Placement's kinds, and two partials that
// PyTorch's operators produce but users do not write:
//   NormPartial  addends x that represent their norm of order p: (sum of |x|^p)^(1/p)
//   MaskPartial  input of a look-up: indices; each rank handles those into its own part of the
//                table; output: rows, each non-zero on the rank that handled it, to be summed
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
  std::int8_t dim = 0;          // Shard, StridedShard: tensor dim. MaskPartial: the dim that is cut
  ReduceOp op = ReduceOp::Sum;  // Partial
  std::int64_t split_factor = 1;  // StridedShard
  double norm = 0;                // NormPartial: p, finite and not 0
  bool norm_is_number = false;    // NormPartial: written as a number, 2.0 and not 2
  Shape mask_shape = {};          // MaskPartial: shape of the tensor that is looked up in
  std::int8_t mask_dims = 0;  // MaskPartial: leading dims that come from the indices; 0: unknown

  OpPlacement() = default;
  OpPlacement(const Placement& placement);
  static OpPlacement replicate() { return {}; }
  static OpPlacement shard(int dim) { return Placement::shard(dim); }
  static OpPlacement partial(ReduceOp op) { return Placement::partial(op); }
  static OpPlacement norm_partial(double norm, bool is_number = false);
  static OpPlacement mask_partial(const Shape& mask_shape, int dim, int mask_dims = 0);

  bool is_replicate() const { return kind == Kind::Replicate; }
  bool is_shard_like() const { return kind == Kind::Shard || kind == Kind::StridedShard; }
  // Any of the three partials.
  bool is_partial() const { return !is_replicate() && !is_shard_like(); }
  bool is_partial(ReduceOp of) const { return kind == Kind::Partial && op == of; }
  // The placement that redistributions use: addends of norms and look-ups are summed.
  Placement carried() const;
  friend bool operator==(const OpPlacement&, const OpPlacement&) = default;
};
// As PyTorch prints it: "S(0)", "P(sum)", "_NormP(2)", "MaskP(sum, torch.Size([32, 12]), 0)".
std::string text(const OpPlacement& placement);

using OpPlacements = std::vector<OpPlacement>;  // one per axis
std::string text(const OpPlacements& placements);
// The placements of a call's tensors, none for absent ones: "S(0)R, -".
using PlacedTensors = std::vector<std::optional<OpPlacements>>;
std::string text(const PlacedTensors& tensors);
// Parses the text of one tensor's placements on `axes` axes. Throws InputError naming `field`.
OpPlacements parse_op_placements(std::string_view text, int axes, std::string_view field);
bool has_strided(const OpPlacements& placements);
// The axes that cut a dim.
std::vector<int> axes_cutting(const OpPlacements& placements, int dim);
// A dim of `length` as a 1-d tensor on a mesh of only `axes`, cut as `placements` cut it. `sizes`:
// of all mesh axes.
Layout layout_of_dim(std::int64_t length, const OpPlacements& placements, int dim,
                     const std::vector<int>& axes, std::span<const std::int32_t> sizes);

// The dtype of a call's tensor: as parse_dtype, but u64 becomes i64. Such tensors are seeds and
// offsets of random generators, which are copied and never compared.
DType call_dtype(std::string_view text, std::string_view field = "dtype");

struct TensorMeta {
  Shape shape;
  DType dtype;
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

// A tensor as an operator sees it. `of_view`: its _StridedShard was made by a view; PyTorch
// remembers this and its cost model then counts gathers of it as free. `at_least_zero`: all
// elements and addends are known to be non-negative.
struct TensorSpec {
  TensorMeta meta;
  OpPlacements placements;
  bool of_view = false;
  bool at_least_zero = false;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};
// "f32[64, 32](S(0)R)".
std::string text(const TensorSpec& spec);

// One tensor argument, or a list of them; null: absent.
struct OpArgument {
  bool is_list = false;
  std::vector<const TensorSpec*> tensors;
};

// Thrown for arguments that our rule for an operator does not cover although PyTorch's does. If it
// is known what PyTorch chose for them, that can be used instead. Arguments that PyTorch refuses
// too are a plain InputError.
class NotCovered : public InputError {
 public:
  using InputError::InputError;
};

struct Operator;

// Tensors are in the order of the operator's arguments; absent ones at the end can be left out.
struct OpCall {
  const Operator* op;
  std::vector<OpArgument> arguments;
  OpAttributes attributes;
  bool loss_parallel = false;  // inside PyTorch's context of that name
};

}  // namespace reshard
