// SPDX-License-Identifier: BSD-3-Clause
// What happens next: one data structure for each of the two questions that the engine asks at every
// instant.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

// Things that happen at a known time, in the order of (time, arrival).
//
// Thousands of messages often wait for the same instant. Items pushed one after another for one
// time share a bucket, and only buckets are ordered by a heap: a million equal latencies cost one
// heap entry. A bucket opened later for the same time has a larger number, so the order of arrival
// holds across buckets too.
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

  // Takes the oldest bucket of the next time; replaces `items`. The queue must not be empty. More
  // buckets of the same time may follow.
  void pop(std::vector<Item>& items) {
    QueuedBucket entry = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    items.clear();
    items.swap(buckets_[entry.bucket]);
    free_.push_back(entry.bucket);
    if (last_ == entry.bucket) last_ = kNone;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct QueuedBucket {
    std::int64_t time_ps, sequence;
    std::size_t bucket;
    friend auto operator<=>(const QueuedBucket&, const QueuedBucket&) = default;
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
  std::vector<QueuedBucket> heap_;  // smallest (time, sequence) on top
  std::size_t last_ = kNone;        // the bucket pushed to last, while it waits
  std::int64_t heap_time_of_last_ = 0, next_sequence_ = 0;
};

// The smallest of many times that change often: a tree of minima with 64 children per node.
//
// A heap would pay a logarithm for each of the thousands of finish times that one fair-share
// solution moves. Here setting a value costs a store and at most a mark on its block; a block is
// read again, once, if its minimum may have risen when the minimum is asked for. Every entry equal
// to the minimum is found by walking down.
class MinimumTree {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Entries are kNever until set; any index may be set.
  void set(std::int32_t index, std::int64_t value);
  std::int64_t at(std::int32_t index) const { return levels_[0].values[index]; }
  // kNever if there is none.
  std::int64_t minimum();
  // Appends to `out` the indices with the minimum value, ascending; none if it is kNever.
  void find_minimum(std::vector<std::int32_t>& out);

 private:
  static constexpr std::size_t kFan = 64;
  struct Level {
    IndexVector<std::size_t, std::int64_t> values;  // a multiple of kFan
    std::vector<std::uint8_t> outdated;  // the true minimum may be larger: read the children again
    std::vector<std::size_t> marked;     // those that are outdated
  };
  void grow(std::size_t entries);
  void pass_up(std::size_t level, std::size_t index, std::int64_t value, std::int64_t old_value);

  std::vector<Level> levels_ = std::vector<Level>(
      1);  // 0: the entries; each further level holds the minima of the blocks of the level before
};

}  // namespace reshard::sim
