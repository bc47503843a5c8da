// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/trace_links.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxShown = 8;  // lines of a cycle

std::map<std::string_view, std::int32_t> operations_by_id(const Trace& trace) {
  std::map<std::string_view, std::int32_t> by_id;
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    const TraceOperation& operation = trace.operations[op];
    if (operation.id.empty()) continue;
    auto [it, is_new] = by_id.try_emplace(operation.id, static_cast<std::int32_t>(op));
    if (!is_new)
      throw InputError(
          fmt::format("{}:{}: id: expected each id once, found {} again (first in line {})",
                      trace.file, operation.line, reshard::quoted(operation.id),
                      trace.operations[static_cast<std::size_t>(it->second)].line));
  }
  return by_id;
}

// Operations that remain when all whose `after` are done have been taken away, over and over: empty
// without a cycle.
std::vector<bool> left_in_cycles(const Trace& trace) {
  std::size_t count = trace.operations.size();
  std::vector<std::size_t> waits(count), first(count + 1);
  for (std::size_t op = 0; op < count; ++op) {
    waits[op] = trace.operations[op].after.size();
    for (OpId before : trace.operations[op].after) ++first[to_index(before) + 1];
  }
  for (std::size_t op = 0; op < count; ++op) first[op + 1] += first[op];
  std::vector<std::size_t> dependents(first.back()), next(first.begin(), first.end() - 1);
  for (std::size_t op = 0; op < count; ++op)
    for (OpId before : trace.operations[op].after) dependents[next[to_index(before)]++] = op;

  std::vector<std::size_t> free;
  std::vector<bool> left(count, true);
  for (std::size_t op = 0; op < count; ++op)
    if (waits[op] == 0) free.push_back(op);
  while (!free.empty()) {
    std::size_t op = free.back();
    free.pop_back();
    left[op] = false;
    for (std::size_t i = first[op]; i < first[op + 1]; ++i)
      if (--waits[dependents[i]] == 0) free.push_back(dependents[i]);
  }
  return left;
}

[[noreturn]] void refuse_cycle(const Trace& trace, const std::vector<bool>& left) {
  // Every operation left waits for another one left, so walking backwards must come round.
  auto at = static_cast<std::size_t>(std::find(left.begin(), left.end(), true) - left.begin());
  std::vector<std::size_t> walk;
  std::vector<std::int64_t> seen_at(trace.operations.size(), -1);
  while (seen_at[at] < 0) {
    seen_at[at] = static_cast<std::int64_t>(walk.size());
    walk.push_back(at);
    for (OpId before : trace.operations[at].after)
      if (left[to_index(before)]) {
        at = to_index(before);
        break;
      }
  }
  std::vector<std::size_t> cycle(walk.begin() + seen_at[at], walk.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  std::string lines;
  for (std::size_t i = 0; i < cycle.size() && i < kMaxShown; ++i)
    lines += fmt::format("line {} after ", trace.operations[cycle[i]].line);
  if (cycle.size() > kMaxShown) lines += fmt::format("... ({} lines) after ", cycle.size());
  std::int64_t line = trace.operations[cycle.front()].line;
  throw InputError(fmt::format("{}:{}: after: expected no cycle, found {}line {}", trace.file, line,
                               lines, line));
}

}  // namespace

void resolve_after(Trace& trace, const AfterIds& ids) {
  std::map<std::string_view, std::int32_t> by_id = operations_by_id(trace);
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    TraceOperation& operation = trace.operations[op];
    for (const std::string& id : ids[op]) {
      auto it = by_id.find(id);
      if (it == by_id.end())
        throw InputError(
            fmt::format("{}:{}: after: expected the id of a line, found {}, which no line has",
                        trace.file, operation.line, reshard::quoted(id)));
      operation.after.push_back(OpId{it->second});
    }
    std::sort(operation.after.begin(), operation.after.end());
    operation.after.erase(std::unique(operation.after.begin(), operation.after.end()),
                          operation.after.end());
  }
  std::vector<bool> left = left_in_cycles(trace);
  if (std::find(left.begin(), left.end(), true) != left.end()) refuse_cycle(trace, left);
}

void match_messages(Trace& trace) {
  struct Channel {
    std::vector<std::size_t> sends, receives;
  };
  std::map<std::tuple<Rank, Rank, std::int64_t>, Channel> channels;
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    const auto* end = std::get_if<TraceEnd>(&trace.operations[op].body);
    if (end == nullptr) continue;
    if (end->side == TraceEnd::Side::Send)
      channels[{end->rank, end->peer, end->tag}].sends.push_back(op);
    else
      channels[{end->peer, end->rank, end->tag}].receives.push_back(op);
  }
  for (const auto& [key, channel] : channels) {
    auto [source, destination, tag] = key;
    std::size_t pairs = std::min(channel.sends.size(), channel.receives.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      TraceOperation &send = trace.operations[channel.sends[i]],
                     &receive = trace.operations[channel.receives[i]];
      auto &from = std::get<TraceEnd>(send.body), &to = std::get<TraceEnd>(receive.body);
      from.other = static_cast<std::int32_t>(channel.receives[i]);
      to.other = static_cast<std::int32_t>(channel.sends[i]);
      if (from.bytes == to.bytes) continue;
      trace.findings.push_back(
          {{std::min(send.line, receive.line), std::max(send.line, receive.line)},
           fmt::format("{}:{}: send of {} bytes from rank {} to rank {} (tag {}) meets the recv of "
                       "{} bytes in line {}",
                       trace.file, send.line, from.bytes, to_int(source), to_int(destination), tag,
                       to.bytes, receive.line)});
    }
    for (std::size_t i = pairs; i < channel.sends.size(); ++i) {
      std::int64_t line = trace.operations[channel.sends[i]].line;
      trace.findings.push_back(
          {{line},
           fmt::format("{}:{}: send from rank {} to rank {} (tag {}) has no recv", trace.file, line,
                       to_int(source), to_int(destination), tag)});
    }
    for (std::size_t i = pairs; i < channel.receives.size(); ++i) {
      std::int64_t line = trace.operations[channel.receives[i]].line;
      trace.findings.push_back(
          {{line},
           fmt::format("{}:{}: recv on rank {} from rank {} (tag {}) has no send", trace.file, line,
                       to_int(destination), to_int(source), tag)});
    }
  }
  std::sort(trace.findings.begin(), trace.findings.end(),
            [](const TraceFinding& a, const TraceFinding& b) { return a.lines < b.lines; });
}

}  // namespace reshard::sim
