// SPDX-License-Identifier: BSD-3-Clause
// What recordings of real models showed: look-ups through views, infinite addends, costs of the
// machine that a trace was recorded on, and a choice over the whole trace that is never the longer
// one.
#include <catch2/catch.hpp>

#include <sstream>

#include "core/planners/planner.h"
#include "sim/dispatch/dispatch.h"
#include "sim/dispatch/values/values.h"

namespace reshard::sim::recorded_tests {
namespace {

std::string tensor(const std::string& name, const std::string& shape, const std::string& placements,
                   const std::string& rest = "", const std::string& dtype = "f32") {
  return R"({"op": "tensor", "mesh": "m", "tensor": ")" + name + R"(", "shape": ")" + shape +
         R"(", "dtype": ")" + dtype + R"(", "placements": ")" + placements + "\"" + rest + "}\n";
}

std::string call(const std::string& op, const std::string& in, const std::string& out,
                 const std::string& rest = "") {
  return R"({"op": "call", "call": ")" + op + R"(", "in": [)" + in + R"(], "out": [)" + out + "]" +
         rest + "}\n";
}

std::string redistribute(const std::string& name, const std::string& to) {
  return R"({"op": "redistribute", "tensor": ")" + name + R"(", "to": ")" + to + R"(", "out": ")" +
         name + "_moved\"}\n";
}

Trace trace_of(const std::string& lines, const std::string& header = "") {
  std::istringstream in(R"({"reshard_trace": 1, "meshes": {"m": "4"})" + header + "}\n" + lines);
  return parse_trace(in, "t.jsonl");
}

struct Run {
  Trace trace;
  DispatchReport report;
};

Run run_of(Trace trace, const DispatchOptions& options = {}) {
  Run out{std::move(trace), {}};
  out.report = dispatch(out.trace, options);
  return out;
}

void check(Run& run) {
  check_values(run.trace, run.report, [](const Request& request) {
    return std::make_shared<const Plan>(make_plan(find_planner("p2p"), request, {}));
  });
}

// ---- look-ups that wait for their sum

// A table of 64 rows that is cut by them, looked up by indices of that shape, then one more line.
Run looked_up(const std::string& indices, const std::string& line, std::int64_t width = 32) {
  return run_of(trace_of(tensor("w", "64," + std::to_string(width), "S(0)") +
                         tensor("i", indices, "R", R"(, "below": 64)", "i64") +
                         call("embedding", R"("w", "i")", R"("x")") + line +
                         redistribute("y", "R")));
}

TEST_CASE("a view of a masked look-up stays one where the dims of its indices do") {
  struct Case {
    const char *indices, *call, *attributes;
    bool stays;
  };
  // As PyTorch 2.15 masks rightly or not; where it fails, or masks others' rows, it is summed
  // first.
  const Case cases[]{
      {"4,8", "view", R"("size": [4, 8, 32])", true},
      {"4,8", "view", R"("size": [4, 8, 4, 8])", true},
      {"4,8", "view", R"("size": [32, 32])", false},
      {"4,8", "view", R"("size": [4, 256])", false},
      {"4,8", "view", R"("size": [1024])", false},
      {"4,8", "view", R"("size": [2, 2, 8, 32])", false},
      {"4,8", "_unsafe_view", R"("size": [32, 32])", false},
      {"4,8", "reshape", R"("shape": [4, 8, -1])", true},
      {"4,8", "flatten.using_ints", R"("start_dim": 0, "end_dim": 1)", false},
      {"4,8", "unflatten.int", R"("dim": -1, "sizes": [4, 8])", true},
      {"4,8", "transpose.int", R"("dim0": 1, "dim1": 2)", false},
      {"4,8", "transpose.int", R"("dim0": 0, "dim1": 1)", false},
      {"8,8", "transpose.int", R"("dim0": 0, "dim1": 1)", false},  // PyTorch: wrong in silence
      {"4,8", "permute", R"("dims": [0, 1, 2])", true},
      {"4,8", "permute", R"("dims": [2, 0, 1])", false},
      {"8,8", "movedim.int", R"("source": 0, "destination": 1)", false},
      {"4,8", "unsqueeze", R"("dim": 0)", false},
      {"4,8", "unsqueeze", R"("dim": 2)", true},
      {"4,8", "unsqueeze", R"("dim": -1)", true},
      {"1,8", "squeeze", "", false},
      {"4,8", "squeeze", "", true},
      {"1,8", "squeeze.dim", R"("dim": 0)", false},
      {"4,8", "expand", R"("size": [3, 4, 8, 32])", false},
      {"1,8", "expand", R"("size": [4, 8, 32])", false},
      {"4,8", "expand", R"("size": [4, 8, 32])", true},
      {"4,8", "repeat", R"("repeats": [2, 1, 1])", false},
      {"8", "view", R"("size": [8, -1])", true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.indices, c.call, c.attributes);
    Run run = looked_up(c.indices, call(c.call, R"("x")", R"("y")",
                                        std::string(R"(, "attr": {)") + c.attributes + "}"));
    const Decision& decision = run.report.calls.at(1).decision;
    const char* expected = c.stays ? "MaskP(sum, torch.Size([64, 32]), 0)" : "R";
    CHECK(text(*decision.wanted.at(0)) == expected);
    CHECK(text(decision.outputs.at(0)->placements) == expected);
    CHECK(decision.corrected.empty() == c.stays);
    check(run);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
    CHECK(run.report.calls_computed == 2);
  }
}

TEST_CASE("what is no view sums a masked look-up first, and stacks keep it behind its indices") {
  struct Case {
    const char *call, *in, *attributes, *expected;
  };
  const Case cases[]{
      {"detach", R"("x")", "", "R"},
      {"clone", R"("x")", "", "R"},
      {"t", R"("x")", "", "R"},
      {"slice.Tensor", R"("x")", R"("dim": 0, "start": 1)", "R"},
      {"select.int", R"("x")", R"("dim": 0, "index": 1)", "R"},
      {"mul.Scalar", R"("x")", R"("other": 2.0)", "R"},
      {"neg", R"("x")", "", "R"},
      {"stack", R"(["x"])", R"("dim": 0)", "R"},
      {"stack", R"(["x", "x"])", R"("dim": -1)", "MaskP(sum, torch.Size([64, 32]), 0)"}};
  for (const Case& c : cases) {
    CAPTURE(c.call, c.attributes);
    Run run = looked_up(
        "8", call(c.call, c.in, R"("y")", std::string(R"(, "attr": {)") + c.attributes + "}"));
    CHECK(text(run.report.calls.at(1).decision.outputs.at(0)->placements) == c.expected);
    check(run);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
  }
}

TEST_CASE("a column of a look-up by gather") {
  auto gathered = [](const char* view, const char* attributes) {
    Run run = run_of(
        trace_of(tensor("x", "8,64", "S(1)") + tensor("i", "8,1", "R", R"(, "below": 64)", "i64") +
                 call("gather", R"("x", "i")", R"("g")", R"(, "attr": {"dim": 1})") +
                 call(view, R"("g")", R"("y")", std::string(R"(, "attr": {)") + attributes + "}") +
                 redistribute("y", "R")));
    check(run);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
    return text(run.report.calls.at(1).decision.outputs.at(0)->placements);
  };
  CHECK(gathered("squeeze.dim", R"("dim": 1)") == "R");  // PyTorch: too many indices
  CHECK(gathered("unsqueeze", R"("dim": 2)") == "MaskP(sum, torch.Size([8, 64]), 1)");
}

// ---- infinite addends

TEST_CASE("infinite addends of both signs are no fault, a rule that is none is one") {
  std::string lines = tensor("a", "4", "R", R"(, "value": 200)") + tensor("b", "4", "P(sum)") +
                      call("exp", R"("a")", R"("e")") +
                      call("mul.Tensor", R"("e", "b")", R"("c")") + redistribute("c", "R");
  Run run = run_of(trace_of(lines));
  CHECK(text(run.report.calls.at(1).decision.outputs.at(0)->placements) == "P(sum)");
  check(run);
  for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
  CHECK(run.report.elements_cancelled > 0);
  CHECK(run.report.elements_cancelled <= 4);

  // As if exponentials added up.
  run = run_of(trace_of(tensor("x", "4", "P(sum)", R"(, "value": 0)") +
                        tensor("y", "4", "P(sum)", R"(, "value": 1)") +
                        call("sub.Tensor", R"("x", "y")", R"("d")") +
                        call("exp", R"("d")", R"("z")")));
  DispatchedCall& exp = run.report.calls.at(1);
  exp.decision.wanted.at(0) = exp.in.at(0)->placements;
  exp.decision.outputs.at(0)->placements = exp.in.at(0)->placements;
  exp.moves.clear();
  check(run);
  CHECK(run.report.findings.size() == 1);
}

// ---- norms of the largest elements

TEST_CASE("the largest of norms has the largest norm") {
  auto norm_of = [](const std::string& before, const std::string& name) {
    Run run = run_of(trace_of(
        tensor("x", "16,8", "S(0)") + before +
        call("linalg_vector_norm", "\"" + name + "\"", R"("n")", R"(, "attr": {"ord": "inf"})") +
        redistribute("n", "R")));
    check(run);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
    const Decision& decision = run.report.calls.at(run.report.calls.size() - 2).decision;
    return text(*decision.wanted.at(0)) + " -> " + text(decision.outputs.at(0)->placements) +
           (decision.corrected.empty() ? "" : ", corrected");
  };
  const std::string norms =
      call("_foreach_norm.Scalar", R"(["x"])", R"("p")", R"(, "attr": {"ord": "inf"})") +
      call("stack", R"(["p", "p"])", R"("s")");
  CHECK(norm_of(norms, "s") == "P(max) -> P(max)");
  const std::string largest = call("amax", R"("x")", R"("m")", R"(, "attr": {"dim": [0]})");
  CHECK(norm_of(largest, "m") == "R -> R, corrected");
  const std::string magnitudes = call("abs", R"("x")", R"("a")") +
                                 call("amax", R"("a")", R"("m")", R"(, "attr": {"dim": [0]})");
  CHECK(norm_of(magnitudes, "m") == "P(max) -> P(max)");
  // What is written into it may be below zero, and its view sees that, too.
  const std::string written = magnitudes + call("detach", R"("m")", R"("v")") +
                              call("amax", R"("x")", R"("b")", R"(, "attr": {"dim": [0]})") +
                              call("copy_", R"("m", "b")", R"("w")");
  for (const char* name : {"m", "v", "w"}) CHECK(norm_of(written, name) == "R -> R, corrected");
}

// ---- what was recorded where

// 64 KiB, which costs more to gather than to cut otherwise where every rank has a host of its own.
const std::string kBatchNorm =
    tensor("x", "8,8,16,16", "S(0)") + tensor("w", "8", "R") +
    call("native_batch_norm", R"("x", "w", "w", "w", "w")", R"("y", "m", "s")",
         R"x(, "attr": {"training": false, "momentum": 0.1, "eps": 1e-05}, "expect": {"in": )x"
         R"x(["S(1)", "S(0)", "S(0)", "S(0)", "S(0)"], "out": ["S(1)", "S(0)", "S(0)"]})x");

TEST_CASE("expectations are priced as on the machine on which they were recorded") {
  auto recorded = [](const std::string& header) {
    return run_of(trace_of(kBatchNorm, header)).report;
  };
  DispatchReport on_cpu =
      recorded(R"(, "recorded": {"torch": "2.15.0", "device": "cpu", "devices_per_host": 1})");
  CHECK(on_cpu.findings.empty());
  CHECK(on_cpu.priced_as == PricedAs::Recorded);
  CHECK(on_cpu.devices_per_host == 1);

  DispatchReport on_gpus = recorded(R"(, "recorded": {"devices_per_host": 8})");
  REQUIRE(on_gpus.findings.size() == 2);
  CHECK(on_gpus.findings[0].what ==
        "t.jsonl:4: expect: inputs of native_batch_norm are [R, R, R, R, R], not [S(1), S(0), "
        "S(0), S(0), S(0)]");

  // Older recordings do not say it: as more of what they expect is met.
  DispatchReport unstated = recorded("");
  CHECK(unstated.findings.empty());
  CHECK(unstated.priced_as == PricedAs::Fitted);
  CHECK(unstated.devices_per_host == 1);

  // As wrong on either: the job's own machine.
  std::string neither = kBatchNorm;
  const std::string first = "[\"S(1)\"";
  neither.replace(neither.find(first), first.size(), "[\"S(0)\"");
  DispatchReport unmet = run_of(trace_of(neither, "")).report;
  CHECK_FALSE(unmet.findings.empty());
  CHECK(unmet.priced_as == PricedAs::Topology);
  CHECK(unmet.devices_per_host == 8);

  // Where nothing is expected the job's own machine decides.
  std::string free = kBatchNorm.substr(0, kBatchNorm.find(R"(, "expect")")) + "}\n";
  DispatchReport as_topology =
      run_of(trace_of(free, R"(, "recorded": {"devices_per_host": 1})")).report;
  CHECK(as_topology.priced_as == PricedAs::Topology);
  CHECK(as_topology.devices_per_host == 8);
  CHECK(text(*as_topology.calls.at(0).decision.wanted.at(0)) == "R");
}

TEST_CASE("what a trace was recorded on is read with care") {
  auto refused = [](const char* recorded) {
    return trace_of("", std::string(R"(, "recorded": )") + recorded);
  };
  CHECK_THROWS_WITH(refused("1"), Catch::StartsWith("t.jsonl:1: recorded: expected an object"));
  CHECK_THROWS_WITH(refused("{}"), Catch::Contains("devices_per_host"));
  CHECK_THROWS_WITH(refused(R"({"devices_per_host": 0})"), Catch::Contains("devices_per_host"));
  CHECK_THROWS_WITH(refused(R"({"devices_per_host": 1, "gpus": 1})"), Catch::Contains("gpus"));
}

// ---- never longer than PyTorch's own

TEST_CASE("the way that is the longer one as a whole is not taken") {
  const std::string lines = tensor("a", "64,64", "R") + tensor("b", "64,64", "S(0)") +
                            call("mm", R"("a", "b")", R"("c")") + call("relu", R"("c")", R"("d")") +
                            redistribute("d", "R");
  DispatchOptions options;
  options.time_ps = [](const Request& request) {
    return 1'000 + element_count(request.destination().local_shape(0));
  };
  options.figures = [&](const Request& request) -> MoveFigures {
    return {options.time_ps(request), 0, 0};
  };
  DispatchReport torch = run_of(trace_of(lines), options).report;
  options.mode = DispatchMode::Best;
  std::vector<std::int64_t> times{30, 20, 10};  // of the choices, of PyTorch's with copies, alone
  std::size_t asked = 0;
  options.trace_ps = [&](const Trace& trace) {
    CHECK_FALSE(has_operators(trace));
    return times.at(asked++);
  };
  DispatchReport best = run_of(trace_of(lines), options).report;
  CHECK(asked == 3);
  REQUIRE(best.calls.size() == torch.calls.size());
  for (std::size_t i = 0; i < best.calls.size(); ++i)
    CHECK(best.calls[i].decision.wanted == torch.calls[i].decision.wanted);
  CHECK(best.regret->rows.empty());
}

}  // namespace
}  // namespace reshard::sim::recorded_tests
