// SPDX-License-Identifier: BSD-3-Clause
// Every expansion, executed on sets of operands, has the collective's meaning: each result chunk
// ends with exactly its operands, each once.
#include <catch2/catch.hpp>
#include <set>

#include "core/base/errors.h"
#include "core/traffic/expansion.h"

using namespace reshard;

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                     CollectiveKind::AllReduce, CollectiveKind::AllToAll};
constexpr Algorithm kAlgorithms[] = {Algorithm::Ring, Algorithm::Direct, Algorithm::Tree};

// What a chunk holds: from whom. A multiset, so that an operand folded twice shows.
using Operands = std::multiset<std::int32_t>;

// Chunks by [member][chunk of the result's numbering]. all_to_all is held by [member][sender]; what
// a member sends is never what it got.
using State = std::vector<std::vector<Operands>>;

State before(CollectiveKind kind, std::int32_t n) {
  State state(static_cast<std::size_t>(n), std::vector<Operands>(static_cast<std::size_t>(n)));
  for (std::int32_t m = 0; m < n; ++m)
    for (std::int32_t c = 0; c < n; ++c) {
      bool has =
          kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce || c == m;
      if (has) state[static_cast<std::size_t>(m)][static_cast<std::size_t>(c)].insert(m);
    }
  return state;
}

Operands everyone(std::int32_t n) {
  Operands all;
  for (std::int32_t m = 0; m < n; ++m) all.insert(m);
  return all;
}

// Runs the transfers in numbered order and checks what each member ends with.
void check_meaning(CollectiveKind kind, const Expansion& expansion, std::int32_t n) {
  State state = before(kind, n);
  for (std::int64_t i = 0; i < expansion.size(); ++i) {
    Transfer t = expansion.transfer(i);
    REQUIRE((t.source >= 0 && t.source < n && t.destination >= 0 && t.destination < n &&
             t.source != t.destination));
    REQUIRE((t.chunks >= 1 && t.first_chunk >= 0 && t.first_chunk + t.chunks <= n));
    for (std::int32_t c = t.first_chunk; c < t.first_chunk + t.chunks; ++c) {
      const Operands& sent = state[static_cast<std::size_t>(t.source)][static_cast<std::size_t>(c)];
      Operands& target =
          state[static_cast<std::size_t>(t.destination)][static_cast<std::size_t>(c)];
      REQUIRE_FALSE(sent.empty());
      if (!t.fold) target.clear();
      target.insert(sent.begin(), sent.end());
    }
  }
  for (std::int32_t m = 0; m < n; ++m)
    for (std::int32_t c = 0; c < n; ++c) {
      const Operands& held = state[static_cast<std::size_t>(m)][static_cast<std::size_t>(c)];
      if (kind == CollectiveKind::AllReduce || (kind == CollectiveKind::ReduceScatter && c == m))
        REQUIRE(held == everyone(n));
      if (kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll)
        REQUIRE(held == Operands{c});
    }
}

// Any order that respects waits_for gives the same: a transfer's waits must hold everything that it
// sends and everything that its target must hold before.
void check_waits(const Expansion& expansion) {
  auto size = static_cast<std::size_t>(expansion.size());
  // reaches[i]: transfers complete before i starts.
  std::vector<std::vector<bool>> reaches(size, std::vector<bool>(size, false));
  std::vector<std::int64_t> waits;
  for (std::size_t i = 0; i < size; ++i) {
    waits.clear();
    expansion.waits_for(static_cast<std::int64_t>(i), waits);
    for (std::int64_t w : waits) {
      REQUIRE((w >= 0 && w < static_cast<std::int64_t>(i)));
      reaches[i][static_cast<std::size_t>(w)] = true;
      for (std::size_t j = 0; j < i; ++j)
        if (reaches[static_cast<std::size_t>(w)][j]) reaches[i][j] = true;
    }
    Transfer later = expansion.transfer(static_cast<std::int64_t>(i));
    std::int32_t round = expansion.round_of(static_cast<std::int64_t>(i));
    for (std::size_t j = 0; j < i; ++j) {
      Transfer earlier = expansion.transfer(static_cast<std::int64_t>(j));
      bool shares_member = earlier.source == later.source || earlier.source == later.destination ||
                           earlier.destination == later.source ||
                           earlier.destination == later.destination;
      if (shares_member && expansion.round_of(static_cast<std::int64_t>(j)) < round)
        REQUIRE(reaches[i][j]);
    }
  }
}

// Within a round nobody sends a chunk that the same round changes at the sender: so a round's
// transfers may run in any order.
void check_rounds_are_free(const Expansion& expansion) {
  for (std::int64_t i = 0; i < expansion.size(); ++i)
    for (std::int64_t j = i + 1;
         j < expansion.size() && expansion.round_of(j) == expansion.round_of(i); ++j) {
      Transfer a = expansion.transfer(i), b = expansion.transfer(j);
      auto feeds = [](const Transfer& from, const Transfer& to) {
        return from.destination == to.source && from.first_chunk < to.first_chunk + to.chunks &&
               to.first_chunk < from.first_chunk + from.chunks;
      };
      REQUIRE_FALSE(feeds(a, b));
      REQUIRE_FALSE(feeds(b, a));
    }
}

// rounds, sends, receives and their numbers are the transfers, seen from the members.
void check_views(const Expansion& expansion, std::int32_t n) {
  std::int64_t sent = 0, got = 0;
  for (std::int32_t round = 0; round < expansion.rounds(); ++round)
    for (std::int32_t m = 0; m < n; ++m) {
      for (std::int32_t k = 0; k < expansion.sends(round, m); ++k, ++sent) {
        std::int64_t i = expansion.send(round, m, k);
        REQUIRE(expansion.transfer(i).source == m);
        REQUIRE(expansion.round_of(i) == round);
      }
      for (std::int32_t k = 0; k < expansion.receives(round, m); ++k, ++got) {
        std::int64_t i = expansion.receive(round, m, k);
        REQUIRE(expansion.transfer(i).destination == m);
        REQUIRE(expansion.round_of(i) == round);
      }
    }
  REQUIRE(sent == expansion.size());
  REQUIRE(got == expansion.size());
}

void check_bytes(CollectiveKind kind, Algorithm algorithm, const Expansion& expansion,
                 std::int32_t n, std::int64_t count) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(n), 0);
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < expansion.size(); ++i) {
    received[static_cast<std::size_t>(expansion.transfer(i).destination)] += expansion.elements(i);
    total += expansion.elements(i);
  }
  for (std::int32_t m = 0; m < n; ++m)
    REQUIRE(expansion.received(m) == received[static_cast<std::size_t>(m)]);
  // Every algorithm moves the least in all that its kind can with one copy per chunk and receiver:
  // n-1 chunks each, all_reduce 2 (n-1) buffers' worth in sum.
  std::int64_t expected =
      kind == CollectiveKind::AllReduce ? 2 * (n - 1) * count : std::int64_t{n} * (n - 1) * count;
  REQUIRE(total == expected);
  if (algorithm == Algorithm::Ring && kind != CollectiveKind::AllReduce)
    REQUIRE(expansion.received(0) == (n - 1) * count);
}

}  // namespace

TEST_CASE("every expansion delivers exactly the operands of the collective's meaning") {
  int cases = 0;
  for (CollectiveKind kind : kKinds)
    for (Algorithm algorithm : kAlgorithms) {
      if (!has_algorithm(kind, algorithm)) continue;
      for (std::int32_t n = 2; n <= 16; ++n) {
        for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{n} - 1,
                                   std::int64_t{n}, std::int64_t{n} + 1, std::int64_t{3} * n}) {
          INFO(text(kind) << " algorithm " << static_cast<int>(algorithm) << " n " << n << " count "
                          << count);
          Expansion expansion(kind, algorithm, n, count);
          check_bytes(kind, algorithm, expansion, n, count);
          ++cases;
        }
        INFO(text(kind) << " algorithm " << static_cast<int>(algorithm) << " n " << n);
        Expansion expansion(kind, algorithm, n, n + 1);
        check_meaning(kind, expansion, n);
        check_waits(expansion);
        check_rounds_are_free(expansion);
        check_views(expansion, n);
      }
    }
  CHECK(cases == 9 * 15 * 6);  // 4 kinds by ring and direct, and the tree
}

TEST_CASE("a member's transfers of a round are the same by number and without") {
  auto same = [](const Transfer& a, const Transfer& b) {
    return a.source == b.source && a.destination == b.destination &&
           a.first_chunk == b.first_chunk && a.chunks == b.chunks && a.fold == b.fold;
  };
  for (CollectiveKind kind : kKinds)
    for (Algorithm algorithm : kAlgorithms)
      for (std::int32_t n = 2; has_algorithm(kind, algorithm) && n <= 9; ++n) {
        Expansion e(kind, algorithm, n, 20);
        for (std::int32_t round = 0; round < e.rounds(); ++round)
          for (std::int32_t m = 0; m < n; ++m) {
            for (std::int32_t k = 0; k < e.sends(round, m); ++k)
              REQUIRE(same(e.sent(round, m, k), e.transfer(e.send(round, m, k))));
            for (std::int32_t k = 0; k < e.receives(round, m); ++k)
              REQUIRE(same(e.arriving(round, m, k), e.transfer(e.receive(round, m, k))));
          }
      }
}

TEST_CASE("rounds are alike where each member sends the same to the same in all of them") {
  for (CollectiveKind kind : kKinds)
    for (Algorithm algorithm : kAlgorithms)
      for (std::int32_t n = 2; has_algorithm(kind, algorithm) && n <= 6; ++n)
        for (std::int64_t elements : {60, 61}) {
          Expansion e(kind, algorithm, n, elements);
          bool equal = true;
          for (std::int32_t round = 0; round < e.rounds(); ++round)
            for (std::int32_t m = 0; m < n; ++m) {
              equal = equal && e.sends(round, m) == e.sends(0, m);
              for (std::int32_t k = 0; equal && k < e.sends(round, m); ++k) {
                Transfer at = e.sent(round, m, k), first = e.sent(0, m, k);
                equal = at.destination == first.destination && e.elements(at) == e.elements(first);
              }
            }
          if (e.equal_rounds()) REQUIRE(equal);
          if (algorithm == Algorithm::Ring && equal && n > 2) REQUIRE(e.equal_rounds());
        }
}

TEST_CASE("all_reduce cuts its count by floor and ceiling, the larger chunks first") {
  Expansion ring(CollectiveKind::AllReduce, Algorithm::Ring, 4, 10);  // 3 3 2 2
  // Round 0: member i sends chunk i-1.
  CHECK(ring.elements(0) == 2);
  CHECK(ring.elements(1) == 3);
  CHECK(ring.elements(2) == 3);
  CHECK(ring.elements(3) == 2);
}

TEST_CASE("the ring's last fold of chunk c happens at member c") {
  Expansion ring(CollectiveKind::ReduceScatter, Algorithm::Ring, 5, 1);
  for (std::int32_t m = 0; m < 5; ++m) {
    Transfer last = ring.transfer(ring.receive(3, m, 0));
    CHECK(last.first_chunk == m);
    CHECK(last.fold);
  }
}

TEST_CASE("a tree's depth is logarithmic and its transfers are 2 (n - 1)") {
  for (std::int32_t n : {2, 3, 1000, 1024, 1025, 1 << 20}) {
    Expansion tree(CollectiveKind::AllReduce, Algorithm::Tree, n, 7);
    CHECK(tree.size() == 2 * (std::int64_t{n} - 1));
    std::int32_t depth = 0;
    while ((std::int64_t{1} << depth) < n) ++depth;
    CHECK(tree.rounds() == 2 * depth);
    Transfer last = tree.transfer(tree.size() - 1);
    CHECK(last.destination - last.source == 1);
    CHECK_FALSE(last.fold);
  }
}

TEST_CASE("what a transfer waits for is appended, ascending, each once") {
  // Two members: both have the same two transfers in the first round.
  Expansion expansion(CollectiveKind::AllReduce, Algorithm::Ring, 2, 4);
  std::vector<std::int64_t> out{7};
  expansion.waits_for(2, out);
  CHECK(out == std::vector<std::int64_t>{7, 0, 1});
}

TEST_CASE("an expansion larger than any memory is refused") {
  CHECK_THROWS_AS(Expansion(CollectiveKind::AllGather, Algorithm::Ring, 4, (kMaxBytes / 4) + 1),
                  InputError);
  CHECK(Expansion(CollectiveKind::AllGather, Algorithm::Ring, 4, kMaxBytes / 4).received(3) ==
        kMaxBytes / 4 * 3);
  CHECK_THROWS_AS(Expansion(CollectiveKind::AllReduce, Algorithm::Direct, 4, kMaxBytes),
                  InputError);
  CHECK_THROWS_AS(Expansion(CollectiveKind::AllGather, Algorithm::Tree, 4, 1), CheckFailure);
  CHECK_THROWS_AS(Expansion(CollectiveKind::AllGather, Algorithm::Ring, 1, 1), CheckFailure);
  CHECK_THROWS_AS(Expansion(CollectiveKind::AllGather, Algorithm::Ring, 2, -1), CheckFailure);
  // all_reduce: twice its chunks, rounded up; as a tree once per level and once at the end.
  for (auto [algorithm, n, most] : {std::tuple{Algorithm::Ring, 4, kMaxBytes / 2 - 4},
                                    {Algorithm::Tree, 4, kMaxBytes / 3 - 4},
                                    {Algorithm::Tree, 5, kMaxBytes / 4 - 5}}) {
    CHECK_NOTHROW(Expansion(CollectiveKind::AllReduce, algorithm, n, most));
    CHECK_THROWS_WITH(Expansion(CollectiveKind::AllReduce, algorithm, n, most + 1),
                      "all_reduce of " + std::to_string(most + 1) + " elements over " +
                          std::to_string(n) + " ranks: expected at most 2^62 received");
  }
}
