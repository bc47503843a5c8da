// SPDX-License-Identifier: BSD-3-Clause
// Known faults of PyTorch are shown where people look: in the table, below the call, and in JSON,
// with both modes of deciding.
#include <catch2/catch.hpp>

#include <sstream>

#include "sim/dispatch/dispatch.h"
#include "sim/report/facts.h"
#include "sim/report/writers/dispatch_writer.h"

namespace reshard::sim {
namespace {

using Catch::Contains;

constexpr const char* kTrace = R"~({"reshard_trace": 1, "meshes": {"m": "4"}}
{"op":"tensor", "tensor":"x", "shape":[16,8], "dtype":"f32", "placements":"P(max)", "mesh":"m"}
{"op": "call", "call": "linalg_vector_norm", "in": ["x"], "attr": {"ord": "inf"}, "out": ["a"]}
{"op": "call", "call": "linalg_vector_norm", "in": ["x"], "attr": {"ord": "inf"}, "out": ["b"]}
{"op": "call", "call": "amax", "in": ["x"], "attr": {"dim": [0]}, "out": ["c"]}
)~";

DispatchReport dispatched(DispatchMode mode) {
  std::istringstream in(kTrace);
  Trace trace = parse_trace(in, "t.jsonl");
  DispatchOptions options;
  options.mode = mode;
  options.time_ps = [](const Request&) { return std::int64_t{1'000}; };
  return dispatch(trace, options);
}

TEST_CASE("what PyTorch gets wrong is told in the table, below the call and in JSON") {
  for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
    DispatchReport report = dispatched(mode);
    std::vector<FaultFacts> faults = fault_facts(report);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].op == "linalg_vector_norm");
    CHECK(faults[0].lines == std::vector<std::int64_t>{3, 4});
    const std::string fault(faults[0].what);
    CHECK_THAT(fault, Contains("PyTorch 2.15 is silently wrong here"));
    CHECK_THAT(dispatch_tables(report, false, 400),
               Contains("lines 3, 4  linalg_vector_norm  " + fault));
    CHECK_THAT(dispatch_tables(report, true, 400), Contains("\n    " + fault + "\n"));
    Json out;
    add_dispatch(report, out);
    CHECK(out["calls"][0]["corrected"] == fault);
    CHECK(out["calls"][2]["corrected"].is_null());
  }
}

TEST_CASE("lines are named up to three, and counted beyond") {
  CHECK(lines_text({4}) == "line 4");
  CHECK(lines_text({4, 9, 12}) == "lines 4, 9, 12");
  CHECK(lines_text({4, 9, 12, 13, 20}) == "lines 4, 9, 12 and 2 more");
}

}  // namespace
}  // namespace reshard::sim
