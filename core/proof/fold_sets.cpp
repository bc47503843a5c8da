// SPDX-License-Identifier: BSD-3-Clause
#include "core/proof/fold_sets.h"

#include <algorithm>

#include "core/base/integers.h"

namespace reshard {

FoldId FoldSets::intern(Value value) {
  auto [it, added] = ids_.try_emplace(std::move(value), static_cast<FoldId>(values_.size()));
  if (added) values_.push_back(it->first);
  return it->second;
}

FoldId FoldSets::of(const std::vector<std::int64_t>& addends, std::int64_t divisor) {
  Ranges ranges;
  for (std::int64_t addend : addends) {
    if (!ranges.empty() && ranges.back().second == addend)
      ++ranges.back().second;
    else
      ranges.emplace_back(addend, addend + 1);
  }
  return intern({std::move(ranges), divisor});
}

std::optional<FoldSets::Ranges> FoldSets::merged(const Ranges& a, const Ranges& b) {
  Ranges all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  Ranges out;
  for (const auto& range : all) {
    if (!out.empty() && range.first < out.back().second) return std::nullopt;
    if (!out.empty() && range.first == out.back().second)
      out.back().second = range.second;
    else
      out.push_back(range);
  }
  return out;
}

std::optional<FoldId> FoldSets::join(FoldId a, FoldId b) {
  if (a < 0 || b < 0) return a == kPadding && b == kPadding ? kPadding : kMixture;
  auto [it, added] = joins_.try_emplace({a, b}, std::nullopt);
  if (!added) return it->second;
  const Value &x = values_[static_cast<std::size_t>(a)], &y = values_[static_cast<std::size_t>(b)];
  if (x.divisor != y.divisor) return std::nullopt;
  std::optional<Ranges> ranges = merged(x.addends, y.addends);
  if (!ranges) return std::nullopt;
  std::int64_t divisor = x.divisor;
  it->second = intern({std::move(*ranges), divisor});
  return it->second;
}

std::optional<FoldId> FoldSets::divide(FoldId a, std::int64_t divisor) {
  if (a < 0 || divisor == 1) return a;
  const Value& value = values_[static_cast<std::size_t>(a)];
  std::optional<std::int64_t> product = checked_product(value.divisor, divisor);
  if (!product) return std::nullopt;
  return intern({value.addends, *product});
}

}  // namespace reshard
