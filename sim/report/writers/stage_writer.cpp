// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/writers/stage_writer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/report/table.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

std::string tensors_text(const StageRow& stage) {
  return stage.tensors == 1 ? stage.first
                            : fmt::format("{} and {} more", stage.first, stage.tensors - 1);
}

std::string stage_table(const std::vector<StageRow>& stages, bool all, std::size_t width) {
  constexpr std::size_t kMany = 24, kShown = 16;
  if (stages.empty()) return {};
  std::size_t shown = all || stages.size() <= kMany ? stages.size() : kShown;
  Table table({">stage", "after", "tensors", ">steps", ">received", ">start", ">end"});
  for (std::size_t s = 0; s < shown; ++s) {
    const StageRow& stage = stages[s];
    table.add_row({std::to_string(s),
                   stage.after.empty() ? "-" : fmt::format("{}", fmt::join(stage.after, ",")),
                   tensors_text(stage), std::to_string(stage.steps), bytes_text(stage.bytes),
                   time_text(stage.extent.start_ps), time_text(stage.extent.end_ps)});
  }
  std::string rest = shown == stages.size() ? ""
                                            : fmt::format("(and {} more; -v shows every stage)\n",
                                                          stages.size() - shown);
  return fmt::format("\n{}{}", table.text(width), rest);
}

Json stages_json(const std::vector<StageRow>& stages) {
  return list_json(stages, [](const StageRow& stage) -> Json {
    return {{"after", stage.after},
            {"tensors", stage.tensors},
            {"first", stage.first},
            {"steps", stage.steps},
            {"bytes", stage.bytes},
            {"start_ps", or_null(stage.extent.start_ps)},
            {"end_ps", or_null(stage.extent.end_ps)}};
  });
}

}  // namespace reshard::sim
