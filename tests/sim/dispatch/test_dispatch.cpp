// SPDX-License-Identifier: BSD-3-Clause
// Traces of calls: what is decided, which redistributions follow from it, and what waits for what.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/errors.h"
#include "sim/dispatch/dispatch.h"

namespace reshard::sim::dispatch_tests {
namespace {

const std::string kHeader = R"({"reshard_trace": 1, "meshes": {"tp": "4", "two": "2x2"}})";

Trace trace_of(const std::vector<std::string>& lines) {
  std::string text = kHeader + "\n";
  for (const std::string& line : lines) text += line + "\n";
  std::istringstream in(text);
  return parse_trace(in, "t.jsonl");
}

std::string tensor(const char* name, const char* shape, const char* placements,
                   const char* mesh = "tp") {
  return std::string(R"({"op": "tensor", "dtype": "f32", "mesh": ")") + mesh + R"(", "tensor": ")" +
         name + R"(", "shape": ")" + shape + R"(", "placements": ")" + placements + "\"}";
}

DispatchReport dispatched(const std::vector<std::string>& lines, Trace* rewritten = nullptr,
                          const DispatchOptions& options = {}) {
  Trace trace = trace_of(lines);
  DispatchReport report = dispatch(trace, options);
  if (rewritten) *rewritten = std::move(trace);
  return report;
}

TEST_CASE("a call's inputs are redistributed before it, and it waits for them") {
  Trace trace;
  DispatchReport report = dispatched(
      {tensor("x", "64,32", "S(0)"), tensor("w", "32,48", "S(0)"),
       R"({"op": "compute", "id": "before", "ranks": "0-3", "duration_ps": 5})",
       R"({"op": "call", "call": "mm", "in": ["x", "w"], "out": ["y"], "duration_ps": 7, )"
       R"("id": "m", "after": "before"})",
       R"({"op": "redistribute", "tensor": "y", "to": "R", "out": "z", "after": "m"})",
       R"({"op": "call", "call": "relu", "in": ["z"], "out": ["r"], "duration_ps": 1})"},
      &trace);
  REQUIRE(report.calls.size() == 3);
  CHECK(text(*report.calls[0].decision.wanted[1]) == "R");
  REQUIRE(report.calls[0].moves.size() == 1);
  CHECK(report.calls[0].moves[0].input == 1);
  CHECK(text(report.calls[0].moves[0].steps.at(0)) == "0:S(0)->R");
  CHECK(report.collectives["forward"] == CollectiveCounts{{"all_gather", 2}});
  // compute, gather of w, mm, gather of y, relu
  REQUIRE(trace.operations.size() == 5);
  auto after = [&](std::size_t op) { return trace.operations[op].after; };
  CHECK(trace.lines[trace.operations[1].line].name == "mm.in1");
  CHECK(after(1) == std::vector{OpId{0}});
  CHECK(after(2) == std::vector{OpId{0}, OpId{1}});
  CHECK(after(3) == std::vector{OpId{2}});
  CHECK(after(4) == std::vector{OpId{3}});
  CHECK(std::get<TraceCompute>(trace.operations[2].body).duration_ps == 7);
}

TEST_CASE("what takes no time is no operation, and those behind it wait for what it waited for") {
  Trace trace;
  DispatchReport report = dispatched(
      {tensor("x", "64,32", "S(0)"), R"({"op": "call", "call": "t", "in": ["x"], "out": ["y"]})",
       R"({"op": "call", "call": "relu", "in": ["y"], "out": ["z"], "duration_ps": 3})",
       R"({"op": "call", "call": "view", "in": ["z"], "attr": {"size": [2048]}, "out": ["v"]})",
       R"({"op": "redistribute", "tensor": "v", "to": "R", "out": "w"})"},
      &trace);
  REQUIRE(trace.operations.size() == 2);
  CHECK(trace.operations[1].after == std::vector{OpId{0}});
  CHECK(text(report.values[3].placements) == "_S(0, 32)");
  CHECK(report.values[3].of_view);
}

TEST_CASE("argmax gathers what each rank found, along the axes that cut what is reduced") {
  Trace trace;
  DispatchReport report = dispatched(
      {tensor("x", "16,8", "S(0)S(1)", "two"),
       R"({"op": "call", "call": "argmax", "in": ["x"], "attr": {"dim": 0}, "out": ["i"]})"},
      &trace);
  CHECK(text(*report.calls[0].decision.wanted[0]) == "S(0)S(1)");
  CHECK(text(report.values[1].placements) == "RS(0)");
  CHECK(report.collectives["forward"] == CollectiveCounts{{"all_gather", 2}});
  // Values, then indices, each in both groups of the axis.
  REQUIRE(trace.operations.size() == 4);
  CHECK(std::get<TraceCollective>(trace.operations[1].body).ranks == std::vector{Rank{1}, Rank{3}});
  CHECK(std::get<TraceCollective>(trace.operations[2].body).bytes == 64);
  CHECK(trace.operations[2].after == std::vector{OpId{0}, OpId{1}});
}

TEST_CASE("the trace's expectations are held to") {
  auto with = [](const char* expect) {
    return dispatched(
               {tensor("x", "16,8", "P(sum)"),
                std::string(R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"], )") +
                    R"("expect": )" + expect + "}"})
        .findings;
  };
  const char* right = R"({"in": ["R"], "out": ["R"]})";
  const char* wrong = R"x({"in": ["P(sum)"]})x";
  CHECK(with(right).empty());
  REQUIRE(with(wrong).size() == 1);
  CHECK(with(wrong)[0].what == "t.jsonl:3: expect: inputs of relu are [R], not [P(sum)]");
}

TEST_CASE("redistributions that nobody wrote are findings where they are asked for") {
  Trace trace = trace_of({tensor("x", "16,8", "P(sum)"),
                          R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"]})"});
  DispatchOptions options;
  options.explicit_only = true;
  DispatchReport report = dispatch(trace, options);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].what ==
        "t.jsonl:3: relu redistributes its input 0 implicitly from P(sum) to R");
}

TEST_CASE("best moves a tensor once to where several calls want it") {
  std::vector<std::string> lines{tensor("x", "8,32", "S(0)")};
  for (const char* name : {"q", "k", "v"})
    lines.push_back(
        std::string(R"({"op": "call", "call": "sort", "attr": {"dim": 0}, "in": ["x"], )") +
        R"("out": [")" + name + R"(", null]})");
  for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
    Trace trace = trace_of(lines);
    DispatchOptions options;
    options.mode = mode;
    options.time_ps = [](const Request&) { return std::int64_t{1'000'000}; };
    DispatchReport report = dispatch(trace, options);
    CHECK(report.collectives["forward"]["all_gather"] == (mode == DispatchMode::Torch ? 3 : 1));
    CHECK(report.calls[2].moves[0].again == (mode == DispatchMode::Best));
  }
}

TEST_CASE("lines on tensors that mean nothing are refused") {
  auto refusal = [](const std::vector<std::string>& lines) -> std::string {
    try {
      (void)dispatched(lines);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  const std::string x = tensor("x", "4", "R");
  const char* relu = R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"]})";
  const char* rely = R"({"op": "call", "call": "rely", "in": ["x"], "out": ["y"]})";
  const char* two = R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y", "z"]})";
  const char* add = R"({"op": "call", "call": "add.Tensor", "in": ["x", "y"], "out": ["z"]})";
  const char* move = R"x({"op": "redistribute", "tensor": "x", "to": "S(1)", "out": "y"})x";
  CHECK(refusal({relu}) ==
        "t.jsonl:2: in: expected the name of a tensor from a line above, found 'x'");
  CHECK(refusal({tensor("x", "4", "S(1)")}).find("t.jsonl:2: placements") == 0);
  CHECK(refusal({tensor("x", "4", "R", "pp")}) ==
        "t.jsonl:2: mesh: expected the name of a mesh of the header, found 'pp'");
  CHECK(refusal({x, tensor("y", "4", "RR", "two"), add}).find("is on another mesh") !=
        std::string::npos);
  CHECK(refusal({x, rely}) ==
        "t.jsonl:3: operator rely has no sharding rule; the nearest that has one is relu");
  CHECK(refusal({x, two}) == "t.jsonl:3: out: relu returns 1 tensors, found one name more");
  CHECK(refusal({x, move}).find("t.jsonl:3: ") == 0);
}

// PyTorch's own counts of the models that were recorded.
TEST_CASE("recorded models are decided as PyTorch decided them, collective by collective") {
  std::ifstream file("traces/torch/expected_counts.json");
  nlohmann::json expected = nlohmann::json::parse(file);
  std::size_t models = 0;
  for (const auto& [name, counts] : expected.items()) {
    // Collectives that the script issues itself are counted apart.
    if (name == "hsdp" || name.starts_with("fsdp2")) continue;
    CAPTURE(name);
    Trace trace = read_trace("traces/torch/" + name + ".jsonl");
    DispatchReport report = dispatch(trace, {});
    for (const TraceFinding& finding : report.findings) FAIL_CHECK(finding.what);
    for (const char* pass : {"forward", "backward", "optimizer"})
      for (const char* kind : {"all_gather", "all_reduce", "reduce_scatter", "all_to_all"}) {
        CAPTURE(pass, kind);
        CHECK(report.collectives[pass][kind] == counts[pass].value(kind, 0));
      }
    ++models;
  }
  CHECK(models >= 20);
}

// ---- operators without a rule

const char* kUnknown =
    R"~({"op": "call", "call": "my_own", "in": ["x", "w"], "out": ["y"], "expect": {"in": )~"
    R"~(["S(0)", "R"], "out": ["S(0)"], "out_shape": [[64, 8]], "out_dtype": ["f32"]}})~";

TEST_CASE("a call without a rule is taken as recorded, and what comes of it is decided") {
  Trace trace;
  DispatchReport report = dispatched(
      {tensor("x", "64,32", "S(0)"), tensor("w", "32,8", "S(0)"), kUnknown,
       R"~({"op": "redistribute", "tensor": "y", "to": "R", "out": "z"})~",
       R"~({"op": "call", "call": "sum.dim_IntList", "in": ["y"], "attr": {"dim": [0]}, )~"
       R"~("out": ["s"]})~"},
      &trace);
  REQUIRE(report.calls.size() == 3);
  CHECK(report.calls[0].recorded == "no rule");
  CHECK(report.calls[0].sized);
  REQUIRE(report.calls[0].moves.size() == 1);
  CHECK(text(report.calls[0].moves[0].steps.at(0)) == "0:S(0)->R");
  CHECK(text(*report.calls[0].decision.outputs[0]) == "f32[64, 8](S(0))");
  CHECK(report.calls[2].recorded.empty());
  CHECK(text(report.calls[2].decision.outputs[0]->placements) == "P(sum)");
  REQUIRE(report.recorded.size() == 1);
  CHECK(report.recorded[0].call == "my_own");
  CHECK(report.recorded[0].count == 1);
  CHECK(report.recorded[0].line == 4);
  CHECK(report.collectives["forward"] == CollectiveCounts{{"all_gather", 2}});
}

TEST_CASE("without sizes, what comes of a call without a rule is taken as recorded, too") {
  DispatchReport report = dispatched(
      {tensor("x", "64,32", "S(0)"),
       R"~({"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
       R"~({"in": ["S(0)"], )~"
       R"~("out": ["S(1)"]}})~",
       R"~({"op": "call", "call": "relu", "in": ["y"], "out": ["r"], "expect": {"in": ["S(1)"], )~"
       R"~("out": ["S(1)"]}})~",
       R"~({"op": "redistribute", "tensor": "r", "to": "R", "out": "q"})~",
       R"~({"op": "call", "call": "relu", "in": ["x"], "out": ["t"]})~",
       R"~({"op": "call", "call": "add.Tensor", "in": ["x", "y"], "out": ["a"], "expect": )~"
       R"~({"in": ["S(1)", "S(1)"], "out": ["S(1)"]}})~"});
  REQUIRE(report.calls.size() == 5);
  CHECK(report.calls[1].recorded == "sizes unknown: line 3 has no out_shape");
  CHECK(report.calls[2].recorded == "sizes unknown: line 4 has no out_shape");
  CHECK(report.calls[2].moves.at(0).steps.empty());
  CHECK(report.calls[3].recorded.empty());
  CHECK(report.calls[4].recorded == "sizes unknown: line 3 has no out_shape");
  CHECK(report.recorded.size() == 4);
  CHECK_THROWS_WITH(
      dispatched({tensor("x", "64,32", "S(0)"),
                  R"~({"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
                  R"~({"in": ["S(0)"], "out": ["S(1)"]}})~",
                  R"~({"op": "call", "call": "relu", "in": ["y"], "out": ["r"]})~"}),
      "t.jsonl:4: relu needs the sizes of its tensors, but line 3, which is taken as recorded, "
      "does not state its results: expect has no out_shape and out_dtype");
}

TEST_CASE("arguments that our rule does not cover are taken as recorded, and refused without") {
  std::string call = R"~({"op": "call", "call": "view.dtype", "in": ["x"], "out": ["y"], )~"
                     R"~("attr": {"dtype": "i8"})~";
  std::string expect = R"~(, "expect": {"in": ["S(0)"], "out": ["S(0)"], "out_shape": )~"
                       R"~([[64, 128]], "out_dtype": ["i8"]}})~";
  std::string next = R"~({"op": "call", "call": "relu", "in": ["y"], "out": ["r"]})~";
  constexpr const char* kWhy = "view.dtype: expected a dtype of the same size";
  for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
    DispatchOptions options;
    options.mode = mode;
    options.time_ps = [](const Request&) { return std::int64_t{1000}; };
    DispatchReport report =
        dispatched({tensor("x", "64,32", "S(0)"), call + expect, next}, nullptr, options);
    REQUIRE(report.calls.size() == 2);
    CHECK(report.calls[0].recorded == kWhy);
    CHECK(report.calls[1].recorded.empty());
    CHECK(text(*report.calls[1].decision.outputs[0]) == "i8[64, 128](S(0))");
    REQUIRE(report.recorded.size() == 1);
    CHECK(report.recorded[0].why == kWhy);
  }
  CHECK_THROWS_WITH(dispatched({tensor("x", "64,32", "S(0)"), call + "}"}),
                    std::string("t.jsonl:3: ") + kWhy);
  // What PyTorch refuses it did not run, whatever the trace says.
  CHECK_THROWS_WITH(
      dispatched({tensor("x", "64,32", "S(0)"),
                  R"~({"op": "call", "call": "unbind.int", "in": ["x"], "out": [], "attr": )~"
                  R"~({"dim": 0}, "expect": {"in": ["S(0)"], "out": []}})~"}),
      Catch::StartsWith("t.jsonl:3: "));
}

TEST_CASE("in place, what is written keeps its sizes") {
  DispatchReport report = dispatched(
      {tensor("x", "64,32", "S(0)"),
       R"~({"op": "call", "call": "my_own_", "in": ["x"], "out": ["x"], "expect": {"in": )~"
       R"~(["S(0)"], "out": ["S(0)"]}})~",
       R"~({"op": "call", "call": "relu", "in": ["x"], "out": ["r"]})~"});
  CHECK(report.calls[0].sized);
  CHECK(text(*report.calls[1].decision.outputs[0]) == "f32[64, 32](S(0))");
}

TEST_CASE("a call without a rule and without what was recorded is refused") {
  CHECK_THROWS_WITH(
      dispatched({tensor("x", "64,32", "S(0)"),
                  R"~({"op": "call", "call": "my_own", "in": ["x"], "out": ["y"]})~"}),
      "t.jsonl:3: operator my_own has no sharding rule");
  CHECK_THROWS_WITH(
      dispatched({tensor("x", "64,32", "S(0)"),
                  R"~({"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
                  R"~({"in": ["S(0)"], "out": ["S(7)"], "out_shape": [[4]], "out_dtype": )~"
                  R"~(["f32"]}})~"}),
      Catch::StartsWith("t.jsonl:3: "));
  CHECK_THROWS_WITH(
      dispatched({tensor("x", "64,32", "S(0)"),
                  R"~({"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
                  R"~({"in": [], "out": ["R"]}})~"}),
      "t.jsonl:3: expect: in: expected 1 placements, one for each tensor, found 0");
}

}  // namespace
}  // namespace reshard::sim::dispatch_tests
