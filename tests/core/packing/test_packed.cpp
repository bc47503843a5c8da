// SPDX-License-Identifier: BSD-3-Clause
// The planner: close to the bound, independent of the numbering of a node's ranks, never slower
// with more links, and within memory limits if one of its chunkings is.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "core/base/errors.h"
#include "core/proof/proof.h"
#include "core/schedule/held_memory.h"
#include "core/schedule/temporaries.h"
#include "core/text/plan_text.h"
#include "sim/machines/presets.h"
#include "sim/study/studies.h"
#include "tests/core/packing/packing_cases.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/slow_readers.h"
#include "tests/support/star.h"

namespace reshard {
namespace {

std::shared_ptr<sim::Study> studied(const Request& request, Topology topology,
                                    std::string_view planner = "packed",
                                    TransportKind transport = TransportKind::Ideal,
                                    std::optional<std::int64_t> limit_bytes = {}) {
  sim::StudyOptions options;
  options.transport.kind = transport;
  options.memory.limit_bytes = limit_bytes;
  sim::Studies studies(std::make_shared<const Topology>(std::move(topology)), find_planner(planner),
                       options);
  return studies.of(request);
}

double ratio(sim::Study& study) {
  return static_cast<double>(study.time_ps()) / static_cast<double>(study.bound().time_ps());
}

// The most that temporaries hold on a rank at a time, as steps really overlap; and what goes
// through them in all.
struct TemporaryUse {
  std::int64_t most_bytes = 0, relayed_bytes = 0;
};
TemporaryUse temporary_use(sim::Study& study) {
  const Plan& plan = study.plan();
  std::map<std::pair<std::int32_t, Slot>, std::pair<std::int64_t, std::int64_t>> spans;
  for (const Span& span : study.timeline().spans)
    spans[{span.step, plan.slot_of(span.rank)}] = {span.start_ps, span.end_ps};
  Lives lives = lives_of(plan);
  TemporaryUse out;
  auto slots = static_cast<Slot>(plan.slot_count());
  for (Slot slot = 0; slot < slots; ++slot) {
    std::map<std::int64_t, std::int64_t> changes;  // of bytes, by time
    std::int64_t relayed = 0;
    for (std::size_t buffer = 2; buffer < plan.buffers.size(); ++buffer) {
      std::size_t at = buffer * plan.slot_count() + to_index(slot);
      if (lives.begin[at] < 0) continue;
      std::int64_t bytes = plan.buffer_bytes(id_of<BufferId>(buffer), slot);
      changes[spans.at({lives.begin[at], slot}).first] += bytes;
      changes[spans.at({lives.end[at], slot}).second] -= bytes;
      relayed += bytes;
    }
    std::int64_t held = 0;
    for (const auto& [time_ps, change] : changes)
      out.most_bytes = std::max(out.most_bytes, held += change);
    out.relayed_bytes = std::max(out.relayed_bytes, relayed);
  }
  return out;
}

Request large(std::string_view mesh, std::string_view from, std::string_view to) {
  return request_on(mesh, "32,8192,4096", from, to);
}

Request large_across(const char* mesh, const char* ranks, const char* from, const char* to_mesh,
                     const char* to_ranks, const char* to) {
  return across("32,8192,4096", mesh, ranks, from, to_mesh, to_ranks, to);
}

}  // namespace

TEST_CASE("two nodes: within a few hundredths of the limit, where others take twice as long") {
  struct {
    const char *mesh, *from, *to;
  } const pairs[] = {{"4x4", "S(0)S(1)", "S(1)S(0)"}, {"4x4", "S(0)S(0)", "RR"},
                     {"2x8", "S(0)R", "RS(0)"},       {"8x2", "S(2)S(1)", "RS(2)"},
                     {"4x4", "S(1)S(0)", "S(0)R"},    {"2x8", "S(0)S(1)", "S(1)S(2)"},
                     {"4x4", "P(sum)R", "S(0)S(1)"},  {"2x8", "P(sum)S(0)", "S(1)R"}};
  for (const auto& pair : pairs) {
    INFO(pair.mesh << " " << pair.from << " -> " << pair.to);
    auto study = studied(large(pair.mesh, pair.from, pair.to), sim::find_topology("dgx-h100:2"));
    CHECK(ratio(*study) < 1.04);
  }
}

TEST_CASE("few ranks send to many on one switch: relays do not starve what is sent directly") {
  for (int to : {8, 12, 20}) {
    CAPTURE(to);
    const std::string mesh = std::to_string(to), ranks = "4-" + std::to_string(3 + to);
    auto study = studied(large_across("4", "0-3", "S(0)", mesh.c_str(), ranks.c_str(), "R"),
                         sim::find_topology("nvswitch:" + std::to_string(4 + to)));
    CHECK(ratio(*study) < 1.02);
  }
}

TEST_CASE("across meshes: each byte enters a node once, over all its NICs") {
  Topology four = sim::find_topology("dgx-h100:4");
  CHECK(ratio(*studied(large_across("8", "0-7", "S(0)", "8", "8-15", "R"), four)) < 1.05);
  CHECK(ratio(*studied(large_across("8", "0-7", "R", "8", "8-15", "S(0)"), four)) < 1.05);
  // From node to node to node: a pipeline of five hops, many minutes under sanitizers.
  if (test::kOneOf == 1) {
    CHECK(ratio(*studied(large_across("8", "0-7", "S(0)", "24", "8-31", "R"), four)) < 1.05);
    CHECK(ratio(*studied(large_across("64", "0-63", "S(1)", "64", "64-127", "R"),
                         sim::find_topology("dgx-h100:16"))) < 1.05);
  }
  CHECK(ratio(*studied(large_across("8", "0-7", "P(sum)", "8", "8-15", "R"), four)) < 1.05);
}

TEST_CASE("renumbering ranks inside a node changes nothing") {
  // The ranks of a node in another order on either of its rows.
  const char* numbered[] = {"0-15", "5,2,7,0,3,6,1,4,12,9,15,10,8,13,11,14",
                            "7,6,5,4,3,2,1,0,8,10,12,14,9,11,13,15"};
  Topology two = sim::find_topology("dgx-h100:2");
  for (const auto& [from, to] :
       {std::pair("S(0)S(1)", "S(1)S(0)"), std::pair("RS(0)", "S(0)R"), std::pair("S(2)R", "RS(1)"),
        std::pair("S(0)S(0)", "RR"), std::pair("P(sum)S(0)", "S(1)R"),
        std::pair("RP(sum)", "S(0)S(1)")}) {
    std::vector<std::int64_t> times;
    for (const char* ranks : numbered)
      times.push_back(studied(large_across("4x4", ranks, from, "4x4", ranks, to), two)->time_ps());
    INFO(from << " -> " << to);
    CHECK(times[0] == times[1]);
    CHECK(times[0] == times[2]);
  }
}

TEST_CASE("more links are never slower") {
  const char* fewer_first[] = {"rtx-pro-6000-8:2,nics=1", "rtx-pro-6000-8:2,nics=2",
                               "rtx-pro-6000-8:2,nics=4"};
  for (const auto& [from, to] : {std::pair("S(0)S(1)", "S(1)S(0)"), std::pair("S(2)R", "RS(1)"),
                                 std::pair("P(sum)S(0)", "S(1)R")}) {
    if (test::kOneOf > 1 && from[0] != 'S') continue;  // many minutes under sanitizers
    INFO(from << " -> " << to);
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const char* machine : fewer_first) {
      std::int64_t time = studied(large("4x4", from, to), sim::find_topology(machine))->time_ps();
      CHECK(time <= before);
      before = time;
    }
  }
}

TEST_CASE("however steps overlap, no more than four chunks of what is relayed are held") {
  Topology two = sim::find_topology("dgx-h100:2");
  for (const auto& [mesh, from, to] :
       {std::tuple("4x4", "S(0)S(1)", "S(1)S(0)"), std::tuple("2x8", "S(0)R", "RS(0)"),
        std::tuple("4x4", "P(sum)S(0)", "S(1)R"), std::tuple("8x2", "P(sum)P(sum)", "S(0)S(1)")}) {
    INFO(mesh << " " << from << " -> " << to);
    auto study = studied(large(mesh, from, to), two);
    TemporaryUse use = temporary_use(*study);
    // All have 32 chunks and more.
    CHECK(use.relayed_bytes > 0);
    CHECK(use.most_bytes <= use.relayed_bytes * 4 / 32);
    std::vector<std::int64_t> held = held_temporaries(study->plan());
    std::int64_t declared = *std::max_element(held.begin(), held.end());
    // What a plan says it needs holds however its steps overlap, and where they last as is worst it
    // is needed.
    CHECK(use.most_bytes <= declared);
    CHECK(study->bytes().peak_max >= declared);
    auto slots = static_cast<Slot>(study->plan().slot_count());
    for (Slot slot = 0; slot < slots; slot += test::kOneOf)
      CHECK(test::held_by_slow_readers(study->plan(), slot) == held[to_index(slot)]);
  }
}

TEST_CASE("nodes that fold for themselves reach no ranks of each other") {
  // One NIC per node and a slow way inside: branches go by the other node.
  Topology narrow = sim::find_topology("rtx-pro-6000-8:2,nics=1");
  for (const auto& [shape, from, to] : {std::tuple("32,512,256", "RP(sum)", "RR"),
                                        std::tuple("32,128,64", "S(0)P(sum)", "RS(1)")}) {
    INFO(from << " -> " << to);
    CHECK(ratio(*studied(request_on("8x2", shape, from, to), narrow)) < 1.5);
  }
}

TEST_CASE("the explanation names the limit") {
  sim::StudyOptions options;
  options.explain = true;
  options.transport.kind = TransportKind::Ideal;
  sim::Studies studies(std::make_shared<const Topology>(sim::find_topology("dgx-h100:2")),
                       find_planner("packed"), options);
  auto study = studies.of(large("4x4", "S(0)S(1)", "S(1)S(0)"));
  REQUIRE(study->explanation());
  // Half of what is on a node goes to the other one: the NICs, both ways.
  CHECK_THAT(study->explanation()->lines().front().why,
             Catch::StartsWith("packed: nic.") && Catch::Contains("is the bottleneck, busy for"));
}

TEST_CASE("small messages take the way of fewest latencies") {
  // 4 KiB a shard: one hop over the network, 2.7 us, and its bytes at 50 GB/s.
  auto study =
      studied(request_on("2x8", "16384", "S(0)R", "RS(0)"), sim::find_topology("dgx-h100:2"));
  CHECK(study->time_ps() < 3'500'000);
}

TEST_CASE("other trees are tried where a pipeline lags, small ones where latencies count") {
  // Half of 8 MiB into either rank at 10^9 B/s: the busiest link is under way for 4,194,304,000 ps,
  // and some millionths, since trees carry whole parts.
  constexpr std::int64_t kLatency = 1'000'000, kBusy = 4'194'304'000,
                         kSlow = kBusy / 50 * 51 + 4 * kLatency, kSmall = 32 * kLatency;
  Topology topology = test::star(2, 1'000'000'000, kLatency);
  Request request = request_on("2", "2097152", "S(0)", "R");
  auto plans_timed = [&](std::int64_t time_ps) {
    int count = 0;
    PlannerInput input;
    input.topology = &topology;
    input.plan_time = [&](const Plan&, const Topology&, std::int64_t) {
      ++count;
      return PlanTiming(time_ps);
    };
    plan_packed(request, input);
    return count;
  };
  int usual = plans_timed(kSlow);
  CHECK(plans_timed(kSlow + kBusy / 100'000) > usual);
  CHECK(plans_timed(kSmall) == usual);
  CHECK(plans_timed(kSmall - 1) > usual);
}

TEST_CASE("pipelines have more chunks the more bytes there are for a latency, up to 128") {
  auto chunks = [](std::int64_t latency_ps) {
    Topology topology = test::star(2, 1'000'000'000, latency_ps);
    PlannerInput input;
    input.topology = &topology;
    // What a rank holds it copies; then a step for each chunk.
    return plan_packed(request_on("2", "2097152", "S(0)", "R"), input).steps.size() - 1;
  };
  // The least whose square is no less than 4.194 ms by the latency.
  CHECK(chunks(1'000'000) == 65);
  CHECK(chunks(262'000) == 127);
  CHECK(chunks(1000) == 128);
}

TEST_CASE("addends of very many ranks meet as in p2p: their trees would take minutes to find") {
  Request request = request_on("65536", "4", "P(sum)", "R");
  Topology topology = sim::find_topology("dgx-h100:8192");
  PlannerInput input;
  input.topology = &topology;
  Plan packed = plan_packed(request, input);
  CHECK(packed.planner == "packed");
  CHECK(packed.steps.size() == plan_p2p(request, input).steps.size());
}

TEST_CASE("drawn requests are proved, and not slower than the bound says they can be") {
  test::Prng prng(20261125);
  int planned = 0, chunked = 0;
  for (int draw = 0; draw < 2'000 / test::kOneOf; ++draw) {
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    INFO("draw " << draw << ": " << request->text());
    TransportKind transport = prng.one_in(3) ? TransportKind::Nccl : TransportKind::Ideal;
    auto study = studied(*request, sim::find_topology(prng.one_in(2) ? "dgx-h100:8" : "dgx-a100:8"),
                         "packed", transport);
    study->bound();
    CHECK(study->time_ps() >= 0);
    chunked += study->plan().steps.size() > 6;
    ++planned;
  }
  CHECK(planned > 500 / test::kOneOf);
  CHECK(chunked > 5 / test::kOneOf);
}

TEST_CASE("under NCCL steps come in waves, few enough to be worth their launches") {
  Request request = large("4x4", "S(0)S(0)", "RR");
  Topology topology = sim::find_topology("dgx-h100:2");
  auto ideal = studied(request, topology),
       nccl = studied(request, topology, "packed", TransportKind::Nccl);
  CHECK(nccl->plan().steps.size() < ideal->plan().steps.size() / 2);
  auto p2p = studied(request, topology, "p2p", TransportKind::Nccl);
  CHECK(nccl->time_ps() < p2p->time_ps());
}

TEST_CASE("a memory limit asks for more chunks, and is an error where none fits") {
  Request request = request_on("4x4", "512,512,64", "S(0)S(1)", "S(1)S(0)");
  Topology topology = sim::find_topology("dgx-h100:2");
  auto free = studied(request, topology);
  std::int64_t needed = free->needs().bytes,
               least = 2 * request.source().bytes() / 16;  // source and destination
  REQUIRE(needed > least);
  std::int64_t limit = least + (needed - least) / 2;
  auto tight = studied(request, topology, "packed", TransportKind::Ideal, limit);
  CHECK(tight->needs().bytes <= limit);
  // Not by giving up relays, which takes twice as long.
  CHECK(tight->time_ps() < free->time_ps() / 10 * 12);
  CHECK_THROWS_AS(studied(request, topology, "packed", TransportKind::Ideal, least - 1),
                  InputError);
}

TEST_CASE("no plan of a large job is made whose busiest link takes longer than p2p's plan") {
  Topology topology = sim::find_topology("dgx-h100:37");
  Request request = parse_request({.mesh = "2",
                                   .ranks = "0-1",
                                   .to_mesh = "290",
                                   .to_ranks = "2-291",
                                   .shape = "65536,65536",
                                   .dtype = "bf16",
                                   .from = "S(0)",
                                   .to = "R"});
  PlannerInput input;
  input.topology = &topology;
  Plan direct = plan_p2p(request, input), own = plan_packed(request, input);
  input.p2p = &direct;
  CHECK(own.steps != direct.steps);
  const std::int64_t bound_ps =
      bound_of(std::span(&request, 1), topology, Switches::Forward).time_ps();
  // Faster than the trees by more than rounding; not so; and not known.
  input.p2p_ps = bound_ps / 2;
  CHECK(plan_packed(request, input).steps == direct.steps);
  input.p2p_ps = 2 * bound_ps;
  CHECK(plan_packed(request, input).steps == own.steps);
  input.p2p_ps.reset();
  CHECK(plan_packed(request, input).steps == own.steps);
}

TEST_CASE("aims that lead to the same trees cost no plan") {
  Topology topology = sim::find_topology("dgx-h100:2");
  for (const Request& request :
       {large("8", "S(0)", "S(1)"), large("4x4", "S(0)R", "RS(1)"),
        large("3x5", "S(0)S(1)", "S(1)R"), large("16", "P(sum)", "S(0)")}) {
    CAPTURE(request.text());
    std::size_t timed = 0;
    std::set<std::string> plans;
    PlannerInput input;
    input.topology = &topology;
    input.steps_in_turn = true;
    input.plan_time = [&](const Plan& plan, const Topology&, std::int64_t) {
      ++timed;
      plans.insert(to_text(plan));
      return std::int64_t{1} << 50;  // all aims are tried
    };
    make_plan(find_planner("packed"), request, input);
    CHECK(timed >= 4);
    CHECK(timed <= plans.size() + 1);  // p2p's plan may be among those of trees
  }
}

}  // namespace reshard
