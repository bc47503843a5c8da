// SPDX-License-Identifier: BSD-3-Clause
// Jobs of several tensors: every planner's plan is proved and moves every byte, and `auto` takes
// one that no planner's plan of the job, and no plan of its tensors one by one, beats.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/plan/join.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/study/studies.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

namespace reshard::sim::jobs_tests {

using namespace reshard::test;

namespace {

constexpr const char* kMachines[] = {"dgx-h100:2", "dgx-a100:1", "pcie-8x3090", "dgx-h100:5"};

std::shared_ptr<Study> study_of(const std::vector<Request>& job, const PlannerRow& planner,
                                std::shared_ptr<const Topology> topology, TransportKind transport) {
  StudyOptions options;
  options.transport.kind = transport;
  return Studies(std::move(topology), planner, options).of(job);
}

// The best plan of every tensor alone, joined.
std::int64_t separate_ps(const std::vector<Request>& job,
                         const std::shared_ptr<const Topology>& topology, TransportKind transport) {
  StudyOptions options;
  options.transport.kind = transport;
  Studies studies(topology, find_planner("auto"), options);
  std::vector<Plan> plans;
  for (const Request& request : job) plans.push_back(studies.of(request)->plan());
  return studies.of(std::make_shared<const Plan>(join(plans)))->time_ps();
}

}  // namespace

TEST_CASE("drawn jobs: every plan moves every byte, and auto's is not slower than any") {
  std::map<std::string, int> made, faster;
  for (std::uint64_t seed = 1; seed <= 300 / kOneOf; ++seed) {
    Prng prng(seed);
    auto topology = std::make_shared<const Topology>(find_topology(kMachines[prng.below(4)]));
    TransportKind transport = prng.one_in(2) ? TransportKind::Ideal : TransportKind::Nccl;
    std::vector<Request> job = draw_job(prng, topology->devices());
    CAPTURE(seed, topology->name(), text(transport), text_of(job));
    std::int64_t of_auto = study_of(job, find_planner("auto"), topology, transport)->time_ps();
    for (const PlannerRow& row : planners()) {
      std::shared_ptr<Study> study;
      try {
        study = study_of(job, row, topology, transport);
      } catch (const InputError&) {
        continue;  // a tensor that this planner does not know how to plan
      }
      CAPTURE(row.name);
      CHECK(of_auto <= study->time_ps());
      CHECK(study->time_ps() >= study->bound().time_ps());
      CHECK(move_and_check(study->shared_plan(), {}, kMaxBytes, kMaxBytes).checked);
      ++made[std::string(row.name)];
    }
    std::int64_t separate = separate_ps(job, topology, transport);
    CHECK(of_auto <= separate);
    faster["auto"] += of_auto < separate ? 1 : 0;
  }
  for (const PlannerRow& row : planners()) CHECK(made[std::string(row.name)] >= 5 / kOneOf);
  CHECK(made["auto"] == 300 / kOneOf);
  CHECK(faster["auto"] > 120 / kOneOf);
}

TEST_CASE("a job is one message per pair of ranks, and its load is balanced over all tensors") {
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:1"));
  auto mesh = [](const char* ranks) {
    return std::make_shared<const Mesh>(
        parse_mesh(std::to_string(parse_ranks(ranks, "").size()), ranks));
  };
  std::vector<Request> job;
  // Two tensors of two replicas each,
  for (int i = 0; i < 2; ++i)
    job.emplace_back(parse_layout("64", "f32", mesh("0-1"), "R"),
                     parse_layout("64", "f32", mesh("2"), "R"));
  // and one that only rank 0 has, which counts before the choice for the others.
  job.emplace_back(parse_layout("64", "f32", mesh("0"), "R"),
                   parse_layout("64", "f32", mesh("2"), "R"));
  Plan plan = plan_p2p(Demand(job), {});
  REQUIRE(plan.steps.size() == 1);
  const auto& step = std::get<ExchangeStep>(plan.steps[0].body);
  REQUIRE(step.messages.size() == 2);
  CHECK(step.messages[0].moves.count == 2);
  CHECK(step.messages[1].moves.count == 1);
}

}  // namespace reshard::sim::jobs_tests
