// SPDX-License-Identifier: BSD-3-Clause
// A plan prepared on this process: its rank's launches, issued in listed order and finished as
// messages arrive.
//
// A launch is issued once all launches that it waits for are done and all before it in the list are
// issued; launches may finish in any order. Issuing in listed order prevents deadlock: of all
// unfinished launches, the first in listed order has been issued on every rank or will be, as
// everything before it is done.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "backends/host/rank_memory.h"
#include "backends/mpi/traffic.h"
#include "core/plan/executor.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::backends::mpi {

enum class Work : std::uint8_t { Done, Some };

// One of this rank's launches, prepared once and run any number of times: addresses, cuts and
// communicators are fixed in advance, so a run costs little beyond moving its bytes.
class PreparedLaunch {
 public:
  virtual ~PreparedLaunch() = default;
  // Starts all transfers that the launch will ever need, so that both ends of a pair learn of them
  // in the same order. Called when everything that the launch waits for is done.
  virtual void issue(Traffic& traffic) { static_cast<void>(traffic); }
  // Does one piece of local work; called between polls, so that messages make progress. Some: there
  // may be more. Done: no work is left in this run; not called again before the next run.
  virtual Work work() { return Work::Done; }

  // Raised and lowered by the launch's transfers. The launch is done when no work is left and this
  // is 0.
  Pending pending = 0;
};

// The inputs of make_launch.
struct LaunchContext {
  const Plan& plan;
  const Launch& launch;
  host::RankMemory& memory;
  World& world;
  const Traffic& traffic;  // for its chunk limits
  // The communicator of the launch's group, if the collective is MPI's own.
  std::shared_ptr<MpiCommunicator> comm;

  int process(Slot other) const { return to_int(plan.rank_of(other)); }
  // Equal on both ends; never 0, which is not used for steps. Messages with one tag are matched in
  // order; steps that run at the same time have different tags.
  int tag() const { return 1 + static_cast<int>(launch.step) % world.largest_tag; }
};

std::unique_ptr<PreparedLaunch> make_launch(const LaunchContext& context);
std::unique_ptr<PreparedLaunch> make_native_launch(const LaunchContext& context,
                                                   const NativeCollective& work);

// Which collectives MPI itself runs.
SchedulePolicy schedule_policy(const WorldOptions& options);
// By step, the communicator of this rank's group in it; null where MPI's own collective is not
// used. Made in the order of the plan; collective over all processes.
std::vector<std::shared_ptr<MpiCommunicator>> make_groups(const Plan& plan, World& world);

class MpiPrepared : public PreparedPlan {
 public:
  // `shards` by tensor; if empty, they are allocated here. Not collective: derives this process's
  // part.
  MpiPrepared(const Plan& plan, std::shared_ptr<World> world, std::span<const CallerShards> shards);
  // Collective; call once, before anything else, with the same plan on all processes.
  void connect();
  ~MpiPrepared() override;

  void fill(const FillSource& fill, TensorId tensor) override;
  Timeline run() override;
  void take(const TakeDestination& take, TensorId tensor) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { Waiting, Working, Moving, Done };

  void derive(std::span<const CallerShards> shards);
  void meet();
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
  std::int32_t number_ = 0;  // number of this plan among those prepared in this world
  Traffic traffic_;
  RankSchedule schedule_;  // no launches if this rank is not in the plan
  Before after_;           // by launch: what must be done first, including for reuse of memory
  std::optional<host::RankMemory> memory_;
  std::vector<std::unique_ptr<PreparedLaunch>> launches_;  // by launch

  // State of the current run.
  Clock::time_point begin_;
  std::vector<State> states_;
  struct Times {
    std::int64_t start_ps, end_ps;
  };
  std::vector<Times> times_;       // by launch
  std::vector<std::size_t> live_;  // issued but not done, ascending
  std::size_t next_ = 0;
};

}  // namespace reshard::backends::mpi
