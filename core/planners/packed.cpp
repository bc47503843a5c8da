// SPDX-License-Identifier: BSD-3-Clause
// packed: all data flows along trees that share the machine's links such that no link is busy much
// longer than it must be (core/packing). Ranks forward what others need, fold addends that meet,
// and send what many need only once between nodes. Long transfers go in chunks, so that all hops of
// a tree are busy at the same time.
//
// How many chunks: with K of them a pipeline takes about T/K longer than the time T of its busiest
// link, to fill and to drain, and every chunk adds a latency L to each hop; so about sqrt(T/L).
// That many are tried, then half or twice as many as long as that is faster; if that is slow, also
// trees of other depths and coupled stages. For small messages more packings are tried, that of
// fewest latencies among them. If every step costs a launch, all depths are tried in few steps, and
// p2p's plan. The fastest is taken. For a large job, and each stage of it, few plans are made or
// one; none if p2p's plan is near the bound or faster than the busiest link of the trees.
#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/bounds/bounds.h"
#include "core/moves/zeros.h"
#include "core/packing/stage_loads.h"
#include "core/packing/steps/pipelined_trees.h"
#include "core/plan/streams.h"
#include "core/planners/near_bound.h"
#include "core/planners/packings.h"
#include "core/planners/planner.h"
#include "core/traffic/accounting.h"

namespace reshard {
namespace {

// With more items every link has enough to do without relays: then the plan is p2p's.
constexpr std::int64_t kMaxItems = 1 << 14;
// Roots of folding trees are looked for among all ranks, with paths from each to all others: with
// more ranks that takes minutes.
constexpr std::size_t kMaxFoldingRanks = 1 << 12;
constexpr std::int32_t kMaxChunks = 128, kManyChunks = 24, kMostWaves = 64;
constexpr std::int32_t kDirect = 0;  // `chunks` of a variant with p2p's plan

constexpr Aim kUsual{200}, kFewestLatencies{10'000'000};
// For jobs of many tensors, which are long: relays only where links differ by some hundredths.
constexpr Aim kJob{1000};
// For slow pipelines, and for messages in which latency counts as much as bytes.
constexpr Aim kOtherDepths[] = {{200, 1, 3}, {1000}, {50}},
              kSmall[] = {{1000, 3}, {3000, 3}, {200, 2}, kFewestLatencies};

// The number of items of all kinds, capped at kMaxItems + 1.
std::int64_t item_count(const Demand& demand) {
  std::int64_t all = 0;
  for (const TensorKind& kind : demand.kinds()) all += kind.item_count(kMaxItems);
  return std::min(all, kMaxItems + 1);
}

class PackedPlanner {
 public:
  PackedPlanner(const Demand& demand, const PlannerInput& input)
      : demand_(demand),
        input_(input),
        commodities_(demand),
        symmetry_(commodities_, *input.topology),
        routes_(*input.topology, commodities_.ranks(), symmetry_),
        bound_ps_(std::max<std::int64_t>(
            1, bound_of(demand.requests(), *input.topology, Switches::Forward).time_ps())),
        packings_(commodities_, routes_, symmetry_, bound_ps_, !input.memory.any()) {
    for (const RankRoutes::Trunk& trunk : routes_.trunks())
      latency_ps_ = std::max(latency_ps_, trunk.latency_ps);
  }

  Plan best() {
    if (commodities_.list().empty()) {
      offer({}, 1);
      return taken();
    }
    if (std::optional<Plan> near = p2p_near_bound(demand_, input_, bound_ps_))
      return *std::move(near);
    const Packing& usual = packing(usual_aim());
    hops_ = hops_of(usual);
    std::int32_t count = chunks_for(usual);
    is_only_plan_ = is_large();
    if (is_only_plan_ && loses_to_p2p(usual)) return direct();
    offer(usual, count);
    if (!best_->fits || best_->cut) try_more_until_it_fits(usual);
    if (is_only_plan_ && best_->fits) return taken();
    is_only_plan_ = false;
    if (count < kManyChunks) try_fewer_and_more(usual, best_->chunks);
    if (is_slow()) try_other_depths_and_coupled(usual);
    // Latencies matter if they are more than a few hundredths of the whole.
    if (!best_->timing || best_->timing->time_ps < 32 * latency_ps_) try_small(usual);
    if (!best_->fits) offer(packing(kFewestLatencies), kMaxChunks);
    if (input_.steps_in_turn && best_->timing) try_fewest_steps(usual);
    return taken();
  }

 private:
  struct Variant {
    Plan plan;
    Explanation explanation;
    std::optional<MemoryNeeds> needs;  // if there are limits
    std::optional<PlanTiming> timing;  // if it fits and plan_time is set
    bool fits;                         // the limits
    std::int32_t chunks;
    std::size_t trees;
    std::int64_t packed_ps;  // busy time of the busiest resource class
    std::int32_t busiest;
    std::int32_t waves = 0;  // of exchanges; 0: as they are
    bool cut = false;        // to fit
  };

  const Packing& packing(const Aim& aim) { return packings_.of(aim, is_large()); }
  Aim usual_aim() const { return is_job() ? kJob : kUsual; }
  bool is_job() const { return demand_.tensor_count() > 1; }
  // Whether making more than one plan would take too long; and whether making many would.
  bool is_large() const {
    return demand_.ranks().size() > 256 || (is_job() && (hops_ > 1 << 14 || all_hops() > 1 << 17));
  }
  bool is_long() const { return is_job() && all_hops() > 1 << 11; }
  // About those of all jobs that are planned for one.
  Int128 all_hops() const { return Int128{hops_} * input_.jobs; }

  // The hops of all trees and their images.
  std::int64_t hops_of(const Packing& packing) const {
    std::int64_t hops = 1;
    for (const PackedTree& tree : packing.trees)
      for (const Branch& branch : tree.branches)
        hops += static_cast<std::int64_t>(branch.in.size() + branch.out.size());
    return hops * symmetry_.size();
  }

  // For at most 2^21 moves over all hops of all trees, of jobs 2^18 where time alone counts.
  std::int32_t most_chunks(const Packing& packing) const {
    std::int64_t moves = is_job() && !input_.memory.any() ? 1 << 18 : 1 << 21;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(moves / hops_of(packing), 1, kMaxChunks));
  }

  // Ranks that run few long steps in turn wait for each other. Waves that have as much to carry
  // each take fewer moves than chunks. (Within memory limits plans get waves to fit.)
  bool needs_waves(std::int32_t wanted, std::int32_t chunks) const {
    return is_only_plan_ && is_job() && input_.steps_in_turn && !input_.memory.any() &&
           wanted > 2 * chunks;
  }

  // If steps run one after the other, a chunk costs a launch, and only plan_time knows how much
  // that is: some latencies.
  std::int32_t chunks_for(const Packing& packing) const {
    constexpr std::int64_t kLaunchLatencies = 8;
    std::int64_t pipeline_ps = packing.time_ps, each_ps = latency_ps_;
    if (input_.steps_in_turn) {
      if (!is_job()) return 8;
      pipeline_ps = later_stages_ps(packing, commodities_, routes_, symmetry_);
      each_ps *= kLaunchLatencies;
    }
    // Of a long job no more than makes the other stages a fiftieth of the whole. (most_chunks
    // limits those of a large one.)
    const Int128 enough_ps = is_long() && !is_large() ? packing.time_ps / 50 : 0;
    std::int32_t count = 1;
    while (count < kMaxChunks && Int128{count} * count * each_ps < pipeline_ps &&
           Int128{count} * enough_ps < pipeline_ps)
      ++count;
    return count;
  }

  // Makes the plan and keeps it if it is the best so far; returns whether it is. A plan is not made
  // twice, as it would not be better: different aims often lead to the same trees.
  bool offer(const Packing& packing, std::int32_t wanted) {
    std::int32_t chunks = std::min(wanted, most_chunks(packing)), waves = 0;
    offered_ps_ = 0;
    for (const auto& [other, its_chunks, coupled] : tried_)
      if (its_chunks == chunks && coupled == is_coupled_ &&
          (other == &packing || other->trees == packing.trees))
        return false;
    tried_.emplace_back(&packing, chunks, is_coupled_);
    Plan plan({demand_.requests().begin(), demand_.requests().end()}, "packed");
    Explanation explanation;
    auto say = [&](StepId id, std::string why) {
      if (input_.explanation) explanation.add(id, std::move(why));
    };
    if (FillStep zeros = zeros_of(demand_); !zeros.parts.empty())
      say(plan.add_step(std::move(zeros), {}), zeros_text(demand_));
    Chunking chunking = equal_but_at_the_ends(chunks);
    chunking.waves = input_.steps_in_turn;
    chunking.all_paced = input_.memory.any();
    chunking.coupled = is_coupled_;
    chunking.joins_small = is_long() && !input_.memory.any();
    emit_trees(plan, commodities_, symmetry_, routes_, packing, chunking, say);
    if (needs_waves(wanted, chunks)) {
      waves = std::min(wanted, kMostWaves);
      plan = in_even_waves(plan, waves, nodes_of(input_));
      explanation = {};  // of other steps
    }
    return offer({std::move(plan),
                  std::move(explanation),
                  {},
                  {},
                  true,
                  chunks,
                  packing.trees.size(),
                  packing.time_ps,
                  packing.busiest,
                  waves});
  }

  bool offer(Variant own) {
    if (input_.memory.any()) {
      Fitted fitted = fit_if_possible(own.plan, input_.memory, nodes_of(input_));
      own.needs = fitted.needs;
      own.cut = fitted.changed;
      own.fits = fits(*own.needs, input_.memory);
    }
    if (input_.steps_in_turn) assign_streams(own.plan);
    if (own.fits && input_.plan_time && !is_only_plan_ && !own.timing)
      own.timing = input_.plan_time(own.plan, *input_.topology,
                                    best_ && best_->fits ? best_->timing->time_ps : kNoTimeLimit);
    offered_ps_ = own.timing ? own.timing->time_ps : 0;
    if (best_ && !better(own, *best_)) return false;
    best_ = std::move(own);
    return true;
  }

  // Whether the pipeline takes more than 1/50 and four latencies longer than its busiest link; of a
  // long job, also more than 1/33 longer than the bound.
  bool is_slow() const {
    if (!best_->timing) return false;
    const std::int64_t time_ps = best_->timing->time_ps, packed_ps = best_->packed_ps;
    return time_ps > packed_ps + packed_ps / 50 + 4 * latency_ps_ &&
           !(is_long() && time_ps <= bound_ps_ + bound_ps_ / 33);
  }

  // Relays that share links with holders can starve what these send to all ranks themselves.
  void try_other_depths_and_coupled(const Packing& usual) {
    const Packing& best = fastest_of_depths(usual);
    is_coupled_ = !input_.steps_in_turn && is_slow();
    for (const Packing* each : {&usual, &best})
      if (is_coupled_ && is_slow()) offer(*each, best_->chunks);
    is_coupled_ = false;
  }

  // Tries trees of other depths, then more chunks; of a long job only the shallower trees.
  const Packing& fastest_of_depths(const Packing& usual) {
    const Packing* best = &usual;
    for (const Aim& aim : kOtherDepths) {
      if (!is_slow()) return *best;
      if (aim == usual_aim()) continue;
      const Packing& other = packing(aim);
      if (offer(other, is_long() ? chunks_for(other) : best_->chunks)) best = &other;
      if (is_long()) return *best;
    }
    while (is_slow() && best_->chunks < most_chunks(*best))
      if (!offer(*best, 2 * best_->chunks)) break;
    return *best;
  }

  void try_small(const Packing& usual) {
    const Packing* best = &usual;
    for (const Aim& aim : kSmall) {
      const Packing& other = packing(aim);
      if (offer(other, 1)) best = &other;
    }
    for (std::int32_t chunks = 2 * best_->chunks; offer(*best, chunks);) chunks *= 2;
  }

  // For machines on which every step costs a launch, whatever its bytes.
  void try_fewest_steps(const Packing& usual) {
    try_few_chunks(usual);
    if (is_job()) return try_direct();
    // Not the deeper trees, which take more steps.
    const auto shallower = std::span<const Aim>(kOtherDepths).first(2);
    for (std::span<const Aim> aims : {shallower, std::span<const Aim>(kSmall)})
      for (const Aim& aim : aims) try_few_chunks(packing(aim));
    try_direct();
  }

  // In more chunks, plans that are a twentieth slower than the best are never much faster.
  void try_few_chunks(const Packing& packing) {
    for (std::int32_t chunks : {1, 2, 4}) {
      offer(packing, chunks);
      if (offered_ps_ / 21 > best_->timing->time_ps / 20) return;
    }
  }

  // Whether p2p's plan takes less time than the trees' busiest resource is busy. That is counted in
  // whole bytes of every granule; a thousandth covers the rounding, unless the granules are tiny.
  bool loses_to_p2p(const Packing& packing) const {
    if (!input_.p2p_ps || input_.p2p == nullptr) return false;
    Int128 granules = 0, slowest = 0;
    for (std::int32_t count : packing.granules) granules += count;
    for (const RankRoutes::ResourceClass& resources : routes_.classes())
      slowest =
          slowest == 0 ? resources.bytes_per_s : std::min(slowest, Int128{resources.bytes_per_s});
    const Int128 margin_ps = packing.time_ps / 1000;
    return granules * symmetry_.size() * kPsPerSecond < margin_ps * slowest &&
           packing.time_ps - margin_ps > *input_.p2p_ps;
  }

  Plan direct() const {
    Plan plan = *input_.p2p;
    plan.planner = "packed";
    return plan;
  }

  void try_direct() {
    if (input_.p2p_ps && input_.p2p != nullptr) {
      if (*input_.p2p_ps < best_->timing->time_ps)
        offer({direct(), {}, {}, PlanTiming(*input_.p2p_ps), true, kDirect, 0, 0, -1});
      return;
    }
    Explanation explanation;
    PlannerInput own = input_;
    own.explanation = input_.explanation != nullptr ? &explanation : nullptr;
    Plan plan = plan_p2p(demand_, own);
    plan.planner = "packed";
    offer({std::move(plan), std::move(explanation), {}, {}, true, kDirect, 0, 0, -1});
  }

  // Plans above the memory limit have no time; the best of them is the one that needs least.
  // Without plan_time the first plan is taken.
  bool better(const Variant& a, const Variant& b) const {
    if (a.fits != b.fits) return a.fits;
    if (!a.fits)
      return excess_bytes(*a.needs, input_.memory) < excess_bytes(*b.needs, input_.memory);
    return a.timing && a.timing->time_ps < b.timing->time_ps;
  }

  // Smaller chunks need less memory, and are better than steps in turn. For a large job the
  // first plan that fits is taken.
  void try_more_until_it_fits(const Packing& packing) {
    auto good = [&] { return best_->fits && (!best_->cut || is_large()); };
    for (std::int32_t chunks = best_->chunks; !good() && chunks < most_chunks(packing);)
      offer(packing, chunks *= 2);
  }

  void try_fewer_and_more(const Packing& packing, std::int32_t count) {
    bool fewer = false;
    for (std::int32_t tried = count; tried > 1;) {
      tried = (tried + 1) / 2;
      if (!offer(packing, tried)) break;
      fewer = true;
    }
    for (std::int32_t tried = count; !fewer && tried < most_chunks(packing);) {
      tried *= 2;
      if (!offer(packing, tried)) break;
    }
  }

  Plan taken() {
    explain();
    if (!best_->fits) best_->needs = fit(best_->plan, input_.memory, nodes_of(input_)).needs;
    if (input_.found != nullptr) *input_.found = {{}, best_->needs, best_->timing};
    return std::move(best_->plan);
  }

  void explain() const {
    if (input_.explanation == nullptr) return;
    if (best_->busiest >= 0)
      input_.explanation->add(fmt::format(
          "packed: {} is the bottleneck, busy for {}; {} trees with {} symmetric images each share "
          "the links, in {} chunk{}",
          routes_.classes()[to_index(best_->busiest)].name, duration_text(best_->packed_ps),
          best_->trees, symmetry_.size(), best_->chunks, best_->chunks == 1 ? "" : "s"));
    if (best_->waves > 0)
      input_.explanation->add(fmt::format("packed: in about {} equal waves", best_->waves));
    if (best_->chunks == kDirect)
      input_.explanation->add("packed: nothing is faster than the exchange of p2p");
    for (const Explanation::Line& line : best_->explanation.lines())
      if (line.step) input_.explanation->add(*line.step, line.why);
  }

  const Demand& demand_;
  const PlannerInput& input_;
  Commodities commodities_;
  Symmetry symmetry_;
  RankRoutes routes_;
  std::int64_t bound_ps_, latency_ps_ = 1;
  Packings packings_;
  std::int64_t hops_ = 0;      // of the usual packing
  bool is_only_plan_ = false;  // the first plan that fits will be taken, whatever its time
  bool is_coupled_ = false;    // Chunking::coupled of the plans that are offered next
  // Of the plan that was offered last: its time, or less if that is above the best; 0: not timed.
  std::int64_t offered_ps_ = 0;
  std::vector<std::tuple<const Packing*, std::int32_t, bool>> tried_;  // chunks, is_coupled_
  std::optional<Variant> best_;
};

}  // namespace

Plan plan_packed(const Demand& demand, const PlannerInput& input) {
  if (item_count(demand) > kMaxItems ||
      (demand.folds() && demand.ranks().size() > kMaxFoldingRanks)) {
    Plan plan = input.p2p != nullptr ? *input.p2p : plan_p2p(demand, input);
    plan.planner = "packed";
    return plan;
  }
  return PackedPlanner(demand, input).best();
}

}  // namespace reshard
