// SPDX-License-Identifier: BSD-3-Clause
// The tensors of two sides, joined, and the lines of buffers.
#include <catch2/catch.hpp>
#include <sstream>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/models/files/foreign_layouts.h"

using namespace reshard;
using namespace reshard::sim;
using Tensors = std::vector<ForeignTensor>;

namespace {

ForeignTensor tensor(const std::string& name, const std::string& alias_of = "") {
  return {name, {4, 2}, DType::F32, alias_of};
}

// "a b=a": b is another name of a.
std::string names(const Tensors& from, const Tensors& to) {
  std::string out;
  for (const ForeignTensor& each : joined(from, to))
    out +=
        (out.empty() ? "" : " ") + each.name + (each.alias_of.empty() ? "" : "=" + each.alias_of);
  return out;
}

}  // namespace

TEST_CASE("tensors of both sides are joined by name") {
  CHECK(names({tensor("a"), tensor("b")}, {tensor("c"), tensor("b")}) == "a b c");
  CHECK(names({}, {tensor("c")}) == "c");
  CHECK_THROWS_WITH(joined({tensor("a")}, {{"a", {4, 2}, DType::BF16}}),
                    "tensor 'a': expected the same shape and dtype on both sides, found f32[4,2] "
                    "and bf16[4,2]");
}

TEST_CASE("a name is another one's if each side that has it says so") {
  const Tensors tied{tensor("a"), tensor("b", "a")}, untied{tensor("a"), tensor("b")};
  CHECK(names(tied, tied) == "a b=a");
  CHECK(names(tied, untied) == "a b");
  CHECK(names(untied, tied) == "a b");
  CHECK(names(tied, {tensor("a")}) == "a b=a");
  CHECK(names({tensor("c")}, tied) == "c a b=a");
  // Other groups on the other side, which begin with other names.
  CHECK(names({tensor("b"), tensor("c", "b")}, tied) == "b a c=b");
  CHECK(names({tensor("c", "a"), tensor("a")}, {tensor("a", "0"), tensor("0"), tensor("c", "0")}) ==
        "c a 0");
}

TEST_CASE("names of tensors are written as JSON and read again") {
  const ForeignTensor odd = {"a \"b\\\n\xc3\xa9 x2", {}, DType::I64};
  BoxBuffers buffers("to");
  buffers.add(Rank{5}, odd, box_of(odd.shape));
  ForeignLayouts layouts{{odd}, buffers.lines(), buffers.end_rank(), {}};
  CHECK(layouts.end_rank == 6);
  std::istringstream in(layouts_text(layouts));
  LineReader reader(in, "made");
  ModelLayouts sides = read_sides(reader, "made");
  CHECK(sides.tensors->find(odd.name) != nullptr);
  CHECK(sides.destination->find(Rank{5}, odd.name));
}

TEST_CASE("ranks that have the same box of a tensor are one line") {
  const ForeignTensor w = tensor("w");
  BoxBuffers buffers("from");
  for (int rank : {0, 2, 1, 9}) buffers.add(Rank{rank}, w, {{0, 0}, {2, 2}});
  buffers.add(Rank{3}, w, {{2, 0}, {4, 2}});
  buffers.add(Rank{2}, w, {{2, 0}, {4, 2}});
  CHECK(buffers.lines() ==
        R"({"side": "from", "buffer": "w", "ranks": "0,2,1,9", "shape": [2,2], "dtype": "f32", )"
        R"("parts": [{"tensor": "w", "box": "0:2,0:2"}]})"
        "\n"
        R"({"side": "from", "buffer": "w", "ranks": "3", "shape": [2,2], "dtype": "f32", )"
        R"("parts": [{"tensor": "w", "box": "2:4,0:2"}]})"
        "\n"
        R"({"side": "from", "buffer": "w#2", "ranks": "2", "shape": [2,2], "dtype": "f32", )"
        R"("parts": [{"tensor": "w", "box": "2:4,0:2"}]})"
        "\n");
}

TEST_CASE("tensors that no layout can have are refused") {
  CHECK_THROWS_WITH(
      check_tensor({"a", {1 << 30, 1 << 30, 8}, DType::I8}, "f"),
      "f: tensor 'a': expected at most 2^62 bytes, found i8[1073741824,1073741824,8]");
  CHECK_NOTHROW(check_tensor({"a", {1 << 30, 1 << 30, 4}, DType::I8}, "f"));
  CHECK_THROWS_AS(check_tensor({"a\xc3", {}, DType::I8}, "f"), InputError);
}
