// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/printable.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/operator_line.h"

namespace reshard::sim {
namespace {

constexpr TraceFormat kFormats[] = {
    {"reshard", "JSON lines after a header", is_reshard_trace, read_reshard_trace},
    {"alltoallv-matrix", "nccl-tests' matrix of bytes from each rank to each", is_alltoallv_matrix,
     read_alltoallv_matrix},
};

const TraceFormat& find_format(std::string_view name) {
  std::string names;
  for (const TraceFormat& format : kFormats) {
    if (format.name == name) return format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  throw InputError(
      fmt::format("--format: expected one of {}, found {}", names, reshard::quoted(name)));
}

// Refuses files that are clearly of another kind. For other unknown text the first format's reader
// reports what is wrong.
const TraceFormat& recognised(std::string_view start, const std::string& file) {
  const auto* format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                    [&](const TraceFormat& row) { return row.recognise(start); });
  if (format != std::end(kFormats)) return *format;
  const FileKind* kind = file_kind(start);
  if (kind != nullptr && kind->id != "empty" && kind->id != "trace" && kind->id != "json")
    throw InputError(
        fmt::format("{}:1: expected a reshard trace (JSON lines, the first {{\"reshard_trace\": "
                    "1}}) or nccl-tests' matrix for alltoallv, found {}",
                    file, file_look(start)));
  return kFormats[0];
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return kFormats; }

Trace parse_trace(std::istream& in, const std::string& file, std::string_view format) {
  LineReader lines(in, file);
  TraceBuilder builder(file);
  (format.empty() ? recognised(lines.ahead(), file) : find_format(format)).read(lines, builder);
  return builder.finish();
}

namespace {

// The stages of a file of requests: its lines' own groups, whose lines name each other in `after`.
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

}  // namespace

JobFile parse_requests(std::istream& in, const std::string& file) {
  LineReader lines(in, file);
  TraceBuilder builder(file);
  read_request_lines(lines, builder);
  Trace trace = builder.finish();
  JobFile out{{}, {}, trace.topology};
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

namespace {

// Returns parse(stream, its name in messages) of a file, or of standard input for "-".
template <class Parse>
auto parsed_file(const std::string& path, std::string_view what, Parse&& parse) {
  if (path == "-") return parse(std::cin, "<stdin>");
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  std::string shown = shown_path(path);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: expected {}, found no such file", shown, what));
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError(fmt::format("{}: expected {}, found a directory", shown, what));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(
        fmt::format("{}: expected a readable file, found: {}", shown, std::strerror(errno)));
  return parse(file, shown);
}

}  // namespace

Trace read_trace(const std::string& path, std::string_view format) {
  return parsed_file(path, "a trace", [&](std::istream& in, const std::string& name) {
    return parse_trace(in, name, format);
  });
}

JobFile read_requests(const std::string& path) {
  return parsed_file(path, "a file of requests", [&](std::istream& in, const std::string& name) {
    return parse_requests(in, name);
  });
}

std::string Trace::place_of(OpId op) const {
  return fmt::format("{}:{}", file, line_of(op).number);
}

OpId Trace::runs(OpId op) const {
  const TraceBody& body = operations[op].body;
  if (const auto* end = std::get_if<TraceEnd>(&body))
    return end->side == TraceEnd::Side::Receive ? OpId{end->other} : op;
  if (const auto* call = std::get_if<TraceCall>(&body)) return OpId{call->first};
  return op;
}

std::vector<Rank> ranks_of(const TraceOperation& operation) {
  if (const auto* redistribute = std::get_if<TraceRedistribute>(&operation.body))
    return ranks_of(*redistribute->requests);
  if (const auto* compute = std::get_if<TraceCompute>(&operation.body)) return compute->ranks;
  if (const auto* collective = std::get_if<TraceCollective>(&operation.body))
    return collective->ranks;
  if (const auto* call = std::get_if<TraceCall>(&operation.body)) return {call->rank};
  if (const auto* line = std::get_if<TraceOperator>(&operation.body)) return (*line)->mesh->ranks();
  if (const auto* fault = std::get_if<TraceFault>(&operation.body))
    return fault->rank ? std::vector<Rank>{*fault->rank} : std::vector<Rank>{};
  return {std::get<TraceEnd>(operation.body).rank};
}

bool has_operators(const Trace& trace) {
  return std::any_of(trace.operations.begin(), trace.operations.end(), [](const auto& operation) {
    return std::holds_alternative<TraceOperator>(operation.body);
  });
}

bool has_places(const Trace& trace) {
  return std::any_of(trace.operations.begin(), trace.operations.end(), [](const auto& operation) {
    const auto* collective = std::get_if<TraceCollective>(&operation.body);
    return collective && collective->place;
  });
}

std::int64_t highest_rank(const Trace& trace) {
  std::int64_t highest = -1;
  for (const TraceOperation& operation : trace.operations)
    for (Rank rank : ranks_of(operation)) highest = std::max<std::int64_t>(highest, to_int(rank));
  return highest;
}

std::string_view op_text(const TraceOperation& operation) {
  if (std::holds_alternative<TraceRedistribute>(operation.body)) return "redistribute";
  if (std::holds_alternative<TraceCompute>(operation.body)) return "compute";
  if (std::holds_alternative<TraceFault>(operation.body)) return "fault";
  if (std::holds_alternative<TraceCollective>(operation.body)) return "collective";
  if (std::holds_alternative<TraceOperator>(operation.body)) return "call";
  if (const auto* call = std::get_if<TraceCall>(&operation.body)) return text(call->kind);
  return std::get<TraceEnd>(operation.body).side == TraceEnd::Side::Send ? "send" : "recv";
}

}  // namespace reshard::sim
