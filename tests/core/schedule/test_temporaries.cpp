// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/plan/step_order.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/forwarding.h"
#include "core/schedule/temporaries.h"
#include "tests/support/cases.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

TEST_CASE("temporaries: the third of a chain takes the place of the first") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  Plan plan = plan_p2p(
      Request(parse_layout("1000", "u8", mesh, "R"), parse_layout("1000", "u8", mesh, "R")), {});
  plan.steps.clear();
  BufferId a = plan.add_temporary(), b = plan.add_temporary(), c = plan.add_temporary(),
           unused = plan.add_temporary();
  auto copy = [&](BufferId from, BufferId to) {
    CopyStep step{{{0, {0, 1}}}, MoveList(1)};
    step.moves.push_back({from, to, DimVector{0}, DimVector{0}, DimVector{1000}});
    std::vector<StepId> after;
    if (!plan.steps.empty()) after.push_back(id_of<StepId>(plan.steps.size() - 1));
    plan.add_step(step, after);
  };
  for (BufferId id : {a, b, c, unused}) plan.buffer(id).set_shape(0, Shape{1000});
  copy(kSourceBuffer, a);
  copy(a, b);
  copy(b, c);
  copy(c, kDestinationBuffer);
  TemporaryLayout layout = lay_out_temporaries(temporary_lives(plan, lives_of(plan), 0), 256);
  CHECK(layout.offset == std::vector<std::int64_t>{-1, -1, 0, 1024, 0, -1});
  CHECK(layout.total_bytes == 2024);
  // Source, destination, the chain, and one that none touches.
  CHECK(lives_of(plan).begin == std::vector<std::int32_t>{-1, 3, 0, 1, 2, -1});
  CHECK(lives_of(plan).end == std::vector<std::int32_t>{0, 3, 1, 2, 3, -1});
  CHECK(layout.reuses == std::vector<TemporaryLayout::Reuse>{{a, c}});
  CHECK_THROWS_AS(lay_out_temporaries(temporary_lives(plan, lives_of(plan), 0), 3), CheckFailure);
  // Source, destination and two of the temporaries; what nothing writes takes no memory.
  CHECK(count_bytes(plan).peak_per_slot == std::vector<std::int64_t>{4000});
  // Where the third step need not wait, the third temporary may come before the first is gone.
  plan.steps[2].after.clear();
  CHECK(count_bytes(plan).peak_per_slot == std::vector<std::int64_t>{5000});
  // Nor if one of two that write the third need not wait.
  plan.steps[2].after = {id_of<StepId>(1)};
  CopyStep early{{{0, {0, 1}}}, MoveList(1)};
  early.moves.push_back({kSourceBuffer, c, DimVector{0}, DimVector{0}, DimVector{1000}});
  plan.add_step(early, {});
  CHECK(count_bytes(plan).peak_per_slot == std::vector<std::int64_t>{5000});
}

TEST_CASE("temporaries: what stays when copies are forwarded lives from its first write") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  Plan plan(Request(parse_layout("4", "u8", mesh, "R"), parse_layout("4", "u8", mesh, "R")),
            "hand");
  BufferId folded = plan.add_temporary();
  plan.buffer(folded).set_shape(0, Shape{4});
  for (std::int64_t half : {0, 2}) {
    ReduceStep fold;
    fold.parts = {{0, folded, DimVector{half}, DimVector{2}, 0, 1}};
    fold.operands = {{kSourceBuffer, DimVector{half}}};
    plan.add_step(fold, {});
  }
  CopyStep copy{{{0, {0, 1}}}, MoveList(1)};
  copy.moves.push_back({folded, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{4}});
  plan.add_step(copy, {StepId{0}, StepId{1}});
  prove(plan);
  for (bool forwards : {false, true}) {
    const Lives lives = Forwarding(plan, forwards).lives();
    CHECK(lives.begin[to_index(folded)] == 0);
    CHECK(lives.end[to_index(folded)] == 2);
  }
}

TEST_CASE("temporaries: what is read from copies is read where they came from, cut at the seams") {
  struct Words : Operations {
    std::string out;
    std::string at(const Place& place) {
      return std::to_string(to_index(place.buffer)) + "@" + text(place.lo);
    }
    void copy(const Place& from, const Place& to, const DimVector& extents) override {
      out += at(from) + ">" + at(to) + "*" + text(extents) + " ";
    }
    void fill(const Place& to, const DimVector& extents) override {
      out += "0>" + at(to) + "*" + text(extents) + " ";
    }
    void fold(ReduceOp, std::int64_t, std::span<const Place> operands, const Place& to,
              const DimVector& extents) override {
      for (const Place& operand : operands) out += at(operand) + "+";
      out += ">" + at(to) + "*" + text(extents) + " ";
    }
  };
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  Plan plan(Request(parse_layout("8", "u8", mesh, "R"), parse_layout("8", "u8", mesh, "R")),
            "hand");
  BufferId packed = plan.add_temporary(), padded = plan.add_temporary();
  plan.buffer(packed).set_shape(0, Shape{4});
  plan.buffer(padded).set_shape(0, Shape{2});
  MoveList moves(1);
  auto move = [&](BufferId from, std::int64_t from_lo, BufferId to, std::int64_t to_lo,
                  std::int64_t extent) {
    moves.push_back({from, to, DimVector{from_lo}, DimVector{to_lo}, DimVector{extent}});
  };
  auto copy = [&] {
    auto count = static_cast<std::uint32_t>(moves.size());
    plan.add_step(CopyStep{{{0, {0, count}}}, std::exchange(moves, MoveList(1))}, {});
  };
  move(kSourceBuffer, 4, packed, 0, 2);
  move(kSourceBuffer, 0, packed, 2, 2);
  move(kSourceBuffer, 7, padded, 1, 1);
  copy();
  plan.add_step(FillStep{{{0, padded, Box{{0}, {1}}}}}, {});
  move(packed, 1, kDestinationBuffer, 0, 3);
  move(padded, 0, kDestinationBuffer, 3, 2);
  copy();
  ReduceStep sum;
  sum.parts = {{0, kDestinationBuffer, DimVector{5}, DimVector{3}, 0, 2}};
  sum.operands = {{kSourceBuffer, DimVector{3}}, {packed, DimVector{1}}};
  plan.add_step(sum, {});
  auto run = [&](bool forwards) {
    Forwarding forwarding(plan, forwards);
    Words words;
    for (int twice = 0; twice < 2; ++twice) {
      words.out.clear();
      for (std::int32_t step = 0; step < 4; ++step) forwarding.run(StepId{step}, words);
    }
    return words.out;
  };
  // 0 source, 1 destination, 2 packed, 3 padded, which a fill keeps.
  CHECK(run(true) ==
        "0@7>3@1*1 0>3@0*1 0@5>1@0*1 0@0>1@1*2 3@0>1@3*2 0@3+0@5+>1@5*1 0@4+0@0+>1@6*2 ");
  CHECK(run(false) == "0@4>2@0*2 0@0>2@2*2 0@7>3@1*1 0>3@0*1 2@1>1@0*3 3@0>1@3*2 0@3+2@1+>1@5*3 ");
  Lives lives = Forwarding(plan).lives();
  CHECK(lives.begin == std::vector<std::int32_t>{-1, 2, -1, 0});
  CHECK(lives.end == std::vector<std::int32_t>{3, 3, -1, 2});
}

TEST_CASE("temporaries: of up to 2^16 copies they are forwarded, of more they stay") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  for (std::int64_t copies : {65536, 65537}) {
    std::string shape = std::to_string(copies);
    Plan plan(Request(parse_layout(shape, "u8", mesh, "R"), parse_layout(shape, "u8", mesh, "R")),
              "hand");
    BufferId packed = plan.add_temporary();
    plan.buffer(packed).set_shape(0, Shape{copies});
    CopyStep in{{{0, {0, static_cast<std::uint32_t>(copies)}}}, MoveList(1)},
        out{{{0, {0, 1}}}, MoveList(1)};
    for (std::int64_t i = 0; i < copies; ++i)
      in.moves.push_back({kSourceBuffer, packed, DimVector{i}, DimVector{i}, DimVector{1}});
    out.moves.push_back(
        {packed, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{copies}});
    plan.add_step(in, {});
    plan.add_step(out, {StepId{0}});
    CHECK(Forwarding(plan).lives().begin[to_index(packed)] == (copies == 65536 ? -1 : 0));
  }
}

TEST_CASE("temporaries: a gap is taken where it is large enough, to the byte") {
  // Two live from the start; the first dies, then comes one of `bytes`.
  auto third_at = [](std::int64_t bytes) {
    std::vector<BufferLife> lives{{32, 0, 0}, {16, 0, 2}, {bytes, 1, 2}};
    return lay_out_temporaries(lives, 16).offset;
  };
  CHECK(third_at(32) == std::vector<std::int64_t>{0, 32, 0});
  CHECK(third_at(33) == std::vector<std::int64_t>{0, 32, 48});
}

TEST_CASE(
    "temporaries: of drawn plans none overlaps another that lives, and who takes over memory is "
    "named") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  std::int64_t layouts = 0, pairs_reused = 0;
  for (std::uint64_t seed = 1; layouts < 20'000; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    Plan plan = find_planner(request->same_mesh() ? "rule" : "p2p").make(*request, input);
    if (plan.buffers.size() <= 2) continue;
    Lives lives = lives_of(plan);
    for (std::size_t slot = 0; slot < plan.slot_count(); ++slot, ++layouts) {
      TemporaryLayout layout =
          lay_out_temporaries(temporary_lives(plan, lives, static_cast<Slot>(slot)), 16);
      std::set<std::pair<std::size_t, std::size_t>> reuses;
      for (const TemporaryLayout::Reuse& reuse : layout.reuses)
        reuses.emplace(to_index(reuse.taken), to_index(reuse.taker));
      std::int64_t end = 0;
      auto bytes = [&](std::size_t b) {
        return plan.buffers[b].elements(static_cast<Slot>(slot)) * size_bytes(request->dtype());
      };
      auto begin_step = [&](std::size_t b) { return lives.begin[b * plan.slot_count() + slot]; };
      auto end_step = [&](std::size_t b) { return lives.end[b * plan.slot_count() + slot]; };
      for (std::size_t x = 2; x < plan.buffers.size(); ++x) {
        if (layout.offset[x] < 0) continue;
        CHECK(layout.offset[x] % 16 == 0);
        end = std::max(end, layout.offset[x] + bytes(x));
        for (std::size_t y = 2; y < plan.buffers.size(); ++y) {
          if (x == y || layout.offset[y] < 0) continue;
          bool share = layout.offset[x] < layout.offset[y] + bytes(y) &&
                       layout.offset[y] < layout.offset[x] + bytes(x);
          bool before = end_step(x) < begin_step(y), after = end_step(y) < begin_step(x);
          if (share) CHECK((before || after));
          CHECK(reuses.contains({x, y}) == (share && before));
          pairs_reused += share && before;
        }
      }
      CHECK(end == layout.total_bytes);
    }
  }
  CHECK(pairs_reused > 100);
}

TEST_CASE("an order of too many steps is refused before memory is taken") {
  // 92,682^2 bits are more than 2^33.
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  Plan plan(Request(parse_layout("4", "u8", mesh, "R"), parse_layout("4", "u8", mesh, "R")),
            "hand");
  for (int s = 0; s < 92'682; ++s)
    plan.add_step(FillStep{{{1, kDestinationBuffer, Box{{0}, {1}}}}}, {});
  CHECK_THROWS_AS(StepOrder(plan), InputError);
}
