// SPDX-License-Identifier: BSD-3-Clause
// Processes as threads of one test, with gather, broadcast and abort like real processes, so that
// agreement between processes is tested without a launcher.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/plan/executor.h"

namespace reshard::test {

// Thrown in a process that waits for others when one of them has ended all.
struct EndedByAnother : std::runtime_error {
  EndedByAnother() : std::runtime_error("ended by another process") {}
};

class ThreadedGroup {
 public:
  explicit ThreadedGroup(int count) : bytes_(static_cast<std::size_t>(count)) {}
  int count() const { return static_cast<int>(bytes_.size()); }

  // All processes' bytes, once every process has passed its own.
  std::vector<std::vector<std::byte>> exchange(int index, std::span<const std::byte> mine) {
    {
      std::lock_guard lock(mutex_);
      bytes_[static_cast<std::size_t>(index)].assign(mine.begin(), mine.end());
    }
    meet();
    std::vector<std::vector<std::byte>> all = bytes_;
    meet();
    return all;
  }
  void abort(int index, int exit_code) noexcept {
    std::lock_guard lock(mutex_);
    aborts_.emplace_back(index, exit_code);
    changed_.notify_all();
  }
  // (process, exit code) of every abort, in order.
  const std::vector<std::pair<int, int>>& aborts() const { return aborts_; }

 private:
  void meet() {
    std::unique_lock lock(mutex_);
    std::int64_t meeting = meeting_;
    if (++arrived_ == count()) {
      arrived_ = 0;
      ++meeting_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return meeting_ != meeting || !aborts_.empty(); });
    if (meeting_ == meeting) throw EndedByAnother();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::pair<int, int>> aborts_;
  int arrived_ = 0;
  std::int64_t meeting_ = 0;
};

class ThreadedProcesses : public Processes {
 public:
  ThreadedProcesses(ThreadedGroup& group, int index) : group_(group), index_(index) {}
  int index() const override { return index_; }
  int count() const override { return group_.count(); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
    std::vector<std::vector<std::byte>> all = group_.exchange(index_, mine);
    return is_root() ? all : std::vector<std::vector<std::byte>>{};
  }
  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override {
    return group_.exchange(index_, mine)[0];
  }
  void abort(int exit_code) noexcept override { group_.abort(index_, exit_code); }

 private:
  ThreadedGroup& group_;
  int index_;
};

// Runs the body as every process of the group, and waits for all. The body must not throw.
inline void run_processes(ThreadedGroup& group,
                          const std::function<void(ThreadedProcesses&)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < group.count(); ++i)
    threads.emplace_back([&group, &body, i] {
      ThreadedProcesses processes(group, i);
      body(processes);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace reshard::test
