// SPDX-License-Identifier: BSD-3-Clause
// Counts everything that the bounds need of a job in one pass over the items of its requests.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/bounds/bounds.h"
#include "core/bounds/counted_items.h"
#include "core/bounds/entry.h"
#include "core/bounds/holder.h"
#include "core/bounds/joint/joint.h"
#include "core/bounds/latency.h"
#include "core/bounds/level.h"

namespace reshard {
namespace {

// The lists of several requests in one, each once.
class ListMerger {
 public:
  // Adds all lists and returns their numbers here.
  std::vector<std::size_t> add(const MemberLists& lists) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::span<const Member> members = lists.list(i);
      auto [at, is_new] = known_.try_emplace({members.begin(), members.end()}, all_.size());
      if (is_new) {
        all_.members.insert(all_.members.end(), members.begin(), members.end());
        all_.begins.push_back(all_.members.size());
      }
      out.push_back(at->second);
    }
    return out;
  }
  const MemberLists& all() const { return all_; }

 private:
  MemberLists all_{{}, {0}};
  std::map<std::vector<Member>, std::size_t> known_;
};

// A request that occurs `times` times in a job, and the numbers of its lists among the job's.
struct CountedRequest {
  const TensorKind* kind;
  const CountedItems* items;
  std::int64_t times;
  std::vector<std::size_t> holders = {}, needers = {};
  const Request& request() const { return kind->request(); }
};

// Calls visit(list of holders, list of needers, bytes) for every item of a request.
template <typename Visit>
void for_each_item(const CountedRequest& of, const MemberLists& holders, const MemberLists& needers,
                   const Visit& visit) {
  auto lists = [](const MemberLists& members) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(members.size()));
  };
  Int128 per_item = Int128{static_cast<std::int64_t>(holders.members.size())} / lists(holders) +
                    static_cast<std::int64_t>(needers.members.size()) / lists(needers) + 1;
  if (per_item * of.items->count() > kMaxBoundWork)
    throw InputError(fmt::format(
        "request: expected at most 2^33 pairs of shards and holders to bound, found more in {}",
        of.request().text()));
  std::int64_t width = of.kind->element_bytes();
  of.items->for_each([&](std::size_t source, std::size_t destination, std::int64_t elements) {
    visit(of.holders[source], of.needers[destination], elements * width);
  });
}

// The counts of requests that fold equally many addends: level by level, scope by scope, in bytes.
// What all of them have in the same places counts together, so that the bounds are those of the
// job.
class RequestCount {
 public:
  // Also adds everything to `joint`, if there is one.
  RequestCount(std::vector<CountedRequest> requests, const CutSets& sets,
               JointCount* joint = nullptr)
      : requests_(std::move(requests)),
        sets_(sets),
        joint_(joint),
        fold_count_(requests_.front().request().fold().fold_count),
        holders_(merged(true)),
        needers_(merged(false)),
        latency_(sets.topology(), sets.ranks(), holders_, needers_) {
    for (const CutLevel& level : sets.levels())
      levels_.emplace_back(holders_, needers_, fold_count_, view_of(level));
    for (std::size_t l = 0; l < sets.levels().size(); ++l)
      if (sets.levels()[l].of_nodes) nodes_ = l;
    if (nodes_) far_.emplace(holders_, needers_, sets.levels()[*nodes_].member_of);
    for (Scopes& scopes : scopes_of(sets))
      held_.emplace_back(holders_, needers_, folds(), std::move(scopes));
    if (joint_ == nullptr) return;
    for (std::size_t i = 0; i < holders_.size(); ++i)
      holder_masks_.push_back(JointCount::holders_of(holders_.list(i)));
    for (std::size_t i = 0; i < needers_.size(); ++i)
      needer_masks_.push_back(JointCount::needers_of(needers_.list(i)));
  }

  void run() {
    bool by_owner = !folds() && !latency_.of_job().uniform_within();
    for (const CountedRequest& of : requests_)
      for_each_item(of, holders_, needers_,
                    [&](std::size_t holders, std::size_t needers, std::int64_t bytes) {
                      add(holders, needers, bytes * of.times, by_owner);
                    });
  }

  RequestDemand demand() const {
    RequestDemand demand;
    demand.in_bytes.resize(sets_.size());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const CutLevel& level = sets_.levels()[l];
      for (std::size_t set = 0; set < level.names.size(); ++set) {
        demand.in_bytes[level.first_set + 2 * set] = levels_[l].in()[set];
        demand.in_bytes[level.first_set + 2 * set + 1] = levels_[l].in_complement()[set];
      }
      demand.receipts_bytes.push_back(levels_[l].receipts());
      demand.prices.push_back(levels_[l].price(1));
    }
    JobCapacities capacities(sets_.topology(), sets_.ranks());
    demand.holder_ps = holder_ps(capacities);
    if (far_)
      demand.entry_ps =
          far_->bound_ps(1, sets_.topology(), sets_.ranks(), capacities, sets_.reducing().network);
    demand.owner_latency_ps = owner_latency_ps();
    return demand;
  }

 private:
  bool folds() const { return fold_count_ > 1; }

  MemberLists merged(bool holds) {
    ListMerger merger;
    for (CountedRequest& of : requests_)
      (holds ? of.holders : of.needers) =
          merger.add(holds ? of.items->holders() : of.items->needers());
    return merger.all();
  }

  void add(std::size_t holders, std::size_t needers, std::int64_t bytes, bool by_owner) {
    std::int64_t by_rank = levels_.front().add(holders, needers, bytes);
    for (std::size_t l = 1; l < levels_.size(); ++l) {
      std::int64_t by_set = levels_[l].add(holders, needers, bytes);
      levels_[l].add_price(holders, needers, bytes, by_rank, by_set);
    }
    for (HeldCount& held : held_) held.add(holders, needers, bytes);
    if (far_ && by_rank > 0)
      far_->add(holders, needers, bytes,
                [&](std::int32_t node) { return levels_[*nodes_].complete(holders, node); });
    if (by_owner) latency_.add(holders, needers);
    if (joint_ != nullptr) joint_->add(holder_masks_[holders], needer_masks_[needers], bytes);
  }

  LevelView view_of(const CutLevel& level) const {
    Reducing switches = sets_.reducing();
    LevelView view{level.member_of, static_cast<std::int32_t>(level.names.size()),
                   switches.network || (switches.nvlink && !level.of_nodes),
                   fold_count_ > 2 && !switches.network && !switches.nvlink};
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

  std::int64_t holder_ps(JobCapacities& capacities) const {
    std::vector<bool> lacks;
    for (std::size_t rank = 0; rank < sets_.ranks().size(); ++rank)
      lacks.push_back(levels_.front().in()[rank] > 0);
    std::int64_t bound = 0;
    for (const HeldCount& held : held_)
      bound = std::max(bound, held.bound_ps(capacities, sets_.topology(), sets_.ranks(), lacks, 1));
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

  std::vector<CountedRequest> requests_;
  const CutSets& sets_;
  JointCount* joint_;
  std::vector<RankMask> holder_masks_, needer_masks_;  // by list, for joint_
  std::int64_t fold_count_;
  MemberLists holders_, needers_;
  OwnerLatency latency_;
  std::vector<LevelCount> levels_;
  std::vector<HeldCount> held_;
  std::optional<std::size_t> nodes_;  // the level of nodes, if there are several
  std::optional<FarCount> far_;       // if there are several nodes
};

RequestDemand counted(std::vector<CountedRequest> requests, const CutSets& sets,
                      JointCount* joint = nullptr) {
  RequestCount count(std::move(requests), sets, joint);
  count.run();
  return count.demand();
}

}  // namespace

RequestDemand demand_of(const Request& request, const CutSets& sets) {
  return demand_of(std::span(&request, 1), sets);
}

RequestDemand demand_of(std::span<const Request> requests, const CutSets& sets) {
  if (sets.levels().empty()) return {};
  // By the number of addends, in the order of the first of each; equal requests are counted once.
  std::deque<TensorKind> kinds;
  std::deque<CountedItems> items;
  std::vector<std::vector<CountedRequest>> groups;
  std::map<std::int64_t, std::size_t> group_of;
  std::map<Digest, std::pair<std::size_t, std::size_t>> known;
  for (const Request& request : requests) {
    auto [group, is_new] = group_of.try_emplace(request.fold().fold_count, groups.size());
    if (is_new) groups.emplace_back();
    std::vector<CountedRequest>& list = groups[group->second];
    auto [at, first] = known.try_emplace(request.fingerprint(), group->second, list.size());
    if (first) {
      kinds.emplace_back(request, sets.ranks());
      items.emplace_back(kinds.back());
      list.push_back({&kinds.back(), &items.back(), 0});
    }
    ++list[at->second.second].times;
  }
  // For a single request, the other bounds are near the optimum and take less time.
  bool is_joint = known.size() > 1 && sets.ranks().size() <= JointCount::kMostRanks;
  JointCount joint;
  std::optional<RequestDemand> sum;
  for (const std::vector<CountedRequest>& group : groups) {
    RequestDemand demand = counted(group, sets, is_joint ? &joint : nullptr);
    // These bounds are not always greater for more requests, and each one's own holds, too.
    if (group.size() > 1)
      for (const CountedRequest& of : group) {
        RequestDemand alone = counted({of}, sets);
        demand.entry_ps = std::max(demand.entry_ps, alone.entry_ps);
        demand.holder_ps = std::max(demand.holder_ps, alone.holder_ps);
      }
    if (sum)
      add(*sum, demand);
    else
      sum = std::move(demand);
  }
  if (is_joint) sum->joint_ps = joint.bound_ps(sets.topology(), sets.ranks(), sets.reducing());
  return *std::move(sum);
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
