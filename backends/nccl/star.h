// SPDX-License-Identifier: BSD-3-Clause
// The processes of a job, joined by TCP: rank 0 listens, every other keeps one connection to it.
// Enough for what must pass between processes before NCCL can (unique ids) and beside it (results,
// and the news that somebody has ended).
//
// A connection starts with a greeting that names the protocol, the rank and the size of the job;
// who does not fit is told why. Then frames: a header of fixed size and at most kMaxFrameBytes. A
// process that ends in good order says goodbye; one that fails says why, and rank 0 passes it on;
// one that dies closes its connection. All waits end by the time limit and hear of every ended
// process meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/nccl/meeting.h"
#include "backends/nccl/socket.h"

namespace reshard::backends::nccl {

inline constexpr std::int64_t kMaxFrameBytes = std::int64_t{256} << 20;

// How long to wait for rank 0's welcome, which comes when all have come; and for anything later.
struct JoinLimits {
  std::chrono::milliseconds welcome, later;
};

class Star : public Meeting {
 public:
  // Rank 0: waits until all other ranks have come.
  static std::unique_ptr<Star> host(Listener listener, std::int32_t size,
                                    std::chrono::milliseconds limit);
  // Any other rank, with a connection to what may be rank 0: no star where it does not speak the
  // protocol (then `trouble` says so). Throws InputError where rank 0 refuses it.
  static std::unique_ptr<Star> join(Socket connection, std::int32_t rank, std::int32_t size,
                                    JoinLimits limits, std::string& trouble);
  ~Star() override;

  int index() const override { return rank_; }
  int count() const override { return size_; }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override;
  std::vector<std::byte> broadcast(std::span<const std::byte> mine) override;
  void abort(int exit_code) noexcept override;
  void check() override;
  void give_up(const std::string& why) noexcept override;

 private:
  struct Peer {
    Socket socket;
    bool said_goodbye = false;
  };

  Star(std::int32_t rank, std::int32_t size, std::chrono::milliseconds limit);
  void accept_all(Listener& listener);
  // Takes the process at the other end in, or refuses it.
  void admit(Socket connection);
  [[noreturn]] void refuse(Socket connection, const std::string& why);
  std::int32_t rank_of(std::size_t peer) const {
    return rank_ == 0 ? static_cast<std::int32_t>(peer) + 1 : 0;
  }
  void send(std::size_t peer, std::span<const std::byte> bytes);
  std::vector<std::byte> receive(std::size_t peer);
  // Throws where the peer has ended or given up.
  void check(std::size_t peer);
  // The job cannot go on: tells all others and throws.
  [[noreturn]] void fail(const std::string& why);
  void ensure_alive() const;

  std::int32_t rank_, size_;
  std::chrono::milliseconds limit_;
  std::vector<Peer> peers_;  // of rank 0: ranks 1 .. size-1; of another: rank 0
  std::string failed_;       // why the job cannot go on; empty while it can
};

}  // namespace reshard::backends::nccl
