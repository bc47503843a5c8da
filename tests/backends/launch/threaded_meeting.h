// SPDX-License-Identifier: BSD-3-Clause
// A meeting of threads over real connections on the loopback interface.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "backends/launch/meeting.h"

namespace reshard::backends::launch {

inline constexpr std::chrono::milliseconds kPlenty{20'000};

// A file that nobody has used.
inline MeetingPlace new_place() {
  static std::atomic<int> count = 0;
  std::string name =
      "reshard_meeting_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
  return {"", 0, (std::filesystem::temp_directory_path() / name).string()};
}

inline std::unique_ptr<Meeting> meet_as(std::int32_t rank, std::int32_t size,
                                        const MeetingPlace& place,
                                        std::chrono::milliseconds limit = kPlenty) {
  return meet({"options", rank, size, {}, {}}, place, limit);
}

// Every rank calls the body on a thread of its own; what each threw, as text.
inline std::vector<std::string> run_ranks(std::int32_t size,
                                          const std::function<void(Meeting&)>& body,
                                          std::chrono::milliseconds limit = kPlenty) {
  MeetingPlace place = new_place();
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        body(*meet_as(r, size, place, limit));
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(r)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace reshard::backends::launch
