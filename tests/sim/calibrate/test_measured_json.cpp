// SPDX-License-Identifier: BSD-3-Clause
// Measured collectives in JSON: as nccl-tests writes them with -J, and as NCCL's Inspector logs
// them.
#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/calibrate/measured.h"

namespace reshard::sim::measured_json_tests {
namespace {

std::string error_of(const std::string& text, const std::string& file = "log.txt") {
  try {
    parse_measured(text, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// What a run of all_reduce_perf writes: `entries` devices, so many threads and GPUs of each
// process.
std::string run_json(int entries, int threads, int gpus, const std::string& results, int step = 1) {
  std::string devices;
  for (int i = 0; i < entries; ++i)
    devices += fmt::format(R"({}{{"rank":{},"group":0,"device_info":"NVIDIA H100"}})",
                           i == 0 ? "" : ",", i * step);
  return fmt::format(
      R"({{"version":1,"args":["./build/all_reduce_perf","-J","all_gather.json"],"config":{{)"
      R"("nthreads":{},"ngpus":{},"devices":[{}]}},"results":[{}],"errors":[]}})",
      threads, gpus, devices, results);
}

std::string result(const std::string& outside, const std::string& inside = "null") {
  return fmt::format(R"({{"size":1048576,"count":262144,"type":"float","redop":"sum",)"
                     R"("root":"    -1","out_of_place":{},"in_place":{}}})",
                     outside, inside);
}

const std::string kBody = R"({"time":25.4,"alg_bw":41.28,"bus_bw":72.24,"nwrong":0.0})";

}  // namespace

TEST_CASE("JSON as nccl-tests -J writes it: of each process its first device") {
  for (const std::string& text :
       {run_json(8, 1, 1, result(kBody)), run_json(1, 1, 8, result(kBody)),
        run_json(1, 8, 1, result(kBody)), run_json(2, 2, 2, result(kBody), 4),
        run_json(4, 1, 2, result(kBody), 2)}) {
    MeasuredTable table = parse_measured(text, "out.json");
    REQUIRE(table.rows.size() == 1);
    CHECK(table.rows[0].kind == CollectiveKind::AllReduce);
    CHECK((table.rows[0].ranks == 8 && table.rows[0].bytes == 1048576));
    CHECK(table.rows[0].time_ps == 25'400'000);
    CHECK(table.rows[0].place == "out.json: results[0].out_of_place");
    CHECK((table.passed_over == 0 && table.notes.empty()));
  }
}

TEST_CASE("JSON whose devices stand on top") {
  const std::string devices = R"("devices": [{"rank": 0}, {"rank": 1}, {"rank": 2}])";
  MeasuredTable table = parse_measured(
      R"({"args": ["./all_gather_perf", "-J"], )" + devices +
          R"(, "results": [{"size": 0, "out_of_place": {"time": 3}}, {"size": 4096, "count": 1,
             "out_of_place": {"time": 11.25, "alg_bw": 0.36, "bus_bw": 0.24}}]})",
      "out.json");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].kind == CollectiveKind::AllGather);
  CHECK((table.rows[0].ranks == 3 && table.rows[0].bytes == 4096));
  CHECK(table.rows[0].time_ps == 11'250'000);
  CHECK(table.passed_over == 1);
  CHECK(error_of("{" + devices + R"(, "results": []})") ==
        "log.txt: expected the collective in 'args' or in the file's name, found none");
}

TEST_CASE("JSON of nccl-tests: what was run in place only, what failed") {
  const std::string wrong = R"({"time":25.4,"alg_bw":41.28,"bus_bw":72.24,"nwrong":2.0})",
                    inside = R"({"time":25.3,"alg_bw":41.4,"bus_bw":72.5,"nwrong":null})",
                    none = R"({"time":"nan","alg_bw":"nan","bus_bw":"nan","nwrong":0})";
  MeasuredTable table =
      parse_measured(run_json(8, 1, 1,
                              result("null", inside) + "," + result(wrong, inside) + "," +
                                  result(none, none) + "," + result(none)),
                     "out.json");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time_ps == 25'300'000);
  CHECK(table.passed_over == 3);
  CHECK(table.notes ==
        std::vector<std::string>{
            "out.json: results[0]: 1 row with in-place times only, used unchanged",
            "out.json: results[1].out_of_place: 1 row with wrong values (nwrong) skipped",
            "out.json: results[2]: 2 rows without a time skipped"});
}

TEST_CASE("JSON of nccl-tests that cannot be so is refused") {
  for (const char* other : {"{", "{}", "{\"results\": []}"})
    CHECK(error_of(other) ==
          "log.txt:1: expected output of nccl-tests (text, -J), NCCL's Inspector, reshard validate "
          "--json or p2pBandwidthLatencyTest, found what looks like some "
          "other kind of JSON");
  CHECK(error_of(R"({"args": "all_reduce_perf", "devices": [], "results": []})") ==
        "log.txt: expected a list 'devices', found something else");
  CHECK(error_of(R"({"args": "all_reduce_perf", "devices": [1], "results": 3})") ==
        "log.txt: expected a list 'results', found something else");
  CHECK(error_of(run_json(8, 1, 1, R"({"size": 8})")) ==
        "log.txt: results[0]: expected 'out_of_place', found none");
  CHECK(error_of(run_json(8, 1, 1, R"({"size": "8", "out_of_place": {"time": 1}})")) ==
        "log.txt: results[0].size: expected a number, found the text '8'");
  CHECK(error_of(run_json(8, 1, 1, R"({"size": [[8]], "out_of_place": {"time": 1}})")) ==
        "log.txt: results[0].size: expected a number, found a list of 1");
  CHECK(error_of(run_json(8, 1, 1, result(R"({"time": 0})"))) ==
        "log.txt: results[0].out_of_place: expected a time above 0, found 0");
  CHECK(error_of(run_json(8, 1, 1, result(R"({"cpu_time": 3, "alg_bw": 41.28})"))) ==
        "log.txt: results[0].out_of_place: expected 'time', found 'cpu_time' (nccl-tests -C): how "
        "long the CPU takes to launch");
  CHECK(error_of(run_json(8, 1, 1, result(R"({"time": 25.4, "alg_bw": 4.128, "bus_bw": 7.2})"))) ==
        "log.txt: results[0].out_of_place: expected size / time = alg_bw, found 1048576 B, 25.4 us "
        "and 4.128 GB/s");
  CHECK(error_of(run_json(4, 1, 1, result(kBody))) ==
        "log.txt: results[0].out_of_place: expected busbw / algbw for the 4 ranks that are listed, "
        "found 72.24 GB/s and 41.28 GB/s, which fit 8 ranks");
  CHECK(error_of(run_json(2, 1, 1, result(kBody), 0)) ==
        "log.txt: devices[1]: expected each rank once, found rank 0 again: either two runs are "
        "mixed, or nccl-tests was built without MPI and every process ran alone");
}

TEST_CASE("NCCL Inspector lines: the median of equal operations") {
  auto line = [](const std::string& coll, int ranks, const std::string& bytes, double us) {
    return fmt::format(
        R"({{"header": {{"id": "0x1", "rank": 3, "n_ranks": {}, "nnodes": 1}}, "metadata": {{}}, )"
        R"("coll_perf": {{"coll": "{}", "coll_sn": 7, "coll_msg_size_bytes": {}, )"
        R"("coll_exec_time_us": {}}}}})"
        "\n",
        ranks, coll, bytes, us);
  };
  std::string text = line("AllReduce", 8, "1024", 30) + line("AllReduce", 8, "1024", 10) + "\n" +
                     line("AllReduce", 8, "1024", 20) + line("AllReduce", 8, "1024", 99) +
                     line("ReduceScatter", 4, "4096", 12.5) + line("Broadcast", 4, "4096", 1) +
                     line("AllGather", 1, "4096", 1) + line("AllGather", 2, "0", 1) +
                     "{\"header\": {}, \"proxy_perf\": {}}\n";
  MeasuredTable table = parse_measured(text, "log.jsonl");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.passed_over == 4);
  auto found = [&](CollectiveKind kind) {
    return *std::find_if(table.rows.begin(), table.rows.end(),
                         [&](const MeasuredCollective& row) { return row.kind == kind; });
  };
  MeasuredCollective reduce = found(CollectiveKind::AllReduce),
                     scatter = found(CollectiveKind::ReduceScatter);
  CHECK((reduce.ranks == 8 && reduce.bytes == 1024 && reduce.time_ps == 20'000'000));
  CHECK(reduce.place == "log.jsonl:4");
  // 4096 are of one rank.
  CHECK((scatter.ranks == 4 && scatter.bytes == 16384 && scatter.time_ps == 12'500'000));
  CHECK(error_of(line("AllReduce", 8, "1", 1) + "no\n", "l.jsonl") ==
        "l.jsonl:2: expected nccl-tests -J JSON or NCCL Inspector lines, found other text");
  CHECK(error_of(line("AllReduce", 0, "1", 1), "l.jsonl") ==
        "l.jsonl:1: expected 1 to 2^20 ranks, 0 to 2^62 bytes and a time above 0, found others");
  CHECK(error_of(line("AllReduce", 8, "-1", 1), "l.jsonl").find("l.jsonl:1: expected 1 to") == 0);
  CHECK(error_of(line("AllReduce", 8, "1", 0), "l.jsonl").find("l.jsonl:1: expected 1 to") == 0);
  CHECK(error_of(line("AllReduce", 8, "\"x\"", 1), "l.jsonl") ==
        "l.jsonl:1: coll_msg_size_bytes: expected a number, found the text 'x'");
  CHECK(error_of(R"({"coll_perf": {}})", "l.jsonl") == "l.jsonl:1: expected 'header', found none");
}

TEST_CASE("sizes of the Inspector are of one rank or of all, as its rates say") {
  auto line = [](const std::string& coll, std::int64_t bytes, double us, double alg, double bus) {
    return fmt::format(
        R"({{"header": {{"n_ranks": 8}}, "coll_perf": {{"coll": "{}", "coll_msg_size_bytes": {}, )"
        R"("coll_exec_time_us": {}, "coll_algobw_gbs": {}, "coll_busbw_gbs": {}}}}})",
        coll, bytes, us, alg, bus);
  };
  auto bytes = [&](const std::string& text) {
    MeasuredTable table = parse_measured(text, "l.jsonl");
    REQUIRE(table.rows.size() == 1);
    return table.rows[0].bytes;
  };
  // The example of NCCL's page on it.
  CHECK(bytes(line("ReduceScatter", 2147483648, 41057, 418.439467, 366.134533)) == 17179869184);
  CHECK(bytes(line("AllGather", 1048576, 100, 83.88608, 73.40032)) == 8388608);
  CHECK(bytes(line("AllGather", 8388608, 100, 83.88608, 73.40032)) == 8388608);
  CHECK(bytes(line("AllReduce", 8388608, 100, 83.88608, 146.80064)) == 8388608);
  CHECK(bytes(line("AllToAll", 1048576, 100, 83.88608, 73.40032)) == 8388608);
  CHECK(error_of(line("AllGather", 1048576, 100, 20, 17.5), "l.jsonl") ==
        "l.jsonl:1: expected coll_msg_size_bytes (of a rank or of all 8) / coll_exec_time_us = "
        "coll_algobw_gbs, found 1048576 B, 100 us and 20 GB/s");
  CHECK(error_of(line("AllReduce", 8388608, 100, 83.88608, 157.2864), "l.jsonl") ==
        "l.jsonl:1: expected busbw / algbw for 8 ranks, found 157.2864 GB/s and 83.88608 GB/s, "
        "which fit 16 ranks");
  MeasuredTable untold = parse_measured(line("AllToAll", 8, 1, 0, 0), "l.jsonl");
  CHECK((untold.rows.empty() && untold.passed_over == 1));
  CHECK(untold.notes ==
        std::vector<std::string>{"l.jsonl:1: 1 row of AllToAll skipped: no coll_algobw_gbs, which "
                                 "shows whether the size is that of one peer or of all"});
  MeasuredTable uneven = parse_measured(line("AllGatherV", 8, 1, 0, 0), "l.jsonl");
  CHECK((uneven.rows.empty() && uneven.passed_over == 1));
}

}  // namespace reshard::sim::measured_json_tests
