// SPDX-License-Identifier: BSD-3-Clause
// Tensors that lie alike planned as series: what is proved, counted and timed of the series' plan
// is what it is of the plan of the tensors.
#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bounds/order_bound.h"
#include "core/plan/written_out.h"
#include "core/planners/by_stage.h"
#include "core/schedule/held_memory.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/study/recorded_run.h"
#include "sim/study/studies.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

namespace reshard::sim::jobs_in_series_tests {

using namespace reshard::test;

namespace {

constexpr const char* kMachines[] = {"dgx-h100:2", "dgx-a100:1", "pcie-8x3090", "dgx-h100:5"};

// Requests that occur up to six times each, in any order; half of them of explicit boxes.
std::vector<Request> draw_layers(Prng& prng, std::int32_t devices) {
  std::vector<Request> out;
  for (std::int64_t kinds = prng.between(1, 4); kinds > 0;) {
    std::optional<Request> request =
        prng.one_in(2) ? draw_request(prng) : draw_request_with_boxes(prng, devices);
    if (!request || to_int(request->ranks().back()) >= devices) continue;
    --kinds;
    for (std::int64_t times = prng.between(1, 6); times > 0; --times) out.push_back(*request);
  }
  prng.shuffle(out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i].named(fmt::format("layers.{}", i));
  return out;
}

// Sometimes some tensors after the others.
Stages draw_stages(Prng& prng, std::size_t tensors) {
  if (tensors < 2 || prng.one_in(2)) return {};
  TensorOrder order(tensors);
  for (std::size_t t = 1; t < tensors; ++t)
    if (prng.one_in(3)) order[t] = {TensorId{0}};
  return stages_of(order);
}

struct Seen {
  int series = 0, temporaries = 0, limited = 0;
};

void check_same(const Plan& plan, const JobInSeries& job, const Topology& topology,
                const Carriage& transport, Seen& seen) {
  REQUIRE(prove(plan).proved());
  Plan flat = written_out(plan, job);
  ProofResult proof = check_plan(flat);
  INFO((proof.refutation ? proof.refutation->what : ""));
  REQUIRE(proof.proved());
  CHECK(proof.padding_bytes == prove(plan).padding_bytes);
  PlanBytes bytes = count_bytes(plan), of_flat = count_bytes(flat);
  CHECK(bytes.received_per_step == of_flat.received_per_step);
  CHECK(bytes.received_per_slot == of_flat.received_per_slot);
  CHECK(bytes.peak_per_slot == of_flat.peak_per_slot);
  CHECK(held_memory(plan) == held_memory(flat));
  CHECK(traffic_of(plan) == traffic_of(flat));
  RecordedRun run = run_of(plan, topology, {.spans = true}, kNoTimeLimit, transport.carrier()),
              flat_run = run_of(flat, topology, {.spans = true}, kNoTimeLimit, transport.carrier());
  CHECK(run.timeline.end_ps == flat_run.timeline.end_ps);
  CHECK(tensor_uses(plan, run.timeline, OpId{0}, &job.series) ==
        tensor_uses(flat, flat_run.timeline));
  CHECK(bound_of(plan.tensors, plan.stages, topology, switches_of(transport.kind())).time_ps() <=
        run.timeline.end_ps);
  CHECK(move_and_check(std::make_shared<const Plan>(flat), {}, kMaxBytes, kMaxBytes).checked);
  seen.series += plan.tensors.size() < flat.tensors.size() ? 1 : 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.role() == BufferRole::Temporary && plan.request(buffer.tensor()).tensors() > 1)
      ++seen.temporaries;
}

// The planners that plan the tensors of a job together, without weighing others' plans.
std::vector<const PlannerRow*> own_planners_of_jobs() {
  std::vector<const PlannerRow*> rows = own_planners();
  std::erase_if(rows, [](const PlannerRow* row) { return row->each_tensor; });
  return rows;
}

using SeenByPlanner = std::map<std::string_view, Seen>;

// Plans the job in series by each of these planners.
void check_job(Prng& prng, std::vector<Request> tensors,
               const std::shared_ptr<const Topology>& topology, SeenByPlanner& seen) {
  Carriage transport(topology, {prng.one_in(2) ? TransportKind::Ideal : TransportKind::Nccl, {}});
  JobInSeries job{std::move(tensors), {}, {}};
  job.stages = draw_stages(prng, job.tensors.size());
  job.series = in_series(job.tensors, job.stages);
  PlannerInput input;
  input.topology = topology.get();
  input.steps_in_turn = transport.carrier() != nullptr && transport.carrier()->in_turn();
  input.plan_time = [&](const Plan& plan, const Topology& on, std::int64_t limit) {
    return PlanTiming(run_of(plan, on, {}, limit, transport.carrier()).timeline.end_ps);
  };
  const bool is_limited = prng.one_in(3);
  for (const PlannerRow* planner : own_planners_of_jobs()) {
    CAPTURE(planner->name, topology->name(), text(transport.kind()), text_of(job.tensors));
    auto plan_in = [&](const MemoryLimits& memory) {
      PlannerInput own = input;
      own.memory = memory;
      return make_plan_by_stage(*planner, job.series.requests, job.series.stages, own);
    };
    Plan plan = plan_in({});
    Seen& of_planner = seen[planner->name];
    check_same(plan, job, *topology, transport, of_planner);
    if (!is_limited) continue;
    MemoryLimits limits{.extra_bytes = memory_needs(plan).extra_bytes * 2 / 3};
    CAPTURE(*limits.extra_bytes);
    try {
      check_same(plan_in(limits), job, *topology, transport, of_planner);
      ++of_planner.limited;
    } catch (const InputError&) {  // cannot be kept
    }
  }
}

}  // namespace

TEST_CASE("drawn jobs planned in series are what their tensors' plans are") {
  SeenByPlanner seen;
  for (std::uint64_t seed = 1; seed <= 300 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    auto topology = std::make_shared<const Topology>(find_topology(kMachines[prng.below(4)]));
    check_job(prng, draw_layers(prng, topology->devices()), topology, seen);
  }
  for (const PlannerRow* planner : own_planners_of_jobs()) {
    INFO(planner->name);
    CHECK(seen[planner->name].series > 200 / kOneOf);
    CHECK(seen[planner->name].limited > 20 / kOneOf);
  }
}

TEST_CASE("so are large ones, whose data waits at relays") {
  SeenByPlanner seen;
  for (std::uint64_t seed = 1; seed <= 30 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    auto mesh = [&](std::int64_t node) {
      std::int64_t ranks = prng.between(1, 3), first = 8 * node + prng.below(5);
      return std::make_shared<const Mesh>(
          parse_mesh(std::to_string(ranks), fmt::format("{}-{}", first, first + ranks - 1)));
    };
    MeshRef from = mesh(0), to = mesh(1);
    std::vector<Request> tensors;
    for (int kind = 0; kind < 2; ++kind) {
      std::string shape = fmt::format("{},{},{}", prng.between(1, 5), prng.between(400, 900),
                                      prng.between(64, 256));
      constexpr const char* kPlacements[] = {"R", "S(0)", "S(1)", "S(2)"};
      Request one(parse_layout(shape, "f32", from, kPlacements[prng.below(4)]),
                  parse_layout(shape, "f32", to, kPlacements[prng.below(4)]));
      for (std::int64_t i = prng.between(1, 5); i > 0; --i) tensors.push_back(one);
    }
    check_job(prng, std::move(tensors),
              std::make_shared<const Topology>(find_topology("dgx-h100:2")), seen);
  }
  CHECK(seen["packed"].temporaries > 40 / kOneOf);
}

namespace {

// Of more shards than are planned tensor by tensor: 61 tensors from 160 ranks to as many.
std::vector<Request> large_job(int first_rank) {
  auto mesh = [&](int from) {
    return std::make_shared<const Mesh>(parse_mesh("20x8", fmt::format("{}-{}", from, from + 159)));
  };
  MeshRef from = mesh(first_rank), to = mesh(first_rank + 160);
  auto request = [&](const char* shape, const char* source, const char* destination) {
    return Request(parse_layout(shape, "bf16", from, source),
                   parse_layout(shape, "bf16", to, destination));
  };
  std::vector<Request> out;
  for (int layer = 0; layer < 30; ++layer) {
    out.push_back(request("4096,512", "S(0)S(1)", "RS(0)").named(fmt::format("{}.w", layer)));
    out.push_back(request("4096", "RR", "RR").named(fmt::format("{}.norm", layer)));
  }
  out.push_back(request("32000,512", "RS(0)", "RS(0)").named("head"));
  return out;
}

}  // namespace

TEST_CASE("the facts about a large job are those about the plan of its tensors") {
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:48"));
  for (const PlannerRow& planner : planners()) {
    if (planner.each_tensor) continue;
    CAPTURE(planner.name);
    StudyOptions options;
    options.cache_capacity = 4;
    Studies studies(topology, planner, options);
    std::vector<Request> job = large_job(0);
    std::shared_ptr<Study> study = studies.of(job);
    CHECK(study->plan_in_series().tensors.size() == 3);
    REQUIRE(study->tensors().size() == 61);
    CHECK(study->plan().tensors[TensorId{59}].name() == "29.norm");
    std::shared_ptr<Study> flat = studies.of(study->shared_plan());
    CHECK(&flat->plan() == &flat->plan_in_series());
    CHECK(study->time_ps() == flat->time_ps());
    CHECK(study->bound().time_ps() == flat->bound().time_ps());
    CHECK(study->bytes().received_per_slot == flat->bytes().received_per_slot);
    CHECK(study->bytes().peak_per_slot == flat->bytes().peak_per_slot);
    CHECK(study->needs().extra_bytes == flat->needs().extra_bytes);
    CHECK(study->tensor_uses(study->timeline()) == flat->tensor_uses(flat->timeline()));
    // On other ranks that lie alike.
    std::vector<Request> later = large_job(8);
    std::shared_ptr<Study> carried = studies.of(later);
    CHECK(carried->plan_in_series().tensors.size() == 3);
    CHECK(carried->time_ps() == study->time_ps());
    CHECK(carried->plan().tensors[TensorId{59}].fingerprint() == later[59].fingerprint());
    CHECK(check_plan(carried->plan()).proved());
  }
}

TEST_CASE("sources that are freed are counted tensor by tensor, and planners of tensors see each") {
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:48"));
  StudyOptions options;
  options.memory.free_sources = true;
  CHECK(Studies(topology, find_planner("p2p"), options)
            .of(large_job(0))
            ->plan_in_series()
            .tensors.size() == 61);
  std::vector<Request> job = large_job(0);
  for (const PlannerRow& row : planners())
    CHECK(plans_only_together(row, job, {}) == !row.each_tensor);
  // Of few shards.
  std::vector<Request> few{parse_request({"8", "", "8", "8-15", "64", "", "S(0)", "R"})};
  few.push_back(few.front());
  for (const PlannerRow& row : planners()) CHECK_FALSE(plans_only_together(row, few, {}));
}

}  // namespace reshard::sim::jobs_in_series_tests
