// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/star.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::uint64_t kMagic = 0x3164726168736572u;  // "reshard1", little-endian
constexpr std::chrono::milliseconds kGreetingTime{5000}, kGoodbyeTime{1000}, kSlice{50};
constexpr std::size_t kMaxReason = 4096;

enum class Kind : std::uint32_t { Welcome, Refusal, Data, Goodbye, GivenUp };

struct Greeting {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0, size = 0;
};
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t kind = 0, unused = 0;
  std::uint64_t bytes = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> writable(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Delivery send_frame(Socket& socket, Kind kind, std::span<const std::byte> bytes,
                    Deadline deadline) noexcept {
  Header header;
  header.kind = static_cast<std::uint32_t>(kind);
  header.bytes = bytes.size();
  Delivery sent = socket.send(bytes_of(header), deadline);
  return sent == Delivery::Done ? socket.send(bytes, deadline) : sent;
}

// The text that follows a header, for messages.
std::string receive_reason(Socket& socket, const Header& header) {
  std::string reason(std::min<std::size_t>(header.bytes, kMaxReason), ' ');
  if (socket.receive(std::as_writable_bytes(std::span(reason)), Clock::now() + kGoodbyeTime) !=
      Delivery::Done)
    return "for a reason that got lost";
  return reason;
}

}  // namespace

Star::Star(std::int32_t rank, std::int32_t size, std::chrono::milliseconds limit)
    : rank_(rank), size_(size), limit_(limit) {}

std::unique_ptr<Star> Star::host(Listener listener, std::int32_t size,
                                 std::chrono::milliseconds limit) {
  std::unique_ptr<Star> star(new Star(0, size, limit));
  star->peers_.resize(static_cast<std::size_t>(size) - 1);
  star->accept_all(listener);
  return star;
}

void Star::accept_all(Listener& listener) {
  Deadline deadline = Clock::now() + limit_;
  auto missing = [&] {
    std::vector<std::int32_t> out;
    for (std::size_t p = 0; p < peers_.size(); ++p)
      if (!peers_[p].socket.open()) out.push_back(rank_of(p));
    return out;
  };
  while (!missing().empty()) {
    std::optional<Socket> found = listener.accept(deadline);
    if (!found)
      fail(fmt::format("no word from rank{} {} within {}", missing().size() > 1 ? "s" : "",
                       fmt::join(missing(), ","), limit_));
    admit(std::move(*found));
  }
  for (Peer& peer : peers_)
    send_frame(peer.socket, Kind::Welcome, {}, Clock::now() + kGreetingTime);
}

void Star::admit(Socket connection) {
  Greeting greeting;
  if (connection.receive(writable(greeting), Clock::now() + kGreetingTime) != Delivery::Done ||
      greeting.magic != kMagic)
    return;  // a stranger
  if (greeting.size != size_)
    refuse(std::move(connection),
           fmt::format("rank 0 counts {} ranks in the job, rank {} counts {}", size_, greeting.rank,
                       greeting.size));
  if (greeting.rank < 1 || greeting.rank >= size_)
    refuse(std::move(connection),
           fmt::format("a second process says that it is rank {}", greeting.rank));
  Peer& peer = peers_[static_cast<std::size_t>(greeting.rank) - 1];
  if (peer.socket.open())
    refuse(std::move(connection),
           fmt::format("two processes say that they are rank {}", greeting.rank));
  peer.socket = std::move(connection);
}

void Star::refuse(Socket connection, const std::string& why) {
  send_frame(connection, Kind::Refusal, bytes_of(why), Clock::now() + kGreetingTime);
  give_up(why);
  throw InputError("rendezvous: " + why);
}

std::unique_ptr<Star> Star::join(Socket connection, std::int32_t rank, std::int32_t size,
                                 JoinLimits limits, std::string& trouble) {
  std::unique_ptr<Star> star(new Star(rank, size, limits.later));
  Greeting greeting;
  greeting.rank = rank;
  greeting.size = size;
  Deadline deadline = Clock::now() + limits.welcome;
  Header answer;
  trouble = "what answers there is not rank 0 of a reshard job";
  if (connection.send(bytes_of(greeting), deadline) != Delivery::Done) return nullptr;
  Delivery got = connection.receive(writable(answer), deadline);
  if (got == Delivery::TimedOut)
    trouble = fmt::format("rank 0 waits for other ranks, for longer than {}", limits.welcome);
  if (got != Delivery::Done || answer.magic != kMagic) return nullptr;
  if (answer.kind == static_cast<std::uint32_t>(Kind::Refusal))
    throw InputError("rendezvous: " + receive_reason(connection, answer));
  if (answer.kind == static_cast<std::uint32_t>(Kind::GivenUp))
    throw BackendError("system", "waiting for the other ranks", receive_reason(connection, answer),
                       rank);
  star->peers_.push_back({std::move(connection), false});
  return star;
}

Star::~Star() {
  if (!failed_.empty()) return;
  if (std::uncaught_exceptions() > 0) {
    give_up(fmt::format("rank {} failed", rank_));
    return;
  }
  for (Peer& peer : peers_)
    if (peer.socket.open()) send_frame(peer.socket, Kind::Goodbye, {}, Clock::now() + kGoodbyeTime);
}

void Star::ensure_alive() const {
  if (!failed_.empty()) throw BackendError("system", "waiting for the other ranks", failed_, rank_);
}

void Star::give_up(const std::string& why) noexcept {
  if (!failed_.empty()) return;
  failed_ = why.empty() ? "it gave no reason" : why;
  failed_.resize(std::min(failed_.size(), kMaxReason));
  for (Peer& peer : peers_)
    if (peer.socket.open())
      send_frame(peer.socket, Kind::GivenUp, bytes_of(failed_), Clock::now() + kGoodbyeTime);
}

void Star::fail(const std::string& why) {
  give_up(why);
  ensure_alive();
  throw CheckFailure("a star that failed is alive");
}

void Star::abort(int exit_code) noexcept {
  if (size_ == 1) return;
  give_up(fmt::format("rank {} ended with exit code {}", rank_, exit_code));
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

void Star::check() {
  ensure_alive();
  for (std::size_t p = 0; p < peers_.size(); ++p) check(p);
}

void Star::check(std::size_t p) {
  Peer& peer = peers_[p];
  if (peer.said_goodbye) return;
  Header header;
  Delivery got = peer.socket.peek(writable(header));
  if (got == Delivery::Ended) fail(fmt::format("rank {} ended without a word", rank_of(p)));
  if (got == Delivery::TimedOut) return;
  if (header.magic != kMagic || header.bytes > static_cast<std::uint64_t>(kMaxFrameBytes))
    fail(fmt::format("rank {} sent what is no frame", rank_of(p)));
  Kind kind{header.kind};
  if (kind == Kind::Data) return;  // for the next gather or broadcast
  peer.socket.receive(writable(header), Clock::now() + kGoodbyeTime);
  if (kind == Kind::GivenUp) fail(receive_reason(peer.socket, header));
  peer.said_goodbye = true;
}

void Star::send(std::size_t p, std::span<const std::byte> bytes) {
  if (bytes.size() > static_cast<std::size_t>(kMaxFrameBytes))
    throw InputError(fmt::format("rendezvous: {} bytes in one message, at most {}", bytes.size(),
                                 kMaxFrameBytes));
  switch (send_frame(peers_[p].socket, Kind::Data, bytes, Clock::now() + limit_)) {
    case Delivery::Done:
      return;
    case Delivery::Ended:
      check(p);  // it may have said why
      fail(fmt::format("rank {} ended without a word", rank_of(p)));
    case Delivery::TimedOut:
      fail(fmt::format("rank {} takes nothing for {}", rank_of(p), limit_));
  }
}

std::vector<std::byte> Star::receive(std::size_t p) {
  Deadline deadline = Clock::now() + limit_;
  Header header;
  while (peers_[p].socket.peek(writable(header)) != Delivery::Done) {
    check();
    if (peers_[p].said_goodbye || Clock::now() > deadline) break;
    peers_[p].socket.await(std::min(
        deadline, Clock::now() + kSlice));  // in slices, so that news of the others is heard
  }
  check();
  if (peers_[p].said_goodbye) fail(fmt::format("rank {} has left", rank_of(p)));
  if (Clock::now() > deadline)
    fail(fmt::format("no word from rank {} within {}", rank_of(p), limit_));
  std::vector<std::byte> bytes;
  Delivery got = peers_[p].socket.receive(writable(header), deadline);
  if (got == Delivery::Done) {
    bytes.resize(header.bytes);
    got = peers_[p].socket.receive(bytes, deadline);
  }
  if (got != Delivery::Done)
    fail(fmt::format("rank {} ended in the middle of a message", rank_of(p)));
  return bytes;
}

std::vector<std::vector<std::byte>> Star::gather(std::span<const std::byte> mine) {
  ensure_alive();
  if (rank_ != 0) {
    send(0, mine);
    return {};
  }
  std::vector<std::vector<std::byte>> out{{mine.begin(), mine.end()}};
  for (std::size_t p = 0; p < peers_.size(); ++p) out.push_back(receive(p));
  return out;
}

std::vector<std::byte> Star::broadcast(std::span<const std::byte> mine) {
  ensure_alive();
  if (rank_ != 0) return receive(0);
  for (std::size_t p = 0; p < peers_.size(); ++p) send(p, mine);
  return {mine.begin(), mine.end()};
}

}  // namespace reshard::backends::nccl
