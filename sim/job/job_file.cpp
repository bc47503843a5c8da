// SPDX-License-Identifier: BSD-3-Clause
#include "sim/job/job_file.h"

#include <variant>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/trace.h"

namespace reshard::sim {
namespace {

// The stages of a file of requests: groups of lines that name each other in `after`.
Stages in_order(const Trace& trace, Stages groups, const std::vector<std::size_t>& first) {
  constexpr std::size_t kMost = std::size_t{1} << 24;  // pairs of groups
  std::size_t pairs = 0;
  for (std::size_t op = 0; op < trace.operations.size(); ++op)
    for (OpId before : trace.operations[op].after) {
      std::size_t begin = first[to_index(before)], end = first[to_index(before) + 1];
      pairs += (first[op + 1] - first[op]) * (end - begin);
      if (pairs > kMost)
        throw InputError(
            fmt::format("{}: after: expected lines of fewer stages, found more than {} "
                        "pairs of stages that come after each other",
                        trace.place_of(id_of<OpId>(op)), kMost));
      for (std::size_t group = first[op]; group < first[op + 1]; ++group)
        for (std::size_t other = begin; other < end; ++other)
          groups[group].after.push_back(static_cast<std::int32_t>(other));
    }
  try {
    return stages_of(groups);
  } catch (const InputError& error) {
    throw error.in(trace.file);
  }
}

Subject requests_of(LineReader& lines, const std::string& file) {
  TraceBuilder builder(file);
  read_request_lines(lines, builder);
  Trace trace = builder.finish();
  Subject out{{}, {}, trace.topology};
  Stages groups;
  std::vector<std::size_t> first;  // group, by line; one more at the end
  for (const TraceOperation& operation : trace.operations) {
    const auto& line = std::get<TraceRedistribute>(operation.body);
    first.push_back(groups.size());
    add_groups(groups, line.stages, line.requests->size(), out.requests.size());
    for (const Request& request : *line.requests) {
      bool only = line.requests->size() == 1;
      out.requests.push_back(only ? request.named(trace.line_of(operation).name) : request);
    }
  }
  first.push_back(groups.size());
  out.stages = in_order(trace, std::move(groups), first);
  if (out.requests.empty())
    throw InputError(fmt::format("{}: expected a request at least, found none", file));
  return out;
}

}  // namespace

Subject parse_job(std::istream& in, const std::string& file) {
  LineReader lines(in, file);
  if (!is_check_file(lines.ahead())) return requests_of(lines, file);
  std::shared_ptr<const ModelLayouts> layouts = read_layouts(lines, file);
  return {layouts->requests->requests(), {}, {}, {}, layouts};
}

Subject read_job(const std::string& path) {
  Subject out;
  with_file(path, "a file of requests or layouts",
            [&](std::istream& in, const std::string& name) { out = parse_job(in, name); });
  return out;
}

}  // namespace reshard::sim
