// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/communicator_meeting.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "backends/launch/patience.h"
#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard::backends::nccl {
namespace {
constexpr std::int64_t kAlignment = 256;
}

std::vector<std::vector<std::byte>> CommunicatorMeeting::gather(std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> all = share(mine);
  return is_root() ? all : std::vector<std::vector<std::byte>>();
}

std::vector<std::byte> CommunicatorMeeting::broadcast(std::span<const std::byte> mine) {
  return share(is_root() ? mine : std::span<const std::byte>()).front();
}

// Two rounds: first the number of bytes of each process, then the bytes, padded to the longest.
std::vector<std::vector<std::byte>> CommunicatorMeeting::share(std::span<const std::byte> mine) {
  auto count = to_index(facts_.size);
  std::uint64_t size = mine.size();
  std::vector<std::byte> packed_sizes = share_equal(std::as_bytes(std::span(&size, 1)));
  std::vector<std::uint64_t> sizes(count);
  std::memcpy(sizes.data(), packed_sizes.data(), packed_sizes.size());
  std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::vector<std::byte>> out(count);
  if (longest == 0) return out;
  std::vector<std::byte> padded(longest);
  std::copy(mine.begin(), mine.end(), padded.begin());
  std::vector<std::byte> all = share_equal(padded);
  for (std::size_t r = 0; r < count; ++r) {
    const std::byte* at = all.data() + r * longest;
    out[r].assign(at, at + sizes[r]);
  }
  return out;
}

std::vector<std::byte> CommunicatorMeeting::share_equal(std::span<const std::byte> mine) {
  auto bytes = static_cast<std::int64_t>(mine.size()),
       place = ceil_div(bytes, kAlignment) * kAlignment;
  std::vector<std::byte> out(mine.size() * to_index(facts_.size));
  std::byte *from = space(place + bytes * facts_.size), *to = from + place;
  EventOwner event(device_);
  try {
    device_.upload(from, mine, caller_.stream);
    device_.select();
    checked(api_.all_gather(from, to, bytes, NcclType::Uint8, caller_.comm, caller_.stream),
            "ncclAllGather");
    wait(event.get());  // before download, which could wait without a limit
    device_.download(out, to, caller_.stream);
    wait(event.get());
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
  return out;
}

std::byte* CommunicatorMeeting::space(std::int64_t bytes) {
  if (spaces_.empty() || spaces_.back().bytes() < bytes) spaces_.emplace_back(device_, bytes);
  return spaces_.back().data();
}

void CommunicatorMeeting::give_up(const std::string&) noexcept {
  for (DeviceMemory& memory : spaces_) memory.abandon();
  spaces_.clear();
}

void CommunicatorMeeting::wait(Event event) {
  device_.record(event, caller_.stream);
  launch::Patience patience(limit_);
  while (!device_.done(event)) {
    bool in_time = patience.idle();
    if (patience.time_to_look()) check_communicator();
    if (!in_time)
      throw BackendError("NCCL", "ncclAllGather between all ranks, while preparing a plan",
                         fmt::format("not done within {}", limit_), facts_.rank);
  }
}

// A call on a non-blocking communicator may return before its work is on the stream.
void CommunicatorMeeting::checked(NcclResult result, const char* call) {
  launch::Patience patience(limit_);
  while (result == NcclResult::InProgress) {
    if (!patience.idle())
      throw BackendError("NCCL", call, fmt::format("not done within {}", limit_), facts_.rank);
    NcclResult asked = api_.async_error(caller_.comm, &result);
    if (asked != NcclResult::Success) result = asked;
  }
  if (result == NcclResult::Success) return;
  std::string last = api_.last_error(caller_.comm);
  throw BackendError(
      "NCCL", call, api_.error_text(result) + (last.empty() ? "" : " (" + last + ")"), facts_.rank);
}

void CommunicatorMeeting::check_communicator() {
  NcclResult state = NcclResult::Success, asked = api_.async_error(caller_.comm, &state);
  if (asked == NcclResult::Success &&
      (state == NcclResult::Success || state == NcclResult::InProgress))
    return;
  checked(asked == NcclResult::Success ? state : asked, "ncclAllGather");
}

}  // namespace reshard::backends::nccl
