// SPDX-License-Identifier: BSD-3-Clause
// A star around rank 0. A connection starts with a greeting that carries the protocol's magic
// number, the rank and the size of the job; rank 0 sends a process that does not fit the reason why
// it is refused. Then frames follow: a header and some bytes. A process that ends normally sends a
// last frame; one that fails sends the reason, which rank 0 passes on; one that dies closes its
// connection. Every wait ends by the time limit and notices any process that ends meanwhile.
#include "backends/launch/meeting.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/launch/socket.h"
#include "core/base/errors.h"
#include "core/base/printable.h"

namespace reshard::backends::launch {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMagic = 0x3164726168736572u;  // "reshard1", little-endian
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxReason = 4096;
constexpr milliseconds kGreetingTime{5000}, kGoodbyeTime{1000}, kSlice{50}, kPause{20},
    kLongestPause{500};

enum class Kind : std::uint64_t { Welcome, Refusal, Data, Goodbye, GivenUp };

struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0, size = 0;
};
struct Header {
  std::uint64_t magic = kMagic;
  Kind kind = Kind::Data;
  std::uint64_t bytes = 0;
};

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Deadline in(milliseconds time) { return Clock::now() + time; }

Delivery send_frame(Socket& socket, Kind kind, std::span<const std::byte> bytes,
                    milliseconds limit) noexcept {
  Header header{kMagic, kind, bytes.size()};
  Delivery sent = socket.send(bytes_of(header), in(limit));
  return sent == Delivery::Done ? socket.send(bytes, in(limit)) : sent;
}

void send_reason(Socket& socket, Kind kind, const std::string& why) noexcept {
  send_frame(socket, kind, std::as_bytes(std::span(why)), kGoodbyeTime);
}

// The text that follows a header.
std::string receive_reason(Socket& socket, const Header& header) {
  std::string reason(std::min<std::size_t>(header.bytes, kMaxReason), ' ');
  Delivery got = socket.receive(std::as_writable_bytes(std::span(reason)), in(kGoodbyeTime));
  return got == Delivery::Done ? reason : "for a reason that was lost";
}

class Star : public Meeting {
 public:
  Star(std::int32_t rank, std::int32_t size, milliseconds limit)
      : rank_(rank), size_(size), limit_(limit) {}
  ~Star() override {
    if (std::uncaught_exceptions() > 0) give_up(fmt::format("rank {} failed", rank_));
    if (!failed_.empty()) return;
    for (Peer& peer : peers_) send_frame(peer.socket, Kind::Goodbye, {}, kGoodbyeTime);
  }

  // Rank 0: waits until all other ranks have connected.
  void host(const Socket& listener);
  // Any other rank, given a connection to what may be rank 0. Rank 0 answers once all ranks have
  // arrived. Returns false if the other end does not speak the protocol, with the reason in
  // `trouble`.
  bool join(Socket connection, Deadline deadline, std::string& trouble);

  int index() const override { return rank_; }
  int count() const override { return size_; }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override;
  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override;
  void check() override {
    ensure_alive();
    for (std::size_t p = 0; p < peers_.size(); ++p) arrived(p, milliseconds(0));
  }
  void give_up(const std::string& why) noexcept override {
    if (!failed_.empty()) return;
    failed_ = why.empty() ? "it gave no reason" : why.substr(0, kMaxReason);
    for (Peer& peer : peers_) send_reason(peer.socket, Kind::GivenUp, failed_);
  }
  void abort(int exit_code) noexcept override {
    give_up(fmt::format("rank {} ended with exit code {}", rank_, exit_code));
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

 private:
  struct Peer {
    std::int32_t rank;
    Socket socket = {};
    bool has_left = false;
  };

  // Accepts the process at the other end, or refuses it.
  void admit(Socket connection);
  void send(Peer& peer, std::span<const std::byte> bytes);
  std::vector<std::byte> receive(std::size_t p);
  // Whether the peer's next message has begun to arrive; throws if the peer has ended or given up.
  bool arrived(std::size_t p, milliseconds patience);
  void ensure_alive() const {
    if (!failed_.empty())
      throw BackendError("system", "waiting for the other ranks", failed_, rank_);
  }
  // The job cannot go on: informs the other processes and throws.
  void fail(const std::string& why) {
    give_up(why);
    ensure_alive();
  }

  std::int32_t rank_, size_;
  milliseconds limit_;
  std::vector<Peer> peers_;  // at rank 0: ranks 1 .. size-1; elsewhere: rank 0
  std::string failed_;       // why the job cannot go on; empty while it can
};

void Star::host(const Socket& listener) {
  Deadline deadline = in(limit_);
  for (std::int32_t rank = 1; rank < size_; ++rank) peers_.push_back({rank});
  while (true) {
    std::vector<std::int32_t> missing;
    for (const Peer& peer : peers_)
      if (!peer.socket.open()) missing.push_back(peer.rank);
    if (missing.empty()) break;
    Socket found = accept_at(listener, deadline);
    if (!found.open())
      fail(fmt::format("nothing received from rank{} {} within {}", missing.size() > 1 ? "s" : "",
                       fmt::join(missing, ","), limit_));
    admit(std::move(found));
  }
  for (Peer& peer : peers_) send_frame(peer.socket, Kind::Welcome, {}, kGreetingTime);
}

void Star::admit(Socket connection) {
  Greeting greeting;
  if (connection.receive(bytes_of(greeting), in(kGreetingTime)) != Delivery::Done ||
      greeting.magic != kMagic)
    return;  // not a process of this protocol
  auto p = to_index(greeting.rank) - 1;
  std::string why;
  if (greeting.size != size_)
    why = fmt::format("rank 0 expects {} ranks in the job, but rank {} expects {}", size_,
                      greeting.rank, greeting.size);
  else if (p >= peers_.size())
    why = fmt::format("a second process claims to be rank {}", greeting.rank);
  else if (peers_[p].socket.open())
    why = fmt::format("two processes claim to be rank {}", greeting.rank);
  else
    return std::swap(peers_[p].socket, connection);
  send_reason(connection, Kind::Refusal, why);
  give_up(why);
  throw InputError("rendezvous: " + why);
}

bool Star::join(Socket connection, Deadline deadline, std::string& trouble) {
  Greeting greeting{kMagic, rank_, size_};
  Header answer;
  Delivery got = connection.send(bytes_of(greeting), deadline);
  if (got == Delivery::Done) got = connection.receive(bytes_of(answer), deadline);
  trouble = got == Delivery::TimedOut ? "rank 0 waits for other ranks"
                                      : "the process that answers is not rank 0 of a reshard job";
  if (got != Delivery::Done || answer.magic != kMagic) return false;
  if (answer.kind == Kind::Refusal)
    throw InputError("rendezvous: " + receive_reason(connection, answer));
  if (answer.kind == Kind::GivenUp) fail(receive_reason(connection, answer));
  peers_.push_back({0, std::move(connection)});
  return true;
}

bool Star::arrived(std::size_t p, milliseconds patience) {
  Peer& peer = peers_[p];
  if (peer.has_left) return false;
  Header header;
  Delivery got = peer.socket.peek(bytes_of(header), patience);
  if (got == Delivery::TimedOut) return false;
  if (got == Delivery::Ended) fail(fmt::format("rank {} ended without a message", peer.rank));
  if (header.magic != kMagic || header.bytes > kMaxFrameBytes)
    fail(fmt::format("rank {} sent an invalid frame", peer.rank));
  if (header.kind == Kind::Data) return true;
  peer.socket.receive(bytes_of(header), in(kGoodbyeTime));
  if (header.kind == Kind::GivenUp) fail(receive_reason(peer.socket, header));
  peer.has_left = true;
  return false;
}

void Star::send(Peer& peer, std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxFrameBytes)
    throw InputError(fmt::format("rendezvous: expected at most {1} bytes in one message, found {0}",
                                 bytes.size(), kMaxFrameBytes));
  Delivery sent = send_frame(peer.socket, Kind::Data, bytes, limit_);
  if (sent == Delivery::Done) return;
  if (sent == Delivery::Ended) check();  // the peer may have sent a reason
  fail(fmt::format("rank {} accepted no data for {}", peer.rank, limit_));
}

std::vector<std::byte> Star::receive(std::size_t p) {
  Deadline deadline = in(limit_);
  Peer& peer = peers_[p];
  while (!arrived(p, kSlice)) {  // in slices, so that failures of other ranks are noticed
    check();
    if (peer.has_left) fail(fmt::format("rank {} has left", peer.rank));
    if (Clock::now() > deadline)
      fail(fmt::format("nothing received from rank {} within {}", peer.rank, limit_));
  }
  Header header;
  std::vector<std::byte> bytes;
  Delivery got = peer.socket.receive(bytes_of(header), deadline);
  bytes.resize(got == Delivery::Done ? header.bytes : 0);
  if (got != Delivery::Done || peer.socket.receive(bytes, deadline) != Delivery::Done)
    fail(fmt::format("rank {} ended in the middle of a message", peer.rank));
  return bytes;
}

std::vector<std::vector<std::byte>> Star::gather(std::span<const std::byte> mine) {
  ensure_alive();
  if (rank_ != 0) return send(peers_[0], mine), std::vector<std::vector<std::byte>>();
  std::vector<std::vector<std::byte>> out{{mine.begin(), mine.end()}};
  for (std::size_t p = 0; p < peers_.size(); ++p) out.push_back(receive(p));
  return out;
}

std::vector<std::byte> Star::broadcast(std::span<const std::byte> mine) {
  ensure_alive();
  if (rank_ != 0) return receive(0);
  for (Peer& peer : peers_) send(peer, mine);
  return {mine.begin(), mine.end()};
}

// The file of a meeting place: the port, then the IPv4 addresses at which others may reach this
// host, the loopback address last. Written to a temporary file and renamed, so that no process
// reads half of it; removed once all ranks have connected.
class AddressFile {
 public:
  AddressFile(const std::string& path, int port) : path_(path) {
    std::string text = std::to_string(port);
    ifaddrs* list = nullptr;
    ::getifaddrs(&list);
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      if (address != nullptr && address->sin_family == AF_INET &&
          (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0)
        text += fmt::format(" {}", ::inet_ntoa(address->sin_addr));
    }
    ::freeifaddrs(list);
    if (!put(text + " 127.0.0.1\n"))
      throw InputError(fmt::format("rendezvous file {}: cannot be written", shown_path(path_)));
  }
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;
  ~AddressFile() { std::remove(path_.c_str()); }

 private:
  // The temporary file has a fresh name, so that no other user's link is followed.
  bool put(const std::string& text) const {
    std::string temporary = path_ + ".XXXXXX";
    int file = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (file < 0) return false;
    bool done = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    done = ::close(file) == 0 && done && std::rename(temporary.c_str(), path_.c_str()) == 0;
    if (!done) std::remove(temporary.c_str());
    return done;
  }

  std::string path_;
};

void host(Star& star, const MeetingPlace& place) {
  int port = place.port;
  Socket listener = listen_at(place.host, port);
  if (!place.host.empty()) return star.host(listener);
  AddressFile file(place.file, port);
  star.host(listener);
}

void join(Star& star, const MeetingPlace& place, milliseconds limit) {
  Deadline deadline = in(limit);
  std::string where = fmt::format("{}:{}", place.host, place.port),
              trouble = "nothing listens there";
  if (place.host.empty()) {
    where = "file " + place.file;
    trouble = "there is no such file, or nothing listens at its address";
  }
  for (milliseconds pause = kPause;; pause = std::min(pause * 2, kLongestPause)) {
    // Read again before every attempt: the file may be left over from another job.
    std::ifstream file(place.file);
    int port = place.port;
    std::string host = place.host;
    if (host.empty() && (!(file >> port >> host) || port < 1 || port > 65535)) host.clear();
    for (; !host.empty(); host.clear(), file >> host) {
      Deadline soon = std::min(deadline, in(kGreetingTime));
      Socket connection = connect_once(host, port, soon, trouble);
      if (connection.open() && star.join(std::move(connection), deadline, trouble)) return;
    }
    if (Clock::now() + pause > deadline)
      throw BackendError("system", "meeting rank 0 at " + where,
                         fmt::format("not within {}: {}", limit, trouble), star.index());
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

std::unique_ptr<Meeting> meet(const LaunchedProcess& launch, const MeetingPlace& place,
                              milliseconds limit) {
  if (launch.size == 1) return std::make_unique<Meeting>();
  auto star = std::make_unique<Star>(launch.rank, launch.size, limit);
  launch.rank == 0 ? host(*star, place) : join(*star, place, limit);
  return star;
}

}  // namespace reshard::backends::launch
