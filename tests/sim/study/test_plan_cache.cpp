// SPDX-License-Identifier: BSD-3-Clause
// The plan cache: what counts as a hit, what is dropped, what the statistics say.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/study/plan_cache.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

PlanKey key(std::uint64_t request, std::int32_t planner = 0, std::uint64_t topology = 0,
            std::int64_t limit = -1) {
  return {Digest{0, request}, Digest{topology, 0}, planner, limit};
}

// Counts how often it had to make a plan.
class Counted {
 public:
  explicit Counted(std::int64_t capacity) : cache_(capacity) {}
  bool hit(const PlanKey& at) {
    int before = made_;
    std::shared_ptr<const Plan> plan = cache_.get(at, [&] {
      ++made_;
      return std::make_shared<const Plan>(plan_rule(request_, {}));
    });
    CHECK(plan != nullptr);
    return made_ == before;
  }
  PlanCache& cache() { return cache_; }

 private:
  Request request_ = request_on("2", "4", "S0", "R");
  PlanCache cache_;
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
  PlanCacheStatistics statistics = cache.cache().statistics();
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

  PlanCache one(1);
  auto make = [] {
    return std::make_shared<const Plan>(plan_rule(request_on("2", "4", "S0", "R"), {}));
  };
  std::shared_ptr<const Plan> first = one.get(key(1), make);
  one.get(key(2), make);
  CHECK(first.use_count() == 1);
  CHECK(first->planner == "rule");
}

TEST_CASE("a plan that cannot be made is not kept and counts as a miss") {
  PlanCache cache(2);
  CHECK_THROWS_AS(
      cache.get(key(1), []() -> std::shared_ptr<const Plan> { throw InputError("no"); }),
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

}  // namespace reshard
