// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/traffic/accounting.h"

using namespace reshard;

namespace {

Request request(const std::string& shape, const std::string& mesh, const std::string& from,
                const std::string& to, const std::string& to_mesh = "",
                const std::string& to_ranks = "", const std::string& dtype = "f32") {
  auto source = std::make_shared<const Mesh>(parse_mesh(mesh));
  auto destination =
      to_mesh.empty() ? source : std::make_shared<const Mesh>(parse_mesh(to_mesh, to_ranks));
  return Request(parse_layout(shape, dtype, source, from),
                 parse_layout(shape, dtype, destination, to));
}

// Bytes received in all, after the proof.
std::int64_t received(const Request& request) {
  Plan plan = plan_p2p(request, {});
  ProofResult proof = check_plan(plan);
  INFO(request.text() << (proof.refutation ? ": " + proof.refutation->what : ""));
  REQUIRE(proof.proved());
  return count_bytes(plan).received_total;
}

}  // namespace

TEST_CASE("p2p receives the fewest bytes possible") {
  // 8x8 f32 on 2x2: 256 bytes in all, 64 per quarter.
  CHECK(received(request("8,8", "2x2", "S(0)S(1)", "S(1)S(0)")) ==
        128);  // two of four ranks swap their quarter
  CHECK(received(request("8,8", "2x2", "S(0)S(0)", "S(1)S(1)")) ==
        192);  // each keeps a quarter of its shard
  CHECK(received(request("8,8", "2x2", "S(0)S(0)", "RR")) == 768);  // each misses three quarters
  CHECK(received(request("8,8", "2x2", "RR", "S(0)S(1)")) == 0);
  CHECK(received(request("8,8", "2x2", "P(sum)P(sum)", "RR")) == 6 * 256);        // 2 (p - 1) T
  CHECK(received(request("8,8", "2x2", "P(sum)P(sum)", "S(0)S(0)")) == 3 * 256);  // (p - 1) T
  CHECK(received(request("8,8", "2x2", "P(sum)R", "RR")) == (1 + 3) * 256);       // k = 2, m = 4
  CHECK(received(request("8,8", "4", "R", "S(0)", "4", "4-7")) == 256);
  CHECK(received(request("8,8", "4", "P(sum)", "S(0)", "4", "4-7")) ==
        4 * 256);  // k + m - 1 with m = 1
  CHECK(received(request("8,8", "2", "P(sum)", "R", "4", "4-7")) == 5 * 256);  // k + m - 1
  CHECK(received(request("8,8", "2x2", "P(sum)R", "P(sum)S(0)")) == 0);
}

TEST_CASE("p2p fills what S -> P(sum) leaves to other ranks, and sends only values") {
  CHECK(received(request("8,8", "4", "S(0)", "P(sum)")) == 0);
  CHECK(received(request("8,8", "2x2", "S(0)S(0)", "P(sum)P(sum)")) == 0);
  CHECK(received(request("8,8", "2x2", "S(0)R", "P(sum)S(1)")) == 0);
  CHECK(received(request("8,8", "2x2", "S(0)S(0)", "P(sum)R")) == 256);        // a quarter each
  CHECK(received(request("8,8", "2x2", "S(0)S(0)", "P(sum)S(0)")) == 128);     // two quarters move
  CHECK(received(request("8,8", "2x2", "S(0)P(sum)", "P(sum)R")) == 2 * 256);  // 2 (k - 1) halves
  CHECK(received(request("8,8", "4", "S(0)", "P(sum)", "4", "4-7")) == 256);
  CHECK(received(request("8,8", "4", "S(0)", "P(sum)", "2", "4-5")) == 2 * 256);  // divided

  Plan plan = plan_p2p(request("8", "2x2", "S(0)S(0)", "RP(sum)"), {});
  REQUIRE(kind_text(plan.steps.at(0)) == "fill");
  // Rank 2 has the elements of both ranks that stand as it does on axis 1: 0, 1, 4 and 5.
  std::vector<Box> zeros;
  for (const FillStep::SlotFill& part : std::get<FillStep>(plan.steps[0].body).parts)
    if (part.slot == 2) zeros.push_back(part.box);
  CHECK(zeros == std::vector<Box>{{{2}, {4}}, {{6}, {8}}});
  // Rows of several stretches of the tensor lie side by side in a shard: one box of zeros.
  plan = plan_p2p(request("8,4", "2x2", "S(1)R", "P(sum)_S(0,2)"), {});
  const auto& fill = std::get<FillStep>(plan.steps.at(0).body);
  REQUIRE(fill.parts.size() == 4);
  CHECK(fill.parts[0].box == Box{{0, 2}, {4, 4}});
}

TEST_CASE("p2p balances senders over replicas by bytes") {
  Plan plan = plan_p2p(request("8,8", "4", "R", "S(0)", "8", "4-11"), {});
  const auto& exchange = std::get<ExchangeStep>(plan.steps.at(0).body);
  std::vector<int> sent(4, 0);
  for (const auto& message : exchange.messages) ++sent[static_cast<std::size_t>(message.source)];
  CHECK(sent == std::vector<int>{2, 2, 2, 2});
}

TEST_CASE("p2p asks the replica that has sent fewest bytes, of equals the first of the mesh") {
  using Sent = std::vector<std::pair<Slot, Slot>>;
  auto sent = [](const Request& request, const Topology* topology = nullptr) {
    PlannerInput input;
    input.topology = topology;
    Plan plan = plan_p2p(request, input);
    Sent out;
    for (const auto& message : std::get<ExchangeStep>(plan.steps.at(0).body).messages)
      out.emplace_back(message.source, message.destination);
    return out;
  };
  // Shards of 2, 1, 1 and 1 elements of ranks that hold them all, whatever these are called.
  CHECK(sent(request("5", "2", "R", "S(0)S(0)", "2x2", "2-5")) ==
        Sent{{0, 2}, {0, 5}, {1, 3}, {1, 4}});
  CHECK(sent(request("5", "[1,0]", "R", "S(0)S(0)", "2x2", "2-5")) ==
        Sent{{0, 3}, {0, 4}, {1, 2}, {1, 5}});
  // Of one's own node as long as it has not sent its half.
  NodeTemplate node;
  node.devices = 4;
  node.ports = {{"port", 1000, 1000}};
  RouteRule rule{{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}}, 0, {}, {}};
  node.rules = {rule, rule};
  node.rule_within = {0};
  node.rule_between = 1;
  Topology two("two", node, {}, 2);
  Request across = request("4", "[0,4]", "R", "S(0)", "[1,2,3,5]");
  CHECK(sent(across) == Sent{{0, 1}, {0, 3}, {4, 2}, {4, 5}});
  CHECK(sent(across, &two) == Sent{{0, 1}, {0, 2}, {4, 3}, {4, 5}});
}

TEST_CASE(
    "p2p spreads folds: the longest dim is cut, the first of equals, evenly over the owners") {
  auto owned = [](const Request& request) {
    Plan plan = plan_p2p(request, {});
    std::vector<std::pair<Slot, Shape>> out;
    for (const ReduceStep::SlotFold& part : std::get<ReduceStep>(plan.steps.at(1).body).parts)
      out.emplace_back(part.slot, part.extents);
    return out;
  };
  using Owned = std::vector<std::pair<Slot, Shape>>;
  CHECK(owned(request("2,2", "2", "P(sum)", "R")) == Owned{{0, {1, 2}}, {1, {1, 2}}});
  CHECK(owned(request("2,3", "2", "P(sum)", "R")) == Owned{{0, {2, 1}}, {1, {2, 2}}});
  CHECK(owned(request("3,3", "3x2", "P(sum)P(sum)", "RR")) ==
        Owned{{0, {1, 1}}, {1, {1, 2}}, {2, {1, 1}}, {3, {1, 2}}, {4, {1, 1}}, {5, {1, 2}}});
  // Half the owners, rounded down, for the first half.
  CHECK(owned(request("2,2", "3", "P(sum)", "R")) == Owned{{0, {1, 2}}, {1, {1, 1}}, {2, {1, 1}}});
  // Holders fold for ranks of another mesh, one element each: the one that owns fewest, of equals
  // the lower rank.
  CHECK(owned(request("3", "2", "P(sum)", "S(0)", "3", "2-4")) ==
        Owned{{0, {1}}, {0, {1}}, {1, {1}}});
  // As many results as addends: still the holders. More results: the ranks that need them.
  CHECK(owned(request("2", "2", "P(sum)", "R", "2", "2-3")) == Owned{{0, {1}}, {1, {1}}});
  CHECK(owned(request("3", "2", "P(sum)", "R", "3", "2-4")) == Owned{{2, {1}}, {3, {1}}, {4, {1}}});
  // Every replica of an addend holds it.
  CHECK(owned(request("4", "2x2", "P(sum)R", "R", "1", "4")) ==
        Owned{{0, {1}}, {1, {1}}, {2, {1}}, {3, {1}}});
}

TEST_CASE("p2p plans are proved over small shapes, meshes and placements") {
  const std::vector<std::string> words{"R",       "S(0)",   "S(1)",  "_S(0,2)",
                                       "_S(1,3)", "P(sum)", "P(avg)"};
  std::int64_t proved = 0, refused = 0;
  for (const char* mesh : {"1x2", "2x2", "3x2", "2x4"})
    for (const char* shape : {"4,4", "5,3", "1,7", "0,3", "6,6"})
      for (const auto& a : words)
        for (const auto& b : words)
          for (const auto& c : words)
            for (const auto& d : words) {
              std::optional<Request> r;
              try {
                r.emplace(request(shape, mesh, a + b, c + d));
              } catch (const InputError&) {
                ++refused;
                continue;
              }
              Plan plan = plan_p2p(*r, {});
              ProofResult proof = check_plan(plan);
              if (!proof.proved()) FAIL(r->text() << ": " << proof.refutation->what);
              ++proved;
            }
  CHECK(proved + refused == 4 * 5 * 7 * 7 * 7 * 7);
  CHECK(proved > 20000);
}
