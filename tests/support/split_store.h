// SPDX-License-Identifier: BSD-3-Clause
// An executor of several processes for tests: each runs the whole plan in its own store and shows
// only its own ranks' shards, corrupted where the test asks for it.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/plan/executor.h"
#include "sim/store/store.h"

namespace reshard::test {

// Flips the lowest bit of some elements of the ranks' destination shards, in the last tensor.
using Corruption = std::map<Rank, std::vector<std::size_t>>;

// One of several processes. It holds the ranks with slot % count == index, runs the whole plan in
// its own store and shows only its own ranks.
class SplitPrepared : public PreparedPlan {
 public:
  SplitPrepared(const Plan& plan, const Processes& processes, const Corruption& corruption,
                bool loses_spans)
      : plan_(plan),
        processes_(processes),
        corruption_(corruption),
        loses_spans_(loses_spans),
        prepared_(store_.prepare(plan)) {}

  using PreparedPlan::fill;
  using PreparedPlan::take;
  void fill(const FillSource& fill, TensorId tensor) override { prepared_->fill(fill, tensor); }
  Timeline run() override {
    Timeline all = prepared_->run(), own;
    own.end_ps = all.end_ps;
    for (const Span& span : all.spans)
      if (holds(span.rank) && !loses_spans_) own.spans.push_back(span);
    return own;
  }
  void take(const TakeDestination& take, TensorId tensor) override {
    bool is_last = to_index(tensor) + 1 == plan_.tensors.size();
    auto width = to_index(size_bytes(plan_.request(tensor).dtype()));
    prepared_->take(
        [&](Rank rank, std::span<const std::byte> bytes) {
          if (!holds(rank)) return;
          std::vector<std::byte> copy(bytes.begin(), bytes.end());
          if (auto wrong = corruption_.find(rank); is_last && wrong != corruption_.end())
            for (std::size_t element : wrong->second) copy[element * width] ^= std::byte{1};
          take(rank, copy);
        },
        tensor);
  }

 private:
  bool holds(Rank rank) const {
    return plan_.slot_of(rank) % processes_.count() == processes_.index();
  }

  const Plan& plan_;
  const Processes& processes_;
  const Corruption& corruption_;
  bool loses_spans_;
  std::int64_t now_ps_ = 0;
  sim::Store store_{sim::StoreOptions{.now_ps = [this] { return now_ps_ += 1000; }}};
  std::unique_ptr<PreparedPlan> prepared_;
};

class SplitStore : public Executor {
 public:
  SplitStore(Processes& processes, Corruption corruption, bool fails = false)
      : processes_(processes), corruption_(std::move(corruption)), fails_(fails) {}
  std::string_view name() const override { return "split"; }
  Processes& processes() override { return processes_; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override {
    if (fails_) throw std::runtime_error("no preparation");
    return std::make_unique<SplitPrepared>(plan, processes_, corruption_, false);
  }

 private:
  Processes& processes_;
  Corruption corruption_;
  bool fails_;
};

}  // namespace reshard::test
