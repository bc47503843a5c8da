// SPDX-License-Identifier: BSD-3-Clause
// Messages between threads of one process, in place of a communicator in the tests of the C API.
#pragma once

#include <reshard/reshard.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace reshard::test {

class Mailboxes {
 public:
  // What RESHARD_BACKEND_ERROR then says: another rank has failed, a message has another size than
  // expected, or none came in time.
  static constexpr std::int32_t kAbandoned = 11, kWrongSize = 12, kTooLate = 13, kSentTwice = 14;

  std::int32_t exchange(std::int32_t rank, const reshard_transfer* sends, std::int32_t send_count,
                        const reshard_transfer* receives, std::int32_t receive_count) {
    std::unique_lock lock(mutex_);
    for (std::int32_t k = 0; k < send_count; ++k) {
      const auto* data = static_cast<const std::byte*>(sends[k].data);
      if (!messages_.try_emplace({rank, sends[k].peer, sends[k].tag}, data, data + sends[k].bytes)
               .second)
        return kSentTwice;
    }
    changed_.notify_all();
    for (std::int32_t k = 0; k < receive_count; ++k) {
      std::tuple key{receives[k].peer, rank, receives[k].tag};
      bool came = changed_.wait_for(lock, std::chrono::seconds(60),
                                    [&] { return failed_ || messages_.contains(key); });
      if (!came) return kTooLate;
      if (failed_) return kAbandoned;
      auto message = messages_.extract(key);
      if (message.mapped().size() != static_cast<std::size_t>(receives[k].bytes)) return kWrongSize;
      std::memcpy(receives[k].data, message.mapped().data(), message.mapped().size());
    }
    return 0;
  }

  void fail() {
    std::unique_lock lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }
  std::size_t left() const { return messages_.size(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // By source, destination, tag.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<std::byte>> messages_;
  bool failed_ = false;
};

}  // namespace reshard::test
