// SPDX-License-Identifier: BSD-3-Clause
// Finds the sets, in two passes over the operations. The first keeps a set open for as long as
// lines can be added to it. The second finds what comes after each. Sets of lines on different
// ranks that do not agree in what is before and after them are cut into stretches of lines on the
// same ranks, which always agree.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/grouped.h"
#include "core/base/sort_once.h"
#include "sim/trace/jobs/joined.h"

namespace reshard::sim {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::size_t kMostOpen = 64;  // sets that are looked at for every line

class Sets {
 public:
  Sets(const Trace& trace, bool across_streams)
      : trace_(trace),
        across_streams_(across_streams),
        dependents_(trace.operations.size(),
                    [&](auto put) {
                      for (std::size_t op = 0; op < trace.operations.size(); ++op)
                        for (OpId before : trace.operations[op].after) put(before, id_of<OpId>(op));
                    }),
        member_of_(trace.operations.size(), kNone),
        shared_(trace.communicators.size(), false) {
    std::map<std::int32_t, std::int32_t> stream_of;
    for (const TraceOperation& operation : trace.operations) {
      ++users_[operation.communicator];
      if (operation.communicator < 0) continue;
      auto [at, is_new] = stream_of.try_emplace(operation.communicator, operation.stream);
      // What is asynchronous is in turn on its communicator only, not on its stream.
      if (at->second != operation.stream || operation.async)
        shared_[to_index(operation.communicator)] = true;
    }
  }

  std::vector<JoinedSet> run() {
    for (std::size_t op = 0; op < trace_.operations.size(); ++op) see(id_of<OpId>(op));
    find_next();
    if (!across_streams_) merge_streams();
    std::vector<JoinedSet> out;
    for (const OpenSet& set : sets_)
      if (set.members.size() > 1) add(set, out);
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  using StreamOfRank = std::pair<std::int32_t, Rank>;  // a stream (all: 0), a rank

  using Neighbours = std::set<std::pair<Rank, OpId>>;

  struct OpenSet {
    JoinedSet members = {};
    bool open = true, one_group = true;  // the latter: all on the same ranks
    bool follows_async = false;          // directly, on some rank
    std::int32_t era = 0;                // how many lines that end every set come before
    std::vector<Rank> ranks = {};        // of all, ascending
    std::set<std::string> names = {};
    std::set<std::int32_t> communicators = {};
    // The neighbours on the stream. Nothing comes after what is asynchronous there.
    Neighbours before = {}, after = {};
  };

  StreamOfRank place(const TraceOperation& operation, Rank rank) const {
    return {across_streams_ ? 0 : operation.stream, rank};
  }

  void see(OpId op) {
    const TraceOperation& operation = trace_.operations[op];
    bool ends_all = std::holds_alternative<TraceOperator>(operation.body) ||
                    std::holds_alternative<TraceFault>(operation.body);
    if (ends_all) {
      for (std::int32_t set : open_) sets_[to_index(set)].open = false;
      open_.clear();
      ++era_;
    }
    std::vector<Rank> ranks = ranks_of(operation);
    std::sort(ranks.begin(), ranks.end());
    std::int32_t joined = kNone;
    if (std::holds_alternative<TraceRedistribute>(operation.body)) joined = join(op, ranks);
    for (std::int32_t set : touched(operation, ranks))
      if (set != joined) close(set);
    for (Rank rank : ranks) {
      last_[place(operation, rank)] = op;
      if (!operation.async) last_waited_for_[place(operation, rank)] = op;
    }
  }

  // Open sets on one of the ranks and the stream, or of the communicator.
  std::set<std::int32_t> touched(const TraceOperation& operation, const std::vector<Rank>& ranks) {
    std::set<std::int32_t> out;
    for (Rank rank : ranks) {
      auto last = last_.find(place(operation, rank));
      if (last != last_.end()) out.insert(member_of_[last->second]);
    }
    out.erase(kNone);
    std::erase_if(out, [this](std::int32_t set) { return !sets_[to_index(set)].open; });
    for (std::int32_t set : open_)
      if (operation.communicator >= 0 &&
          sets_[to_index(set)].communicators.contains(operation.communicator))
        out.insert(set);
    return out;
  }

  void close(std::int32_t set) {
    sets_[to_index(set)].open = false;
    std::erase(open_, set);
  }

  // Adds a redistribution to an open set, or opens one for it; returns the set.
  std::int32_t join(OpId op, const std::vector<Rank>& ranks) {
    std::int32_t found = kNone;
    std::set<std::int32_t> close_to = touched(trace_.operations[op], ranks);
    if (close_to.size() == 1) found = *close_to.begin();
    if (close_to.empty())  // on other ranks: the latest that it fits
      for (std::int32_t set : open_)
        if (fits(op, ranks, sets_[to_index(set)])) found = set;
    if (found == kNone || !fits(op, ranks, sets_[to_index(found)])) {
      found = static_cast<std::int32_t>(sets_.size());
      sets_.emplace_back().era = era_;
      open_.push_back(found);
      if (open_.size() > kMostOpen) close(open_.front());
    }
    OpenSet& set = sets_[to_index(found)];
    for (Rank rank : ranks) {
      auto latest = last_.find(place(trace_.operations[op], rank));
      if (latest != last_.end() && trace_.operations[latest->second].async &&
          member_of_[latest->second] != found)
        set.follows_async = true;
      auto last = last_waited_for_.find(place(trace_.operations[op], rank));
      if (last != last_waited_for_.end() && member_of_[last->second] != found)
        set.before.emplace(rank, last->second);
    }
    set.one_group = set.one_group && (set.members.empty() || set.ranks == ranks);
    std::vector<Rank> all;
    std::set_union(set.ranks.begin(), set.ranks.end(), ranks.begin(), ranks.end(),
                   std::back_inserter(all));
    set.ranks = std::move(all);
    set.members.push_back(op);
    set.communicators.insert(trace_.operations[op].communicator);
    for (std::string& name : names_of(op)) set.names.insert(std::move(name));
    member_of_[op] = found;
    return found;
  }

  std::vector<std::string> names_of(OpId op) const {
    const auto& job = std::get<TraceRedistribute>(trace_.operations[op].body);
    std::vector<std::string> out;
    for (const Request& request : *job.requests) out.push_back(request.name());
    if (out.size() == 1) out.front() = trace_.line_of(op).name;
    std::erase(out, "");
    return out;
  }

  bool fits(OpId op, const std::vector<Rank>& ranks, const OpenSet& set) const {
    if (!set.open) return false;
    const TraceOperation &own = trace_.operations[op],
                         &first = trace_.operations[set.members.front()];
    if (own.stream != first.stream || own.async != first.async ||
        own.transport != first.transport || own.after != first.after)
      return false;
    std::span<const OpId> mine = dependents_[op], theirs = dependents_[set.members.front()];
    if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end())) return false;
    for (const std::string& name : names_of(op))
      if (set.names.contains(name)) return false;
    for (Rank rank : ranks) {
      auto last = last_.find(place(own, rank));
      if (last != last_.end() && last->second > set.members.front() &&
          member_of_[last->second] != member_of_[set.members.front()])
        return false;
    }
    return fits_communicators(own.communicator, ranks, set);
  }

  bool fits_communicators(std::int32_t own, const std::vector<Rank>& ranks,
                          const OpenSet& set) const {
    bool same_one = set.communicators.size() == 1 && set.communicators.contains(own);
    if (same_one && set.one_group && ranks == set.ranks) return true;
    auto is_private = [&](std::int32_t communicator) {
      return communicator < 0 || !shared_[to_index(communicator)];
    };
    auto is_unnamed = [&](std::int32_t communicator) {
      return communicator < 0 || trace_.communicators[to_index(communicator)].name.empty();
    };
    for (std::int32_t communicator : set.communicators)
      if (!is_private(communicator) || !(same_one || is_unnamed(communicator))) return false;
    return is_private(own) && (same_one || is_unnamed(own));
  }

  void find_next() {
    std::map<StreamOfRank, std::int32_t> waiting;  // a set, until its next operation is known
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      auto op = id_of<OpId>(i);
      const std::int32_t own = member_of_[op];
      for (Rank rank : ranks_of(trace_.operations[op])) {
        std::int32_t& before =
            waiting.try_emplace(place(trace_.operations[op], rank), kNone).first->second;
        if (before != kNone && before != own) sets_[to_index(before)].after.emplace(rank, op);
        if (!trace_.operations[op].async) before = own;
      }
    }
  }

  // Whether every line has all the set's neighbours, before and after, except those that `after`
  // orders for all of them.
  bool agrees(const OpenSet& set) const {
    if (set.one_group) return true;
    OpId first = set.members.front();
    auto of = [](const Neighbours& neighbours, const std::vector<Rank>& ranks,
                 std::span<const OpId> known) {
      std::set<OpId> out;
      for (Rank rank : ranks)
        for (auto at = neighbours.lower_bound({rank, OpId{0}});
             at != neighbours.end() && at->first == rank; ++at)
          if (!std::binary_search(known.begin(), known.end(), at->second)) out.insert(at->second);
      return out.size();
    };
    auto both = [&](const std::vector<Rank>& ranks) {
      return std::pair(of(set.before, ranks, trace_.operations[first].after),
                       of(set.after, ranks, dependents_[first]));
    };
    auto all = both(set.ranks);
    return std::all_of(set.members.begin(), set.members.end(),
                       [&](OpId op) { return both(ranks_of(trace_.operations[op])) == all; });
  }

  // ---- sets on different streams

  // What sets that are merged have in common. If no communicator has a name, the last two are
  // empty.
  using Alike = std::tuple<std::int32_t, bool, std::optional<TransportKind>, std::vector<OpId>,
                           std::vector<OpId>, std::set<std::int32_t>, std::vector<Rank>>;
  Alike alike(const OpenSet& set) const {
    const TraceOperation& first = trace_.operations[set.members.front()];
    std::span<const OpId> dependents = dependents_[set.members.front()];
    bool named = std::any_of(
        set.communicators.begin(), set.communicators.end(), [&](std::int32_t communicator) {
          return communicator >= 0 && !trace_.communicators[to_index(communicator)].name.empty();
        });
    return {set.era,
            first.async,
            first.transport,
            first.after,
            {dependents.begin(), dependents.end()},
            named ? set.communicators : std::set<std::int32_t>{},
            named ? set.ranks : std::vector<Rank>{}};
  }

  // Sets that nothing but each other comes directly before or after, on streams of their own.
  void merge_streams() {
    std::map<Alike, std::vector<std::int32_t>> groups;
    for (std::size_t i = 0; i < sets_.size(); ++i)
      groups[alike(sets_[i])].push_back(static_cast<std::int32_t>(i));
    in_group_.assign(sets_.size(), false);
    for (auto& [key, group] : groups) {
      keep_apart(group);
      if (group.size() > 1) merge(group);
      for (std::int32_t set : group) in_group_[to_index(set)] = false;
    }
  }

  // Drops sets until none has a neighbour or a communicator that is not of the group alone. A set
  // with a name that an earlier one has is dropped first.
  void keep_apart(std::vector<std::int32_t>& group) {
    std::map<std::int32_t, std::vector<std::int32_t>> sets_with;  // by communicator
    std::map<std::int32_t, std::int64_t> others = users_;
    std::set<std::string> names;
    for (std::int32_t set : group) {
      const OpenSet& own = sets_[to_index(set)];
      if (std::any_of(own.names.begin(), own.names.end(),
                      [&](const std::string& name) { return names.contains(name); }))
        continue;
      names.insert(own.names.begin(), own.names.end());
      in_group_[to_index(set)] = true;
      for (std::int32_t communicator : own.communicators) sets_with[communicator].push_back(set);
      for (OpId op : own.members) --others[trace_.operations[op].communicator];
    }
    std::vector<std::int32_t> dropped;
    auto drop = [&](std::int32_t set) {
      if (!in_group_[to_index(set)]) return;
      in_group_[to_index(set)] = false;
      dropped.push_back(set);
    };
    auto drop_all_with = [&](std::int32_t communicator) {
      if (communicator < 0) return;
      for (std::int32_t set : std::exchange(sets_with[communicator], {})) drop(set);
    };
    for (const auto& [communicator, users] : others)
      if (users > 0) drop_all_with(communicator);
    for (std::int32_t set : group)
      if (in_group_[to_index(set)] && has_others(sets_[to_index(set)])) drop(set);
    while (!dropped.empty()) {
      const OpenSet& set = sets_[to_index(dropped.back())];
      dropped.pop_back();
      for (std::int32_t communicator : set.communicators) drop_all_with(communicator);
      for (const Neighbours* neighbours : {&set.before, &set.after})
        for (auto [rank, op] : *neighbours)
          if (std::int32_t next = member_of_[op];
              next >= 0 && in_group_[to_index(next)] && has_others(sets_[to_index(next)]))
            drop(next);
    }
    std::erase_if(group, [this](std::int32_t set) { return !in_group_[to_index(set)]; });
  }

  // Whether the set has a neighbour outside the group that `after` does not order.
  bool has_others(const OpenSet& set) const {
    auto any = [this](const Neighbours& neighbours, std::span<const OpId> known) {
      return std::any_of(neighbours.begin(), neighbours.end(), [&](const auto& neighbour) {
        const std::int32_t other = member_of_[neighbour.second];
        return (other < 0 || !in_group_[to_index(other)]) &&
               !std::binary_search(known.begin(), known.end(), neighbour.second);
      });
    };
    const OpId first = set.members.front();
    return set.follows_async || any(set.before, trace_.operations[first].after) ||
           any(set.after, dependents_[first]);
  }

  void merge(const std::vector<std::int32_t>& group) {
    OpenSet& into = sets_[to_index(group.front())];
    for (std::int32_t each : group) {
      OpenSet& set = sets_[to_index(each)];
      if (&set == &into) continue;
      into.members.insert(into.members.end(), set.members.begin(), set.members.end());
      set.members.clear();
    }
    sort_once(into.members);
    into.one_group = true;  // no line has neighbours
  }

  void add(const OpenSet& set, std::vector<JoinedSet>& out) const {
    if (agrees(set)) return out.push_back(set.members);
    JoinedSet stretch;
    std::vector<Rank> ranks;
    auto put = [&] {
      if (stretch.size() > 1) out.push_back(stretch);
      stretch.clear();
    };
    for (OpId op : set.members) {
      std::vector<Rank> own = ranks_of(trace_.operations[op]);
      if (own != ranks) put();
      ranks = std::move(own);
      stretch.push_back(op);
    }
    put();
  }

  const Trace& trace_;
  bool across_streams_;
  Grouped<OpId> dependents_;
  IndexVector<OpId, std::int32_t> member_of_;   // a set
  std::map<std::int32_t, std::int64_t> users_;  // by communicator: operations
  std::vector<bool> shared_;  // by communicator: it orders what no single stream does
  std::vector<OpenSet> sets_;
  std::vector<bool> in_group_;  // by set: of those that are merged next
  std::int32_t era_ = 0;
  std::vector<std::int32_t> open_;                // sets, in the order in which they were opened
  std::map<StreamOfRank, OpId> last_;             // on a stream of a rank
  std::map<StreamOfRank, OpId> last_waited_for_;  // the last that is not asynchronous
};

}  // namespace

std::vector<JoinedSet> joinable_sets(const Trace& trace, bool implicit_launch_order) {
  return Sets(trace, implicit_launch_order || trace.implicit_launch_order).run();
}

}  // namespace reshard::sim
