// SPDX-License-Identifier: BSD-3-Clause
// Turns the lines that a reader found into a trace: links operations by id, stream and order.
#include "sim/trace/trace.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/grouped.h"
#include "core/layout/mesh.h"
#include "sim/trace/cycles.h"
#include "sim/trace/findings.h"
#include "sim/trace/matching.h"

namespace reshard::sim {
namespace {

[[noreturn]] void refuse_cycle(const Trace& trace, const std::vector<std::size_t>& cycle) {
  std::vector<std::string> lines;
  for (std::size_t op : cycle)
    lines.push_back(fmt::format("line {}", trace.line_of(id_of<OpId>(op)).number));
  throw InputError(fmt::format("{}: after: expected no cycle, found {}",
                               trace.place_of(id_of<OpId>(cycle.front())),
                               cycle_text(lines, "lines")));
}

// Fills `after` of all operations from the ids in each line's `after`.
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
  std::vector<std::size_t> cycle = find_cycle<OpId>(
      trace.operations.size(),
      [&](std::size_t op) -> std::span<const OpId> { return trace.operations[op].after; });
  if (!cycle.empty()) refuse_cycle(trace, cycle);
}

// Gives operations that name no communicator an unnamed one, shared by equal sets of ranks.
class OwnGroups {
 public:
  explicit OwnGroups(Trace& trace) : trace_(trace) {}

  void join(TraceOperation& operation) {
    if (operation.communicator >= 0) return;
    std::vector<Rank> group;
    if (const auto* call = std::get_if<TraceCall>(&operation.body)) {
      group = call->ranks;
    } else if (std::holds_alternative<TraceCollective>(operation.body) ||
               std::holds_alternative<TraceRedistribute>(operation.body)) {
      group = ranks_of(operation);
    }
    if (group.empty()) return;
    sort_once(group);
    auto next = static_cast<std::int32_t>(trace_.communicators.size());
    auto [it, is_new] = known_.try_emplace(std::move(group), next);
    if (is_new) trace_.communicators.push_back({"", it->first});
    operation.communicator = it->second;
  }

 private:
  Trace& trace_;
  std::map<std::vector<Rank>, std::int32_t> known_;
};

// Gives ranks to communicators that the header does not list: those of the first line that lists
// them, else all ranks that use the communicator.
void fill_communicators(Trace& trace) {
  std::vector<bool> known(trace.communicators.size());
  for (std::size_t i = 0; i < known.size(); ++i) known[i] = !trace.communicators[i].ranks.empty();
  for (bool listed : {true, false}) {
    for (const TraceOperation& operation : trace.operations) {
      if (operation.communicator < 0) continue;
      std::vector<Rank>& ranks = trace.communicators[to_index(operation.communicator)].ranks;
      if (known[to_index(operation.communicator)]) continue;
      std::vector<Rank> own = ranks_of(operation);
      const auto* call = std::get_if<TraceCall>(&operation.body);
      if (call != nullptr && !call->ranks.empty()) own = call->ranks;
      if (const auto* end = std::get_if<TraceEnd>(&operation.body)) own.push_back(end->peer);
      bool lists = std::holds_alternative<TraceCollective>(operation.body) ||
                   (call != nullptr && !call->ranks.empty());
      if (listed && !lists) continue;
      ranks.insert(ranks.end(), own.begin(), own.end());
      known[to_index(operation.communicator)] = listed;
    }
  }
  for (TraceCommunicator& communicator : trace.communicators) sort_once(communicator.ranks);
}

void check_root(const TraceCollective& collective) {
  const std::vector<Rank>& ranks = collective.ranks;
  if (collective.kind.has_root() &&
      std::find(ranks.begin(), ranks.end(), collective.root) == ranks.end())
    throw InputError(fmt::format("root: expected one of the ranks {}, found {}", ranks_text(ranks),
                                 to_int(collective.root)));
}

}  // namespace

void TraceBuilder::at_line(std::int64_t number) {
  number_ = number;
  place_ = fmt::format("{}:{}", trace_.file, number);
}

void TraceBuilder::fail(const std::string& what) const {
  throw InputError(fmt::format("{}: {}", place_, what));
}

// The current line; added to the trace on first use, so that only lines with content are kept.
TraceLine& TraceBuilder::line() {
  if (trace_.lines.empty() || trace_.lines.back().number != number_) {
    trace_.lines.push_back({number_, {}, {}});
    after_.emplace_back();
  }
  return trace_.lines.back();
}

void TraceBuilder::describe(std::string id, std::string name, std::vector<std::string> after) {
  TraceLine& added = line();
  added.id = std::move(id);
  added.name = std::move(name);
  after_.back() = std::move(after);
}

void TraceBuilder::count_ranks(std::size_t ranks) {
  named_ranks_ += static_cast<std::int64_t>(ranks);
  if (named_ranks_ > kMaxNamedRanks)
    fail(fmt::format("expected at most {} ranks over all lines, found more", kMaxNamedRanks));
}

void TraceBuilder::communicator(const std::string& name, std::vector<Rank> ranks) {
  count_ranks(ranks.size());
  communicators_.emplace(name, static_cast<std::int32_t>(trace_.communicators.size()));
  trace_.communicators.push_back({name, std::move(ranks)});
}

void TraceBuilder::close_batch(Rank rank) {
  auto it = batches_.find(rank);
  if (it == batches_.end() || it->second.name.empty()) return;
  it->second.left.insert(std::move(it->second.name));
  it->second.name.clear();
  --open_batches_;
}

// The number of the batch that the line belongs to on its rank. The lines of a batch must follow
// one another on the rank, with the same stream and communicator.
std::int32_t TraceBuilder::batch_of(const TraceBody& body, const TraceIssue& how,
                                    const std::vector<Rank>& ranks) {
  const auto* end = std::get_if<TraceEnd>(&body);
  if (end == nullptr && !how.batch.empty())
    fail("batch: expected it only for a send or a recv, found it elsewhere");
  if (how.batch.empty()) {
    if (open_batches_ > 0)
      for (Rank rank : ranks) close_batch(rank);
    return -1;
  }
  Batches& of = batches_[end->rank];
  if (how.batch != of.name) {
    close_batch(end->rank);
    if (of.left.count(how.batch) > 0)
      fail(
          fmt::format("batch: expected the sends and recvs of {} on rank {} one after another, "
                      "found others between them",
                      reshard::quoted(how.batch), to_int(end->rank)));
    of.name = how.batch;
    of.number = next_batch_++;
    of.stream = how.stream;
    of.communicator = how.communicator;
    ++open_batches_;
  }
  if (of.stream != how.stream || of.communicator != how.communicator)
    fail(
        fmt::format("batch: expected one stream and one communicator in {} on rank {}, found "
                    "another",
                    reshard::quoted(how.batch), to_int(end->rank)));
  return of.number;
}

void TraceBuilder::add(TraceBody body, TraceIssue how) {
  if (trace_.operations.size() == kMaxTraceOperations)
    fail(fmt::format("expected at most {} operations, found more", kMaxTraceOperations));
  line();
  TraceOperation operation{static_cast<std::int32_t>(trace_.lines.size() - 1),
                           how.stream,
                           std::move(body),
                           {},
                           std::move(how.tensors),
                           how.transport};
  std::vector<Rank> ranks = ranks_of(operation);
  operation.batch = batch_of(operation.body, how, ranks);
  operation.async = how.async;
  if (!how.communicator.empty()) {
    auto next = static_cast<std::int32_t>(trace_.communicators.size());
    auto [it, is_new] = communicators_.try_emplace(how.communicator, next);
    if (is_new) trace_.communicators.push_back({how.communicator, {}});
    operation.communicator = it->second;
  }
  const auto* end = std::get_if<TraceEnd>(&operation.body);
  if (end != nullptr && end->rank == end->peer)
    fail(fmt::format("peer: expected another rank, found the rank's own, {}", to_int(end->rank)));
  count_ranks(ranks.size());
  const auto* collective = std::get_if<TraceCollective>(&operation.body);
  if (collective != nullptr)
    placed([&] {
      check_root(*collective);
      check_size({collective->kind, collective->algorithm, collective->ranks, collective->bytes,
                  collective->root});
    });
  trace_.operations.push_back(std::move(operation));
}

std::int32_t TraceBuilder::tensor(const std::string& name, const Shape& shape, DType dtype) {
  auto next = static_cast<std::int32_t>(trace_.tensors.size());
  auto [it, is_new] = tensors_.try_emplace({name, shape, dtype}, next);
  if (is_new) trace_.tensors.push_back({name, shape, dtype});
  return it->second;
}

void join_own_communicators(Trace& trace) {
  OwnGroups own(trace);
  for (TraceOperation& operation : trace.operations) own.join(operation);
}

Trace TraceBuilder::finish() {
  resolve_after(trace_, after_);
  fill_communicators(trace_);
  join_own_communicators(trace_);
  match_messages(trace_);
  match_calls(trace_);
  std::sort(trace_.findings.begin(), trace_.findings.end(),
            [](const TraceFinding& a, const TraceFinding& b) { return a.lines < b.lines; });
  return std::move(trace_);
}

}  // namespace reshard::sim
