// SPDX-License-Identifier: BSD-3-Clause
// Mistakes in numbers of layers, experts and indices, in what dim is cut, and in the order of flat
// tensors: each is named where it explains all, and not where a single copy goes wrong.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/check/check_report.h"
#include "tests/sim/check/check_lines.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

using Lines = std::vector<std::string>;

std::set<std::string> mistakes(const Lines& lines) {
  std::set<std::string> out;
  for (const Finding& finding : report_of(read(lines)).findings) out.insert(finding.mistake);
  return out;
}

std::string copy(int from, const std::string& read, int to, const std::string& written) {
  return fmt::format("{{'from': {{'rank': {}, {}}}, 'to': {{'rank': {}, {}}}}}", from, read, to,
                     written);
}
std::string buffer(const std::string& name) { return fmt::format("'buffer': '{}'", name); }

// `count` of layers or experts of two tensors; number i of the destination gets number of(i).
// Ranks 0, 1, ... have `each` at the source, the ranks after them at the destination.
struct Numbered {
  std::string name;
  int count, each;
  int ranks() const { return (count + each - 1) / each; }

  Lines layouts() const {
    Lines out;
    for (int i = 0; i < count; ++i)
      for (const char* tensor : {"up", "down"})
        out.push_back(fmt::format("{{'tensor': '{}.{}.{}', 'shape': [2, 2], 'dtype': 'bf16'}}",
                                  name, i, tensor));
    for (bool source : {true, false})
      for (int i = 0; i < count; ++i)
        for (const char* tensor : {"up", "down"})
          out.push_back(fmt::format(
              "{{'side': '{}', 'tensor': '{}.{}.{}', 'mesh': '1', 'ranks': '{}'}}",
              source ? "from" : "to", name, i, tensor, i / each + (source ? 0 : ranks())));
    return out;
  }

  Lines copies(const std::function<int(int)>& of) const {
    Lines out = layouts();
    for (int i = 0; i < count; ++i)
      for (const char* tensor : {"up", "down"})
        out.push_back(copy(of(i) / each, buffer(fmt::format("{}.{}.{}", name, of(i), tensor)),
                           ranks() + i / each, buffer(fmt::format("{}.{}.{}", name, i, tensor))));
    return out;
  }
};

}  // namespace

TEST_CASE("Layers and experts that are taken for those of other numbers") {
  const Numbered layers{"layers", 4, 2}, experts{"experts", 6, 3};
  CHECK(mistakes(layers.copies([](int i) { return i; })).empty());
  CHECK(mistakes(layers.copies([](int i) { return (i + 1) % 4; })) ==
        std::set<std::string>{"the numbers of layers are shifted by 1: layers.0 gets layers.1"});
  CHECK(mistakes(experts.copies([](int i) { return i % 2 * 3 + i / 2; })) ==
        std::set<std::string>{
            "experts are given to 2 ranks in ranges, where each has every so many"});
  CHECK(mistakes(experts.copies([](int i) { return i % 3 * 2 + i / 3; })) ==
        std::set<std::string>{"experts are given to 2 ranks in turn, where each has a range"});
  CHECK(mistakes(experts.copies([](int i) { return i % 3; })) ==
        std::set<std::string>{"local numbers of experts are taken for global ones: rank 3 gets "
                              "experts.0 for experts.3"});
  const std::vector<int> map = {4, 1, 0, 3, 2, 5};
  CHECK(mistakes(experts.copies([&](int i) { return map[to_index(i)]; })) ==
        std::set<std::string>{
            "experts are numbered by another map: rank 2 gets experts.4 for experts.0"});
  // One tensor of one layer is something else.
  Lines one = layers.copies([](int i) { return i; });
  one.back() = copy(0, buffer("layers.0.down"), 3, buffer("layers.3.down"));
  for (const std::string& mistake : mistakes(one))
    CHECK_THAT(mistake, !Catch::Contains("number") && !Catch::Contains("divided"));
}

TEST_CASE("Layers that are divided otherwise among stages") {
  // The destination has layers 0 to 1 and 2 to 3; the copies are for stages of 1 and 3.
  const Numbered layers{"layers", 4, 2};
  Lines lines = layers.copies([](int i) { return i; });
  for (std::string& line : lines)
    for (const char* tensor : {"up", "down"})
      if (line == copy(0, buffer(fmt::format("layers.1.{}", tensor)), 2,
                       buffer(fmt::format("layers.1.{}", tensor))))
        line = copy(0, buffer(fmt::format("layers.1.{}", tensor)), 3,
                    buffer(fmt::format("layers.1.{}", tensor)));
  CHECK(mistakes(lines) ==
        std::set<std::string>{"layers are divided otherwise among the ranks of the destination: "
                              "layers.1 is written to rank 3, which has none of it"});
  // Numbers within a stage: on rank 1 those after layer 1 are taken for those after layer 0.
  lines = layers.copies([](int i) { return i == 0 ? 0 : std::min(i + 1, 3); });
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("{'from'") && line.find("layers.3") != std::string::npos &&
           line.find("'buffer': 'layers.3", line.find("'to'")) != std::string::npos;
  });
  std::set<std::string> found = mistakes(lines);
  CHECK(
      found.contains("layers are divided otherwise among the ranks of the source: on rank 1, "
                     "layers.2 is taken for layers.1"));
}

TEST_CASE("Indices of stacked tensors, and of several rows each") {
  // Eight indices of two rows, four on each of ranks 1 and 2, read as if given in turn.
  Lines rows = {"{'tensor': 'e', 'shape': [16, 2], 'dtype': 'bf16'}",
                "{'side': 'from', 'tensor': 'e', 'mesh': '1'}",
                "{'side': 'to', 'tensor': 'e', 'mesh': '2', 'ranks': '1-2', 'placements': 'S(0)'}"};
  for (int i = 0; i < 8; ++i)
    rows.push_back(copy(0,
                        fmt::format("'buffer': 'e', 'box': '{}:{},:'", 2 * (i % 4 * 2 + i / 4),
                                    2 * (i % 4 * 2 + i / 4) + 2),
                        1 + i / 4,
                        fmt::format("'buffer': 'e', 'box': '{}:{},:'", i % 4 * 2, i % 4 * 2 + 2)));
  CHECK(mistakes(rows) ==
        std::set<std::string>{"indices of e are given to 2 ranks in turn, where each has a range "
                              "(2 rows an index)"});
  // Slots of an older map: 0 1 2 3 for 0 3 2 1.
  Lines stacked;
  for (const char* name : {"w13", "w2"}) {
    stacked.push_back(fmt::format("{{'tensor': '{}', 'shape': [4, 2, 2], 'dtype': 'bf16'}}", name));
  }
  for (const char* name : {"w13", "w2"}) {
    stacked.push_back(fmt::format("{{'side': 'from', 'tensor': '{}', 'mesh': '1'}}", name));
    stacked.push_back(
        fmt::format("{{'side': 'to', 'tensor': '{}', 'mesh': '2', 'ranks': '1-2', "
                    "'map': {{'indices': [0, 3, 2, 1]}}}}",
                    name));
  }
  for (const char* name : {"w13", "w2"})
    for (int slot = 0; slot < 4; ++slot)
      stacked.push_back(copy(0, fmt::format("'buffer': '{}', 'box': '{},:,:'", name, slot),
                             1 + slot / 2,
                             fmt::format("'buffer': '{}', 'box': '{},:,:'", name, slot % 2)));
  CHECK(mistakes(stacked) ==
        std::set<std::string>{"indices of w13 are numbered by another map: rank 1 gets 1 for 3",
                              "indices of w2 are numbered by another map: rank 1 gets 1 for 3"});
}

TEST_CASE("Columns that are taken for rows, and rows for columns") {
  for (int dim : {0, 1})
    for (bool reads : {true, false}) {
      const char* other = reads ? "to" : "from";
      Lines lines = {
          "{'tensor': 'w', 'shape': [4, 6], 'dtype': 'bf16'}",
          fmt::format("{{'side': '{}', 'tensor': 'w', 'mesh': '2', 'placements': "
                      "'S({})'}}",
                      reads ? "from" : "to", dim),
          fmt::format("{{'side': '{}', 'tensor': 'w', 'mesh': '1', 'ranks': '2'}}", other)};
      for (int rank = 0; rank < 2; ++rank) {
        std::string whole =
            dim == 1 ? fmt::format("'buffer': 'w', 'box': '{}:{},:'", 2 * rank, 2 * rank + 2)
                     : fmt::format("'buffer': 'w', 'box': ':,{}:{}'", 3 * rank, 3 * rank + 3);
        lines.push_back(reads ? copy(rank, buffer("w"), 2, whole)
                              : copy(2, whole, rank, buffer("w")));
      }
      std::set<std::string> expected;
      for (int rank = 0; rank < 2; ++rank)
        expected.insert(fmt::format("'w' of rank {} is {} as if dim {} were cut, not dim {}", rank,
                                    reads ? "read" : "written", 1 - dim, dim));
      CAPTURE(dim, reads);
      CHECK(mistakes(lines) == expected);
    }
}

TEST_CASE("Flat tensors that are taken for the reverse order") {
  // a of 6 elements, b of 10, c of 4, each from a multiple of 8 on: 0, 8, 24 of 28; 32 in all.
  Lines base = {"{'tensor': 'a', 'shape': [2, 3], 'dtype': 'bf16'}",
                "{'tensor': 'b', 'shape': [10], 'dtype': 'bf16'}",
                "{'tensor': 'c', 'shape': [4], 'dtype': 'bf16'}"};
  for (bool reads : {true, false}) {
    Lines lines = base;
    lines.push_back(
        fmt::format("{{'side': '{}', 'buffer': 'flat', 'mesh': '1', 'flat': ['a', 'b', "
                    "'c'], 'align': 8, 'pad': 32}}",
                    reads ? "from" : "to"));
    for (const char* name : {"a", "b", "c"})
      lines.push_back(fmt::format("{{'side': '{}', 'tensor': '{}', 'mesh': '1', 'ranks': '1'}}",
                                  reads ? "to" : "from", name));
    // In reverse c begins at 0, b at 8, which is right, a at 24.
    for (auto [name, begin, count] : {std::tuple("a", 24, 4), {"b", 8, 10}, {"c", 0, 4}}) {
      std::string flat = fmt::format("'buffer': 'flat', 'offset': {}", begin),
                  own = fmt::format("'buffer': '{}', 'offset': 0", name);
      std::string line = reads ? copy(0, flat, 1, own) : copy(1, own, 0, flat);
      line.insert(line.size() - 1, fmt::format(", 'count': {}", count));
      lines.push_back(line);
    }
    CAPTURE(reads);
    CHECK(mistakes(lines).contains(
        fmt::format("'flat' of the {} as if its tensors lay in reverse order",
                    reads ? "source is read" : "destination is written")));
  }
}

TEST_CASE("Axes are exchanged where ranks have padding alone, and not all are read") {
  // Of a mesh dp=2,tp=4 rows 0 to 4 of 8 are on tp ranks 0 to 2; only ranks 1 to 3 are read.
  Lines lines;
  for (const char* name : {"a", "b", "c", "d"})
    lines.push_back(fmt::format("{{'tensor': '{}', 'shape': [{}, 2], 'dtype': 'bf16'}}", name,
                                name[0] == 'a' ? 5 : 8));
  for (const char* name : {"a", "b", "c", "d"}) {
    lines.push_back(
        fmt::format("{{'side': 'from', 'buffer': '{0}', 'tensor': '{0}{1}', 'mesh': "
                    "'dp=2,tp=4', 'placements': 'RS(0)'}}",
                    name, name[0] == 'a' ? " pad8" : ""));
    lines.push_back(
        fmt::format("{{'side': 'to', 'tensor': '{}', 'mesh': '1', 'ranks': '8'}}", name));
  }
  for (const char* name : {"a", "b", "c", "d"})
    for (int row = 0; row < (name[0] == 'a' ? 5 : 8); ++row)
      // dp 0 by somebody for whom dp is the fastest.
      lines.push_back(copy(row / 2 * 2, fmt::format("'buffer': '{}', 'box': '{},:'", name, row % 2),
                           8, fmt::format("'buffer': '{}', 'box': '{},:'", name, row)));
  std::set<std::string> found = mistakes(lines);
  CHECK(found ==
        std::set<std::string>{"the axes dp and tp of the ranks of the source are exchanged"});
}

TEST_CASE("A shift that crosses the tensors of a buffer") {
  Lines lines = {"{'tensor': 'a', 'shape': [4, 2], 'dtype': 'bf16'}",
                 "{'tensor': 'b', 'shape': [4, 2], 'dtype': 'bf16'}",
                 "{'side': 'from', 'buffer': 'ab', 'mesh': '1', 'fused': ['a', 'b']}",
                 "{'side': 'to', 'tensor': 'a', 'mesh': '1', 'ranks': '1'}",
                 copy(0, "'buffer': 'ab', 'box': '1:5,:'", 1, buffer("a"))};
  CHECK(mistakes(lines) ==
        std::set<std::string>{"shifted by 1 along dim 0",
                              "what is read from 'ab' of rank 0 is shifted by 1 rows there"});
}
