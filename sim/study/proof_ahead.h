// SPDX-License-Identifier: BSD-3-Clause
// Proofs of large plans that run on another processor while the plans are timed.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "core/proof/proof.h"

namespace reshard::sim {

class ProofAhead {
 public:
  // A plan and its proof, which may still run; get() throws what the proof throws.
  struct Proved {
    std::shared_ptr<const Plan> plan;
    std::shared_future<ProofResult> proof;
  };

  // Starts to prove a copy of the plan if it is large and no other proof is running.
  void begin(const Plan& plan);
  // The proof of exactly this plan, with the copy that it is of, in its place; `plan` alone if
  // there is none.
  Proved of(Plan&& plan) const;

 private:
  std::vector<Proved> begun_;  // in order
};

}  // namespace reshard::sim
