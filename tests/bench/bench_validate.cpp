// SPDX-License-Identifier: BSD-3-Clause
// What `validate` adds to the calls of a plan: a plan of 1,000 steps on one rank, each a copy of
// one row, timed as validate times it (its runs, its median), minus the same 1,000 memcpys alone,
// per step. Limit: 20 us. Through `local`, and through every backend that can run a world of one
// here.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/bytes/block.h"
#include "core/proof/proof.h"
#include "sim/report/validate_report.h"
#include "tools/cli/validate/carriers.h"
#include "tools/cli/validate/executor_run.h"

namespace {

using namespace reshard;

using tools::steady_ps;

constexpr std::int64_t kSteps = 1000, kRowElements = 1024;
constexpr double kLimitUs = 20;

// R -> R on one rank, row by row: step i copies row i once step i - 1 is done.
Plan row_by_row() {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({1}));
  Shape shape{kSteps, kRowElements};
  Layout layout(shape, DType::F32, mesh, {Placement::replicate()});
  Plan plan(Request(layout, layout), "row by row");
  for (std::int64_t i = 0; i < kSteps; ++i) {
    CopyStep step;
    step.moves = MoveList(2);
    step.moves.push_back({kSourceBuffer, kDestinationBuffer, {i, 0}, {i, 0}, {1, kRowElements}});
    step.parts.push_back({0, {0, 1}});
    std::vector<StepId> after;
    if (i > 0) after.push_back(StepId{static_cast<std::int32_t>(i - 1)});
    plan.add_step(std::move(step), after);
  }
  prove(plan);
  return plan;
}

// The calls alone: median of as many runs as validate makes.
std::int64_t memcpys_ps(const tools::RunCounts& counts) {
  constexpr std::int64_t kRowBytes = kRowElements * 4;
  Block from(kSteps * kRowBytes), to(kSteps * kRowBytes);
  std::memset(from.data(), 1, static_cast<std::size_t>(kSteps * kRowBytes));
  std::memset(to.data(), 2, static_cast<std::size_t>(kSteps * kRowBytes));
  std::vector<std::int64_t> times;
  for (std::int64_t run = 0; run < counts.warm_up + counts.iterations; ++run) {
    std::int64_t start_ps = steady_ps();
    for (std::int64_t i = 0; i < kSteps; ++i) {
      std::memcpy(to.data() + i * kRowBytes, from.data() + i * kRowBytes, kRowBytes);
      benchmark::ClobberMemory();
    }
    if (run >= counts.warm_up) times.push_back(steady_ps() - start_ps);
  }
  return sim::spread_of(times).median_ps;
}

void overhead_per_step(benchmark::State& state, const std::string& name) {
  tools::BackendInfo backend = tools::backend_info(name);
  std::unique_ptr<Executor> executor = tools::make_executor(backend, {});
  Plan plan = row_by_row();
  std::unique_ptr<PreparedPlan> prepared = executor->prepare(plan);
  sim::PlanPatterns(plan).fill(*prepared);
  tools::RunCounts counts;
  std::vector<std::int64_t> measured, on_the_wall, calls;
  for (auto _ : state) {
    std::int64_t calls_ps = memcpys_ps(counts), start_ps = steady_ps();
    std::vector<Timeline> runs = tools::timed_runs(*prepared, counts);
    calls.push_back(calls_ps / kSteps);
    on_the_wall.push_back(
        ((steady_ps() - start_ps) / (counts.warm_up + counts.iterations) - calls_ps) / kSteps);
    measured.push_back((sim::times_of(runs, plan.steps.size()).total.median_ps - calls_ps) /
                       kSteps);
  }
  state.counters["us_per_step"] = static_cast<double>(sim::spread_of(measured).median_ps) / 1e6;
  // With what happens between runs: meeting, keeping spans.
  state.counters["us_per_step_wall"] =
      static_cast<double>(sim::spread_of(on_the_wall).median_ps) / 1e6;
  state.counters["us_calls"] = static_cast<double>(sim::spread_of(calls).median_ps) / 1e6;
  state.counters["limit_us"] = kLimitUs;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const tools::BackendInfo& backend : tools::backend_infos())
    if (backend.status.usable)
      benchmark::RegisterBenchmark(("overhead_per_step/" + backend.name()).c_str(),
                                   overhead_per_step, backend.name())
          ->Iterations(9)
          ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
