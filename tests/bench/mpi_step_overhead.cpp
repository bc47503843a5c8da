// SPDX-License-Identifier: BSD-3-Clause
// The cost of a step beyond its bytes and its MPI calls: a world of one, 1,000 steps that copy 64
// bytes each, the median of 201 runs. Prints microseconds per step.
//
//   build/release/mpi_step_overhead
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "backends/mpi/executor.h"
#include "core/proof/proof.h"

using namespace reshard;

namespace {

constexpr int kSteps = 1000, kRuns = 201;
constexpr std::int64_t kElements = 16;

// Row i of the tensor is copied by step i, each after the one before it.
Plan copies() {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({1}));
  std::string shape = std::to_string(kSteps) + "," + std::to_string(kElements);
  Plan plan(
      Request(parse_layout(shape, "f32", mesh, "R"), parse_layout(shape, "f32", mesh, "S(0)")),
      "by hand");
  for (int i = 0; i < kSteps; ++i) {
    CopyStep step{{{0, {0, 1}}}, MoveList(2)};
    step.moves.push_back({kSourceBuffer, kDestinationBuffer, {i, 0}, {i, 0}, {1, kElements}});
    plan.add_step(std::move(step),
                  i == 0 ? std::vector<StepId>{} : std::vector<StepId>{StepId{i - 1}});
  }
  prove(plan);
  return plan;
}

}  // namespace

int main() {
  Plan plan = copies();
  backends::mpi::MpiExecutor executor(backends::mpi::WorldOptions{});
  auto prepared = executor.prepare(plan);
  prepared->fill(
      [](Rank, std::span<std::byte> bytes) { std::memset(bytes.data(), 1, bytes.size()); });
  std::vector<double> times_us;
  for (int run = 0; run < kRuns; ++run) {
    auto begin = std::chrono::steady_clock::now();
    prepared->run();
    times_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count() /
        kSteps);
  }
  std::sort(times_us.begin(), times_us.end());
  std::printf("%.3f us per step, median of %d runs of %d steps\n", times_us[times_us.size() / 2],
              kRuns, kSteps);
  return 0;
}
