// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/trace.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
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

Trace read_trace(const std::string& path, std::string_view format) {
  std::optional<Trace> out;
  with_file(path, "a trace", [&](std::istream& in, const std::string& name) {
    out = parse_trace(in, name, format);
  });
  return *std::move(out);
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
