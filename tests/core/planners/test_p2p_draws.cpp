// SPDX-License-Identifier: BSD-3-Clause
// p2p on random requests: proved, with as few bytes as the bound requires any plan to receive, one
// message per pair and phase, and a text that reads back.
#include <catch2/catch.hpp>

#include <optional>

#include "core/base/errors.h"
#include "core/bounds/bounds.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "core/traffic/accounting.h"
#include "tests/support/cases.h"
#include "tests/support/least_volume.h"
#include "tests/support/part.h"

using namespace reshard;

TEST_CASE("p2p on drawn requests receives exactly the least volume") {
  constexpr std::uint64_t kSeed = 20261121;
  test::Prng prng(kSeed);
  int planned = 0, folded = 0, crossed = 0;
  std::size_t zeroed = 0;
  for (int draw = 0; draw < 20'000 / test::kOneOf; ++draw) {
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    Plan plan = plan_p2p(*request, {});
    ProofResult proof = check_plan(plan);
    INFO("seed " << kSeed << ", draw " << draw << ": " << request->text());
    if (!proof.proved()) FAIL(proof.refutation->what);
    CHECK(count_bytes(plan).received_total == test::least_volume_bytes(*request));
    std::size_t fills = plan.steps.empty() ? 0 : kind_text(plan.steps[0]) == "fill";
    CHECK(plan.steps.size() <= 3 + fills);
    std::string written = to_text(plan);
    CHECK(to_text(parse_plan(written, "draw")) == written);
    ++planned;
    folded += request->fold().fold_count > 1;
    crossed += !request->same_mesh();
    zeroed += fills;
  }
  CHECK(planned > 5'000 / test::kOneOf);
  CHECK(folded > 500 / test::kOneOf);
  CHECK(crossed > 1'000 / test::kOneOf);
  CHECK(zeroed > 200 / test::kOneOf);
}
