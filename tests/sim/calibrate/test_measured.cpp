// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/measured.h"

#include <algorithm>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/calibrate/measured_names.h"
#include "tests/support/measured_tables.h"

namespace reshard::sim::measured_tests {
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
    "        1024 256   float   sum   -1  22.5  0.05   0.04   0   21.53   0.05   0.00   0\n"
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
                                           kRows + "./all_reduce_perf\n" + kHead + kDevices +
                                           kTitles + "  0  0  float  sum  -1  9.9  0  0\n" + kRows,
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

TEST_CASE("a file's collective is in its own name, not in its folders") {
  for (const char* path : {"/all_gather.txt", "all_gather.txt", "all_reduce/all_gather.txt"}) {
    CAPTURE(path);
    const CollectiveName* name = name_of_file(path);
    REQUIRE(name != nullptr);
    CHECK(name->kind == CollectiveKind::AllGather);
  }
  CHECK(name_of_file("all_reduce/8.txt") == nullptr);
  CHECK(name_of_file("all_reduce/") == nullptr);
}

TEST_CASE("wrong texts are refused with their place") {
  CHECK(error_of("") == "log.txt:1: expected the output of nccl-tests, found no row of one");
  CHECK(error_of("hello\n") == "log.txt:1: expected the output of nccl-tests, found no row of one");
  CHECK(error_of(kHead + kDevices + kTitles + kRows) ==
        "log.txt:10: expected a line that names the collective, such as './all_reduce_perf', "
        "before its table, found none");
  CHECK(error_of("./all_reduce_perf\n" + kTitles + "8 2 float sum -1 21.60 0.00 0.00 0\n") ==
        "log.txt:6: expected two or more lines '#  Rank' or 'nThread' and 'nGpus' above, found "
        "fewer");
  for (const char* wrong : {"nThread 0 nGpus 8", "nThread 8 nGpus 0", "nThread 1048577 nGpus 1",
                            "nThread 1 nGpus 1048577"})
    CHECK(error_of(std::string("./all_reduce_perf\n# ") + wrong + "\n") ==
          std::string("log.txt:2: expected nThread and nGpus from 1 to 2^20, found '# ") + wrong +
              "'");
  CHECK(error_of("./all_reduce_perf\n" + kHead + "-8 256 float sum -1 3\n") ==
        "log.txt:5: expected a size of 0 to 2^62 bytes, found '-8'");
  CHECK(error_of("./all_reduce_perf\n# size count type redop root cputime algbw busbw\n") ==
        "log.txt:2: expected the time that the collectives take, found 'cputime' (nccl-tests -C): "
        "the time that the CPU takes to launch them");
  CHECK(error_of("./all_reduce_perf\n# size count type redop root latency algbw busbw\n") ==
        "log.txt:2: expected a column 'time', found '# size count type redop root latency algbw "
        "busbw'");
  CHECK(error_of("./all_reduce_perf\n" + kHead +
                 "# size count type redop root time algbw busbw\n# (B) (elements) (ms) (GB/s) "
                 "(GB/s)\n") == "log.txt:6: expected columns in B, us and GB/s, found '(ms)'");
}

TEST_CASE("the tables that are kept here are read whole") {
  auto rows = [](const std::string& name) { return test::measured_table(name).size(); };
  CHECK(rows("8xA100.txt") == 132);
  CHECK(rows("8xH100.txt") == 132);
  CHECK(rows("8xRTX-PRO-6000.txt") == 132);
  CHECK(rows("2xL40S.txt") == 44);
  CHECK(rows("4xA100.txt") == 52);
}

}  // namespace reshard::sim::measured_tests
