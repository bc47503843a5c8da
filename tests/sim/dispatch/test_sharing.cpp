// SPDX-License-Identifier: BSD-3-Clause
// Tensors that share memory: what is written to a view appears in its tensor and in all that share
// it; if PyTorch has redistributed the tensor before, it does not, and that is detected. What is
// lost and what is kept was observed in PyTorch 2.15 on 4 ranks (LocalTensorMode).
#include <catch2/catch.hpp>

#include <sstream>

#include "core/planners/planner.h"
#include "sim/dispatch/values/values.h"

namespace reshard::sim::sharing_tests {
namespace {

std::shared_ptr<const Plan> plan_of(const Request& request) {
  return std::make_shared<const Plan>(make_plan(find_planner("p2p"), request, {}));
}

// The lines behind the header and w, ones of [16,8] cut along dim 0.
struct Run {
  Trace trace;
  DispatchReport report;
};
Run run(const std::string& lines, DispatchMode mode = DispatchMode::Torch) {
  std::istringstream in(
      R"({"reshard_trace": 1, "meshes": {"m": "4"}})"
      "\n"
      R"x({"op": "tensor", "tensor": "w", "shape": [16, 8], "dtype": "f32", "mesh": "m", )x"
      R"x("placements": "S(0)", "value": 1})x"
      "\n" +
      lines);
  Run out{parse_trace(in, "t.jsonl"), {}};
  DispatchOptions options;
  options.mode = mode;
  options.time_ps = [](const Request& request) {
    return 1'000 + element_count(request.destination().local_shape(0));
  };
  out.report = dispatch(out.trace, options);
  return out;
}

std::string call(const char* name, const char* in, const char* out, const char* attributes = "") {
  return std::string(R"({"op": "call", "call": ")") + name + R"(", "in": [)" + in +
         R"(], "attr": {)" + attributes + R"(}, "out": [)" + out + "]}\n";
}
std::string tensor(const char* name, const char* shape, const char* placements,
                   const char* more = "") {
  return std::string(R"({"op": "tensor", "tensor": ")") + name + R"(", "shape": [)" + shape +
         R"(], "dtype": "f32", "mesh": "m", "placements": ")" + placements + "\"" + more + "}\n";
}
const std::string kSum = call("sum", "\"w\"", "\"s\"");

// As PyTorch decides; by time other moves may be chosen, by which as much is lost.
std::vector<std::string> found(const std::string& lines) {
  std::vector<std::string> out;
  for (const TraceFinding& finding : run(lines).report.findings) out.push_back(finding.what);
  CHECK(run(lines, DispatchMode::Best).report.findings.size() == out.size());
  return out;
}

// What a view is made of, whether PyTorch's own is one of a copy.
struct View {
  const char *call, *out, *attributes;
  bool copies;
};
const View kViews[]{
    {"select.int", "\"v\"", R"("dim": 0, "index": 3)", true},
    {"select.int", "\"v\"", R"("dim": 1, "index": 3)", false},
    {"slice.Tensor", "\"v\"", R"("dim": 0, "start": 3, "end": 5)", true},
    {"slice.Tensor", "\"v\"", R"("dim": 0, "start": 0, "end": null, "step": 2)", true},
    {"slice.Tensor", "\"v\"", R"("dim": 0, "start": 0, "end": 16)", false},
    {"slice.Tensor", "\"v\"", R"("dim": 1, "start": 3, "end": 5)", false},
    {"narrow", "\"v\"", R"("dim": 0, "start": 2, "length": 3)", true},
    {"narrow", "\"v\"", R"("dim": 1, "start": 2, "length": 3)", false},
    {"chunk", R"("v", "u")", R"("dim": 0, "chunks": 2)", true},
    {"chunk", R"("v", "u")", R"("dim": 1, "chunks": 2)", false},
    {"split.Tensor", R"("v", "u")", R"("dim": 0, "split_size": 8)", true},
    {"split.Tensor", R"("v", "u")", R"("dim": 1, "split_size": 4)", false},
    {"split_with_sizes", R"("v", "u")", R"("dim": 0, "split_sizes": [4, 12])", true},
    {"diagonal", "\"v\"", "", true},
    {"unbind.int", R"("v", null, null, null, null, null, null, null)", R"("dim": 1)", false},
    {"t", "\"v\"", "", false},
    {"transpose.int", "\"v\"", R"("dim0": 0, "dim1": 1)", false},
    {"permute", "\"v\"", R"("dims": [1, 0])", false},
    {"view", "\"v\"", R"("size": [4, 4, 8])", false},
    {"view", "\"v\"", R"("size": [128])", false},
    {"unsqueeze", "\"v\"", R"("dim": 1)", false},
    {"expand", "\"v\"", R"("size": [2, 16, 8])", false},
    {"as_strided", "\"v\"", R"("size": [8, 16], "stride": [1, 8])", false},
    {"detach", "\"v\"", "", false},
    {"alias", "\"v\"", "", false},
    {"contiguous", "\"v\"", "", false},
};

TEST_CASE("a write into a view of what was redistributed is lost, and found") {
  for (const View& view : kViews) {
    CAPTURE(view.call, view.attributes);
    std::string lines = call(view.call, "\"w\"", view.out, view.attributes) +
                        call("zero_", "\"v\"", "\"v\"") + kSum;
    std::vector<std::string> findings = found(lines);
    REQUIRE(findings.size() == (view.copies ? 1 : 0));
    if (view.copies)
      CHECK(findings[0] ==
            std::string("t.jsonl:4: zero_ writes into v, which ") +
                std::string(find_operator(view.call).name) +
                " in line 3 made from a copy of w, redistributed from S(0) to R: the write is lost "
                "and w keeps its old value, and sum in line 5 reads w");
    DispatchReport report = run(lines).report;
    for (const TraceFinding& finding : report.findings)
      CHECK(finding.lines == std::vector<std::int64_t>{3, 4, 5});
  }
}

TEST_CASE("every way of writing into a copy is found") {
  const std::string row = call("select.int", "\"w\"", "\"v\"", R"("dim": 0, "index": 3)"),
                    n = tensor("n", "8", "R");
  auto is_lost = [&](const std::string& write) {
    return found(n + row + write + kSum).size() == 1;
  };
  CHECK(is_lost(call("copy_", R"("v", "n")", "\"v\"")));
  CHECK(is_lost(call("add_.Tensor", R"("v", "n")", "\"v\"")));
  CHECK(is_lost(call("mul_.Scalar", "\"v\"", "\"v\"", R"("other": 2)")));
  CHECK(is_lost(call("fill_.Scalar", "\"v\"", "\"v\"", R"("value": 2)")));
  CHECK(is_lost(call("fill_.Scalar", "\"v\"", "", R"("value": 2)")));
  CHECK(is_lost(call("add.out", R"("n", "n", "v")", "\"v\"")));
  CHECK(is_lost(call("_foreach_mul_.Scalar", R"(["n", "v"])", R"("n", "v")", R"("scalar": 2)")));
  CHECK(is_lost(call("normal_", "\"v\"", "\"v\"")));
  // A view of the view, under another name.
  CHECK(is_lost(call("view", "\"v\"", "\"x\"", R"("size": [2, 4])") + call("t", "\"x\"", "\"x\"") +
                call("zero_", "\"x\"", "\"x\"")));
  // What only reads, and what makes a tensor of its own, loses nothing.
  CHECK_FALSE(is_lost(call("mul.Scalar", "\"v\"", "\"v\"", R"("other": 2)")));
  CHECK_FALSE(is_lost(call("clone", "\"v\"", "\"x\"") + call("zero_", "\"x\"", "\"x\"")));
}

TEST_CASE("a copy that was made before a write does not show it") {
  const std::string row = call("select.int", "\"w\"", "\"v\"", R"("dim": 0, "index": 3)"),
                    zero = call("zero_", "\"w\"", "\"w\"");
  CHECK(
      found(row + zero + call("sum", "\"v\"", "\"s\"")) ==
      std::vector<std::string>{
          "t.jsonl:4: zero_ writes to w, of which select.int in line 3 had made a copy, "
          "redistributed from S(0) to R: the write is not in the copy, and sum in line 5 reads v"});
  CHECK(found(row + call("sum", "\"v\"", "\"s\"") + zero).empty());
  CHECK(found(row + zero + row + call("sum", "\"v\"", "\"s\"")).empty());
  // Another row than the one that is written to.
  const std::string other =
      call("narrow", "\"w\"", "\"u\"", R"("dim": 0, "start": 4, "length": 2)");
  CHECK(found(row + call("t", "\"w\"", "\"t\"") +
              call("select.int", "\"t\"", "\"c\"", R"("dim": 0, "index": 1)") +
              call("zero_", "\"c\"", "\"c\"") + call("sum", "\"v\"", "\"s\""))
            .size() == 1);
  CHECK(found(call("relu", "\"w\"", "\"w\"") + row + call("zero_", "\"v\"", "\"v\"") + other +
              call("sum", "\"u\"", "\"s\""))
            .empty());
}

TEST_CASE("what is lost matters where somebody reads it") {
  const std::string made = call("relu", "\"w\"", "\"r\"") +
                           call("select.int", "\"r\"", "\"v\"", R"("dim": 0, "index": 3)") +
                           call("zero_", "\"v\"", "\"v\"");
  CHECK(found(made + call("sum", "\"r\"", "\"s\"")).size() == 1);
  // The copy alone is used; that it is one is told.
  Run alone = run(made + call("sum", "\"v\"", "\"s\""));
  CHECK(alone.report.findings.empty());
  REQUIRE(alone.report.sharing.lost.size() == 1);
  CHECK(alone.report.sharing.lost[0].line == 5);
  CHECK(alone.report.sharing.lost[0].copied_line == 4);
  // A tensor that the trace declares is there for others.
  const std::string row = call("select.int", "\"w\"", "\"v\"", R"("dim": 0, "index": 3)") +
                          call("zero_", "\"v\"", "\"v\"");
  CHECK(found(row).size() == 1);
  // Unless it is overwritten before anybody reads it.
  CHECK(found(tensor("n", "16, 8", "S(0)") + row + call("copy_", R"("w", "n")", "\"w\"") + kSum)
            .empty());
}

TEST_CASE("what a call redistributes for itself and writes to is lost") {
  const char* attributes =
      R"("lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0, "eps": 1e-8)";
  auto step = [&](const char* moments) {
    return found(tensor("m", "16, 8", moments) + tensor("v", "16, 8", moments) +
                 tensor("n", "", "R") + tensor("g", "16, 8", "P(sum)") +
                 call("_fused_adamw_", R"(["w"], ["g"], ["m"], ["v"], [], ["n"])", "", attributes));
  };
  std::vector<std::string> findings = step("R");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0] ==
        "t.jsonl:7: _fused_adamw_ writes into a copy of m, redistributed from R to S(0): the write "
        "is lost and m keeps its old value");
  CHECK(step("S(0)").empty());
  auto norm = [&](const char* x) {
    // By time the input may be brought to where the statistics are.
    return run(tensor("x", "8, 8, 4", x) + tensor("a", "8", "R") + tensor("b", "8", "R") +
               call("native_batch_norm", R"("x", null, null, "a", "b")", R"("y", "c", "d")",
                    R"("training": true, "momentum": 0.1, "eps": 1e-5)"))
        .report.findings.size();
  };
  CHECK(norm("S(1)") == 2);
  CHECK(norm("S(0)") == 0);
}

// ---- values

// Of w when the lines are done.
double sum_after(const std::string& lines, DispatchMode mode = DispatchMode::Torch) {
  Run out = run(
      lines + call("mul.Scalar", "\"w\"", "\"z\"", R"("other": 1)") + call("sum", "\"z\"", "\"s\""),
      mode);
  REQUIRE(out.report.findings.empty());
  double sum = -1;
  check_values(out.trace, out.report, plan_of, {},
               [&](const DispatchedCall& done, std::size_t, const Array& whole) {
                 if (done.op && done.op->name == "sum") sum = values<double>(whole)[0];
               });
  for (const TraceFinding& finding : out.report.findings) FAIL_CHECK(finding.what);
  return sum;
}

// Sums as PyTorch has them.
TEST_CASE("what is written into a view is in its tensor and in all that share it") {
  for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best}) {
    const std::string zero = call("zero_", "\"v\"", "\"v\"");
    for (const View& view : kViews) {
      if (view.copies) continue;
      CAPTURE(view.call, view.attributes);
      Run out = run(call(view.call, "\"w\"", view.out, view.attributes) + zero);
      std::int64_t written = element_count(out.report.values[1].meta.shape);
      if (std::string_view(view.call) == "expand") written /= 2;
      CHECK(sum_after(call(view.call, "\"w\"", view.out, view.attributes) + zero, mode) ==
            static_cast<double>(128 - written));
    }
    const std::string left = call("slice.Tensor", "\"w\"", "\"v\"", R"("dim": 1, "end": 4)"),
                      twice = call("mul_.Scalar", "\"v\"", "\"v\"", R"("other": 2)");
    CHECK(sum_after(left + twice + twice, mode) == 64 + 4 * 64);
    CHECK(sum_after(left + call("mul_.Scalar", "\"v\"", "", R"("other": 2)"), mode) == 64 + 2 * 64);
    // By way of another view, of views of views, and the other way round.
    const std::string t = call("t", "\"w\"", "\"t\""),
                      column = call("select.int", "\"t\"", "\"c\"", R"("dim": 0, "index": 1)");
    CHECK(sum_after(left + t + column + call("zero_", "\"c\"", "\"c\"") + twice, mode) ==
          3 * 16 * 2 + 64);
    CHECK(sum_after(t + column + call("mul_.Scalar", "\"w\"", "\"w\"", R"("other": 3)") +
                        call("add_.Scalar", "\"c\"", "\"c\"", R"("other": 1)"),
                    mode) == 3 * 128 + 16);
    CHECK(sum_after(left + call("_foreach_add_.Scalar", R"(["v"])", "\"v\"", R"("scalar": 1)"),
                    mode) == 128 + 64);
    CHECK(sum_after(left + tensor("n", "16, 4", "S(0)", R"(, "value": 2)") +
                        call("add.out", R"("n", "n", "v")", "\"v\""),
                    mode) == 64 + 4 * 64);
  }
}

TEST_CASE("copies that serve again are none of what was there before a write") {
  // Sums along dim 0 bring w elsewhere; the second one must not take the first one's copy.
  const std::string along = call("cumsum", "\"w\"", "\"y\"", R"("dim": 0)");
  std::string lines = along + call("slice.Tensor", "\"w\"", "\"v\"", R"("dim": 1, "end": 4)") +
                      call("zero_", "\"v\"", "\"v\"") + along;
  for (DispatchMode mode : {DispatchMode::Torch, DispatchMode::Best})
    CHECK(sum_after(lines, mode) == 64);
}

}  // namespace
}  // namespace reshard::sim::sharing_tests
