// SPDX-License-Identifier: BSD-3-Clause
// Collectives that jobs issue without a plan: the kinds that plans have, those with a root, and
// barriers.
//
// Those with a root go as NCCL and PyTorch have them:
//
//   broadcast  ring: a pipeline from the root past all members, of which every link carries the
//              whole; direct: the root sends to each
//   reduce     ring: a pipeline past all members that ends at the root, each folding its own part
//              in; direct: each sends to the root
//   gather     each sends its part to the root, at once
//   scatter    the root sends each its part, at once
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

// A CollectiveKind, or what plans do not have.
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
  // Of kinds with a root: bytes leave it, else they come to it.
  constexpr bool from_root() const { return value_ == Broadcast || value_ == Scatter; }
  // Where it is one that plans have.
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

// Of one rank it takes no time. `bytes`: Expansion's `elements` in bytes; what a broadcast hands to
// each rank, a reduce takes of each, a gather takes of each but the root, a scatter hands to each
// but the root; none of a barrier.
struct BareCollective {
  BareKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;
  Rank root{-1};  // one of the ranks, where the kind has a root
};

// As it goes over the links: of a barrier the all_reduce.
BareCollective as_carried(BareCollective collective);

// Throws InputError where a rank would receive more than 2^62 bytes.
void check_size(const BareCollective& collective);

// What goes between members, by their places among `ranks`, ascending by source: of kinds with a
// root.
struct RootedTransfer {
  std::int32_t source, destination;
  std::int64_t bytes;
};
std::vector<RootedTransfer> rooted_transfers(const BareCollective& collective);
// The root's place among the ranks.
std::int32_t root_member(const BareCollective& collective);

}  // namespace reshard
