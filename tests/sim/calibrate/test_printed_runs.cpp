// SPDX-License-Identifier: BSD-3-Clause
// Output of nccl-tests of any version, as it reaches people: with launchers' prefixes, with ranks
// that are not all listed; and whether its own figures are consistent.
#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/calibrate/measured.h"

namespace reshard::sim::printed_runs_tests {
namespace {

const std::string kHead =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 "
    "validation: 1 \n#\n# Using devices\n";
const std::string kTitles =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n";
const std::string kRow =
    "     1048576        262144     float     sum      -1    25.40   41.28   72.24      0    25.30 "
    "  41.45   72.53      0\n";

std::string rank_line(int rank, int group = 0) {
  return fmt::format("#  Rank {:2} Group {:2} Pid {:6} on n{} device {:2} [0x10] NVIDIA H100\n",
                     rank, group, 100 + rank, rank / 8, rank % 8);
}
std::string rank_lines(int first, int end) {
  std::string out;
  for (int rank = first; rank < end; ++rank) out += rank_line(rank);
  return out;
}
std::string run(const std::string& ranks, const std::string& table,
                const std::string& program = "./all_reduce_perf") {
  return program + "\n" + kHead + ranks + table;
}

MeasuredTable read(const std::string& text) { return parse_measured(text, "log.txt"); }

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string each_line(const std::string& text, const std::function<std::string(int)>& before) {
  std::string out;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at) + 1;
    out += before(number++) + text.substr(at, end - at);
    at = end;
  }
  return out;
}

// Of one row: ranks, bytes, time, place.
std::string row_text(const std::string& text) {
  MeasuredTable table = read(text);
  if (table.rows.size() != 1) return fmt::format("{} rows", table.rows.size());
  const MeasuredCollective& row = table.rows[0];
  return fmt::format("{} ranks, {} B, {} ps, {}", row.ranks, row.bytes, row.time_ps, row.place);
}

}  // namespace

TEST_CASE("time is found where it stands, with or without redop and root") {
  const std::string eight = rank_lines(0, 8);
  // Before August 2022: no root, of gathers and all-to-all no redop, "error" for "#wrong".
  const std::string old_titles =
      "#       size         count      type   redop     time   algbw   busbw  error     time   "
      "algbw   busbw  error\n";
  CHECK(row_text(run(eight, old_titles +
                                "   536870912     134217728     float     sum   2111.0  254.32  "
                                "445.06  2e-06   2110.9  254.33  445.08  2e-06\n")) ==
        "8 ranks, 536870912 B, 2111000000 ps, log.txt:14");
  CHECK(row_text(run(eight,
                     old_titles +
                         "   536870912      16777216     float           1402.0  382.93  335.07  "
                         "0e+00   1403.0  382.66  334.83  0e+00\n",
                     "./all_gather_perf")) == "8 ranks, 536870912 B, 1402000000 ps, log.txt:14");
  CHECK(row_text(run(eight,
                     kTitles +
                         "   536870912      16777216     float    none      -1   1490.0  360.32  "
                         "315.28      0   1491.0  360.08  315.07    N/A\n",
                     "./alltoall_perf")) == "8 ranks, 536870912 B, 1490000000 ps, log.txt:14");
  // A type of two words; figures of iterations and a time stamp behind.
  CHECK(row_text(run(eight, kTitles +
                                "     1048576       1048576  fp8 e4m3     sum      -1    25.40   "
                                "41.28   72.24      0\n")) ==
        "8 ranks, 1048576 B, 25400000 ps, log.txt:14");
  CHECK(row_text(run(eight, kTitles +
                                "     1048576        262144     float     sum      -1    25.40   "
                                "41.28   72.24      0    25.30    26.1    26.0    0.31    25.30   "
                                "41.45   72.53      0    25.1  26.0  26.0  0.3  2026-07-09 "
                                "16:03:21\n")) == "8 ranks, 1048576 B, 25400000 ps, log.txt:14");
}

TEST_CASE("what was run in place only is taken and said, wrong values are not taken") {
  const std::string blank(35, ' ');
  MeasuredTable table =
      read(run(rank_lines(0, 8), kTitles + "     1048576        262144     float     sum      -1" +
                                     blank + "   25.30   41.45   72.53      0\n"));
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time_ps == 25'300'000);
  CHECK(table.notes ==
        std::vector<std::string>{"log.txt:14: 1 row with in-place times only, used unchanged"});

  std::string wrong = kRow;
  wrong.replace(wrong.find("72.24      0") + 11, 1, "3");
  table = read(run(rank_lines(0, 8), kTitles + wrong + kRow + wrong));
  CHECK((table.rows.size() == 1 && table.passed_over == 2));
  CHECK(table.notes ==
        std::vector<std::string>{"log.txt:14: 2 rows with wrong values (#wrong or error) skipped"});
  // A row of "nan"; a job that was killed.
  table = read(run(rank_lines(0, 8), kTitles + kRow + "  8  2  float  sum  -1  nan  nan  nan  0\n" +
                                         "     2097152        524288     float     sum      -1"));
  CHECK((table.rows.size() == 1 && table.passed_over == 2));
  CHECK(table.notes == std::vector<std::string>{"log.txt:15: 2 rows without a time skipped"});
}

TEST_CASE("what launchers, terminals and pages put before lines is taken off") {
  const std::string text =
                        run(rank_lines(0, 8), kTitles + kRow + "# Out of bounds values : 0 OK\n"),
                    expected = "8 ranks, 1048576 B, 25400000 ps, log.txt:14";
  CHECK(row_text(text) == expected);
  for (const char* prefix :
       {"[1,0]<stdout>:", " 0: ", "(head, rank=0, pid=3808) [1,0]<stdout>:", "> ", "> > ",
        "\x1b[0m", "[prterun-n0-71@1,0]<stdout>: ", "(nccl pid=12, ip=10.0.0.1) ",
        "\x1b[36m(task, pid=3)\x1b[0m ", "worker-0 | ", "[default0]:", "    ",
        "[rank0]: ", "nccl-launcher-x7k2: "}) {
    CAPTURE(prefix);
    CHECK(row_text(each_line(text, [&](int) { return prefix; })) == expected);
  }
  CHECK(row_text(each_line(text, [](int line) {
          return fmt::format("2026-01-05T10:11:{:02}.123456789Z ", line);
        })) == expected);
  CHECK(row_text(each_line(text, [](int line) {
          return fmt::format("[2026-01-05 10:{:02}:12,123] launcher: ", line);
        })) == expected);
  CHECK(row_text(each_line(text, [](int line) {
          return fmt::format("Jan  5 10:11:{:02} n0 run[77]: [1,0]<stdout>:", line);
        })) == expected);
}

TEST_CASE("what two processes print is two texts") {
  // Each ran alone with its 8 GPUs; lines come in turns.
  const std::string text = run(rank_lines(0, 8), kTitles + kRow);
  std::string both;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at) + 1;
    both += "0: " + text.substr(at, end - at) + "1: " + text.substr(at, end - at);
    at = end;
  }
  MeasuredTable table = read(both);
  REQUIRE(table.rows.size() == 2);
  CHECK((table.rows[0].ranks == 8 && table.rows[0].place == "log.txt:27"));
  CHECK((table.rows[1].ranks == 8 && table.rows[1].place == "log.txt:28"));
}

TEST_CASE("lines of NCCL within rows") {
  const std::string start = run(rank_lines(0, 8), kTitles);
  const std::string info = "node1:49:49 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING\n",
                    head = "     1048576        262144     float     sum      -1",
                    body = "    25.40   41.28   72.24      0    25.30   41.45   72.53      0\n";
  const std::string expected = "8 ranks, 1048576 B, 25400000 ps, log.txt:14";
  CHECK(row_text(start + head + info + body) == expected);
  CHECK(row_text(start + head + info + info + "n0:1:1 [0] NCCL INFO x\n" + body) == expected);
  CHECK(row_text(start + head + "\n" + body) == expected);
  CHECK(row_text(start + "[0]" + head + info + body) == expected);
}

TEST_CASE("ranks that are not all listed follow from busbw / algbw") {
  const std::string row16 =
      "   536870912     134217728     float     sum      -1   2357.6  227.72  426.97      0   "
      "2355.1  227.96  427.43      0\n";
  auto ranks = [&](const std::string& lines, const std::string& row) {
    return read(run(lines, kTitles + row)).rows.at(0).ranks;
  };
  std::string all = rank_lines(0, 16);
  CHECK(ranks(all, row16) == 16);
  CHECK(ranks(all.substr(1), row16) == 16);  // "#" of rank 0 lost
  CHECK(ranks(rank_lines(1, 16), row16) == 16);
  CHECK(ranks(rank_lines(0, 4) + rank_lines(12, 16), row16) == 16);
  CHECK(ranks(rank_lines(0, 4) + "...\n" + rank_lines(14, 16), row16) == 16);
  CHECK(ranks(rank_lines(0, 4) + "#  Rank  4 Group  0 Pid 10...\n", row16) == 16);
  CHECK(ranks(rank_line(15), row16) == 16);
  CHECK(ranks("", row16) == 16);  // nThread x nGpus are of one process
  const std::string row72 =
      "  8589934592    2147483648     float     sum      -1    20299  423.16  834.57      0\n";
  CHECK(ranks(rank_line(71), row72) == 72);
  // All "#" eaten by a page.
  std::string bare = run(all, kTitles + row16);
  bare.erase(std::remove(bare.begin(), bare.end(), '#'), bare.end());
  CHECK(row_text(bare) == "16 ranks, 536870912 B, 2357600000 ps, log.txt:22");
}

TEST_CASE("ranks that cannot be are refused") {
  const std::string row16 =
      "   536870912     134217728     float     sum      -1   2357.6  227.72  426.97      0\n";
  CHECK(error_of(run(rank_lines(0, 8), kTitles + row16)) ==
        "log.txt:14: expected busbw / algbw for the 8 ranks that are listed, found 426.97 GB/s and "
        "227.72 GB/s, which fit 16 ranks");
  CHECK(error_of(run(rank_lines(0, 3) + rank_lines(4, 8), kTitles + row16)) ==
        "log.txt:11: expected a line for each rank from 0, found none of rank 3; busbw / algbw fit "
        "16 ranks");
  CHECK(error_of(run(rank_lines(0, 3) + rank_lines(4, 8),
                     kTitles + "  8  2  float  sum  -1  21.60  0.00  0.00  0\n")) ==
        "log.txt:11: expected a line for each rank from 0, found none of rank 3; busbw / algbw fit "
        "1 rank or more");
  CHECK(error_of(run(rank_line(0) + rank_line(0), kTitles + row16)) ==
        "log.txt:6: expected each rank once, found rank 0 again: either two runs are mixed, or "
        "nccl-tests was built without MPI and every process ran alone");
  CHECK(error_of(run(rank_line(0), kTitles +
                                       "  1310720000 327680000 float sum -1  3532.1  371.09  0.00 "
                                       " 0  0.32 4096000 0.00 0\n")) ==
        "log.txt:7: expected at least two ranks, found one, which moves nothing");
  std::string split;
  for (int rank = 0; rank < 16; ++rank) split += rank_line(rank, rank % 8);
  CHECK(error_of(run(split, kTitles + "   536870912 134217728 float sum -1  11460   46.85   46.85  "
                                      "0\n")) ==
        "log.txt:22: expected the ranks of one group, found 8 concurrent groups "
        "(NCCL_TESTS_SPLIT), whose devices cannot be read");
  // Three GPUs of each process cannot be 16 in all.
  CHECK(error_of("./all_reduce_perf\n# nThread 1 nGpus 3 minBytes\n" + kTitles + row16) ==
        "log.txt:4: expected busbw / algbw for the 3 ranks that nThread x nGpus give, found 426.97 "
        "GB/s and 227.72 GB/s, which fit 16 ranks");
  // Figures of another collective than the name says.
  CHECK(error_of(run(rank_lines(0, 8), kTitles + kRow, "./all_gather_perf")) ==
        "log.txt:14: expected busbw / algbw for the 8 ranks that are listed, found 72.24 GB/s and "
        "41.28 GB/s, which fit no number of ranks");
}

TEST_CASE("a time that size and rate contradict is refused") {
  CHECK(error_of(run(rank_lines(0, 8), kTitles +
                                           "     1048576        262144     float     sum      -1   "
                                           " 52.40   41.28   72.24      0\n")) ==
        "log.txt:14: expected size / time = algbw, found 1048576 B, 52.4 us and 41.28 GB/s");
  CHECK(
      error_of(run(rank_lines(0, 8), kTitles + kRow + "  1M 262144 float sum -1 25.40 41.28\n")) ==
      "log.txt:15: expected a size in bytes, found '1M'");
  CHECK(error_of(run(rank_lines(0, 8), kTitles + "  1024  256  float  sum  0  9.9  8.8  7.7\n"))
            .starts_with("log.txt:14: expected size / time = algbw, found 1024 B, "));
}

TEST_CASE("rates of 0 say nothing where all columns are there") {
  CHECK(row_text(run(rank_lines(0, 8), kTitles + "  1048576 262144 float sum -1 203.2 0 0 0 203.2 "
                                                 "0 0 0\n")) ==
        "8 ranks, 1048576 B, 203200000 ps, log.txt:14");
  CHECK(error_of(run(rank_lines(0, 8), kTitles + "  1048576 262144 float 203.2 0 0 0 203.2 0 0 "
                                                 "0\n")) ==
        "log.txt:14: expected size / time = algbw, found 1048576 B, 203.2 us and 0 GB/s");
}

TEST_CASE("programs that are not ours, and unknown ones, keep no name of the run before") {
  for (const char* program : {"./gather_perf", "./scatter_perf -g 8", "/opt/new_thing_perf",
                              "./alltoallv_perf", "./broadcast_perf_mpi"}) {
    CAPTURE(program);
    MeasuredTable table = read(run(rank_lines(0, 8), kTitles + kRow) +
                               run(rank_lines(0, 8), kTitles + kRow, program));
    CHECK((table.rows.size() == 1 && table.passed_over == 1));
  }
  CHECK(row_text(run(rank_lines(0, 8), kTitles + kRow,
                     "cd all_gather && mpirun -np 8 ./build/all_reduce_perf_mpi -g 1")) ==
        "8 ranks, 1048576 B, 25400000 ps, log.txt:14");
}

}  // namespace reshard::sim::printed_runs_tests
