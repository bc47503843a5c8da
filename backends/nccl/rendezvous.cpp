// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "backends/nccl/star.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::chrono::milliseconds kAttempt{5000}, kPause{20}, kLongestPause{500};

// The file of a meeting place: port, then addresses. Written beside and renamed, so that nobody
// reads half of it; gone once all have come.
class AddressFile {
 public:
  AddressFile(const std::string& path, int port) : path_(path) {
    std::string beside = fmt::format("{}.{}", path, ::getpid());
    std::ofstream out(beside);
    out << port << ' ' << own_addresses() << '\n';
    out.close();
    if (!out || std::rename(beside.c_str(), path.c_str()) != 0) {
      std::remove(beside.c_str());
      throw InputError(fmt::format("rendezvous file {}: cannot be written", path));
    }
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;
  ~AddressFile() { std::remove(path_.c_str()); }

 private:
  std::string path_;
};

struct Address {
  std::string host;
  int port;
};

// Read anew before every attempt: a file may be left from another job.
std::vector<Address> addresses(const MeetingPlace& place) {
  if (!place.host.empty()) return {{place.host, place.port}};
  std::ifstream in(place.file);
  std::vector<Address> out;
  int port = 0;
  if (in >> port && port > 0 && port < 65536)
    for (std::string host; in >> host;) out.push_back({host, port});
  return out;
}

std::unique_ptr<Meeting> host(const Launch& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit) {
  if (!place.host.empty()) return Star::host(Listener(place.host, place.port), launch.size, limit);
  Listener listener("", 0);
  AddressFile file(place.file, listener.port());
  return Star::host(std::move(listener), launch.size, limit);
}

std::unique_ptr<Meeting> join(const Launch& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit) {
  Deadline deadline = Clock::now() + limit;
  std::string where =
      place.host.empty() ? "file " + place.file : fmt::format("{}:{}", place.host, place.port);
  std::string trouble = place.host.empty()
                            ? "there is no such file, or nobody listens where it says"
                            : "nobody listens there";
  for (std::chrono::milliseconds pause = kPause;; pause = std::min(pause * 2, kLongestPause)) {
    for (const Address& address : addresses(place)) {
      Socket connection = connect_once(address.host, address.port,
                                       std::min(deadline, Clock::now() + kAttempt), trouble);
      if (!connection.open()) continue;
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      // Rank 0 answers when all have come, which may take to the end; waits that come later have
      // the whole limit again.
      if (std::unique_ptr<Star> star =
              Star::join(std::move(connection), launch.rank, launch.size, {left, limit}, trouble))
        return star;
    }
    if (Clock::now() + pause > deadline)
      throw BackendError("system", "meeting rank 0 at " + where,
                         fmt::format("not within {}: {}", limit, trouble), launch.rank);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::unique_ptr<Meeting> meet(const Launch& launch, const MeetingPlace& place,
                              std::chrono::milliseconds limit) {
  if (launch.size == 1) return std::make_unique<Meeting>();
  return launch.rank == 0 ? host(launch, place, limit) : join(launch, place, limit);
}

}  // namespace reshard::backends::nccl
