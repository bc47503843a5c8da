// SPDX-License-Identifier: BSD-3-Clause
// What a value of the proof is: which addends were folded into it and by what it was divided. Sets
// are interned, so equal values have equal ids.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace reshard {

// Index of a (set of addends, divisor). kPadding: filled zeros, which may reach the destination
// only where S->P(sum) leaves zeros. kMixture: padding folded with values, which never may.
using FoldId = std::int32_t;
inline constexpr FoldId kPadding = -1;
inline constexpr FoldId kMixture = -2;

class FoldSets {
 public:
  // Addends ascending, each once.
  FoldId of(const std::vector<std::int64_t>& addends, std::int64_t divisor);
  // The fold of two values; nothing when they share an addend or were divided differently.
  std::optional<FoldId> join(FoldId a, FoldId b);
  // Nothing when the divisor leaves 2^62.
  std::optional<FoldId> divide(FoldId a, std::int64_t divisor);

 private:
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;  // half-open, ascending, apart
  struct Value {
    Ranges addends;
    std::int64_t divisor;
    friend auto operator<=>(const Value&, const Value&) = default;
  };
  FoldId intern(Value value);
  static std::optional<Ranges> merged(const Ranges& a, const Ranges& b);

  std::vector<Value> values_;
  std::map<Value, FoldId> ids_;
  std::map<std::pair<FoldId, FoldId>, std::optional<FoldId>> joins_;
};

}  // namespace reshard
