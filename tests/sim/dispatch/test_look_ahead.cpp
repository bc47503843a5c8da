// SPDX-License-Identifier: BSD-3-Clause
// Choices over a whole trace: the shortest of all combinations, never worse than PyTorch's, and
// what its own choices cost in comparison.
#include <catch2/catch.hpp>

#include <filesystem>
#include <limits>
#include <random>
#include <sstream>

#include "core/base/errors.h"
#include "sim/dispatch/choices.h"
#include "sim/dispatch/dispatch.h"
#include "sim/dispatch/dispatched.h"

namespace reshard::sim::look_ahead_tests {
namespace {

// A latency for every axis on which something must come, and what a rank has of the larger side.
std::int64_t time_of(const Request& request) {
  std::int64_t out = 0;
  const Layout &from = request.source(), &to = request.destination();
  for (std::size_t axis = 0; axis < from.placements().size(); ++axis)
    if (from.placements()[axis] != to.placements()[axis] &&
        from.placements()[axis] != Placement::replicate())
      out += 1000;
  if (out == 0) return 0;
  return out + std::max(element_count(from.local_shape(0)), element_count(to.local_shape(0)));
}

DispatchOptions options_of(DispatchMode mode) {
  DispatchOptions out;
  out.mode = mode;
  out.time_ps = time_of;
  out.figures = [](const Request& request) -> MoveFigures {
    return {time_of(request), 0, time_of(request)};
  };
  return out;
}

Trace trace_of(const std::vector<std::string>& lines) {
  std::string text = R"({"reshard_trace": 1, "meshes": {"m": "2", "two": "2x2"}})"
                     "\n";
  for (const std::string& line : lines) text += line + "\n";
  std::istringstream in(text);
  return parse_trace(in, "t.jsonl");
}

std::string tensor(const std::string& name, const std::string& placements,
                   const std::string& shape = "8,8") {
  return R"({"op": "tensor", "dtype": "f32", "mesh": "m", "tensor": ")" + name +
         R"(", "shape": ")" + shape + R"(", "placements": ")" + placements + "\"}";
}

std::string call(const std::string& op, const std::string& in, const std::string& out,
                 const std::string& rest = "") {
  return R"({"op": "call", "call": ")" + op + R"(", "in": [)" + in + R"(], "out": [")" + out +
         "\"]" + rest + "}";
}

// A sort along a dim needs all of it.
std::string sort(const std::string& in, const std::string& out, const std::string& dim,
                 const std::string& rest = "") {
  return R"({"op": "call", "call": "sort", "in": [")" + in + R"("], "out": [")" + out +
         R"(", null], "attr": {"dim": )" + dim + "}" + rest + "}";
}

std::vector<DispatchedCall> best(const std::vector<std::string>& lines) {
  Trace trace = trace_of(lines);
  return dispatch(trace, options_of(DispatchMode::Best)).calls;
}

std::int64_t moved_times(const std::vector<DispatchedCall>& calls) {
  std::int64_t out = 0;
  for (const DispatchedCall& each : calls) out += moved_by(each).time_ps;
  return out;
}

// ---- all ways, one after the other

class AllOptions {
 public:
  explicit AllOptions(const std::vector<DispatchLine>& lines,
                      std::vector<std::optional<Held>> values)
      : lines_(lines), values_(std::move(values)) {}

  std::int64_t least() {
    walk(0, 0);
    return least_;
  }

 private:
  void walk(std::size_t line, std::int64_t so_far) {
    if (so_far >= least_) return;
    if (line == lines_.size()) {
      least_ = so_far;
      return;
    }
    HeldOf held = [&](ValueId value) -> const Held& { return *values_[to_index(value)]; };
    OpCall asked = Choices::call_of(*lines_[line].op_line, held);
    MoveCost cost = [&](const TensorSpec& from, const OpPlacements& to) {
      return choices_.time_on(lines_[line].op_line->mesh)(from, to);
    };
    Decision decision =
        decide(asked, lines_[line].op_line->mesh->shape(), cost, {Ties::Fewest, true, true});
    for (const Candidate& candidate : decision.all) {
      if (candidate.cost_us == std::numeric_limits<double>::infinity()) continue;
      std::vector<std::optional<Held>> before = values_;
      Taken taken =
          choices_.take(lines_[line], held, taking(decision, candidate, flat_inputs(asked)), true);
      std::int64_t time = choices_.effort(*lines_[line].op_line, held, candidate.in).time_ps;
      for (const auto& [value, now] : taken.held) {
        if (to_index(value) >= values_.size()) values_.resize(to_index(value) + 1);
        values_[to_index(value)] = now;
      }
      walk(line + 1, so_far + time);
      values_ = std::move(before);
      asked = Choices::call_of(*lines_[line].op_line, held);
    }
  }

  const std::vector<DispatchLine>& lines_;
  std::vector<std::optional<Held>> values_;
  Choices choices_{8, time_of};
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
};

std::int64_t least_of_all(const Trace& trace) {
  std::vector<DispatchLine> lines;
  std::vector<std::optional<Held>> values;
  for (const TraceOperation& operation : trace.operations) {
    TraceOperator op_line = std::get<TraceOperator>(operation.body);
    if (op_line->kind != OperatorLine::Kind::Tensor) {
      lines.push_back({trace.lines[operation.line].number, "", op_line});
      continue;
    }
    values.resize(to_index(op_line->out[0]) + 1);
    values.back() = Held{op_line->spec};
  }
  return AllOptions(lines, values).least();
}

TEST_CASE("on chains the way over all calls is the shortest of all") {
  std::mt19937 random(7);
  auto one_of = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  std::int64_t shorter = 0;
  for (int drawn = 0; drawn < 400; ++drawn) {
    std::vector<std::string> lines;
    for (int i = 0; i < 3; ++i)
      lines.push_back(tensor("w" + std::to_string(i), one_of({"R", "S(0)", "S(1)", "P(sum)"}),
                             one_of({"8,8", "8,8"})));
    std::string last = "w0";
    for (int i = 0; i < 4; ++i) {
      std::string out = "y" + std::to_string(i);
      std::string op = one_of({"mm", "add.Tensor", "relu", "sort", "t"});
      if (op == "sort") {
        lines.push_back(sort(last, out, one_of({"0", "1"})));
      } else {
        std::string second = op == "relu" || op == "t" ? "" : ", \"" + one_of({"w1", "w2"}) + "\"";
        lines.push_back(call(op, "\"" + last + "\"" + second, out));
      }
      last = out;
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    CAPTURE(text);
    std::int64_t least = least_of_all(trace_of(lines));
    Trace trace = trace_of(lines);
    DispatchReport report = dispatch(trace, options_of(DispatchMode::Best));
    CHECK(moved_times(report.calls) == least);
    shorter += report.regret->torch.time_ps > least ? 1 : 0;
  }
  CHECK(shorter > 20);
}

TEST_CASE("addends are summed first, then brought together once") {
  std::vector<std::string> lines{tensor("q", "P(sum)"),
                                 tensor("k", "P(sum)"),
                                 tensor("v", "P(sum)"),
                                 call("add.Tensor", R"("q", "k")", "a"),
                                 call("add.Tensor", R"("a", "v")", "b"),
                                 call("relu", "\"b\"", "r")};
  std::vector<DispatchedCall> calls = best(lines);
  CHECK(calls[0].moves.empty());
  CHECK(calls[1].moves.empty());
  REQUIRE(calls[2].moves.size() == 1);
  CHECK(text(calls[2].moves[0].from) == "P(sum)");
}

TEST_CASE("what one call could leave cut is brought where the next ones want it") {
  // Each sort of x alone is cheapest as it lies or after one move; together one copy serves both.
  std::vector<std::string> lines{tensor("x", "S(0)")};
  for (const char* name : {"a", "b", "c"}) lines.push_back(sort("x", name, "0"));
  std::vector<DispatchedCall> calls = best(lines);
  CHECK_FALSE(calls[0].moves[0].again);
  CHECK(calls[1].moves[0].again);
  CHECK(calls[2].moves[0].again);
}

TEST_CASE("a nearer copy is where the next one comes from") {
  // Whole on every rank once, x is cut otherwise without a byte.
  std::vector<std::string> lines{
      tensor("x", "P(sum)"), call("relu", "\"x\"", "a"),
      R"x({"op": "redistribute", "tensor": "x", "to": "S(1)", "out": "b"})x"};
  Trace trace = trace_of(lines);
  DispatchReport report = dispatch(trace, options_of(DispatchMode::Best));
  REQUIRE(report.calls[1].moves.size() == 1);
  const DispatchedMove& move = report.calls[1].moves[0];
  CHECK((move.again || move.from != report.calls[1].in[0]->placements));
}

TEST_CASE("what is moved before a view serves the view and its base") {
  // Each sort wants the dim whole that is cut; moved behind the view both would move.
  std::vector<std::string> lines{tensor("x", "S(0)"), call("t", "\"x\"", "v"), sort("v", "a", "1"),
                                 sort("x", "b", "0")};
  std::vector<DispatchedCall> calls = best(lines);
  std::int64_t moved = 0;
  for (const DispatchedCall& each : calls) moved += moved_by(each).count;
  CHECK(moved == 1);
  CHECK(calls[0].moves.size() == 1);
}

TEST_CASE("addends are scattered where nothing was cut before") {
  // relu takes no addends, and whole on every rank they take longer than in parts.
  DispatchOptions options = options_of(DispatchMode::Best);
  options.time_ps = [](const Request& request) {
    return time_of(request) == 0 ? 0 : element_count(request.destination().local_shape(0));
  };
  Trace trace = trace_of({tensor("x", "P(sum)"), call("relu", "\"x\"", "y")});
  DispatchReport report = dispatch(trace, options);
  CHECK(text(*report.calls[0].decision.wanted[0]) == "S(0)");
}

TEST_CASE("what is written in place must lie as it is written") {
  // y is ahead with x cut, and could never be brought back to where relu_ finds it.
  std::vector<std::string> lines{tensor("x", "R"), call("relu", "\"x\"", "a"),
                                 call("relu_", "\"a\"", "a2"), call("mm", R"("a2", "x")", "b")};
  CHECK(moved_times(best(lines)) == least_of_all(trace_of(lines)));
}

TEST_CASE("a way that a later line refuses is not taken") {
  // Cut as they lie the sum costs nothing, and cannot be viewed: 3 is not even on 2 ranks.
  std::vector<std::string> lines{tensor("x", "S(0)", "6,8"), tensor("y", "S(0)", "6,8"),
                                 call("add.Tensor", R"("x", "y")", "a"),
                                 call("view", "\"a\"", "v", R"(, "attr": {"size": [3, 2, 8]})")};
  Trace as_torch = trace_of(lines), trace = trace_of(lines);
  CHECK_THROWS_WITH(dispatch(as_torch, options_of(DispatchMode::Torch)),
                    Catch::Contains("t.jsonl:5: view: Cannot unflatten unevenly"));
  DispatchReport report = dispatch(trace, options_of(DispatchMode::Best));
  // Brought elsewhere once, before the sum or behind it.
  CHECK(text(*report.calls[1].decision.wanted[0]) != "S(0)");
  CHECK_FALSE(report.regret);
}

TEST_CASE("recorded models move no more than PyTorch moves, and say what it would have cost") {
  std::int64_t less = 0;
  for (const auto& entry : std::filesystem::directory_iterator("traces/torch")) {
    if (entry.path().extension() != ".jsonl") continue;
    CAPTURE(entry.path().string());
    Trace torch = read_trace(entry.path().string()), trace = read_trace(entry.path().string());
    DispatchReport as_torch = dispatch(torch, options_of(DispatchMode::Torch));
    DispatchReport report = dispatch(trace, options_of(DispatchMode::Best));
    REQUIRE(report.regret);
    const Regret& regret = *report.regret;
    CHECK(regret.best.time_ps <= regret.torch.time_ps);
    CHECK(regret.best_implicit.bytes <= regret.torch_implicit.bytes);
    CHECK(regret.torch.time_ps == moved_times(as_torch.calls));
    CHECK(regret.best.time_ps == moved_times(report.calls));
    std::int64_t rows = 0;
    for (const RegretRow& row : regret.rows) {
      CHECK_FALSE(row.why.empty());
      rows += row.torch.time_ps - row.best.time_ps;
    }
    CHECK(rows == regret.torch.time_ps - regret.best.time_ps);
    if (entry.path().stem().string().starts_with("placed-layer"))
      CHECK(8 * regret.best_implicit.time_ps <= 6 * regret.torch_implicit.time_ps);
    less += regret.best_implicit.bytes < regret.torch_implicit.bytes ? 1 : 0;
    CHECK(report.findings.empty());
  }
  CHECK(less >= 7);
}

TEST_CASE("states that differ long enough are settled by the best") {
  // Two tensors that lie otherwise to the end: 200 calls between their making and their use.
  std::vector<std::string> lines{tensor("x", "R"), tensor("w", "S(0)"),
                                 call("mm", R"("x", "w")", "y"), call("relu", "\"x\"", "r0")};
  for (int i = 0; i < 200; ++i)
    lines.push_back(call("relu", "\"r" + std::to_string(i) + "\"", "r" + std::to_string(i + 1)));
  lines.push_back(call("add.Tensor", R"("y", "r200")", "z"));
  CHECK(best(lines).size() == 203);
}

TEST_CASE("gathers of parameters start early, on a stream of their own") {
  const char* time = R"(, "duration_ps": 10)";
  std::vector<std::string> lines{tensor("x", "R"),
                                 tensor("w", "S(0)"),
                                 tensor("v", "S(0)"),
                                 sort("w", "a", "0", time),
                                 call("relu", "\"x\"", "b", time),
                                 call("relu", "\"b\"", "c", time),
                                 call("t", "\"v\"", "vt"),
                                 sort("vt", "d", "1", time),
                                 sort("d", "e", "0", time)};
  for (std::int64_t prefetch : {0, 2}) {
    Trace trace = trace_of(lines);
    DispatchOptions options;
    options.prefetch = prefetch;
    DispatchReport report = dispatch(trace, options);
    OpId gather = report.calls[4].moves.at(0).operation.value();
    const TraceOperation& of_parameter = trace.operations[gather];
    CHECK(of_parameter.stream == (prefetch > 0 ? 1 : 0));
    // Two calls before it is the second relu, which waits for the first.
    auto is_first_relu = [&](OpId op) {
      return trace.operations[op].line == trace.operations[OpId{2}].line;
    };
    CHECK(trace.lines[trace.operations[OpId{2}].line].number == 6);
    REQUIRE(of_parameter.after.size() == (prefetch > 0 ? 1 : 0));
    if (prefetch > 0) CHECK(is_first_relu(of_parameter.after[0]));
    // What a call has made waits for it.
    OpId last = report.calls[5].moves.empty() ? gather : *report.calls[5].moves[0].operation;
    if (last != gather) CHECK(trace.operations[last].stream == 0);
  }
}

TEST_CASE("collectives that a script issues itself are counted apart, as one rank sees them") {
  Trace trace = read_trace("traces/torch/fsdp2-tp.jsonl");
  DispatchReport report = dispatch(trace, {});
  CHECK(report.issued["forward"] == CollectiveCounts{{"all_gather", 2}});
  CHECK(report.issued["backward"] == CollectiveCounts{{"all_gather", 2}, {"reduce_scatter", 2}});
  CHECK(report.collectives["forward"] == CollectiveCounts{{"all_reduce", 2}});
  CHECK(report.collectives["backward"] == CollectiveCounts{{"all_reduce", 1}});
  trace = read_trace("traces/torch/hsdp.jsonl");
  report = dispatch(trace, {});
  CHECK(report.issued["backward"] ==
        CollectiveCounts{{"all_gather", 2}, {"all_reduce", 2}, {"reduce_scatter", 2}});
}

}  // namespace
}  // namespace reshard::sim::look_ahead_tests
