// SPDX-License-Identifier: BSD-3-Clause
// The store's speed at moving bytes, relative to memcpy of the same number, measured in one run:
// 16384 x 16384 f32, S(0) -> S(1) on 16 ranks, p2p, one thread. The source is filled and the
// destination touched before; digest and comparison are excluded. The two alternate, so that a
// slowdown of the machine affects both; the result is the ratio of medians.
//
// For comparison, also the cost per byte of filling by pattern, checking and digesting, and of
// folding.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/base/digest.h"
#include "core/bytes/box_fold.h"
#include "core/pattern/pattern.h"
#include "core/planners/planner.h"
#include "sim/store/store.h"
#include "tests/support/star.h"

namespace {

using namespace reshard;

Request transpose_like(std::int64_t extent) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({16}));
  Shape shape{extent, extent};
  return Request(Layout(shape, DType::F32, mesh, {Placement::shard(0)}),
                 Layout(shape, DType::F32, mesh, {Placement::shard(1)}));
}

double seconds(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void store_against_memcpy(benchmark::State& state) {
  Topology topology = test::star(16);
  PlannerInput input;
  input.topology = &topology;
  Plan plan = find_planner("p2p").make(transpose_like(state.range(0)), input);
  sim::StoreMemory memory(plan);
  Forwarding forwarding(plan);
  sim::fill_sources(
      plan,
      [](Rank rank, std::span<std::byte> bytes) {
        std::memset(bytes.data(), to_int(rank), bytes.size());
      },
      memory);
  std::int64_t bytes = 0;
  for (Slot slot = 0; slot < 16; ++slot) {
    bytes += memory.size_bytes(kDestinationBuffer, slot);
    std::memset(memory.write(kDestinationBuffer, slot), 1,
                static_cast<std::size_t>(memory.size_bytes(kDestinationBuffer, slot)));
  }
  Block from(bytes), to(bytes);
  std::memset(from.data(), 1, static_cast<std::size_t>(bytes));
  std::memset(to.data(), 2, static_cast<std::size_t>(bytes));

  std::vector<double> moves, copies;
  for (auto _ : state) {
    moves.push_back(
        seconds([&] { benchmark::DoNotOptimize(sim::run_steps(plan, forwarding, memory)); }));
    copies.push_back(seconds([&] {
      std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes));
      benchmark::ClobberMemory();
    }));
  }
  state.counters["store_GB_per_s"] = static_cast<double>(bytes) / median(moves) / 1e9;
  state.counters["memcpy_GB_per_s"] = static_cast<double>(bytes) / median(copies) / 1e9;
  state.counters["ratio"] = median(copies) / median(moves);
}
BENCHMARK(store_against_memcpy)->Arg(16384)->Iterations(9)->Unit(benchmark::kMillisecond);

void fill_by_pattern(benchmark::State& state) {
  Request request = transpose_like(4096);
  Pattern pattern(request);
  std::vector<std::byte> bytes(4096 * 4096 / 16 * 4);
  for (auto _ : state) pattern.fill(request.destination(), 3, 0, bytes);
  state.SetItemsProcessed(state.iterations() * 4096 * 4096 / 16);
}
BENCHMARK(fill_by_pattern);

void check_by_pattern(benchmark::State& state) {
  Request request = transpose_like(4096);
  Pattern pattern(request);
  std::vector<std::byte> bytes(4096 * 4096 / 16 * 4);
  std::vector<std::int64_t> addends{0};
  pattern.fill(request.destination(), 3, 0, bytes);
  for (auto _ : state)
    if (pattern.check(request.destination(), 3, addends, bytes)) state.SkipWithError("wrong");
  state.SetItemsProcessed(state.iterations() * 4096 * 4096 / 16);
}
BENCHMARK(check_by_pattern);

void check_of_folds(benchmark::State& state) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({8}));
  Shape shape{1 << 20};
  Request request(Layout(shape, DType::BF16, mesh, {Placement::partial()}),
                  Layout(shape, DType::BF16, mesh, {Placement::replicate()}));
  Pattern pattern(request);
  std::vector<std::int64_t> addends = request.addends_wanted(0);
  std::vector<std::byte> bytes(2 << 20);
  for (auto _ : state)
    benchmark::DoNotOptimize(pattern.check(request.destination(), 0, addends, bytes));
  state.SetItemsProcessed(state.iterations() * 8 << 20);
}
BENCHMARK(check_of_folds);

void digest(benchmark::State& state) {
  std::vector<std::byte> bytes(1 << 24);
  for (auto _ : state) benchmark::DoNotOptimize(digest_of(bytes));
  state.SetBytesProcessed(state.iterations() << 24);
}
BENCHMARK(digest);

// Eight operands of 4 MiB, by dtype.
void fold(benchmark::State& state) {
  auto dtype = static_cast<DType>(state.range(0));
  state.SetLabel(std::string(text(dtype)));
  std::vector<std::vector<std::byte>> operands(
      8, std::vector<std::byte>(std::size_t{1} << 22, std::byte{1}));
  std::vector<const std::byte*> pointers;
  for (const std::vector<std::byte>& operand : operands) pointers.push_back(operand.data());
  std::vector<std::byte> out(std::size_t{1} << 22);
  for (auto _ : state)
    fold_row(ReduceOp::Sum, dtype, 1, pointers, out.data(),
             (std::int64_t{1} << 22) / size_bytes(dtype));
  state.SetBytesProcessed(state.iterations() * 8 << 22);
}
BENCHMARK(fold)
    ->Arg(static_cast<int>(DType::F32))
    ->Arg(static_cast<int>(DType::BF16))
    ->Arg(static_cast<int>(DType::F16))
    ->Arg(static_cast<int>(DType::I8));

}  // namespace

BENCHMARK_MAIN();
