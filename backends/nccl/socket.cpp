// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::backends::nccl {
namespace {

std::string system_text(int code) {
  return fmt::format("{} (errno {})", std::strerror(code), code);
}

// Waits until the descriptor is ready for `events` (then true) or the deadline has passed.
bool wait_for(int descriptor, short events, Deadline deadline) {
  while (true) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{descriptor, events, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 1000)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void prepare(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.rfind("127.", 0) == 0;
}

bool would_block(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == EINTR; }

// A connection attempt under way or done; errno's value where it failed.
int finish_connect(int descriptor, const sockaddr* address, socklen_t length, Deadline deadline) {
  if (::connect(descriptor, address, length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(descriptor, POLLOUT, deadline)) return ETIMEDOUT;
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size);
  return code;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Delivery Socket::send(std::span<const std::byte> bytes, Deadline deadline) noexcept {
  while (!bytes.empty()) {
    ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    else if (!would_block(errno))
      return Delivery::Ended;
    else if (!wait_for(descriptor_, POLLOUT, deadline))
      return Delivery::TimedOut;
  }
  return Delivery::Done;
}

Delivery Socket::receive(std::span<std::byte> bytes, Deadline deadline) noexcept {
  while (!bytes.empty()) {
    ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    else if (got == 0 || !would_block(errno))
      return Delivery::Ended;
    else if (!wait_for(descriptor_, POLLIN, deadline))
      return Delivery::TimedOut;
  }
  return Delivery::Done;
}

Delivery Socket::peek(std::span<std::byte> bytes) noexcept {
  ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && !would_block(errno))) return Delivery::Ended;
  return got == static_cast<ssize_t>(bytes.size()) ? Delivery::Done : Delivery::TimedOut;
}

void Socket::await(Deadline deadline) noexcept { wait_for(descriptor_, POLLIN, deadline); }

Listener::Listener(const std::string& host, int port) {
  auto fail = [&](const char* call) {
    throw BackendError("system", fmt::format("{} for rank 0's port {}", call, port),
                       system_text(errno), 0);
  };
  socket_ = Socket(::socket(AF_INET, SOCK_STREAM, 0));
  if (!socket_.open()) fail("socket()");
  prepare(socket_.descriptor());
  int on = 1;
  ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(is_loopback(host) ? INADDR_LOOPBACK : INADDR_ANY);
  if (::bind(socket_.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0)
    fail("bind()");
  if (::listen(socket_.descriptor(), 1024) != 0) fail("listen()");
  socklen_t length = sizeof address;
  ::getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
}

std::optional<Socket> Listener::accept(Deadline deadline) {
  while (wait_for(socket_.descriptor(), POLLIN, deadline)) {
    Socket found(::accept(socket_.descriptor(), nullptr, nullptr));
    if (!found.open()) continue;  // gone again before it was taken
    prepare(found.descriptor());
    return found;
  }
  return std::nullopt;
}

Socket connect_once(const std::string& host, int port, Deadline deadline, std::string& trouble) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
      code != 0) {
    trouble = ::gai_strerror(code);
    return {};
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Socket attempt(::socket(entry->ai_family, entry->ai_socktype, 0));
    if (!attempt.open()) {
      trouble = system_text(errno);
      continue;
    }
    prepare(attempt.descriptor());
    int code = finish_connect(attempt.descriptor(), entry->ai_addr, entry->ai_addrlen, deadline);
    if (code == 0) return attempt;
    trouble = system_text(code);
  }
  return {};
}

std::string own_addresses() {
  std::string out, loopback = "127.0.0.1";
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return loopback;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text,
                sizeof text);
    out += std::string(text) + " ";
  }
  ::freeifaddrs(list);
  return out + loopback;
}

}  // namespace reshard::backends::nccl
