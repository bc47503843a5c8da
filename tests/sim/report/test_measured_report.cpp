// SPDX-License-Identifier: BSD-3-Clause
// What `validate` prints for known figures.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sim/report/run_report.h"
#include "sim/report/validate_report.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::kUs;

namespace {

ValidateReport two_ranks() {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({2}));
  Request request(parse_layout("2,2", "f16", mesh, "S(0)"),
                  parse_layout("2,2", "f16", mesh, "S(1)"));
  RunReport predicted(std::span(&request, 1), request.ranks());
  predicted.topology = "star";
  predicted.topology_devices = 4;
  predicted.planner = predicted.planner_asked = "p2p";
  predicted.steps = {{"copy", {}, {Rank{0}, Rank{1}}, 0, 0, 0, {}},
                     {"exchange", {}, {Rank{0}, Rank{1}}, 4000, 0, 10 * kUs, {}}};
  predicted.time_ps = 10 * kUs;
  predicted.bytes.received_max = 2000;
  predicted.bytes.received_total = 4000;
  ValidateReport report(std::move(predicted));
  report.backend = "mpi";
  report.library = "Open MPI 4.1.4";
  report.processes = 2;
  report.iterations = 3;
  report.warm_up = 1;
  report.measured.steps = {Spread{kUs, kUs, 2 * kUs}, Spread{15 * kUs, 14 * kUs, 16 * kUs}};
  report.measured.total = {16 * kUs, 15 * kUs, 18 * kUs};
  report.values.shards = {{TensorId{0}, Rank{0}, 2, Digest{1, 2}, std::nullopt, Digest{1, 2}},
                          {TensorId{0}, Rank{1}, 2, Digest{3, 4}, std::nullopt, Digest{3, 4}}};
  report.values.store_ran = true;
  report.values.digest = Digest{5, 6};
  return report;
}

}  // namespace

TEST_CASE("the table of a validation that holds") {
  CHECK(validate_table(two_ranks(), false, 200) ==
        "request   f16[2,2] S(0) on 2 -> S(1)\n"
        "topology  star (2 of 4 devices)\n"
        "planner   p2p\n"
        "backend   mpi: Open MPI 4.1.4; 2 processes\n"
        "\n"
        "step  kind      ranks      bytes  predicted   measured      spread   ratio\n"
        "   0  copy      0-1          0 B       0 ps   1.000 us  1.00..2.00       -\n"
        "   1  exchange  0-1    3.906 KiB  10.000 us  15.000 us  0.93..1.07  1.5000\n"
        " all                   3.906 KiB  10.000 us  16.000 us  0.94..1.12  1.6000\n"
        "\n"
        "proof      every destination element, from index sets\n"
        "values     4 elements on 2 ranks, each as the request defines it\n"
        "store      the same bytes on all 2 ranks\n"
        "digest     00000000000000050000000000000006\n"
        "measured   16.000 us, 125.000 MB/s into the fullest rank (1.953 KiB); median of 3 runs "
        "after 1 warm-up\n"
        "predicted  10.000 us, 200.000 MB/s into the fullest rank (1.953 KiB)\n"
        "ratio      1.6000 measured to predicted\n"
        "           the prediction is for star, not for the machine that ran the plan\n"
        "bandwidth  algbw 250000 B/s, busbw 125.000 MB/s\n");
}

TEST_CASE("what the table says of sums, hosts and a store that did not run") {
  ValidateReport report = two_ranks();
  report.hosts = 2;
  report.models_this_machine = report.sums_in_own_order = true;
  report.values.store_ran = false;
  report.values.note = "it needs 3 B, above the data budget of 2 B";
  report.values.digest.reset();
  for (ShardFacts& shard : report.values.shards) shard.expected.reset();
  std::string table = validate_table(report, true, 200);
  for (const char* part :
       {"backend   mpi: Open MPI 4.1.4; 2 processes on 2 hosts\n",
        "the library chooses the order of sums; the inputs make them exact in any order\n",
        "store              not run: it needs 3 B, above the data budget of 2 B\n",
        "digest of digests  ",
        "rank  elements  digest                            store's digest\n   0         2  "
        "00000000000000010000000000000002  -\n"})
    CHECK(table.find(part) != std::string::npos);
  CHECK(table.find("not for the machine") == std::string::npos);
}

TEST_CASE("a difference stands in table, JSON and on standard error") {
  ValidateReport report = two_ranks();
  report.values.digest.reset();
  report.values.shards[1].wrong = PatternMismatch{2, 1, 0x00ab, 0x00aa};
  report.values.shards[1].digest = Digest{3, 5};
  CHECK(faults_of(two_ranks()).empty());
  CHECK(faults_of(report) ==
        std::vector<std::string>{
            "values of f16[2,2] S(0) on 2 -> S(1): rank 1 holds a wrong value "
            "at global index [0,1]: expected 0x00ab, found 0x00aa (2 of its "
            "elements are wrong, 2 on all ranks)",
            "values of f16[2,2] S(0) on 2 -> S(1): rank 1's shard has digest "
            "00000000000000030000000000000005, but 00000000000000030000000000000004 in the store's "
            "run of the same plan (1 of 2 shards differ)"});
  std::string table = validate_table(report, false, 200);
  CHECK(table.find("values             WRONG: 2 of 4 elements, on 1 of 2 ranks\n") !=
        std::string::npos);
  CHECK(table.find("store              OTHER BYTES on 1 of 2 ranks\n") != std::string::npos);
  nlohmann::json json = nlohmann::json::parse(validate_json(report));
  CHECK(json["values"]["hold"] == false);
  CHECK(json["values"]["wrong"] == 2);
  CHECK(json["values"]["first_difference"] ==
        nlohmann::json::parse(
            R"({"rank": 1, "index": [0, 1], "expected": "0x00ab", "found": "0x00aa"})"));
  CHECK(json["values"]["digest"].is_null());
  // The store alone may differ, where a backend and the request's definition agree and the plan
  // does not: then that is what is said.
  report.values.shards[1].wrong.reset();
  CHECK(faults_of(report).size() == 1);
  CHECK_FALSE(report.values.hold());
}

TEST_CASE("ratios and rates are absent where nothing was to be done") {
  ValidateReport report = two_ranks();
  report.predicted.steps.clear();
  report.measured.steps.clear();
  report.predicted.time_ps = 0;
  report.measured.total = {0, 0, 0};
  report.predicted.bytes.received_max = 0;
  std::string table = validate_table(report, false, 200);
  CHECK(table.find("no steps: nothing has to be done\n") != std::string::npos);
  CHECK(table.find("ratio      - measured to predicted\n") != std::string::npos);
  nlohmann::json json = nlohmann::json::parse(validate_json(report));
  CHECK((json["ratio"].is_null() && json["measured_bytes_per_s"].is_null() &&
         json["measured_ps"]["median"] == 0));
}
