// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/losses/late_arrivals.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/grouped.h"
#include "core/base/integers.h"
#include "core/base/limits.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kShareOfRun = 20;

// When each rank computes or is alone in a setup, which holds up its host.
class Computing {
 public:
  Computing(const Workload& workload, const std::vector<Span>& spans) {
    Rank highest{-1};
    for (const Span& span : spans) highest = std::max(highest, span.rank);
    by_rank_ = Grouped<Span>(to_index(to_int(highest) + 1), [&](auto put) {
      for (const Span& span : spans)
        if (is_own(workload.operations[to_index(span.op)])) put(span.rank, span);
    });
  }

  // Concurrent computes on several streams are added up.
  Int128 time_ps(Rank rank, std::int64_t from_ps, std::int64_t to_ps) const {
    Int128 out = 0;
    for (const Span& span : by_rank_[rank])
      out += std::max<std::int64_t>(
          0, std::min(span.end_ps, to_ps) - std::max(span.start_ps, from_ps));
    return out;
  }

 private:
  static bool is_own(const Operation& operation) {
    const auto* setup = std::get_if<Setup>(&operation.body);
    return std::holds_alternative<Compute>(operation.body) ||
           (setup != nullptr && setup->ranks.size() == 1);
  }

  Grouped<Span> by_rank_;
};

// `spans` belong to one operation without steps, one per rank.
std::optional<LateArrival> late_one(std::span<const Span> spans, std::int64_t run_ps,
                                    const Computing& computing) {
  std::int64_t first = spans.front().start_ps, second_last = first, end = 0;
  const Span* last = &spans.front();
  for (const Span& span : spans) {
    first = std::min(first, span.start_ps);
    end = std::max(end, span.end_ps);
    if (span.start_ps > last->start_ps) last = &span;
  }
  second_last = first;
  Int128 waited = 0;
  for (const Span& span : spans) {
    if (&span != last) second_last = std::max(second_last, span.start_ps);
    waited += last->start_ps - span.start_ps;
  }
  std::int64_t late = last->start_ps - second_last;
  if (late <= second_last - first || late <= end - last->start_ps || late <= run_ps / kShareOfRun ||
      2 * computing.time_ps(last->rank, second_last, last->start_ps) < late)
    return std::nullopt;
  return LateArrival{last->op, last->rank, last->start_ps, late,
                     static_cast<std::int64_t>(std::min<Int128>(waited, kMaxTimePs))};
}

}  // namespace

std::vector<LateArrival> late_arrivals(const Workload& workload, const Timeline& timeline) {
  std::vector<LateArrival> out;
  const std::vector<Span>& spans = timeline.spans;  // sorted by operation
  Computing computing(workload, spans);
  for (std::size_t first = 0, next = 0; first < spans.size(); first = next) {
    for (next = first; next < spans.size() && spans[next].op == spans[first].op;) ++next;
    if (next - first < 2 || !std::holds_alternative<BareCollective>(
                                workload.operations[to_index(spans[first].op)].body))
      continue;
    if (std::optional<LateArrival> late =
            late_one(std::span(spans).subspan(first, next - first), timeline.end_ps, computing))
      out.push_back(*late);
  }
  std::stable_sort(out.begin(), out.end(), [](const LateArrival& a, const LateArrival& b) {
    return a.arrival_ps < b.arrival_ps;
  });
  return out;
}

}  // namespace reshard::sim
