// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/validate/agreement.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/launch/meeting.h"
#include "core/base/errors.h"
#include "core/layout/mesh.h"
#include "tools/cli/validate/carriers.h"

namespace reshard::tools {

namespace {

// How one process fared: exit code 0 and the phase's result, or another code and its reasons.
struct Outcome {
  int exit_code = 0;
  std::string text;  // reasons, one per line
};

std::vector<std::byte> packed(const Outcome& outcome) {
  std::vector<std::byte> bytes{static_cast<std::byte>(outcome.exit_code)};
  std::span<const std::byte> text =
      std::as_bytes(std::span(outcome.text.data(), outcome.text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

Outcome unpacked(const std::vector<std::byte>& bytes) {
  RESHARD_CHECK(!bytes.empty(), "a process's outcome is missing");
  return {static_cast<int>(bytes[0]),
          std::string(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1)};
}

Outcome outcome_of(const Phase& phase) {
  try {
    return {0, phase()};
  } catch (...) {
    Failure failure = failure_of(std::current_exception());
    std::string reasons;
    for (const std::string& reason : failure.reasons)
      reasons += (reasons.empty() ? "" : "\n") + reason;
    return {failure.exit_code, reasons};
  }
}

std::vector<std::string> lines_of(const std::string& text, const std::string& prefix) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(prefix + text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Merges processes with the same reasons. Their ranks are left out if the root speaks for all that
// failed.
Failure failure_among(const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<std::string, std::vector<Rank>>> sayings;
  Failure out;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].exit_code == 0) continue;
    if (out.exit_code == 0) out.exit_code = outcomes[i].exit_code;
    auto same = std::find_if(sayings.begin(), sayings.end(),
                             [&](const auto& saying) { return saying.first == outcomes[i].text; });
    if (same == sayings.end()) same = sayings.insert(sayings.end(), {outcomes[i].text, {}});
    same->second.push_back(Rank{static_cast<std::int32_t>(i)});
  }
  bool root_speaks = sayings.size() == 1 && sayings[0].second.front() == Rank{0};
  for (const auto& [text, who] : sayings) {
    std::string prefix =
        root_speaks ? "" : fmt::format("rank{} {}: ", who.size() == 1 ? "" : "s", ranks_text(who));
    for (std::string& line : lines_of(text, prefix)) out.reasons.push_back(std::move(line));
  }
  return out;
}

// The root's verdict on a phase in which no process failed.
Failure difference_among(const std::vector<Outcome>& outcomes, std::string_view result_name) {
  for (std::size_t i = 1; i < outcomes.size(); ++i)
    if (outcomes[i].text != outcomes[0].text)
      return {2,
              {fmt::format("{}: expected the same on all processes, found {} on rank 0 and {} on "
                           "rank {}; do they have the same reshard, options and input files?",
                           result_name, outcomes[0].text, outcomes[i].text, i)}};
  return {};
}

namespace launch = backends::launch;

// Launchers start all their processes within less time than this.
constexpr std::chrono::seconds kMeeting{10};

// Through the backend where it connects processes itself: mpirun does not state where its first
// process runs.
void agree(const backends::BackendRow& backend, const launch::LaunchedProcess& launch,
           const Phase& phase) {
  if (!backend.facts.meets_at_rendezvous && backend.probe().usable) {
    backends::BackendOptions options;
    options.time_limit_s = kMeeting.count();
    together(backend.make(options)->processes(), "", phase);
  } else {
    launch::MeetingPlace place =
        launch::find_meeting_place({}, launch, launch::process_environment());
    together(*launch::meet(launch, place, kMeeting), "", phase);
  }
}

}  // namespace

void together(Processes& processes, std::string_view result_name, const Phase& phase) {
  if (processes.count() == 1) {
    phase();
    return;
  }
  std::vector<Outcome> outcomes;
  for (const std::vector<std::byte>& bytes : processes.gather(packed(outcome_of(phase))))
    outcomes.push_back(unpacked(bytes));
  Failure failure;
  if (processes.is_root()) {
    failure = failure_among(outcomes);
    if (failure.exit_code == 0) failure = difference_among(outcomes, result_name);
    // Reported before the others learn of it: a launcher ends all processes when the first one
    // exits.
    say(failure.reasons);
  }
  std::byte code{static_cast<std::uint8_t>(failure.exit_code)};
  std::vector<std::byte> verdict = processes.broadcast(std::span(&code, 1));
  RESHARD_CHECK(verdict.size() == 1, "the root's verdict is missing");
  if (verdict[0] != std::byte{0})
    throw Stopped{static_cast<int>(verdict[0]), std::move(failure.reasons)};
}

void waiting_for_others(Processes& processes, const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    if (processes.count() == 1) throw;
    Failure failure = failure_of(std::current_exception());
    for (std::string& reason : failure.reasons)
      reason = fmt::format("rank {}: {}", processes.index(), reason);
    say(failure.reasons);
    processes.abort(failure.exit_code);
    throw Stopped{failure.exit_code, std::move(failure.reasons)};
  }
}

const backends::BackendRow* backend_of(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "validate") return nullptr;
  constexpr std::string_view kOption = "--backend=";
  for (std::string_view word : std::span(argv + 2, argv + argc)) {
    if (word.starts_with(kOption)) word.remove_prefix(kOption.size());
    if (const backends::BackendRow* row = find_carrier(word); row && row->facts.launched_by)
      return row;
  }
  return nullptr;
}

launch::LaunchedProcess launch_of(const backends::BackendRow* backend) {
  if (backend == nullptr || !backend->facts.launched_by) return {};
  return launch::likely_launch(*backend->facts.launched_by);
}

void fail_together(const backends::BackendRow* backend, const std::exception_ptr& why) {
  launch::LaunchedProcess launch = launch_of(backend);
  Failure mine = failure_of(why);
  if (launch.size > 1) try {
      agree(*backend, launch, [&]() -> std::string { std::rethrow_exception(why); });
    } catch (const Stopped&) {
      throw;
    } catch (const std::exception&) {
      for (std::string& reason : mine.reasons)
        reason = fmt::format("rank {}: {}", launch.rank, reason);
    }
  say(mine.reasons);
  throw Stopped{mine.exit_code, {}};
}

}  // namespace reshard::tools
