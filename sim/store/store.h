// SPDX-License-Identifier: BSD-3-Clause
// The store: runs a plan on real bytes, with the buffers of all ranks in this process. It is the
// reference that other backends are compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes/block.h"
#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "core/schedule/forwarding.h"
#include "core/schedule/host_operations.h"

namespace reshard::sim {

// The memory of all ranks: one allocation per (buffer, slot), made on first write, or memory that
// the caller lends. Every box is checked against its buffer.
//
// Source shards that hold the same elements of the same addend share one allocation. This is safe
// without copying because plans never write the source: writes to it are refused.
class StoreMemory : public HostOperations<StoreMemory> {
 public:
  // `poison`: fills new memory with 0xa5, so that tests notice reads of memory that was never
  // written. The plan must outlive this object.
  explicit StoreMemory(const Plan& plan, bool poison = false);

  // Allocates the slot's shard of a source, or lets it share that of another slot.
  std::span<std::byte> allocate_source(BufferId source, Slot slot);
  void share_source(BufferId source, Slot slot, Slot with);
  // Uses the caller's memory, which must have the buffer's size and outlive this object. It counts
  // neither as live nor as peak.
  void lend_source(BufferId source, Slot slot, std::span<const std::byte> memory);
  void lend_destination(BufferId destination, Slot slot, std::span<std::byte> memory);

  // The slot must have the buffer, which must have been written before.
  const std::byte* read(BufferId buffer, Slot slot) const;
  // Allocates on the first call. CheckFailure for a source.
  std::byte* write(BufferId buffer, Slot slot);
  void release(BufferId buffer, Slot slot);
  // Counts memory of a step's packed messages: call before the step, and after it with -bytes.
  void count_packed(Slot slot, std::int64_t bytes);

  std::int64_t size_bytes(BufferId buffer, Slot slot) const {
    return plan_.buffer_bytes(buffer, slot);
  }
  // The most that was allocated at any one time; shared memory counts once.
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // The same for every rank by itself, where shared memory counts in full.
  const IndexVector<Slot, std::int64_t>& peaks() const { return peaks_; }

 private:
  void count(Slot slot, std::int64_t bytes);
  std::size_t at(BufferId buffer, Slot slot) const {
    return to_index(buffer) * plan_.slot_count() + to_index(slot);
  }
  std::byte* allocate(BufferId buffer, Slot slot);
  void lend(BufferId buffer, Slot slot, std::byte* data, std::size_t bytes);
  friend class HostOperations<StoreMemory>;
  const std::byte* read(const Place& from) const { return read(from.buffer, from.slot); }
  std::byte* write(const Place& to) { return write(to.buffer, to.slot); }
  Shape shape(const Place& place, const DimVector& extents) const;
  DType dtype(BufferId buffer) const { return plan_.dtype(buffer); }

  const Plan& plan_;
  bool poison_;
  std::int64_t live_bytes_ = 0, peak_bytes_ = 0;
  IndexVector<Slot, std::int64_t> live_, peaks_;
  // [buffer * slots + slot]. Each owns its Block, or owns nothing if the memory is lent.
  std::vector<std::shared_ptr<std::byte>> memory_;
};

// Source, destination and temporaries of all ranks; temporaries at each rank's peak, sharing of
// replicas not deducted.
std::int64_t store_bytes(const Plan& plan);

struct StoreOptions {
  bool poison = false;  // see StoreMemory
  bool forward = true;  // avoids needless packing (core/schedule/forwarding.h)
  // Uses memory as the plan declares it (held_memory.h): frees sources if the plan does, so that it
  // can run only once, and counts packed messages.
  bool as_declared = false;
  // A clock to time steps with, in picoseconds from any origin. Without one, timelines are empty.
  std::function<std::int64_t()> now_ps = {};
  // prepare() throws InputError for a plan that needs more (store_bytes).
  std::int64_t memory_limit_bytes = kMaxBytes;
};

class Store : public Executor {
 public:
  explicit Store(StoreOptions options = {}) : options_(std::move(options)) {}

  std::string_view name() const override { return "local"; }
  // Steps run in listed order, each for all its ranks at once, so that these all get the step's
  // span. `fill` is called for the first rank of every set of source replicas. The bytes passed to
  // `take` stay valid for as long as the prepared plan, which the store must outlive.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;

  // In the last run: bytes written by steps, and the most bytes allocated at one time.
  std::int64_t bytes_moved() const { return bytes_moved_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // By slot; with `as_declared` at most held_memory, and the same where steps are in turn, sources
  // are freed and nothing is forwarded.
  const IndexVector<Slot, std::int64_t>& peaks() const { return peaks_; }

 private:
  friend class PreparedStore;
  StoreOptions options_;
  std::int64_t bytes_moved_ = 0, peak_bytes_ = 0;
  IndexVector<Slot, std::int64_t> peaks_;
};

// The phases of a run, for callers that inspect the memory in between.
void fill_sources(const Plan& plan, const FillSource& fill, StoreMemory& memory,
                  TensorId tensor = TensorId{0});
// Called after every step.
using StepDone = std::function<void(StepId step)>;
// Runs all steps and frees each temporary after its last use. Returns the bytes written.
std::int64_t run_steps(const Plan& plan, Forwarding& forwarding, StoreMemory& memory,
                       const StepDone& done = {}, bool as_declared = false);
void take_destinations(const Plan& plan, const TakeDestination& take, StoreMemory& memory,
                       TensorId tensor = TensorId{0});

}  // namespace reshard::sim
