// SPDX-License-Identifier: BSD-3-Clause
// What calls compute: right on recorded models and on one call of every operator; and a decision
// that is wrong shows as a wrong element.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/dispatch/values.h"
#include "sim/operators/operators.h"

namespace reshard::sim {
namespace {

std::shared_ptr<const Plan> plan_of(const Request& request) {
  return std::make_shared<const Plan>(make_plan(find_planner("p2p"), request, {}));
}

Trace parsed(const std::string& text) {
  std::istringstream in(text);
  return parse_trace(in, "t.jsonl");
}

struct Run {
  Trace trace;
  DispatchReport report;
};

Run dispatched(Trace trace, DispatchMode mode = DispatchMode::Torch) {
  Run out{std::move(trace), {}};
  DispatchOptions options;
  options.mode = mode;
  options.time_ps = [](const Request& request) {
    return 1'000 + element_count(request.source().local_shape(0)) +
           element_count(request.destination().local_shape(0));
  };
  out.report = dispatch(out.trace, options);
  return out;
}

TEST_CASE("recorded models compute on every rank what they compute as a whole") {
  std::int64_t calls = 0, elements = 0;
  for (const auto& entry : std::filesystem::directory_iterator("traces/torch")) {
    if (entry.path().extension() != ".jsonl") continue;
    for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
      CAPTURE(entry.path().string(), text(mode));
      Run run = dispatched(read_trace(entry.path().string()), mode);
      run.report.findings.clear();
      check_values(run.trace, run.report, plan_of);
      for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
      calls += run.report.calls_computed;
      elements += run.report.elements_compared;
    }
  }
  CHECK(calls > 2000);
  CHECK(elements > 2'000'000);
}

// ---- one call of every operator

// The case's tensors and its call as a trace; empty for partials that no line can declare.
std::string trace_of(const nlohmann::json& asked) {
  nlohmann::json header{{"reshard_trace", 1}, {"meshes", {{"m", asked["mesh"]}}}};
  std::string text = header.dump() + "\n";
  int tensors = 0;
  bool declared = true;
  auto tensor = [&](const nlohmann::json& spec) -> nlohmann::json {
    if (spec.is_null()) return nullptr;
    std::string placements = spec["placements"];
    declared = declared && placements.find("MaskP") == std::string::npos &&
               placements.find("_NormP") == std::string::npos;
    std::string name = "x" + std::to_string(++tensors);
    nlohmann::json line{{"op", "tensor"},           {"tensor", name},
                        {"shape", spec["shape"]},   {"dtype", spec["dtype"]},
                        {"placements", placements}, {"mesh", "m"}};
    if (spec.contains("below")) line["below"] = spec["below"];
    text += line.dump() + "\n";
    return name;
  };
  nlohmann::json in = nlohmann::json::array(), out = nlohmann::json::array();
  for (const nlohmann::json& entry : asked["in"]) {
    if (!entry.is_array()) {
      in.push_back(tensor(entry));
      continue;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const nlohmann::json& item : entry) list.push_back(tensor(item));
    in.push_back(list);
  }
  for (const nlohmann::json& output : asked["expect"]["out"])
    out.push_back(output.is_null() ? nlohmann::json(nullptr)
                                   : nlohmann::json("y" + std::to_string(out.size())));
  nlohmann::json call{{"op", "call"}, {"call", asked["call"]}, {"in", in}, {"out", out}};
  if (asked.contains("attr")) call["attr"] = asked["attr"];
  return declared ? text + call.dump() + "\n" : std::string();
}

// Not computed, or of other shapes than on a GPU, or of too much work for a test.
bool is_left_out(const nlohmann::json& asked) {
  static const std::set<std::string> names{"view.dtype", "_scaled_dot_product_cudnn_attention",
                                           "_scaled_dot_product_efficient_attention"};
  std::string name = asked["call"];
  for (const nlohmann::json& entry : asked["in"])
    if (entry.is_object() && !entry["shape"].empty() && entry["shape"][0] == 4096) return true;
  return names.count(name) > 0 || !computes(name);
}

TEST_CASE("every operator computes on every rank what it computes as a whole") {
  std::ifstream file("tests/torch/data/operators.jsonl");
  std::int64_t calls = 0;
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json asked = nlohmann::json::parse(line);
    if (asked["expect"].contains("refused") || is_left_out(asked)) continue;
    std::string text = trace_of(asked);
    if (text.empty()) continue;
    CAPTURE(line);
    Run run = dispatched(parsed(text));
    check_values(run.trace, run.report, plan_of);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
    calls += run.report.calls_computed;
    names.insert(asked["call"]);
  }
  CHECK(calls > 1200);
  CHECK(names.size() > 400);
}

// ---- a wrong rule shows

std::vector<std::string> wrong_values(const std::string& call, const std::string& shape,
                                      const std::string& placements, const char* said) {
  Run run = dispatched(
      parsed(R"({"reshard_trace": 1, "meshes": {"m": "4"}})"
             "\n"
             R"({"op": "tensor", "tensor": "x", "dtype": "f32", "mesh": "m", "shape": ")" +
             shape + R"(", "placements": ")" + placements + "\"}\n" + call + "\n"));
  run.report.calls[0].decision.outputs[0]->placements = {
      OpPlacement(parse_placements(said, 1, kMaxDims, "said").placements[0])};
  check_values(run.trace, run.report, plan_of);
  std::vector<std::string> out;
  for (const TraceFinding& finding : run.report.findings) out.push_back(finding.what);
  return out;
}

TEST_CASE("a wrong output placement is a wrong element, with operator and index") {
  const char* sum =
      R"({"op": "call", "call": "sum.dim_IntList", "in": ["x"], "attr": {"dim": [0]}, )"
      R"("out": ["y"]})";
  CHECK(wrong_values(sum, "16,8", "S(0)", "P(sum)").empty());
  REQUIRE(wrong_values(sum, "16,8", "S(0)", "P(max)").size() == 1);
  CHECK(wrong_values(sum, "16,8", "S(0)", "P(max)")[0].find(
            "t.jsonl:3: sum.dim_IntList: element 0 of output 0 (f32[8](P(max))) is ") == 0);
  REQUIRE(wrong_values(sum, "16,8", "S(0)", "R").size() == 1);
  CHECK(wrong_values(sum, "16,8", "S(0)", "R")[0] ==
        "t.jsonl:3: sum.dim_IntList: output 0 on rank 1 is not what its copies are");
  CHECK(wrong_values(sum, "16,8", "S(0)", "P(avg)").size() == 1);
}

TEST_CASE("values end with a clear sentence where there is no arithmetic") {
  Run run = dispatched(
      parsed(R"({"reshard_trace": 1, "meshes": {"m": "4"}})"
             "\n"
             R"({"op": "tensor", "tensor": "x", "dtype": "f32", "mesh": "m", "shape": "8",)"
             R"( "placements": "R"})"
             "\n"
             R"({"op": "call", "call": "rrelu_with_noise", "in": ["x", "x"], "out": ["y"]})"
             "\n"));
  CHECK_THROWS_WITH(check_values(run.trace, run.report, plan_of),
                    "t.jsonl:3: rrelu_with_noise is not computed here; "
                    "--data proof leaves values out");
}

}  // namespace
}  // namespace reshard::sim
