// SPDX-License-Identifier: BSD-3-Clause
// The executor on the stand-in: random requests by all planners against the store, for worlds that
// are and are not powers of two, with one thread per rank and with one thread for all.
#include <catch2/catch.hpp>

#include <map>
#include <mutex>

#include "core/base/errors.h"
#include "core/plan/plan.h"
#include "core/planners/planner.h"
#include "tests/conformance/conformance.h"
#include "tests/support/standins/nccl_ranks.h"
#include "tests/support/star.h"

namespace reshard::test {
namespace {

using backends::launch::place;
using backends::launch::Placement;
using backends::nccl::allow_sharing;
using backends::nccl::NcclExecutor;

struct Result {
  StandinOutcome outcome;
  ConformanceReport report;
};

Result check(StandinJob job, std::int64_t draws, std::uint64_t seed) {
  Result result;
  std::mutex mutex;
  job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
  result.outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t driver) {
    ConformanceOptions options;
    options.world = job.world;
    options.draws = draws;
    options.seed = seed;
    ConformanceReport report = check_conformance(executor, options);
    std::lock_guard lock(mutex);
    if (driver == 0) result.report = report;
  });
  return result;
}

void require_clean(const Result& result, std::int64_t draws) {
  INFO(result.outcome.text());
  INFO(text(result.report));
  CHECK(result.outcome.clean());
  CHECK(result.report.failed == 0);
  CHECK(result.report.requests == draws);
  CHECK(result.outcome.launches > 0);
}

TEST_CASE("drawn requests end with the store's bytes, a thread per rank") {
  for (std::int32_t world : {2, 4, 7, 8}) {
    StandinJob job;
    job.world = world;
    job.standin.seed = static_cast<std::uint64_t>(world);
    require_clean(check(job, 60, 1000 + static_cast<std::uint64_t>(world)), 60);
  }
}

TEST_CASE("drawn requests end with the store's bytes, one thread for all ranks") {
  for (std::int32_t world : {1, 2, 4, 7, 8}) {
    StandinJob job;
    job.world = world;
    job.drive = Drive::OneThread;
    job.standin.seed = static_cast<std::uint64_t>(world);
    Result result = check(job, 200, 2000 + static_cast<std::uint64_t>(world));
    INFO(result.outcome.text());
    INFO(text(result.report));
    CHECK(result.outcome.clean());
    CHECK(result.report.failed == 0);
    CHECK(result.report.requests == 200);
  }
}

TEST_CASE("several ranks on one GPU need NCCL 2.30, some variables and a warning") {
  Placement shared = place({{"n", -1, -1, {"a"}}}, 4),
            apart = place({{"n", -1, -1, {"a", "b"}}}, 2);
  std::map<std::string, std::string> variables;
  std::vector<std::string> warnings;
  backends::launch::Environment environment =
      [&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  auto allow = [&](const Placement& placement, int version) {
    allow_sharing(
        placement, version, environment,
        [&](const char* name, const char* value) { variables[name] = value; },
        [&](const std::string& text) { warnings.push_back(text); });
  };
  allow(apart, 21400);
  CHECK(variables.empty());
  CHECK(warnings.empty());
  CHECK_THROWS_WITH(allow(shared, 22809),
                    "NCCL: 4 ranks on 1 GPU need NCCL 2.30.0 or newer, found 2.28.9");
  CHECK(variables.empty());
  allow(shared, 23007);
  CHECK(variables == std::map<std::string, std::string>{{"NCCL_MULTI_RANK_GPU_ENABLE", "1"},
                                                        {"NCCL_NVLS_ENABLE", "0"},
                                                        {"NCCL_MAX_CTAS", "4"},
                                                        {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}});
  CHECK(warnings == std::vector<std::string>{"NCCL: 4 ranks on 1 GPU: results are those of that "
                                             "many GPUs, but times are not those of links"});
  variables = {{"NCCL_NVLS_ENABLE", "2"}};
  allow(shared, 23007);
  CHECK(variables["NCCL_NVLS_ENABLE"] == "2");
}

}  // namespace
}  // namespace reshard::test
