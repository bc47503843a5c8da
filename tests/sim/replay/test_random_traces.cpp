// SPDX-License-Identifier: BSD-3-Clause
// Random traces with seeds: the engine can finish what find_deadlock accepts, and cannot finish
// what it refuses; no run is faster than its bound, with or without faults and policies of
// communicators; and the reader survives damaged text.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Prng;
using reshard::test::Rig;
using reshard::test::trace_of;

namespace {

const std::string kDrawnHeader =
    R"({"reshard_trace": 1, "meshes": {"all": "4x2", "left": "4", "right": {"mesh": "2x2", )"
    R"("ranks": "7,5,6,4"}, "odd": {"mesh": "3", "ranks": "1,6,3"}}, )"
    R"("comms": {"a": "0-7", "b": "2,5,7"}, "launch_order_implicit": true})";

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::vector<std::string> lines(std::int64_t at_most = 9) {
    std::vector<std::string> out;
    std::int64_t count = below(at_most) + 1;
    for (std::int64_t i = 0; i < count; ++i) draw(out);
    return out;
  }

 private:
  std::int64_t below(std::int64_t n) { return random_.below(n); }

  // Sometimes another stream, an id, an earlier or a later id.
  std::string place() {
    std::string out = fmt::format(", \"id\": {}, \"stream\": {}", ++ids_, below(4) / 2);
    if (below(4) == 0 && ids_ > 1) out += fmt::format(", \"after\": [{}]", 1 + below(ids_ - 1));
    return out;
  }

  std::string placements(int axes) {
    static const char* const kWords[] = {"R", "S(0)", "S(1)"};
    std::string out;
    for (int i = 0; i < axes; ++i) out += kWords[below(3)];
    return out;
  }

  void draw(std::vector<std::string>& out) {
    static const std::pair<const char*, int> kMeshes[] = {
        {"all", 2}, {"left", 1}, {"right", 2}, {"odd", 1}};
    static const char* const kKinds[] = {"all_gather", "reduce_scatter", "all_reduce",
                                         "all_to_all"};
    std::int64_t what = below(7);
    if (what == 6) {
      draw_calls(out, kKinds[below(4)]);
    } else if (what < 2) {
      auto [from, from_axes] = kMeshes[below(4)];
      auto [to, to_axes] = kMeshes[below(4)];
      out.push_back(test::redistribute(
          "u8", fmt::format("[{}, {}]", 1 + below(400), 1 + below(400)), placements(from_axes),
          placements(to_axes), from, fmt::format(", \"to_mesh\": \"{}\"{}", to, place())));
    } else if (what == 2) {
      out.push_back(fmt::format(R"({{"op": "compute", "ranks": "{}-{}", "duration_ps": {}{}}})",
                                below(4), 4 + below(4), below(20'000'000), place()));
    } else if (what == 3) {
      out.push_back(
          fmt::format(R"({{"op": "collective", "kind": "{}", "ranks": "{}-{}", "bytes": {}{}}})",
                      kKinds[below(4)], below(3), 3 + below(5), below(100'000), place()));
    } else {
      std::int64_t source = below(8), destination = (source + 1 + below(7)) % 8,
                   bytes = below(300'000);
      const char* communicator = below(3) == 0 ? R"(, "comm": "a")" : "";
      auto end = [&](const char* op, std::int64_t rank, std::int64_t peer) {
        return fmt::format(
            R"({{"op": "{}{}", "rank": {}, "peer": {}, "bytes": {}, "tag": {}{}{}}})",
            below(4) == 0 ? "i" : "", op, rank, peer, bytes, tag_, communicator, place());
      };
      std::string send = end("send", source, destination),
                  receive = end("recv", destination, source);
      ++tag_;
      out.push_back(send);
      // The other end somewhere: behind, or in front of what is there.
      out.insert(out.begin() + below(static_cast<std::int64_t>(out.size()) + 1), receive);
    }
  }

  // Each rank's own line, some of them asynchronous, in any order.
  void draw_calls(std::vector<std::string>& out, const char* kind) {
    bool all = below(2) == 0;
    std::vector<int> ranks =
        all ? std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7} : std::vector<int>{2, 5, 7};
    std::int64_t bytes = below(100'000);
    for (; !ranks.empty();) {
      auto at = ranks.begin() + below(static_cast<std::int64_t>(ranks.size()));
      out.push_back(fmt::format(R"({{"op": "collective", "kind": "{}", "rank": {}, "comm": "{}", )"
                                R"("bytes": {}, "async": {}{}}})",
                                kind, *at, all ? "a" : "b", bytes, below(4) == 0, place()));
      ranks.erase(at);
    }
  }

  Prng random_;
  std::int64_t ids_ = 0, tag_ = 0;
};

// Some of what can go wrong on a dgx-h100; nothing is down.
std::vector<std::string> drawn_faults(std::uint64_t seed) {
  Prng random(seed);
  std::vector<std::string> out;
  for (std::int64_t i = random.below(3); i > 0; --i) {
    std::int64_t rank = random.below(8), from = random.below(3) * 1'000'000;
    std::string of = random.one_in(2) ? fmt::format(R"("rank": {})", rank)
                                      : fmt::format(R"("link": "node0.gpu{}.nvlink.in")", rank);
    out.push_back(random.one_in(2)
                      ? fmt::format(R"({{"op": "fault", {}, "share": 0.{}, "from_ps": {}}})", of,
                                    1 + random.below(9), from)
                      : fmt::format(R"({{"op": "fault", {}, "latency_ps": {}, "from_ps": {}}})", of,
                                    random.below(5'000'000), from));
    if (random.one_in(3))
      out.push_back(fmt::format(R"({{"op": "fault", "rank": {}, "late_ps": {}}})", rank,
                                random.below(9'000'000)));
  }
  return out;
}

}  // namespace

TEST_CASE(
    "Random traces block exactly where the engine cannot finish, and never beat their bound") {
  int ran = 0, blocked = 0, tight = 0;
  std::vector<Topology> topologies{find_topology("dgx-h100"), find_topology("pcie-8x3090"),
                                   find_topology("nvswitch:8")};
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    INFO("seed " << seed);
    Trace trace = trace_of(kDrawnHeader, Draw(seed).lines());
    REQUIRE(trace.findings.empty());
    const Topology& topology = topologies[seed % topologies.size()];
    Rig rig(topology, "p2p");
    rig.options.move_bytes = false;
    ReplayReport report = rig.replay(trace);
    if (!report.findings.empty()) {
      ++blocked;
      std::vector<std::shared_ptr<const Plan>> plans;
      for (const TraceOperation& operation : trace.operations) {
        const auto* line = std::get_if<TraceRedistribute>(&operation.body);
        plans.push_back(line == nullptr ? nullptr : rig.studies.of(*line->requests)->shared_plan());
      }
      Workload workload = workload_of(trace, plans, [](OpId) { return true; });
      Order order(workload, {.implicit_launch_order = true});
      CHECK_THROWS_AS(sim::run(workload, topology, {.order = &order}), CheckFailure);
      continue;
    }
    ++ran;
    // replay() itself throws where the time is below the bound.
    CHECK(report.bound_ps <= report.time_ps);
    tight += report.bound_ps == report.time_ps ? 1 : 0;
  }
  CHECK(ran > 500);
  CHECK(blocked > 100);
  CHECK(tight > 50);
}

TEST_CASE("Random traces with faults, under each policy, never beat their bound") {
  Topology topology = find_topology("dgx-h100");
  int ran = 0, hung = 0, slower = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::vector<std::string> lines = Draw(seed).lines(5), faults = drawn_faults(seed);
    lines.insert(lines.begin(), faults.begin(), faults.end());
    Rig rig(topology, "p2p");
    rig.options.move_bytes = false;
    rig.options.communicators = kCommunicatorPolicies[seed % kCommunicatorPolicies.size()];
    rig.options.cold = seed % 2 == 0;
    rig.options.reorder = seed % 3 == 0;
    ReplayReport report = rig.replay(trace_of(kDrawnHeader, lines));
    if (!report.findings.empty()) {
      ++hung;
      continue;
    }
    ++ran;  // replay() itself throws where the time is below the bound
    REQUIRE(report.communicators.size() == kCommunicatorPolicies.size());
    CHECK(report.communicators.front().end_ps == report.time_ps);
    CHECK(report.fault_cost.has_value() == !faults.empty());
    if (report.fault_cost) slower += report.time_ps > report.fault_cost->without_ps ? 1 : 0;
    CHECK(report.reordered->time_ps <= report.time_ps);
  }
  CHECK(ran > 100);
  CHECK(hung > 20);
  CHECK(slower > 30);
}

TEST_CASE("Damaged traces are refused or read, never worse") {
  std::string text = kDrawnHeader + "\n";
  for (const std::string& line : Draw(3).lines(20)) text += line + "\n";
  REQUIRE(text.size() > 1000);
  int refused = 0, read = 0;
  Prng random(1);
  for (int i = 0; i < 4000; ++i) {
    auto size = static_cast<std::int64_t>(text.size());
    std::string damaged =
        text.substr(0, static_cast<std::size_t>(random.one_in(2) ? size : random.below(size)));
    for (std::int64_t edits = random.below(4); edits > 0 && !damaged.empty(); --edits)
      damaged[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())))] =
          random.one_in(2) ? static_cast<char>(random.below(256))
                           : "0123456789\",:{}[]-S()"[random.below(21)];
    try {
      trace_of(damaged);
      ++read;
    } catch (const InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).substr(0, 7) == "t.jsonl");
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 10);
}
