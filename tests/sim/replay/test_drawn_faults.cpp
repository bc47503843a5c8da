// SPDX-License-Identifier: BSD-3-Clause
// A thousand random programs that run, and each with one fault: a call or an end that is missing,
// two calls that are swapped, one with another size or type, a rank that is late. The fault is
// named, with its rank and its line; without the fault nothing is reported.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/sim/replay/replay_case.h"
#include "tests/support/prng.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Prng;

namespace {

enum class Damage { Missing, Swapped, Resized, Retyped, Late };
constexpr int kFaults = 5;

// What one rank does, before it is a line.
struct Item {
  int rank, operation;
  enum class Kind { Call, Send, Receive, Compute } kind;
  int communicator;  // of a call; of an end its peer
  std::int64_t bytes;
  std::string dtype = "f32", kind_text = {};

  int stream() const { return kind == Kind::Call ? 1 + communicator % 2 : 0; }
  std::string text() const {
    if (kind == Kind::Compute)
      return fmt::format(R"({{"op": "compute", "ranks": "{}", "duration_ps": {}, "stream": {}}})",
                         rank, bytes, communicator);
    if (kind == Kind::Call)
      return fmt::format(R"({{"op": "collective", "kind": "{}", "rank": {}, "comm": "c{}", )"
                         R"("bytes": {}, "dtype": "{}", "stream": {}}})",
                         kind_text, rank, communicator, bytes, dtype, stream());
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": {}, "dtype": "{}"}})",
                       kind == Kind::Send ? "send" : "recv", rank, communicator, bytes, dtype);
  }
};

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed), ranks_(to_int(random_.between(4, 12))) {
    draw_communicators();
    programs_.resize(static_cast<std::size_t>(ranks_));
    for (int operation = 0; operation < 24; ++operation) draw(operation);
  }

  std::string header() const {
    std::string comms;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      std::string ranks;
      for (int rank : members_[i]) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
      comms += fmt::format("{}\"c{}\": [{}]", i == 0 ? "" : ", ", i, ranks);
    }
    return fmt::format(R"({{"reshard_trace": 1, "comms": {{{}}}}})", comms);
  }

  // All ranks' items, each rank's in order; items_ by line from 2 on.
  std::vector<std::string> lines() {
    items_.clear();
    std::vector<std::size_t> at(programs_.size(), 0);
    std::vector<std::string> out;
    for (;;) {
      std::vector<std::size_t> open;
      for (std::size_t rank = 0; rank < at.size(); ++rank)
        if (at[rank] < programs_[rank].size()) open.push_back(rank);
      if (open.empty()) return out;
      std::size_t rank = open[pick(open.size())];
      items_.push_back(programs_[rank][at[rank]++]);
      out.push_back(items_.back().text());
    }
  }

  // Puts one in; the items that must be named, of which any is enough where `any`. False where
  // there is nothing to do it to.
  struct Wanted {
    int rank;
    std::vector<Item> items;
  };
  bool damage(Damage fault, Wanted& wanted) {
    std::vector<std::pair<int, std::size_t>> candidates;
    for (int rank = 0; rank < ranks_; ++rank)
      for (std::size_t i = 0; i < program(rank).size(); ++i)
        if (fits(fault, rank, i)) candidates.push_back({rank, i});
    if (candidates.empty()) return false;
    auto [rank, i] = candidates[pick(candidates.size())];
    std::vector<Item>& own = program(rank);
    wanted = {rank, {own[i]}};
    switch (fault) {
      case Damage::Missing:
        wanted.items = others(own[i]);
        own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case Damage::Swapped: {
        std::size_t j = partner(rank, i);
        std::swap(own[i], own[j]);
        wanted.items = {own[i], own[j]};
        break;
      }
      case Damage::Resized:
        own[i].bytes += 1000;
        wanted.items = {own[i]};
        break;
      case Damage::Retyped:
        own[i].dtype = "bf16";
        wanted.items = {own[i]};
        break;
      case Damage::Late:
        own.insert(own.begin() + static_cast<std::ptrdiff_t>(i),
                   {rank, -1, Item::Kind::Compute, own[i].stream(), 5'000'000'000'000});
        break;
    }
    return true;
  }

  std::vector<std::int64_t> lines_of(const std::vector<Item>& wanted) const {
    std::vector<std::int64_t> out;
    for (std::size_t line = 0; line < items_.size(); ++line)
      for (const Item& item : wanted)
        if (items_[line].rank == item.rank && items_[line].operation == item.operation)
          out.push_back(static_cast<std::int64_t>(line) + 2);
    return out;
  }

 private:
  static int to_int(std::int64_t value) { return static_cast<int>(value); }
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(count)));
  }
  std::vector<Item>& program(int rank) { return programs_[static_cast<std::size_t>(rank)]; }

  // All ranks; groups of two to four; every second rank.
  void draw_communicators() {
    std::vector<int> all, even;
    for (int rank = 0; rank < ranks_; ++rank) {
      all.push_back(rank);
      if (rank % 2 == 0) even.push_back(rank);
    }
    members_ = {all, even};
    int size = to_int(random_.between(2, 4));
    for (int first = 0; first + size <= ranks_; first += size)
      members_.push_back({all.begin() + first, all.begin() + first + size});
  }

  // Every operation has a size of its own, so that it can be told from others.
  void draw(int operation) {
    static const char* const kKinds[] = {"all_gather", "reduce_scatter", "all_reduce",
                                         "all_to_all"};
    std::int64_t what = random_.below(10), bytes = 100 + operation;
    if (what < 5) {
      int communicator = to_int(random_.below(static_cast<std::int64_t>(members_.size())));
      const char* kind = kKinds[random_.below(4)];
      for (int rank : members_[static_cast<std::size_t>(communicator)])
        program(rank).push_back(
            {rank, operation, Item::Kind::Call, communicator, bytes, "f32", kind});
    } else if (what < 9) {
      int source = to_int(random_.below(ranks_)),
          destination = (source + 1 + to_int(random_.below(ranks_ - 1))) % ranks_;
      program(source).push_back({source, operation, Item::Kind::Send, destination, bytes});
      program(destination).push_back({destination, operation, Item::Kind::Receive, source, bytes});
    } else {
      for (int rank = 0; rank < ranks_; ++rank)
        program(rank).push_back({rank, operation, Item::Kind::Compute, 0, 1000});
    }
  }

  std::vector<Item> others(const Item& item) const {
    std::vector<Item> out;
    for (const std::vector<Item>& own : programs_)
      for (const Item& other : own)
        if (other.operation == item.operation && other.rank != item.rank) out.push_back(other);
    return out;
  }

  // The next item with which it can be swapped so that it shows: the next call of the communicator,
  // the next end that the same peer has; 0: none.
  std::size_t partner(int rank, std::size_t i) {
    const std::vector<Item>& own = program(rank);
    for (std::size_t j = i + 1; j < own.size(); ++j) {
      if (own[j].kind == Item::Kind::Compute) continue;
      bool both_calls = own[i].kind == Item::Kind::Call && own[j].kind == Item::Kind::Call,
           both_ends = own[i].kind != Item::Kind::Call && own[j].kind != Item::Kind::Call;
      if ((both_calls || both_ends) && own[i].communicator == own[j].communicator) return j;
      if (both_ends) return 0;
    }
    return 0;
  }

  bool fits(Damage fault, int rank, std::size_t i) {
    const Item& item = program(rank)[i];
    if (item.kind == Item::Kind::Compute) return false;
    if (fault == Damage::Swapped) return partner(rank, i) != 0;
    return fault != Damage::Late || item.kind == Item::Kind::Call;
  }

  Prng random_;
  int ranks_;
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<Item>> programs_;
  std::vector<Item> items_;
};

ReplayReport replayed(const std::string& header, const std::vector<std::string>& lines) {
  Topology topology = test::star(12);
  return test::Rig(topology).replay(test::trace_of(header, lines));
}

// Whether one of the findings, or all together, name it.
bool named(const ReplayReport& report, const Program::Wanted& wanted, const Program& program) {
  std::set<std::int64_t> lines;
  std::set<Rank> ranks;
  for (const TraceFinding& finding : report.findings) {
    lines.insert(finding.lines.begin(), finding.lines.end());
    ranks.insert(finding.ranks.begin(), finding.ranks.end());
  }
  std::vector<std::int64_t> expected = program.lines_of(wanted.items);
  return !expected.empty() && ranks.count(Rank{wanted.rank}) > 0 &&
         std::all_of(expected.begin(), expected.end(),
                     [&](std::int64_t line) { return lines.count(line) > 0; });
}

std::string all_findings(const ReplayReport& report) {
  std::string out;
  for (const TraceFinding& finding : report.findings) out += finding.what + "\n";
  return out;
}

}  // namespace

TEST_CASE("a thousand programs run, each with a fault is named with its rank and lines") {
  std::map<Damage, int> seen;
  int damaged = 0;
  for (std::uint64_t seed = 0; damaged < 1000; ++seed) {
    auto fault = static_cast<Damage>(damaged % kFaults);
    INFO("seed " << seed << ", fault " << damaged % kFaults);
    Program program(seed);
    ReplayReport whole = replayed(program.header(), program.lines());
    INFO(all_findings(whole));
    REQUIRE(whole.findings.empty());
    REQUIRE(whole.late.empty());
    REQUIRE(whole.time_ps > 0);

    Program::Wanted wanted;
    if (!program.damage(fault, wanted)) continue;
    std::vector<std::string> lines = program.lines();
    ReplayReport report = replayed(program.header(), lines);
    INFO(all_findings(report));
    ++seen[fault];
    ++damaged;
    if (fault == Damage::Late) {
      REQUIRE(report.findings.empty());
      REQUIRE(!report.late.empty());
      CHECK(report.late.front().rank == Rank{wanted.rank});
      CHECK(report.lines[to_index(report.late.front().op)] ==
            program.lines_of(wanted.items).front());
    } else {
      CHECK(named(report, wanted, program));
    }
  }
  for (int fault = 0; fault < kFaults; ++fault) CHECK(seen[static_cast<Damage>(fault)] == 200);
}
