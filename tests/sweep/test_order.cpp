// SPDX-License-Identifier: BSD-3-Clause
// Floating sums and products whose result depends on the order of operations: the store must follow
// the order that the plan declares, bit for bit.
#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/store/store.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/rough_data.h"
#include "tests/support/slow_store.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

TEST_CASE(
    "order: 6,000 drawn folds of rough data equal the slow store bit for bit, through every "
    "planner") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  sim::Store store({.poison = true});
  SlowStore slow;
  std::int64_t folds = 0, runs = 0, differ = 0;
  for (std::uint64_t seed = 100'000; folds < 6'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    if (!(is_floating(request->dtype()) || request->dtype() == DType::C64) ||
        request->fold().fold_count == 1)
      continue;
    ++folds;
    Shards sources = rough_sources(prng, *request), first;
    for (const PlannerRow* planner : own_planners()) {
      std::optional<Plan> plan = plan_by(*planner, *request, input);
      if (!plan) continue;
      Shards found = moved(store, *plan, sources);
      ++runs;
      if (found != moved(slow, *plan, sources))
        FAIL(fmt::format("seed {}: {} by {}", seed, request->text(), planner->name));
      if (first.empty()) first = found;
      differ += first != found;
    }
  }
  // The data must be rough enough for planners that fold in another nesting to end with other bits.
  INFO(runs << " runs, " << differ << " that differ between planners");
  CHECK(runs >= 12'000 / kOneOf);
  CHECK(differ >= 100 / kOneOf);
}

TEST_CASE("order: one collective folds in ascending rank order") {
  Topology topology = star(8);
  PlannerInput input;
  input.topology = &topology;
  sim::Store store;
  int planned = 0;
  for (const char* to : {"R", "S(0)"})
    for (const char* dtype : {"f64", "f32", "f16", "bf16", "c64"})
      for (const PlannerRow* planner : own_planners()) {
        auto mesh = std::make_shared<const Mesh>(Mesh::row_major({8}));
        Request request(parse_layout("24", dtype, mesh, "P(sum)"),
                        parse_layout("24", dtype, mesh, to));
        std::optional<Plan> plan = plan_by(*planner, request, input);
        bool collective = false;
        if (plan) for_each_collective(*plan, [&](StepId, const auto&) { collective = true; });
        if (!collective) continue;
        ++planned;
        Prng prng(9);
        Shards sources = rough_sources(prng, request), found = moved(store, *plan, sources);
        auto width = static_cast<std::size_t>(size_bytes(request.dtype()));
        for (std::int32_t p = 0; p < 8; ++p) {
          std::vector<std::byte> expected;
          for (std::int64_t index : held_elements(request.destination(), p)) {
            std::vector<std::uint64_t> operands(8);
            for (std::int32_t r = 0; r < 8; ++r)
              std::memcpy(&operands[static_cast<std::size_t>(r)],
                          sources[Rank{r}].data() + static_cast<std::size_t>(index) * width, width);
            std::uint64_t bits = folded(ReduceOp::Sum, request.dtype(), 1, operands);
            expected.resize(expected.size() + width);
            std::memcpy(expected.data() + expected.size() - width, &bits, width);
          }
          INFO(planner->name << " " << request.text() << " rank " << p);
          CHECK(found[Rank{p}] == expected);
        }
      }
  CHECK(planned >= 30);  // by rule, graph and hybrid at least
}
