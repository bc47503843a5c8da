// SPDX-License-Identifier: BSD-3-Clause
// Proofs that run while plans are timed: only of the very plan that is returned.
#include <catch2/catch.hpp>
#include <thread>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/study/proof_ahead.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::sim {
namespace {

// 2^14 shards: large enough.
std::vector<Request> many() {
  return std::vector<Request>(128, request_on("2x64", "128,2", "S0,R", "R,S0"));
}

Plan timed(const Demand& of, const PlannerInput& input, bool time_wrong, bool return_wrong) {
  Plan right = plan_p2p(of, input), wrong = right;
  wrong.steps.pop_back();
  input.plan_time(time_wrong ? wrong : right, *input.topology, kNoTimeLimit);
  return return_wrong ? wrong : right;
}

bool is_refuted(const PlannerRow& row) {
  auto topology = std::make_shared<const Topology>(default_topology(128));
  Studies studies(topology, row, {.cache_capacity = 4});
  try {
    studies.of(many());
    return false;
  } catch (const CheckFailure&) {
    return true;
  }
}

}  // namespace

TEST_CASE("a proof made ahead is only of exactly the plan that it was begun with") {
  const bool has_another_processor = std::thread::hardware_concurrency() > 1;
  const std::vector<Request> requests = many();
  const Plan plan = plan_p2p(Demand(requests), {});
  ProofAhead proofs;
  CHECK_FALSE(proofs.of(Plan(plan)).proof.valid());
  proofs.begin(plan);
  ProofAhead::Proved got = proofs.of(Plan(plan));
  CHECK(got.proof.valid() == has_another_processor);
  CHECK(got.plan->steps == plan.steps);
  if (got.proof.valid()) CHECK_NOTHROW(got.proof.get());

  std::vector<Plan> others(7, plan);
  others[0].steps.pop_back();
  others[1].steps.back().after.push_back(StepId{0});
  others[2].planner = "packed";
  others[3].frees_sources = true;
  others[4].stages = {{{TensorId{0}}, {}}};
  others[5].buffers.pop_back();
  others[6].tensors[TensorId{5}] = request_on("2x64", "128,2", "S0,R", "R,S1");
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(proofs.of(Plan(others[i])).proof.valid());
  }
}

TEST_CASE("small plans are not proved ahead") {
  const Plan plan = plan_p2p(Demand(std::vector<Request>{many().front()}), {});
  ProofAhead proofs;
  proofs.begin(plan);
  CHECK_FALSE(proofs.of(Plan(plan)).proof.valid());
}

TEST_CASE("a proof made ahead that fails is thrown where the plan is asked for") {
  Plan plan = plan_p2p(Demand(many()), {});
  plan.steps.pop_back();
  ProofAhead proofs;
  proofs.begin(plan);
  ProofAhead::Proved got = proofs.of(Plan(plan));
  if (got.proof.valid()) CHECK_THROWS_AS(got.proof.get(), CheckFailure);
}

TEST_CASE("whatever a planner times, the plan that it returns is the one that is proved") {
  CHECK_FALSE(
      is_refuted({.name = "right", .purpose = "", .make = [](const auto& of, const auto& in) {
                    return timed(of, in, false, false);
                  }}));
  CHECK_FALSE(
      is_refuted({.name = "mended", .purpose = "", .make = [](const auto& of, const auto& in) {
                    return timed(of, in, true, false);
                  }}));
  CHECK(is_refuted({.name = "spoiled", .purpose = "", .make = [](const auto& of, const auto& in) {
                      return timed(of, in, false, true);
                    }}));
  CHECK(is_refuted({.name = "wrong", .purpose = "", .make = [](const auto& of, const auto& in) {
                      return timed(of, in, true, true);
                    }}));
}

}  // namespace reshard::sim
