// SPDX-License-Identifier: BSD-3-Clause
// TCP with time limits: every call ends by its deadline, whatever the other end does.
//
// Sockets are non-blocking and waited for with poll; a signal that interrupts a wait does not end
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace reshard::backends::nccl {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

enum class Delivery {
  Done,
  Ended,
  TimedOut
};  // Ended: the other end closed the connection or the connection broke

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  bool open() const { return descriptor_ >= 0; }
  void close() noexcept;
  int descriptor() const { return descriptor_; }

  Delivery send(std::span<const std::byte> bytes, Deadline deadline) noexcept;
  Delivery receive(std::span<std::byte> bytes, Deadline deadline) noexcept;
  // Fills `bytes` without taking them; TimedOut where not all of them have come yet.
  Delivery peek(std::span<std::byte> bytes) noexcept;
  // Sleeps until something has come, the connection has ended, or the deadline.
  void await(Deadline deadline) noexcept;

 private:
  int descriptor_ = -1;
};

class Listener {
 public:
  // Listens on all addresses of this host, or on the loopback only where `host` is a name of it.
  // Port 0: any free one. Throws BackendError.
  Listener(const std::string& host, int port);
  int port() const { return port_; }
  // Nothing by the deadline: no socket.
  std::optional<Socket> accept(Deadline deadline);

 private:
  Socket socket_;
  int port_ = 0;
};

// One attempt, at every address of the host in turn; a closed socket where none answers. `trouble`
// says why.
Socket connect_once(const std::string& host, int port, Deadline deadline, std::string& trouble);

// IPv4 addresses by which other hosts may reach this one, the loopback last.
std::string own_addresses();

}  // namespace reshard::backends::nccl
