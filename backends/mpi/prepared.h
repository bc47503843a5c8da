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

#include "backends/host/rank_memory.h"
#include "backends/mpi/traffic.h"
#include "core/plan/executor.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::backends::mpi {

enum class Work : std::uint8_t { Done, Some };

// One of this rank's launches, made ready once and run again and again: addresses, cuts and
// communicators are settled, so that a run costs little beyond its bytes.
class PreparedLaunch {
 public:
  virtual ~PreparedLaunch() = default;
  // Begins transfers, all that the part will ever need: both ends of a pair then know them in the
  // same order. Called when everything that the launch waits for is done.
  virtual void issue(Traffic& traffic) { static_cast<void>(traffic); }
  // Does one piece of local work, called between polls, so that messages move on meanwhile. Some:
  // there may be more. Done: none is left in this run; not called again before the next.
  virtual Work work() { return Work::Done; }

  // What the part's transfers raise and lower. It is done when no work is left and this is 0.
  Pending pending = 0;
};

// What a part is made from.
struct LaunchContext {
  const Plan& plan;
  const Launch& launch;
  host::RankMemory& memory;
  World& world;
  const Traffic& traffic;  // for its chunk limits
  // Of the launch's group, where the collective is MPI's own.
  std::shared_ptr<MpiCommunicator> comm;

  int process(Slot other) const { return to_int(plan.rank_of(other)); }
  // Equal on both ends; 0 is not for steps. Messages of one tag are matched in order, those of
  // steps that are under way at a time have tags of their own.
  int tag() const { return 1 + static_cast<int>(launch.step) % world.largest_tag; }
};

std::unique_ptr<PreparedLaunch> make_launch(const LaunchContext& context);
std::unique_ptr<PreparedLaunch> make_native_launch(const LaunchContext& context,
                                                   const NativeCollective& work);

// Which collectives are MPI's own.
SchedulePolicy schedule_policy(const WorldOptions& options);
// By step, the communicator of this rank's group in it; null where MPI's own collective is not
// taken. Made in the order of the plan; collective over all processes.
std::vector<std::shared_ptr<MpiCommunicator>> make_groups(const Plan& plan, World& world);

class MpiPrepared : public PreparedPlan {
 public:
  // `shards` by tensor; none: memory of our own. Derives what this process does, alone.
  MpiPrepared(const Plan& plan, std::shared_ptr<World> world, std::span<const CallerShards> shards);
  // Once, before anything else: with the same plan on all processes. Collective.
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
  std::int32_t number_ = 0;  // of all that were prepared in this world
  Traffic traffic_;
  RankSchedule schedule_;  // no launches where the plan does not name this rank
  Before after_;           // by launch: what must be done first, reuse of memory included
  std::optional<host::RankMemory> memory_;
  std::vector<std::unique_ptr<PreparedLaunch>> launches_;  // by launch

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
