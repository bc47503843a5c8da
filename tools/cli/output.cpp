// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/report/table.h"

namespace reshard::tools {

namespace {

std::string reason() { return std::generic_category().message(errno); }

// Where this thread's output is kept; null: it is printed.
thread_local std::string* captured = nullptr;

// Ends as `yes | head` does: without a word.
[[noreturn]] void end_quietly() { std::_Exit(0); }

// What a link points to in the end, whether that exists or not; other paths as they are. A link
// keeps pointing where it does; what it points to is replaced.
std::filesystem::path target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel allows
  std::filesystem::path out = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(out, error); ++i)
    out = out.parent_path() / std::filesystem::read_symlink(out, error);
  return out;
}

bool is_device_or_pipe(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
}

std::string errno_name() {
  return std::string(strerrorname_np(errno) != nullptr ? strerrorname_np(errno) : "error") + " (" +
         reason() + ")";
}

void require_writable(const NamedFile& output) {
  const auto& [path, option] = output;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(std::string(option) + ": expected a file, found the directory " +
                     quoted(path, 200));
  std::filesystem::path folder = target_of(path).parent_path();
  if (folder.empty()) folder = ".";
  const std::filesystem::path written =
      is_device_or_pipe(path) ? std::filesystem::path(path) : folder;
  if (!std::filesystem::is_directory(folder, ignored))
    throw InputError(std::string(option) + ": expected a file in a folder that exists, found " +
                     quoted(path, 200));
  if (access(written.c_str(), W_OK) != 0)
    throw InputError(std::string(option) + ": cannot write " + quoted(path, 200) + ": " + reason());
}

bool is_same_file(const std::string& path, const std::string& other) {
  std::error_code error;
  if (std::filesystem::equivalent(path, other, error)) return true;  // hard links, too
  auto place = [&](const std::string& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(target_of(name), error),
                                             error);
  };
  return place(path) == place(other);
}

void require_apart(const NamedFile& output, const NamedFile& other) {
  if (other.path.empty() || other.path == "-" || is_device_or_pipe(output.path)) return;
  if (is_same_file(output.path, other.path))
    throw InputError(std::string(output.option) + ": expected another file than that of " +
                     std::string(other.option) + ", found " + quoted(output.path, 200));
}

}  // namespace

Captured::Captured() : before_(std::exchange(captured, &text_)) {}
Captured::~Captured() { captured = before_; }

void print(std::string_view text) {
  if (captured != nullptr) {
    captured->append(text);
    return;
  }
  std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) end_quietly();
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

void require_standard_input() {
  std::cin.peek();
  if (std::ferror(stdin) != 0)
    throw InputError("<stdin>: expected a readable file, found: " + reason());
}

void require_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty()) continue;
    bool printed = output->path == "-";
    if (!printed) require_writable(*output);
    for (auto other = outputs.begin(); other != output; ++other)
      if (printed && other->path == "-")
        throw InputError(std::string(output->option) + ": expected a file where " +
                         std::string(other->option) + " goes to standard output, found '-'");
      else if (!printed)
        require_apart(*output, *other);
    if (printed) continue;
    for (const NamedFile& input : inputs) require_apart(*output, input);
  }
}

void write_file(const std::string& path, std::string_view option,
                const std::function<void(std::ostream&)>& write) {
  if (path == "-" && captured != nullptr) {
    std::ostringstream out;
    write(out);
    return print(out.str());
  }
  if (path == "-") {
    write(std::cout);
    std::cout.flush();
    if (!std::cout && errno == EPIPE) end_quietly();
    if (!std::cout) throw BackendError("system", "write to standard output", errno_name(), -1);
    return;
  }
  require_writable({path, option});
  bool special = is_device_or_pipe(path);
  std::string final_path = target_of(path).string();
  std::string beside = special ? path : final_path + ".part" + std::to_string(getpid());

  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  if (!out)
    throw InputError(std::string(option) + ": cannot create " + quoted(path, 200) + ": " +
                     reason());
  try {
    write(out);
    out.close();
    if (!out) throw BackendError("system", "write " + quoted(path, 200), errno_name(), -1);
    std::error_code error;
    std::filesystem::file_status old = std::filesystem::status(final_path, error);
    if (!special && std::filesystem::exists(old))
      std::filesystem::permissions(beside, old.permissions(), error);
    if (!special && std::rename(beside.c_str(), final_path.c_str()) != 0)
      throw BackendError("system", "rename to " + quoted(final_path, 200), errno_name(), -1);
  } catch (...) {
    if (!special) std::remove(beside.c_str());
    throw;
  }
}

Progress::Progress()
    : on_terminal_(isatty(STDERR_FILENO) != 0),
      started_(Clock::now()),
      stage_started_(started_),
      phase_started_(started_) {
  if (captured != nullptr) return;
  try {
    writer_ = std::thread([this] { write_now_and_then(); });
  } catch (const std::system_error&) {  // no thread can be had: no progress is shown
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
