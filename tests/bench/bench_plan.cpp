// SPDX-License-Identifier: BSD-3-Clause
// Planning and proving p2p at scale: [S0,S1] -> [S1,S0] and [S0,S0] -> [S1,S1] on 32x32 ranks (the
// latter about 10^6 messages). Limits: 1 s; 5 s and 2 GiB. The counter `of_limit` is the time as a
// fraction of its limit, `peak_GiB` the peak memory of the process so far.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/planners/planner.h"
#include "core/proof/proof.h"

namespace {

using namespace reshard;

Request on_32x32(const char* shape, const char* from, const char* to) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({32, 32}));
  return Request(parse_layout(shape, "f32", mesh, from), parse_layout(shape, "f32", mesh, to));
}

void plan_and_prove(benchmark::State& state, const char* shape, const char* from, const char* to,
                    double limit_s) {
  std::size_t messages = 0;
  for (auto _ : state) {
    Plan plan = plan_p2p(on_32x32(shape, from, to), {});
    prove(plan);
    messages = std::get<ExchangeStep>(plan.steps.back().body).messages.size();
  }
  state.counters["messages"] = static_cast<double>(messages);
  state.counters["of_limit"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * limit_s,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_GiB"] = static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

void transpose(benchmark::State& state) {
  plan_and_prove(state, "32768,32768", "S(0)S(1)", "S(1)S(0)", 1.0);
}
void million_messages(benchmark::State& state) {
  plan_and_prove(state, "32771,32801", "S(0)S(0)", "S(1)S(1)", 5.0);
}

}  // namespace

BENCHMARK(transpose)->Unit(benchmark::kMillisecond);
BENCHMARK(million_messages)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
