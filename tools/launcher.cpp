// SPDX-License-Identifier: BSD-3-Clause
#include "tools/launcher.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/job/meeting.h"
#include "tools/agreement.h"
#include "tools/backend_choice.h"
#include "tools/commands.h"
#include "tools/failure.h"

namespace reshard::tools {

namespace {

namespace job = backends::job;

// Launchers start their processes within less.
constexpr std::chrono::seconds kMeeting{10};

bool is_of_many(std::string_view backend) { return backend == "mpi" || backend == "nccl"; }

// Through MPI where it works, since mpirun does not say where its first process is.
void agree(const std::string& backend, const job::Launch& launch, const Phase& phase) {
  if (backend == "mpi" && backend_info(backend).status.usable) {
    backends::BackendOptions options;
    options.time_limit_s = kMeeting.count();
    together(backends::find_backend(backend).make(options)->processes(), "", phase);
  } else {
    job::MeetingPlace place = job::find_meeting_place({}, launch, job::process_environment());
    together(*job::meet(launch, place, kMeeting), "", phase);
  }
}

}  // namespace

std::string backend_of(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "validate") return {};
  constexpr std::string_view kOption = "--backend=";
  for (std::string_view word : std::span(argv + 2, argv + argc)) {
    if (word.starts_with(kOption)) word.remove_prefix(kOption.size());
    if (is_of_many(word)) return std::string(word);
  }
  return {};
}

job::Launch launch_of(std::string_view backend) {
  if (!is_of_many(backend)) return {};
  return job::likely_launch(backend == "mpi" ? job::Among::MpiStarts : job::Among::All);
}

void fail_together(const std::string& backend, const std::exception_ptr& why) {
  job::Launch launch = launch_of(backend);
  Failure mine = failure_of(why);
  if (launch.size > 1) try {
      agree(backend, launch, [&]() -> std::string { std::rethrow_exception(why); });
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
