// SPDX-License-Identifier: BSD-3-Clause
// Where results go: standard output, all at once; progress goes to standard error. (Files:
// output_files.h.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sim/study/run_facts.h"

namespace reshard::tools {

// Prints all of `text`, or all that `write` writes. If the reader is gone (`| head`) the rest is
// dropped silently; other failures are BackendErrors.
void print(std::string_view text);
void print(const std::function<void(std::ostream&)>& write);

// While an object of this class lives, this thread's output is captured and no progress is shown.
class Captured {
 public:
  Captured();
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string take() { return std::move(text_); }
  static bool on_this_thread();

 private:
  std::string text_;
  std::string* before_;
};

// The width of the screen in columns: $COLUMNS, else the terminal's, else 80.
std::size_t screen_width();

// The last system call's error: "No space left on device", "ENOSPC (No space ...)".
std::string reason();
std::string errno_name();

// Shows on standard error what a command is doing: on a terminal, one line that changes, once two
// seconds have passed; elsewhere a line now and then, so that a log shows that work goes on. A
// separate thread writes, because work reports its progress only now and then.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Starts a stage; show() adds that `done` of `total` are done, where they are counted.
  void stage(std::string_view what) { show(what, 0, 0); }
  // The stage's time counts towards `phase`, if one is named.
  void show(std::string_view what, std::int64_t done, std::int64_t total,
            std::string_view phase = {});
  // From here on time counts towards this phase; the line shown stays the same.
  void phase(std::string_view name);
  // Ends the stage. Call before anything else is printed.
  void clear();
  // The time of each phase so far, each name once, in the order in which they were begun.
  std::vector<sim::PhaseTime> times() const;

 private:
  using Clock = std::chrono::steady_clock;
  void write_now_and_then();
  std::string line(Clock::time_point now) const;
  void end_phase(Clock::time_point now);
  void end_stage(Clock::time_point now);

  const bool on_terminal_;
  const Clock::time_point started_;
  mutable std::mutex mutex_;  // guards all members below
  std::string what_, phase_;  // the stage shown, the phase timed; empty between stages
  std::int64_t done_ = 0, total_ = 0;
  Clock::time_point stage_started_, phase_started_;
  bool shown_ = false, over_ = false;
  std::vector<sim::PhaseTime> times_;
  std::condition_variable ended_;
  std::thread writer_;
};

}  // namespace reshard::tools
