// SPDX-License-Identifier: BSD-3-Clause
// The lines of an nccl-tests log, stripped of what launchers, terminals and web pages add to them:
// "[1,0]<stdout>:" (mpirun --tag-output), " 0:" (srun --label), timestamps
// (kubectl logs --timestamps), "(head, rank=0, pid=3808)" (SkyPilot, Ray), "> " (a quotation),
// colour escapes.
//
// There is no list of such prefixes. The lines with which nccl-tests starts its output
// ("# nThread 1", "#  Rank  0 Group", the titles of its table) are recognised anywhere in a line;
// what precedes them is a prefix, in which timestamps may differ from line to line. Each prefix
// belongs to a process, and the output of each process is read separately.
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
  // `text` must outlive this object.
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
  std::map<std::string, std::int32_t, std::less<>> prefixes_;  // timestamps as one character
  std::set<std::size_t> lengths_;
};

// The words of a line that belongs to the start of a run's output, without '#'; empty for other
// lines.
std::vector<std::string_view> header_words(std::string_view line);

}  // namespace reshard::sim
