// SPDX-License-Identifier: BSD-3-Clause
// Matches the ranks' calls of collectives on each communicator, and finds calls that do not match.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "core/base/grouped.h"
#include "core/layout/mesh.h"
#include "sim/trace/findings.h"
#include "sim/trace/matching.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxFindings = 64;  // ranks of one communicator with findings of their own

bool equal_from(const std::vector<std::int32_t>& a, std::size_t from_a,
                const std::vector<std::int32_t>& b, std::size_t from_b) {
  return from_a <= a.size() && from_b <= b.size() &&
         std::equal(a.begin() + static_cast<std::ptrdiff_t>(from_a), a.end(),
                    b.begin() + static_cast<std::ptrdiff_t>(from_b), b.end());
}

std::string_view algorithm_text(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Ring:
      return "ring";
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Tree:
      return "tree";
  }
  return "";
}

class Collectives {
 public:
  explicit Collectives(Trace& trace) : trace_(trace) {}

  void match() {
    check_members();
    match_calls();
  }

 private:
  // The calls of one rank on a communicator. Calls with equal numbers can meet.
  struct Calls {
    Rank rank;
    std::vector<OpId> operations;
    std::vector<std::int32_t> numbers;
  };
  using CallKey = std::tuple<BareKind::Value, Rank, Algorithm, std::int64_t, int, std::int64_t>;

  const TraceCall* call_of(OpId op) const {
    return std::get_if<TraceCall>(&trace_.operations[op].body);
  }
  void find(const std::vector<OpId>& at, std::vector<Rank> ranks, const std::string& sentence) {
    trace_.findings.push_back(finding_of(trace_, at, std::move(ranks), at.front(), sentence));
  }

  void check_members();
  void match_calls();
  void match_communicator(std::int32_t communicator, std::span<const OpId> calls);
  std::vector<Calls> calls_by_rank(std::int32_t communicator, std::span<const OpId> calls) const;
  std::string what(OpId op) const;
  void report(std::int32_t communicator, const Calls& own, const std::vector<const Calls*>& others);
  void report_others(std::int32_t communicator, const Calls& next, std::size_t count);
  void meet(const std::vector<Calls>& calls);
  void check_size(OpId op, const std::vector<Rank>& ranks) const;
  void agree_on_transport(const std::vector<Calls>& calls, std::size_t at);

  Trace& trace_;
  OpId first_call_{0};  // of the current communicator
};

// A line for a whole collective must list exactly the ranks of its communicator; any other line
// must have ranks that are members.
void Collectives::check_members() {
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    auto op = id_of<OpId>(i);
    const TraceOperation& operation = trace_.operations[op];
    if (operation.communicator < 0) continue;
    const std::vector<Rank>& members = trace_.communicators[to_index(operation.communicator)].ranks;
    std::vector<Rank> own = ranks_of(operation);
    const TraceCall* call = call_of(op);
    bool whole = std::holds_alternative<TraceCollective>(operation.body);
    if (call != nullptr && !call->ranks.empty()) {
      own.insert(own.end(), call->ranks.begin(), call->ranks.end());
      whole = true;
    }
    auto is_member = [&](Rank rank) {
      return std::binary_search(members.begin(), members.end(), rank);
    };
    if (call != nullptr && call->kind.has_root() && !is_member(call->root)) {
      find({op}, {call->rank},
           fmt::format("{} is on {}, which has ranks {}", what(op),
                       communicator_text(trace_, operation.communicator), ranks_text(members)));
      continue;
    }
    sort_once(own);
    if (whole ? own == members : std::all_of(own.begin(), own.end(), is_member)) continue;
    std::vector<Rank> foreign;
    std::set_symmetric_difference(own.begin(), own.end(), members.begin(), members.end(),
                                  std::back_inserter(foreign));
    find({op}, foreign,
         fmt::format("{} on {} uses {}, which has ranks {}", op_text(operation), ranks_words(own),
                     communicator_text(trace_, operation.communicator), ranks_text(members)));
  }
}

void Collectives::match_calls() {
  std::size_t count = trace_.communicators.size();
  std::vector<bool> called(count);
  for (const TraceOperation& operation : trace_.operations)
    if (std::holds_alternative<TraceCall>(operation.body) && operation.communicator >= 0)
      called[to_index(operation.communicator)] = true;
  // Includes collectives that one line gives for all ranks: they are ordered with the calls.
  Grouped<OpId> of_communicator(count, [&](auto put) {
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const TraceOperation& operation = trace_.operations[i];
      if (operation.communicator >= 0 && called[to_index(operation.communicator)] &&
          !std::holds_alternative<TraceEnd>(operation.body))
        put(operation.communicator, id_of<OpId>(i));
    }
  });
  for (std::size_t i = 0; i < count; ++i)
    if (called[i]) match_communicator(static_cast<std::int32_t>(i), of_communicator[i]);
}

std::vector<Collectives::Calls> Collectives::calls_by_rank(std::int32_t communicator,
                                                           std::span<const OpId> calls) const {
  const std::vector<Rank>& members = trace_.communicators[to_index(communicator)].ranks;
  std::vector<Calls> out;
  for (Rank rank : members) out.push_back({rank, {}, {}});
  Numbering<CallKey> numbers;
  for (OpId op : calls) {
    const TraceOperation& operation = trace_.operations[op];
    const auto* call = std::get_if<TraceCall>(&operation.body);
    // A collective that one line gives for all ranks gets a number of its own, below 0.
    std::int32_t number = call == nullptr
                              ? -1 - static_cast<std::int32_t>(op)
                              : numbers.of({call->kind, call->root, call->algorithm, call->bytes,
                                            call->dtype ? static_cast<int>(*call->dtype) : -1,
                                            call->seq.value_or(-1)});
    for (Rank rank : ranks_of(operation)) {
      auto it = std::lower_bound(members.begin(), members.end(), rank);
      if (it == members.end() || *it != rank) continue;  // check_members() reports it
      Calls& own = out[to_index(it - members.begin())];
      own.operations.push_back(op);
      own.numbers.push_back(number);
    }
  }
  return out;
}

// The list that most ranks share counts as the right one; among equally common lists, the one of
// the lowest rank.
void Collectives::match_communicator(std::int32_t communicator, std::span<const OpId> calls) {
  std::vector<Calls> by_rank = calls_by_rank(communicator, calls);
  first_call_ = calls.front();
  std::map<std::vector<std::int32_t>, std::vector<const Calls*>> equal_from;
  for (const Calls& own : by_rank) equal_from[own.numbers].push_back(&own);
  if (equal_from.size() == 1) {
    meet(by_rank);
    return;
  }
  auto wanted =
      std::max_element(equal_from.begin(), equal_from.end(), [](const auto& a, const auto& b) {
        if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
        return a.second.front()->rank > b.second.front()->rank;
      });
  std::size_t reported = 0;
  for (const Calls& own : by_rank) {
    if (own.numbers == wanted->first) continue;
    if (reported++ == kMaxFindings) {
      report_others(communicator, own, by_rank.size() - wanted->second.size() - kMaxFindings);
      return;
    }
    report(communicator, own, wanted->second);
  }
}

// One finding for all further ranks that differ: those before them have shown what is wrong, and
// each finding lists the lines of all the other ranks.
void Collectives::report_others(std::int32_t communicator, const Calls& next, std::size_t count) {
  OpId at = next.operations.empty() ? first_call_ : next.operations.front();
  find({at}, {next.rank},
       fmt::format("{} more rank{}, rank {} first, call{} other collectives on {}", count,
                   count == 1 ? "" : "s", to_int(next.rank), count == 1 ? "s" : "",
                   communicator_text(trace_, communicator)));
}

// "broadcast of 8 bytes from rank 0", "barrier".
std::string call_text(BareKind kind, std::int64_t bytes, Rank root) {
  if (kind == BareKind::Barrier) return "barrier";
  return fmt::format(
      "{} of {} bytes{}", text(kind), bytes,
      kind.has_root() ? fmt::format(" {} rank {}", kind.from_root() ? "from" : "to", to_int(root))
                      : "");
}

// "all_reduce of 8 bytes", "all_gather of 16 bytes (bf16, seq 3)".
std::string Collectives::what(OpId op) const {
  const TraceOperation& operation = trace_.operations[op];
  if (const auto* collective = std::get_if<TraceCollective>(&operation.body))
    return call_text(collective->kind, collective->bytes, collective->root);
  const auto* call = std::get_if<TraceCall>(&operation.body);
  if (call == nullptr) return std::string(op_text(operation));
  std::string more;
  auto add = [&](std::string_view word) {
    more += fmt::format("{}{}", more.empty() ? "" : ", ", word);
  };
  if (call->algorithm != default_algorithm(call->kind)) add(algorithm_text(call->algorithm));
  if (call->dtype) add(text(*call->dtype));
  if (call->seq) add(fmt::format("seq {}", *call->seq));
  return call_text(call->kind, call->bytes, call->root) +
         (more.empty() ? "" : fmt::format(" ({})", more));
}

// `others` are the ranks with the right list.
void Collectives::report(std::int32_t communicator, const Calls& own,
                         const std::vector<const Calls*>& others) {
  using Kind = Difference::Kind;
  const Calls& wanted = *others.front();
  Difference difference = difference_of(own.numbers, wanted.numbers);
  std::vector<Rank> ranks;
  std::vector<OpId> there;
  for (const Calls* each : others) {
    ranks.push_back(each->rank);
    if (difference.kind != Kind::Extra) there.push_back(each->operations[difference.at]);
    if (difference.kind == Kind::Swapped) there.push_back(each->operations[difference.other]);
  }
  sort_once(there);
  // With two ranks, either can be the wrong one, so both are named.
  std::vector<Rank> named{own.rank};
  if (others.size() == 1) named.push_back(wanted.rank);
  std::string they = ranks_words(ranks), of = communicator_text(trace_, communicator);
  std::string_view s = ranks.size() == 1 ? "s" : "";
  auto wanted_here = [&] { return what(wanted.operations[difference.at]); };
  if (difference.kind == Kind::Missing) {
    find(there, named,
         fmt::format("rank {} never reaches the {} on {}: {} wait{} for it in {}", to_int(own.rank),
                     wanted_here(), of, they, s, lines_text(trace_, there)));
    return;
  }
  OpId here = own.operations[difference.at];
  std::string start = fmt::format("rank {} calls {} in {}", to_int(own.rank), what(here),
                                  lines_text(trace_, {here}));
  std::vector<OpId> all{here};
  all.insert(all.end(), there.begin(), there.end());
  if (difference.kind == Kind::Extra) {
    find(all, named,
         fmt::format("{}, but {} call{} nothing on {} that matches it", start, they, s, of));
  } else if (difference.kind == Kind::Swapped) {
    OpId later = own.operations[difference.other];
    all.push_back(later);
    find(all, named,
         fmt::format("{} before {} in {}; {} call{} them in the opposite order in {} ({})", start,
                     what(later), lines_text(trace_, {later}), they, s, lines_text(trace_, there),
                     of));
  } else {
    find(all, named,
         fmt::format("{}, but {} call{} {} on {} in {}", start, they, s, wanted_here(), of,
                     lines_text(trace_, there)));
  }
}

// A transport that one call gives applies to all calls of the collective.
void Collectives::agree_on_transport(const std::vector<Calls>& calls, std::size_t at) {
  OpId stating{-1};
  for (const Calls& own : calls) {
    OpId op = own.operations[at];
    std::optional<TransportKind>& here = trace_.operations[op].transport;
    if (!here) continue;
    if (stating == OpId{-1}) stating = op;
    const TransportKind& there = *trace_.operations[stating].transport;
    if (*here != there)
      find({op, stating}, {own.rank},
           fmt::format("{} by {} on rank {} meets the one by {} in {}", what(op), text(*here),
                       to_int(own.rank), text(there), lines_text(trace_, {stating})));
  }
  if (stating == OpId{-1}) return;
  std::optional<TransportKind> transport = trace_.operations[stating].transport;
  for (const Calls& own : calls) trace_.operations[own.operations[at]].transport = transport;
}

void Collectives::check_size(OpId op, const std::vector<Rank>& ranks) const {
  const TraceCall* call = call_of(op);
  if (call == nullptr) return;
  try {
    reshard::check_size({call->kind, call->algorithm, ranks, call->bytes, call->root});
  } catch (const InputError& error) {
    throw error.in(trace_.place_of(op));
  }
}

void Collectives::meet(const std::vector<Calls>& calls) {
  std::vector<Rank> ranks;
  for (const Calls& own : calls) ranks.push_back(own.rank);
  for (std::size_t i = 0; i < calls.front().operations.size(); ++i) {
    OpId first = calls.front().operations[i];
    for (const Calls& own : calls) first = std::min(first, own.operations[i]);
    check_size(first, ranks);
    agree_on_transport(calls, i);
    for (const Calls& own : calls)
      if (auto* call = std::get_if<TraceCall>(&trace_.operations[own.operations[i]].body))
        call->first = static_cast<std::int32_t>(first);
  }
}

}  // namespace

Difference difference_of(const std::vector<std::int32_t>& own,
                         const std::vector<std::int32_t>& wanted) {
  using Kind = Difference::Kind;
  std::size_t both = std::min(own.size(), wanted.size()), at = 0;
  while (at < both && own[at] == wanted[at]) ++at;
  if (at == both && own.size() == wanted.size()) return {};
  if (at == own.size()) return {Kind::Missing, at};
  if (at == wanted.size()) return {Kind::Extra, at};
  if (equal_from(own, at, wanted, at + 1)) return {Kind::Missing, at};
  if (equal_from(own, at + 1, wanted, at)) return {Kind::Extra, at};
  std::size_t other = at + 1;
  while (other < both && own[other] == wanted[other]) ++other;
  if (other < both && own[at] == wanted[other] && own[other] == wanted[at] &&
      equal_from(own, other + 1, wanted, other + 1))
    return {Kind::Swapped, at, other};
  return {Kind::Changed, at};
}

void match_calls(Trace& trace) { Collectives(trace).match(); }

}  // namespace reshard::sim
