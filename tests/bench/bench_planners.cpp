// SPDX-License-Identifier: BSD-3-Clause
// `rule` and `graph` on a parsed request, proof excluded, and a hit in the plan cache. Limits: rule
// 20 us on a 4x4 mesh, graph 0.1 ms there and 5 ms on 2x2x2x2; a hit 0.3 us. The counter `of_limit`
// is the time as a fraction of its limit. `packed` and `auto` on all pairs of a mesh at 4 GiB, on
// links alone: the median of single plans, limits 10 and 40 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/study/recorded_run.h"
#include "sim/study/studies.h"

namespace {

using namespace reshard;

Request request_on(std::vector<std::int32_t> shape, const char* extents, const char* from,
                   const char* to) {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major(std::move(shape)));
  return Request(parse_layout(extents, "f32", mesh, from), parse_layout(extents, "f32", mesh, to));
}

void against(benchmark::State& state, double limit_s) {
  state.counters["of_limit"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * limit_s,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void plan(benchmark::State& state, Plan (*make)(const Demand&, const PlannerInput&),
          const Request& request) {
  Topology topology = sim::default_topology(static_cast<std::int32_t>(request.ranks().size()));
  PlannerInput input;
  input.topology = &topology;
  for (auto _ : state) benchmark::DoNotOptimize(make(request, input));
}

void rule_4x4(benchmark::State& state) {
  plan(state, plan_rule, request_on({4, 4}, "1024,1024", "S(0)S(1)", "S(1)S(0)"));
  against(state, 20e-6);
}
void rule_4x4_uneven(benchmark::State& state) {
  plan(state, plan_rule, request_on({4, 4}, "1023,1021", "S(0)S(1)", "S(1)S(0)"));
  against(state, 20e-6);
}
void rule_4x4_gather(benchmark::State& state) {
  plan(state, plan_rule, request_on({4, 4}, "1024,1024", "S(0)S(0)", "RR"));
  against(state, 20e-6);
}
void graph_4x4(benchmark::State& state) {
  plan(state, plan_graph, request_on({4, 4}, "1024,1024", "S(0)S(1)", "S(1)S(0)"));
  against(state, 0.1e-3);
}
void graph_4x4_nested(benchmark::State& state) {
  plan(state, plan_graph, request_on({4, 4}, "8192,8192", "S(0)S(0)", "S(1)S(1)"));
  against(state, 0.1e-3);
}
void graph_4x4_partial_4d(benchmark::State& state) {
  plan(state, plan_graph, request_on({4, 4}, "16,16,16,16", "P(sum)P(sum)", "S(1)S(0)"));
  against(state, 0.1e-3);
}
void graph_2x2x2x2(benchmark::State& state) {
  plan(state, plan_graph,
       request_on({2, 2, 2, 2}, "16,16", "S(0)S(0)S(0)S(0)", "S(1)S(1)S(1)S(1)"));
  against(state, 5e-3);
}
void graph_2x2x2x2_4d(benchmark::State& state) {
  plan(state, plan_graph,
       request_on({2, 2, 2, 2}, "16,16,16,16", "S(0)S(0)S(0)S(0)", "S(1)S(1)S(1)S(1)"));
  against(state, 5e-3);
}
void graph_2x2x2x2_partial_4d(benchmark::State& state) {
  plan(state, plan_graph,
       request_on({2, 2, 2, 2}, "16,16,16,16", "P(sum)P(sum)S(0)S(0)", "S(1)S(1)S(1)S(1)"));
  against(state, 5e-3);
}
void hybrid_4x4_gather(benchmark::State& state) {
  plan(state, plan_hybrid, request_on({4, 4}, "1024,1024", "S(0)S(0)", "RR"));
}
void rule_32x32(benchmark::State& state) {
  plan(state, plan_rule, request_on({32, 32}, "32768,32768", "S(0)S(1)", "S(1)S(0)"));
}
void hybrid_32x32_gather(benchmark::State& state) {
  plan(state, plan_hybrid, request_on({32, 32}, "32768,32768", "S(0)S(0)", "RR"));
}

// Plans every pair once; the counter is the median of one plan's time.
void all_pairs(benchmark::State& state, const char* planner, std::vector<std::int32_t> mesh,
               double limit_s) {
  Topology topology = sim::find_topology("dgx-h100:2");
  PlannerInput input;
  input.topology = &topology;
  input.plan_time = [](const Plan& plan, const Topology& on, std::int64_t limit_ps) {
    return sim::run_of(plan, on, {}, limit_ps).timeline.end_ps;
  };
  std::vector<Request> requests;
  const char* const placements[] = {"R", "S(0)", "S(1)", "S(2)"};
  for (int i = 0; i < 256; ++i) {
    auto text = [&](int at) {
      return std::string(placements[at / 4 % 4]) + "," + placements[at % 4];
    };
    requests.push_back(
        request_on(mesh, "32,8192,4096", text(i / 16).c_str(), text(i % 16).c_str()));
  }
  std::vector<double> seconds;
  for (auto _ : state)
    for (const Request& request : requests) {
      auto start = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(find_planner(planner).make(request, input));
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  double median = seconds[seconds.size() / 2];
  state.counters["median_ms"] = median * 1e3;
  state.counters["of_limit"] = median / limit_s;
}

void cache_hit(benchmark::State& state) {
  sim::StudyCache cache(1024);
  std::vector<Request> requests;
  PlannerInput input;
  for (int n = 0; n < 512; ++n) {
    std::string shape = std::to_string(1024 + n) + ",1024";
    requests.push_back(request_on({4, 4}, shape.c_str(), "S(0)S(1)", "S(1)S(0)"));
  }
  auto topology = std::make_shared<const Topology>(sim::default_topology(16));
  auto studied = [&](const Request& request) {
    auto plan = std::make_shared<const Plan>(plan_rule(request, input));
    return std::make_shared<sim::Study>(std::move(plan), topology);
  };
  auto get = [&](const Request& request) {
    return cache.get({request.fingerprint(), Digest{1, 2}, TransportKind::Ideal, 0, -1},
                     [&] { return studied(request); });
  };
  for (const Request& request : requests) get(request);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(get(requests[i]));
    i = (i + 1) % requests.size();
  }
  against(state, 0.3e-6);
}

}  // namespace

BENCHMARK(rule_4x4)->Unit(benchmark::kMicrosecond);
BENCHMARK(rule_4x4_uneven)->Unit(benchmark::kMicrosecond);
BENCHMARK(rule_4x4_gather)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_4x4)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_4x4_nested)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_4x4_partial_4d)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_2x2x2x2)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_2x2x2x2_4d)->Unit(benchmark::kMicrosecond);
BENCHMARK(graph_2x2x2x2_partial_4d)->Unit(benchmark::kMicrosecond);
BENCHMARK(hybrid_4x4_gather)->Unit(benchmark::kMicrosecond);
BENCHMARK(rule_32x32)->Unit(benchmark::kMicrosecond);
BENCHMARK(hybrid_32x32_gather)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_pairs, packed_4x4, "packed", std::vector{4, 4}, 10e-3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_pairs, packed_2x8, "packed", std::vector{2, 8}, 10e-3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_pairs, auto_4x4, "auto", std::vector{4, 4}, 40e-3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_pairs, auto_2x8, "auto", std::vector{2, 8}, 40e-3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(cache_hit)->Unit(benchmark::kNanosecond);

BENCHMARK_MAIN();
