// SPDX-License-Identifier: BSD-3-Clause
// What reports show about the tensors of a job: kinds by name and layout, bytes and times of small
// jobs by hand, and of drawn jobs what all of them must hold.
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"
#include "sim/study/tensors/job_facts.h"
#include "sim/study/tensors/tensor_groups.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/sim/network/networks.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using test::kOneOf;
using test::kUs;

namespace {

Request named(const std::string& name, const std::string& shape, const std::string& from,
              const std::string& to, const std::string& placed = "R") {
  auto side = [&](const std::string& ranks) {
    auto mesh = std::make_shared<const Mesh>(
        parse_mesh(std::to_string(parse_ranks(ranks, "").size()), ranks));
    return parse_layout(shape, "f32", mesh, &ranks == &from ? placed : "R");
  };
  return Request(side(from), side(to), name);
}

// "NAME: 0 2, ...".
std::string kinds_text(const std::vector<Request>& tensors) {
  std::string out;
  for (const TensorGroup& kind : tensor_kinds(pointers_to(tensors))) {
    out += (out.empty() ? "" : ", ") + kind.name + ":";
    for (std::size_t tensor : kind.tensors) out += " " + std::to_string(tensor);
  }
  return out;
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<Request> tensors;
  for (const std::string& name : names) tensors.push_back(named(name, "8", "0-1", "2-3"));
  return kinds_text(tensors);
}

JobFacts facts_of(Study& study, RequestDemand* demand = nullptr) {
  const Plan& plan = study.plan();
  CutSets sets(study.topology(), plan.ranks, switches_of(study.transport()));
  return job_facts(pointers_to(plan.tensors), tensor_uses(plan, study.timeline()), study.timeline(),
                   sets, demand);
}

// On a star of 1 GB/s and 1 us, by links alone.
std::shared_ptr<Study> study_of(const std::vector<Request>& job, const char* planner) {
  StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  return Studies(std::make_shared<const Topology>(test::switched(4, 1'000'000'000, kUs)),
                 find_planner(planner), options)
      .of(job);
}

}  // namespace

TEST_CASE("names of one kind are equal apart from numbers, and keep those that all share") {
  CHECK(names_text({"model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj", "norm",
                    "model.layers.12.mlp.up_proj"}) ==
        "model.layers.*.mlp.up_proj: 0 1 3, norm: 2");
  CHECK(names_text({"layers.0.w1", "layers.1.w1"}) == "layers.*.w1: 0 1");
  CHECK(names_text({"layers.0.w1", "layers.1.w3"}) == "layers.*.w*: 0 1");
  CHECK(names_text({"p0", "p1", "p10"}) == "p*: 0 1 2");
  CHECK(names_text({"7", "8"}) == "*: 0 1");
  CHECK(names_text({"a1b22", "a3b22"}) == "a*b22: 0 1");
  CHECK(names_text({"layers.7.w"}) == "layers.7.w: 0");
  CHECK(names_text({"", ""}) == ": 0 1");
  CHECK(names_text({"w", "w1", "w2", "*"}) == "w: 0, w*: 1 2, *: 3");
}

TEST_CASE("tensors of one kind are alike, wherever the ranks of either side begin") {
  auto kinds = [](const Request& a, const Request& b) {
    return tensor_kinds(std::vector<const Request*>{&a, &b}).size();
  };
  Request one = named("w", "8", "0-1", "4-5");
  CHECK(kinds(one, named("w", "8", "2-3", "4-5")) == 1);  // another stage
  CHECK(kinds(one, named("w", "8", "0-1", "6-7")) == 1);  // other owners
  CHECK(kinds(one, named("w", "9", "0-1", "4-5")) == 2);  // another shape
  CHECK(kinds(one, named("w", "8", "0,2", "4-5")) == 2);  // other distances
  CHECK(kinds(one, named("w", "8", "1,0", "4-5")) == 2);  // another order
  CHECK(kinds(one, named("w", "8", "0-1", "4-6")) == 2);  // more ranks
  CHECK(kinds(one, named("v", "8", "0-1", "4-5")) == 2);  // another name
  Request boxed = named("w", "8", "0-1", "4-5", "boxes(0: [0:8]; 1: [2:4])");
  CHECK(kinds(boxed, named("w", "8", "2-3", "4-5", "boxes(2: [0:8]; 3: [2:4])")) == 1);
  CHECK(kinds(boxed, named("w", "8", "2-3", "4-5", "boxes(2: [0:8]; 3: [2:5])")) == 2);
  CHECK(kinds(boxed, named("w", "8", "2-3", "4-5", "boxes(3: [0:8]; 2: [2:4])")) == 2);
  CHECK(kinds(request_on("2", "8", "R", "S(0)"), request_on("2", "8", "S(0)", "R")) == 2);
  CHECK(kinds(request_on("2", "8", "R", "S(0)"), request_on("2", "8", "R", "S(0)", "i32")) == 2);
  CHECK(kinds(request_on("2x2", "8", "RR", "S(0)R"), request_on("4", "8", "R", "S(0)")) == 2);
}

TEST_CASE("a job by hand: bytes, first and last bytes, and what each kind needs alone") {
  // From 1 us on rank 0 sends to 1 and 2 at half of its port each, and rank 1 receives from 3, too,
  // at the other half of its own: 1000 bytes to 3 us, twice 4000 to 9 us.
  std::vector<Request> job{named("layers.0.w", "1000", "0", "1"), named("b", "250", "3", "1"),
                           named("layers.1.w", "1000", "0", "2")};
  std::shared_ptr<Study> study = study_of(job, "p2p");
  REQUIRE(study->time_ps() == 9 * kUs);
  RequestDemand demand;
  JobFacts facts = facts_of(*study, &demand);

  REQUIRE(facts.kinds.size() == 2);
  const GroupFacts &weights = facts.kinds[0], &bias = facts.kinds[1];
  CHECK(weights.name == "layers.*.w");
  CHECK(weights.text == "f32[1000] R on 1 -> R on 1");
  CHECK(weights.tensors == std::vector<std::size_t>{0, 2});
  CHECK(weights.source_ranks == std::vector{Rank{0}});
  CHECK(weights.destination_ranks == std::vector{Rank{1}, Rank{2}});
  CHECK(weights.bytes == 8000);
  CHECK(weights.use == TensorUse{8000, 0, 9 * kUs});
  CHECK(weights.least_received_bytes == 8000);
  CHECK(weights.bound.time_ps() == 9 * kUs);  // out of rank 0
  CHECK(weights.bound.limited_by() == LimitedBy::Cut);
  CHECK(bias.name == "b");
  CHECK(bias.use == TensorUse{1000, 0, 3 * kUs});
  CHECK(bias.bound.time_ps() == 2 * kUs);

  REQUIRE(facts.full);
  CHECK(facts.full->kind == "port.out");
  CHECK(facts.full->fullest.name == "node0.gpu0.port.out");
  CHECK(facts.full->fullest.bytes == 8000);
  CHECK((facts.full->full == 1 && facts.full->used == 2));
  CutSets sets(study->topology(), study->plan().ranks, Switches::Forward);
  CHECK(bound_of(demand, sets).time_ps() == 9 * kUs);
  CHECK(job_text(job) == "3 tensors of 2 kinds, 8.789 KiB, ranks 0,3 -> 1-2");
  CHECK(job_text(std::span(job).first(1)) == job[0].text());
}

TEST_CASE("a tensor that a collective moves has its bytes, and one that stays has no times") {
  // Three rounds of 100 elements around the ring: 1 us and 400 ns each.
  std::vector<Request> job{request_on("4", "400", "S(0)", "R"), request_on("4", "64", "R", "R")};
  std::shared_ptr<Study> study = study_of(job, "rule");
  IndexVector<TensorId, TensorUse> uses = tensor_uses(study->plan(), study->timeline());
  CHECK(uses[TensorId{0}] == TensorUse{4800, 0, 4'200'000});
  CHECK(uses[TensorId{1}] == TensorUse{});
  CHECK(job_text(job) == "2 tensors of 2 kinds, 1.813 KiB, ranks 0-3");
}

TEST_CASE("uses add up") {
  TensorUse sum;
  sum += TensorUse{};
  CHECK(sum == TensorUse{});
  sum += TensorUse{10, 5, 7};
  sum += TensorUse{1, 6, 9};
  sum += TensorUse{};
  CHECK(sum == TensorUse{11, 5, 9});
}

TEST_CASE("drawn jobs: kinds receive what the plan does, while it runs, and need no more time") {
  int kinds = 0, timed = 0;
  for (std::uint64_t seed = 1; seed <= 80 / kOneOf; ++seed) {
    test::Prng prng(seed);
    std::vector<Request> job;
    while (std::ssize(job) < 6)
      if (std::optional<Request> request = test::draw_request(prng))
        job.push_back(job.empty() || !prng.one_in(3) ? *request : job.back());
    StudyOptions options;
    options.transport.kind = prng.one_in(2) ? TransportKind::Ideal : TransportKind::Nccl;
    const char* planner = prng.one_in(2) ? "p2p" : "auto";
    std::shared_ptr<Study> study =
        Studies(std::make_shared<const Topology>(find_topology("dgx-h100:5")),
                find_planner(planner), options)
            .of(job);
    CAPTURE(seed, planner, text_of(job));
    JobFacts facts = facts_of(*study);
    std::int64_t received = 0, tensors = 0;
    for (const GroupFacts& kind : facts.kinds) {
      received += kind.use.received_bytes;
      tensors += std::ssize(kind.tensors);
      CHECK(kind.use.received_bytes >= kind.least_received_bytes);
      CHECK(kind.bound.time_ps() <= study->time_ps());
      CHECK(kind.use.first_ps.has_value() == (kind.use.received_bytes > 0));
      if (!kind.use.first_ps) continue;
      CHECK(0 <= *kind.use.first_ps);
      CHECK(*kind.use.first_ps <= *kind.use.last_ps);
      CHECK(*kind.use.last_ps <= study->time_ps());
      CHECK(kind.bound.time_ps() <= *kind.use.last_ps);
      ++timed;
    }
    CHECK(received == study->bytes().received_total);
    CHECK(tensors == 6);
    kinds += static_cast<int>(facts.kinds.size());
  }
  CHECK((kinds > 200 / kOneOf && timed > 100 / kOneOf));
}
