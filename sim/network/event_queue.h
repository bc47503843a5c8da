// SPDX-License-Identifier: BSD-3-Clause
// Things that happen at a known time, taken by (time, order of arrival).
//
// Thousands of messages often wait for the same instant. Items pushed one after the other for one
// time share a bucket, and only buckets are ordered by a heap: a million equal latencies cost one
// heap entry. A bucket pushed later for the same time has a larger number, so the order of arrival
// holds across buckets too.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace reshard::sim {

template <typename Item>
class EventQueue {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  void push(std::int64_t time_ps, const Item& item) {
    if (last_ == kNone || heap_time_of_last_ != time_ps) open_bucket(time_ps);
    buckets_[last_].push_back(item);
  }

  // kNever when empty.
  std::int64_t next_time_ps() const { return heap_.empty() ? kNever : heap_.front().time_ps; }

  // Takes the oldest bucket of the next time; `items` is replaced. There must be one; more of the
  // same time may follow.
  void pop(std::vector<Item>& items) {
    Entry entry = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    items.clear();
    items.swap(buckets_[entry.bucket]);
    free_.push_back(entry.bucket);
    if (last_ == entry.bucket) last_ = kNone;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Entry {
    std::int64_t time_ps, sequence;
    std::size_t bucket;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void open_bucket(std::int64_t time_ps) {
    if (free_.empty()) {
      free_.push_back(buckets_.size());
      buckets_.emplace_back();
    }
    last_ = free_.back();
    free_.pop_back();
    heap_time_of_last_ = time_ps;
    heap_.push_back({time_ps, next_sequence_++, last_});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::vector<std::vector<Item>> buckets_;
  std::vector<std::size_t> free_;
  std::vector<Entry> heap_;   // smallest (time, sequence) on top
  std::size_t last_ = kNone;  // the bucket pushed to last, while it waits
  std::int64_t heap_time_of_last_ = 0, next_sequence_ = 0;
};

}  // namespace reshard::sim
