// SPDX-License-Identifier: BSD-3-Clause
// Collectives that jobs issue outside any plan: the kinds that plans have, the kinds with a root,
// and barriers.
//
// The kinds with a root, and barriers, run as in NCCL and PyTorch:
//
//   broadcast  ring: a pipeline from the root through all members; every link carries the whole
//              buffer. direct: the root sends to each member
//   reduce     ring: a pipeline through all members that ends at the root; each folds its own part
//              in. direct: each member sends to the root
//   gather     all members send their parts to the root at once
//   scatter    the root sends all members their parts at once
//   barrier    an all_reduce of one f32
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/plan/plan.h"
#include "core/traffic/expansion.h"

namespace reshard {

// A CollectiveKind, or one of the kinds that plans do not have.
class BareKind {
 public:
  enum Value : std::uint8_t {
    AllGather,
    ReduceScatter,
    AllReduce,
    AllToAll,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    Barrier
  };
  static constexpr int kCount = Barrier + 1;

  constexpr BareKind(Value value) : value_(value) {}
  constexpr BareKind(CollectiveKind kind) : value_(static_cast<Value>(kind)) {}
  constexpr operator Value() const { return value_; }

  constexpr bool has_root() const { return value_ >= Broadcast && value_ <= Scatter; }
  // For kinds with a root: true if bytes leave the root, false if they go to it.
  constexpr bool from_root() const { return value_ == Broadcast || value_ == Scatter; }
  // The CollectiveKind, if plans have this kind.
  constexpr std::optional<CollectiveKind> of_plans() const {
    return value_ > AllToAll ? std::nullopt : std::optional(static_cast<CollectiveKind>(value_));
  }

 private:
  Value value_;
};
static_assert(static_cast<int>(CollectiveKind::AllToAll) == BareKind::AllToAll);

// "all_gather", "broadcast".
std::string_view text(BareKind kind);
Algorithm default_algorithm(BareKind kind);
bool has_algorithm(BareKind kind, Algorithm algorithm);

// With a single rank it takes no time. `bytes`: Expansion's `elements` in bytes. For kinds with a
// root: what each rank gets from a broadcast or gives to a reduce, what each rank but the root
// gives to a gather or gets from a scatter. Unused by a barrier.
struct BareCollective {
  BareKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;
  Rank root{-1};  // one of the ranks, where the kind has a root
};

// The collective that the links carry: for a barrier its all_reduce, else `collective` itself.
BareCollective as_carried(BareCollective collective);

// Throws InputError where a rank would receive more than 2^62 bytes.
void check_size(const BareCollective& collective);

// One transfer of a kind with a root, between members given as indices into `ranks`. Ascending by
// source.
struct RootedTransfer {
  std::int32_t source, destination;
  std::int64_t bytes;
};
std::vector<RootedTransfer> rooted_transfers(const BareCollective& collective);
// The root's index in `ranks`.
std::int32_t root_member(const BareCollective& collective);

}  // namespace reshard
