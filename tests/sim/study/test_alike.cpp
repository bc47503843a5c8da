// SPDX-License-Identifier: BSD-3-Clause
// Jobs on other ranks that lie in the same way are planned once; those that only look alike are
// not. Either way the plan and its time are those that the job has when it is planned by itself.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/demand/likeness.h"
#include "core/plan/join.h"
#include "core/text/plan_text.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/study/studies.h"
#include "tests/support/any_planner.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;
using namespace reshard::sim;

namespace {

// Every second rank's columns, as boxes that name the ranks.
std::string boxes_on(const std::vector<Rank>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    out += fmt::format("{}{}: [:,{}:{}]", out.empty() ? "boxes(" : "; ", to_int(ranks[i]),
                       i / 2 * 4, i / 2 * 4 + 7);
  return out + ")";
}

Request between(const std::vector<Rank>& from, const std::vector<Rank>& to,
                const std::string& shape = "64,96", const std::string& placed = "S(0)",
                const std::string& wanted = "S(1)") {
  auto on = [](const std::vector<Rank>& ranks) {
    return std::make_shared<const Mesh>(std::vector{static_cast<std::int32_t>(ranks.size())},
                                        ranks);
  };
  return Request(parse_layout(shape, "f32", on(from), placed),
                 parse_layout(shape, "f32", on(to), wanted == "boxes" ? boxes_on(to) : wanted));
}

std::vector<Rank> ranks_from(std::int32_t first, std::int32_t count) {
  std::vector<Rank> out;
  for (std::int32_t i = 0; i < count; ++i) out.push_back(Rank{first + i});
  return out;
}

StudyOptions options_of(TransportKind transport) {
  StudyOptions options;
  options.cache_capacity = 16;
  options.transport.kind = transport;
  return options;
}

// A job of tensors that move from one set of ranks to another.
std::vector<Request> drawn_job(std::uint64_t seed, const std::vector<Rank>& from,
                               const std::vector<Rank>& to, bool takes_boxes) {
  Prng prng(seed);
  const std::vector<std::string> shapes{"64,96", "1024,33", "7,4096", "2048,2048"},
      placements{"S(0)", "S(1)", "R"};
  std::vector<Request> out;
  for (std::int64_t t = prng.between(1, 4); t > 0; --t)
    out.push_back(between(from, to, prng.pick(shapes), prng.pick(placements),
                          takes_boxes && prng.one_in(2) ? "boxes" : prng.pick(placements)));
  return out;
}

// How often a second job was alike, of so many.
struct Seen {
  int alike = 0, all = 0;
};

// Plans `first` and then `second` with one cache, and `second` alone.
void compare(Seen& seen, const std::shared_ptr<const Topology>& topology, const PlannerRow& planner,
             TransportKind transport, const std::vector<Request>& first,
             const std::vector<Request>& second) {
  Studies both(topology, planner, options_of(transport)),
      fresh(topology, planner, options_of(transport));
  std::shared_ptr<Study> before = both.of(first);
  bool alike = likeness_of(first, {}, *topology) == likeness_of(second, {}, *topology);
  std::int64_t runs = runs_begun();
  std::shared_ptr<Study> carried = both.of(second);
  if (alike) CHECK(runs_begun() == runs);
  std::shared_ptr<Study> own = fresh.of(second);
  REQUIRE(to_text(carried->plan()) == to_text(own->plan()));
  CHECK(carried->time_ps() == own->time_ps());
  CHECK(carried->needs().bytes == own->needs().bytes);
  CHECK(carried->bytes().received_per_slot == own->bytes().received_per_slot);
  CHECK(carried->bound().time_ps() == own->bound().time_ps());
  if (alike) CHECK(before->time_ps() == carried->time_ps());
  seen.alike += alike ? 1 : 0;
  ++seen.all;
}

}  // namespace

TEST_CASE("drawn jobs after others that lie alike, or not: plans and times are their own") {
  Seen moved, shifted;
  for (std::uint64_t seed = 1; seed <= 120 / kOneOf; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    auto topology = std::make_shared<const Topology>(
        find_topology(prng.pick(std::vector<std::string>{"dgx-h100:6", "dgx-v100:6"})));
    const PlannerRow& planner =
        planners()[to_index(prng.below(static_cast<std::int64_t>(planners().size())))];
    TransportKind transport = prng.one_in(2) ? TransportKind::Nccl : TransportKind::Ideal;
    CAPTURE(planner.name, topology->name());
    // Ranks of nodes 0 to 2, and the same devices of three other nodes in the same order.
    std::vector<std::int32_t> devices(24), nodes(6);
    std::iota(devices.begin(), devices.end(), 0);
    std::iota(nodes.begin(), nodes.end(), 0);
    prng.shuffle(devices);
    prng.shuffle(nodes);
    std::sort(nodes.begin(), nodes.begin() + 3);
    auto size = static_cast<std::size_t>(prng.between(2, 6));
    auto ranks = [&](std::size_t first, auto&& rank_of) {
      std::vector<Rank> out;
      for (std::size_t i = first; i < first + size; ++i) out.push_back(Rank{rank_of(devices[i])});
      return out;
    };
    bool one_mesh = planner.each_tensor || prng.one_in(4);
    auto job = [&](auto&& rank_of) {
      return drawn_job(seed, ranks(0, rank_of), ranks(one_mesh ? 0 : size, rank_of),
                       !planner.needs_placements);
    };
    auto same = [](std::int32_t device) { return device; };
    auto on_nodes = [&](std::int32_t device) {
      return 8 * nodes[static_cast<std::size_t>(device / 8)] + device % 8;
    };
    auto by_some = [by = static_cast<std::int32_t>(prng.between(1, 23))](std::int32_t device) {
      return device + by;
    };
    compare(moved, topology, planner, transport, job(same), job(on_nodes));
    compare(shifted, topology, planner, transport, job(same), job(by_some));
  }
  CHECK(moved.alike == moved.all);
  CHECK(shifted.alike < shifted.all / 2);
  CHECK(shifted.all == 120 / kOneOf);
}

TEST_CASE("what makes jobs alike: devices, nodes, order of ranks, requests and stages") {
  Topology topology = find_topology("dgx-h100:4");
  auto likeness = [&](const std::vector<Request>& job, const Stages& stages = {}) {
    return likeness_of(job, stages, topology);
  };
  const std::vector<Request> job{between(ranks_from(0, 8), ranks_from(16, 8))};
  CHECK(likeness({between(ranks_from(8, 8), ranks_from(24, 8))}) == likeness(job));
  CHECK(likeness({between(ranks_from(0, 8), ranks_from(8, 8))}) == likeness(job));
  // Half a node on, the same ranks lie on three nodes; and 4 of them on other devices.
  CHECK(likeness({between(ranks_from(4, 8), ranks_from(20, 8))}) != likeness(job));
  CHECK(likeness({between(ranks_from(0, 4), ranks_from(8, 4))}) !=
        likeness({between(ranks_from(4, 4), ranks_from(12, 4))}));
  CHECK(likeness({between(ranks_from(0, 4), ranks_from(4, 4))}) !=
        likeness({between(ranks_from(0, 4), ranks_from(12, 4))}));
  // Sources after destinations, another order of ranks, another tensor, one more.
  CHECK(likeness({between(ranks_from(16, 8), ranks_from(0, 8))}) != likeness(job));
  std::vector<Rank> turned = ranks_from(0, 8);
  std::swap(turned[0], turned[1]);
  CHECK(likeness({between(turned, ranks_from(16, 8))}) != likeness(job));
  CHECK(likeness({between(ranks_from(0, 8), ranks_from(16, 8), "64,97")}) != likeness(job));
  CHECK(likeness({between(ranks_from(0, 8), ranks_from(16, 8), "64,96", "S(1)")}) != likeness(job));
  std::vector<Request> two{job[0], job[0]};
  CHECK(likeness(two) != likeness(job));
  TensorOrder order(2);
  order[1] = {TensorId{0}};
  CHECK(likeness(two, stages_of(order)) != likeness(two));
}

TEST_CASE("stages of a job that lie alike are planned once, and as each would be alone") {
  // Stages from node 0, 1 and 2 to node 5 lie alike; one from the middle of two nodes does not, and
  // neither does one to its own node.
  auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:6"));
  struct Ends {
    std::vector<Rank> from, to;
  };
  const Ends ends[] = {{ranks_from(0, 8), ranks_from(40, 8)},
                       {ranks_from(8, 8), ranks_from(40, 8)},
                       {ranks_from(20, 8), ranks_from(40, 8)},
                       {ranks_from(16, 8), ranks_from(40, 8)},
                       {ranks_from(40, 8), ranks_from(40, 8)}};
  std::vector<Request> job;
  TensorOrder order;
  for (const Ends& of : ends)
    for (const char* shape : {"512,4096", "4096,512"}) {
      order.emplace_back();
      if (job.size() >= 2)
        for (std::size_t before :
             {job.size() - 2 - job.size() % 2, job.size() - 1 - job.size() % 2})
          order.back().push_back(id_of<TensorId>(before));
      job.push_back(between(of.from, of.to, shape));
    }
  const Stages stages = stages_of(order);
  REQUIRE(stages.size() == 5);
  for (const PlannerRow* planner : planners_of_all_layouts()) {
    CAPTURE(planner->name);
    Studies studies(topology, *planner, options_of(TransportKind::Nccl));
    std::shared_ptr<Study> together = studies.of(job, {}, stages);
    CHECK(together->time_ps() >= together->bound().time_ps());
    if (planner->weighs_others) continue;
    // Each stage by itself, without a cache, then joined.
    std::vector<std::shared_ptr<const Plan>> kept;
    std::vector<const Plan*> plans;
    for (const Stage& stage : stages) {
      std::vector<Request> own;
      for (TensorId tensor : stage.tensors) own.push_back(job[to_index(tensor)]);
      Studies alone(topology, *planner, options_of(TransportKind::Nccl));
      kept.push_back(alone.of(own)->shared_plan());
      plans.push_back(kept.back().get());
    }
    const std::string name(planner->name);
    CHECK(to_text(together->plan()) == to_text(join_stages(job, stages, plans, name)));
  }
}
