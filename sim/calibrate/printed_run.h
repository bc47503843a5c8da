// SPDX-License-Identifier: BSD-3-Clause
// Consistency checks on what nccl-tests prints redundantly. A row has its bytes, its time and their
// quotient, algbw; busbw is algbw times a factor that depends on the collective and the number of
// ranks, and the ranks are listed too. Contradictions are refused; the number of ranks is derived
// where it is not listed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/calibrate/measured.h"

namespace reshard::sim {

// A number as printed, and one unit of its last digit.
struct Printed {
  double value = 0, unit = 0;
};
// Decimal numbers only: no "nan", no "inf".
std::optional<Printed> printed(std::string_view word);

struct PrintedRow {
  std::int64_t bytes = 0;
  Printed time_us, algbw, busbw;  // GB/s
  std::string place;              // "FILE:LINE"

  bool agrees() const;  // bytes / time = algbw
  std::string rates_text() const;
};

// A run of nccl-tests: its ranks, as far as they are listed, and its rows.
struct PrintedRun {
  std::int64_t devices = 0;                    // per process, nThread x nGpus; 0: not given
  std::map<std::int64_t, std::string> listed;  // rank -> its place
  std::set<std::int64_t> groups;
  std::string twice;    // the error about the first rank that is listed again; empty: none
  bool elided = false;  // "..." among the lines of ranks
  std::vector<PrintedRow> rows;

  void list(std::int64_t rank, std::int64_t group, const std::string& place);
  // Number of ranks of the rows, at least 2. Throws InputError if it cannot be determined or the
  // rows contradict it. Requires at least one row.
  std::int64_t ranks(CollectiveKind kind) const;

 private:
  std::int64_t ranks_of_list(CollectiveKind kind) const;
  std::int64_t ranks_of_devices(CollectiveKind kind) const;
};

// The least and the most ranks that busbw / algbw allows; `most` is 2^20 if there is no upper
// bound.
struct RankRange {
  std::int64_t least = 1, most = 0;
  bool holds(std::int64_t ranks) const { return ranks >= least && ranks <= most; }
};
RankRange ranks_by_rates(CollectiveKind kind, const PrintedRow& row);
std::string text(const RankRange& range);  // "16 ranks", "15 to 17 ranks"

}  // namespace reshard::sim
