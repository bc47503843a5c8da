// SPDX-License-Identifier: BSD-3-Clause
// Traffic between pairs: against a loop over every transfer, against the byte counts, and as the
// file that nccl-tests reads.
#include <catch2/catch.hpp>

#include <map>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/traffic/accounting.h"
#include "core/traffic/expansion.h"
#include "core/traffic/transfers.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Matchers::Contains;

namespace {

Request request_of(const char* mesh, const char* shape, const char* from, const char* to,
                   std::string_view ranks = {}) {
  auto ref = std::make_shared<const Mesh>(parse_mesh(mesh, ranks));
  return Request(parse_layout(shape, "f32", ref, from), parse_layout(shape, "f32", ref, to));
}

PlannerInput on(const Topology& topology) {
  PlannerInput input;
  input.topology = &topology;
  return input;
}

Plan planned(const Request& request, std::string_view planner) {
  Topology topology = star(64);
  return find_planner(planner).make(request, on(topology));
}

// Every message and every transfer of every expansion, one by one.
std::map<std::pair<Slot, Slot>, std::int64_t> slow_traffic(const Plan& plan) {
  std::map<std::pair<Slot, Slot>, std::int64_t> out;
  for (const Step& step : plan.steps) {
    if (const auto* exchange = std::get_if<ExchangeStep>(&step.body))
      for (const ExchangeStep::Message& message : exchange->messages)
        for_each_move(exchange->moves, message.moves, [&](const Move& move) {
          out[{message.source, message.destination}] +=
              element_count(move.extents) * plan.element_bytes(move.source);
        });
    const auto* collective = std::get_if<CollectiveStep>(&step.body);
    if (collective == nullptr) continue;
    for (std::size_t g = 0; g < collective->group_count(); ++g) {
      std::span<const Slot> group = collective->group(g);
      std::int64_t elements = expansion_elements(plan, *collective, g);
      Expansion expansion(collective->kind, default_algorithm(collective->kind),
                          collective->group_size, elements);
      for (std::int64_t i = 0; i < expansion.size(); ++i) {
        Transfer transfer = expansion.transfer(i);
        std::int64_t bytes = expansion.elements(i) * size_bytes(plan.request().dtype());
        if (bytes > 0)
          out[{group[static_cast<std::size_t>(transfer.source)],
               group[static_cast<std::size_t>(transfer.destination)]}] += bytes;
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("traffic is that of every transfer, and its columns are what ranks receive") {
  Prng prng(20261121);
  Topology topology = star(64);
  std::int64_t plans = 0, pairs = 0;
  for (int draw = 0; draw < 3000; ++draw) {
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    for (const PlannerRow* planner : own_planners()) {
      std::optional<Plan> plan = plan_by(*planner, *request, on(topology));
      if (!plan) continue;
      INFO("draw " << draw << ": " << plan->request().text() << " by " << planner->name);
      ++plans;
      std::vector<PairBytes> traffic = traffic_of(*plan);
      std::vector<PairBytes> expected;
      for (const auto& [ends, bytes] : slow_traffic(*plan))
        expected.push_back({ends.first, ends.second, bytes});
      REQUIRE(traffic == expected);
      std::vector<std::int64_t> received(plan->slot_count(), 0);
      for (const PairBytes& pair : traffic)
        received[static_cast<std::size_t>(pair.destination)] += pair.bytes;
      REQUIRE(received == count_bytes(*plan).received_per_slot);
      pairs += static_cast<std::int64_t>(traffic.size());
    }
  }
  CHECK(plans > 3000);
  CHECK(pairs > 10000);
}

TEST_CASE("bytes are counted by step and by rank") {
  // A gather of 4 elements from one other rank, then of 8; f32 on four ranks.
  PlanBytes bytes = count_bytes(planned(request_of("2x2", "4,4", "S(0)S(1)", "RR"), "rule"));
  std::erase(bytes.received_per_step, 0);  // copies
  CHECK(bytes.received_per_step == std::vector<std::int64_t>{4 * 16, 4 * 32});
  CHECK(bytes.received_per_slot == std::vector<std::int64_t>{48, 48, 48, 48});
  CHECK((bytes.received_max == 48 && bytes.received_total == 192));
  // A ring of three shares 8 elements as 3, 3 and 2: all but its own, all but the previous one's.
  bytes = count_bytes(planned(request_of("3", "8", "P(sum)", "R"), "rule"));
  CHECK(bytes.received_per_slot == std::vector<std::int64_t>{44, 40, 44});
  CHECK((bytes.received_max == 44 && bytes.received_total == 128));
}

TEST_CASE("every rank has its own fullest step") {
  Plan plan(request_of("2", "1000", "R", "R"), "by hand");
  BufferId a = plan.add_temporary(), b = plan.add_temporary(), c = plan.add_temporary();
  auto copy = [&](Slot slot, BufferId from, BufferId to, std::int64_t extent) {
    CopyStep step{{{slot, {0, 1}}}, MoveList(1)};
    step.moves.push_back({from, to, DimVector{0}, DimVector{0}, DimVector{extent}});
    plan.add_step(step, {});
  };
  for (BufferId id : {a, b}) plan.buffer(id).set_shape(0, Shape{1000});
  plan.buffer(c).set_shape(1, Shape{300});
  copy(0, kSourceBuffer, a, 1000);
  copy(1, kSourceBuffer, c, 300);
  copy(0, a, b, 1000);
  copy(0, b, kDestinationBuffer, 1000);
  copy(1, c, kDestinationBuffer, 300);
  PlanBytes bytes = count_bytes(plan);
  CHECK(bytes.peak_per_slot == std::vector<std::int64_t>{16000, 9200});
  CHECK(bytes.peak_max == 16000);
}

TEST_CASE("transfers, seen from a part") {
  auto seen = [](const Transfers& transfers, std::int32_t part, std::int32_t round) {
    std::string out;
    transfers.for_each(
        part, round, [&](std::int32_t from, std::int32_t to, std::int64_t bytes, const Terms*) {
          out +=
              std::to_string(from) + ">" + std::to_string(to) + ":" + std::to_string(bytes) + " ";
        });
    return out;
  };
  auto slots = [](const Transfers& transfers) {
    return std::vector<Slot>(transfers.slots().begin(), transfers.slots().end());
  };
  Transfers none = Transfers::none(3);
  CHECK((none.rounds() == 0 && none.count() == 0 && none.at_once() == 0));
  CHECK(slots(none) == std::vector<Slot>{0, 1, 2});
  Transfers one = Transfers::message(7);
  CHECK((one.rounds() == 1 && slots(one) == std::vector<Slot>{0, 1}));
  CHECK((seen(one, 0, 0) == "0>1:7 " && seen(one, 1, 0) == "0>1:7 "));
  // Chunks of 3, 3 and 2 bytes.
  Transfers ring = Transfers::collective(CollectiveKind::AllReduce, Algorithm::Ring, 3, 8);
  CHECK((ring.rounds() == 4 && ring.count() == 12 && ring.at_once() == 3));
  CHECK(slots(ring) == std::vector<Slot>{0, 1, 2});
  CHECK(seen(ring, 1, 0) == "1>2:3 0>1:2 ");
  CHECK(seen(ring, 1, 3) == "1>2:3 0>1:2 ");
  // Groups of a collective are numbered one after the other.
  Plan plan = planned(request_of("2x2", "8", "RS(0)", "RR"), "rule");
  Transfers gathers(plan, plan.steps.at(0));
  CHECK((gathers.rounds() == 1 && gathers.count() == 4 && gathers.at_once() == 4));
  CHECK(slots(gathers) == std::vector<Slot>{0, 1, 2, 3});
  CHECK(seen(gathers, 2, 0) == "2>3:16 3>2:16 ");
  // Of an exchange a part's messages, those that it sends first.
  plan = planned(request_of("3", "3,3", "S(0)", "S(1)", "4,2,7"), "p2p");
  for (const Step& step : plan.steps)
    if (std::holds_alternative<ExchangeStep>(step.body)) {
      Transfers exchange(plan, step);
      CHECK((exchange.rounds() == 1 && exchange.count() == 0));
      CHECK(seen(exchange, 1, 0) == "1>0:4 1>2:4 0>1:4 2>1:4 ");
    }
}

TEST_CASE("rings that were laid over nodes cut what leaves them") {
  // Two nodes of two: 0 > 1 > 2 > 3 > 0, and the other way within the nodes, 1 > 0 > 3 > 2 > 1.
  Transfers rings = Transfers::collective(CollectiveKind::AllGather, Algorithm::Ring, 4, 7);
  CHECK((rings.count() == 12 && rings.at_once() == 4));
  rings.lay_rings({{0, 2, 1, 1, 3, 3}, {1, 2, 0, 0, 2, 2}, {2, 2, 3, 3, 1, 1}, {3, 2, 2, 2, 0, 0}});
  CHECK((rings.rounds() == 3 && rings.count() == 24 && rings.at_once() == 8));
  auto seen = [](const Transfers& transfers, std::int32_t part, bool sent) {
    std::string out;
    auto add = [&](std::int32_t from, std::int32_t to, std::int64_t bytes, const Terms*) {
      out += std::to_string(from) + ">" + std::to_string(to) + ":" + std::to_string(bytes) + " ";
    };
    sent ? transfers.for_each_sent(part, 2, add) : transfers.for_each(part, 2, add);
    return out;
  };
  CHECK(seen(rings, 0, false) == "0>1:3 0>3:4 1>0:3 3>0:4 ");
  CHECK(seen(rings, 3, true) == "3>2:3 3>0:4 ");
  // Nodes of one, and one that nothing leaves.
  Transfers alone = Transfers::collective(CollectiveKind::AllGather, Algorithm::Ring, 2, 7);
  alone.lay_rings({{0, 1, -1, -1, 1, 1}, {1, 1, -1, -1, 0, 0}});
  CHECK((alone.count() == 2 && alone.at_once() == 2));
  CHECK(seen(alone, 0, false) == "0>1:7 1>0:7 ");
  Transfers inside = Transfers::collective(CollectiveKind::AllGather, Algorithm::Ring, 2, 7);
  inside.lay_rings({{0, 1, 1, 1, -1, -1}, {1, 1, 0, 0, -1, -1}});
  CHECK((inside.count() == 2 && inside.at_once() == 2));
  CHECK(seen(inside, 1, false) == "1>0:7 0>1:7 ");
  CHECK_THROWS_AS(inside.lay_rings({}), CheckFailure);
  Transfers direct = Transfers::collective(CollectiveKind::AllGather, Algorithm::Direct, 2, 7);
  CHECK_THROWS_AS(direct.lay_rings({{}, {}}), CheckFailure);
}

TEST_CASE("the matrix has a row and a column for every rank up to the greatest") {
  // Ranks 1 and 3 swap halves of 4 x 4 f32: each sends 2 x 2 elements.
  AlltoallvMatrix matrix =
      alltoallv_matrix(planned(request_of("2", "4,4", "S(0)", "S(1)", "3,1"), "p2p"));
  CHECK(matrix.text == "0 0 0 0\n0 0 0 16\n0 0 0 0\n0 16 0 0\n");
  CHECK(matrix.size_bytes == 16);
  // A gather on a ring of three, blocks of two rows: every member passes on its own block and the
  // one before.
  matrix = alltoallv_matrix(planned(request_of("3", "6,4", "S(0)", "R"), "rule"));
  CHECK(matrix.text == "0 64 0\n0 0 64\n64 0 0\n");
  CHECK(matrix.size_bytes == 64);
  // A plan that sends nothing.
  CHECK(alltoallv_matrix(planned(request_of("2", "4", "R", "S(0)"), "p2p")).text == "0 0\n0 0\n");
  // The largest sum may be that of a row: rank 0 sends to three, each gets 4 of its 16 bytes.
  matrix = alltoallv_matrix(planned(
      Request(parse_layout("4", "f32", std::make_shared<const Mesh>(parse_mesh("1")), "R"),
              parse_layout("4", "f32", std::make_shared<const Mesh>(parse_mesh("4")), "S(0)")),
      "p2p"));
  CHECK(matrix.text == "0 4 4 4\n0 0 0 0\n0 0 0 0\n0 0 0 0\n");
  CHECK(matrix.size_bytes == 12);
  // Or of a column: the way back.
  matrix = alltoallv_matrix(planned(
      Request(parse_layout("4", "f32", std::make_shared<const Mesh>(parse_mesh("4")), "S(0)"),
              parse_layout("4", "f32", std::make_shared<const Mesh>(parse_mesh("1")), "R")),
      "p2p"));
  CHECK(matrix.text == "0 0 0 0\n4 0 0 0\n4 0 0 0\n4 0 0 0\n");
  CHECK(matrix.size_bytes == 12);
}

TEST_CASE("a matrix too wide to write down is refused") {
  Plan wide(request_of("2", "4,4", "S(0)", "S(1)", "0,4096"), "none");
  CHECK_THROWS_AS(alltoallv_matrix(wide), InputError);
  CHECK_THROWS_WITH(alltoallv_matrix(wide), Contains("below 4096") && Contains("rank 4096"));
  CHECK_NOTHROW(alltoallv_matrix(Plan(request_of("2", "4,4", "S(0)", "S(1)", "0,4095"), "none")));
}

TEST_CASE("collectives that connect too many pairs are refused before memory is taken") {
  // One all_to_all of 2^14 ranks connects 2^28 pairs.
  std::int32_t n = 1 << 14;
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({n}));
  Shape shape{n, n};
  Plan plan(Request(Layout(shape, DType::I8, mesh, {Placement::shard(0)}),
                    Layout(shape, DType::I8, mesh, {Placement::shard(1)})),
            "by hand");
  CollectiveStep step{};
  step.kind = CollectiveKind::AllToAll;
  step.input = kSourceBuffer;
  step.output = kDestinationBuffer;
  step.group_size = n;
  for (Slot slot = 0; slot < n; ++slot) step.members.push_back(slot);
  plan.add_step(step, {});
  CHECK_THROWS_AS(traffic_of(plan), InputError);
}

TEST_CASE("a collective of nothing connects no pairs") {
  Plan plan(request_of("2", "0,4", "S(0)", "R"), "by hand");
  CollectiveStep step{};
  step.kind = CollectiveKind::AllGather;
  step.input = kSourceBuffer;
  step.output = kDestinationBuffer;
  step.group_size = 2;
  step.members = {0, 1};
  plan.add_step(step, {});
  CHECK(traffic_of(plan).empty());
}
