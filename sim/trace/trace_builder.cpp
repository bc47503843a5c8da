// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/trace.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/grouped.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxShown = 8;  // lines of a cycle

// Operations that remain when all whose `after` are done have been taken away, over and over: empty
// without a cycle.
std::vector<bool> left_in_cycles(const IndexVector<OpId, TraceOperation>& operations) {
  std::size_t count = operations.size();
  Grouped<std::size_t> dependents(count, [&](auto put) {
    for (std::size_t op = 0; op < count; ++op)
      for (OpId before : operations[op].after) put(before, op);
  });
  std::vector<std::size_t> waits, free;
  for (std::size_t op = 0; op < count; ++op) {
    waits.push_back(operations[op].after.size());
    if (waits[op] == 0) free.push_back(op);
  }
  std::vector<bool> left(count, true);
  while (!free.empty()) {
    std::size_t op = free.back();
    free.pop_back();
    left[op] = false;
    for (std::size_t dependent : dependents[op])
      if (--waits[dependent] == 0) free.push_back(dependent);
  }
  return left;
}

[[noreturn]] void refuse_cycle(const Trace& trace, const std::vector<bool>& left) {
  // Every operation left waits for another one left, so walking backwards must come round.
  auto at = to_index(std::find(left.begin(), left.end(), true) - left.begin());
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
    lines += fmt::format("line {} after ", trace.line_of(id_of<OpId>(cycle[i])).number);
  if (cycle.size() > kMaxShown) lines += fmt::format("... ({} lines) after ", cycle.size());
  std::int64_t line = trace.line_of(id_of<OpId>(cycle.front())).number;
  throw InputError(fmt::format("{}:{}: after: expected no cycle, found {}line {}", trace.file, line,
                               lines, line));
}

// Fills `after` of all operations, from the ids that each line comes after.
void resolve_after(Trace& trace, const std::vector<std::vector<std::string>>& after) {
  std::map<std::string_view, std::size_t> line_by_id;
  for (std::size_t i = 0; i < trace.lines.size(); ++i) {
    const TraceLine& line = trace.lines[i];
    if (line.id.empty()) continue;
    auto [it, is_new] = line_by_id.try_emplace(line.id, i);
    if (!is_new)
      throw InputError(fmt::format(
          "{}:{}: id: expected each id once, found {} again (first in line {})", trace.file,
          line.number, reshard::quoted(line.id), trace.lines[it->second].number));
  }
  Grouped<OpId> of_line(trace.lines.size(), [&](auto put) {
    for (std::size_t op = 0; op < trace.operations.size(); ++op)
      put(trace.operations[op].line, id_of<OpId>(op));
  });
  for (std::size_t i = 0; i < trace.lines.size(); ++i) {
    std::vector<OpId> before;
    for (const std::string& id : after[i]) {
      auto it = line_by_id.find(id);
      if (it == line_by_id.end())
        throw InputError(
            fmt::format("{}:{}: after: expected the id of a line, found {}, which no line has",
                        trace.file, trace.lines[i].number, reshard::quoted(id)));
      before.insert(before.end(), of_line[it->second].begin(), of_line[it->second].end());
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (OpId op : of_line[i]) trace.operations[op].after = before;
  }
  std::vector<bool> left = left_in_cycles(trace.operations);
  if (std::find(left.begin(), left.end(), true) != left.end()) refuse_cycle(trace, left);
}

// Sends and receives of one source, destination and tag.
struct Channel {
  std::vector<std::size_t> sends, receives;
};
using ChannelKey = std::tuple<Rank, Rank, std::int64_t>;

std::map<ChannelKey, Channel> channels_of(const Trace& trace) {
  std::map<ChannelKey, Channel> channels;
  for (std::size_t op = 0; op < trace.operations.size(); ++op) {
    const auto* end = std::get_if<TraceEnd>(&trace.operations[op].body);
    if (end == nullptr) continue;
    if (end->side == TraceEnd::Side::Send)
      channels[{end->rank, end->peer, end->tag}].sends.push_back(op);
    else
      channels[{end->peer, end->rank, end->tag}].receives.push_back(op);
  }
  return channels;
}

// Pairs the n-th send with the n-th receive of each channel; what is left over or differs in bytes
// becomes a finding.
void match_messages(Trace& trace) {
  auto find = [&trace](std::vector<std::int64_t> lines, const std::string& what) {
    std::sort(lines.begin(), lines.end());
    trace.findings.push_back({std::move(lines), what});
  };
  auto number_of = [&trace](std::size_t op) { return trace.line_of(id_of<OpId>(op)).number; };
  for (const auto& [key, channel] : channels_of(trace)) {
    std::int32_t source = to_int(std::get<0>(key)), destination = to_int(std::get<1>(key));
    std::int64_t tag = std::get<2>(key);
    const auto& [sends, receives] = channel;
    std::size_t pairs = std::min(sends.size(), receives.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      auto& from = std::get<TraceEnd>(trace.operations[sends[i]].body);
      auto& to = std::get<TraceEnd>(trace.operations[receives[i]].body);
      from.other = static_cast<std::int32_t>(receives[i]);
      to.other = static_cast<std::int32_t>(sends[i]);
      // What one end says of the transport holds for both.
      std::optional<TransportKind>&here = trace.operations[sends[i]].transport,
      &there = trace.operations[receives[i]].transport;
      if (!here) here = there;
      if (!there) there = here;
      if (here != there)
        find({number_of(sends[i]), number_of(receives[i])},
             fmt::format("{}:{}: send from rank {} to rank {} (tag {}) by {} meets the recv by {} "
                         "in line {}",
                         trace.file, number_of(sends[i]), source, destination, tag, text(*here),
                         text(*there), number_of(receives[i])));
      if (from.bytes == to.bytes) continue;
      std::int64_t send = number_of(sends[i]), receive = number_of(receives[i]);
      find({send, receive},
           fmt::format("{}:{}: send of {} bytes from rank {} to rank {} (tag {}) meets the recv of "
                       "{} bytes in line {}",
                       trace.file, send, from.bytes, source, destination, tag, to.bytes, receive));
    }
    for (std::size_t i = pairs; i < sends.size(); ++i)
      find({number_of(sends[i])},
           fmt::format("{}:{}: send from rank {} to rank {} (tag {}) has no recv", trace.file,
                       number_of(sends[i]), source, destination, tag));
    for (std::size_t i = pairs; i < receives.size(); ++i)
      find({number_of(receives[i])},
           fmt::format("{}:{}: recv on rank {} from rank {} (tag {}) has no send", trace.file,
                       number_of(receives[i]), destination, source, tag));
  }
  std::sort(trace.findings.begin(), trace.findings.end(),
            [](const TraceFinding& a, const TraceFinding& b) { return a.lines < b.lines; });
}

}  // namespace

void TraceBuilder::at_line(std::int64_t number) {
  number_ = number;
  place_ = fmt::format("{}:{}", trace_.file, number);
}

void TraceBuilder::fail(const std::string& what) const {
  throw InputError(fmt::format("{}: {}", place_, what));
}

// The trace keeps the lines that say something.
TraceLine& TraceBuilder::line() {
  if (trace_.lines.empty() || trace_.lines.back().number != number_) {
    trace_.lines.push_back({number_, {}, {}});
    after_.emplace_back();
  }
  return trace_.lines.back();
}

void TraceBuilder::describe(std::string id, std::string name, std::vector<std::string> after) {
  TraceLine& said = line();
  said.id = std::move(id);
  said.name = std::move(name);
  after_.back() = std::move(after);
}

void TraceBuilder::count_ranks(std::size_t ranks) {
  named_ranks_ += static_cast<std::int64_t>(ranks);
  if (named_ranks_ > kMaxNamedRanks)
    fail(fmt::format("expected at most {} ranks over all lines, found more", kMaxNamedRanks));
}

void TraceBuilder::add(TraceBody body, std::int32_t stream, std::vector<std::int32_t> tensors,
                       std::optional<TransportKind> transport) {
  if (trace_.operations.size() == kMaxTraceOperations)
    fail(fmt::format("expected at most {} operations, found more", kMaxTraceOperations));
  line();
  auto index = static_cast<std::int32_t>(trace_.lines.size() - 1);
  trace_.operations.push_back({index, stream, std::move(body), {}, std::move(tensors), transport});
  const TraceOperation& operation = trace_.operations.back();
  const auto* end = std::get_if<TraceEnd>(&operation.body);
  if (end != nullptr && end->rank == end->peer)
    fail(fmt::format("peer: expected another rank, found the rank's own, {}", to_int(end->rank)));
  count_ranks(end != nullptr ? 1 : ranks_of(operation).size());
  const auto* collective = std::get_if<TraceCollective>(&operation.body);
  if (collective != nullptr && collective->ranks.size() >= 2)
    placed([&] {
      return Expansion(collective->kind, collective->algorithm,
                       static_cast<std::int32_t>(collective->ranks.size()), collective->bytes)
          .size();
    });
}

std::int32_t TraceBuilder::tensor(const std::string& name, const Shape& shape, DType dtype) {
  auto next = static_cast<std::int32_t>(trace_.tensors.size());
  auto [it, is_new] = tensors_.try_emplace({name, shape, dtype}, next);
  if (is_new) trace_.tensors.push_back({name, shape, dtype});
  return it->second;
}

Trace TraceBuilder::finish() {
  resolve_after(trace_, after_);
  match_messages(trace_);
  return std::move(trace_);
}

}  // namespace reshard::sim
