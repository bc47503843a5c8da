// SPDX-License-Identifier: BSD-3-Clause
// How the times of plans are related, whatever they are: the same redistribution expressed
// differently takes as long, a larger or harder one no less, and no plan beats what others cannot.
// Over random redistributions on existing machines, by every planner and transport that the
// relation holds for.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string_view>

#include "core/base/errors.h"
#include "core/bounds/bounds.h"
#include "core/planners/planner.h"
#include "core/traffic/accounting.h"
#include "sim/study/studies.h"
#include "tests/sim/study/related_requests.h"
#include "tests/support/any_planner.h"
#include "tests/support/part.h"

namespace reshard::test {
namespace {

constexpr std::int64_t kMoves = 200 / kOneOf;

// None where the planner refuses.
std::optional<std::int64_t> time_of(const DrawnMove& move, std::string_view planner,
                                    TransportKind transport) {
  sim::StudyOptions options;
  options.transport.kind = transport;
  try {
    return sim::Studies(move.machine, find_planner(planner), options)
        .unproved_time_ps(move.request());
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::int64_t bound_ps(const DrawnMove& move, TransportKind transport = TransportKind::Ideal) {
  return bound_of(move.request(), *move.machine, sim::switches_of(transport)).time_ps();
}

PlanBytes p2p_bytes(const DrawnMove& move) {
  PlannerInput input;
  input.topology = move.machine.get();
  return count_bytes(plan_p2p(move.request(), input));
}

// Planners that search take their time: of the drawn moves every fourth.
bool tries(std::string_view planner, const Prng& after) {
  Prng next = after;
  return (planner != "packed" && planner != "auto") || next.one_in(4);
}

// Calls relation(move, prng) for drawn moves; how many of them it took part in.
template <class Relation>
std::int64_t each_move(Relation&& relation) {
  std::int64_t taken = 0;
  for (std::int64_t seed = 1; seed <= kMoves; ++seed) {
    Prng prng(static_cast<std::uint64_t>(seed));
    DrawnMove move = draw_move(prng);
    INFO("seed " << seed << ": " << move.text());
    taken += relation(move, prng) ? 1 : 0;
  }
  return taken;
}

// Thousandths that the second may be off the first, either way.
bool near(std::int64_t first, std::int64_t second, std::int64_t permille) {
  return (second > first ? second - first : first - second) * 1000 <= permille * first;
}

struct Clock {
  const char* planner;
  TransportKind transport;
  std::int64_t permille = 0;
};
using enum TransportKind;

// `other` says the same as `move` by these clocks.
void require_equal(const DrawnMove& move, const DrawnMove& other, const Prng& prng,
                   std::initializer_list<Clock> clocks) {
  INFO("against " << other.text());
  for (const Clock& clock : clocks) {
    if (!tries(clock.planner, prng)) continue;
    INFO(clock.planner << " by " << text(clock.transport));
    std::optional<std::int64_t> one = time_of(move, clock.planner, clock.transport),
                                two = time_of(other, clock.planner, clock.transport);
    REQUIRE(one.has_value() == two.has_value());
    if (one) CHECK(near(*one, *two, clock.permille));
  }
}

// `other` is harder than `move`, or as hard.
void require_no_less(const DrawnMove& move, const DrawnMove& other, const Prng& prng,
                     std::initializer_list<Clock> clocks) {
  INFO("against " << other.text());
  for (const Clock& clock : clocks) {
    if (!tries(clock.planner, prng)) continue;
    INFO(clock.planner << " by " << text(clock.transport));
    std::optional<std::int64_t> one = time_of(move, clock.planner, clock.transport),
                                two = time_of(other, clock.planner, clock.transport);
    if (one && two) CHECK(*two * 1000 >= *one * (1000 - clock.permille));
  }
}

}  // namespace

// By ideal links and by NCCL. Copy engines launch alike copies by rank, which stays.
TEST_CASE("relations: devices of alike nodes and alike devices may change names") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove other = renumbered(move, prng);
          require_equal(move, other, prng,
                        {{"rule", Ideal},
                         {"graph", Ideal},
                         {"p2p", Ideal},
                         {"hybrid", Ideal},
                         {"packed", Ideal, 1},
                         {"auto", Ideal, 1},
                         {"p2p", Nccl},
                         {"hybrid", Nccl},
                         {"packed", Nccl, 1},
                         {"auto", Nccl, 1},
                         {"p2p", CopyEngine, 100}});
          CHECK(bound_ps(move) == bound_ps(other));
          return true;
        }) == kMoves);
}

// Twice the bytes on 2.30's channels may go by twice the thread blocks, which fill sooner: 4 %
// (nccl_costs.h, D of the first 16 MiB).
TEST_CASE("relations: twice the bytes take no less") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove other = of_twice_the_bytes(move);
          require_no_less(move, other, prng,
                          {{"rule", Ideal},
                           {"p2p", Ideal},
                           {"hybrid", Ideal},
                           {"packed", Ideal},
                           {"auto", Ideal},
                           {"p2p", Nccl, 40},
                           {"packed", Nccl, 40},
                           {"auto", Nccl, 40},
                           {"p2p", CopyEngine},
                           {"auto", CopyEngine}});
          CHECK(bound_ps(move) <= bound_ps(other));
          CHECK(p2p_bytes(move).received_total * 2 == p2p_bytes(other).received_total);
          return true;
        }) == kMoves);
}

TEST_CASE("relations: the axes of a mesh may be told in any order") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove other = with_axes_turned(move, prng);
          // Of several senders of one class within a node the first is taken.
          require_equal(move, other, prng,
                        {{"p2p", Ideal, 130}, {"hybrid", Ideal, 130}, {"auto", Ideal, 100}});
          CHECK(bound_ps(move) == bound_ps(other));
          CHECK(p2p_bytes(move).received_total == p2p_bytes(other).received_total);
          return true;
        }) == kMoves);
}

TEST_CASE("relations: an axis of one rank and a dim of one element change nothing") {
  CHECK(
      each_move([](const DrawnMove& move, Prng& prng) {
        require_equal(move, with_another_axis(move, prng), prng,
                      {{"rule", Ideal},
                       {"graph", Ideal},
                       {"p2p", Ideal},
                       {"hybrid", Ideal},
                       {"packed", Ideal},
                       {"p2p", CopyEngine}});
        // PyTorch's min-cost planner breaks ties by dim.
        require_equal(
            move, with_another_dim(move, prng), prng,
            {{"rule", Ideal}, {"p2p", Ideal}, {"hybrid", Ideal}, {"packed", Ideal}, {"p2p", Nccl}});
        return true;
      }) == kMoves);
}

TEST_CASE("relations: the dims of a tensor may be told in any order") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove other = with_dims_turned(move, prng);
          require_equal(move, other, prng,
                        {{"rule", Ideal},
                         {"p2p", Ideal},
                         {"hybrid", Ideal},
                         {"packed", Ideal, 10},
                         {"p2p", Nccl, 10}});
          CHECK(bound_ps(move) == bound_ps(other));
          return true;
        }) == kMoves);
}

TEST_CASE("relations: the way back of what nobody holds twice is as long") {
  CHECK(each_move([](const DrawnMove& move, Prng&) {
          auto is_cut = [](const Side::Axis& axis) { return axis.kind == 'S'; };
          if (!std::ranges::all_of(move.from.axes, is_cut) ||
              !std::ranges::all_of(move.to.axes, is_cut))
            return false;
          DrawnMove back = reversed(move);
          CHECK(p2p_bytes(move).received_total == p2p_bytes(back).received_total);
          // Whatever is sent may be sent back, over links that are as wide either way.
          std::int64_t least = std::max(bound_ps(move), bound_ps(back));
          CHECK(*time_of(move, "auto", Ideal) >= least);
          CHECK(*time_of(back, "auto", Ideal) >= least);
          return true;
        }) > kMoves / 20);
}

TEST_CASE("relations: who holds more at the beginning is bounded by no more") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove easier = made_easier(move, prng);
          std::optional<Request> request;
          try {
            request = easier.request();
          } catch (const InputError&) {
            return false;  // R -> P(sum) divides, S -> P(sum) does not
          }
          if (move.request().fold().divisor != request->fold().divisor) return false;
          CHECK(bound_ps(easier) <= bound_ps(move));
          CHECK(p2p_bytes(easier).received_total <= p2p_bytes(move).received_total);
          return true;
        }) > kMoves / 2);
}

TEST_CASE("relations: wider links and quicker ones are no slower") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          for (const DrawnMove& other : {on_wider_links(move), on_quicker_links(move)}) {
            require_no_less(other, move, prng,
                            {{"rule", Ideal},
                             {"graph", Ideal},
                             {"p2p", Ideal},
                             {"hybrid", Ideal},
                             {"packed", Ideal, 50},
                             {"auto", Ideal, 50}});
            CHECK(bound_ps(other) <= bound_ps(move));
          }
          return true;
        }) == kMoves);
}

// No move is bounded by more than a detour takes.
TEST_CASE("relations: a detour takes no less than the bound of the straight way") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          DrawnMove there = move, on = move;
          there.to = on.from = somewhere_else(move, prng);
          std::optional<std::int64_t> first, second;
          try {
            first = time_of(there, "auto", Ideal);
            second = time_of(on, "auto", Ideal);
          } catch (const InputError&) {
            return false;
          }
          // What is folded on the way is divided there, or P(sum) is kept as it is.
          if (!first || !second) return false;
          CHECK(*first + *second >= bound_ps(move));
          return true;
        }) > kMoves / 2);
}

TEST_CASE("relations: auto is no slower than any planner, and no planner beats the bound") {
  CHECK(each_move([](const DrawnMove& move, Prng& prng) {
          if (!tries("auto", prng)) return false;
          for (TransportKind transport : {Ideal, Nccl, CopyEngine}) {
            std::int64_t best = *time_of(move, "auto", transport),
                         least = bound_ps(move, transport);
            CHECK(best >= least);
            for (const PlannerRow* planner : own_planners())
              if (std::optional<std::int64_t> time = time_of(move, planner->name, transport)) {
                INFO(planner->name << " by " << text(transport));
                CHECK(*time >= best);
              }
          }
          return true;
        }) > kMoves / 10);
}

TEST_CASE("relations: what stays where it is takes no time") {
  CHECK(each_move([](const DrawnMove& move, Prng&) {
          DrawnMove still = move;
          still.to = move.from;
          for (TransportKind transport : {Ideal, Nccl, CopyEngine})
            CHECK(*time_of(still, "auto", transport) == 0);
          CHECK(bound_ps(still) == 0);
          return true;
        }) == kMoves);
}

}  // namespace reshard::test
