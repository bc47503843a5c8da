// SPDX-License-Identifier: BSD-3-Clause
// The time to decide one call of an operator, and all calls of recorded models, with a cache that
// knows them (warm) and without (cold); and the time to compute a layer on all ranks in one
// process.
#include <benchmark/benchmark.h>

#include <deque>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/ops/decision_cache.h"
#include "core/ops/torch_moves.h"
#include "core/planners/planner.h"
#include "sim/dispatch/dispatch.h"
#include "sim/dispatch/values/values.h"

namespace reshard::sim {
namespace {

// Calls whose tensors lie where they did when the calls were reached.
struct Asked {
  std::deque<TensorSpec> tensors;  // references stay
  std::vector<OpCall> calls;
  MeshRef mesh;
};

void decide_all(benchmark::State& state, const Asked& asked, bool warm) {
  TorchMoves moves(asked.mesh, 8);
  MoveCost cost = [&](const TensorSpec& from, const OpPlacements& to) {
    return moves.cost_us(from, to);
  };
  DecisionCache kept;
  for (auto _ : state) {
    DecisionCache fresh;
    DecisionCache& cache = warm ? kept : fresh;
    for (const OpCall& call : asked.calls)
      benchmark::DoNotOptimize(
          cache.of(call, 0, [&] { return decide(call, asked.mesh->shape(), cost); }).cost_us);
  }
  state.counters["calls"] = static_cast<double>(asked.calls.size());
}

Asked recorded(const std::string& name) {
  Trace trace = read_trace("traces/torch/" + name + ".jsonl");
  DispatchReport report = dispatch(trace, {});
  Asked out;
  for (const DispatchedCall& call : report.calls) {
    if (!call.op) continue;
    out.mesh = call.op_line->mesh;
    OpCall asked{call.op, {}, call.op_line->attributes, call.op_line->loss_parallel};
    std::size_t input = 0;
    for (const OperatorLine::Argument& argument : call.op_line->in) {
      OpArgument& tensors = asked.arguments.emplace_back();
      tensors.is_list = argument.is_list;
      for (std::size_t i = 0; i < argument.values.size(); ++i, ++input) {
        bool there = input < call.in.size() && call.in[input];
        tensors.tensors.push_back(there ? &out.tensors.emplace_back(*call.in[input]) : nullptr);
      }
    }
    out.calls.push_back(std::move(asked));
  }
  return out;
}

Asked one_call(const char* op, const std::string& mesh, const std::vector<Shape>& shapes,
               const std::vector<OpPlacement>& placements) {
  Asked out;
  out.mesh = std::make_shared<const Mesh>(parse_mesh(mesh));
  OpCall call{&find_operator(op), {}, {}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    OpPlacements everywhere(out.mesh->shape().size(), placements[i]);
    call.arguments.push_back(
        {false, {&out.tensors.emplace_back(TensorSpec{{shapes[i], DType::F32}, everywhere})}});
  }
  out.calls.push_back(std::move(call));
  return out;
}

Asked foreach_add(std::size_t count) {
  Asked out;
  out.mesh = std::make_shared<const Mesh>(parse_mesh("4"));
  OpArgument list{true, {}};
  out.tensors.push_back({{Shape{64, 32}, DType::F32}, {OpPlacement::shard(0)}});
  list.tensors.assign(count, &out.tensors.back());
  out.calls.push_back({&find_operator("_foreach_add.List"), {list, list}, {}});
  return out;
}

// The layer of the trace on other numbers of ranks: true values on every one of them, decided,
// moved, computed and compared.
void compute_all(benchmark::State& state, std::int64_t ranks) {
  std::ifstream file("traces/torch/mlp-tp.jsonl");
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.replace(text.find("tp=4"), 4, "tp=" + std::to_string(ranks));
  PlanOf plan_of = [](const Request& request) {
    return std::make_shared<const Plan>(make_plan(find_planner("rule"), request, {}));
  };
  for (auto _ : state) {
    std::istringstream in(text);
    Trace trace = parse_trace(in, "mlp-tp");
    DispatchReport report = dispatch(trace, {});
    report.findings.clear();
    check_values(trace, report, plan_of);
    if (!report.findings.empty()) state.SkipWithError("wrong values");
  }
}

void add(const std::string& name, Asked asked) {
  auto shared = std::make_shared<const Asked>(std::move(asked));
  for (bool warm : {true, false})
    benchmark::RegisterBenchmark(
        (name + (warm ? "/warm" : "/cold")).c_str(),
        [shared, warm](benchmark::State& state) { decide_all(state, *shared, warm); });
}

}  // namespace
}  // namespace reshard::sim

int main(int argc, char** argv) {
  using namespace reshard;
  using namespace reshard::sim;
  const Shape square{4096, 4096}, row{4096};
  const OpPlacement s0 = OpPlacement::shard(0), s1 = OpPlacement::shard(1), r;
  for (const char* mesh : {"2", "2x2", "2x2x2"}) {
    add(std::string("mm/") + mesh, one_call("mm", mesh, {square, square}, {s0, s1}));
    add(std::string("addmm/") + mesh, one_call("addmm", mesh, {row, square, square}, {r, s0, s1}));
  }
  add("foreach_add/100", foreach_add(100));
  for (const char* model : {"mlp-tp", "layer", "placed-layer-S0S1", "placed-layer-R-rms"})
    add(model, recorded(model));
  for (std::int64_t ranks : {8, 64})
    benchmark::RegisterBenchmark(("mlp-tp/values/" + std::to_string(ranks)).c_str(),
                                 [ranks](benchmark::State& state) { compute_all(state, ranks); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
