// SPDX-License-Identifier: BSD-3-Clause
// Values of calls: right on recorded models and on one call of every operator; and a wrong decision
// shows as a wrong element.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "sim/dispatch/random_offsets.h"
#include "sim/dispatch/values/values.h"
#include "sim/operators/operators.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim::values_tests {
namespace {

[[maybe_unused]] const bool kRare = add_rare_rows();

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
    std::string placements = spec["placements"], dtype = spec["dtype"];
    declared = declared && placements.find("MaskP") == std::string::npos &&
               placements.find("_NormP") == std::string::npos &&
               (!dtype.starts_with("f8") || placements.find('P') == std::string::npos) &&
               (dtype != "c64" || placements.find("P(m") == std::string::npos);
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

// A fold by product that is divided afterwards, strided shards as addends: PyTorch's steps do it, a
// request does not.
bool is_no_request(const nlohmann::json& expect) {
  auto has = [](const nlohmann::json& text, const char* part) {
    return text.get<std::string>().find(part) != std::string::npos;
  };
  for (const nlohmann::json& moved : expect["implicit"])
    if (has(moved["to"], "P(sum)") &&
        (has(moved["from"], "P(product)") || has(moved["from"], "_S(")))
      return true;
  return false;
}

// Not decided, or with moves that there are none of; not computed, or of other shapes than on a
// GPU, or of too much work for a test.
bool is_left_out(const nlohmann::json& asked) {
  const nlohmann::json& expect = asked["expect"];
  if (expect.contains("refused") || expect.contains("raises") || is_no_request(expect)) return true;
  if (expect.contains("cost_us") && expect["cost_us"].is_null()) return true;
  static const std::set<std::string> names{"view.dtype", "_scaled_dot_product_cudnn_attention",
                                           "_scaled_dot_product_efficient_attention"};
  std::string name = asked["call"];
  for (const nlohmann::json& entry : asked["in"])
    if (entry.is_object() && !entry["shape"].empty() && entry["shape"][0] == 4096) return true;
  return names.count(name) > 0 || !computes(name);
}

struct Checked {
  std::int64_t calls = 0;
  std::set<std::string> names;
};

Checked check_calls(const char* path) {
  std::ifstream file(path);
  Checked out;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json asked = nlohmann::json::parse(line);
    if (!asked.contains("call")) continue;  // says who wrote the file
    if (is_left_out(asked)) continue;
    std::string text = trace_of(asked);
    if (text.empty()) continue;
    CAPTURE(line);
    Run run = dispatched(parsed(text));
    run.report.findings.clear();  // what is written into a copy is lost, as in PyTorch
    check_values(run.trace, run.report, plan_of);
    for (const TraceFinding& finding : run.report.findings) FAIL_CHECK(finding.what);
    out.calls += run.report.calls_computed;
    out.names.insert(asked["call"]);
  }
  return out;
}

TEST_CASE("operators without rows compute on every rank what they compute as a whole") {
  Checked checked = check_calls("tests/torch/data/operators_decomposed.jsonl");
  CHECK(checked.calls > 600);
  CHECK(checked.names.size() > 45);
}

TEST_CASE("operators whose steps are written compute on every rank what they compute as a whole") {
  Checked checked = check_calls("tests/torch/data/operators_carried.jsonl");
  CHECK(checked.calls > 400);
  CHECK(checked.names.size() > 70);
}

TEST_CASE("every operator computes on every rank what it computes as a whole") {
  Checked checked = check_calls("tests/torch/data/operators.jsonl");
  CHECK(checked.calls > 6000);
  CHECK(checked.names.size() > 400);
}

TEST_CASE("rotary embeddings by complex numbers keep heads cut, and move nothing") {
  Run run = dispatched(parsed(
      R"~({"reshard_trace": 1, "meshes": {"m": "4"}}
{"op": "tensor", "tensor": "x", "shape": [2, 3, 8, 8], "dtype": "f32", )~"
      R"~("placements": "S(2)", "mesh": "m"}
{"op": "tensor", "tensor": "f", "shape": [3, 1, 4], "dtype": "c64", )~"
      R"~("placements": "R", "mesh": "m"}
{"op": "call", "call": "view", "in": ["x"], "attr": {"size": [2, 3, 8, 4, 2]}, "out": ["p"]}
{"op": "call", "call": "view_as_complex", "in": ["p"], "out": ["c"]}
{"op": "call", "call": "mul.Tensor", "in": ["c", "f"], "out": ["t"]}
{"op": "call", "call": "view_as_real", "in": ["t"], "out": ["r"]}
)~"));
  REQUIRE(run.report.calls.size() == 4);
  CHECK(text(*run.report.calls[3].decision.outputs[0]) == "f32[2, 3, 8, 4, 2](S(2))");
  CHECK(run.report.collectives.empty());
  check_values(run.trace, run.report, plan_of);
  CHECK(run.report.findings.empty());
  CHECK(run.report.calls_computed == 4);
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
  const std::string wrong = wrong_values(sum, "16,8", "S(0)", "P(max)")[0];
  CHECK(wrong.find("t.jsonl:3: sum.dim_IntList: element [0] of output 0 (f32[8](P(max))) is ") ==
        0);
  CHECK(wrong.find(" on rank 0, not ") != std::string::npos);
  REQUIRE(wrong_values(sum, "16,8", "S(0)", "R").size() == 1);
  CHECK(wrong_values(sum, "16,8", "S(0)", "R")[0] ==
        "t.jsonl:3: sum.dim_IntList: output 0 on rank 1 differs from its copies");
  CHECK(wrong_values(sum, "16,8", "S(0)", "P(avg)").size() == 1);
}

TEST_CASE("the rank that has the wrong element is named, and where it is in the whole") {
  Run run = dispatched(
      parsed(R"({"reshard_trace": 1, "meshes": {"m": "[[0, 1], [3, 2]]"}})"
             "\n"
             R"x({"op": "tensor", "tensor": "x", "dtype": "f32", "mesh": "m", "shape": "8,3",)x"
             R"x( "placements": "RS(0)", "value": 1})x"
             "\n"
             R"({"op": "call", "call": "cumsum", "in": ["x"], "attr": {"dim": 0}, "out": ["y"]})"
             "\n"));
  DispatchedCall& call = run.report.calls[0];
  REQUIRE(call.moves.size() == 1);
  // As if a sum along a dim could be taken part by part.
  call.decision.wanted[0] = call.in[0]->placements;
  call.decision.outputs[0]->placements = call.in[0]->placements;
  call.moves.clear();
  check_values(run.trace, run.report, plan_of);
  REQUIRE(run.report.findings.size() == 1);
  CHECK(run.report.findings[0].what ==
        "t.jsonl:3: cumsum: element [4,0] of output 0 (f32[8, 3](RS(0))) is 1 on rank 1, not 5");
}

TEST_CASE("what values take grows with ranks, products and bytes") {
  auto effort = [](const char* mesh, const char* shape) {
    Run run = dispatched(parsed(std::string(R"({"reshard_trace": 1, "meshes": {"m": ")") + mesh +
                                R"("}})"
                                "\n"
                                R"({"op": "tensor", "tensor": "x", "dtype": "f32", "mesh": "m", )"
                                R"("shape": ")" +
                                shape +
                                R"(", "placements": "R"})"
                                "\n"
                                R"({"op": "call", "call": "mm", "in": ["x", "x"], "out": ["y"]})"
                                "\n"));
    return values_effort(run.report);
  };
  // 2 x 4^3 operations and 3 tensors of 64 bytes, on 4 ranks and once more.
  CHECK(effort("4", "4,4") == (128 + 16 * 192) * 8);
  CHECK(effort("2", "4,4") == (128 + 16 * 192) * 4);
  CHECK(effort("2", "65536,65536") > kMostValuesEffort);
}

// As PyTorch's OffsetBasedRNGTracker has them.
TEST_CASE("replicas draw alike, shards from places of their own, all ranks end behind the whole") {
  Mesh mesh = parse_mesh("2x3");
  auto offsets = [&](const Shape& shape, OpPlacements placements) {
    return random_offsets({{shape, DType::F32}, std::move(placements)}, mesh);
  };
  const OpPlacement r, s0 = OpPlacement::shard(0), s1 = OpPlacement::shard(1);
  CHECK(offsets({6, 5}, {r, r}).starts == std::vector<std::int64_t>{0, 0, 0, 0, 0, 0});
  CHECK(offsets({6, 5}, {r, r}).after == 32);
  // Shards of 2 x 5, each from a whole block of four.
  CHECK(offsets({6, 5}, {r, s0}).starts == std::vector<std::int64_t>{0, 12, 20, 0, 12, 20});
  // Row-major over the tensor's dims, not over the mesh: 2 parts of dim 0, 3 of dim 1.
  CHECK(offsets({4, 6}, {s0, s1}).starts == std::vector<std::int64_t>{0, 4, 8, 12, 16, 20});
  CHECK(offsets({6, 4}, {s1, s0}).starts == std::vector<std::int64_t>{0, 8, 16, 4, 12, 20});
  // Two axes on one dim: the first shard is taken as the last axis alone cuts it.
  CHECK(offsets({12}, {s0, s0}).starts == std::vector<std::int64_t>{0, 4, 8, 12, 16, 20});
}

TEST_CASE("what is drawn is told by place, and a replica that drew otherwise shows") {
  const std::string head = R"({"reshard_trace": 1, "meshes": {"m": "2x2"}})"
                           "\n"
                           R"x({"op": "tensor", "tensor": "x", "shape": [8, 6], "dtype": "f32", )x"
                           R"x("placements": "S(0)R", "mesh": "m"})x"
                           "\n";
  const std::string draw = R"({"op": "call", "call": "rand_like", "in": ["x"], "out": ["a"]})"
                           "\n"
                           R"({"op": "call", "call": "rand_like", "in": ["x"], "out": ["b"]})"
                           "\n";
  Run run = dispatched(parsed(head + draw));
  CHECK(run.report.calls[0].random_starts == std::vector<std::int64_t>{0, 0, 24, 24});
  CHECK(run.report.calls[1].random_starts == std::vector<std::int64_t>{48, 48, 72, 72});
  check_values(run.trace, run.report, plan_of);
  CHECK(run.report.findings.empty());
  run.report.calls[1].random_starts[3] = 76;
  check_values(run.trace, run.report, plan_of);
  REQUIRE(run.report.findings.size() == 1);
  CHECK(run.report.findings[0].what ==
        "t.jsonl:4: rand_like: output 0 on rank 3 differs from its copies");
}

// ---- attention, as people report it

std::string line_of(const char* name, const char* shape, const char* placements) {
  return fmt::format(
      R"({{"op": "tensor", "tensor": "{}", "shape": [{}], "dtype": "bf16", "placements": "{}", )"
      R"("mesh": "m"}})"
      "\n",
      name, shape, placements);
}

// A call of q, k, v, which are cut by heads, and what follows them.
Run asked(const char* mesh, const char* query, const char* key, const std::string& more,
          const std::string& call) {
  Run out =
      dispatched(parsed(fmt::format(R"({{"reshard_trace": 1, "meshes": {{"m": "{}"}}}})"
                                    "\n",
                                    mesh) +
                        line_of("q", query, "S(1)") + line_of("k", key, "S(1)") +
                        line_of("v", key, "S(1)") + more + R"({"op": "call", )" + call + "}\n"));
  check_values(out.trace, out.report, plan_of);
  return out;
}

TEST_CASE("a mask of queries by keys, torn groups and fewer KV heads compute as the whole") {
  Run masked = asked("2", "2, 8, 16, 8", "2, 8, 16, 8", line_of("b", "16, 16", "R"),
                     R"("call": "scaled_dot_product_attention", "in": ["q", "k", "v", "b"], )"
                     R"("out": ["o"])");
  CHECK(masked.report.findings.empty());
  CHECK(masked.report.calls[0].moves.empty());
  const char* torn = R"("call": "scaled_dot_product_attention", "in": ["q", "k", "v"], )"
                     R"("attr": {"enable_gqa": true}, "out": ["o"])";
  for (const char* query : {"1, 12, 8, 16", "1, 6, 8, 16"}) {
    Run run = asked("2", query, "1, 3, 8, 16", "", torn);
    CHECK(run.report.findings.empty());
    CHECK(!run.report.calls[0].decision.corrected.empty());
  }
  Run flash = asked("4", "1, 8, 8, 16", "1, 4, 8, 16", "",
                    R"("call": "_scaled_dot_product_flash_attention", "in": ["q", "k", "v"], )"
                    R"("attr": {"is_causal": true}, "out": ["o", null, null, null, null, null, )"
                    R"(null, null, null])");
  CHECK(flash.report.findings.empty());
  CHECK(flash.report.calls[0].moves.empty());
}

}  // namespace
}  // namespace reshard::sim::values_tests
