// SPDX-License-Identifier: BSD-3-Clause
// Seeded random traces: what find_deadlock lets through the engine can finish, what it stops the
// engine cannot; no run is quicker than its bound; and the reader survives damaged text.
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

const std::string kHeader =
    R"({"reshard_trace": 1, "meshes": {"all": "4x2", "left": "4", "right": {"mesh": "2x2", )"
    R"("ranks": "7,5,6,4"}, "odd": {"mesh": "3", "ranks": "1,6,3"}}})";

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
    std::int64_t what = below(6);
    if (what < 2) {
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
      std::string send =
          fmt::format(R"({{"op": "send", "rank": {}, "peer": {}, "bytes": {}, "tag": {}{}}})",
                      source, destination, bytes, tag_, place());
      std::string receive =
          fmt::format(R"({{"op": "recv", "rank": {}, "peer": {}, "bytes": {}, "tag": {}{}}})",
                      destination, source, bytes, tag_, place());
      ++tag_;
      out.push_back(send);
      // The other end somewhere: behind, or in front of what is there.
      out.insert(out.begin() + below(static_cast<std::int64_t>(out.size()) + 1), receive);
    }
  }

  Prng random_;
  std::int64_t ids_ = 0, tag_ = 0;
};

}  // namespace

TEST_CASE(
    "Random traces block exactly where the engine cannot finish, and never beat their bound") {
  int ran = 0, blocked = 0, tight = 0;
  std::vector<Topology> topologies{find_topology("dgx-h100"), find_topology("pcie-8x3090"),
                                   find_topology("nvswitch:8")};
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    INFO("seed " << seed);
    Trace trace = trace_of(kHeader, Draw(seed).lines());
    REQUIRE(trace.findings.empty());
    const Topology& topology = topologies[seed % topologies.size()];
    Rig rig(topology, "p2p");
    rig.hooks.check_data = nullptr;
    ReplayReport report = rig.replay(trace);
    if (!report.findings.empty()) {
      ++blocked;
      std::vector<std::shared_ptr<const Plan>> plans;
      for (const TraceOperation& operation : trace.operations) {
        const auto* line = std::get_if<TraceRedistribute>(&operation.body);
        plans.push_back(line == nullptr ? nullptr
                                        : rig.hooks.study(*line->request, {})->shared_plan());
      }
      CHECK_THROWS_AS(sim::run(workload_of(trace, plans, [](OpId) { return true; }), topology),
                      CheckFailure);
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

TEST_CASE("Damaged traces are refused or read, never worse") {
  std::string text = kHeader + "\n";
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
