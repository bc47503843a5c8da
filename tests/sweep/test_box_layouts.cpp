// SPDX-License-Identifier: BSD-3-Clause
// Layouts that are no products of pieces, through every planner that takes them.
#include <catch2/catch.hpp>

#include "core/bounds/bounds.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "core/traffic/accounting.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"
#include "tests/support/least_volume.h"
#include "tests/support/part.h"
#include "tests/sweep/sweep_run.h"

using namespace reshard;
using namespace reshard::test;

TEST_CASE("drawn boxes: every planner that takes them, proved, moved and compared") {
  std::vector<std::string_view> names;
  for (const PlannerRow& row : planners()) names.push_back(row.name);
  Sweep sweep(names);
  Prng prng(20261126);
  std::int64_t pairs = 6000 / kOneOf;
  for (std::int64_t i = 0; i < pairs; ++i) {
    DrawnPair pair = draw_pair_with_boxes(prng, kDrawnRanks);
    sweep.run(SmallLayout(pair.source), SmallLayout(pair.destination));
  }
  INFO(text(sweep.counts()));
  CHECK(sweep.failures() == "");
  std::int64_t requests = pairs - sweep.counts().forbidden, refusing = 0;
  for (const PlannerRow& row : planners()) refusing += row.needs_placements;
  CHECK(requests > pairs / 2);
  CHECK(sweep.counts().refused == requests * refusing);
  CHECK(sweep.counts().runs == requests * (std::ssize(names) - refusing));
}

TEST_CASE("p2p on drawn boxes receives the least volume, and its plan is written and read") {
  Prng prng(7);
  int planned = 0, folded = 0;
  for (int draw = 0; draw < 3000 / kOneOf; ++draw) {
    std::optional<Request> request = draw_request_with_boxes(prng);
    if (!request) continue;
    CAPTURE(draw, request->text());
    Plan plan = plan_p2p(*request, {});
    CHECK(count_bytes(plan).received_total == least_volume_bytes(*request));
    std::string written = to_text(plan);
    CHECK(to_text(parse_plan(written, "draw")) == written);
    ++planned;
    folded += request->fold().fold_count > 1;
  }
  CHECK(planned > 1500 / kOneOf);
  CHECK(folded > 100 / kOneOf);
}

TEST_CASE("no plan of drawn boxes is faster than its bound") {
  sim::StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  sim::Studies studies(std::make_shared<const Topology>(sim::find_topology("dgx-h100:2")),
                       find_planner("auto"), options);
  Prng prng(11);
  int compared = 0;
  for (int draw = 0; draw < 600 / kOneOf; ++draw) {
    std::optional<Request> request = draw_request_with_boxes(prng, 16);
    if (!request) continue;
    CAPTURE(draw, request->text());
    std::shared_ptr<sim::Study> study = studies.of(*request);
    CHECK(study->time_ps() >= study->bound().time_ps());
    compared += study->bound().time_ps() > 0;
  }
  CHECK(compared > 200 / kOneOf);
}
