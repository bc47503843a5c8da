// SPDX-License-Identifier: BSD-3-Clause
// Calls whose values are not computed, and what depends on them: left out, and reported.
#include <catch2/catch.hpp>
#include <sstream>

#include "core/planners/planner.h"
#include "sim/dispatch/values/values.h"

namespace reshard::sim {
namespace {

DispatchReport checked(const std::string& text) {
  std::istringstream in(text);
  Trace trace = parse_trace(in, "t.jsonl");
  DispatchReport out = dispatch(trace, {});
  check_values(trace, out, [](const Request& request) {
    return std::make_shared<const Plan>(make_plan(find_planner("p2p"), request, {}));
  });
  return out;
}

TEST_CASE("values are left out from a call without a rule on, and go on where it is not") {
  DispatchReport report = checked(
      R"~({"reshard_trace": 1, "meshes": {"m": "4"}}
{"op": "tensor", "tensor": "x", "shape": [8, 4], "dtype": "f32", )~"
      R"~("placements": "S(0)", "mesh": "m"}
{"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
      R"~({"out": ["S(0)"], "out_shape": [[8, 4]], "out_dtype": ["f32"]}}
{"op": "call", "call": "relu", "in": ["y"], "out": ["z"]}
{"op": "redistribute", "tensor": "z", "to": "R", "out": "w"}
{"op": "call", "call": "relu", "in": ["x"], "out": ["v"]}
)~");
  CHECK(report.findings.empty());
  CHECK(report.calls_left_out == 3);
  CHECK(report.values_left_out == "my_own of line 3, and what depends on it");
  CHECK(report.calls_computed == 1);
}

TEST_CASE("values are left out, and it is said, where there is no arithmetic") {
  DispatchReport report =
      checked(R"({"reshard_trace": 1, "meshes": {"m": "4"}})"
              "\n"
              R"({"op": "tensor", "tensor": "x", "dtype": "f32", "mesh": "m", "shape": "8",)"
              R"( "placements": "R"})"
              "\n"
              R"({"op": "call", "call": "rrelu_with_noise", "in": ["x", "x"], "out": ["y"]})"
              "\n");
  CHECK(report.calls_left_out == 1);
  CHECK(report.values_left_out == "rrelu_with_noise of line 3, and what depends on it");
}

TEST_CASE("operators that are not computed are named, each with its first line, and counted") {
  DispatchReport report = checked(
      R"~({"reshard_trace": 1, "meshes": {"m": "4"}}
{"op": "tensor", "tensor": "x", "shape": [8, 4], "dtype": "f32", )~"
      R"~("placements": "S(0)", "mesh": "m"}
{"op": "call", "call": "rrelu_with_noise", "in": ["x", "x"], "out": ["a"]}
{"op": "call", "call": "relu", "in": ["a"], "out": ["b"]}
{"op": "call", "call": "rrelu_with_noise", "in": ["b", "x"], "out": ["c"]}
{"op": "call", "call": "my_own", "in": ["x"], "out": ["y"], "expect": )~"
      R"~({"out": ["S(0)"], "out_shape": [[8, 4]], "out_dtype": ["f32"]}}
{"op": "call", "call": "relu", "in": ["x"], "out": ["v"]}
)~");
  CHECK(report.findings.empty());
  CHECK(report.calls_computed == 1);
  CHECK(report.calls_left_out == 4);
  CHECK(report.values_left_out ==
        "2 calls of rrelu_with_noise from line 3 on, my_own of line 6, and what depends on them");
}

}  // namespace
}  // namespace reshard::sim
