// SPDX-License-Identifier: BSD-3-Clause
// Studies: each fact is computed once and kept; and for the cache, what counts as a hit, what is
// dropped, and the statistics.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/traffic/workload.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "sim/study/recorded_run.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::sim {
namespace {

StudyKey key(std::uint64_t request, std::int32_t planner = 0, std::uint64_t topology = 0,
             std::int64_t limit = -1, TransportKind transport = TransportKind::Ideal) {
  MemoryLimits memory;
  if (limit >= 0) memory.limit_bytes = limit;
  return {Digest{0, request}, Digest{topology, 0}, transport, &planners()[to_index(planner)],
          memory};
}

std::shared_ptr<const Topology> machine() {
  return std::make_shared<const Topology>(default_topology(16));
}

std::shared_ptr<Study> study_of(const Request& request) {
  return std::make_shared<Study>(std::make_shared<const Plan>(plan_rule(request, {})), nullptr);
}

// Counts how often it had to make a study.
class Counted {
 public:
  explicit Counted(std::int64_t capacity) : cache_(capacity) {}
  bool hit(const StudyKey& at) {
    int before = made_;
    std::shared_ptr<Study> study = cache_.get(at, [&] {
      ++made_;
      return study_of(request_);
    });
    CHECK(study != nullptr);
    return made_ == before;
  }
  StudyCache& cache() { return cache_; }

 private:
  Request request_ = request_on("2", "4", "S0", "R");
  StudyCache cache_;
  int made_ = 0;
};

}  // namespace

TEST_CASE("a plan is found by request, planner, topology and memory limit") {
  Counted cache(8);
  CHECK_FALSE(cache.hit(key(1)));
  CHECK(cache.hit(key(1)));
  CHECK_FALSE(cache.hit(key(2)));
  CHECK_FALSE(cache.hit(key(1, 1)));
  CHECK_FALSE(cache.hit(key(1, 0, 1)));
  CHECK_FALSE(cache.hit(key(1, 0, 0, 1024)));
  CHECK(cache.hit(key(1)));
  CHECK(cache.hit(key(1, 0, 0, 1024)));
  CacheStatistics statistics = cache.cache().statistics();
  CHECK(statistics.hits == 3);
  CHECK(statistics.misses == 5);
  CHECK(statistics.size == 5);
  CHECK(statistics.capacity == 8);
}

TEST_CASE("equal requests have equal keys whatever their names") {
  Request a = request_on("2x2", "8,8", "S0,S1", "S1,S0"),
          b = request_on("a=2,b=2", "8,8", "S(0)S(1)", "S1,S0");
  CHECK(a.fingerprint() == b.fingerprint());
  CHECK(a.fingerprint() != request_on("2x2", "8,8", "S0,S1", "S1,S1").fingerprint());
}

TEST_CASE("the least recently used plan is dropped") {
  Counted cache(2);
  CHECK_FALSE(cache.hit(key(1)));
  CHECK_FALSE(cache.hit(key(2)));
  CHECK(cache.hit(key(1)));
  CHECK_FALSE(cache.hit(key(3)));  // drops 2
  CHECK(cache.hit(key(1)));
  CHECK_FALSE(cache.hit(key(2)));  // drops 3
  CHECK_FALSE(cache.hit(key(3)));
  CHECK(cache.cache().statistics().size == 2);
}

TEST_CASE("a cache of capacity 0 keeps nothing, a dropped plan lives on with its user") {
  Counted cache(0);
  CHECK_FALSE(cache.hit(key(1)));
  CHECK_FALSE(cache.hit(key(1)));
  CHECK(cache.cache().statistics().size == 0);
  CHECK(cache.cache().statistics().misses == 2);

  StudyCache one(1);
  auto make = [] { return study_of(request_on("2", "4", "S0", "R")); };
  std::shared_ptr<Study> first = one.get(key(1), make);
  one.get(key(2), make);
  CHECK(first.use_count() == 1);
  CHECK(first->plan().planner == "rule");
}

TEST_CASE("a plan that cannot be made is not kept and counts as a miss") {
  StudyCache cache(2);
  CHECK_THROWS_AS(cache.get(key(1), []() -> std::shared_ptr<Study> { throw InputError("no"); }),
                  InputError);
  CHECK(cache.statistics().misses == 1);
  CHECK(cache.statistics().size == 0);
}

TEST_CASE("clear forgets plans and keeps counts") {
  Counted cache(2);
  cache.hit(key(1));
  cache.cache().clear();
  CHECK(cache.cache().statistics().size == 0);
  CHECK_FALSE(cache.hit(key(1)));
  CHECK(cache.cache().statistics().misses == 2);
}

TEST_CASE("a study's time, timeline and bound are those of engine and bounds, found once") {
  std::shared_ptr<const Topology> topology = machine();
  Request request = request_on("4x4", "32,32", "S0,S1", "S1,S0");
  for (bool recorded : {false, true}) {
    Studies studies(topology, find_planner("auto"), {.record = {.spans = recorded}});
    std::shared_ptr<Study> study = studies.of(request);
    Carrier* carrier = studies.transport()->carrier();
    CHECK(study->transport() == TransportKind::Nccl);
    CHECK(study->time_ps() ==
          run_of(study->plan(), *topology, {}, kNoTimeLimit, carrier).timeline.end_ps);
    CHECK(study->bound().time_ps() == bound_of(request, *topology).time_ps());
    CHECK(study->bytes().peak_max == count_bytes(study->plan()).peak_max);
    Timeline again = run(workload_of(study->shared_plan()), *topology,
                         {.record_flows = true, .carriers = {carrier}});
    const Timeline& timeline = study->timeline();
    CHECK(timeline.spans == again.spans);
    CHECK(study->flows().flows == again.flows);
    CHECK(timeline.resources == again.resources);
    CHECK(&study->timeline() == &timeline);
  }
}

TEST_CASE("a request has one study per transport, and gets it again") {
  Studies studies(machine(), find_planner("p2p"), {.cache_capacity = 4});
  Request request = request_on("4x4", "32,32", "S0,S1", "S1,S0");
  std::shared_ptr<Study> ideal = studies.of(request, TransportKind::Ideal),
                         usual = studies.of(request);
  CHECK((ideal->transport() == TransportKind::Ideal && usual->transport() == TransportKind::Nccl));
  CHECK(studies.of(request, TransportKind::Ideal) == ideal);
  CHECK(studies.of(request, TransportKind::Nccl) == usual);
  CHECK((studies.cache_statistics().hits == 2 && studies.cache_statistics().misses == 2));
}

TEST_CASE("what auto counted is not counted again") {
  std::shared_ptr<const Topology> topology = machine();
  PlanFindings found;
  PlannerInput input;
  input.topology = topology.get();
  input.found = &found;
  input.plan_time = [](const Plan& plan, const Topology& on, std::int64_t limit_ps) {
    return run_of(plan, on, {}, limit_ps).timeline.end_ps;
  };
  Plan plan = plan_auto(request_on("4x4", "32,32", "S0,S1", "S1,S0"), input);
  REQUIRE(found.timing);
  CHECK(found.timing->time_ps == time_of(plan, *topology));
  REQUIRE(found.bytes);
  CHECK(found.bytes->received_per_step == count_bytes(plan).received_per_step);
}

TEST_CASE("the engine runs once for all that is recorded, and once for the time by links alone") {
  struct Facts {
    std::vector<Span> spans;
    std::vector<FlowSpan> flows;
    std::vector<PathFacts::PathSpan> path;
  };
  const Recording all{.spans = true, .path = true, .flows = true, .work = true};
  for (const std::string planner : {"auto", "packed", "p2p"})
    for (TransportKind kind : {TransportKind::Nccl, TransportKind::Ideal}) {
      CAPTURE(planner, text(kind));
      Request request =
          request_on("4x4", planner == "packed" ? "4096,4096" : "64,96", "S0,S1", "S1,S0");
      auto studies = [&](const Recording& record) {
        return Studies(machine(), find_planner(planner),
                       {.record = record, .transport = {kind, {}}});
      };
      Studies expected = studies(all), unexpected = studies({});
      std::shared_ptr<Study> one = expected.of(request), other = unexpected.of(request);
      auto asked = [](Study& study) {
        return Facts{study.timeline().spans, study.flows().flows, study.critical_path().parts};
      };
      std::int64_t before = runs_begun();
      Facts once = asked(*one);
      one->time_ps();
      one->ideal_time_ps();
      // Planners that time plans recorded this one while they timed it, streams or not.
      if (planner == "packed") CHECK(stream_count(*one->shared_plan()) > 1);
      CHECK(runs_begun() - before ==
            (planner != "p2p" ? 0 : 1) + (kind == TransportKind::Ideal ? 0 : 1));
      // What was not expected is run for, and is the same.
      before = runs_begun();
      Facts again = asked(*other);
      CHECK(runs_begun() - before == 3);
      CHECK(once.spans == again.spans);
      CHECK(once.flows == again.flows);
      CHECK(one->flows().work.size() == other->flows().work.size());
      CHECK(once.path.size() == again.path.size());
      CHECK(one->time_ps() == other->time_ps());
    }
}

TEST_CASE("a time for comparing is the study's, and leaves nothing in the cache") {
  for (const PlannerRow& planner : planners()) {
    Studies studies(machine(), planner, {.cache_capacity = 4});
    Request request = request_on("4x4", "8,16", "S0,R", "S1,S0");
    std::int64_t time = studies.unproved_time_ps(request);
    CHECK(studies.cache_statistics().misses == 0);
    CHECK(time == studies.of(request)->time_ps());
  }
}

TEST_CASE("a plan is timed no further than a limit") {
  std::shared_ptr<const Topology> topology = machine();
  Plan plan = plan_rule(request_on("4x4", "32,32", "S0,S1", "S1,S0"), {});
  std::int64_t whole = time_of(plan, *topology);
  CHECK(run_of(plan, *topology, {}, whole).timeline.end_ps == whole);
  CHECK(run_of(plan, *topology, {}, whole - 1).timeline.end_ps == whole);
  // No further than to the end of its first step.
  std::int64_t cut = run_of(plan, *topology, {}, 1).timeline.end_ps;
  CHECK((cut > 1 && cut < whole));
}

TEST_CASE("a study whose time is below its bound fails, whichever is known first") {
  Request request = request_on("4", "64", "S0", "R");
  auto plan = std::make_shared<const Plan>(plan_rule(request, {}));
  Bound above{std::int64_t{1} << 60, 0, 0};
  Study first(plan, machine()), second(plan, machine());
  first.set_bound(above);
  CHECK_THROWS_AS(first.time_ps(), CheckFailure);
  second.time_ps();
  CHECK_THROWS_AS(second.set_bound(above), CheckFailure);
}

TEST_CASE("a hit gives the same study, with the reasons where they were asked for") {
  Studies studies(machine(), find_planner("auto"), {.cache_capacity = 2, .explain = true});
  Request request = request_on("4", "64", "S0", "R");
  std::shared_ptr<Study> first = studies.of(request);
  CHECK(studies.of(request) == first);
  REQUIRE(first->explanation());
  CHECK_FALSE(first->explanation()->lines().empty());
  CHECK(studies.cache_statistics().hits == 1);
}

TEST_CASE("a study elsewhere keeps what the topology does not change") {
  Request request = request_on("4", "64", "S0", "R");
  std::shared_ptr<const Topology> topology = machine();
  Study here(std::make_shared<const Plan>(plan_rule(request, {})), topology, {},
             std::make_shared<const Carriage>(topology, TransportOptions{}));
  here.timeline();
  CHECK(&here.on(machine()).timeline() == &here.timeline());
  auto other = std::make_shared<const Topology>(find_topology("pcie-8x3090"));
  Study there = here.on(other);
  CHECK(there.transport() == TransportKind::Nccl);
  Carriage carriage(other, {});
  CHECK(there.time_ps() ==
        run_of(here.plan(), *other, {}, kNoTimeLimit, carriage.carrier()).timeline.end_ps);
  // By links alone it was another study.
  Study links(here.shared_plan(), topology);
  CHECK(links.transport() == TransportKind::Ideal);
  CHECK(links.on(topology).time_ps() == here.time_ps());
  CHECK(links.time_ps() != here.time_ps());
  CHECK(there.time_ps() != here.time_ps());
  CHECK(here.bound().time_ps() == bound_of(request, *topology).time_ps());
  CHECK(here.on(other).bound().time_ps() == bound_of(request, *other).time_ps());
  CHECK(here.on(other).ideal_time_ps() == Study(here.shared_plan(), other).time_ps());
  CHECK(&there.plan() == &here.plan());
}

TEST_CASE("a large plan can be used before it is proved, and nobody gets a wrong one unawares") {
  Request request = request_on("2x256", "12,4", "S0,R", "R,R");
  auto plan = std::make_shared<const Plan>(plan_rule(request, {}));
  auto topology = std::make_shared<const Topology>(default_topology(512));
  Study study(plan, topology, {}, nullptr, Meanwhile::Callers);
  CHECK(study.bytes().received_total == count_bytes(*plan).received_total);
  CHECK(study.time_ps() == Study(plan, topology).time_ps());
  CHECK_NOTHROW(study.require_proof());
  CHECK(study.padding_total() == 0);

  auto wrong = std::make_shared<Plan>(*plan);
  wrong->steps.clear();
  Study refuted(wrong, topology, {}, nullptr, Meanwhile::Callers);
  CHECK_NOTHROW(refuted.wait_for_proof());
  CHECK_THROWS_AS(refuted.require_proof(), CheckFailure);
  CHECK_THROWS_AS(refuted.require_proof(), CheckFailure);

  constexpr PlannerRow kIdle{
      .name = "idle", .purpose = "", .make = [](const Demand& of, const auto&) {
        return Plan({of.requests().begin(), of.requests().end()}, "idle");
      }};
  Studies studies(topology, kIdle, {.cache_capacity = 4});
  std::shared_ptr<Study> pending = studies.not_yet_proved(std::span(&request, 1), {}, {});
  CHECK_THROWS_AS(studies.of(request), CheckFailure);
  CHECK_THROWS_AS(pending->require_proof(), CheckFailure);
}

TEST_CASE("plans made ahead on all processors are those made one by one") {
  std::vector<Request> requests;
  for (const char* to : {"S1,S0", "R,S0", "R,R", "S1,S1", "S1,R", "S1,S0"})
    for (const char* shape : {"64,96", "16,20"})
      requests.push_back(request_on("4x4", shape, "S0,S1", to));
  for (const char* planner : {"auto", "packed"})
    for (bool explain : {false, true}) {
      StudyOptions options{.cache_capacity = 16, .explain = explain, .record = {.spans = true}};
      Studies in_turn(machine(), find_planner(planner), options),
          ahead(machine(), find_planner(planner), options);
      std::vector<Studies::Wanted> wanted;
      const Stages none;
      for (const Request& each : requests) wanted.push_back({std::span(&each, 1), {}, none});
      std::size_t greatest = 0;
      ahead.plan_ahead(wanted, [&](std::size_t done, std::size_t total) {
        CHECK(total == 10);  // of the 12 requests two are there twice
        greatest = std::max(greatest, done);
      });
      CHECK(greatest < 10);
      for (const Request& each : requests) {
        std::shared_ptr<Study> a = in_turn.of(each), b = ahead.of(each);
        CHECK(a->plan().steps == b->plan().steps);
        CHECK(a->plan().planner == b->plan().planner);
        CHECK(a->timeline().spans == b->timeline().spans);
        CHECK(a->explanation().has_value() == b->explanation().has_value());
      }
      CHECK(in_turn.cache_statistics().misses == ahead.cache_statistics().misses);
      CHECK(in_turn.cache_statistics().hits == ahead.cache_statistics().hits);
    }
}

TEST_CASE("plans made ahead need nothing of the caller's, and nobody has to take them") {
  std::vector<Request> requests;
  for (const char* shape : {"64,96", "16,20", "8,8", "24,4"})
    requests.push_back(request_on("4x4", shape, "S0,S1", "S1,S0"));
  for (std::size_t taken : std::vector<std::size_t>{4, 1, 0}) {
    CAPTURE(taken);
    Studies studies(machine(), find_planner("packed"), {.cache_capacity = 4});
    {
      const std::vector<Request> own = requests;
      const Stages none;
      std::vector<Studies::Wanted> wanted;
      for (const Request& each : own) wanted.push_back({std::span(&each, 1), {}, none});
      studies.plan_ahead(wanted, [](std::size_t, std::size_t) {});
    }
    for (std::size_t i = 0; i < taken; ++i)
      CHECK(studies.of(requests[i])->plan().request().text() == requests[i].text());
  }
}

TEST_CASE("what cannot be planned ahead is refused when it is asked for") {
  constexpr PlannerRow kPicky{
      .name = "picky", .purpose = "", .make = [](const Demand& of, const PlannerInput& input) {
        if (of.requests().front().shape()[0] == 12) throw InputError("not 12");
        return plan_p2p(of, input);
      }};
  Studies studies(machine(), kPicky, {.cache_capacity = 4});
  std::vector<Request> requests;
  for (const char* shape : {"4", "12", "8"}) requests.push_back(request_on("4", shape, "S0", "R"));
  std::vector<Studies::Wanted> wanted;
  const Stages none;
  for (const Request& each : requests) wanted.push_back({std::span(&each, 1), {}, none});
  CHECK_NOTHROW(studies.plan_ahead(wanted, [](std::size_t, std::size_t) {}));
  CHECK(studies.of(requests[0])->plan().planner == "p2p");
  CHECK_THROWS_WITH(studies.of(requests[1]), Catch::Contains("picky: not 12"));
  CHECK_THROWS_WITH(studies.of(requests[1]), Catch::Contains("picky: not 12"));
  CHECK(studies.of(requests[2])->plan().planner == "p2p");
}

TEST_CASE("a plan from elsewhere is proved and must fit the memory limit") {
  Request request = request_on("4", "64", "S0", "R");
  auto plan = std::make_shared<const Plan>(plan_rule(request, {}));
  std::int64_t peak = count_bytes(*plan).peak_max;
  CHECK(Studies(machine(), find_planner("auto"), {.memory = {.limit_bytes = peak}})
            .of(plan)
            ->plan()
            .planner == "rule");
  CHECK_THROWS_AS(
      Studies(machine(), find_planner("auto"), {.memory = {.limit_bytes = peak - 1}}).of(plan),
      InputError);
  auto wrong = std::make_shared<Plan>(*plan);
  wrong->steps.clear();
  CHECK_THROWS_AS(Studies(machine(), find_planner("auto")).of(wrong), CheckFailure);
}

}  // namespace reshard::sim
