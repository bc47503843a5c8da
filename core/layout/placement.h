// SPDX-License-Identifier: BSD-3-Clause
// How a tensor lies along one mesh axis, in DTensor's words, and the text forms that PyTorch prints
// and its users write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"

namespace reshard {

struct Placement {
  enum class Kind : std::uint8_t { Replicate, Shard, StridedShard, Partial };

  Kind kind = Kind::Replicate;
  std::int8_t dim = 0;            // Shard, StridedShard: tensor dim, 0 .. 7 (negative only in text)
  ReduceOp op = ReduceOp::Sum;    // Partial
  std::int64_t split_factor = 1;  // StridedShard: pieces the current length is first cut into, >= 1

  static Placement replicate() { return {}; }
  static Placement shard(int dim) {
    return {Kind::Shard, static_cast<std::int8_t>(dim), ReduceOp::Sum, 1};
  }
  static Placement strided_shard(int dim, std::int64_t split_factor) {
    return {Kind::StridedShard, static_cast<std::int8_t>(dim), ReduceOp::Sum, split_factor};
  }
  static Placement partial(ReduceOp op = ReduceOp::Sum) { return {Kind::Partial, 0, op, 1}; }

  bool is_replicate() const { return kind == Kind::Replicate; }
  bool is_partial() const { return kind == Kind::Partial; }
  bool is_shard_like() const { return kind == Kind::Shard || kind == Kind::StridedShard; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

// For each tensor dim the mesh axes that shard it, in the order in which they cut it (outermost
// first).
using ShardStacks = IndexVector<int, std::vector<int>>;

// Placements as written, one per axis, with the shard order they carry.
struct PlacementList {
  std::vector<Placement> placements;
  // Per axis its position in its dim's order ("S(0)[1]S(0)[0]"), -1 where none was written.
  std::vector<int> order;
};

// All spellings: "S(0)R", "S(0),R", "S0,R", "Shard(0),Replicate()", "Shard(dim=0)", "_S(0,2)",
// "_StridedShard(dim=0, sf=2)", "P", "P(sum)", "Partial(avg)", "S(0)[1]S(0)[0]", with or without
// surrounding "[...]" or "(...)"; separators (comma, space) count outside parentheses only.
// Negative dims count from `tensor_dims`. Throws InputError naming `field`: unknown word, dim out
// of range, wrong number of placements (`axes`).
PlacementList parse_placements(std::string_view text, int axes, int tensor_dims,
                               std::string_view field);

// As str() in PyTorch: "S(0)", "_S(0, 2)", "P(sum)", "R".
std::string text(const Placement& placement);
// As repr() in PyTorch: "Shard(dim=0)", "_StridedShard(dim=0, sf=2)", "Partial(sum)",
// "Replicate()".
std::string repr(const Placement& placement);
// As PyTorch prints a spec: "S(0)R"; with the index where the shard order is not the default:
// "S(1)[1]S(1)[0]".
std::string text(const std::vector<Placement>& placements, const ShardStacks& stacks);

}  // namespace reshard
