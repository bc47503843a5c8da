// SPDX-License-Identifier: BSD-3-Clause
// The lines of a log of nccl-tests, without what launchers, terminals and web pages put before them
// and into them: "[1,0]<stdout>:" (mpirun --tag-output), " 0:" (srun --label), the time
// (kubectl logs --timestamps), "(head, rank=0, pid=3808)" (SkyPilot, Ray), "> " (a quotation),
// escapes that colour.
//
// No list of such forms is kept. Lines that nccl-tests starts its output with ("# nThread 1",
// "#  Rank  0 Group", the titles of its table) are known wherever they stand; what stands before
// them is a prefix, whose times may differ from line to line. Each prefix is a process: what two of
// them print is not one text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

class LogLines {
 public:
  // `text` must outlive it.
  explicit LogLines(std::string_view text);

  struct Line {
    std::int64_t number = 0;
    std::int32_t process = 0;  // 0: no prefix
    std::string text;
  };
  std::optional<Line> next();

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
  std::map<std::string, std::int32_t, std::less<>> prefixes_;  // times as one character
  std::set<std::size_t> lengths_;
};

// The words of one of the lines that a run's output starts with, without '#'; none of other lines.
std::vector<std::string_view> header_words(std::string_view line);

}  // namespace reshard::sim
