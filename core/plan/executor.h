// SPDX-License-Identifier: BSD-3-Clause
// The interface by which plans run on real bytes: the in-process store ("local"), MPI, CUDA, NCCL.
//
// An executor is one of several processes that run a plan together, or the only one. Every process
// holds the shards of some ranks, calls the same functions in the same order with the same plan,
// and runs the parts of its ranks. Executors differ in where the bytes are and what carries them;
// values are those that plan.h defines, bit for bit, unless folds_in_own_order is set.
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

// When one rank's part of one step of a plan ran, in the simulated engine or in a real backend; or
// of an operation without steps (step -1: compute, send, recv, bare collective).
struct Span {
  OpId op;
  std::int32_t step;
  Rank rank;
  std::int64_t start_ps, end_ps;
  friend bool operator==(const Span&, const Span&) = default;
};

// One transfer between two ranks. start_ps: both ends are ready and the latency begins; end_ps: the
// last byte has arrived.
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

// How much a resource had carried by a point in time.
struct WorkDone {
  std::int64_t time_ps;
  Int128 work;  // in 10^-12 byte
};

// Traffic over the routes of one rule of a topology.
struct RouteUse {
  Int128 bytes = 0;
  std::int64_t flows = 0;
  friend bool operator==(const RouteUse&, const RouteUse&) = default;
};

struct Timeline {
  std::int64_t end_ps = 0;
  std::vector<Span> spans;  // ascending (op, step, rank)
  // Ascending (start, op, step, source, destination); empty unless requested.
  std::vector<FlowSpan> flows;
  // By ResourceId, and by index of the node template's rules; empty from backends that cannot
  // measure them.
  std::vector<ResourceUse> resources;
  std::vector<RouteUse> routes;
  // By ResourceId: from its first byte to its last, ascending in time; empty unless requested.
  std::vector<std::vector<WorkDone>> work;
};

// Called once per source rank that this process holds, ascending: writes the rank's local source
// shard (dense row-major, little-endian) into `bytes`. An executor in which replicas share memory
// (the store) calls it only for the first of them.
using FillSource = std::function<void(Rank rank, std::span<std::byte> bytes)>;
// Called once per destination rank that this process holds, ascending, with its finished shard.
using TakeDestination = std::function<void(Rank rank, std::span<const std::byte> bytes)>;

// A rank's shards of one tensor in the caller's memory: dense row-major, of exactly the plan's
// sizes; empty if the rank has none. They are not copied, and stay in use as long as the prepared
// plan. They must be in the memory that the executor works in; for a GPU, aligned to the element.
struct CallerShards {
  std::span<const std::byte> source;
  std::span<std::byte> destination;
};

// The processes that run plans together, 0 .. count()-1. The base class is a single process. All
// functions except index, count and abort are collective.
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int index() const { return 0; }  // 0 is the root: the one that reports
  virtual int count() const { return 1; }
  bool is_root() const { return index() == 0; }
  // Returns every process's bytes, by index, at the root; nothing elsewhere.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine);
  // Returns the root's bytes on every process.
  virtual std::vector<std::byte> broadcast(std::span<const std::byte> mine);
  // Ends all processes soon, with this exit code; for a process that has already reported the
  // reason on standard error. Returns only if there is a single process.
  virtual void abort(int exit_code) noexcept { static_cast<void>(exit_code); }
};

// A plan that is ready to run: buffers allocated, programs derived, communicators created. It can
// run any number of times; a run neither changes the source nor depends on earlier runs.
class PreparedPlan {
 public:
  virtual ~PreparedPlan() = default;
  // Once per tensor of the plan before the first run.
  virtual void fill(const FillSource& fill, TensorId tensor) = 0;
  void fill(const FillSource& fill) { this->fill(fill, TensorId{0}); }
  // Runs all steps once and waits for them. Returns spans of the ranks that this process holds,
  // ascending (step, rank), op 0; time 0 is when all processes are ready to start. Only times can
  // differ between two runs. Throws BackendError if a call fails or takes longer than the time
  // limit.
  virtual Timeline run() = 0;
  // Per tensor, after a run.
  virtual void take(const TakeDestination& take, TensorId tensor) = 0;
  void take(const TakeDestination& take) { this->take(take, TensorId{0}); }
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  // Owned by the executor.
  virtual Processes& processes() { return alone_; }
  // The plan must be proved and must outlive the result. Throws InputError if it cannot run here:
  // ranks that no process has, or too little memory (checked before any is allocated).
  virtual std::unique_ptr<PreparedPlan> prepare(const Plan& plan) = 0;
  // Whether a vendor's library decides the order of some step's folds: then values agree with the
  // store only if the fold is exact in any order.
  virtual bool folds_in_own_order(const Plan& plan) const { return static_cast<void>(plan), false; }

 private:
  Processes alone_;
};

}  // namespace reshard
