// SPDX-License-Identifier: BSD-3-Clause
// Plans within memory limits: they keep what they are asked for, the store measures what they
// declare, their bytes are right, and a limit that cannot be kept is refused with one that can.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/plan/step_order.h"
#include "core/schedule/held_memory.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"
#include "sim/study/studies.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

namespace reshard::sim::memory_limits_tests {

using namespace reshard::test;

namespace {

// A job, and how it is to be planned.
struct Asked {
  std::vector<Request> job;
  std::shared_ptr<const Topology> topology;
  TransportKind transport;
  const PlannerRow* planner;

  std::shared_ptr<Study> within(const MemoryLimits& limits) const {
    StudyOptions options;
    options.transport.kind = transport;
    options.memory = limits;
    return Studies(topology, *planner, options).of(job);
  }
};

// The bytes that an error says would do, of "expected at least N bytes".
std::int64_t least_named(const InputError& error) {
  std::string text = error.what();
  std::size_t at = text.find("at least ");
  REQUIRE(at != std::string::npos);
  return std::stoll(text.substr(at + 9));
}

struct Seen {
  int kept = 0, cut = 0, refused = 0, measured = 0;
};

void check_memory(const Plan& plan, const MemoryLimits& limits, Seen& seen) {
  std::vector<std::int64_t> held = held_memory(plan);
  StepOrder order(plan);
  Store store({.forward = false, .as_declared = true});
  PlanPatterns patterns(plan);
  std::unique_ptr<PreparedPlan> prepared = store.prepare(plan);
  patterns.fill(*prepared);
  prepared->run();
  for (std::size_t s = 0; s < held.size(); ++s) {
    auto slot = static_cast<Slot>(s);
    std::int64_t tensors = tensor_bytes(plan, slot);
    if (limits.limit_bytes) CHECK(held[s] <= *limits.limit_bytes);
    if (limits.extra_bytes) CHECK(held[s] - tensors <= *limits.extra_bytes);
    CHECK(store.peaks()[slot] <= held[s]);
    if (!plan.frees_sources || !order.in_turn(slot)) continue;
    CHECK(store.peaks()[slot] == held[s]);
    ++seen.measured;
  }
  take_all(*prepared, plan, [&](TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
    CHECK(!patterns.check(tensor, rank, bytes));
  });
}

// `limit` is the field of `limits` that counts.
void check_limit(const Asked& asked, const Plan& unlimited, MemoryLimits limits,
                 std::optional<std::int64_t> MemoryLimits::*limit, std::int64_t bytes, Seen& seen) {
  limits.*limit = bytes;
  CAPTURE(limits.limit_bytes, limits.extra_bytes, limits.free_sources);
  try {
    std::shared_ptr<Study> study = asked.within(limits);
    check_memory(study->plan(), limits, seen);
    seen.cut += study->plan().steps.size() > unlimited.steps.size() ? 1 : 0;
    ++seen.kept;
  } catch (const InputError& error) {
    limits.*limit = least_named(error);
    CAPTURE(*(limits.*limit));
    REQUIRE(*(limits.*limit) > bytes);
    check_memory(asked.within(limits)->plan(), limits, seen);
    ++seen.refused;
  }
}

}  // namespace

TEST_CASE("drawn jobs keep memory limits, or are refused with the least that works") {
  std::map<std::string_view, Seen> seen;
  for (std::uint64_t seed = 1; seed <= 120 / kOneOf; ++seed) {
    Prng prng(seed);
    auto topology = std::make_shared<const Topology>(find_topology("dgx-h100:2"));
    Asked asked{draw_job(prng, topology->devices(), 12), topology,
                prng.one_in(2) ? TransportKind::Ideal : TransportKind::Nccl, nullptr};
    MemoryLimits limits;
    limits.free_sources = prng.one_in(2);
    std::vector<const PlannerRow*> rows = planners_of_all_layouts();
    rows.push_back(&find_planner("rule"));  // plans tensor by tensor
    for (const PlannerRow* planner : rows) {
      asked.planner = planner;
      CAPTURE(seed, planner->name, text(asked.transport), text_of(asked.job));
      std::shared_ptr<Study> free;
      try {
        free = asked.within({});
      } catch (const InputError&) {
        continue;  // a tensor that the planner does not know how to plan
      }
      MemoryNeeds needs = free->needs();
      Seen& of_planner = seen[planner->name];
      check_limit(asked, free->plan(), limits, &MemoryLimits::extra_bytes,
                  prng.between(0, needs.extra_bytes), of_planner);
      check_limit(asked, free->plan(), limits, &MemoryLimits::limit_bytes,
                  prng.between(needs.bytes / 2, needs.bytes), of_planner);
    }
  }
  for (const PlannerRow* planner : planners_of_all_layouts()) {
    INFO(planner->name);
    const Seen& of_planner = seen[planner->name];
    CHECK(of_planner.kept > 60 / kOneOf);
    CHECK(of_planner.cut > 24 / kOneOf);
    CHECK(of_planner.refused > 8 / kOneOf);
    CHECK(of_planner.measured > 120 / kOneOf);
  }
}

}  // namespace reshard::sim::memory_limits_tests
