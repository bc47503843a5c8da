// SPDX-License-Identifier: BSD-3-Clause
// Reader of the matrix that nccl-tests' alltoallv_perf reads and `plan --emit alltoallv-matrix`
// writes: one line per rank with the bytes that it sends to each rank. Blank lines are ignored.
//
// The matrix is one exchange: all messages can start at once, so each end has its own stream. What
// a rank keeps (the diagonal) takes no time.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/traffic/accounting.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/trace.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::vector<std::int64_t> row_of(const std::string& line, const TraceBuilder& builder) {
  std::vector<std::int64_t> row;
  std::string_view rest = line;
  for (std::size_t at; (at = rest.find_first_not_of(kBlank)) != std::string_view::npos;) {
    rest.remove_prefix(at);
    std::string_view word = rest.substr(0, rest.find_first_of(kBlank));
    rest.remove_prefix(word.size());
    if (static_cast<std::int64_t>(row.size()) == kMaxMatrixRanks)
      builder.fail(fmt::format("expected at most {} ranks, found more columns", kMaxMatrixRanks));
    row.push_back(builder.placed([&] {
      std::string field = fmt::format("column {}", row.size() + 1);
      Cursor cursor(word, field);
      std::int64_t bytes = cursor.integer("bytes", 0, kMaxBytes);
      cursor.expect_end();
      return bytes;
    }));
  }
  return row;
}

void add_message(TraceBuilder& builder, Rank source, Rank destination, std::int64_t bytes) {
  builder.add(TraceEnd{TraceEnd::Side::Send, source, destination, bytes, 0},
              {.stream = 2 * to_int(destination)});
  builder.add(TraceEnd{TraceEnd::Side::Receive, destination, source, bytes, 0},
              {.stream = 2 * to_int(source) + 1});
}

}  // namespace

bool is_alltoallv_matrix(std::string_view start) {
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  std::string_view line = start.substr(0, start.find_first_of("\r\n"));
  return line.find(' ') != std::string_view::npos &&
         line.find_first_not_of("0123456789 \t") == std::string_view::npos;
}

void read_alltoallv_matrix(LineReader& lines, TraceBuilder& builder) {
  std::size_t ranks = 0, source = 0;
  for (std::string line; lines.next(line);) {
    builder.at_line(lines.line_number());
    std::vector<std::int64_t> row = row_of(line, builder);
    if (row.empty()) continue;
    if (source == 0) ranks = row.size();
    if (row.size() != ranks)
      builder.fail(
          fmt::format("expected {} columns, one for each rank, found {}", ranks, row.size()));
    if (source == ranks)
      builder.fail(fmt::format("expected {} lines, one for each rank, found more", ranks));
    for (std::size_t destination = 0; destination < ranks; ++destination)
      if (row[destination] > 0 && destination != source)
        add_message(builder, Rank{static_cast<std::int32_t>(source)},
                    Rank{static_cast<std::int32_t>(destination)}, row[destination]);
    ++source;
  }
  if (ranks == 0) builder.fail("expected a line of bytes for each rank, found an empty file");
  if (source < ranks)
    builder.fail(fmt::format("expected {} lines, one for each rank, found {}", ranks, source));
}

}  // namespace reshard::sim
