// SPDX-License-Identifier: BSD-3-Clause
// The engine on traffic that is all contention. Limits: 0.1 s for 16,256 equal flows, 3 s for the
// same with 97 sizes, 0.2 s and 0.01 s for a ring of 1,024 ranks run transfer by transfer and as
// whole steps. The counter `of_limit` is the time as a fraction of that limit.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"

namespace {

using namespace reshard;

constexpr std::int64_t kPort = 25'000'000'000;
constexpr sim::EngineOptions kQuiet{.record_spans = false},
    kEach{.record_spans = false, .run_transfers = true};

void measure(benchmark::State& state, const Workload& workload, const Topology& topology,
             std::int64_t end_ps, std::int64_t flows, double limit_s,
             const sim::EngineOptions& options = kQuiet) {
  for (auto _ : state) {
    Timeline timeline = sim::run(workload, topology, options);
    if (timeline.end_ps != end_ps)
      throw std::runtime_error("the engine's end is not the expected one");
  }
  auto count = static_cast<double>(state.iterations());
  state.counters["flows"] =
      benchmark::Counter(static_cast<double>(flows) * count, benchmark::Counter::kIsRate);
  if (limit_s > 0)
    state.counters["of_limit"] = benchmark::Counter(
        count * limit_s, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

Workload collective(CollectiveKind kind, Algorithm algorithm, std::int32_t n, std::int64_t bytes) {
  Workload workload;
  workload.operations.push_back({BareCollective{kind, algorithm, test::ranks(n), bytes}, 0, {}});
  return workload;
}

void equal_messages_128(benchmark::State& state) {
  Workload workload =
      test::all_pairs(128, [](std::int32_t, std::int32_t) { return std::int64_t{25'000'000}; });
  measure(state, workload, test::switched(128, kPort), transfer_ps(25'000'000, kPort / 127), 16'256,
          0.1);
}
BENCHMARK(equal_messages_128)->Unit(benchmark::kMillisecond);

void equal_all_to_all(benchmark::State& state) {
  auto n = static_cast<std::int32_t>(state.range(0));
  Workload workload = collective(CollectiveKind::AllToAll, Algorithm::Direct, n, 25'000'000);
  measure(state, workload, test::switched(n, kPort), transfer_ps(25'000'000, kPort / (n - 1)),
          std::int64_t{n} * (n - 1), n == 128 ? 0.1 : 0, state.range(1) != 0 ? kEach : kQuiet);
}
BENCHMARK(equal_all_to_all)
    ->ArgNames({"ranks", "each"})
    ->ArgsProduct({{128, 256, 1024}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void uneven_messages_128(benchmark::State& state) {
  measure(state, test::all_pairs(128, test::uneven_bytes), test::switched(128, kPort),
          255'600'000'328, 16'256, 3);
}
BENCHMARK(uneven_messages_128)->Unit(benchmark::kMillisecond);

// Its rounds known to be alike, or run one by one.
void ring_all_reduce_1024(benchmark::State& state) {
  bool each = state.range(0) != 0;
  Workload workload =
      collective(CollectiveKind::AllReduce, Algorithm::Ring, 1024, std::int64_t{1} << 30);
  std::int64_t round_ps = 1'000'000 + transfer_ps(1 << 20, kPort);
  measure(state, workload, test::switched(1024, kPort, 1'000'000), 2046 * round_ps,
          2 * std::int64_t{1024} * 1023, each ? 0.2 : 0.01, each ? kEach : kQuiet);
}
BENCHMARK(ring_all_reduce_1024)->ArgName("each")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
