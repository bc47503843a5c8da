// SPDX-License-Identifier: BSD-3-Clause
// The estimated duration of calls that do not state one: operations and bytes of the rank with the
// most.
#include <catch2/catch.hpp>

#include <sstream>

#include "sim/dispatch/dispatch.h"

namespace reshard::sim::work_tests {
namespace {

// A memory of 10^9 bytes a second and 10^6 x 1, 10, 100 operations: a byte takes 1,000 ps.
constexpr GpuFigures kGpu{1'000'000'000, 1, 10, 100};

std::string tensor(const std::string& name, const std::string& shape, const std::string& placements,
                   const std::string& dtype = "f32") {
  return R"({"op": "tensor", "mesh": "m", "tensor": ")" + name + R"(", "dtype": ")" + dtype +
         R"(", "shape": ")" + shape + R"(", "placements": ")" + placements + "\"}\n";
}

DispatchedCall last_call(const std::string& lines) {
  std::istringstream in(R"({"reshard_trace": 1, "meshes": {"m": "4"}})"
                        "\n" +
                        lines);
  Trace trace = parse_trace(in, "t.jsonl");
  DispatchOptions options;
  options.gpu = kGpu;
  return dispatch(trace, options).calls.back();
}

void check(const std::string& lines, std::int64_t operations, std::int64_t bytes) {
  CAPTURE(lines);
  Work work = work_of(last_call(lines));
  CHECK(static_cast<std::int64_t>(work.operations) == operations);
  CHECK(work.bytes == bytes);
}

TEST_CASE("operations and bytes are those of the first rank's parts") {
  // Columns cut in 4: [6, 8] x [8, 3]; uneven ones: the first rank has 3 of 10.
  check(tensor("a", "6,8", "R") + tensor("b", "8,12", "S(1)") +
            R"({"op": "call", "call": "mm", "in": ["a", "b"], "out": ["c"]})",
        2 * 6 * 8 * 3, 4 * (48 + 24 + 18));
  check(tensor("a", "6,8", "R") + tensor("b", "8,10", "S(1)") +
            R"({"op": "call", "call": "mm", "in": ["a", "b"], "out": ["c"]})",
        2 * 6 * 8 * 3, 4 * (48 + 24 + 18));
  // What is summed is cut: addends of all of [6, 12].
  check(tensor("a", "6,8", "S(1)") + tensor("b", "8,12", "S(0)") +
            R"({"op": "call", "call": "mm", "in": ["a", "b"], "out": ["c"]})",
        2 * 6 * 2 * 12, 4 * (12 + 24 + 72));
  check(tensor("s", "12", "R") + tensor("a", "6,8", "R") + tensor("b", "8,12", "R") +
            R"({"op": "call", "call": "addmm", "in": ["s", "a", "b"], "out": ["c"]})",
        2 * 6 * 8 * 12, 4 * (12 + 48 + 96 + 72));
  check(tensor("a", "2,6,8", "R") + tensor("b", "2,8,5", "R") +
            R"({"op": "call", "call": "einsum", "in": [["a", "b"]], "out": ["c"], )"
            R"("attr": {"equation": "bij,bjk->bik"}})",
        2 * 2 * 6 * 8 * 5, 4 * (96 + 80 + 60));
  check(tensor("x", "2,3,8,8", "R") + tensor("w", "5,3,3,3", "R") +
            R"({"op": "call", "call": "convolution", "in": ["x", "w", null], "out": ["y"], )"
            R"("attr": {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], )"
            R"("transposed": false, "output_padding": [0, 0], "groups": 1}})",
        2 * (2 * 5 * 8 * 8) * (3 * 3 * 3), 4 * (384 + 135 + 640));
  check(tensor("x", "2,3,8,8", "R") + tensor("w", "5,3,3,3", "R") +
            R"({"op": "call", "call": "conv2d", "in": ["x", "w"], "out": ["y"], )"
            R"("attr": {"padding": [1, 1]}})",
        2 * (2 * 5 * 8 * 8) * (3 * 3 * 3), 4 * (384 + 135 + 640));
  check(tensor("x", "8,8", "S(0)") + R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"]})",
        0, 4 * (16 + 16));
  check(tensor("x", "8,8", "S(0)") + R"({"op": "call", "call": "t", "in": ["x"], "out": ["y"]})", 0,
        0);
}

TEST_CASE("a look-up reads the rows that it gives") {
  check(tensor("w", "1000,4", "R") +
            R"({"op": "tensor", "mesh": "m", "tensor": "i", "dtype": "i64", "shape": "3", )"
            R"("placements": "R", "below": 1000})"
            "\n"
            R"({"op": "call", "call": "embedding", "in": ["w", "i"], "out": ["y"]})",
        0, 3 * 8 + 2 * 3 * 4 * 4);
}

TEST_CASE("products and memory each at their own rate, the slower counts") {
  CHECK(estimated_ps({0, 7}, DType::F32, kGpu) == 7'000);
  CHECK(estimated_ps({1'000, 0}, DType::F64, kGpu) == 1'000'000'000);
  CHECK(estimated_ps({1'000, 0}, DType::F32, kGpu) == 100'000'000);
  CHECK(estimated_ps({1'000, 0}, DType::BF16, kGpu) == 10'000'000);
  CHECK(estimated_ps({1'000, 0}, DType::F16, kGpu) == 10'000'000);
  CHECK(estimated_ps({1, 1'000}, DType::F16, kGpu) == 1'000'000);
}

TEST_CASE("what a line says holds, what it does not is estimated, and it is told which") {
  const std::string x = tensor("x", "8,8", "R");
  DispatchedCall given = last_call(
      x + R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"], "duration_ps": 5})");
  CHECK(given.duration_ps == 5);
  CHECK(text(given.duration_of) == "given");
  DispatchedCall estimated =
      last_call(x + R"({"op": "call", "call": "relu", "in": ["x"], "out": ["y"]})");
  CHECK(estimated.duration_ps == 512'000);
  CHECK(text(estimated.duration_of) == "estimated");
}

TEST_CASE("a machine's GPU has its figures, or its class's, or is not known") {
  Machine machine;
  CHECK_FALSE(gpu_figures(machine));
  machine.compute_capability = 90;
  CHECK(gpu_figures(machine)->memory_bytes_per_s == 3'350'000'000'000);
  CHECK(gpu_figures(machine)->mega_f16 == 989'400'000);
  machine.set(Figure::GpuMemory, 4'800'000'000'000);
  machine.set(Figure::GpuF64, 1);
  machine.set(Figure::GpuF32, 2);
  machine.set(Figure::GpuF16, 3);
  GpuFigures own = *gpu_figures(machine);
  CHECK(own.memory_bytes_per_s == 4'800'000'000'000);
  CHECK(own.mega_f64 == 1);
  CHECK(own.mega_f32 == 2);
  CHECK(own.mega_f16 == 3);
}

}  // namespace
}  // namespace reshard::sim::work_tests
