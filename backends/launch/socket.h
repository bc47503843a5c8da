// SPDX-License-Identifier: BSD-3-Clause
// TCP sockets. Every call ends by its deadline, whatever the other end does: the sockets
// block, with a time limit that the kernel enforces.
#pragma once

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::backends::launch {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Ended: the other end closed the connection, or the connection broke.
enum class Delivery { Done, Ended, TimedOut };

inline std::string system_text(int code) {
  return fmt::format("{} (errno {})", std::strerror(code), code);
}

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(SOL_SOCKET, SO_REUSEADDR, 1);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (open()) ::close(descriptor_);
  }
  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // `option`: SO_RCVTIMEO, which also applies to accept, or SO_SNDTIMEO, which also applies to
  // connect.
  void set_limit(int option, Deadline deadline) const noexcept {
    auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now());
    std::int64_t us = std::max<std::int64_t>(left.count(), 1);  // 0 would mean no limit
    set(SOL_SOCKET, option, timeval{us / 1'000'000, us % 1'000'000});
  }
  Delivery send(std::span<const std::byte> bytes, Deadline deadline) noexcept {
    return move_all(bytes, deadline, SO_SNDTIMEO, [&](std::span<const std::byte> rest) {
      return ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    });
  }
  Delivery receive(std::span<std::byte> bytes, Deadline deadline) noexcept {
    return move_all(bytes, deadline, SO_RCVTIMEO, [&](std::span<std::byte> rest) {
      return ::recv(descriptor_, rest.data(), rest.size(), MSG_WAITALL);
    });
  }
  // Fills `bytes` without consuming them; TimedOut if they do not all arrive within `patience`.
  Delivery peek(std::span<std::byte> bytes, std::chrono::milliseconds patience) noexcept {
    set_limit(SO_RCVTIMEO, Clock::now() + patience);
    int flags = MSG_PEEK | (patience.count() > 0 ? MSG_WAITALL : MSG_DONTWAIT);
    ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), flags);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return Delivery::Ended;
    return got == static_cast<ssize_t>(bytes.size()) ? Delivery::Done : Delivery::TimedOut;
  }

 private:
  template <class Value>
  void set(int level, int option, const Value& value) const noexcept {
    ::setsockopt(descriptor_, level, option, &value, sizeof value);
  }
  // move(rest) transfers a prefix of `rest`; signals may interrupt it.
  template <class Byte, class Move>
  Delivery move_all(std::span<Byte> rest, Deadline deadline, int limit, const Move& move) noexcept {
    while (!rest.empty()) {
      set_limit(limit, deadline);
      ssize_t moved = move(rest);
      if (moved > 0)
        rest = rest.subspan(to_index(moved));
      else if (moved == 0 || (errno != EAGAIN && errno != EINTR))
        return Delivery::Ended;
      else if (Clock::now() >= deadline)
        return Delivery::TimedOut;
    }
    return Delivery::Done;
  }

  int descriptor_ = -1;
};

inline Socket new_socket() { return Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// Listens on all addresses of this host, or only on the loopback interface if `host` names it. Port
// 0 picks a free port and stores it in `port`. Throws BackendError.
inline Socket listen_at(const std::string& host, int& port) {
  bool loopback = host == "localhost" || host.rfind("127.", 0) == 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  Socket out = new_socket();
  if (::bind(out.descriptor(), general, length) != 0 || ::listen(out.descriptor(), 1024) != 0)
    throw BackendError("system", fmt::format("listening at rank 0's port {}", port),
                       system_text(errno), 0);
  ::getsockname(out.descriptor(), general, &length);
  port = ntohs(address.sin_port);
  return out;
}

// Returns a closed socket if no process connects by the deadline.
inline Socket accept_at(const Socket& listener, Deadline deadline) {
  while (Clock::now() < deadline) {
    listener.set_limit(SO_RCVTIMEO, deadline);
    Socket found(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (found.open()) return found;  // else the connection was gone before it was accepted
  }
  return {};
}

// Tries each address of the host once. Returns a closed socket if none answers, with the reason in
// `trouble`.
inline Socket connect_once(const std::string& host, int port, Deadline deadline,
                           std::string& trouble) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) trouble = ::gai_strerror(code);
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Socket attempt = new_socket();
    attempt.set_limit(SO_SNDTIMEO, deadline);
    if (::connect(attempt.descriptor(), entry->ai_addr, entry->ai_addrlen) == 0) return attempt;
    trouble = system_text(errno == EINPROGRESS ? ETIMEDOUT : errno);
  }
  return {};
}

}  // namespace reshard::backends::launch
