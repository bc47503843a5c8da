// SPDX-License-Identifier: BSD-3-Clause
// A plan prepared on this process's GPUs: memory, tables and the actions of every rank, step by
// step.
//
// A run issues everything without waiting: the steps in listed order, each on its stream of the
// plan (plan.h), and each round of all this process's ranks in one NCCL group. The order on a
// stream, the same on every rank, and events between streams are then the only order that matters.
// What streams other than the main one run is between two points of the main one, which may be the
// caller's. Events between the steps give the times.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/device/launch_tables.h"
#include "backends/device/owners.h"
#include "backends/nccl/actions.h"
#include "backends/nccl/communicators.h"
#include "core/plan/executor.h"

namespace reshard::backends::nccl {

class Prepared : public PreparedPlan {
 public:
  // Allocates nothing yet. `shards` by tensor; if empty, the shards are in our own memory, and fill
  // and take copy to and from it; else they are in the caller's memory, which must outlive this
  // object.
  Prepared(const Plan& plan, Communicators& communicators, Meeting& meeting,
           const ActionOptions& options, std::span<const CallerShards> shards);
  ~Prepared() override;

  // The memory needed on one local rank's GPU, tables included.
  std::int64_t needed_bytes(std::size_t local) const;
  // Allocates and uploads. All communicators that the plan needs must exist.
  void make_ready();

  void fill(const FillSource& fill, TensorId tensor) override;
  Timeline run() override;
  void take(const TakeDestination& take, TensorId tensor) override;

  // The two halves of a run. enqueue gives all steps to the streams and returns; if called again,
  // the later run starts when the earlier one ends. wait waits for all of them.
  void enqueue();
  void wait();

 private:
  struct RankRun {
    std::size_t local;
    const RankSchedule& schedule;
    RankMemory memory;
    LaunchTables tables = {};
    // The next three are indexed by launch of the schedule.
    std::vector<std::vector<Action>> actions = {};
    // The communicator of its collective, or of its exchange on a stream other than the main one.
    std::vector<const NcclCommunicator*> communicator = {};
    std::vector<std::vector<std::int32_t>> waits = {};  // for launches on other streams
    // Before the first launch, after each, and after all of them.
    std::vector<EventOwner> events = {};
    std::size_t next = 0;           // while launches are issued
    std::set<Stream> started = {};  // those that a run uses
  };

  void derive(RankRun& rank);
  Timeline timeline() const;
  Device& device(const RankRun& rank) const { return *communicators_.local(rank.local).device; }
  Stream main(const RankRun& rank) const { return communicators_.stream(rank.local, kMainStream); }
  // The plan's stream on which a launch runs.
  std::int32_t stream_of(const Launch& launch) const {
    return options_.over_parent ? 0 : plan_.steps[launch.step].stream;
  }
  Stream stream(const RankRun& rank, std::size_t launch) const {
    return communicators_.stream(rank.local, stream_key(stream_of(rank.schedule.launches[launch])));
  }
  const NcclCommunicator* communicator_of(const Launch& launch) const;
  std::vector<std::vector<std::int32_t>> waits_of(const RankRun& rank) const;
  // Makes the next launch wait for those on other streams, or for the start of the run.
  void wait_for_others(RankRun& rank);
  // Makes the main stream wait for all others.
  void join_streams(RankRun& rank);
  // Issues the next launch of each of these ranks; all these launches belong to `step`.
  void issue(StepId step, const std::vector<RankRun*>& ranks);
  // Two global ranks, ascending.
  using Pair = std::pair<std::int32_t, std::int32_t>;
  void issue_round(StepId step, std::size_t action, const std::vector<RankRun*>& ranks);
  // Issues all of a round, or only the transfers of one pair.
  void issue_group(StepId step, std::size_t action, const std::vector<RankRun*>& ranks,
                   const std::optional<Pair>& pair);
  void issue_transfers(const Round& round, const RankRun& rank,
                       const NcclCommunicator* communicator, const std::optional<Pair>& pair);
  void issue_native(const Native& native, std::int32_t rank, NcclComm comm, Stream stream);
  // The pairs of a round that have their own streams.
  std::set<Pair> pairs_apart(const Round& round, const RankRun& rank);
  // Makes work on `later` wait for the work given to `earlier` so far.
  void order(const RankRun& rank, Stream earlier, Stream later);
  Event event_of(const RankRun& rank, Stream stream);
  void finish(RankRun& rank, const std::string& what);
  bool all_done() const;
  // Describes the first step that is not done, its peers and its communicator.
  std::string unfinished() const;
  std::string partners(const RankRun& rank, std::size_t launch) const;
  void barrier();

  const Plan& plan_;
  Communicators& communicators_;
  Meeting& meeting_;
  ActionOptions options_;
  std::vector<RankSchedule> schedules_;
  std::vector<RankRun> ranks_;  // ascending; only those that take part in the plan
  bool under_way_ = false;      // enqueued but not waited for
  std::map<std::pair<std::size_t, Stream>, EventOwner> stream_events_;
};

}  // namespace reshard::backends::nccl
