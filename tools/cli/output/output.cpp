// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/output/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/report/table.h"
#include "tools/cli/output/output_stream.h"

namespace reshard::tools {

std::string reason() { return std::generic_category().message(errno); }

std::string errno_name() {
  return std::string(strerrorname_np(errno) != nullptr ? strerrorname_np(errno) : "error") + " (" +
         reason() + ")";
}

namespace {

// Where this thread's output is captured; null: it is printed.
thread_local std::string* captured = nullptr;

}  // namespace

Captured::Captured() : before_(std::exchange(captured, &text_)) {}
Captured::~Captured() { captured = before_; }

bool Captured::on_this_thread() { return captured != nullptr; }

void print(std::string_view text) {
  if (captured != nullptr) return void(captured->append(text));
  print([text](std::ostream& out) { out << text; });
}

void print(const std::function<void(std::ostream&)>& write) {
  if (captured != nullptr) {
    std::ostringstream out;
    write(out);
    captured->append(out.str());
    return;
  }
  errno = write_to(STDOUT_FILENO, write);
  // If the reader is gone, as with `yes | head`, the rest is dropped and all other work is done.
  if (errno != 0 && errno != EPIPE)
    throw BackendError("system", "write to standard output", errno_name(), -1);
}

std::size_t screen_width() {
  constexpr std::size_t kLeast = 40;
  std::size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS")) {
    std::from_chars(columns, columns + std::strlen(columns), width);
  } else if (winsize size{}; ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    width = size.ws_col;
  }
  return width == 0 ? sim::kTableWidth : std::max(width, kLeast);
}

Progress::Progress()
    : on_terminal_(isatty(STDERR_FILENO) != 0),
      started_(Clock::now()),
      stage_started_(started_),
      phase_started_(started_) {
  if (captured != nullptr) return;
  try {
    writer_ = std::thread([this] { write_now_and_then(); });
  } catch (const std::system_error&) {  // no thread available: no progress is shown
  }
}

Progress::~Progress() {
  clear();
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void Progress::show(std::string_view what, std::int64_t done, std::int64_t total,
                    std::string_view phase) {
  std::lock_guard lock(mutex_);
  if (what != what_) {
    end_stage(Clock::now());
    what_ = what;
    if (phase.empty()) phase = what;
  }
  if (!phase.empty()) {
    end_phase(Clock::now());
    phase_ = phase;
  }
  done_ = done;
  total_ = total;
}

void Progress::phase(std::string_view name) {
  std::lock_guard lock(mutex_);
  end_phase(Clock::now());
  phase_ = name;
}

void Progress::clear() {
  std::lock_guard lock(mutex_);
  end_stage(Clock::now());
  if (shown_ && on_terminal_) std::fprintf(stderr, "\r%78s\r", "");
  shown_ = false;
}

std::vector<sim::PhaseTime> Progress::times() const {
  std::lock_guard lock(mutex_);
  return times_;
}

void Progress::end_phase(Clock::time_point now) {
  if (!phase_.empty()) {
    std::int64_t ps =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - phase_started_).count() * 1'000;
    auto same = std::find_if(times_.begin(), times_.end(),
                             [&](const sim::PhaseTime& time) { return time.name == phase_; });
    if (same == times_.end()) same = times_.insert(times_.end(), {phase_, 0});
    same->time_ps += ps;
  }
  phase_.clear();
  phase_started_ = now;
}

void Progress::end_stage(Clock::time_point now) {
  end_phase(now);
  what_.clear();
  stage_started_ = now;
}

// "planning: 120 of 723, 12 s so far, about 60 s to go".
std::string Progress::line(Clock::time_point now) const {
  auto seconds = [](Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  };
  std::string out = what_;
  if (total_ > 0) out += fmt::format(": {} of {}", done_, total_);
  out += fmt::format(", {} s so far", seconds(now - started_));
  if (0 < done_ && done_ < total_)
    out += fmt::format(", about {} s to go",
                       seconds((now - stage_started_) / done_ * (total_ - done_)));
  return out;
}

void Progress::write_now_and_then() {
  constexpr std::chrono::seconds kFirst{2}, kInLog{30};
  constexpr std::chrono::milliseconds kOnTerminal{200};
  std::unique_lock lock(mutex_);
  Clock::time_point next = started_ + kFirst;
  while (!ended_.wait_until(lock, next, [this] { return over_; })) {
    Clock::time_point now = Clock::now();
    next = now + (on_terminal_ ? kOnTerminal : kInLog);
    if (what_.empty()) continue;
    shown_ = true;
    std::fprintf(stderr, on_terminal_ ? "\r%-78.78s" : "reshard: %s\n", line(now).c_str());
    std::fflush(stderr);
  }
}

}  // namespace reshard::tools
