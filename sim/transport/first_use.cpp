// SPDX-License-Identifier: BSD-3-Clause
// What one plan alone creates and connects when it is first used.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/plan/plan.h"
#include "core/traffic/transfers.h"
#include "sim/transport/communicators.h"

namespace reshard::sim {
namespace {

// Collects, by rank, the time spent and the numbers of communicators and peers.
class FirstUse {
 public:
  FirstUse(const Plan& plan, CommunicatorPolicy policy, const SetupCosts& costs)
      : plan_(plan), costs_(costs), at_start_(makes_parent_at_start(policy)) {
    use_.policy = policy;
  }

  CommunicatorUse run() {
    std::vector<std::optional<StepTraffic>> sent;
    std::set<std::int32_t> with_parent;  // streams
    if (at_start_) with_parent.insert(0);
    for (const Step& step : plan_.steps) {
      sent.push_back(step_traffic(plan_, step));
      if (sent.back() && is_whole(*sent.back())) with_parent.insert(step.stream);
    }
    for (std::int32_t stream : with_parent) make_parent(stream);
    for (std::size_t s = 0; s < sent.size(); ++s)
      if (sent[s] && !sent[s]->kind)
        connect(*sent[s], plan_.steps[s].stream);
      else if (sent[s] && !is_whole(*sent[s]))
        make_groups(*sent[s], plan_.steps[s].stream);
    for (const auto& [rank, spent] : by_rank_) {
      use_.making_ps = std::max(use_.making_ps, spent.making_ps);
      use_.connecting_ps = std::max(use_.connecting_ps, spent.peers * costs_.connect_ps);
      use_.bytes = std::max(
          use_.bytes, spent.communicators * costs_.memory_bytes + spent.peers * costs_.peer_bytes);
    }
    return use_;
  }

 private:
  struct Spent {
    std::int64_t making_ps = 0, communicators = 0, peers = 0;
  };

  // Whether the step uses the communicator of all ranks.
  bool is_whole(const StepTraffic& step) const {
    return !step.kind || to_index(step.group_size) == plan_.ranks.size();
  }

  void make(std::span<const Rank> ranks, std::int64_t taken_ps) {
    ++use_.created;
    for (Rank rank : ranks) {
      by_rank_[rank].making_ps += taken_ps;
      ++by_rank_[rank].communicators;
    }
  }

  // Those of further streams are split off the first, where that is made at the start.
  void make_parent(std::int32_t stream) {
    bool split = at_start_ && stream != 0;
    make(plan_.ranks, split ? costs_.split_ps : costs_.making_ps(plan_.ranks.size()));
  }

  // Groups of one step have no rank in common, so one call of all ranks splits all of them off.
  void make_groups(const StepTraffic& step, std::int32_t stream) {
    std::vector<Rank> ranks;
    for (Slot slot : step.slots) ranks.push_back(plan_.rank_of(slot));
    bool split = false;
    for (std::size_t first = 0; first < ranks.size(); first += to_index(step.group_size)) {
      std::vector<Rank> group(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                              ranks.begin() + static_cast<std::ptrdiff_t>(first) + step.group_size);
      std::sort(group.begin(), group.end());
      if (!groups_.emplace(stream, group).second) continue;
      make(group, at_start_ ? 0 : costs_.making_ps(group.size()));
      split = at_start_;
    }
    if (split)
      for (Rank rank : plan_.ranks) by_rank_[rank].making_ps += costs_.split_ps;
  }

  void connect(const StepTraffic& step, std::int32_t stream) {
    for (const Flow& flow : step.flows) {
      std::pair<Rank, Rank> pair =
          std::minmax(plan_.rank_of(step.slots[to_index(flow.source)]),
                      plan_.rank_of(step.slots[to_index(flow.destination)]));
      if (!pairs_.emplace(stream, pair).second) continue;
      ++use_.connected;
      ++by_rank_[pair.first].peers;
      ++by_rank_[pair.second].peers;
    }
  }

  const Plan& plan_;
  const SetupCosts& costs_;
  bool at_start_;
  CommunicatorUse use_;
  std::map<Rank, Spent> by_rank_;
  // By stream, as each has its own.
  std::set<std::pair<std::int32_t, std::vector<Rank>>> groups_;
  std::set<std::pair<std::int32_t, std::pair<Rank, Rank>>> pairs_;
};

}  // namespace

CommunicatorUse first_use_of(const Plan& plan, CommunicatorPolicy policy, const SetupCosts& costs) {
  return FirstUse(plan, policy, costs).run();
}

}  // namespace reshard::sim
