// SPDX-License-Identifier: BSD-3-Clause
// What a plan loses against its bound, by its greatest factor.
#include <catch2/catch.hpp>

#include "sim/machines/presets.h"
#include "sim/study/losses/lost_time.h"
#include "sim/study/studies.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::sim {
namespace {

struct Loss {
  LostTime lost;
  std::int64_t time_ps, bound_ps;
};

Loss loss_of(const Request& request, std::string_view planner, std::string_view machine) {
  auto topology = std::make_shared<const Topology>(find_topology(machine));
  StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  Studies studies(topology, find_planner(planner), options);
  std::shared_ptr<Study> study = studies.of(request);
  CutSets sets(*topology, request.ranks());
  return {
      lost_time(study->timeline(), sets, demand_of(request, sets), study->bytes().received_total),
      study->time_ps(), study->bound().time_ps()};
}

std::string lost(const Request& request, std::string_view planner, std::string_view machine) {
  return text(loss_of(request, planner, machine).lost);
}

Request two_nodes(std::string_view from, std::string_view to) {
  return request_on("4x4", "4096,4096,16", from, to);
}

}  // namespace

TEST_CASE("what nodes receive more than once, or without need, is said first") {
  // Either node has all of it.
  CHECK(lost(two_nodes("RS(0)", "S(0)R"), "p2p", "dgx-h100:2") == "nodes entered without need");
  // Each shard goes to four replicas on the other node.
  CHECK(lost(two_nodes("S(0)S(1)", "S(1)R"), "hybrid", "dgx-h100:2") == "nodes entered 4.00 x");
}

TEST_CASE("who gathers everything to keep a sixteenth receives too much") {
  CHECK(lost(two_nodes("RS(0)", "S(1)S(1)"), "rule", "dgx-h100:2") == "received 16.00 x");
}

TEST_CASE("one rank that serves seven is few") {
  auto mesh = [](const char* text, const char* ranks) {
    return std::make_shared<const Mesh>(parse_mesh(text, ranks));
  };
  Request request(parse_layout("4096,4096", "f32", mesh("1", "0"), "R"),
                  parse_layout("4096,4096", "f32", mesh("7", "1-7"), "R"));
  // Seven shards leave one of eight ranks: eight times the average.
  CHECK(lost(request, "p2p", "dgx-h100:1") == "few nvlink.out 8.00 x");
}

TEST_CASE("small messages do not fill links, and a plan at its bound loses nothing") {
  CHECK_THAT(lost(request_on("4", "64", "P(sum)", "R"), "rule", "dgx-h100:1"),
             Catch::StartsWith("links not full "));
  CHECK(lost(request_on("4", "4096,4096", "S(0)", "S(1)"), "p2p", "dgx-h100:1") == "-");
}

TEST_CASE("no factor is above the ratio to the bound, also where latencies are the bound") {
  Loss loss = loss_of(request_on("4", "64", "P(sum)", "R"), "rule", "dgx-h100:1");
  CHECK(loss.lost.by == LostTime::By::NotFull);
  REQUIRE(loss.lost.factor_e4.has_value());
  // The bound of a study can be a little sharper.
  CHECK(*loss.lost.factor_e4 <= loss.time_ps * 10'100 / loss.bound_ps);
}

TEST_CASE("where all is even, one kind of link carries what two could") {
  // Gathers inside nodes over NVLink; NICs, a tenth as fast, could bring a part over the other
  // node.
  CHECK_THAT(lost(two_nodes("S(0)S(1)", "S(0)R"), "p2p", "dgx-h100:2"),
             Catch::StartsWith("only nvlink.out 1.0"));
  CHECK_THAT(lost(two_nodes("S(0)S(0)", "RR"), "p2p", "dgx-h100:2"),
             Catch::StartsWith("nodes entered 8.00 x"));
}

}  // namespace reshard::sim
