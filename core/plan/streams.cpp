// SPDX-License-Identifier: BSD-3-Clause
// Goes through the steps in listed order and knows, by class of ranks (StepOrder), what each stream
// would make the next step wait for.
#include "core/plan/streams.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/plan/step_order.h"

namespace reshard {
namespace {

class Streams {
 public:
  explicit Streams(const Plan& plan)
      : order_(plan), classes_of_(plan.steps.size()), talks_(plan.steps.size()) {
    for (std::int32_t c = 0; c < order_.classes(); ++c)
      for (std::int32_t step : order_.steps_of(c)) classes_of_[to_index(step)].push_back(c);
    for (std::size_t s = 0; s < talks_.size(); ++s) talks_[s] = communicates(plan.steps[s]);
  }

  // The stream for the next step.
  std::int32_t choose(std::int32_t step) const {
    std::optional<std::int32_t> best;
    for (std::int32_t k = 0; k < count(); ++k)
      if (!holds_up(k, step) && (!best || awaited(k, step) > awaited(*best, step))) best = k;
    if (best) return *best;
    return count() < kMaxStreams ? count() : idlest(step);
  }

  void place(std::int32_t stream, std::int32_t step) {
    if (stream == count()) streams_.emplace_back(to_index(order_.classes()));
    for (std::int32_t c : classes_of_[to_index(step)]) {
      std::vector<std::int32_t>& last = streams_[to_index(stream)][to_index(c)];
      if (talks_[to_index(step)]) last.clear();
      last.push_back(step);
    }
  }

 private:
  // By class: the last step in which ranks talk, and the local ones after it.
  using Stream = std::vector<std::vector<std::int32_t>>;

  std::int32_t count() const { return static_cast<std::int32_t>(streams_.size()); }

  // Whether any(class, step on the stream) holds for the last steps on the ranks of `step`.
  template <class Any>
  bool any_last(std::int32_t stream, std::int32_t step, Any&& any) const {
    for (std::int32_t c : classes_of_[to_index(step)])
      for (std::int32_t before : streams_[to_index(stream)][to_index(c)])
        if (any(c, before)) return true;
    return false;
  }

  // Whether the step would wait on the stream for what it need not wait for.
  bool holds_up(std::int32_t stream, std::int32_t step) const {
    return any_last(stream, step, [&](std::int32_t c, std::int32_t before) {
      return !order_.class_ordered(c, before, step) &&
             (talks_[to_index(before)] || !order_.waits_for_as_much(c, before, step, talks_));
    });
  }

  // The last step on the stream that the step waits for anyway; -1: none.
  std::int32_t awaited(std::int32_t stream, std::int32_t step) const {
    std::int32_t last = -1;
    any_last(stream, step, [&](std::int32_t c, std::int32_t before) {
      if (order_.class_ordered(c, before, step)) last = std::max(last, before);
      return false;
    });
    return last;
  }

  std::int32_t idlest(std::int32_t step) const {
    auto last = [&](std::int32_t stream) {
      std::int32_t found = -1;
      any_last(stream, step, [&](std::int32_t, std::int32_t before) {
        found = std::max(found, before);
        return false;
      });
      return found;
    };
    std::int32_t best = 0;
    for (std::int32_t k = 1; k < count(); ++k)
      if (last(k) < last(best)) best = k;
    return best;
  }

  StepOrder order_;
  std::vector<std::vector<std::int32_t>> classes_of_;  // by step
  std::vector<bool> talks_;                            // by step
  std::vector<Stream> streams_;
};

}  // namespace

bool assign_streams(Plan& plan) {
  bool changed = false;
  auto put = [&](std::size_t s, std::int32_t stream) {
    changed |= std::exchange(plan.steps[s].stream, stream) != stream;
  };
  if (plan.steps.size() == 1) put(0, 0);
  if (plan.steps.size() <= 1) return changed;
  Streams streams(plan);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    auto step = static_cast<std::int32_t>(s);
    std::int32_t stream = streams.choose(step);
    streams.place(stream, step);
    put(s, stream);
  }
  return changed;
}

}  // namespace reshard
