// SPDX-License-Identifier: BSD-3-Clause
// Policies of communicators: how many are made, the time and memory that they take by the
// topology's figures, which launches wait, and what hangs.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "tests/sim/network/networks.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::end;
using reshard::test::kMiB;
using reshard::test::kMs;
using reshard::test::trace_of;

namespace {

using reshard::Figure;

// 100 GB/s per port, no latency: 100,000 bytes take 1 us. Making a communicator takes 638 ms and
// 2.75 ms per rank, a split 150 ms, a first use 40 ms; memory is 484 MiB, and 12 MiB per channel.
Topology machine(std::int32_t devices) {
  NodeTemplate node = test::switched(devices, 100'000'000'000).node();
  node.machine.set(Figure::CommInit, 638 * kMs);
  node.machine.set(Figure::CommRank, 2'750'000'000);
  node.machine.set(Figure::CommSplit, 150 * kMs);
  node.machine.set(Figure::CommConnect, 40 * kMs);
  node.machine.set(Figure::CommMemory, 484 * kMiB);
  node.machine.set(Figure::CommPeer, 12 * kMiB);
  return Topology("star", node, {}, 1);
}

std::string reduce(const std::string& ranks, const std::string& more = "") {
  return fmt::format(R"({{"op": "collective", "kind": "all_reduce", "ranks": "{}", "bytes": 8{}}})",
                     ranks, more);
}

ReplayReport replayed_by(const std::vector<std::string>& lines, CommunicatorPolicy policy,
                         std::int32_t devices = 4, bool cold = false) {
  Topology topology = machine(devices);
  test::Rig rig(topology);
  rig.options.communicators = policy;
  rig.options.cold = cold;
  return rig.replay(trace_of(R"({"reshard_trace": 1})", lines));
}

std::string hang_of(const std::vector<std::string>& lines, CommunicatorPolicy policy) {
  ReplayReport report = replayed_by(lines, policy);
  return report.findings.empty() ? "runs" : report.findings.front().what;
}

// Of one policy in a report of all.
const CommunicatorResult& of(const ReplayReport& report, CommunicatorPolicy policy) {
  for (const CommunicatorResult& result : report.communicators)
    if (result.use.policy == policy) return result;
  throw std::logic_error("no such policy");
}

using enum CommunicatorPolicy;

// What a channel's figure is taken for.
std::int64_t peer_bytes(const Topology& topology) { return setup_costs_of(topology).peer_bytes; }

}  // namespace

TEST_CASE("first use of all pairs of 8 x 8 ranks: pairwise against eager, by hand") {
  // Rank i sends to i+1, i+2 .. i+63 (mod 64) in 63 rounds of a batch each... one pair a message.
  std::vector<std::string> lines;
  for (int a = 0; a < 64; ++a)
    for (int b = a + 1; b < 64; ++b) {
      lines.push_back(end("isend", a, b));
      lines.push_back(end("irecv", b, a));
    }
  ReplayReport report = replayed_by(lines, Pairwise, 64);
  REQUIRE(report.findings.empty());
  Topology topology = machine(64);
  const CommunicatorUse& pairwise = of(report, Pairwise).use;
  CHECK(pairwise.created == 64 * 63 / 2);
  // Each rank is in 63 of them: 63 * (638 + 2 * 2.75) ms.
  CHECK(pairwise.making_ps == 63 * (638 * kMs + 2 * 2'750'000'000));
  CHECK(pairwise.making_ps == 40'540'500'000'000);
  CHECK(pairwise.connected == 2016);
  CHECK(pairwise.connecting_ps == 63 * 40 * kMs);
  CHECK(pairwise.bytes == 63 * (484 * kMiB + peer_bytes(topology)));
  // One of 64: 638 + 64 * 2.75 ms.
  const CommunicatorUse& eager = of(report, Eager).use;
  CHECK(eager.created == 1);
  CHECK(eager.making_ps == 814 * kMs);
  CHECK(eager.connected == 2016);
  CHECK(eager.bytes == 484 * kMiB + 63 * peer_bytes(topology));
  // The parent, and 2016 splits, each a call of all 64.
  const CommunicatorUse& split = of(report, Split).use;
  CHECK(split.created == 2017);
  CHECK(split.making_ps == 814 * kMs + 2016 * 150 * kMs);
  CHECK(of(report, StreamPerPair).use.created == 1);
  CHECK(of(report, Cached).use.created == 2016);
}

TEST_CASE("cold, a communicator takes its time where it is first needed, warm it takes none") {
  std::vector<std::string> lines{end("send", 0, 1), end("recv", 1, 0), end("send", 0, 1),
                                 end("recv", 1, 0)};
  constexpr std::int64_t kBoth = 2'000'000;
  CHECK(replayed_by(lines, Pairwise).time_ps == kBoth);
  CHECK(replayed_by(lines, Eager).time_ps == kBoth);
  // A pair of two ranks is the parent of two as well: 638 + 2 * 2.75, then the connection.
  std::int64_t cold = 643'500'000'000 + 40 * kMs + kBoth;
  CHECK(replayed_by(lines, Pairwise, 4, true).time_ps == cold);
  CHECK(replayed_by(lines, Eager, 4, true).time_ps == cold);
  ReplayReport split = replayed_by(lines, Split, 4, true);
  CHECK(split.time_ps == cold + 150 * kMs);
  CHECK(split.cold);
  CHECK(split.communicators.size() == 5);
  CHECK(of(split, Pairwise).end_ps == cold);
}

TEST_CASE("messages of the parent follow each other, those of pairs do not") {
  // Rank 0 sends to 1 and to 2 on two streams.
  std::vector<std::string> lines{end("send", 0, 1), end("recv", 1, 0),
                                 end("send", 0, 2, R"(, "stream": 1)"), end("recv", 2, 0)};
  ReplayReport report = replayed_by(lines, Eager);
  CHECK(report.time_ps == 2'000'000);
  CHECK(of(report, Eager).serialised_launches == 1);
  CHECK(of(report, StreamPerPair).serialised_launches == 1);
  CHECK(of(report, StreamPerPair).end_ps == 2'000'000);
  // Both leave by one port.
  CHECK(of(report, Pairwise).serialised_launches == 0);
  CHECK(of(report, Pairwise).end_ps == 2'000'000);
  // Into one rank from two: each has its own way out, the way in is shared; the parent makes the
  // second wait although its sender is free.
  std::vector<std::string> into{end("send", 0, 2),
                                end("recv", 2, 0),
                                end("send", 1, 3),
                                end("recv", 3, 1, R"(, "stream": 1)"),
                                end("send", 1, 2, R"(, "stream": 1)"),
                                end("recv", 2, 1, R"(, "stream": 2)")};
  ReplayReport two = replayed_by(into, Pairwise);
  CHECK(of(two, Pairwise).serialised_launches == 0);
  CHECK(of(two, Eager).serialised_launches >= 1);
  CHECK(of(two, Pairwise).end_ps <= of(two, Eager).end_ps);
}

TEST_CASE("pairs whose first uses cross wait for each other forever") {
  // Three stages that come to each other in a cycle; messages hold nobody back.
  std::vector<std::string> lines{end("isend", 0, 1), end("isend", 0, 2), end("isend", 1, 2),
                                 end("irecv", 1, 0), end("irecv", 2, 0), end("irecv", 2, 1)};
  CHECK(hang_of(lines, Pairwise) ==
        "t.jsonl:2: operations of ranks 0-2 wait for each other forever, 3 in a cycle");
  TraceFinding finding = replayed_by(lines, Pairwise).findings.front();
  REQUIRE(finding.cycle.size() == 3);
  // Rank 1's host is in the first use of line 4, rank 2's in that of line 6, rank 0's in line 2's.
  auto is = [&](std::size_t i, int rank, int line, int predecessor, int waits_for, int of) {
    const TraceWait& wait = finding.cycle[i];
    CHECK(wait.held_by == "its host");
    CHECK(std::tuple(to_int(wait.rank), wait.line, wait.predecessor, wait.waits_for,
                     to_int(wait.of)) == std::tuple(rank, line, predecessor, waits_for, of));
  };
  is(0, 1, 5, 4, 7, 2);
  is(1, 2, 7, 6, 3, 0);
  is(2, 0, 3, 2, 5, 1);
  CHECK(replayed_by(lines, Pairwise).findings.front().ranks ==
        std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}});
  // In one order everywhere.
  std::swap(lines[2], lines[3]);
  CHECK(hang_of(lines, Pairwise) == "runs");
}

TEST_CASE("messages that name no communicator are tried as PyTorch has them, and warned of") {
  auto by_default = [](const std::vector<std::string>& lines) {
    Topology topology = machine(4);
    return test::Rig(topology).replay(trace_of(R"({"reshard_trace": 1})", lines));
  };
  // Each rank of a circle posts its send before its receive and waits for neither: by PyTorch both
  // are of one communicator's stream, or of pairs whose hosts meet in turn.
  std::vector<std::string> lines{end("isend", 0, 1), end("irecv", 0, 1), end("isend", 1, 0),
                                 end("irecv", 1, 0)};
  ReplayReport report = by_default(lines);
  CHECK(report.findings.empty());
  CHECK(report.time_ps > 0);
  REQUIRE(report.default_hang);
  CHECK(report.default_hang->policy == Pairwise);
  CHECK(report.default_hang->others ==
        std::vector<CommunicatorPolicy>{Eager, Cached, StreamPerPair, Split});
  CHECK(report.default_hang->lines == std::vector<std::int64_t>{2, 3, 4, 5});
  CHECK(report.default_hang->what.find("wait for each other forever") != std::string::npos);
  for (CommunicatorPolicy policy : kCommunicatorPolicies) CHECK(hang_of(lines, policy) != "runs");
  // The other way round on one of them, by copy engines, or of a communicator that the trace names
  // there is nothing to warn of.
  CHECK(!by_default({lines[0], lines[1], lines[3], lines[2]}).default_hang);
  auto with = [](const std::string& more) {
    return std::vector<std::string>{end("isend", 0, 1, more), end("irecv", 0, 1, more),
                                    end("isend", 1, 0, more), end("irecv", 1, 0, more)};
  };
  CHECK(!by_default(with(R"(, "transport": "copy-engine")")).default_hang);
  ReplayReport batch = by_default(with(R"(, "batch": 1)"));
  CHECK(batch.findings.empty());
  CHECK(!batch.default_hang);
}

TEST_CASE("cached takes the parent where it was made before, and warns where it was not") {
  std::vector<std::string> message{end("send", 0, 1), end("recv", 1, 0)};
  ReplayReport first = replayed_by(message, Cached);
  CHECK(of(first, Cached).use.created == 1);
  CHECK(first.communicators.front().use.warning ==
        "the parent did not exist at the first message: 1 communicators of two ranks were created");
  std::vector<std::string> predecessor{reduce("0-3"), end("send", 0, 1), end("recv", 1, 0)};
  ReplayReport second = replayed_by(predecessor, Cached);
  CHECK(of(second, Cached).use.created == 1);
  CHECK(of(second, Cached).use.making_ps == 638 * kMs + 4 * 2'750'000'000);
  CHECK(second.communicators.front().use.warning.empty());
  // A group's collective makes its own, not the parent.
  ReplayReport group = replayed_by({reduce("0-2"), end("send", 0, 3), end("recv", 3, 0)}, Cached);
  CHECK(of(group, Cached).use.created == 2);
  CHECK(of(group, Eager).use.created == 2);
  CHECK(of(group, Eager).use.making_ps == 638 * kMs + 4 * 2'750'000'000 + 150 * kMs);
  // One end before it, the other behind it.
  CHECK(hang_of({end("isend", 0, 1), reduce("0-3"), end("recv", 1, 0)}, Cached) ==
        "t.jsonl:4: recv on rank 1 uses the communicator of all ranks, which rank 0 has not "
        "created when it reaches the send in line 2");
}

TEST_CASE("a batch that makes the parent needs all ranks") {
  const std::string batch = R"(, "batch": 1)";
  std::vector<std::string> lines{end("send", 0, 1, batch), end("recv", 1, 0, batch),
                                 R"({"op": "compute", "ranks": "2", "duration_ps": 1})"};
  CHECK(hang_of(lines, Cached) ==
        "t.jsonl:2: the communicator of all ranks is created here, but rank 2 never joins it");
  CHECK(hang_of(lines, Eager) == "runs");
  lines.pop_back();
  CHECK(hang_of(lines, Cached) == "runs");
}

TEST_CASE("what names a communicator keeps it, what copy engines carry has none") {
  const std::string own = R"(, "comm": "own")", engine = R"(, "transport": "copy-engine")";
  ReplayReport named = replayed_by({end("send", 0, 1, own), end("recv", 1, 0, own)}, Pairwise);
  CHECK(of(named, Pairwise).use.created == 1);
  CHECK(of(named, Eager).use.created == 2);  // the parent, and a split of it
  ReplayReport copied =
      replayed_by({end("send", 0, 1, engine), end("recv", 1, 0, engine)}, Pairwise);
  CHECK(of(copied, Pairwise).use.created == 0);
  CHECK(of(copied, Pairwise).use.connected == 0);
  CHECK(of(copied, Eager).use.created == 1);
}

TEST_CASE("nobody makes a communicator of nobody, and one rank needs no peers") {
  ReplayReport empty = replayed_by({}, Split, 1);
  for (const CommunicatorResult& result : empty.communicators) CHECK(result.use.created == 0);
  ReplayReport one =
      replayed_by({R"({"op": "compute", "ranks": "0", "duration_ps": 5})"}, Eager, 1, true);
  CHECK(of(one, Eager).use.created == 1);
  CHECK(one.time_ps == 640'750'000'005);  // made first, then computed
}

TEST_CASE("names of policies") {
  for (CommunicatorPolicy policy : kCommunicatorPolicies)
    CHECK(parse_communicators(text(policy), "--communicators") == policy);
  CHECK_THROWS_WITH(parse_communicators("each", "--communicators"),
                    "--communicators: expected one of eager, cached, pairwise, stream-per-pair, "
                    "split, found 'each'");
}

TEST_CASE("what a policy would give is told with the trace's faults") {
  // 100,000 bytes at half of 100 GB/s.
  const std::string half = R"({"op": "fault", "link": "node0.gpu0.port.out", "share": 0.5})";
  ReplayReport slow = replayed_by({half, end("send", 0, 1), end("recv", 1, 0)}, Eager);
  CHECK(slow.time_ps == 2'000'000);
  for (CommunicatorPolicy policy : kCommunicatorPolicies)
    CHECK(of(slow, policy).end_ps == 2'000'000);
  // By the parent, 0 -> 1 and then 1 -> 2 on streams of their own: 2 us. Of pairs at once: 1 us,
  // before the way into 2 is down; the parent comes too late.
  std::vector<std::string> lines{
      R"({"op": "fault", "link": "node0.gpu2.port.in", "share": 0, "from_ps": 1500000})",
      end("send", 0, 1), end("recv", 1, 0), end("send", 1, 2, R"(, "stream": 1)"),
      end("recv", 2, 1)};
  ReplayReport down = replayed_by(lines, Pairwise);
  CHECK(down.time_ps == 1'000'000);
  CHECK(of(down, Eager).hang ==
        "t.jsonl:5: message from rank 1 to rank 2 waits for node0.gpu2.port.in, which is down");
}

TEST_CASE("two ranks that a message has connected are not connected again by a plan") {
  // All to all of two ranks behind a message between them, and before it.
  const std::string header = R"({"reshard_trace": 1, "meshes": {"m": "2"}})",
                    plan = test::redistribute("f32", "[64, 64]", "S(0)", "S(1)", "m");
  Topology topology = machine(2);
  auto use = [&](const std::vector<std::string>& lines) {
    test::Rig rig(topology, "p2p");
    rig.options.communicators = Eager;
    return of(rig.replay(trace_of(header, lines)), Eager).use;
  };
  CommunicatorUse message_first = use({end("send", 0, 1), end("recv", 1, 0), plan}),
                  plan_first = use({plan, end("send", 0, 1), end("recv", 1, 0)});
  for (const CommunicatorUse& each : {message_first, plan_first}) {
    CHECK(each.connected == 1);
    CHECK(each.connecting_ps == 40 * kMs);
    CHECK(each.bytes == 484 * kMiB + peer_bytes(topology));
  }
}

TEST_CASE("a policy under which a trace hangs is told beside one under which it runs") {
  const std::string batch = R"(, "batch": 1)";
  std::vector<std::string> lines{end("send", 0, 1, batch), end("recv", 1, 0, batch),
                                 R"({"op": "compute", "ranks": "2", "duration_ps": 1})"};
  ReplayReport report = replayed_by(lines, Eager);
  CHECK(of(report, Eager).hang.empty());
  CHECK(of(report, Cached).hang == hang_of(lines, Cached));
}

TEST_CASE("what a plan connects takes as long as for the rank that meets most peers") {
  // All to all of four: three peers each, six pairs.
  Topology topology = machine(4);
  test::Rig rig(topology, "p2p");
  rig.options.communicators = Eager;
  CommunicatorUse plan =
      of(rig.replay(trace_of(R"({"reshard_trace": 1, "meshes": {"m": "4"}})",
                             {test::redistribute("f32", "[64, 64]", "S(0)", "S(1)", "m")})),
         Eager)
          .use;
  CHECK(plan.connected == 6);
  CHECK(plan.connecting_ps == 3 * 40 * kMs);
  CHECK(plan.bytes == 484 * kMiB + 3 * peer_bytes(topology));
  CHECK(plan.warning.empty());  // of messages only
  // The rank that spends most is not the last.
  CommunicatorUse two = of(replayed_by({end("send", 0, 1), end("recv", 1, 0),
                                        end("send", 0, 2, R"(, "stream": 1)"), end("recv", 2, 0)},
                                       Pairwise),
                           Pairwise)
                            .use;
  CHECK(two.making_ps == 2 * 643'500'000'000);
  CHECK(two.connecting_ps == 2 * 40 * kMs);
  CHECK(two.bytes == 2 * (484 * kMiB + peer_bytes(topology)));
}

TEST_CASE("a parent that not all come to is told at the first line that is of it") {
  const std::string batch = R"(, "batch": 1)";
  CHECK(hang_of({end("recv", 1, 0, batch), end("send", 0, 1, batch),
                 R"({"op": "compute", "ranks": "2", "duration_ps": 1})"},
                Cached) ==
        "t.jsonl:2: the communicator of all ranks is created here, but rank 2 never joins it");
}

TEST_CASE("what is made on first use holds back nothing before it, and is in no bound") {
  // The host makes the pair while the GPU computes for a second.
  std::vector<std::string> lines{R"({"op": "compute", "ranks": "0", "duration_ps": 1000000000000})",
                                 end("send", 0, 1), end("recv", 1, 0)};
  ReplayReport cold = replayed_by(lines, Pairwise, 4, true);
  CHECK(cold.time_ps == 1'000'001'000'000);
  lines.erase(lines.begin());
  CHECK(replayed_by(lines, Pairwise, 4, true).bound_ps == replayed_by(lines, Pairwise).bound_ps);
  // Whose host makes a communicator with somebody has not computed.
  CHECK(replayed_by({end("isend", 1, 3), end("irecv", 3, 1), reduce("0-2", R"(, "comm": "own")")},
                    Pairwise, 4, true)
            .late.empty());
}

TEST_CASE("only what moves bytes is held back, by such, and only where nothing else is later") {
  auto held = [](const std::vector<std::string>& lines, bool cold = false) {
    return of(replayed_by(lines, Eager, 4, cold), Eager).serialised_launches;
  };
  const std::string compute = R"({"op": "compute", "ranks": "0", "duration_ps": 5000000})";
  CHECK(held({end("send", 0, 1), end("recv", 1, 0), compute}) == 0);
  CHECK(held({compute, end("send", 0, 1), end("recv", 1, 0)}) == 0);
  std::vector<std::string> two{end("send", 0, 1), end("recv", 1, 0),
                               end("send", 0, 2, R"(, "stream": 1)"), end("recv", 2, 0)};
  CHECK(held(two) == 1);
  CHECK(held(two, true) == 0);  // the second connection takes longer
}
