// SPDX-License-Identifier: BSD-3-Clause
// Lines of DebugMode as PyTorch prints them.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/torch/debug_line.h"

namespace reshard {
namespace {

DebugLine read(std::string_view line) { return parse_debug_line(line, "--debug-line"); }

std::string shape_of(std::string_view line, std::string_view mesh) {
  return text(global_shape(read(line), parse_mesh(mesh), "--debug-line"));
}

std::string refusal_of(std::string_view line) {
  try {
    read(line);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("debug lines: every form that PyTorch prints") {
  DebugLine line = read("redistribute_input(t$2: f32[1, 32], trace: S(0)R->S(0)S(1)->RS(1))");
  CHECK(line.dtype == "f32");
  CHECK(text(*line.shape) == "1,32");
  CHECK(line.of_one_rank);
  CHECK(line.from == "S(0)R");
  CHECK(line.to == "RS(1)");

  line = read("    redistribute_input [explicit] (t: bf16[4, 32], trace: P(sum)->R)  ");
  CHECK(line.dtype == "bf16");
  CHECK(line.from == "P(sum)");
  CHECK(line.to == "R");

  line = read("redistribute_input [implicit] (0, R -> P(sum))");
  CHECK_FALSE(line.shape);
  CHECK(line.dtype.empty());
  CHECK(line.from == "R");
  CHECK(line.to == "P(sum)");

  line = read("redistribute_input [implicit] (1, [S(0), R] -> [R, R])");
  CHECK(line.from == "[S(0), R]");
  CHECK(line.to == "[R, R]");

  line = read("redistribute_input(dt: i64[]| R, trace: R->R)");
  CHECK_FALSE(line.of_one_rank);
  CHECK(line.shape->size() == 0);

  line = read("redistribute_input(dt: f32[3, 8]| _S(0, 2)S(1), trace: S(0)R->RR)");
  CHECK(text(*line.shape) == "3,8");
  CHECK(line.from == "S(0)R");

  line = read("redistribute_input(ft: f32[8, 8]{requires_grad=True, a=(1, 2)}, trace: P(sum)->R)");
  CHECK(line.of_one_rank);
  CHECK(line.from == "P(sum)");

  line = read("redistribute_input(t$2: f32[8, 1], trace: S(0)->R)  ->  t$3: f32[64, 1]");
  CHECK(text(*line.shape) == "8,1");
  CHECK(line.to == "R");
}

TEST_CASE("debug lines: a rank's shape is as often the tensor's as axes shard it") {
  CHECK(shape_of("redistribute_input(t: f32[4, 32], trace: S(0)S(1)->RR)", "2x4") == "8,128");
  CHECK(shape_of("redistribute_input(t: f32[4, 32], trace: S(1)S(1)->RR)", "2x4") == "4,256");
  CHECK(shape_of("redistribute_input(t: f32[4, 32], trace: _S(0, 2)S(0)->RR)", "2x4") == "32,32");
  CHECK(shape_of("redistribute_input(t: f32[4, 32], trace: P(sum)R->RR)", "2x4") == "4,32");
  CHECK(shape_of("redistribute_input(dt: f32[4, 32], trace: S(0)S(1)->RR)", "2x4") == "4,32");
  CHECK_THROWS_AS(shape_of("redistribute_input(t: i8[2305843009213693952], trace: S(0)->R)", "4"),
                  InputError);
}

TEST_CASE("debug lines: what is no such line is refused where it stops being one") {
  CHECK(refusal_of("aten::mm(dt: f32[4, 4]| R, dt: f32[4, 4]| R)") ==
        "--debug-line: expected a line of PyTorch's DebugMode that begins with "
        "redistribute_input, found 'aten::mm(dt: f32[4, 4]| R, dt: f32[4, 4]...'");
  for (const char* line :
       {"", "redistribute_input", "redistribute_input(", "redistribute_input(x: f32[4], R->R)",
        "redistribute_input(t f32[4], trace: R->R)", "redistribute_input(t: f32, trace: R->R)",
        "redistribute_input(t: f32[4, trace: R->R)", "redistribute_input(t: f32[4] trace: R->R)",
        "redistribute_input(t: f32[4], trace: R->R", "redistribute_input(t: f32[4], trace: R)",
        "redistribute_input(t: f32[-4], trace: R->R)", "redistribute_input(t: f32[4],",
        "redistribute_input(t: [4], trace: R->R)", "redistribute_input(0x, R -> R)",
        "redistribute_input(t: f32[4], trace: R->R) t$3"}) {
    INFO(line);
    CHECK(refusal_of(line).substr(0, 22) == "--debug-line: expected");
  }
}

}  // namespace
}  // namespace reshard
