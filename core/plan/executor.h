// SPDX-License-Identifier: BSD-3-Clause
// The seam behind which plans are run on real bytes: the in-process store ("local"), MPI, CUDA,
// NCCL.
//
// An executor is one of several processes that run a plan together, or the only one. Every process
// holds the shards of some ranks, calls the same functions in the same order with the same plan,
// and runs the parts of its ranks. What differs between executors is where the bytes lie and who
// carries them; values are those of the meaning (plan.h), bit for bit, except where
// folds_in_own_order says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/plan/plan.h"

namespace reshard {

// What ran when, whoever ran it: the simulated engine or a real backend:
// one rank's part of one step of a plan, or of an operation without steps (step -1: compute, send,
// recv, bare collective).
struct Span {
  OpId op;
  std::int32_t step;
  Rank rank;
  std::int64_t start_ps, end_ps;
  friend bool operator==(const Span&, const Span&) = default;
};

// One transfer between two ranks. start_ps: both ends ready, the latency begins; end_ps: the last
// byte has arrived.
struct FlowSpan {
  OpId op;
  std::int32_t step;
  Rank source, destination;
  std::int64_t bytes, start_ps, end_ps;
  friend bool operator==(const FlowSpan&, const FlowSpan&) = default;
};

struct ResourceUse {
  std::int64_t bytes = 0;
  std::int64_t busy_ps = 0;  // time with at least one flow sharing it (latency not counted)
  friend bool operator==(const ResourceUse&, const ResourceUse&) = default;
};

// What a resource had carried by then.
struct WorkDone {
  std::int64_t time_ps;
  Int128 work;  // in 10^-12 byte
};

// What went by one of a topology's routes.
struct RouteUse {
  Int128 bytes = 0;
  std::int64_t flows = 0;
  friend bool operator==(const RouteUse&, const RouteUse&) = default;
};

struct Timeline {
  std::int64_t end_ps = 0;
  std::vector<Span> spans;  // ascending (op, step, rank)
  // Ascending (start, op, step, source, destination); empty unless asked for.
  std::vector<FlowSpan> flows;
  // By ResourceId, and by index of the node template's rules; empty from backends that cannot tell.
  std::vector<ResourceUse> resources;
  std::vector<RouteUse> routes;
  // By ResourceId from its first byte to its last, ascending; empty unless asked for.
  std::vector<std::vector<WorkDone>> work;
};

// Called once per source rank that this process holds, ascending: write the rank's local source
// shard (dense row-major, little-endian) into `bytes`. An executor in which replicas share memory
// (the store) calls it for the first of them only.
using FillSource = std::function<void(Rank rank, std::span<std::byte> bytes)>;
// Called once per destination rank that this process holds, ascending, with its finished shard.
using TakeDestination = std::function<void(Rank rank, std::span<const std::byte> bytes)>;

// A rank's shards of one tensor where the caller has them: dense row-major, of exactly the plan's
// sizes; empty where the rank has none. Not copied, and in use as long as the prepared plan. In the
// memory that the executor works in; for a GPU aligned to the element.
struct CallerShards {
  std::span<const std::byte> source;
  std::span<std::byte> destination;
};

// The processes that run plans together, 0 .. count()-1. The base class is a single one. All
// functions but index, count and abort are collective.
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int index() const { return 0; }  // 0 is the root: the one that reports
  virtual int count() const { return 1; }
  bool is_root() const { return index() == 0; }
  // Every process's bytes, by index, at the root; empty elsewhere.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine);
  // The root's bytes, everywhere.
  virtual std::vector<std::byte> broadcast(std::span<const std::byte> mine);
  // Ends all processes with this exit code, soon; for a process that has already said why on
  // standard error. Returns only where there is a single process.
  virtual void abort(int exit_code) noexcept { static_cast<void>(exit_code); }
};

// A plan made ready: buffers allocated, programs derived, communicators made. It runs as often as
// asked; a run neither changes the source nor depends on earlier runs.
class PreparedPlan {
 public:
  virtual ~PreparedPlan() = default;
  // Once per tensor of the plan before the first run.
  virtual void fill(const FillSource& fill, TensorId tensor) = 0;
  void fill(const FillSource& fill) { this->fill(fill, TensorId{0}); }
  // Runs all steps once and waits for them. Spans of the ranks that this process holds, ascending
  // (step, rank), op 0; the clock stands at 0 when all processes are ready to start. Times are the
  // only thing that may differ between two runs. Throws BackendError where a call fails or takes
  // longer than the time limit.
  virtual Timeline run() = 0;
  // Per tensor, after a run.
  virtual void take(const TakeDestination& take, TensorId tensor) = 0;
  void take(const TakeDestination& take) { this->take(take, TensorId{0}); }
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  // Kept by the executor.
  virtual Processes& processes() { return alone_; }
  // The plan must be proved and must outlive what is returned. Throws InputError when it cannot be
  // run here: ranks that no process has, memory that is not there (before any is taken).
  virtual std::unique_ptr<PreparedPlan> prepare(const Plan& plan) = 0;
  // Whether some step's folds are ordered by a vendor's library: then values agree with the store
  // only where the fold is exact in any order.
  virtual bool folds_in_own_order(const Plan& plan) const { return static_cast<void>(plan), false; }

 private:
  Processes alone_;
};

}  // namespace reshard
