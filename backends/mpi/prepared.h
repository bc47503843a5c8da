// SPDX-License-Identifier: BSD-3-Clause
// A plan made ready on this process: its rank's program, issued in listed order and finished as
// messages come.
//
// A part is issued when the parts that it waits for on this rank are done and all parts before it
// are issued; it may finish in any order. Issuing in listed order keeps a run free of deadlock: of
// all unfinished steps the first in the list has been issued on every rank, or will be, as nothing
// before it is missing.
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
  // `shards` null: memory of our own.
  MpiPrepared(const Plan& plan, std::shared_ptr<World> world, const CallerShards* shards);
  ~MpiPrepared() override;

  void fill(const FillSource& fill, TensorId) override;
  Timeline run() override;
  void take(const TakeDestination& take, TensorId) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { Waiting, Working, Moving, Done };

  void derive(const CallerShards* shards);
  std::unique_ptr<Part> part_of(const RankStep& step, const std::shared_ptr<Communicator>& comm);
  void run_parts(Timeline& timeline);
  bool ready(std::size_t step) const;
  bool issue_ready();
  bool work_once();
  bool finish_parts();
  std::int64_t now_ps() const;
  [[noreturn]] void give_up() const;

  const Plan& plan_;
  std::shared_ptr<World> world_;
  Traffic traffic_;
  RankProgram program_;  // no steps where the plan does not name this rank
  // By step of the program: what must be done first, reuse of memory included.
  std::vector<std::vector<std::int32_t>> after_;
  std::optional<LocalMemory> memory_;
  std::vector<std::unique_ptr<Part>> parts_;  // by step of the program

  // Of the run at hand.
  Clock::time_point begin_;
  std::vector<State> states_;
  std::vector<Span> spans_;
  std::vector<std::size_t> live_;  // issued and not done, ascending
  std::size_t next_ = 0;
};

// By step of the program: the steps that must be done before, from the plan and from temporaries
// that take over the memory of others.
std::vector<std::vector<std::int32_t>> ordered_after(const Plan& plan, const RankProgram& program,
                                                     const TemporaryLayout& layout);

}  // namespace reshard::backends::mpi
