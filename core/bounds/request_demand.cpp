// SPDX-License-Identifier: BSD-3-Clause
// Counts everything that the bounds need of a request in one pass over its atoms.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/bounds/atoms.h"
#include "core/bounds/bounds.h"
#include "core/bounds/entry.h"
#include "core/bounds/holder.h"
#include "core/bounds/latency.h"
#include "core/bounds/level.h"

namespace reshard {
namespace {

// Calls visit(list of holders, list of needers, elements) for every atom.
template <typename Visit>
void for_each_atom(const Request& request, const MemberLists& holders, const MemberLists& needers,
                   const Visit& visit) {
  Atoms atoms(request);
  auto lists = [](const MemberLists& members) { return static_cast<std::int64_t>(members.size()); };
  Int128 per_atom = Int128{static_cast<std::int64_t>(holders.members.size())} / lists(holders) +
                    static_cast<std::int64_t>(needers.members.size()) / lists(needers) + 1;
  if (per_atom * atoms.count() * holders.kept > kMaxBoundWork)
    throw InputError(fmt::format(
        "request: expected at most 2^33 pairs of shards and holders to bound, found more in {}",
        request.text()));

  std::vector<std::int64_t> zero = zero_coordinates(request);
  atoms.for_each([&](std::int64_t source, std::int64_t destination, std::int64_t elements) {
    for (std::int64_t kept = 0; kept < holders.kept; ++kept)
      visit(to_index(source * holders.kept + kept),
            to_index((destination * holders.kept + kept) * needers.zeros + zero[to_index(source)]),
            elements);
  });
}

// The counts of one request: level by level, scope by scope.
class RequestCount {
 public:
  RequestCount(const Request& request, const CutSets& sets)
      : request_(request),
        sets_(sets),
        folds_(request.fold().fold_count > 1),
        holders_(holders_of(request, sets.ranks())),
        needers_(needers_of(request, sets.ranks())),
        latency_(sets.topology(), sets.ranks(), holders_, needers_) {
    for (const CutLevel& level : sets.levels())
      levels_.emplace_back(holders_, needers_, request.fold().fold_count, view_of(level));
    for (std::size_t l = 0; l < sets.levels().size(); ++l)
      if (sets.levels()[l].of_nodes) nodes_ = l;
    if (nodes_) far_.emplace(holders_, needers_, sets.levels()[*nodes_].member_of);
    for (Scopes& scopes : scopes_of(sets))
      held_.emplace_back(holders_, needers_, folds_, std::move(scopes));
  }

  void run() {
    bool by_owner = !folds_ && !latency_.of_job().uniform_within();
    for_each_atom(request_, holders_, needers_,
                  [&](std::size_t holders, std::size_t needers, std::int64_t elements) {
                    std::int64_t by_rank = levels_.front().add(holders, needers, elements);
                    for (std::size_t l = 1; l < levels_.size(); ++l) {
                      std::int64_t by_set = levels_[l].add(holders, needers, elements);
                      levels_[l].add_price(holders, needers, elements, by_rank, by_set);
                    }
                    for (HeldCount& held : held_) held.add(holders, needers, elements);
                    if (far_ && by_rank > 0)
                      far_->add(holders, needers, elements, [&](std::int32_t node) {
                        return levels_[*nodes_].complete(holders, node);
                      });
                    if (by_owner) latency_.add(holders, needers);
                  });
  }

  RequestDemand demand() const {
    RequestDemand demand;
    demand.in_bytes.resize(sets_.size());
    std::int64_t width = size_bytes(request_.dtype());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const CutLevel& level = sets_.levels()[l];
      for (std::size_t set = 0; set < level.names.size(); ++set) {
        demand.in_bytes[level.first_set + 2 * set] = levels_[l].in()[set] * width;
        demand.in_bytes[level.first_set + 2 * set + 1] = levels_[l].in_complement()[set] * width;
      }
      demand.receipts_bytes.push_back(levels_[l].receipts() * width);
      demand.prices.push_back(levels_[l].price(width));
    }
    JobCapacities capacities(sets_.topology(), sets_.ranks());
    demand.holder_ps = holder_ps(capacities, width);
    if (far_)
      demand.entry_ps = far_->bound_ps(width, sets_.topology(), sets_.ranks(), capacities,
                                       sets_.reducing().network);
    demand.owner_latency_ps = owner_latency_ps();
    return demand;
  }

 private:
  LevelView view_of(const CutLevel& level) const {
    Reducing switches = sets_.reducing();
    LevelView view{level.member_of, static_cast<std::int32_t>(level.names.size()),
                   switches.network || (switches.nvlink && !level.of_nodes),
                   request_.fold().fold_count > 2 && !switches.network && !switches.nvlink};
    for (std::int32_t& set : view.set_of)
      if (set < 0) set = view.sets;
    return view;
  }

  // Every level except that of single ranks; if the job is on one node, also that node.
  static std::vector<Scopes> scopes_of(const CutSets& sets) {
    std::vector<Scopes> out;
    bool several_nodes = false;
    for (std::size_t l = 1; l < sets.levels().size(); ++l) {
      out.push_back({sets.levels()[l].member_of, sets.levels()[l].node});
      several_nodes = several_nodes || sets.levels()[l].of_nodes;
    }
    if (!several_nodes)
      out.push_back({std::vector<std::int32_t>(sets.ranks().size(), 0),
                     {sets.topology().node_of(sets.ranks().front())}});
    return out;
  }

  std::int64_t holder_ps(JobCapacities& capacities, std::int64_t width) const {
    std::vector<bool> lacks;
    for (std::size_t rank = 0; rank < sets_.ranks().size(); ++rank)
      lacks.push_back(levels_.front().in()[rank] > 0);
    std::int64_t bound = 0;
    for (const HeldCount& held : held_)
      bound =
          std::max(bound, held.bound_ps(capacities, sets_.topology(), sets_.ranks(), lacks, width));
    return bound;
  }

  // Data that a node must receive comes from another node.
  std::int64_t owner_latency_ps() const {
    std::int64_t latency = latency_.greatest_ps();
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const std::vector<Int128>& in = levels_[l].in();
      auto must_receive = [](Int128 elements) { return elements > 0; };
      if (sets_.levels()[l].of_nodes && std::any_of(in.begin(), in.end(), must_receive))
        latency = std::max(latency, latency_.of_job().between_nodes_ps());
    }
    return latency;
  }

  const Request& request_;
  const CutSets& sets_;
  bool folds_;
  MemberLists holders_, needers_;
  OwnerLatency latency_;
  std::vector<LevelCount> levels_;
  std::vector<HeldCount> held_;
  std::optional<std::size_t> nodes_;  // the level of nodes, if there are several
  std::optional<FarCount> far_;       // if there are several nodes
};

}  // namespace

RequestDemand demand_of(const Request& request, const CutSets& sets) {
  if (sets.levels().empty()) return {};
  RequestCount count(request, sets);
  count.run();
  return count.demand();
}

void add_transfer(std::vector<Int128>& in_bytes, const CutSets& sets, Rank source, Rank destination,
                  Int128 bytes) {
  RESHARD_CHECK(in_bytes.size() == sets.size(), "a demand counted over other sets");
  std::int32_t from = index_in(sets.ranks(), source), to = index_in(sets.ranks(), destination);
  for (const CutLevel& level : sets.levels()) {
    std::int32_t source_set = level.member_of[to_index(from)],
                 destination_set = level.member_of[to_index(to)];
    if (source_set == destination_set) continue;
    // It enters the destination's set and the complement of the source's.
    if (destination_set >= 0) in_bytes[level.first_set + 2 * to_index(destination_set)] += bytes;
    if (source_set >= 0) in_bytes[level.first_set + 2 * to_index(source_set) + 1] += bytes;
  }
}

}  // namespace reshard
