// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's cost model: its published figures, its early exits, and which steps change the bytes
// that later steps move.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/torch/redistribution.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double cost(std::string_view mesh, std::string_view shape, std::string_view from,
            std::string_view to, std::int32_t devices_per_host) {
  return torch_redistribute_cost_us(request_on(mesh, shape, from, to), devices_per_host);
}

std::string four_decimals(double us) { return fmt::format("{:.4f}", us); }

}  // namespace

TEST_CASE("issue_169439: the cost quoted there, to the last digit") {
  // 8192 bytes after the gather over two hosts: 6.6 + 1 * 2.7 + (8192 / 2^30 * 1 / 2) / (87.7 *
  // 0.22) * 1e6.
  CHECK(cost("2", "2048", "S0", "R", 1) == 9.497714173609673);
  TorchMeshTopology topology = torch_mesh_topology(Mesh::row_major({2}), 1);
  CHECK(torch_allgather_cost_us(8192.0 / 1024 / 1024 / 1024, topology, 0) == 9.497714173609673);
}

TEST_CASE("costs of 1024x1024 f32 on one host of eight and on two") {
  const struct {
    const char *mesh, *from, *to, *us;
  } rows[] = {
      {"8", "S0", "R", "49.7734"},        {"8", "P", "R", "92.9468"},
      {"8", "P", "S0", "49.7734"},        {"8", "S0", "S1", "16.6717"},
      {"16", "S0", "R", "236.9056"},      {"16", "P", "R", "467.2112"},
      {"16", "P", "S0", "236.9056"},      {"16", "S0", "S1", "59.9629"},
      {"2x8", "S0,R", "R,R", "110.5297"}, {"2x8", "P,R", "R,R", "214.4593"},
      {"2x8", "P,R", "S0,R", "110.5297"}, {"2x8", "S0,R", "S1,R", "60.9148"},
  };
  for (const auto& row : rows) {
    INFO(row.mesh << " " << row.from << " -> " << row.to);
    CHECK(four_decimals(cost(row.mesh, "1024,1024", row.from, row.to, 8)) == row.us);
  }
}

TEST_CASE("axes whose running product leaves the host are inter-host") {
  TorchMeshTopology topology = torch_mesh_topology(Mesh::row_major({2, 4, 2}), 8);
  CHECK(topology.sizes == std::vector<std::int32_t>{2, 4, 2});
  CHECK(topology.latency_us == std::vector<double>{2.7, 0.6, 0.6});
  CHECK(topology.bandwidth_gb_per_s == std::vector<double>{87.7 * 0.22, 87.7, 87.7});
}

TEST_CASE("nothing to do and full replication cost nothing") {
  CHECK(cost("4", "64,64", "S0", "S0", 8) == 0.0);
  CHECK(cost("2x2", "64,64", "R,R", "S0,S1", 8) == 0.0);
  CHECK(cost("2x2", "64,64", "R,R", "P,P", 8) == 0.0);
  // Cutting is free, too, where the source is not fully replicated.
  CHECK(cost("2x2", "64,64", "S0,R", "S0,S1", 8) == 0.0);
}

TEST_CASE("a change of shard order costs, strided shards that are none and other meshes infinite") {
  CHECK(cost("2x2", "64,64", "S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]", 8) > 0.0);
  CHECK(cost("2x2", "64,64", "S(0)[1]S(0)[0]", "S(0)[1]S(0)[0]", 8) == 0.0);
  CHECK(cost("2x2", "64,64", "_S(0,3)S(0)", "RS(0)", 8) == kInfinite);
  CHECK(cost("2x2", "64,64", "RS(0)", "_S(0,3)S(0)", 8) == kInfinite);
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"));
  CHECK(torch_redistribute_cost_us(across, 8) == kInfinite);
  CHECK_THROWS_AS(torch_greedy_steps(across), CheckFailure);
}

TEST_CASE("PyTorch plans greedily where neither side has a shard order or a strided shard") {
  auto greedily = [](const char* from, const char* to) {
    return torch_plans_greedily(request_on("2x2", "64,64", from, to));
  };
  CHECK(greedily("S(0)S(0)", "S(1)S(1)"));
  CHECK(greedily("P(sum)R", "RR"));
  CHECK_FALSE(greedily("S(0)[1]S(0)[0]", "S(0)S(0)"));
  CHECK_FALSE(greedily("RR", "S(0)[1]S(0)[0]"));
  CHECK_FALSE(greedily("_S(0,2)S(0)", "RR"));
  CHECK_FALSE(greedily("RR", "S(0)_S(0,3)"));
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  CHECK_FALSE(torch_plans_greedily(
      Request(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"))));
}

TEST_CASE("forbidden steps are infinite and steps change the bytes of later ones") {
  Request request = request_on("2x2", "1024,1024", "S0,R", "R,R");
  const Layout& source = request.source();
  Placement r = Placement::replicate(), s = Placement::shard(0), p = Placement::partial();
  CHECK(torch_steps_cost_us(source, {{0, s, p}}, 8) == kInfinite);
  CHECK(torch_steps_cost_us(source, {{1, p, Placement::partial(ReduceOp::Max)}}, 8) == kInfinite);

  TorchMeshTopology topology = torch_mesh_topology(source.mesh(), 8);
  double gib = 4.0 / 1024, half = gib / 2, quarter = gib / 4;
  CHECK(torch_steps_cost_us(source, {{0, s, r}}, 8) == torch_allgather_cost_us(gib, topology, 0));
  // R -> S halves what the gather brings together.
  CHECK(torch_steps_cost_us(source, {{1, r, s}, {0, s, r}}, 8) ==
        0.0 + torch_allgather_cost_us(half, topology, 0));
  // P -> S is paid at the size before it and halves what follows.
  CHECK(torch_steps_cost_us(source, {{1, p, s}, {0, s, Placement::shard(1)}}, 8) ==
        torch_reduce_scatter_cost_us(half, topology, 1) +
            (torch_allgather_cost_us(quarter, topology, 0) + 1.0));
}

}  // namespace reshard
