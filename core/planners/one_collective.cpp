// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/one_collective.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/planners/blocks.h"
#include "core/planners/placement_state.h"

namespace reshard {
namespace {

// What an axis needs of the collective.
enum class Need : std::uint8_t { Gather, Reduce, ReduceScatter, Exchange };

// How the axes of more than one rank change.
struct Changes {
  std::vector<int> communicating, cut, divided;  // ascending; cut: R -> shard-like, divided: R -> P
  std::vector<Need> needs;                       // of `communicating`
  bool adjacent = true;                          // whether no axis of several ranks lies between the communicating ones
};

Changes changes_of(const Request& request) {
  Changes out;
  bool left = false;
  for (int axis = 0; axis < request.source().mesh().axes(); ++axis) {
    if (request.source().mesh().axis_size(axis) == 1) continue;
    const Placement &from = request.source().placement(axis), &to = request.destination().placement(axis);
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
      if (shared_size(outer.runs(d, position), inner.runs(d, position)) != inner.extent(d, position)) return false;
  }
  return true;
}

// Elements that the ranks at two positions share.
std::int64_t shared_elements(const Located& a, std::int32_t a_position, const Located& b, std::int32_t b_position) {
  std::int64_t count = 1;
  for (int d = 0; d < a.dims() && count > 0; ++d) count *= shared_size(a.runs(d, a_position), b.runs(d, b_position));
  return count;
}

std::int64_t elements(const Located& a, std::int32_t position) {
  Shape shape = a.shape(position);
  return box_of(shape).empty() ? 0 : element_count(shape);
}

// Whether all that each member needs is held, disjointly, by the members of its group. Shards along sharded axes are disjoint, so counting is enough.
bool groups_hold_all(const std::vector<int>& axes, const Located& before, const Located& after) {
  RankGroups groups(before.layout().mesh(), axes);
  for (std::size_t g = 0; g < groups.bases.size(); ++g)
    for (std::int32_t k = 0; k < groups.size(); ++k) {
      std::int32_t to = groups.position(g, k);
      std::int64_t held = 0;
      for (std::int32_t i = 0; i < groups.size(); ++i) held += shared_elements(before, groups.position(g, i), after, to);
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
      // Each member's shard must survive whole: then the members together hold what one of them gets, which is the same for all.
      return holds_all(after, before) && groups_hold_all({axes}, before, after);
    case Need::Exchange:
      return groups_hold_all(axes, before, after);
  }
  return false;
}

// One arrangement: cuts of `early` axes come before the collective, the other cuts after it.
class Arrangement {
 public:
  Arrangement(const Request& request, const Changes& changes, std::uint32_t early) : request_(request), changes_(changes) {
    for (std::size_t i = 0; i < changes.cut.size(); ++i) ((early >> i & 1U) != 0 ? early_ : late_).push_back(changes.cut[i]);
    // Divisions come before a collective that only moves and after one that reduces.
    bool reduces = !changes.needs.empty() && (changes.needs[0] == Need::Reduce || changes.needs[0] == Need::ReduceScatter);
    (reduces ? late_divided_ : early_divided_) = changes.divided;
  }

  std::optional<std::vector<Transition>> transitions(bool explain) const {
    PlacementState before(request_.source()), after(request_.destination());
    for (const std::vector<int>& stack : request_.destination().stacks())
      for (int axis : stack)
        if (std::find(early_.begin(), early_.end(), axis) != early_.end()) before.place(axis, request_.destination().placement(axis));
    for (int axis : late_) after.place(axis, Placement::replicate());

    std::vector<Transition> out;
    auto add = [&](const std::vector<int>& axes, Layout next, std::string_view why) {
      if (!axes.empty()) out.push_back({axes, std::move(next), explain ? why_text(axes, why) : std::string()});
    };
    add(early_, before.layout_like(request_.source()), "cut here, before anything moves");
    for (int axis : early_divided_) before.place(axis, request_.destination().placement(axis));
    add(early_divided_, before.layout_like(request_.source()), "made Partial here: the division is local");

    for (int axis : late_divided_) after.place(axis, Placement::replicate());
    Layout held = before.layout_like(request_.source()), reached = after.layout_like(request_.source());
    Located located_held(held), located_reached(reached), located_end(request_.destination());
    if (!holds_all(located_reached, located_end)) return std::nullopt;
    if (changes_.communicating.empty() ? !holds_all(located_held, located_reached)
                                       : !works(changes_.needs[0], changes_.communicating, located_held, located_reached))
      return std::nullopt;
    add(changes_.communicating, reached, "one collective does all that needs communication");

    for (int axis : late_) after.place(axis, request_.destination().placement(axis));
    Layout divided_late = late_divided_.empty() ? request_.destination() : cut_late();
    add(late_, std::move(divided_late), "cut here, after the collective, because the group needs it whole");
    // Whatever is left is another name for what every rank holds (axes of size 1, equal strided shards).
    out.push_back({late_divided_, request_.destination(),
                   explain && !late_divided_.empty() ? why_text(late_divided_, "made Partial after the fold") : std::string("the target's own name for it")});
    return out;
  }

 private:
  // The destination before its late divisions.
  Layout cut_late() const {
    PlacementState state(request_.destination());
    for (int axis : late_divided_) state.place(axis, Placement::replicate());
    return state.layout_like(request_.source());
  }

  std::string why_text(const std::vector<int>& axes, std::string_view why) const {
    std::string out = axes.size() == 1 ? "axis" : "axes";
    for (int axis : axes)
      out += fmt::format("{} {}: {} -> {}", axis == axes.front() ? "" : ",", axis, text(request_.source().placement(axis)),
                         text(request_.destination().placement(axis)));
    return fmt::format("{}: {}", out, why);
  }

  const Request& request_;
  const Changes& changes_;
  std::vector<int> early_, late_, early_divided_, late_divided_;
};

std::string forbids(const Request& request, const Changes& changes) {
  if (changes.communicating.empty()) return {};
  if (!changes.adjacent) return "the axes that need communication are not adjacent";
  if (std::any_of(changes.needs.begin(), changes.needs.end(), [&](Need need) { return need != changes.needs[0]; }))
    return "the axes that need communication need different collectives";
  if (changes.needs[0] == Need::Exchange && gathers_what_it_cuts(request, changes.communicating)) return "a dim would be gathered and cut at once";
  return {};
}

}  // namespace

OneCollective one_collective(const Request& request, bool explain) {
  Changes changes = changes_of(request);
  if (std::string why = forbids(request, changes); !why.empty()) return {std::nullopt, std::move(why)};
  std::vector<std::uint32_t> subsets;
  for (std::uint32_t early = 0; early < 1U << changes.cut.size(); ++early) subsets.push_back(early);
  std::stable_sort(subsets.begin(), subsets.end(), [](std::uint32_t a, std::uint32_t b) { return __builtin_popcount(a) > __builtin_popcount(b); });
  for (std::uint32_t early : subsets) {
    std::optional<std::vector<Transition>> transitions = Arrangement(request, changes, early).transitions(explain);
    if (transitions) return {std::move(transitions), changes.communicating.empty() ? "local steps are enough" : "one collective is enough"};
  }
  return {std::nullopt, changes.communicating.empty() ? "ranks need parts of shards that others hold, though no placement changes that way"
                                                      : "no order of local steps around one collective gives every rank its part"};
}

}  // namespace reshard
