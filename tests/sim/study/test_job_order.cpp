// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose tensors have an order: every planner's plan is proved, moves every byte and does not
// beat its bound; none is faster than the same planner's plan of the stages one after the other on
// one stream, nor slower; `auto` takes one that no planner's beats.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/bounds/order_bound.h"
#include "core/traffic/workload.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/store/data_check.h"
#include "sim/study/studies.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

namespace reshard::sim::job_order_tests {

using namespace reshard::test;

namespace {

constexpr const char* kMachines[] = {"dgx-h100:2", "dgx-a100:1", "pcie-8x3090"};

// Layers in turn, or any order.
TensorOrder draw_order(Prng& prng, std::size_t tensors, bool layers) {
  TensorOrder out(tensors);
  auto count = prng.between(2, 4);
  for (std::size_t a = 1; a < tensors; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      auto layer = [&](std::size_t t) {
        return static_cast<std::int64_t>(t) * count / std::ssize(out);
      };
      if (layers ? layer(a) == layer(b) + 1 : prng.one_in(3)) out[a].push_back(id_of<TensorId>(b));
    }
  return out;
}

StudyOptions options_of(TransportKind transport) {
  StudyOptions options;
  options.transport.kind = transport;
  return options;
}

std::vector<Request> requests_of(const std::vector<Request>& job, const Stage& stage) {
  std::vector<Request> out;
  for (TensorId tensor : stage.tensors) out.push_back(job[to_index(tensor)]);
  return out;
}

// The stages as operations of one stream, which is what a trace with a line for each is.
std::int64_t line_by_line_ps(Studies& studies, const std::vector<Request>& job,
                             const Stages& stages, Carrier* carrier) {
  Workload workload;
  for (const Stage& stage : stages)
    workload.operations.push_back(
        {RunPlan{studies.of(requests_of(job, stage))->shared_plan()}, 0, {}});
  return sim::run(workload, *studies.topology(), {.carriers = {carrier, {}}}).end_ps;
}

bool on_the_same_ranks(const std::vector<Request>& job, const Stages& stages) {
  return std::all_of(stages.begin(), stages.end(), [&](const Stage& stage) {
    return ranks_of(requests_of(job, stage)) == ranks_of(job);
  });
}

bool in_a_row(const Stages& stages) {
  if (stages.empty()) return false;
  for (std::size_t s = 1; s < stages.size(); ++s)
    if (stages[s].after != std::vector<std::int32_t>{static_cast<std::int32_t>(s) - 1})
      return false;
  return true;
}

}  // namespace

TEST_CASE(
    "drawn jobs in order: proved, moved, not below the bound, auto's is not slower than any") {
  std::map<std::string, int> made;
  int rows = 0, of_nccl = 0, sharper = 0;
  for (std::uint64_t seed = 1; seed <= 240 / kOneOf; ++seed) {
    Prng prng(seed);
    auto topology = std::make_shared<const Topology>(find_topology(kMachines[prng.below(3)]));
    TransportKind transport = prng.one_in(2) ? TransportKind::Ideal : TransportKind::Nccl;
    std::vector<Request> job = draw_job(prng, topology->devices(), 9);
    Stages stages = stages_of(draw_order(prng, job.size(), prng.one_in(2)));
    CAPTURE(seed, topology->name(), text(transport), text_of(job), stages.size());
    std::map<std::string, std::int64_t> times;
    for (const PlannerRow& row : planners()) {
      Studies studies(topology, row, options_of(transport));
      std::shared_ptr<Study> study;
      try {
        study = studies.of(job, {}, stages);
      } catch (const InputError&) {
        continue;  // a tensor that this planner does not know how to plan
      }
      CAPTURE(row.name);
      CHECK(study->plan().stages == stages);
      // Throws where the time is below the bound.
      times[std::string(row.name)] = study->time_ps();
      const Bound& bound = study->bound();
      CHECK(bound.time_ps() >= bound_of(job, *topology, switches_of(transport)).time_ps());
      sharper += bound.limited_by() == LimitedBy::Order ? 1 : 0;
      CHECK(move_and_check(study->shared_plan(), {}, kMaxBytes, kMaxBytes).checked);
      // NCCL's costs are those of the communicator, which is that of all ranks of the job.
      bool alike = transport == TransportKind::Ideal || on_the_same_ranks(job, stages);
      if (!row.weighs_others && in_a_row(stages) && alike) {
        Carrier* carrier = studies.transport()->carrier();
        CHECK(study->time_ps() == line_by_line_ps(studies, job, stages, carrier));
        of_nccl += transport == TransportKind::Nccl ? 1 : 0;
        ++rows;
      }
      ++made[std::string(row.name)];
    }
    for (const auto& [planner, time_ps] : times) CHECK(times["auto"] <= time_ps);
  }
  for (const PlannerRow& row : planners()) CHECK(made[std::string(row.name)] >= 5 / kOneOf);
  CHECK(made["auto"] == 240 / kOneOf);
  CHECK(rows > 60 / kOneOf);
  CHECK(of_nccl > 20 / kOneOf);
  CHECK(sharper > 20 / kOneOf);
}

TEST_CASE("equal stages are planned once, orders are cached apart") {
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:1"));
  auto mesh = std::make_shared<const Mesh>(parse_mesh("8"));
  std::vector<Request> job(4, Request(parse_layout("64,64", "f32", mesh, "S(0)"),
                                      parse_layout("64,64", "f32", mesh, "R")));
  StudyOptions options;
  options.cache_capacity = 8;
  Studies studies(topology, find_planner("p2p"), options);
  TensorOrder order(4);
  order[2] = order[3] = {TensorId{0}, TensorId{1}};
  Stages stages = stages_of(order);
  std::shared_ptr<Study> together = studies.of(job), in_turn = studies.of(job, {}, stages);
  CHECK(together != in_turn);
  CHECK(studies.of(job) == together);
  CHECK(studies.of(job, {}, stages) == in_turn);
  CHECK(in_turn->plan().steps.size() == 2 * together->plan().steps.size());
  CHECK(in_turn->plan().steps[2].body.index() == in_turn->plan().steps[0].body.index());
  // A smaller job is planned in the same stages.
  std::vector<Request> smaller(4, shrunk(job.front(), 3));
  CHECK(studies.like(in_turn->plan(), smaller)->stages == stages);
}

TEST_CASE("the order bound is the longest path of parts") {
  // 1 GB/s into and out of each of two ranks: rank 0 gets a tensor and then sends one.
  Topology topology = find_topology("nvswitch:2");
  auto mesh = [](const char* rank) { return std::make_shared<const Mesh>(parse_mesh("1", rank)); };
  auto move = [&](const char* from, const char* to) {
    return Request(parse_layout("250000000", "f32", mesh(from), "R"),
                   parse_layout("250000000", "f32", mesh(to), "R"));
  };
  std::vector<Request> job{move("1", "0"), move("0", "1")};
  TensorOrder order(2);
  order[1] = {TensorId{0}};
  Bound at_once = bound_of(job, topology), in_turn = bound_of(job, stages_of(order), topology);
  CHECK(at_once.order_ps == 0);
  CHECK(in_turn.cut_ps == at_once.cut_ps);
  CHECK(in_turn.limited_by() == LimitedBy::Order);
  Bound alone = bound_of(job[0], topology);
  CHECK(in_turn.order_ps >= 2 * alone.cut_ps - 2 * alone.latency_ps);
  CHECK(in_turn.order_ps <= 2 * alone.cut_ps);
}

}  // namespace reshard::sim::job_order_tests
