// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <map>
#include <regex>

#include "core/base/errors.h"
#include "sim/calibrate/links.h"
#include "sim/machines/presets.h"
#include "sim/transport/nccl/nccl_graph.h"

namespace reshard::sim {
namespace {

P2pMatrices matrices() {
  std::string file = "traces/topologies/p2p-8x3090.txt";
  return parse_p2p_matrices(read_text_file(file, 1 << 20), file);
}

TEST_CASE("a matrix fits what a host stages: a resource of both directions, and a cap") {
  // Stated wrong by half, and known apart only by that.
  std::string text = std::regex_replace(to_text(find_description("pcie-8x3090").description),
                                        std::regex("6897640000B"), "3.4GB");
  LinkFit fit = fit_links(parse_topology(text, "base"), matrices(), "m");
  std::map<std::string, std::int64_t> shared;
  for (const SharedResource& resource : fit.machine.shared)
    shared[resource.name] = resource.bytes_per_s;
  // The means of the bidirectional matrix by socket, as the preset has them from the same post.
  CHECK(shared["staging0"] == 8'499'000'000);
  CHECK(shared["staging1"] == 7'436'000'000);
  CHECK(shared["staging-across"] == 7'814'000'000);
  for (const RouteLine& route : fit.machine.routes)
    if (route.rule.transport == Transport::Host) {
      CHECK(route.rule.cap_bytes_per_s.value() > 6'850'000'000);
      CHECK(route.rule.cap_bytes_per_s.value() < 6'900'000'000);
      CHECK(route.rule.latency_ps > 13'000'000);
    }
  REQUIRE(fit.pairs.size() == 4);
  CHECK(fit.pairs[0].path_class == PathClass::NVL);
  CHECK((fit.pairs[0].pairs == 4 && fit.pairs[1].pairs == 4 && fit.pairs[2].pairs == 16));
  CHECK(fit.pairs[1].before_bytes_per_s == 3'400'000'000);
  CHECK(fit.pairs[1].after_bytes_per_s == fit.pairs[1].measured_bytes_per_s);
}

// Eight GPUs whose pairs all reach the same.
P2pMatrices uniform(std::int32_t gpus, std::int64_t one_way, std::int64_t both) {
  auto matrix = [&](std::int64_t value) {
    return P2pMatrix{gpus, std::vector<std::int64_t>(to_index(gpus * gpus), value), 1};
  };
  P2pMatrices out;
  out.gpus = gpus;
  out.one_way = matrix(one_way);
  if (both > 0) out.both_ways = matrix(both);
  return out;
}

TEST_CASE("NVLink keeps its line rate: copies are capped, NCCL's rings are as before") {
  TopologyDescription base = find_description("dgx-h200").description;
  LinkFit fit = fit_links(base, uniform(8, 374'000'000'000, 0), "m");
  CHECK(fit.machine.ports[0].out_bytes_per_s == 450'000'000'000);
  CHECK(fit.machine.routes[0].rule.cap_bytes_per_s == 374'000'000'000);
  REQUIRE(fit.fitted.size() == 1);
  CHECK(fit.fitted[0].name == "class NVL");
  CHECK((fit.fitted[0].before == 450'000'000'000 && fit.fitted[0].after == 374'000'000'000));
  for (std::int32_t ranks : {2, 8}) {
    std::vector<Rank> members;
    for (std::int32_t rank = 0; rank < ranks; ++rank) members.push_back(Rank{rank});
    auto before = nccl::communicator_of(build_topology(base, std::nullopt), members),
         after = nccl::communicator_of(build_topology(fit.machine, std::nullopt), members);
    CHECK(before.on_node == after.on_node);
    CHECK(before.ring.channels == after.ring.channels);
  }
}

TEST_CASE("PCIe: ports carry the fastest pair, uplinks theirs, what is slower still is capped") {
  TopologyDescription base = find_description("l40s-8").description;
  P2pMatrices measured = uniform(8, 20'000'000'000, 0);
  measured.both_ways = P2pMatrix{8, std::vector<std::int64_t>(64, 36'000'000'000), 1};
  for (std::int32_t a = 0; a < 8; ++a)
    for (std::int32_t b = 0; b < 8; ++b) {
      if (a / 2 == b / 2) measured.one_way->cells[to_index(8 * a + b)] = 26'000'000'000;
      if (a / 4 != b / 4) measured.one_way->cells[to_index(8 * a + b)] = 15'000'000'000;
    }
  LinkFit fit = fit_links(base, measured, "m");
  CHECK(fit.machine.ports[0].out_bytes_per_s == 26'000'000'000);
  CHECK(fit.machine.ports[0].in_bytes_per_s == 26'000'000'000);
  for (const SharedResource& shared : fit.machine.shared) {
    if (shared.name.starts_with("uplink")) CHECK(shared.bytes_per_s == 20'000'000'000);
    if (shared.name == "socket-link") CHECK(shared.bytes_per_s == 36'000'000'000);
    if (shared.name.starts_with("nics")) CHECK(shared.bytes_per_s == 100'000'000'000);
  }
  for (const RouteLine& route : fit.machine.routes) {
    PathClass path = route.rule.path_class();
    std::optional<std::int64_t> cap =
        path == PathClass::SYS   ? std::optional<std::int64_t>(15'000'000'000)
        : path == PathClass::NET ? std::optional<std::int64_t>(25'000'000'000)
                                 : std::nullopt;
    CHECK(route.rule.cap_bytes_per_s == cap);
  }
}

TEST_CASE("matrices that do not fit the machine") {
  auto error = [](const std::string& base, const P2pMatrices& measured) {
    try {
      fit_links(find_description(base).description, measured, "m.txt");
    } catch (const InputError& found) {
      return std::string(found.what());
    }
    return std::string("no error");
  };
  CHECK(error("gb200-4", uniform(8, 1, 1)) ==
        "m.txt: expected a topology of at least 8 devices per node, found 4");
  P2pMatrices both_only = uniform(8, 1, 1);
  both_only.one_way.reset();
  CHECK(error("dgx-h200", both_only) ==
        "m.txt: expected a unidirectional bandwidth matrix, found none");
}

// ---- reports of `validate`

std::string report(const std::string& from, const std::string& to, const std::string& step,
                   std::int64_t bytes, const std::string& more = "") {
  return R"({"schema": "reshard.validate/1", "request": {"mesh": "8", "ranks": "0-7",
    "to_ranks": "0-7", "from": ")" +
         from + R"(", "to": ")" + to + R"("}, "backend": {"name": "nccl"}, "steps": [)" + more +
         R"({"kind": ")" + step + R"(", "axis": 0, "ranks": "0-7", "bytes": )" +
         std::to_string(bytes) +
         R"(, "measured_ps": {"median": 12000000, "min": 1, "max": 2}}], "bytes_received_max": )" +
         std::to_string(bytes / 8) + "}";
}

TEST_CASE("a validated plan of one collective or one exchange is a row") {
  struct Case {
    std::string from, to, step;
    std::int64_t received;  // by all ranks
    CollectiveKind kind;
    std::int64_t bytes;  // as nccl-tests counts them
  };
  constexpr std::int64_t kPart = 1000;
  for (const Case& c :
       {Case{"S(0)", "R", "all_gather", 8 * 7 * kPart, CollectiveKind::AllGather, 8 * kPart},
        Case{"P(sum)", "S(0)", "reduce_scatter", 8 * 7 * kPart, CollectiveKind::ReduceScatter,
             8 * kPart},
        Case{"P(sum)", "R", "all_reduce", 2 * 7 * 8 * kPart, CollectiveKind::AllReduce, 8 * kPart},
        Case{"S(0)", "S(1)", "all_to_all", 8 * 7 * kPart, CollectiveKind::AllToAll, 8 * kPart},
        Case{"S(0)", "S(1)", "exchange", 8 * 7 * kPart, CollectiveKind::AllToAll, 8 * kPart}}) {
    CAPTURE(c.step);
    std::string copies = R"({"kind": "copy", "ranks": "0-7", "bytes": 0}, )";
    MeasuredTable table =
        parse_measured(report(c.from, c.to, c.step, c.received, copies), "v.json");
    REQUIRE(table.rows.size() == 1);
    CHECK(table.rows[0].kind == c.kind);
    CHECK((table.rows[0].ranks == 8 && table.rows[0].bytes == c.bytes));
    CHECK((table.rows[0].time_ps == 12'000'000 && table.rows[0].place == "v.json"));
  }
  auto passed_over = [](const std::string& text) {
    MeasuredTable table = parse_measured(text, "v.json");
    return table.rows.empty() ? table.passed_over : 0;
  };
  // Uneven or other exchanges, several steps that send, other meshes.
  std::string good = report("S(0)", "S(1)", "exchange", 56000);
  CHECK(passed_over(good) == 0);
  CHECK(passed_over(report("S(0)", "R", "exchange", 56000)) == 1);
  CHECK(passed_over(std::regex_replace(good, std::regex("_max\": 7000"), "_max\": 7001")) == 1);
  CHECK(passed_over(report("S(0)", "S(1)", "exchange", 56000,
                           R"({"kind": "reduce", "ranks": "0-7", "bytes": 1}, )")) == 1);
  CHECK(passed_over(std::regex_replace(good, std::regex("\"mesh\": \"8\""), "\"mesh\": \"2x4\"")) ==
        1);
  CHECK(passed_over(std::regex_replace(good, std::regex("0-7"), "8-15")) == 1);
}

TEST_CASE("reports of validate that are none of NCCL") {
  auto error = [](const std::string& text) {
    try {
      parse_measured(text, "v.json");
    } catch (const InputError& found) {
      return std::string(found.what());
    }
    return std::string("no error");
  };
  std::string good = report("S(0)", "R", "all_gather", 56000);
  auto changed = [&](const std::string& from, const std::string& to) {
    return error(std::regex_replace(good, std::regex(from), to));
  };
  CHECK(changed("nccl", "mpi") ==
        "v.json: expected a run of backend nccl, whose times are NCCL's, found 'mpi'");
  CHECK(changed("\"backend\"", "\"x\"") ==
        "v.json: /backend/name: expected a field of reshard.validate/1, found something else");
  CHECK(changed("\"steps\": \\[", "\"steps\": 1, \"x\": [") ==
        "v.json: /steps: expected a list, found something else");
  CHECK(changed("12000000", "0").find("v.json: /measured_ps/median: expected an integer from 1") ==
        0);
  CHECK(changed("56000", "1.5").find("v.json: /bytes: expected an integer from 1 to") == 0);
  CHECK(changed("\"mesh\": \"8\"", "\"mesh\": \"0\"") != "no error");
}

}  // namespace
}  // namespace reshard::sim
