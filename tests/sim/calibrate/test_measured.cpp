// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/measured.h"

#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/support/measured_tables.h"

namespace reshard::sim {
namespace {

const std::string kHead =
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg "
    "iters: 1 validation: 1 graph: 0\n#\n# Using devices\n";
const std::string kDevices =
    "#  Rank  0 Group  0 Pid   7 on  host device  0 [0x07] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid   7 on  host device  1 [0x0b] NVIDIA A100\n";
const std::string kTitles =
    "#\n#                                                   out-of-place              in-place\n"
    "#       size   count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw "
    "#wrong\n#        (B)  (elements)              (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n";
const std::string kRows =
    "           8   2   float   sum   -1   21.60   0.00   0.00   0   21.53   0.00   0.00   0\n"
    "        1024 256   float   sum   -1  22.5  0.05   0.08   0   21.53   0.00   0.00   0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.04\n#\n";

std::string error_of(const std::string& text, const std::string& file = "log.txt") {
  try {
    parse_measured(text, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a run's ranks are its devices, its collective the program's") {
  MeasuredTable table = parse_measured(
      "$ ./build/all_reduce_perf -b 8 -e 1K -f 128 -g 4\n" + kHead + kDevices + kTitles + kRows,
      "log.txt");
  REQUIRE(table.rows.size() == 2);
  const MeasuredCollective& row = table.rows[1];
  CHECK(row.kind == CollectiveKind::AllReduce);
  CHECK(row.ranks == 2);
  CHECK(row.bytes == 1024);
  CHECK(row.time_ps == 22'500'000);
  CHECK(row.place == "log.txt:12");
  CHECK(table.passed_over == 0);
}

TEST_CASE("without a list of devices there are threads times GPUs") {
  MeasuredTable table = parse_measured(kHead + kTitles + kRows, "dir.d/all_gather_perf.log");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].kind == CollectiveKind::AllGather);
  CHECK(table.rows[0].ranks == 4);
}

TEST_CASE("several runs follow each other in one text, with CRLF and a mark at its start") {
  std::string text = "\xef\xbb\xbf# Collective test starting: reduce_scatter_perf\n" + kHead +
                     kDevices + kTitles + kRows + "# Collective test starting: alltoall_perf\n" +
                     kHead + kTitles + kRows + kHead + kDevices + kTitles + kRows;
  std::string crlf;
  for (char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& form : {text, crlf}) {
    MeasuredTable table = parse_measured(form, "log.txt");
    REQUIRE(table.rows.size() == 6);
    CHECK((table.rows[0].kind == CollectiveKind::ReduceScatter && table.rows[0].ranks == 2));
    CHECK((table.rows[2].kind == CollectiveKind::AllToAll && table.rows[2].ranks == 4));
    CHECK((table.rows[4].kind == CollectiveKind::AllToAll && table.rows[4].ranks == 2));
  }
}

TEST_CASE("what is not ours is passed over") {
  MeasuredTable table = parse_measured("./sendrecv_perf -g 2\n" + kHead + kDevices + kTitles +
                                           kRows + "./broadcast_perf_mpi\n" + kHead + kTitles +
                                           kRows + "./all_reduce_perf\n" + kHead + kTitles +
                                           "  0  0  float  sum  -1  9.9  0  0\n" + kRows,
                                       "log.txt");
  CHECK(table.rows.size() == 2);
  CHECK(table.passed_over == 5);
}

TEST_CASE("names of collectives in every spelling") {
  for (const char* name : {"all_reduce", "AllReduce", "./build/all_reduce_perf_mpi", "ALLREDUCE"})
    CHECK(collective_named(name) == CollectiveKind::AllReduce);
  CHECK(collective_named("all_gather") == CollectiveKind::AllGather);
  CHECK(collective_named("reduce_scatter") == CollectiveKind::ReduceScatter);
  CHECK(collective_named("alltoall_perf") == CollectiveKind::AllToAll);
  CHECK(collective_named("all_to_all") == CollectiveKind::AllToAll);
  for (const char* name : {"reduce_perf", "broadcast", "alltoallv_perf", "sendrecv", "gather", ""})
    CHECK_FALSE(collective_named(name));
}

TEST_CASE("wrong texts are refused with their place") {
  CHECK(error_of("") == "log.txt:1: expected the output of nccl-tests, found no row of it");
  CHECK(error_of("hello\n") == "log.txt:1: expected the output of nccl-tests, found no row of it");
  CHECK(error_of(kHead + kDevices + kTitles + kRows) ==
        "log.txt:10: expected a line that names the collective, such as './all_reduce_perf', "
        "before its table, found none");
  CHECK(error_of("./all_reduce_perf\n" + kTitles + kRows) ==
        "log.txt:6: expected two or more lines '#  Rank' or 'nThread' and 'nGpus' above, found "
        "fewer");
  CHECK(error_of("./all_reduce_perf\n# nThread 0 nGpus 8\n") ==
        "log.txt:2: expected nThread and nGpus from 1 to 2^20, found '# nThread 0 nGpus 8'");
  CHECK(error_of("./all_reduce_perf\n" + kHead + "1024 256 float\n") ==
        "log.txt:5: expected a row of size, count, type, redop, root, time, found '1024'");
  CHECK(error_of("./all_reduce_perf\n" + kHead + "-8 256 float sum -1 3\n") ==
        "log.txt:5: expected a size of 0 to 2^62 bytes, found '-8'");
  CHECK(error_of("./all_reduce_perf\n" + kHead + "8 2 float sum -1 0.00\n") ==
        "log.txt:5: expected a time above 0, found '0.00'");
  CHECK(
      error_of("./all_reduce_perf\n" + kHead + "8 2 float sum -1 N/A\n").find("log.txt:5: time:") ==
      0);
}

TEST_CASE("JSON as nccl-tests -J writes it") {
  const std::string devices = R"("devices": [{"rank": 0}, {"rank": 1}, {"rank": 2}])";
  MeasuredTable table =
      parse_measured(R"({"args": ["./all_gather_perf", "-J"], )" + devices +
                         R"(, "results": [{"size": 0, "out_of_place": {"time": 3}},
             {"size": 4096, "count": 1, "out_of_place": {"time": 11.25, "alg_bw": 1}}]})",
                     "out.json");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].kind == CollectiveKind::AllGather);
  CHECK((table.rows[0].ranks == 3 && table.rows[0].bytes == 4096));
  CHECK(table.rows[0].time_ps == 11'250'000);
  CHECK(table.passed_over == 1);
  CHECK(error_of("{") ==
        "log.txt:1: expected JSON of nccl-tests -J or lines of NCCL's Inspector, found another "
        "text");
  CHECK(error_of("{}") == "log.txt: expected 'devices', found none");
  CHECK(error_of("{" + devices + R"(, "results": []})") ==
        "log.txt: expected the collective in 'args' or in the file's name, found none");
  CHECK(error_of(R"({"args": "all_reduce_perf", "devices": [1], "results": []})") ==
        "log.txt: expected lists 'devices', of at least two, and 'results', found others");
  CHECK(error_of(R"({"args": "all_reduce_perf", )" + devices + R"(, "results": [{"size": 8}]})") ==
        "log.txt: results[0]: expected 'out_of_place', found none");
  CHECK(error_of(R"({"args": "all_reduce_perf", )" + devices +
                 R"(, "results": [{"size": "8", "out_of_place": {"time": 1}}]})") ==
        "log.txt: results[0].size: expected a number, found '\"8\"'");
  CHECK(error_of(R"({"args": "all_reduce_perf", )" + devices +
                 R"(, "results": [{"size": 8, "out_of_place": {"time": 0}}]})") ==
        "log.txt: results[0]: expected a size of 0 to 2^62 bytes and a time above 0, found others");
}

TEST_CASE("lines of NCCL's Inspector: the median of equal operations") {
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
  CHECK((scatter.ranks == 4 && scatter.bytes == 4096 && scatter.time_ps == 12'500'000));
  CHECK(parse_measured(line("AllToAll", 2, "8", 1), "log.jsonl").rows.size() == 1);

  CHECK(error_of(line("AllReduce", 8, "1", 1) + "no\n", "l.jsonl") ==
        "l.jsonl:2: expected JSON of nccl-tests -J or lines of NCCL's Inspector, found another "
        "text");
  CHECK(error_of(line("AllReduce", 0, "1", 1), "l.jsonl") ==
        "l.jsonl:1: expected 1 to 2^20 ranks, 0 to 2^62 bytes and a time above 0, found others");
  CHECK(error_of(line("AllReduce", 8, "-1", 1), "l.jsonl").find("l.jsonl:1: expected 1 to") == 0);
  CHECK(error_of(line("AllReduce", 8, "1", 0), "l.jsonl").find("l.jsonl:1: expected 1 to") == 0);
  CHECK(error_of(line("AllReduce", 8, "\"x\"", 1), "l.jsonl") ==
        "l.jsonl:1: coll_msg_size_bytes: expected a number, found '\"x\"'");
  CHECK(error_of(R"({"coll_perf": {}})", "l.jsonl") == "l.jsonl:1: expected 'header', found none");
}

TEST_CASE("the tables that are kept here are read whole") {
  auto rows = [](const std::string& name) { return test::measured_table(name).size(); };
  CHECK(rows("8xA100.txt") == 132);
  CHECK(rows("8xH100.txt") == 132);
  CHECK(rows("8xRTX-PRO-6000.txt") == 132);
  CHECK(rows("2xL40S.txt") == 44);
  CHECK(rows("4xA100.txt") == 52);
}

}  // namespace reshard::sim
