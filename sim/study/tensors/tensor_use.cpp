// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/tensors/tensor_use.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/schedule/lowering.h"
#include "core/traffic/transfers.h"

namespace reshard::sim {
namespace {

struct Times {
  std::int64_t start_ps = 0, end_ps = 0;
};

TensorUse use_of(std::int64_t bytes, const Times& times) {
  return {bytes, times.start_ps, times.end_ps};
}

// When the ranks had their parts of one step after the other.
class PartTimes {
 public:
  PartTimes(const Plan& plan, const Timeline& timeline, OpId op)
      : plan_(plan), by_slot_(plan.slot_count()) {
    auto before = [](const Span& span, OpId of) { return span.op < of; };
    auto first = std::lower_bound(timeline.spans.begin(), timeline.spans.end(), op, before);
    auto last =
        std::find_if(first, timeline.spans.end(), [&](const Span& span) { return span.op != op; });
    spans_ = {first, last};
  }

  // Steps in ascending order.
  void go_to(std::size_t step) {
    while (next_ < spans_.size() && to_index(spans_[next_].step) < step) ++next_;
    all_ = {};
    for (std::size_t first = next_; next_ < spans_.size() && to_index(spans_[next_].step) == step;
         ++next_) {
      const Span& span = spans_[next_];
      Times own{span.start_ps, span.end_ps};
      by_slot_[to_index(plan_.slot_of(span.rank))] = own;
      if (next_ == first) all_ = own;
      all_ = {std::min(all_.start_ps, own.start_ps), std::max(all_.end_ps, own.end_ps)};
    }
  }

  const Times& all() const { return all_; }
  Times message(Slot source, Slot destination) const {
    const Times &from = by_slot_[to_index(source)], &to = by_slot_[to_index(destination)];
    return {std::max(from.start_ps, to.start_ps), std::min(from.end_ps, to.end_ps)};
  }

 private:
  const Plan& plan_;
  std::span<const Span> spans_;
  std::size_t next_ = 0;
  std::vector<Times> by_slot_;
  Times all_;
};

}  // namespace

TensorUse& TensorUse::operator+=(const TensorUse& more) {
  add_bytes(received_bytes, more.received_bytes);
  if (more.first_ps) first_ps = std::min(first_ps.value_or(*more.first_ps), *more.first_ps);
  if (more.last_ps) last_ps = std::max(last_ps.value_or(*more.last_ps), *more.last_ps);
  return *this;
}

IndexVector<TensorId, TensorUse> tensor_uses(const Plan& plan, const Timeline& timeline, OpId op,
                                             const SeriesJob* job) {
  IndexVector<TensorId, TensorUse> out(job != nullptr ? job->tensor_count() : plan.tensors.size());
  auto use_by = [&](TensorId tensor, std::int64_t i) -> TensorUse& {
    return out[job != nullptr ? job->tensors[to_index(tensor)][to_index(i)] : tensor];
  };
  PartTimes times(plan, timeline, op);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    times.go_to(s);
    const Step& step = plan.steps[s];
    if (const CollectiveStep* collective = collective_of(step)) {
      TensorUse& use = use_by(plan.buffer(collective->input).tensor(), 0);
      for_each_receipt(plan, step, [&](Slot, std::int64_t bytes) {
        if (bytes > 0) use += use_of(bytes, times.all());
      });
      continue;
    }
    for_each_sent_box(plan, step, [&](Slot source, Slot destination, const SentBox& box) {
      TensorUse use = use_of(box.bytes / box.boxes, times.message(source, destination));
      for (std::int64_t i = 0; i < box.boxes; ++i) use_by(box.tensor, box.first + i) += use;
    });
  }
  return out;
}

}  // namespace reshard::sim
