// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/report/writers.h"

namespace reshard::sim {

namespace {

std::string quoted_where_needed(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string integer_text(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : std::string{};
}

}  // namespace

std::string sweep_csv(const SweepReport& report) {
  std::string out = "mesh,from,to,planner,time_ps,bytes_received_max,bound_ps,ratio_to_bound\r\n";
  for (const SweepRow& row : report.rows) {
    std::optional<std::int64_t> ratio;
    if (row.time_ps) ratio = ratio_e4(*row.time_ps, row.bound_ps);
    for (const std::string* text : {&row.mesh, &row.from, &row.to, &row.planner})
      out += quoted_where_needed(*text) + ",";
    out += fmt::format("{},{},{},{}\r\n", integer_text(row.time_ps),
                       integer_text(row.bytes_received_max), row.bound_ps,
                       ratio ? decimal_text(*ratio, 10'000, 4) : std::string{});
  }
  return out;
}

}  // namespace reshard::sim
