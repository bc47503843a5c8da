// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/findings.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/layout/mesh.h"

namespace reshard::sim {

TraceFinding finding_of(const Trace& trace, const std::vector<OpId>& at, std::vector<Rank> ranks,
                        OpId place, const std::string& sentence) {
  TraceFinding finding;
  for (OpId op : at) finding.lines.push_back(trace.line_of(op).number);
  sort_once(finding.lines);
  sort_once(ranks);
  finding.ranks = std::move(ranks);
  finding.what = fmt::format("{}: {}", trace.place_of(place), sentence);
  return finding;
}

std::string communicator_text(const Trace& trace, std::int32_t communicator) {
  const TraceCommunicator& of = trace.communicators[to_index(communicator)];
  return of.name.empty() ? fmt::format("communicator [{}]", ranks_text(of.ranks))
                         : fmt::format("communicator {}", reshard::quoted(of.name));
}

std::string lines_text(const Trace& trace, const std::vector<OpId>& at) {
  constexpr std::size_t kMaxShown = 8;
  std::string out = at.size() == 1 ? "line" : "lines";
  for (std::size_t i = 0; i < at.size() && i < kMaxShown; ++i)
    out += fmt::format("{} {}", i == 0 ? "" : ",", trace.line_of(at[i]).number);
  return at.size() > kMaxShown ? fmt::format("{}, .. ({} in total)", out, at.size()) : out;
}

std::string ranks_words(const std::vector<Rank>& ranks) {
  constexpr std::size_t kMaxShown = 8, kLongest = 80;
  std::string all = ranks_text(ranks);
  if (all.size() > kLongest)
    all = fmt::format("{}, .. ({} in total)",
                      ranks_text({ranks.begin(), ranks.begin() + kMaxShown}), ranks.size());
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", all);
}

}  // namespace reshard::sim
