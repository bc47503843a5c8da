// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/collectives/one_collective.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/moves/blocks.h"
#include "core/torch/placement_state.h"

namespace reshard {
namespace {

// What an axis needs from the collective.
enum class Need : std::uint8_t { Gather, Reduce, ReduceScatter, Exchange };

// How the axes of more than one rank change.
struct Changes {
  std::vector<int> communicating, cut, divided;  // ascending; cut: R -> shard-like, divided: R -> P
  std::vector<Need> needs;                       // of `communicating`
  bool adjacent = true;  // no axis of several ranks is between the communicating ones
};

Changes changes_of(const Request& request) {
  Changes out;
  bool left = false;
  for (int axis = 0; axis < request.source().mesh().axes(); ++axis) {
    if (request.source().mesh().axis_size(axis) == 1) continue;
    const Placement &from = request.source().placement(axis),
                    &to = request.destination().placement(axis);
    if (from == to || from.is_replicate()) {
      if (from != to) (to.is_partial() ? out.divided : out.cut).push_back(axis);
      left = !out.communicating.empty();
      continue;
    }
    if (left) out.adjacent = false;
    out.communicating.push_back(axis);
    if (from.is_partial())
      out.needs.push_back(to.is_replicate() ? Need::Reduce : Need::ReduceScatter);
    else
      out.needs.push_back(to.is_replicate() ? Need::Gather : Need::Exchange);
  }
  return out;
}

bool gathers_what_it_cuts(const Request& request, const std::vector<int>& axes) {
  for (int a : axes)
    for (int b : axes)
      if (request.source().placement(a).dim == request.destination().placement(b).dim) return true;
  return false;
}

// Whether every rank holds in `outer` all that it holds in `inner`.
bool holds_all(const Located& outer, const Located& inner) {
  for (int d = 0; d < outer.dims(); ++d) {
    if (same_cut(outer.layout(), inner.layout(), d)) continue;
    for (std::int32_t position = 0; position < outer.layout().mesh().size(); ++position)
      if (shared_size(outer.runs(d, position), inner.runs(d, position)) !=
          inner.extent(d, position))
        return false;
  }
  return true;
}

// The number of elements that the ranks at two positions share.
std::int64_t shared_elements(const Located& a, std::int32_t a_position, const Located& b,
                             std::int32_t b_position) {
  std::int64_t count = 1;
  for (int d = 0; d < a.dims() && count > 0; ++d)
    count *= shared_size(a.runs(d, a_position), b.runs(d, b_position));
  return count;
}

std::int64_t elements(const Located& a, std::int32_t position) {
  Shape shape = a.shape(position);
  return box_of(shape).empty() ? 0 : element_count(shape);
}

// Whether everything that each member needs is held, without overlap, by the members of its group.
// Shards along sharded axes are disjoint, so counting is enough. `uniform`: all members of a group
// need the same.
bool groups_hold_all(const std::vector<int>& axes, const Located& before, const Located& after,
                     bool uniform) {
  RankGroups groups(before.layout().mesh(), axes);
  if (!uniform) check_block_count(groups);
  for (std::size_t g = 0; g < groups.bases.size(); ++g)
    for (std::int32_t k = 0; k < (uniform ? 1 : groups.size()); ++k) {
      std::int32_t to = groups.position(g, k);
      std::int64_t held = 0;
      for (std::int32_t i = 0; i < groups.size(); ++i)
        held += shared_elements(before, groups.position(g, i), after, to);
      if (held != elements(after, to)) return false;
    }
  return true;
}

bool works(Need need, const std::vector<int>& axes, const Located& before, const Located& after) {
  switch (need) {
    case Need::Reduce:
      return holds_all(before, after) && holds_all(after, before);
    case Need::ReduceScatter:
      return holds_all(before, after);
    case Need::Gather:
      // Each member's shard must stay whole: then the members together hold what one of them gets,
      // which is the same for all.
      return holds_all(after, before) && groups_hold_all(axes, before, after, true);
    case Need::Exchange:
      return groups_hold_all(axes, before, after, false);
  }
  return false;
}

// Collects the transitions of one request.
class Sequence {
 public:
  Sequence(const Request& request, bool explain) : request_(request), explain_(explain) {}

  void add(const std::vector<int>& axes, const PlacementState& next, std::string_view why) {
    if (!axes.empty())
      out_.push_back({axes, next.layout_like(request_.source()),
                      explain_ ? why_text(axes, why) : std::string()});
  }
  // Ends with the destination's own placements, which can differ from those reached on axes of size
  // 1 and for shards that are equal under two names.
  std::vector<Transition> end() {
    out_.push_back({{}, request_.destination(), "every rank now holds its destination"});
    return std::move(out_);
  }

 private:
  std::string why_text(const std::vector<int>& axes, std::string_view why) const {
    std::string out = axes.size() == 1 ? "axis" : "axes";
    for (int axis : axes)
      out += fmt::format("{} {}: {} -> {}", axis == axes.front() ? "" : ",", axis,
                         text(request_.source().placement(axis)),
                         text(request_.destination().placement(axis)));
    return fmt::format("{}: {}", out, why);
  }

  const Request& request_;
  bool explain_;
  std::vector<Transition> out_;
};

void place_as_target(PlacementState& state, const std::vector<int>& axes, const Request& request) {
  for (int axis : axes) state.place(axis, request.destination().placement(axis));
}

void take_back(PlacementState& state, const std::vector<int>& axes) {
  for (int axis : axes) state.place(axis, Placement::replicate());
}

// Local steps alone, if every rank holds what it needs. Placements of sharded axes can change only
// their names.
std::optional<std::vector<Transition>> local_steps(const Request& request, const Changes& changes,
                                                   bool explain) {
  if (std::any_of(changes.needs.begin(), changes.needs.end(),
                  [](Need need) { return need != Need::Exchange; }))
    return std::nullopt;
  Located source(request.source()), destination(request.destination());
  if (!holds_all(source, destination)) return std::nullopt;
  PlacementState cut(request.destination());
  take_back(cut, changes.divided);
  Sequence sequence(request, explain);
  sequence.add(changes.cut, cut, "every rank keeps its part");
  sequence.add(changes.divided, PlacementState(request.destination()),
               "becomes Partial: the division is local");
  return sequence.end();
}

// One collective, with the cuts of the axes in `early` before it and the other cuts after it.
std::optional<std::vector<Transition>> arranged(const Request& request, const Changes& changes,
                                                std::uint32_t early_set, bool explain) {
  std::vector<int> early, late, none;
  for (std::size_t i = 0; i < changes.cut.size(); ++i)
    ((early_set >> i & 1U) != 0 ? early : late).push_back(changes.cut[i]);
  // Divisions come before a collective that only moves and after one that reduces.
  bool reduces = changes.needs[0] == Need::Reduce || changes.needs[0] == Need::ReduceScatter;
  const std::vector<int>&early_divided = reduces ? none : changes.divided,
        &late_divided = reduces ? changes.divided : none;

  Sequence sequence(request, explain);
  PlacementState before(request.source()), after(request.destination());
  // Axes are cut in the order of the destination's stacks.
  for (const std::vector<int>& stack : request.destination().stacks())
    for (int axis : stack)
      if (std::find(early.begin(), early.end(), axis) != early.end())
        before.place(axis, request.destination().placement(axis));
  sequence.add(early, before, "sharded here, before anything moves");
  place_as_target(before, early_divided, request);
  sequence.add(early_divided, before, "becomes Partial here: the division is local");

  take_back(after, late_divided);
  PlacementState cut = after;
  take_back(after, late);
  Layout held = before.layout_like(request.source()), reached = after.layout_like(request.source());
  Located located_held(held), located_reached(reached), located_end(request.destination());
  if (!holds_all(located_reached, located_end) ||
      !works(changes.needs[0], changes.communicating, located_held, located_reached))
    return std::nullopt;
  sequence.add(changes.communicating, after, "one collective does all that needs communication");
  sequence.add(late, cut, "sharded here, after the collective, which needs it whole");
  sequence.add(late_divided, PlacementState(request.destination()),
               "becomes Partial here, after the fold");
  return sequence.end();
}

// Why no arrangement is possible; empty if one may be.
std::string obstacle(const Request& request, const Changes& changes) {
  if (changes.communicating.empty())
    return "ranks need parts that others hold, but no change of placement moves them";
  if (!changes.adjacent) return "the axes that need communication are not adjacent";
  if (std::any_of(changes.needs.begin(), changes.needs.end(),
                  [&](Need need) { return need != changes.needs[0]; }))
    return "the axes that need communication need different collectives";
  if (changes.needs[0] == Need::Exchange && gathers_what_it_cuts(request, changes.communicating))
    return "a dim would be gathered and sharded at the same time";
  return {};
}

}  // namespace

OneCollective one_collective(const Request& request, bool explain) {
  if (!request.fold().zero_axes.empty())
    return {std::nullopt, "S -> P(sum) is local, and a collective with it would carry zeros"};
  Changes changes = changes_of(request);
  if (auto transitions = local_steps(request, changes, explain))
    return {std::move(transitions), "local steps are enough"};
  if (std::string why = obstacle(request, changes); !why.empty())
    return {std::nullopt, std::move(why)};
  std::vector<std::uint32_t> subsets;
  for (std::uint32_t early = 0; early < 1U << changes.cut.size(); ++early) subsets.push_back(early);
  std::stable_sort(subsets.begin(), subsets.end(), [](std::uint32_t a, std::uint32_t b) {
    return __builtin_popcount(a) > __builtin_popcount(b);
  });
  for (std::uint32_t early : subsets)
    if (auto transitions = arranged(request, changes, early, explain))
      return {std::move(transitions), "one collective is enough"};
  return {std::nullopt, "no order of local steps around one collective gives every rank its part"};
}

}  // namespace reshard
