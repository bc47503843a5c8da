// SPDX-License-Identifier: BSD-3-Clause
// The event queue and the tree of minima against simple lists.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/sharing/queues.h"
#include "tests/support/prng.h"

using namespace reshard::sim;
using reshard::test::Prng;

TEST_CASE("events come by time, then in the order of arrival") {
  Prng prng(7);
  EventQueue<int> queue;
  std::vector<std::pair<std::int64_t, int>> waiting;  // in order of arrival
  std::vector<int> taken;
  int next = 0, out = 0;
  for (int round = 0; round < 3000; ++round) {
    for (std::int64_t k = prng.below(4); k > 0; --k) {
      std::int64_t time = prng.between(0, 9);
      queue.push(time, next);
      waiting.emplace_back(time, next++);
    }
    if (waiting.empty()) {
      REQUIRE(queue.next_time_ps() == EventQueue<int>::kNever);
      continue;
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    REQUIRE(queue.next_time_ps() == waiting.front().first);
    queue.pop(taken);
    REQUIRE_FALSE(taken.empty());
    for (int item : taken) {
      REQUIRE(item == waiting.front().second);
      waiting.erase(waiting.begin());
      ++out;
    }
  }
  CHECK(out > 3000);
}

TEST_CASE("what is pushed while its instant is worked off comes in the same instant") {
  EventQueue<int> queue;
  std::vector<int> taken;
  queue.push(5, 1);
  queue.pop(taken);
  queue.push(5, 2);
  CHECK(queue.next_time_ps() == 5);
  queue.pop(taken);
  CHECK(taken == std::vector<int>{2});
}

TEST_CASE("the tree of minima finds every entry of the least value") {
  for (std::int32_t size : {1, 63, 64, 65, 4096, 5000, 300000}) {
    INFO("size " << size);
    Prng prng(static_cast<std::uint64_t>(size));
    MinimumTree tree;
    std::vector<std::int64_t> plain(static_cast<std::size_t>(size), MinimumTree::kNever);
    CHECK(tree.minimum() == MinimumTree::kNever);
    for (int round = 0; round < 60; ++round) {
      for (int k = 0; k < 50; ++k) {
        auto index = static_cast<std::int32_t>(prng.below(size));
        std::int64_t value = prng.one_in(4) ? MinimumTree::kNever : prng.between(0, 30);
        tree.set(index, value);
        plain[static_cast<std::size_t>(index)] = value;
      }
      std::int64_t least = *std::min_element(plain.begin(), plain.end());
      REQUIRE(tree.minimum() == least);
      std::vector<std::int32_t> found, expected;
      tree.find_minimum(found);
      for (std::int32_t i = 0; i < size; ++i)
        if (plain[static_cast<std::size_t>(i)] == least && least != MinimumTree::kNever)
          expected.push_back(i);
      REQUIRE(found == expected);
      // The next minimum is another one.
      for (std::int32_t i : found) {
        tree.set(i, MinimumTree::kNever);
        plain[static_cast<std::size_t>(i)] = MinimumTree::kNever;
      }
    }
  }
}
