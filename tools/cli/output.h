// SPDX-License-Identifier: BSD-3-Clause
// Where results go: standard output at once and whole, progress on standard error. (Files:
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

// Writes all of `text`, or all that `write` writes. A reader that has gone (`| head`) misses the
// rest quietly; other failures are BackendErrors.
void print(std::string_view text);
void print(const std::function<void(std::ostream&)>& write);

// As long as it lives, what this thread prints is kept, and nothing is said of progress.
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

// Columns of the screen: COLUMNS, else those of the terminal, else 80.
std::size_t screen_width();

// What the last system call that failed says: "No space left on device", "ENOSPC (No space ...)".
std::string reason();
std::string errno_name();

// What a command is at, on standard error: on a terminal one line that changes, once two seconds
// have passed; elsewhere a line now and then, so that a log shows that something goes on. A thread
// of its own writes, as work says only now and then how far it is.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // From here on; of the stage done, where it is counted, `done` of `total`.
  void stage(std::string_view what) { show(what, 0, 0); }
  // Its time counts as `phase`'s, where one is named.
  void show(std::string_view what, std::int64_t done, std::int64_t total,
            std::string_view phase = {});
  // From here on time counts as this one's; what is shown stays.
  void phase(std::string_view name);
  // Ends the stage. Before anything else is printed.
  void clear();
  // How long stages took so far, in the order in which they were begun; a name each once.
  std::vector<sim::PhaseTime> times() const;

 private:
  using Clock = std::chrono::steady_clock;
  void write_now_and_then();
  std::string line(Clock::time_point now) const;
  void end_phase(Clock::time_point now);
  void end_stage(Clock::time_point now);

  const bool on_terminal_;
  const Clock::time_point started_;
  mutable std::mutex mutex_;  // of all below
  std::string what_, phase_;  // shown, and whose time it is; empty: between stages
  std::int64_t done_ = 0, total_ = 0;
  Clock::time_point stage_started_, phase_started_;
  bool shown_ = false, over_ = false;
  std::vector<sim::PhaseTime> times_;
  std::condition_variable ended_;
  std::thread writer_;
};

}  // namespace reshard::tools
