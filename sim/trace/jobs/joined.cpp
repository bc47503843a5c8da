// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/jobs/joined.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

// The requests of all lines, with the names of the lines; each line keeps its own stages.
TraceRedistribute together(const Trace& trace, const JoinedSet& set) {
  auto requests = std::make_shared<std::vector<Request>>();
  Stages groups;
  for (OpId op : set) {
    const auto& own = std::get<TraceRedistribute>(trace.operations[op].body);
    add_groups(groups, own.stages, own.requests->size(), requests->size());
    const std::string& name = trace.line_of(op).name;
    for (const Request& request : *own.requests)
      requests->push_back(own.requests->size() == 1 && !name.empty() ? request.named(name)
                                                                     : request);
  }
  try {
    return {std::move(requests), stages_of(groups)};
  } catch (const InputError& error) {
    throw error.in(trace.place_of(set.front()));
  }
}

class Joining {
 public:
  Joining(const Trace& trace, const std::vector<JoinedSet>& sets)
      : trace_(trace), sets_(sets), set_of_(trace.operations.size(), -1) {
    for (std::size_t s = 0; s < sets.size(); ++s)
      for (OpId op : sets[s]) set_of_[op] = static_cast<std::int32_t>(s);
    for (const TraceOperation& operation : trace.operations) streams_.insert(operation.stream);
  }

  Trace run() {
    Trace out = trace_;
    out.operations.clear();
    number();
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      auto op = id_of<OpId>(i);
      if (set_of_[op] < 0) {
        out.operations.push_back(trace_.operations[op]);
      } else if (const JoinedSet& set = sets_[to_index(set_of_[op])]; set.front() == op) {
        out.operations.push_back(one(set, out));
      } else {
        continue;
      }
      renumber(out.operations.back());
    }
    return out;
  }

 private:
  // What each operation is in the new trace.
  void number() {
    std::vector<std::int32_t> of_set(sets_.size(), -1);
    std::int32_t next = 0;
    for (std::size_t op = 0; op < trace_.operations.size(); ++op) {
      std::int32_t set = set_of_[op];
      bool known = set >= 0 && of_set[to_index(set)] >= 0;
      now_.push_back(OpId{known ? of_set[to_index(set)] : next});
      if (known) continue;
      if (set >= 0) of_set[to_index(set)] = next;
      ++next;
    }
  }

  void renumber(TraceOperation& operation) const {
    for (OpId& before : operation.after) before = now_[before];
    sort_once(operation.after);
    auto renumbered = [this](std::int32_t op) {
      return op < 0 ? op : static_cast<std::int32_t>(now_[op]);
    };
    if (auto* end = std::get_if<TraceEnd>(&operation.body)) end->other = renumbered(end->other);
    if (auto* call = std::get_if<TraceCall>(&operation.body)) call->first = renumbered(call->first);
  }

  std::int32_t free_stream() const {
    std::int32_t out = 0;
    while (streams_.contains(out)) ++out;
    return out;
  }

  TraceOperation one(const JoinedSet& set, Trace& out) {
    TraceOperation joined = trace_.operations[set.front()];
    joined.body = together(trace_, set);
    joined.line = static_cast<std::int32_t>(out.lines.size());
    out.lines.push_back(
        {trace_.line_of(set.front()).number, {}, "lines " + line_ranges(trace_, set)});
    bool same = true, one_stream = true;
    for (OpId op : set) {
      const TraceOperation& own = trace_.operations[op];
      same = same && own.communicator == joined.communicator;
      one_stream = one_stream && own.stream == joined.stream;
      joined.tensors.insert(joined.tensors.end(), own.tensors.begin(), own.tensors.end());
    }
    sort_once(joined.tensors);
    // The stream of one line may be busy on ranks of the others.
    if (!one_stream) streams_.insert(joined.stream = free_stream());
    if (same) return joined;
    joined.communicator = static_cast<std::int32_t>(out.communicators.size());
    out.communicators.push_back({"", ranks_of(joined)});
    return joined;
  }

  const Trace& trace_;
  const std::vector<JoinedSet>& sets_;
  IndexVector<OpId, std::int32_t> set_of_;
  IndexVector<OpId, OpId> now_;
  std::set<std::int32_t> streams_;  // in use
};

}  // namespace

std::string line_ranges(const Trace& trace, const JoinedSet& set) {
  std::vector<std::int64_t> lines;
  for (OpId op : set) lines.push_back(trace.line_of(op).number);
  sort_once(lines);
  std::string out;
  for (std::size_t i = 0, last = 0; i < lines.size(); i = last + 1) {
    for (last = i; last + 1 < lines.size() && lines[last + 1] == lines[last] + 1;) ++last;
    out += fmt::format("{}{}", i == 0 ? "" : ",", lines[i]);
    if (last > i) out += fmt::format("-{}", lines[last]);
  }
  return out;
}

Trace joined(const Trace& trace, const std::vector<JoinedSet>& sets) {
  return Joining(trace, sets).run();
}

}  // namespace reshard::sim
