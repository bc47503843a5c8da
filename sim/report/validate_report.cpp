// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/validate_report.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard::sim {

Spread spread_of(std::vector<std::int64_t> values_ps) {
  RESHARD_CHECK(!values_ps.empty(), "the median of nothing");
  std::sort(values_ps.begin(), values_ps.end());
  return {values_ps[(values_ps.size() - 1) / 2], values_ps.front(), values_ps.back()};
}

MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count) {
  MeasuredTimes out;
  std::vector<std::int64_t> totals;
  std::vector<std::vector<std::int64_t>> by_step(step_count);
  for (const Timeline& run : runs) {
    totals.push_back(run.end_ps);
    IndexVector<std::int32_t, Extent> extents = extents_of(run, step_count);
    for (std::size_t s = 0; s < step_count; ++s)
      if (extents[s].end_ps) by_step[s].push_back(*extents[s].end_ps - *extents[s].start_ps);
  }
  out.total = spread_of(totals);
  out.median_run =
      to_index(std::find(totals.begin(), totals.end(), out.total.median_ps) - totals.begin());
  for (std::vector<std::int64_t>& values : by_step)
    out.steps.push_back(values.empty() ? std::nullopt
                                       : std::optional(spread_of(std::move(values))));
  return out;
}

std::int64_t ValueFacts::elements() const {
  std::int64_t sum = 0;
  for (const ShardFacts& shard : shards) sum += shard.elements;
  return sum;
}

std::int64_t ValueFacts::wrong() const {
  std::int64_t sum = 0;
  for (const ShardFacts& shard : shards) sum += shard.wrong ? shard.wrong->count : 0;
  return sum;
}

std::int64_t ValueFacts::unlike_store() const {
  return std::count_if(shards.begin(), shards.end(),
                       [](const ShardFacts& shard) { return shard.differs_from_store(); });
}

std::int64_t ValueFacts::ranks_where(const std::function<bool(const ShardFacts&)>& is_true) const {
  std::set<Rank> ranks;
  for (const ShardFacts& shard : shards)
    if (is_true(shard)) ranks.insert(shard.rank);
  return static_cast<std::int64_t>(ranks.size());
}

const ShardFacts* ValueFacts::first_wrong() const {
  auto it = std::find_if(shards.begin(), shards.end(),
                         [](const ShardFacts& shard) { return shard.wrong.has_value(); });
  return it == shards.end() ? nullptr : &*it;
}

Digest ValueFacts::digest_of_digests() const {
  Hasher hasher;
  for (const ShardFacts& shard : shards) hasher.add(shard.digest.hex());
  return hasher.digest();
}

std::vector<std::string> faults_of(const ValidateReport& report) {
  const std::vector<ShardFacts>& shards = report.values.shards;
  const IndexVector<TensorId, Request>& tensors = report.predicted.tensors;
  std::vector<std::string> out;
  if (const ShardFacts* first = report.values.first_wrong()) {
    const Request& request = tensors[first->tensor];
    out.push_back(
        fmt::format("values of {}: rank {} holds a wrong value at global index [{}]: expected "
                    "{}, found {} ({} of its elements are wrong, {} on all ranks)",
                    tensor_text(tensors, first->tensor), to_int(first->rank),
                    text(index_at(first->wrong->index, request.shape())),
                    bits_text(first->wrong->expected, request.dtype()),
                    bits_text(first->wrong->found, request.dtype()), first->wrong->count,
                    report.values.wrong()));
  }
  auto other = std::find_if(shards.begin(), shards.end(),
                            [](const ShardFacts& shard) { return shard.differs_from_store(); });
  if (other != shards.end())
    out.push_back(
        fmt::format("values of {}: rank {}'s shard has digest {}, but {} in the store's run of the "
                    "same plan ({} of {} shards differ)",
                    tensor_text(tensors, other->tensor), to_int(other->rank), other->digest.hex(),
                    other->expected->hex(), report.values.unlike_store(), shards.size()));
  return out;
}

}  // namespace reshard::sim
