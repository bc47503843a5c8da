// SPDX-License-Identifier: BSD-3-Clause
// All that is known of one plan on one topology, each fact found once: proof and bytes when the
// study is made, time, timeline and bound when they are first asked for.
//
// Whoever asks twice, the cache's next user too, gets what was found the first time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/bounds/bounds.h"
#include "core/plan/timeline.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/accounting.h"
#include "core/topology/topology.h"

namespace reshard::sim {

class Study {
 public:
  // Proves the plan (CheckFailure where it is wrong); `found` is not found again. Without a
  // topology it has no time and no bound.
  Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
        PlanFindings found = {});

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  const Topology& topology() const { return *topology_; }
  const PlanBytes& bytes() const { return bytes_; }
  // Padding received from other ranks, by step; its sum.
  const std::vector<std::int64_t>& padding_per_step() const { return proof_.padding_bytes; }
  std::int64_t padding_total() const;

  // Of the plan alone, on its topology. CheckFailure where the time is below the bound, as soon as
  // both are known: then the engine or the bound is wrong.
  std::int64_t time_ps();
  const Timeline& timeline();  // with spans and flows
  const Bound& bound();
  void set_bound(const Bound& bound);  // where it is at hand: all plans of a request share it

  const std::optional<Explanation>& explanation() const { return explanation_; }
  void set_explanation(Explanation explanation) { explanation_ = std::move(explanation); }

  // The same plan elsewhere. What the topology does not change is kept; all, where it is the same.
  Study on(std::shared_ptr<const Topology> topology) const;

 private:
  void check_time() const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const Topology> topology_;
  ProofResult proof_;
  PlanBytes bytes_;
  std::optional<PlanTiming> timing_;
  std::optional<Bound> bound_;
  std::optional<Explanation> explanation_;
};

// Time of one plan alone, with its timeline where it shall be `recorded`.
PlanTiming timed(const Plan& plan, const Topology& topology, bool recorded);

}  // namespace reshard::sim
