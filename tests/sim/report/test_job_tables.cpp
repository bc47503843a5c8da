// SPDX-License-Identifier: BSD-3-Clause
// The table of a job's kinds of tensors.
#include <catch2/catch.hpp>

#include "sim/report/facts.h"
#include "sim/report/writers/job_writer.h"
#include "tests/core/planners/planner_cases.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

GroupFacts kind(const std::string& name, std::size_t tensors, std::int64_t received) {
  GroupFacts out(request_on("2", "1024", "S(0)", "R", "bf16"));
  out.name = name;
  out.text = kind_text(out.first);
  for (std::size_t t = 0; t < tensors; ++t) out.tensors.push_back(t);
  out.bytes = 2048 * static_cast<std::int64_t>(tensors);
  out.use = {received, 1'000'000, 3'000'000};
  out.bound.cut_ps = 2'000'000;
  return out;
}

}  // namespace

TEST_CASE("a row per kind, and what it is below") {
  GroupFacts still = kind("", 1, 0);
  still.use = {};
  still.bound = {};
  CHECK(groups_table(std::vector{kind("layers.*.w", 3, 4096), still}, "kind", false, 80) ==
        "\n"
        "count      bytes   received  first byte  last byte  bound, alone  limit\n"
        "    3  6.000 KiB  4.000 KiB    1.000 us   3.000 us      2.000 us  cut\n"
        "       layers.*.w\n"
        "       bf16[1024] S(0) on 2 -> R\n"
        "    1  2.000 KiB        0 B           -          -          0 ps  none\n"
        "       bf16[1024] S(0) on 2 -> R\n");
  CHECK(groups_table({}, "kind", false, 80).empty());
}

TEST_CASE("of many kinds the first eight, and the sum of the others") {
  std::vector<GroupFacts> kinds;
  for (int k = 0; k < 11; ++k) kinds.push_back(kind("w" + std::to_string(k), 2, 1024 * (11 - k)));
  kinds[9].use.first_ps = 500'000;
  kinds[10].use.last_ps = 7'000'000;
  std::string table = groups_table(kinds, "kind", false, 80);
  CHECK(
      table.ends_with("    6  12.000 KiB   6.000 KiB  500.000 ns   7.000 us             -  -\n"
                      "       3 more kinds (-v shows every kind)\n"));
  CHECK(table.find("w7\n") != std::string::npos);
  CHECK(table.find("w8\n") == std::string::npos);
  std::string all = groups_table(kinds, "kind", true, 80);
  CHECK(all.find("w10\n") != std::string::npos);
  CHECK(all.find("more kinds") == std::string::npos);
}

TEST_CASE("the sum of one kind is that kind") {
  std::vector<GroupFacts> kinds;
  for (int k = 0; k < 9; ++k) kinds.push_back(kind("w" + std::to_string(k), 1, 9 - k));
  std::string table = groups_table(kinds, "kind", false, 80);
  CHECK(table.find("w8\n") != std::string::npos);
  CHECK(table == groups_table(kinds, "kind", true, 80));
}

TEST_CASE("full links in words") {
  FullLinks full{"nic.in", 16, 32, {"node0.gpu0.nic.in", 45'000'000, 950'000, 50'000'000'000}};
  CHECK(full_links_text(full, 1'000'000'000) ==
        "16 of 32 nic.in, within 1 % of node0.gpu0.nic.in: 90.0 % used");
}
