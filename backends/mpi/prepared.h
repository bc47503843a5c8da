// SPDX-License-Identifier: BSD-3-Clause
// A plan made ready on this process: its rank's launches, issued in listed order and finished as
// messages come.
//
// A launch is issued when those that it waits for are done and all before it are issued; it may
// finish in any order. Issuing in listed order keeps a run free of deadlock: of all unfinished
// launches the first in the list has been issued on every rank, or will be, as nothing before it is
// missing.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "backends/mpi/parts.h"
#include "core/plan/executor.h"

namespace reshard::backends::mpi {

class MpiPrepared : public PreparedPlan {
 public:
  // `shards` by tensor; none: memory of our own.
  MpiPrepared(const Plan& plan, std::shared_ptr<World> world, std::span<const CallerShards> shards);
  ~MpiPrepared() override;

  void fill(const FillSource& fill, TensorId tensor) override;
  Timeline run() override;
  void take(const TakeDestination& take, TensorId tensor) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { Waiting, Working, Moving, Done };

  void derive(std::span<const CallerShards> shards);
  void run_parts();
  Timeline timeline() const;
  bool ready(std::size_t launch) const;
  bool issue_ready();
  bool work_once();
  bool finish_parts();
  std::int64_t now_ps() const;
  [[noreturn]] void give_up() const;

  const Plan& plan_;
  std::shared_ptr<World> world_;
  Traffic traffic_;
  RankSchedule schedule_;  // no launches where the plan does not name this rank
  Before after_;           // by launch: what must be done first, reuse of memory included
  std::optional<host::RankMemory> memory_;
  std::vector<std::unique_ptr<Part>> parts_;  // by launch

  // Of the run at hand.
  Clock::time_point begin_;
  std::vector<State> states_;
  struct Times {
    std::int64_t start_ps, end_ps;
  };
  std::vector<Times> times_;       // by launch
  std::vector<std::size_t> live_;  // issued and not done, ascending
  std::size_t next_ = 0;
};

}  // namespace reshard::backends::mpi
