// SPDX-License-Identifier: BSD-3-Clause
// Plans run through the C API, with one thread per rank or with one call for all ranks, give the
// store's bits.
#include <catch2/catch.hpp>

#include "tests/capi/capi_executor.h"
#include "tests/conformance/conformance.h"
#include "tests/support/part.h"

using namespace reshard::test;

TEST_CASE("drawn requests through the C API give the bits of the store") {
  CapiExecutor executor;
  ConformanceReport report =
      check_conformance(executor, {.world = 8, .draws = 3'000 / kOneOf, .seed = 77});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.requests == 3'000 / kOneOf);
  CHECK(report.runs > 3'000 / kOneOf);
  CHECK(report.rough_runs > 100 / kOneOf);
  CHECK(report.jobs > 600 / kOneOf);
}

TEST_CASE("small cases through the C API, by every planner") {
  CapiExecutor executor;
  ConformanceReport report = check_conformance(
      executor, {.world = 8, .draws = 0, .small_cases = true, .every = 291 * kOneOf});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.runs > 300 / kOneOf);
}

TEST_CASE("drawn requests over rings of shared memory give the bits of the store") {
  RingsExecutor executor;
  ConformanceReport report =
      check_conformance(executor, {.world = 8, .draws = 1'000 / kOneOf, .seed = 79});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.requests == 1'000 / kOneOf);
  CHECK(report.runs > 1'000 / kOneOf);
  CHECK(report.rough_runs > 30 / kOneOf);
}

TEST_CASE("drawn requests for all ranks by one call give the bits of the store") {
  AllRanksExecutor executor;
  ConformanceReport report =
      check_conformance(executor, {.world = 8, .draws = 3'000 / kOneOf, .seed = 78});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.requests == 3'000 / kOneOf);
  CHECK(report.runs > 3'000 / kOneOf);
  CHECK(report.rough_runs > 100 / kOneOf);
}

TEST_CASE("small cases for all ranks by one call, by every planner") {
  AllRanksExecutor executor;
  ConformanceReport report = check_conformance(
      executor, {.world = 8, .draws = 0, .small_cases = true, .every = 97 * kOneOf});
  INFO(text(report));
  CHECK(report.failed == 0);
  CHECK(report.runs > 900 / kOneOf);
}
