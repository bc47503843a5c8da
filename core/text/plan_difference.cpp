// SPDX-License-Identifier: BSD-3-Clause
// Compares two plan texts line by line.
#include "core/text/plan_difference.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "core/base/cursor.h"

namespace reshard {
namespace {

constexpr std::size_t kLongest = 120;  // of a line shown in a message

std::string_view take_word(std::string_view& line) {
  std::size_t end = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::string shown(std::string_view value) {
  if (value.empty()) return "none";
  return value.size() <= kLongest ? std::string(value)
                                  : fmt::format("{}..", value.substr(0, kLongest));
}

// "source mesh 2x2 ranks 0-3 placements S(0)R": finds which of the three fields differs.
PlanDifference of_layouts(std::string_view side, std::string_view here, std::string_view there) {
  constexpr std::array<std::string_view, 3> kFields{"mesh ", " ranks ", " placements "};
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    auto field = [&](std::string_view line) {
      std::size_t begin = line.find(kFields[i]);
      if (begin == std::string_view::npos) return std::string_view();
      begin += kFields[i].size();
      std::size_t end = i + 1 < kFields.size() ? line.find(kFields[i + 1], begin) : line.size();
      return line.substr(begin, end - begin);
    };
    std::string_view name = kFields[i];
    name.remove_prefix(name.front() == ' ' ? 1 : 0);
    name.remove_suffix(1);
    if (field(here) != field(there))
      return {fmt::format("{} {}", side, name), shown(field(here)), shown(field(there))};
  }
  return {std::string(side), shown(here), shown(there)};
}

// `part` names the latest unindented line before the two, such as "step 2".
PlanDifference of_lines(std::string_view here, std::string_view there, std::string_view part) {
  auto trimmed = [](std::string_view line) {
    return shown(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  };
  if (here.starts_with(' ') || there.starts_with(' '))
    return {std::string(part), trimmed(here), trimmed(there)};
  std::string_view here_rest = here, there_rest = there, here_word = take_word(here_rest),
                   there_word = take_word(there_rest);
  if (here_word != there_word)
    return {"what follows " + std::string(part), shown(here), shown(there)};
  if (here_word == "source" || here_word == "destination")
    return of_layouts(here_word, here_rest, there_rest);
  if (here_word != "step" && here_word != "temporary")
    return {std::string(here_word), shown(here_rest), shown(there_rest)};
  std::string_view number = take_word(here_rest);
  take_word(there_rest);
  return {fmt::format("{} {}", here_word, number), shown(here_rest), shown(there_rest)};
}

}  // namespace

std::optional<PlanDifference> difference_of(std::string_view here, std::string_view there) {
  std::optional<PlanDifference> planner;
  std::string part = "the header";
  while (!here.empty() && !there.empty()) {
    std::string_view mine = take_line(here), other = take_line(there);
    if (mine != other) {
      PlanDifference found = of_lines(mine, other, part);
      if (found.what != "planner") return found;
      planner = std::move(found);
    }
    if (mine.starts_with(' ')) continue;
    std::string_view rest = mine;
    part = std::string(take_word(rest));
    if (part == "step" || part == "temporary") part = fmt::format("{} {}", part, take_word(rest));
  }
  return planner;
}

}  // namespace reshard
