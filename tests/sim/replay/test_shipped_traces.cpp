// SPDX-License-Identifier: BSD-3-Clause
// Replays of the traces in traces/: exact times, with the formulas that they follow from, and
// digests, which every compiler and build type must reproduce.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "sim/machines/presets.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/part.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kUs;
using reshard::test::Rig;

namespace {

// A small budget keeps the test quick; the times do not depend on it.
ReplayReport shipped(const std::string& name, std::string_view planner = "auto") {
  Trace trace = read_trace("traces/" + name + ".jsonl");
  Topology topology = find_topology(trace.topology);
  return Rig(topology, planner).replay(trace, std::int64_t{16} << 20);
}

}  // namespace

TEST_CASE("llama3-70b-fsdp-to-tp holds the 723 weights of Llama-3-70B") {
  Trace trace = read_trace("traces/llama3-70b-fsdp-to-tp.jsonl");
  REQUIRE(trace.operations.size() == 723);
  std::int64_t bytes = 0;
  std::map<std::string, int> from;
  for (const TraceOperation& operation : trace.operations) {
    const Request& request = std::get<TraceRedistribute>(operation.body).requests->front();
    bytes += request.source().bytes();
    ++from[request.source().placements_text() + " " + request.destination().placements_text()];
  }
  // Per layer 2 h^2 + 2 h (8 heads of 128) + 3 h f + 2 norms; embedding, head and a last norm.
  constexpr std::int64_t h = 8192, f = 28672, v = 128256;
  CHECK(bytes == 2 * (80 * (2 * h * h + 2 * h * 1024 + 3 * h * f + 2 * h) + 2 * v * h + h));
  CHECK(from == std::map<std::string, int>{{"_S(0, 8)S(0) RS(0)", 5 * 80 + 2},
                                           {"S(0)S(1) RS(1)", 2 * 80},
                                           {"S(0)R RR", 2 * 80 + 1}});
}

TEST_CASE("llama3-70b-fsdp-to-tp against its bound") {
  ReplayReport p2p = shipped("llama3-70b-fsdp-to-tp", "p2p");
  // Seven eighths of the model must enter every node through eight NICs of 50 GB/s, none of it
  // before the network's latency.
  CHECK(p2p.cut_bound_ps == 2'700'000 + 141'107'412'992 / 8 * 7 * 1000 / 400);
  CHECK(p2p.bound_ps == p2p.cut_bound_ps);
  CHECK(p2p.different_requests == 7);
  CHECK(p2p.data_checked == 7);
  CHECK(p2p.cache->hits == 723 - 7);
  CHECK(p2p.time_ps == 310'664'958'323);  // 1.006 x the bound
  ReplayReport automatic = shipped("llama3-70b-fsdp-to-tp");
  CHECK(automatic.time_ps == p2p.time_ps);
  CHECK(automatic.digest == p2p.digest);
  CHECK(p2p.digest.hex() == "a62769086e61c781af2d80a8734f4ec0");
  CHECK(shipped("llama3-70b-fsdp-to-tp", "hybrid").time_ps == 322'377'557'600);
  // PyTorch's greedy planner goes through R for strided shards.
  CHECK(shipped("llama3-70b-fsdp-to-tp", "rule").time_ps == 1'767'691'251'956);
}

TEST_CASE("dtensor-p2p-sweep holds every pair once, and auto is the best of each") {
  ReplayReport rule = shipped("dtensor-p2p-sweep", "rule"),
               p2p = shipped("dtensor-p2p-sweep", "p2p"),
               hybrid = shipped("dtensor-p2p-sweep", "hybrid");
  CHECK(rule.time_ps == 4'915'943'230'413);
  CHECK(p2p.time_ps == 4'908'188'136'006);
  CHECK(hybrid.time_ps == 4'086'589'663'497);
  CHECK(p2p.requests.size() == 1024);
  CHECK(p2p.different_requests == 1024);
  CHECK(p2p.data_checked == 1024);
  // The greatest In(X) / cap_in(X) of all 1024 together, behind NVLink's latency. Nothing else
  // moves fewer bytes than p2p.
  CHECK(p2p.cut_bound_ps == 700'000 + 1'594'506'608'640);
  CHECK(p2p.bytes_received_total <
        std::min(rule.bytes_received_total, hybrid.bytes_received_total));
  // A thousand plans by every planner take minutes under sanitizers.
  if (test::kOneOf > 1) return;
  ReplayReport automatic = shipped("dtensor-p2p-sweep");
  CHECK(automatic.data_checked == 1024);
  CHECK(automatic.time_ps == 2'254'901'436'799);
  CHECK(automatic.digest.hex() == "8ad9b1e9bdc1feebf475e47c498ebab2");
}

// Within `percent` of what the post measured.
bool near(std::int64_t ps, double ms, double percent) {
  return std::abs(static_cast<double>(ps) / 1e9 - ms) <= ms * percent / 100;
}

TEST_CASE("pipeline-8x3090 gives the forum post's memcpy rows") {
  constexpr std::int64_t kBytes = 67'108'864, kCap = 6'897'640'000;
  // Launch, route, staging, and the first 32 KiB.
  constexpr std::int64_t kWait = 2'500'000 + 2'600'000 + 5'000'000 + transfer_ps(32'768, kCap);
  // One stream: ten copies in turn at the cap of a flow, which was fitted to this row.
  ReplayReport one = shipped("pipeline-8x3090");
  CHECK(one.time_ps == 10 * (kWait + transfer_ps(kBytes, kCap)));
  CHECK(near(one.time_ps, 97.441, 0.001));
  CHECK(one.transport == "copy-engine");
  CHECK(one.others[0].transport == "copy-engine");
  // Two streams: two flows share the socket's staging, 8.604 GB/s; five rounds. Predicted.
  ReplayReport two = shipped("pipeline-8x3090-two-streams");
  CHECK(two.time_ps == 5 * (kWait + transfer_ps(kBytes, 4'302'000'000)));
  CHECK(near(two.time_ps, 75.075, 4));
  CHECK(two.cut_bound_ps == 2'600'000 + transfer_ps(10 * kBytes, 8'604'000'000));
  REQUIRE(two.links.size() == 1);
  CHECK(two.links[0].name == "node0.staging0");
  CHECK(two.links[0].bytes == 10 * kBytes);
  CHECK(two.classes[0].transport == Transport::Host);
  // All to one GPU, another cap, fitted to 133 ms; under compute 137 was measured.
  CHECK(near(shipped("pipeline-8x3090-one").time_ps, 133, 0.001));
}

TEST_CASE("pipeline-8x3090 gives the forum post's NCCL rows") {
  // Fitted to the first, predicted the second: one communicator's sends are in turn, to whomever.
  CHECK(near(shipped("pipeline-8x3090-nccl-one").time_ps, 266.9, 0.1));
  CHECK(near(shipped("pipeline-8x3090-nccl").time_ps, 270.14, 3));
}

TEST_CASE("pipeline-8x3090 gives the forum post's NCCL rows beside compute, fitted") {
  // Ten sends at nccl.under_compute of their rate; the passes at compute.under_nccl meanwhile.
  ReplayReport report = shipped("pipeline-8x3090-nccl-one-compute");
  std::int64_t sends_end = 0;
  for (const ReplayRow& row : report.others)
    if (row.op == "message") sends_end = std::max(sends_end, *row.end_ps);
  CHECK(near(sends_end, 277.8, 0.1));
  CHECK(near(report.time_ps, 584.6, 0.1));
  // 396.8 of compute less what the sends' time left of it.
  CHECK(std::abs(report.time_ps - (sends_end + 396'800 * kUs - sends_end * 324 / 1000)) < kUs);
}

TEST_CASE("pipeline-8x3090 with compute on its own stream hides the copies") {
  for (const char* name : {"pipeline-8x3090-compute", "pipeline-8x3090-two-streams-compute",
                           "pipeline-8x3090-one-compute"}) {
    ReplayReport report = shipped(name);
    CHECK(report.time_ps == 10 * 39'680 * kUs);
    CHECK(report.bound_ps == report.time_ps);
    std::int64_t copies_end = 0;
    for (const ReplayRow& row : report.others)
      if (row.op == "message") copies_end = std::max(copies_end, *row.end_ps);
    std::string alone = std::string(name).substr(0, std::string(name).rfind("-compute"));
    CHECK(copies_end == shipped(alone).time_ps);
    if (alone == "pipeline-8x3090-one") CHECK(near(copies_end, 137, 4));
  }
}

TEST_CASE("mlp-tp: products of stated work, all-reduced behind them") {
  // 2 m k n / 8 operations at 494.5e12 per second.
  constexpr std::int64_t kProduct = (std::int64_t{2} * 8192 * 8192 * 28672 / 8 * 2 + 988) / 989;
  CHECK(kProduct == 972'773'180);
  // 128 MiB on 8 ranks at 450 GB/s in and out. p2p: addends to one owner each, then the result to
  // all, seven eighths of the bytes each time; a gather or a reduce-scatter is one such phase.
  constexpr std::int64_t kBytes = 134'217'728;
  constexpr std::int64_t kPhase = 700'000 + transfer_ps(kBytes / 8 * 7, 450'000'000'000);
  ReplayReport plain = shipped("mlp-tp", "p2p");
  // Y, Z, the all-reduce, dY, dB, dX, dA; the second all-reduce is hidden behind dA.
  CHECK(plain.time_ps == 6 * kProduct + 2 * kPhase);
  CHECK(plain.time_ps == 6'359'996'912);
  CHECK(plain.different_requests == 1);
  CHECK(plain.digest.hex() == "40ff539c48fddea1e0cac6d0a7dae259");
  // In chunks the two phases overlap.
  CHECK(shipped("mlp-tp").time_ps < plain.time_ps);
  // Gather, Y, Z, reduce-scatter, gather, dY, dB, dX, dA; the other two are hidden.
  ReplayReport sequence = shipped("mlp-tp-sequence-parallel");
  CHECK(sequence.time_ps == 6 * kProduct + 3 * kPhase);
  CHECK(sequence.time_ps == 6'621'675'828);
  CHECK(sequence.different_requests == 2);
  CHECK(sequence.digest.hex() == "3ce19c7ea285b3c873f0a47b6028d051");
  // By PyTorch's collectives: rings of seven rounds, each with its latency.
  constexpr std::int64_t kRound = 700'000 + transfer_ps(kBytes / 8, 450'000'000'000);
  CHECK(shipped("mlp-tp", "rule").time_ps == 6 * kProduct + 14 * kRound);
}

TEST_CASE("No shipped trace is quicker than its bound, by any planner") {
  for (const char* name :
       {"mlp-tp", "mlp-tp-sequence-parallel", "pipeline-8x3090-two-streams-compute"})
    for (const PlannerRow& planner : planners()) {
      ReplayReport report = shipped(name, planner.name);
      INFO(name << " " << planner.name);
      CHECK(report.bound_ps > 0);
      CHECK(report.bound_ps <= report.time_ps);
    }
}
