// SPDX-License-Identifier: BSD-3-Clause
// Compares the bounds with the least time that an independent linear program finds
// (flow_optimum.py): equal for all pairs of placements on two nodes, and never above it. Across
// meshes the bound of one tensor is lower if one node has more ranks of the job than another; with
// folds, if the program's single root per element is slower than two roots.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/bounds/bounds.h"
#include "tests/support/bounds_cases.h"

namespace reshard::test {
namespace {

struct Row {
  std::vector<Request> job;
  double optimum_ps;
};

// A tensor's source and destination follow its shape and type.
Request read_tensor(std::istringstream& words, const std::string& shape, const std::string& dtype) {
  std::string mesh, ranks, from, to_mesh, to_ranks, to;
  words >> mesh >> ranks >> from >> to_mesh >> to_ranks >> to;
  return parse_request({mesh, ranks, to_mesh, to_ranks, shape, dtype, from, to});
}

std::vector<Row> rows_of(const std::string& file, const std::string& kind) {
  std::ifstream in("tests/core/bounds/data/" + file);
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string of_line, word, dtype;
    words >> of_line;
    if (of_line != kind) continue;
    Row row;
    if (kind == "job")
      // A shape is followed by a type, the time by nothing.
      while (words >> word >> dtype) row.job.push_back(read_tensor(words, word, dtype));
    else
      row.job.push_back(read_tensor(words, "32,8192,4096", "f32"));
    if (kind != "job") words >> word;
    row.optimum_ps = std::stod(word);
    rows.push_back(std::move(row));
  }
  return rows;
}

// How the bound stands to the optimum: where it is not above, at most 1e-9 and the last digit.
struct Comparison {
  std::int64_t rows = 0, equal = 0;
  double least_ratio = 1;

  void add(const Row& row, const Topology& topology) {
    CAPTURE(text_of(row.job), row.optimum_ps);
    Bound bound = bound_of(row.job, topology);
    auto bound_ps = static_cast<double>(bound.time_ps());
    double slack_ps = row.optimum_ps * 1e-9 + 2;
    CAPTURE(bound.cut_ps, bound.volume_ps, bound.price_ps, bound.holder_ps);
    CHECK(bound_ps <= row.optimum_ps + slack_ps);
    ++rows;
    equal += bound_ps >= row.optimum_ps - slack_ps;
    least_ratio = std::min(least_ratio, bound_ps / row.optimum_ps);
  }
};

TEST_CASE("the bound is the optimum on all pairs of placements on two nodes") {
  Topology topology = two_nodes();
  Comparison comparison;
  for (const Row& row : rows_of("flow_optimum.txt", "pair")) comparison.add(row, topology);
  CHECK(comparison.rows == 630);
  CHECK(comparison.equal == 630);
}

TEST_CASE("across meshes the bound is near the optimum and never above it") {
  Topology topology = two_nodes();
  Comparison comparison;
  for (const Row& row : rows_of("flow_optimum.txt", "across")) comparison.add(row, topology);
  CHECK(comparison.rows == 233);
  CHECK(comparison.equal == 221);
  CHECK(comparison.least_ratio > 0.93);
}

TEST_CASE("with folds the bound is near the best tree and never above it") {
  Topology topology = two_nodes();
  Comparison comparison;
  for (const Row& row : rows_of("flow_optimum.txt", "partial")) comparison.add(row, topology);
  CHECK(comparison.rows == 30);
  CHECK(comparison.equal == 28);
  CHECK(comparison.least_ratio > 0.87);
}

TEST_CASE("the bound of a job is near its optimum and never above it") {
  Topology topology = two_nodes();
  Comparison comparison;
  for (const Row& row : rows_of("flow_jobs.txt", "job")) comparison.add(row, topology);
  CHECK(comparison.rows == 200);
  CHECK(comparison.equal >= 196);
  CHECK(comparison.least_ratio >= 0.99);
}

}  // namespace
}  // namespace reshard::test
