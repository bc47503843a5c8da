// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/index_map.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard {
namespace {

constexpr std::int64_t kMostMapRuns = std::int64_t{1} << 24;

void check_ranks(std::size_t found, std::int64_t n) {
  if (found != to_index(n))
    throw InputError(
        fmt::format("map: expected an entry for each of {} ranks, found {}", n, found));
}

std::vector<IndexRun> one_run(std::int64_t lo, std::int64_t count) {
  return count == 0 ? std::vector<IndexRun>{} : std::vector<IndexRun>{{lo, lo + count}};
}

std::vector<IndexRun> sized(const IndexMap& map, std::int64_t length, std::int64_t n,
                            std::int64_t rank) {
  check_ranks(map.sizes.size(), n);
  std::int64_t lo = 0, sum = 0;
  for (std::size_t i = 0; i < map.sizes.size(); ++i) {
    if (i == to_index(rank)) lo = sum;
    if (map.sizes[i] > length - sum) sum = length + 1;  // too many
    if (sum > length) break;
    sum += map.sizes[i];
  }
  if (sum != length)
    throw InputError(fmt::format("map: expected sizes that add up to {}, found {}", length,
                                 fmt::join(map.sizes, ", ")));
  return one_run(lo, map.sizes[to_index(rank)]);
}

std::vector<IndexRun> listed(const IndexMap& map, std::int64_t length, std::int64_t n,
                             std::int64_t rank) {
  check_ranks(map.lists.size(), n);
  std::vector<IndexRun> out;
  for (std::int64_t index : map.lists[to_index(rank)]) {
    if (index >= length)
      throw InputError(fmt::format("map: expected indices below {}, found {}", length, index));
    if (!out.empty() && out.back().hi == index)
      ++out.back().hi;
    else
      out.push_back({index, index + 1});
  }
  return out;
}

std::vector<IndexRun> round_robin(std::int64_t length, std::int64_t n, std::int64_t rank) {
  if (n == 1) return one_run(0, length);
  if (length / n >= kMostMapRuns)
    throw InputError(
        fmt::format("map: expected at most 2^24 indices of a rank, found {}", length / n));
  std::vector<IndexRun> out;
  for (std::int64_t index = rank; index < length; index += n) out.push_back({index, index + 1});
  return out;
}

}  // namespace

std::vector<IndexRun> runs_of(const IndexMap& map, std::int64_t length, std::int64_t n,
                              std::int64_t rank) {
  const std::int64_t each = length / n, more = length % n;
  switch (map.rule) {
    case IndexMap::Rule::Even:
      if (more != 0)
        throw InputError(fmt::format(
            "map: expected a length that {} ranks share evenly, or a rule for the remainder, found "
            "{}",
            n, length));
      return one_run(rank * each, each);
    case IndexMap::Rule::RemainderFirst:
      return one_run(rank * each + std::min(rank, more), each + (rank < more ? 1 : 0));
    case IndexMap::Rule::RemainderLast:
      return one_run(rank * each + std::max<std::int64_t>(0, rank - (n - more)),
                     each + (rank >= n - more ? 1 : 0));
    case IndexMap::Rule::RoundRobin:
      return round_robin(length, n, rank);
    case IndexMap::Rule::Sizes:
      return sized(map, length, n, rank);
    case IndexMap::Rule::Lists:
      return listed(map, length, n, rank);
  }
  return {};
}

}  // namespace reshard
