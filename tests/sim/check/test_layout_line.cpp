// SPDX-License-Identifier: BSD-3-Clause
// Layouts as frameworks have them, by the number of the element at every place of every buffer.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "tests/sim/check/check_lines.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

TEST_CASE("Megatron's fused rows go head by head and are cut by raw rows") {
  CheckedCopies of = read(with(kHeads,
                               "{'side': 'from', 'buffer': 'qkv', 'mesh': 'tp=2', 'fused': ['q:2 "
                               "k:1 v:1 x2'], 'placements': 'S(0)'}"));
  CHECK(numbers_of(*of.source, 0, "qkv") == rows({0, 3, 6, 9, 24, 27, 36, 39}, 3));
  CHECK(numbers_of(*of.source, 1, "qkv") == rows({12, 15, 18, 21, 30, 33, 42, 45}, 3));
  of = read(with(kHeads,
                 "{'side': 'from', 'buffer': 'qkv', 'mesh': 'tp=4', 'fused': ['q:2 k:1 v:1 x2'], "
                 "'placements': 'S(0)'}"));
  CHECK(numbers_of(*of.source, 1, "qkv") == rows({24, 27, 36, 39}, 3));
}

TEST_CASE("Sections are cut one by one, and KV heads repeated") {
  CheckedCopies of =
      read(with(kHeads,
                "{'side': 'to', 'buffer': 'qkv', 'mesh': 'tp=4', 'ranks': '4-7', 'fused': ['q', 'k "
                "x2 repeat', 'v x2 repeat'], 'placements': 'S(0)'}"));
  CHECK(numbers_of(*of.destination, 4, "qkv") == rows({0, 3, 24, 27, 36, 39}, 3));
  CHECK(numbers_of(*of.destination, 5, "qkv") == rows({6, 9, 24, 27, 36, 39}, 3));
  CHECK(numbers_of(*of.destination, 7, "qkv") == rows({18, 21, 30, 33, 42, 45}, 3));
}

TEST_CASE("TP cuts first, FSDP2 what it left, and a rank may have nothing") {
  std::vector<std::string> five = {"{'tensor': 'w', 'shape': [5, 1], 'dtype': 'bf16'}"};
  CheckedCopies of = read(with(
      five, "{'side': 'from', 'tensor': 'w', 'mesh': 'dp=2,tp=2', 'placements': '_S(0,2)S(0)'}"));
  CHECK(numbers_of(*of.source, 0, "w") == Numbers{0, 1});
  CHECK(numbers_of(*of.source, 1, "w") == Numbers{3});
  CHECK(numbers_of(*of.source, 2, "w") == Numbers{2});
  CHECK(numbers_of(*of.source, 3, "w") == Numbers{4});
  of = read(with(five, "{'side': 'from', 'tensor': 'w', 'mesh': '4', 'placements': 'S(0)'}"));
  CHECK_FALSE(of.source->find(Rank{3}, "w"));
}

TEST_CASE("Interleaved, swapped, transposed, padded and flat buffers") {
  std::vector<std::string> lines = {"{'tensor': 'gate', 'shape': [3, 2], 'dtype': 'bf16'}",
                                    "{'tensor': 'up', 'shape': [3, 2], 'dtype': 'bf16'}"};
  CheckedCopies of =
      read(with(lines, "{'side': 'to', 'buffer': 'b', 'mesh': '1', 'fused': ['gate:1 up:1 x1']}"));
  CHECK(numbers_of(*of.destination, 0, "b") == Numbers{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
  CHECK(of.destination->buffers()[StoredBufferId{0}].parts.size() == 2);
  of = read(with(lines, "{'side': 'to', 'buffer': 'b', 'mesh': '1', 'fused': ['up', 'gate']}"));
  CHECK(numbers_of(*of.destination, 0, "b") == Numbers{6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  of = read(with(lines, "{'side': 'to', 'tensor': 'up', 'mesh': '1', 'order': [1, 0]}"));
  CHECK(numbers_of(*of.destination, 0, "up") == Numbers{6, 8, 10, 7, 9, 11});
  of = read(with(
      lines,
      "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'fused': ['up pad4'], 'placements': 'S(0)'}"));
  CHECK(numbers_of(*of.destination, 1, "b") == Numbers{10, 11, -1, -1});
  of = read(with(
      lines,
      "{'side': 'to', 'buffer': 'b', 'mesh': '2', 'flat': ['gate', 'up'], 'align': 4, 'pad': 4}"));
  CHECK(numbers_of(*of.destination, 0, "b") == Numbers{0, 1, 2, 3, 4, 5, -1, -1});
  CHECK(numbers_of(*of.destination, 1, "b") == Numbers{6, 7, 8, 9, 10, 11, -1, -1});
}

TEST_CASE("Scalars lie by meshes, alone or one after another") {
  std::vector<std::string> lines = {"{'tensor': 's', 'shape': [], 'dtype': 'f32'}",
                                    "{'tensor': 't', 'shape': [], 'dtype': 'f32'}",
                                    "{'side': 'from', 'tensor': 's', 'mesh': '1'}",
                                    "{'side': 'from', 'buffer': 'st', 'mesh': '1', 'ranks': '1', "
                                    "'fused': ['t', 's'], 'dim': 0}"};
  CheckedCopies of = read(lines);
  CHECK(numbers_of(*of.source, 0, "s") == Numbers{0});
  CHECK(numbers_of(*of.source, 1, "st") == Numbers{1, 0});
  // Both in one copy, right and exchanged.
  lines.push_back("{'side': 'to', 'buffer': 'ts', 'mesh': '1', 'ranks': '2', 'fused': ['t', 's']}");
  auto copy = [&](int from, const char* to) {
    return read(
        with(lines, "{'from': {'rank': 1, 'buffer': 'st', 'offset': " + std::to_string(from) +
                        "}, 'to': {'rank': 2, 'buffer': 'ts', " + to + "}"));
  };
  CHECK(copy(0, "'offset': 0}, 'count': 2").proved());
  CHECK(copy(0, "'offset': 1}, 'count': 1").faults.size() == 2);
  CHECK(copy(1, "'offset': 0}, 'count': 1").faults.size() == 2);
}

TEST_CASE("Experts are dealt by rules, sizes and maps from slots, as rows or as blocks") {
  std::vector<std::string> lines = {"{'tensor': 'g', 'shape': [5, 2, 1], 'dtype': 'bf16'}",
                                    "{'tensor': 'u', 'shape': [5, 2, 1], 'dtype': 'bf16'}"};
  auto w13 = [&](int rank, const std::string& map) {
    CheckedCopies of = read(
        with(lines,
             "{'side': 'to', 'buffer': 'w13', 'mesh': 'ep=2,tp=2', 'fused': ['g', 'u'], 'dim': 1, "
             "'placements': 'RS(1)', 'map': {'axis': 'ep', " +
                 map + "}}"));
    return numbers_of(*of.destination, rank, "w13");
  };
  // g has elements 0 to 9, two of each expert, u 10 to 19.
  CHECK(w13(0, "'rule': 'remainder first'") == Numbers{0, 10, 2, 12, 4, 14});
  CHECK(w13(3, "'rule': 'remainder first'") == Numbers{7, 17, 9, 19});
  CHECK(w13(1, "'rule': 'remainder last'") == Numbers{1, 11, 3, 13});
  CHECK(w13(2, "'rule': 'round robin'") == Numbers{2, 12, 6, 16});
  CHECK(w13(2, "'sizes': [4, 1]") == Numbers{8, 18});
  CHECK(w13(0, "'indices': [3, 0, 4, 1, 2, 3]") == Numbers{6, 16, 0, 10, 8, 18});
  CHECK(w13(2, "'indices': [[3, 0, 4, 1, 2], [3]]") == Numbers{6, 16});
  lines = {"{'tensor': 'a', 'shape': [2, 1], 'dtype': 'bf16'}",
           "{'tensor': 'b', 'shape': [2, 1], 'dtype': 'bf16'}",
           "{'tensor': 'c', 'shape': [4, 1], 'dtype': 'bf16'}"};
  CheckedCopies of = read(with(lines,
                               "{'side': 'to', 'buffer': 'e', 'mesh': '2', 'fused': ['a', 'b'], "
                               "'map': {'blocks': 1, 'indices': [1, 0]}, 'pad': [3, 1]}"));
  CHECK(numbers_of(*of.destination, 0, "e") == Numbers{2, 3, -1});
  CHECK(numbers_of(*of.destination, 1, "e") == Numbers{0, 1, -1});
  of = read(with(lines,
                 "{'side': 'to', 'tensor': 'c', 'mesh': '3', 'placements': 'S(0)', 'pad': "
                 "'alike', 'dtype': 'f32', 'convert': true}"));
  CHECK(numbers_of(*of.destination, 2, "c") == Numbers{-1, -1});
  // Megatron's grouped experts: each [in, out], one after another. a is elements 0 and 1, b 2 and
  // 3, c 4 to 7.
  const std::string stack =
      "{'side': 'to', 'buffer': 'e', 'mesh': '2', 'fused': ['a', 'b', 'b', 'a'], 'order': [1, 0], ";
  of = read(with(lines, stack + "'stack': 2, 'map': {'blocks': 2, 'rule': 'even'}}"));
  CHECK(numbers_of(*of.destination, 0, "e") == Numbers{0, 1, 2, 3});
  CHECK(numbers_of(*of.destination, 1, "e") == Numbers{2, 3, 0, 1});
  CHECK(of.destination->buffers()[*of.destination->find(Rank{0}, "e")].shape == Shape{1, 1, 4});
  of = read(with(lines, stack + "'stack': 1, 'pad': [3, 2]}"));
  CHECK(numbers_of(*of.destination, 0, "e") == Numbers{0, 1, -1, -1, -1, -1, 2, 3, -1, -1, -1, -1,
                                                       2, 3, -1, -1, -1, -1, 0, 1, -1, -1, -1, -1});
  check_refused(with(lines, stack + "'stack': 3}"), "divides 4 blocks, found 3");
  check_refused(with(lines, stack + "'stack': 2, 'map': {'blocks': 1, 'rule': 'even'}}"),
                "divides the 1 blocks of an index, found 2");
  of = read(with(lines, stack + "'stack': 1, 'map': {'blocks': 1, 'sizes': [1, 3]}, 'pad': "
                                "'alike'}"));
  CHECK(numbers_of(*of.destination, 0, "e") == Numbers{0, 1, -1, -1, -1, -1});
  CHECK(numbers_of(*of.destination, 1, "e") == Numbers{2, 3, 2, 3, 0, 1});
  check_refused(
      with(lines, "{'side': 'to', 'buffer': 'e', 'mesh': '1', 'fused': ['a', 'c'], 'stack': 1}"),
      "entries of one shape, found [2,1] and [4,1]");
  auto refused = [&](const std::string& map, const std::string& what) {
    check_refused(
        with(lines, "{'side': 'to', 'tensor': 'c', 'mesh': 'ep=2,tp=2', 'map': {" + map + "}}"),
        what);
  };
  refused("'axis': 'dp', 'rule': 'even'", "an axis of the mesh");
  refused("'axis': 2, 'rule': 'even'", "an axis of the mesh");
  refused("'axis': ['ep', 0], 'rule': 'even'", "each axis once");
  refused("'rule': 'odd'", "found 'odd'");
  refused("'sizes': [4], 'rule': 'even'", "expected one of \"rule\", \"sizes\"");
  refused("'sizes': [1, 1, 1, 2]", "add up to 4");
  refused("'indices': [0, 1]", "share evenly");
  refused("'indices': [0, 1, 2, -3]", "found -3");
  refused("'indices': [0, 1, 2, 4]", "below 4, found 4");
  refused("'rule': 'even', 'rows': 3", "3 times the rows, found 4");
  refused("'rule': 'even', 'dim': 2", "a dim of c[4,1], found 2");
  refused("'rule': 'even', 'blocks': 2", "a multiple of 2 blocks, found 1");
  refused("'rule': 'even', 'experts': 2", "experts");
  check_refused(with(lines,
                     "{'side': 'to', 'tensor': 'c', 'mesh': '2', 'placements': 'S(0)', 'map': "
                     "{'rule': 'even'}}"),
                "leave its axes and its dim whole");
}

TEST_CASE("Scales go with their blocks, and a cut through a block is refused") {
  std::vector<std::string> lines = {
      "{'tensor': 'g', 'shape': [6, 5], 'dtype': 'f8e4m3'}",
      "{'tensor': 'u', 'shape': [6, 5], 'dtype': 'f8e4m3'}",
      "{'tensor': 'gs', 'scales': 'g', 'block': [2, 4], 'dtype': 'f32'}",
      "{'tensor': 'us', 'scales': 'u', 'block': [2, 4], 'dtype': 'f32'}"};
  auto cut = [&](int ranks, const char* shared) {
    std::vector<std::string> out = with(
        lines, fmt::format("{{'side': 'to', 'buffer': 'gu', 'mesh': '{}', 'fused': ['g', 'u'], "
                           "'placements': 'S(0)'}}",
                           ranks));
    return with(out, fmt::format("{{'side': 'to', 'buffer': 's', 'scales_of': 'gu'{}}}", shared));
  };
  // gs is elements 60 to 65, us 66 to 71.
  CheckedCopies of = read(cut(3, ""));
  CHECK(numbers_of(*of.destination, 1, "s") == Numbers{62, 63, 68, 69});
  of = read(with(with(lines,
                      "{'side': 'to', 'buffer': 'gu', 'mesh': '1', 'fused': ['g', 'u'], 'order': "
                      "[1, 0], 'stack': 1}"),
                 "{'side': 'to', 'buffer': 's', 'scales_of': 'gu'}"));
  CHECK(numbers_of(*of.destination, 0, "s") ==
        Numbers{60, 62, 64, 61, 63, 65, 66, 68, 70, 67, 69, 71});
  of = read(cut(2, ", 'shared': true"));
  CHECK(numbers_of(*of.destination, 0, "s") == Numbers{60, 61, 62, 63, 66, 67, 68, 69});
  CHECK(numbers_of(*of.destination, 1, "s") == Numbers{62, 63, 64, 65, 68, 69, 70, 71});
  check_refused(cut(2, ""), "g[0:3,:], which ends within block 1 of dim 0 (2 to 4)");
  check_refused(with(lines, "{'side': 'to', 'buffer': 's', 'scales_of': 'gu'}"),
                "a buffer of earlier lines, found 'gu'");
  check_refused({lines[0], "{'tensor': 'gs', 'scales': 'g', 'block': [2], 'dtype': 'f32'}"},
                "each dim of g[6,5]");
  check_refused({lines[0], "{'side': 'to', 'tensor': 'g', 'mesh': '1'}",
                 "{'side': 'to', 'buffer': 's', 'scales_of': 'g'}"},
                "tensors that have scales, found 'g'");
  // Laid out by hand, a rank lacks some.
  std::vector<std::string> by_hand = lines;
  by_hand.push_back("{'side': 'to', 'tensor': 'g', 'mesh': '2', 'placements': 'S(0)'}");
  by_hand.push_back("{'side': 'to', 'tensor': 'gs', 'mesh': '2', 'placements': 'S(0)'}");
  CHECK_THROWS_WITH(read(by_hand), Catch::Contains("rank 1 with g[3:6,:], but without gs[1,:]"));
}

TEST_CASE("Optimizers share what TP left, in flat buckets") {
  // Megatron's order is the reverse of the model's. Only the masters are there.
  std::vector<std::string> lines = {
      "{'tensor': 'fc1', 'shape': [4, 2], 'dtype': 'bf16'}",
      "{'tensor': 'fc2', 'shape': [2, 4], 'dtype': 'bf16'}",
      "{'side': 'named', 'tensor': 'fc1', 'mesh': 'dp=2,tp=2', 'placements': 'RS(0)'}",
      "{'side': 'named', 'tensor': 'fc2', 'mesh': 'dp=2,tp=2', 'placements': 'RS(1)'}"};
  auto shared = [&](const char* more) {
    return with(lines, fmt::format("{{'side': 'from', 'buffer': 'bucket', 'flat_of': ['fc2', "
                                   "'fc1']{}}}",
                                   more));
  };
  CheckedCopies of = read(shared(", 'axis': 'dp', 'dtype': 'f32', 'convert': true"));
  CHECK(of.source->buffers().size() == 4);
  // tp rank 1 has rows 2 and 3 of fc1 (elements 4 to 7) and columns 2 and 3 of fc2 (8 to 15).
  CHECK(numbers_of(*of.source, 1, "bucket") == Numbers{10, 11, 14, 15});
  CHECK(numbers_of(*of.source, 3, "bucket") == Numbers{4, 5, 6, 7});
  CHECK(of.source->buffers().front().dtype == DType::F32);
  of = read(shared(", 'axis': ['dp'], 'align': 3, 'pad': 12"));
  CHECK(numbers_of(*of.source, 0, "bucket") == Numbers{8, 9, 12, 13, -1, -1});
  CHECK(numbers_of(*of.source, 2, "bucket") == Numbers{0, 1, 2, 3, -1, -1});
  check_refused(shared(", 'axis': 'ep'"), "axis: expected axes of the mesh dp=2,tp=2");
  check_refused(shared(", 'axis': 'tp'"), "found another on rank 1 than on rank 0");
  check_refused(shared(""), "axis");
  check_refused(with(lines, "{'side': 'named', 'tensor': 'fc1', 'mesh': '1'}"), "rank 0");
}

TEST_CASE("What is no copy is refused by name") {
  const std::string tensor = "{'tensor': 'w', 'shape': [4], 'dtype': 'bf16'}";
  for (const auto& [field, what] :
       {std::pair("requantize", "quantising"), std::pair("quantize", "quantising"),
        std::pair("add", "adding to a tensor"), std::pair("multiply", "multiplying a tensor"),
        std::pair("swizzle", "a kernel's format"), std::pair("shuffle", "a kernel's format"),
        std::pair("kernel", "a kernel's format")})
    check_refused(
        {tensor, fmt::format("{{'side': 'to', 'tensor': 'w', 'mesh': '1', '{}': 1}}", field)},
        fmt::format("{}: expected copies of elements, found {}", field, what));
  check_refused({tensor,
                 "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'dtype': 'i8', 'convert': "
                 "true}"},
                "expected floating-point dtypes, to convert, found i8 and bf16 w");
}
