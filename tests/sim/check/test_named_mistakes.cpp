// SPDX-License-Identifier: BSD-3-Clause
// Mistakes that are recognised by what arrives where.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "sim/check/check_report.h"
#include "tests/sim/check/check_lines.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

TEST_CASE("Known mistakes are named") {
  auto mistakes = [](const std::vector<std::string>& lines) {
    std::vector<std::string> out;
    for (const Finding& finding : report_of(read(lines)).findings) out.push_back(finding.mistake);
    return out;
  };
  const std::vector<std::string> base = {
      "{'tensor': 'a', 'shape': [4, 2], 'dtype': 'bf16'}",
      "{'tensor': 'b', 'shape': [4, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'tensor': 'a', 'mesh': '1'}",
      "{'side': 'from', 'tensor': 'b', 'mesh': '1'}",
      "{'side': 'to', 'buffer': 'ab', 'mesh': '1', 'ranks': '1', 'fused': ['a', 'b']}"};
  auto both = [&](const char* first, const char* second) {
    return with(with(base, fmt::format("{{'from': {{'rank': 0, 'tensor': '{}'}}, 'to': {{'rank': "
                                       "1, 'buffer': 'ab', 'box': '0:4,:'}}}}",
                                       first)),
                fmt::format("{{'from': {{'rank': 0, 'tensor': '{}'}}, 'to': {{'rank': 1, 'buffer': "
                            "'ab', 'box': '4:8,:'}}}}",
                            second));
  };
  CHECK(mistakes(both("a", "b")).empty());
  CHECK(mistakes(both("b", "a")) == std::vector<std::string>{"a and b are taken for each other",
                                                             "b and a are taken for each other"});
  std::vector<std::string> cut = {"{'tensor': 'k', 'shape': [4, 1], 'dtype': 'bf16'}",
                                  "{'side': 'from', 'tensor': 'k', 'mesh': '1'}",
                                  "{'side': 'to', 'buffer': 'k', 'mesh': '4', 'ranks': '1-4', "
                                  "'fused': ['k x2 repeat'], 'placements': 'S(0)'}"};
  for (int rank = 0; rank < 4; ++rank)
    cut.push_back(
        fmt::format("{{'from': {{'rank': 0, 'tensor': 'k', 'box': '{},:'}}, 'to': {{'rank': {}, "
                    "'buffer': 'k', 'box': '0,:'}}}}",
                    rank, rank + 1));
  for (const std::string& mistake : mistakes(cut))
    CHECK(mistake == "k is cut into 4 pieces, but 2 ranks each need the same");
  CHECK(mistakes(cut).size() >= 2);
  std::vector<std::string> exchanged = {
      "{'tensor': 'w', 'shape': [4, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'tensor': 'w', 'mesh': '1'}",
      "{'side': 'to', 'tensor': 'w', 'mesh': '2', 'ranks': '1-2', 'placements': 'S(0)'}",
      "{'from': {'rank': 0, 'tensor': 'w', 'box': '2:4,:'}, 'to': {'rank': 1, 'buffer': 'w'}}",
      "{'from': {'rank': 0, 'tensor': 'w', 'box': '0:2,:'}, 'to': {'rank': 2, 'buffer': 'w'}}"};
  CHECK(mistakes(exchanged) ==
        std::vector<std::string>{"rank 2 gets what rank 1 needs", "rank 1 gets what rank 2 needs"});
  exchanged[3] =
      "{'from': {'rank': 0, 'tensor': 'w', 'box': '1:3,:'}, 'to': {'rank': 1, 'buffer': 'w'}}";
  exchanged[4] =
      "{'from': {'rank': 0, 'tensor': 'w', 'box': '2:4,:'}, 'to': {'rank': 2, 'buffer': 'w'}}";
  CHECK(mistakes(exchanged) == std::vector<std::string>{"shifted by 1 along dim 0"});
}

TEST_CASE("Halves taken as alternating rows, matrices as not transposed, indices as in turn") {
  auto mistakes = [](const std::vector<std::string>& lines) {
    std::set<std::string> out;
    for (const Finding& finding : report_of(read(lines)).findings) out.insert(finding.mistake);
    return out;
  };
  auto copy = [](const char* from, const char* to) {
    return fmt::format("{{'from': {{'rank': 0, 'buffer': {}}}, 'to': {{'rank': {}}}}}", from, to);
  };
  const std::vector<std::string> gated = {
      "{'tensor': 'gate', 'shape': [3, 2], 'dtype': 'bf16'}",
      "{'tensor': 'up', 'shape': [3, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'buffer': 'fc1', 'mesh': '1', 'fused': ['gate', 'up']}",
      "{'side': 'to', 'buffer': 'w13', 'mesh': '1', 'ranks': '1', 'fused': ['gate', 'up']}"};
  CHECK(mistakes(with(with(gated, copy("'fc1', 'offset': 0, 'extents': [3, 2], 'strides': [4, 1]",
                                       "1, 'buffer': 'w13', 'box': '0:3,:'")),
                      copy("'fc1', 'offset': 2, 'extents': [3, 2], 'strides': [4, 1]",
                           "1, 'buffer': 'w13', 'box': '3:6,:'"))) ==
        std::set<std::string>{"'fc1' of rank 0 is read as if rows of gate and up alternated"});
  CHECK(mistakes(with(with(gated, copy("'fc1', 'box': '0:3,:'",
                                       "1, 'buffer': 'w13', 'offset': 0, 'extents': [3, 2], "
                                       "'strides': [4, 1]")),
                      copy("'fc1', 'box': '3:6,:'",
                           "1, 'buffer': 'w13', 'offset': 2, 'extents': [3, 2], 'strides': [4, "
                           "1]"))) ==
        std::set<std::string>{"'w13' of rank 1 is written as if rows of gate and up alternated"});
  const std::vector<std::string> turned = {
      "{'tensor': 'w', 'shape': [4, 3], 'dtype': 'bf16'}",
      "{'side': 'from', 'tensor': 'w', 'mesh': '1', 'order': [1, 0]}",
      "{'side': 'to', 'tensor': 'w', 'mesh': '1', 'ranks': '1'}"};
  CHECK(mistakes(with(turned, copy("'w'", "1, 'buffer': 'w'"))) ==
        std::set<std::string>{"'w' of rank 0 is read as if it were not transposed"});
  std::vector<std::string> experts = {
      "{'tensor': 'e', 'shape': [8, 1, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'tensor': 'e', 'mesh': '1'}",
      "{'side': 'to', 'tensor': 'e', 'mesh': 'ep=2', 'ranks': '1-2', 'map': {'rule': 'even'}}"};
  for (int rank = 0; rank < 2; ++rank)
    experts.push_back(copy(
        fmt::format("'e', 'offset': {}, 'extents': [4, 2], 'strides': [4, 1]", 2 * rank).c_str(),
        fmt::format("{}, 'buffer': 'e'", rank + 1).c_str()));
  CHECK(mistakes(experts) ==
        std::set<std::string>{"indices of e are given to 2 ranks in turn, where each has a range"});
}

TEST_CASE("Fused rows that are cut as one, by the reader or by both sides") {
  auto mistakes = [](const std::vector<std::string>& lines) {
    std::set<std::string> out;
    for (const Finding& finding : report_of(read(lines)).findings) out.insert(finding.mistake);
    return out;
  };
  // Rank 0 has gate[0:4] and up[0:4], rank 1 the others.
  const std::vector<std::string> base = {
      "{'tensor': 'gate', 'shape': [8, 2], 'dtype': 'bf16'}",
      "{'tensor': 'up', 'shape': [8, 2], 'dtype': 'bf16'}",
      "{'side': 'from', 'buffer': 'fc1', 'mesh': '2', 'fused': ['gate', 'up'], 'placements': "
      "'S(0)'}"};
  std::vector<std::string> lines = base;
  for (const char* name : {"gate", "up"})
    lines.push_back(
        fmt::format("{{'side': 'to', 'tensor': '{}', 'mesh': '1', 'ranks': '2'}}", name));
  for (int rank = 0; rank < 2; ++rank)
    lines.push_back(
        fmt::format("{{'from': {{'rank': {}, 'buffer': 'fc1'}}, 'to': {{'rank': 2, "
                    "'buffer': '{}'}}}}",
                    rank, rank == 0 ? "gate" : "up"));
  CHECK(mistakes(lines) ==
        std::set<std::string>{
            "'fc1' of rank 0 is read as if [gate | up] were cut as one, not each by itself",
            "'fc1' of rank 1 is read as if [gate | up] were cut as one, not each by itself"});
  lines = with(base,
               "{'side': 'to', 'buffer': 'w13', 'mesh': '4', 'ranks': '2-5', 'fused': ['gate', "
               "'up'], 'placements': 'S(0)'}");
  for (int rank = 0; rank < 4; ++rank)
    lines.push_back(
        fmt::format("{{'from': {{'rank': {}, 'buffer': 'fc1', 'box': '{}:{},:'}}, "
                    "'to': {{'rank': {}, 'buffer': 'w13'}}}}",
                    rank / 2, rank % 2 * 4, rank % 2 * 4 + 4, rank + 2));
  CHECK(mistakes(lines) ==
        std::set<std::string>{"[gate | up] are moved as if they were cut as one, not each by "
                              "itself"});
}

TEST_CASE("Two axes of a grid of ranks that are exchanged are named") {
  // Experts e0 to e3 of two rows, two on each ep rank, cut by etp: ranks 1 to 4.
  std::vector<std::string> base;
  std::string all;
  for (int e = 0; e < 4; ++e) {
    base.push_back(fmt::format("{{'tensor': 'e{}', 'shape': [2, 1], 'dtype': 'bf16'}}", e));
    base.push_back(fmt::format("{{'side': 'from', 'tensor': 'e{}', 'mesh': '1'}}", e));
    all += fmt::format("{}'e{}'", e == 0 ? "" : ", ", e);
  }
  auto grid = [&](const char* side, const char* ranks) {
    return fmt::format(
        "{{'side': '{}', 'buffer': 'w13', 'mesh': 'ep=2,etp=2', 'ranks': '{}', 'fused': [{}], "
        "'placements': 'RS(0)', 'map': {{'axis': 'ep', 'blocks': 2, 'rule': 'even'}}}}",
        side, ranks, all);
  };
  auto copy = [](int expert, int row, int rank) {
    return fmt::format(
        "{{'from': {{'rank': 0, 'tensor': 'e{}', 'box': '{},:'}}, 'to': {{'rank': "
        "{}, 'buffer': 'w13', 'box': '{},:'}}}}",
        expert, row, rank, expert % 2);
  };
  std::vector<std::string> lines = with(base, grid("to", "1-4")), right = lines;
  for (int expert = 0; expert < 4; ++expert)
    for (int row = 0; row < 2; ++row) {
      right.push_back(copy(expert, row, 1 + expert / 2 * 2 + row));
      lines.push_back(copy(expert, row, 1 + expert / 2 + row * 2));
    }
  CHECK(report_of(read(right)).findings.empty());
  const char* kNamed = "the axes ep and etp of the ranks of the destination are exchanged";
  CheckReport report = report_of(read(lines));
  CHECK(report.findings.size() == 4);
  for (const Finding& finding : report.findings) CHECK(finding.mistake == kNamed);
  // One rank of the two that would be exchanged is something else.
  right[right.size() - 2] = copy(3, 1, 3);
  for (const Finding& finding : report_of(read(right)).findings) CHECK(finding.mistake != kNamed);
  // Read by name from the wrong rank, which does not hold it.
  lines = base;
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("{'side'"); });
  lines.push_back(grid("from", "1-4"));
  lines.push_back("{'side': 'to', 'tensor': 'e0', 'mesh': '1'}");
  lines.push_back("{'side': 'to', 'tensor': 'e2', 'mesh': '1'}");
  for (int expert : {0, 2})
    for (int row = 0; row < 2; ++row)
      lines.push_back(fmt::format(
          "{{'from': {{'rank': {0}, 'tensor': 'e{1}', 'box': '{2},:'}}, 'to': {{'rank': 0, "
          "'tensor': 'e{1}', 'box': '{2},:'}}}}",
          1 + expert / 2 + row * 2, expert, row));
  report = report_of(read(lines));
  CHECK(report.findings.size() == 2);
  for (const Finding& finding : report.findings)
    CHECK(finding.mistake == "the axes ep and etp of the ranks of the source are exchanged");
}
