// SPDX-License-Identifier: BSD-3-Clause
// The ranks that take part in a step, whether they are many or few of all ranks.
#include <catch2/catch.hpp>

#include <set>

#include "core/plan/plan.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

TEST_CASE("slots of a step ascend, each once") {
  int few = 0, many = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Prng prng(seed);
    std::int64_t ranks = 1 + prng.below(400), messages = prng.below(60);
    Step step;
    ExchangeStep exchange{{}, MoveList(1)};
    std::set<Slot> expected;
    for (std::int64_t i = 0; i < messages; ++i) {
      auto from = static_cast<Slot>(prng.below(ranks)), to = static_cast<Slot>(prng.below(ranks));
      exchange.messages.push_back({from, to, {0, 0}});
      expected.insert({from, to});
    }
    step.body = std::move(exchange);
    CHECK(slots_of(step) == std::vector<Slot>(expected.begin(), expected.end()));
    (messages * 16 < ranks ? few : many) += 1;
  }
  CHECK(few > 50);
  CHECK(many > 50);
}
