// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch 2.15 refuses because of other lines, or because of how meshes are named: each line
// was tried there.
#include <catch2/catch.hpp>

#include <sstream>

#include "core/base/errors.h"
#include "sim/dispatch/dispatch.h"

namespace reshard::sim::torch_refusals_tests {
namespace {

// Empty: it goes through.
std::string refusal(const std::string& meshes, const std::string& lines,
                    DispatchMode mode = DispatchMode::Torch) {
  std::istringstream in(R"({"reshard_trace": 1, "meshes": {)" + meshes + "}}\n" + lines);
  Trace trace = parse_trace(in, "t.jsonl");
  DispatchOptions options;
  options.mode = mode;
  options.time_ps = [](const Request& request) {
    return 1'000 + element_count(request.destination().local_shape(0));
  };
  try {
    dispatch(trace, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string tensor(const char* name, const char* shape, const char* placements,
                   const char* mesh = "m", const char* dtype = "f32") {
  return std::string(R"({"op": "tensor", "tensor": ")") + name + R"(", "shape": [)" + shape +
         R"(], "dtype": ")" + dtype + R"(", "mesh": ")" + mesh + R"(", "placements": ")" +
         placements + "\"}\n";
}
std::string indices(const char* name, const char* shape = "4, 8", const char* placements = "R") {
  return tensor(name, shape, placements, "m", "i64");
}
std::string call(const char* name, const char* in, const char* out, const char* attributes = "",
                 const char* more = "") {
  return std::string(R"({"op": "call", "call": ")") + name + R"(", "in": [)" + in +
         R"(], "attr": {)" + attributes + R"(}, "out": [)" + out + "]" + more + "}\n";
}
std::string reduced(const char* name, const char* to = "R") {
  return std::string(R"({"op": "redistribute", "tensor": ")") + name + R"(", "to": ")" + to +
         R"(", "out": "r"})" + "\n";
}

// ---- look-ups whose masks wait

const std::string kTables = tensor("w", "32, 12", "S(0)") + tensor("w2", "32, 12", "S(0)") +
                            tensor("other", "64, 12", "S(0)") + indices("i") + indices("j");

std::string look_up(const char* in, const char* out, const char* attributes = "") {
  return call("embedding", in, out, attributes);
}
bool conflicts(const std::string& lines) {
  std::string what = refusal(R"("m": "4")", kTables + lines);
  CHECK(refusal(R"("m": "4")", kTables + lines, DispatchMode::Best).empty());
  return what.find("MaskBuffer has been materialized with conflicting data") != std::string::npos;
}
bool has_no_mask(const std::string& lines) {
  return refusal(R"("m": "4")", kTables + lines).find("raises AssertionError") != std::string::npos;
}

TEST_CASE("a second look-up of other indices before the first is reduced is refused") {
  const std::string e = look_up(R"("w", "i")", R"("e")"), f = look_up(R"("w", "j")", R"("f")");
  CHECK(refusal(R"("m": "4")", kTables + e + f) ==
        "t.jsonl:8: embedding: PyTorch raises \"MaskBuffer has been materialized with conflicting "
        "data\": it keeps the mask with the decision, and the look-up in line 7, with the same "
        "layouts but other indices, is not reduced yet");
  CHECK(conflicts(e + look_up(R"("w2", "j")", R"("f")")));
  CHECK(conflicts(look_up(R"("w", "i")", R"("e")", R"("padding_idx": 3)") +
                  look_up(R"("w", "j")", R"("f")", R"("padding_idx": 5)")));
  CHECK(conflicts(e + look_up(R"("w", "j")", R"("f")", R"("padding_idx": -1)")));
  CHECK_FALSE(conflicts(e + reduced("e") + f + reduced("f")));
  CHECK_FALSE(conflicts(e + look_up(R"("w", "i")", R"("f")")));
  CHECK_FALSE(conflicts(e + look_up(R"("other", "j")", R"("f")")));
  CHECK_FALSE(conflicts(e + look_up(R"("w", "j")", R"("f")", R"("padding_idx": 3)")));
  // A line that says what PyTorch chose was run by it.
  CHECK_FALSE(
      conflicts(e + call("embedding", R"("w", "j")", R"("f")", "",
                         R"x(, "expect": {"out": ["MaskP(sum, torch.Size([32, 12]), 0)"]})x")));
}

TEST_CASE("gathers of one element along a cut dim wait for their masks, too") {
  const std::string x = tensor("x", "32, 8", "S(0)") + indices("k", "1, 8") + indices("l", "1, 8");
  auto gather = [](const char* in, const char* out) {
    return call("gather", in, out, R"("dim": 0)");
  };
  CHECK(conflicts(x + gather(R"("x", "k")", R"("a")") + gather(R"("x", "l")", R"("b")")));
  CHECK_FALSE(conflicts(x + gather(R"("x", "k")", R"("a")") + reduced("a") +
                        gather(R"("x", "l")", R"("b")")));
  // Of another operator the mask is another.
  CHECK_FALSE(conflicts(tensor("x", "32, 12", "S(0)") + indices("k", "1, 12") +
                        look_up(R"("w", "i")", R"("e")") + gather(R"("x", "k")", R"("a")")));
}

TEST_CASE("a look-up is reduced once, or as often as equal look-ups wait") {
  const std::string e = look_up(R"("w", "i")", R"("e")"), f = look_up(R"("w", "i")", R"("f")");
  CHECK(refusal(R"("m": "4")", kTables + e + reduced("e") + reduced("e")) ==
        "t.jsonl:9: redistribute: PyTorch raises AssertionError: the look-up in line 7 was reduced "
        "in line 8, which released its mask, and is reduced again");
  CHECK(has_no_mask(e + reduced("e", "S(0)") + reduced("e")));
  CHECK(has_no_mask(e + call("relu", "\"e\"", "\"a\"") + call("sigmoid", "\"e\"", "\"b\"")));
  CHECK(has_no_mask(e + call("mul.Tensor", R"("e", "e")", "\"a\"")));
  CHECK(has_no_mask(e + call("clone", "\"e\"", "\"d\"") + reduced("d") + reduced("e")));
  // A view waits for the mask of what it is a view of.
  const std::string view = call("view", "\"e\"", "\"v\"", R"("size": [4, 8, 3, 4])");
  CHECK(has_no_mask(e + view + reduced("v") + reduced("e")));
  CHECK_FALSE(has_no_mask(e + view + reduced("v")));
  CHECK_FALSE(has_no_mask(e + f + reduced("e") + reduced("f")));
  CHECK_FALSE(has_no_mask(e + f + reduced("e") + reduced("e")));
  CHECK(has_no_mask(e + f + reduced("e") + reduced("e") + reduced("f")));
}

TEST_CASE("a table that two axes cut along its rows is refused, but along axes of one rank") {
  auto cut_twice = [](const char* mesh) {
    return refusal(std::string(R"("m": ")") + mesh + "\"", tensor("w", "32, 12", "S(0)S(0)") +
                                                               indices("i", "4, 8", "RR") +
                                                               look_up(R"("w", "i")", R"("e")"));
  };
  CHECK(cut_twice("2x2") ==
        "t.jsonl:4: embedding: PyTorch raises \"MaskBuffer has been materialized with conflicting "
        "data\": two axes shard the dim of the look-up, but it keeps a single mask for both");
  CHECK(cut_twice("4x1").empty());
  CHECK(cut_twice("1x4").empty());
}

// ---- meshes

std::string on_meshes(const char* a, const char* b, const std::string& line,
                      DispatchMode mode = DispatchMode::Torch) {
  std::string placements =
      std::string_view(a).find_first_of(",x") == std::string_view::npos ? "R" : "RR";
  return refusal(std::string(R"("a": ")") + a + R"(", "b": ")" + b + "\"",
                 tensor("x", "16, 16", placements.c_str(), "a") +
                     tensor("y", "16, 16", placements.c_str(), "b") + line,
                 mode);
}

TEST_CASE("meshes of other names are others, as PyTorch compares them") {
  const std::string mm = call("mm", R"("x", "y")", "\"z\"");
  CHECK(on_meshes("ep=8", "dp_shard_cp=8", mm) ==
        "t.jsonl:4: PyTorch does not run mm on inputs with different meshes, found "
        "DeviceMesh((ep=8)) and DeviceMesh((dp_shard_cp=8)): meshes with different names are "
        "different");
  CHECK(on_meshes("ep=8", "dp_shard_cp=8", mm, DispatchMode::Best).empty());
  CHECK(on_meshes("ep=8", "8", mm).find("DeviceMesh((ep=8)) and DeviceMesh((8,))") !=
        std::string::npos);
  CHECK_FALSE(on_meshes("dp=2,tp=4", "ep=2,etp=4", mm).empty());
  CHECK_FALSE(on_meshes("dp=2,tp=4", "2x4", mm).empty());
  CHECK(on_meshes("ep=8", "ep=8", mm).empty());
  CHECK(on_meshes("8", "8", mm).empty());
  CHECK(on_meshes("dp=2,tp=4", "dp=2,tp=4", mm).empty());
}

TEST_CASE("which tensors of a call PyTorch compares") {
  auto runs = [](const char* name, const char* in, const char* out, const char* attributes = "") {
    return on_meshes("ep=8", "dp=8", call(name, in, out, attributes)).empty();
  };
  CHECK(on_meshes("ep=8", "dp=8", call("stack", R"(["x", "y"])", "\"z\"", R"("dim": 0)")) ==
        "t.jsonl:4: all operands of stack must have the same mesh, found DeviceMesh((ep=8)) and "
        "DeviceMesh((dp=8)); PyTorch treats meshes with different names as different");
  CHECK_FALSE(runs("add.Tensor", R"("x", "y")", "\"z\""));
  CHECK_FALSE(runs("copy_", R"("x", "y")", "\"x\""));
  CHECK_FALSE(runs("addcmul", R"("x", "y", "y")", "\"z\""));
  CHECK_FALSE(runs("_foreach_add.List", R"(["x"], ["y"])", "\"z\""));
  CHECK_FALSE(runs("_foreach_add.List", R"(["x", "x"], ["x", "y"])", R"("z", "u")"));
  // Lists are compared position by position or not at all; what is given by keyword is not.
  CHECK(runs("_foreach_add.List", R"(["x", "y"], ["x", "y"])", R"("z", "u")"));
  CHECK(runs("_foreach_mul_.Scalar", R"(["x", "y"])", R"("x", "y")", R"("scalar": 2)"));
  CHECK(runs("_foreach_norm.Scalar", R"(["x", "y"])", R"("z", "u")", R"("ord": 2)"));
  CHECK(runs("cat", R"(["x", "y"])", "\"z\"", R"("dim": 0)"));
  CHECK(runs("add.out", R"("x", "x", "y")", "\"y\""));
}

}  // namespace
}  // namespace reshard::sim::torch_refusals_tests
