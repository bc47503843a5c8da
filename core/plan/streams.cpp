// SPDX-License-Identifier: BSD-3-Clause
// Goes through the steps in listed order and knows, by class of ranks (StepOrder), what each stream
// would make the next step wait for.
#include "core/plan/streams.h"

#include <algorithm>
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

  std::int32_t count() const { return static_cast<std::int32_t>(streams_.size()); }
  void open() { streams_.emplace_back(to_index(order_.classes())); }

  // A step on the stream that `step` would have to wait for on some rank, though its own
  // dependencies do not make it.
  std::optional<SharedStream> in_the_way(std::int32_t stream, std::int32_t step) const {
    for (std::int32_t c : classes_of_[to_index(step)])
      for (std::int32_t before : at(stream, c))
        if (holds_up(c, before, step))
          return SharedStream{order_.first_of(c), StepId{before}, StepId{step}};
    return std::nullopt;
  }

  // All of them.
  std::vector<StepId> all_in_the_way(std::int32_t stream, std::int32_t step) const {
    std::vector<StepId> out;
    for (std::int32_t c : classes_of_[to_index(step)])
      for (std::int32_t before : at(stream, c))
        if (holds_up(c, before, step)) out.push_back(StepId{before});
    return out;
  }

  // The last step on the stream that `step` waits for anyway; -1: none.
  std::int32_t awaited(std::int32_t stream, std::int32_t step) const {
    std::int32_t last = -1;
    for (std::int32_t c : classes_of_[to_index(step)])
      for (std::int32_t before : at(stream, c))
        if (order_.class_ordered(c, before, step)) last = std::max(last, before);
    return last;
  }

  // The last step on the stream on any rank that has a part in `step`; -1: none.
  std::int32_t last(std::int32_t stream, std::int32_t step) const {
    std::int32_t last = -1;
    for (std::int32_t c : classes_of_[to_index(step)])
      for (std::int32_t before : at(stream, c)) last = std::max(last, before);
    return last;
  }

  // What `step` is known to wait for from now on need not be kept.
  void place(std::int32_t stream, std::int32_t step) {
    for (std::int32_t c : classes_of_[to_index(step)]) {
      std::vector<std::int32_t>& pending = streams_[to_index(stream)][to_index(c)];
      if (talks_[to_index(step)]) pending.clear();
      pending.push_back(step);
    }
  }

 private:
  // By class: the last step of the stream in which ranks talk, and the local ones after it.
  using Stream = std::vector<std::vector<std::int32_t>>;

  const std::vector<std::int32_t>& at(std::int32_t stream, std::int32_t rank_class) const {
    return streams_[to_index(stream)][to_index(rank_class)];
  }

  bool holds_up(std::int32_t c, std::int32_t before, std::int32_t step) const {
    if (order_.class_ordered(c, before, step)) return false;
    return talks_[to_index(before)] || !order_.waits_for_as_much(c, before, step, talks_);
  }

  StepOrder order_;
  std::vector<std::vector<std::int32_t>> classes_of_;  // by step
  std::vector<bool> talks_;                            // by step
  std::vector<Stream> streams_;
};

// The stream on which the step waits for nothing but its own; the one that it follows, if any.
std::optional<std::int32_t> free_stream(const Streams& streams, std::int32_t step) {
  std::optional<std::int32_t> best;
  for (std::int32_t k = 0; k < streams.count(); ++k)
    if (!streams.in_the_way(k, step) &&
        (!best || streams.awaited(k, step) > streams.awaited(*best, step)))
      best = k;
  return best;
}

// The stream that has been without work for longest.
std::int32_t idlest(const Streams& streams, std::int32_t step) {
  std::int32_t best = 0;
  for (std::int32_t k = 1; k < streams.count(); ++k)
    if (streams.last(k, step) < streams.last(best, step)) best = k;
  return best;
}

bool follow(Step& step, const std::vector<StepId>& others) {
  std::size_t before = step.after.size();
  step.after.insert(step.after.end(), others.begin(), others.end());
  std::sort(step.after.begin(), step.after.end());
  step.after.erase(std::unique(step.after.begin(), step.after.end()), step.after.end());
  return step.after.size() != before;
}

}  // namespace

bool assign_streams(Plan& plan, std::int32_t most) {
  for (Step& step : plan.steps) step.stream = 0;
  if (plan.steps.size() <= 1) return false;
  Streams streams(plan);
  bool changed = false;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    auto step = static_cast<std::int32_t>(s);
    std::optional<std::int32_t> stream = free_stream(streams, step);
    if (!stream && streams.count() < most) {
      streams.open();
      stream = streams.count() - 1;
    }
    if (!stream) {
      stream = idlest(streams, step);
      changed |= follow(plan.steps[s], streams.all_in_the_way(*stream, step));
    }
    plan.steps[s].stream = *stream;
    streams.place(*stream, step);
  }
  return changed;
}

std::optional<SharedStream> overlap_on_a_stream(const Plan& plan) {
  if (plan.steps.size() <= 1) return std::nullopt;
  Streams streams(plan);
  while (streams.count() < stream_count(plan)) streams.open();
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    auto step = static_cast<std::int32_t>(s);
    if (auto found = streams.in_the_way(plan.steps[s].stream, step)) return found;
    streams.place(plan.steps[s].stream, step);
  }
  return std::nullopt;
}

}  // namespace reshard
