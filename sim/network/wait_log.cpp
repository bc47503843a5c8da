// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/wait_log.h"

#include <algorithm>
#include <tuple>

#include "core/base/errors.h"
#include "sim/network/program.h"

namespace reshard::sim {

std::int32_t WaitLog::add(const Wait& wait) {
  full_ = full_ || waits_.size() == kMaxWaits;
  if (full_) return kNone;
  waits_.push_back(wait);
  return static_cast<std::int32_t>(waits_.size() - 1);
}

std::int32_t WaitLog::begin(const Transit& transit, std::int32_t after, std::int32_t flow,
                            std::int64_t now_ps, std::int64_t latency_ps) {
  if (to_index(flow) >= of_flow_.size()) of_flow_.resize(to_index(flow) + 1);
  if (full_) return of_flow_[flow] = kNone;
  Wait wait{transit.op, transit.step, transit.source, transit.destination,
            after,      transfers_++, now_ps,         now_ps + latency_ps};
  if (transit.terms) wait.cap_bytes_per_s = transit.terms->cap_bytes_per_s;
  return of_flow_[flow] = add(wait);
}

std::int32_t WaitLog::begin(const Sleep& sleep, std::int64_t now_ps) {
  return add({sleep.op, -1, sleep.rank, sleep.rank, sleep.after, -1, now_ps, now_ps,
              now_ps + sleep.duration_ps});
}

std::int32_t WaitLog::end(std::int32_t flow, std::int64_t now_ps) {
  std::int32_t wait = of_flow_[flow];
  if (wait != kNone) waits_[to_index(wait)].end_ps = now_ps;
  return wait;
}

// Whether `a` is preferred over `b`; both have ended.
bool WaitLog::before(const Wait& a, const Wait& b) const {
  auto key = [](const Wait& wait) {
    return std::tie(wait.op, wait.step, wait.source, wait.destination, wait.start_ps);
  };
  return a.end_ps != b.end_ps ? a.end_ps > b.end_ps : key(a) < key(b);
}

void WaitLog::keep_later(std::int32_t& last, std::int32_t ended) const {
  if (ended == kNone) return;
  if (last == kNone || before(waits_[to_index(ended)], waits_[to_index(last)])) last = ended;
}

std::vector<Wait> WaitLog::chain() const {
  std::vector<Wait> out;
  if (full_ || waits_.empty()) return out;
  auto last = std::min_element(waits_.begin(), waits_.end(),
                               [this](const Wait& a, const Wait& b) { return before(a, b); });
  for (const Wait* wait = &*last;; wait = &waits_[to_index(wait->after)]) {
    out.push_back(*wait);
    if (wait->after == kNone) break;
    RESHARD_CHECK(waits_[to_index(wait->after)].end_ps == wait->start_ps,
                  "a wait that begins when nothing ends");
  }
  RESHARD_CHECK(out.back().start_ps == 0, "a critical path that begins late");
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace reshard::sim
