// SPDX-License-Identifier: BSD-3-Clause
#include "core/traffic/bare_collective.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard {
namespace {

constexpr std::int64_t kBarrierBytes = 4;

}  // namespace

std::string_view text(BareKind kind) {
  switch (kind) {
    case BareKind::Broadcast:
      return "broadcast";
    case BareKind::Reduce:
      return "reduce";
    case BareKind::Gather:
      return "gather";
    case BareKind::Scatter:
      return "scatter";
    case BareKind::Barrier:
      return "barrier";
    default:
      return text(*kind.of_plans());
  }
}

Algorithm default_algorithm(BareKind kind) {
  switch (kind) {
    case BareKind::Broadcast:
    case BareKind::Reduce:
      return Algorithm::Ring;
    case BareKind::Gather:
    case BareKind::Scatter:
      return Algorithm::Direct;
    case BareKind::Barrier:
      return Algorithm::Tree;
    default:
      return default_algorithm(*kind.of_plans());
  }
}

bool has_algorithm(BareKind kind, Algorithm algorithm) {
  if (std::optional<CollectiveKind> planned = kind.of_plans())
    return has_algorithm(*planned, algorithm);
  if (kind == BareKind::Broadcast || kind == BareKind::Reduce) return algorithm != Algorithm::Tree;
  return algorithm == default_algorithm(kind);
}

BareCollective as_carried(BareCollective collective) {
  if (collective.kind != BareKind::Barrier) return collective;
  collective.kind = BareKind::AllReduce;
  collective.algorithm = Algorithm::Tree;
  collective.bytes = kBarrierBytes;
  return collective;
}

void check_size(const BareCollective& collective) {
  auto n = static_cast<std::int32_t>(collective.ranks.size());
  if (n < 2) return;
  if (std::optional<CollectiveKind> planned = collective.kind.of_plans()) {
    Expansion(*planned, collective.algorithm, n, collective.bytes);
    return;
  }
  bool many = collective.kind == BareKind::Gather || collective.kind == BareKind::Scatter ||
              collective.algorithm == Algorithm::Direct;
  if (!checked_product(collective.bytes, many ? n : 1))
    throw InputError(fmt::format("{} of {} bytes over {} ranks: expected at most 2^62 bytes in all",
                                 text(collective.kind), collective.bytes, n));
}

std::int32_t root_member(const BareCollective& collective) {
  auto at = std::find(collective.ranks.begin(), collective.ranks.end(), collective.root);
  RESHARD_CHECK(at != collective.ranks.end(), "a root that is no rank of its collective");
  return static_cast<std::int32_t>(at - collective.ranks.begin());
}

std::vector<RootedTransfer> rooted_transfers(const BareCollective& collective) {
  auto n = static_cast<std::int32_t>(collective.ranks.size());
  std::int32_t root = root_member(collective);
  bool ring = collective.algorithm == Algorithm::Ring, outwards = collective.kind.from_root();
  std::vector<RootedTransfer> out;
  for (std::int32_t member = 0; member < n; ++member) {
    std::int32_t next = member + 1 == n ? 0 : member + 1;
    if (ring) {
      // The pipeline begins or ends at the root.
      if (outwards ? next != root : member != root) out.push_back({member, next, collective.bytes});
    } else if (!outwards) {
      if (member != root) out.push_back({member, root, collective.bytes});
    } else if (member == root) {
      for (std::int32_t other = 0; other < n; ++other)
        if (other != root) out.push_back({root, other, collective.bytes});
    }
  }
  return out;
}

}  // namespace reshard
