// SPDX-License-Identifier: BSD-3-Clause
// The traffic between ranks, step by step and in total, in random plans and in every expansion,
// stays the same. Other tests check that it is right; this one that nothing has changed. To accept
// an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_sweep "drawn traffic*"
//
// rewrites tests/sweep/data/traffic.txt and expansions.txt.
#include <catch2/catch.hpp>

#include "core/schedule/collective_messages.h"
#include "core/traffic/accounting.h"
#include "core/traffic/transfers.h"
#include "tests/support/pinned.h"
#include "tests/support/plan_words.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::string of_step(const Plan& plan, const Step& step) {
  std::string out = word(kind_text(step));
  for_each_access(plan, step, [&](BufferId buffer, Slot slot, bool is_write) {
    out += fmt::format("{}.{}{} ", to_index(buffer), slot, is_write ? "w" : "r");
  });
  for_each_message(plan, step, [&](Slot from, Slot to, std::int64_t bytes, std::int64_t boxes) {
    out += fmt::format("{}>{} {} {} ", from, to, bytes, boxes);
  });
  for_each_receipt(plan, step,
                   [&](Slot slot, std::int64_t bytes) { out += word(slot) + word(bytes); });
  for_each_pair(plan, step, [&](Slot from, Slot to, std::int64_t bytes) {
    out += fmt::format("{}>{} {} ", from, to, bytes);
  });
  if (std::optional<StepTraffic> traffic = step_traffic(plan, step)) {
    out += words(traffic->slots) + word(traffic->kind ? text(*traffic->kind) : "-") +
           word(traffic->group_size) + words(traffic->group_bytes);
    for (const Flow& flow : traffic->flows)
      out += word(flow.source) + word(flow.destination) + word(flow.bytes) + word(flow.ranges);
  }
  Transfers transfers(plan, step);
  out += word(transfers.rounds()) + word(transfers.count()) + word(transfers.at_once()) +
         word(transfers.group_size()) + (transfers.equal_rounds() ? "alike " : "") +
         (transfers.is_ring() ? "ring " : "");
  auto show = [&](std::int32_t from, std::int32_t to, std::int64_t bytes, const Terms*) {
    out += word(from) + word(to) + word(bytes);
  };
  for (std::int32_t part = 0; part < static_cast<std::int32_t>(transfers.slots().size()); ++part) {
    out += word(transfers.slots()[to_index(part)]);
    for (std::int32_t round = 0; round < transfers.rounds(); ++round) {
      transfers.for_each(part, round, show);
      transfers.for_each_sent(part, round, show);
    }
  }
  return out;
}

std::string of_traffic(const Plan& plan) {
  std::string out;
  for (const Step& step : plan.steps) out += of_step(plan, step);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (const std::vector<Rank>& group : groups_of(plan, id_of<StepId>(s))) out += words(group);
  PlanBytes bytes = count_bytes(plan);
  out += words(bytes.received_per_step) + words(bytes.received_per_slot) +
         word(bytes.received_max) + word(bytes.received_total) + words(bytes.peak_per_slot) +
         word(bytes.peak_max);
  for (const PairBytes& pair : traffic_of(plan))
    out += word(pair.source) + word(pair.destination) + word(pair.bytes);
  AlltoallvMatrix matrix = alltoallv_matrix(plan);
  out += matrix.text + word(matrix.size_bytes);
  for_each_collective(plan, [&](StepId step, const CollectiveFacts& facts) {
    out += word(static_cast<std::int64_t>(to_index(step))) + word(text(facts.kind)) +
           word(text(facts.op)) + word(facts.divisor) + word(text(facts.dtype)) +
           word(facts.group_size) + word(facts.operand_bytes) + (facts.contiguous ? "one " : "");
  });
  return out;
}

}  // namespace

TEST_CASE("drawn traffic is what it was") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  Pinned pinned("tests/sweep/data/traffic.txt", 4);
  for (std::uint64_t seed = 0; seed < 1'500 / kOneOf; ++seed) {
    CAPTURE(seed);
    Prng prng(seed + 1'700'000);
    pinned.add(of_traffic(drawn_plan(prng, input)));
  }
  pinned.finish();
}

TEST_CASE("drawn traffic: expansions and shares are what they were") {
  Pinned pinned("tests/sweep/data/expansions.txt", 20);
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                              CollectiveKind::AllReduce, CollectiveKind::AllToAll})
    for (Algorithm algorithm : {Algorithm::Ring, Algorithm::Direct, Algorithm::Tree})
      for (std::int32_t n = 2; n <= 17 && has_algorithm(kind, algorithm); ++n)
        for (std::int64_t elements : {std::int64_t{0}, std::int64_t{n} - 1, std::int64_t{n},
                                      std::int64_t{7}, std::int64_t{100}}) {
          Expansion expansion(kind, algorithm, n, elements);
          std::string out = word(expansion.size()) + word(expansion.rounds()) +
                            word(expansion.equal_rounds() ? 1 : 0) + word(expansion.is_ring());
          std::vector<std::int64_t> waits;
          auto show = [&](const Transfer& transfer) {
            out += word(transfer.source) + word(transfer.destination) + word(transfer.first_chunk) +
                   word(transfer.chunks) + word(transfer.fold) + word(expansion.elements(transfer));
          };
          for (std::int64_t i = 0; i < expansion.size() && n < 10; ++i) {
            show(expansion.transfer(i));
            expansion.waits_for(i, waits);
            out += word(expansion.round_of(i));
          }
          out += words(waits);
          for (std::int32_t m = 0; m < n; ++m) {
            out += word(expansion.received(m));
            for (std::int32_t round = 0; round < expansion.rounds(); ++round) {
              for (std::int32_t k = 0; k < expansion.sends(round, m); ++k) {
                out += word(expansion.send(round, m, k));
                show(expansion.sent(round, m, k));
              }
              for (std::int32_t k = 0; k < expansion.receives(round, m); ++k) {
                out += word(expansion.receive(round, m, k));
                show(expansion.arriving(round, m, k));
              }
            }
          }
          pinned.add(out);
        }
  Prng prng(41);
  for (int draw = 0; draw < 2'000; ++draw) {
    int dims = static_cast<int>(prng.between(1, 4));
    Box box{DimVector(dims), DimVector(dims)};
    for (int d = 0; d < dims; ++d) {
      box.lo[d] = prng.below(4);
      box.hi[d] = box.lo[d] + prng.between(1, prng.one_in(2) ? 40 : 3);
    }
    std::int64_t n = prng.between(2, 9);
    std::string out;
    for (std::int64_t i = 0; i < n; ++i) out += text(share_of(box, i, n)) + ' ';
    pinned.add(out);
  }
  pinned.finish();
}
