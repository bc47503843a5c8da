// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/store.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/request.h"
#include "core/proof/proof.h"
#include "core/schedule/packed_messages.h"
#include "core/traffic/accounting.h"

namespace reshard::sim {

namespace {

// A buffer and the step after which it can be freed; -1: before all.
struct Release {
  std::int32_t after_step;
  BufferId buffer;
  Slot slot;
};

std::vector<Release> releases_of(const Plan& plan, const Lives& lives, bool sources) {
  std::vector<Release> out;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    BufferRole role = plan.buffers[b].role();
    if (role == BufferRole::Destination || (role == BufferRole::Source && !sources)) continue;
    for (std::size_t slot = 0; slot < plan.slot_count(); ++slot) {
      std::int32_t step = lives.end[b * plan.slot_count() + slot];
      bool there = role == BufferRole::Source && plan.buffers[b].exists(static_cast<Slot>(slot));
      if (step >= 0 || there) out.push_back({step, id_of<BufferId>(b), static_cast<Slot>(slot)});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Release& a, const Release& b) { return a.after_step < b.after_step; });
  return out;
}

// (slot, position) of the ranks of a mesh, ascending by rank.
std::vector<std::pair<Slot, std::int32_t>> slots_of(const Plan& plan, const Mesh& mesh) {
  std::vector<std::pair<Slot, std::int32_t>> out;
  out.reserve(to_index(mesh.size()));
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    out.emplace_back(plan.slot_of(mesh.rank_at(position)), position);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

StoreMemory::StoreMemory(const Plan& plan, bool poison)
    : plan_(plan),
      poison_(poison),
      live_(plan.slot_count(), 0),
      peaks_(plan.slot_count(), 0),
      memory_(plan.buffers.size() * plan.slot_count()) {}

void StoreMemory::count(Slot slot, std::int64_t bytes) {
  live_[slot] += bytes;
  peaks_[slot] = std::max(peaks_[slot], live_[slot]);
}

void StoreMemory::count_packed(Slot slot, std::int64_t bytes) { count(slot, bytes); }

std::byte* StoreMemory::allocate(BufferId buffer, Slot slot) {
  RESHARD_CHECK(plan_.buffer(buffer).exists(slot),
                fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
  std::int64_t bytes = size_bytes(buffer, slot);
  auto block = std::make_shared<Block>(bytes);
  if (poison_) std::memset(block->data(), 0xa5, to_index(bytes));
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  count(slot, bytes);
  memory_[at(buffer, slot)] = {block, block->data()};
  return block->data();
}

std::span<std::byte> StoreMemory::allocate_source(BufferId source, Slot slot) {
  std::byte* data = allocate(source, slot);
  return {data, to_index(size_bytes(source, slot))};
}

void StoreMemory::share_source(BufferId source, Slot slot, Slot with) {
  RESHARD_CHECK(size_bytes(source, slot) == size_bytes(source, with),
                fmt::format("slots {} and {} share no shard", slot, with));
  memory_[at(source, slot)] = memory_[at(source, with)];
  count(slot, size_bytes(source, slot));
}

void StoreMemory::lend(BufferId buffer, Slot slot, std::byte* data, std::size_t bytes) {
  RESHARD_CHECK(
      size_bytes(buffer, slot) == static_cast<std::int64_t>(bytes),
      fmt::format("slot {} is lent {} bytes for buffer {}", slot, bytes, to_index(buffer)));
  memory_[at(buffer, slot)] = {std::shared_ptr<Block>(), data};
}

void StoreMemory::lend_source(BufferId source, Slot slot, std::span<const std::byte> memory) {
  // The const_cast is safe: write() refuses sources.
  lend(source, slot, const_cast<std::byte*>(memory.data()), memory.size());
}

void StoreMemory::lend_destination(BufferId destination, Slot slot, std::span<std::byte> memory) {
  lend(destination, slot, memory.data(), memory.size());
}

const std::byte* StoreMemory::read(BufferId buffer, Slot slot) const {
  const std::shared_ptr<std::byte>& memory = memory_[at(buffer, slot)];
  RESHARD_CHECK(memory != nullptr, fmt::format("buffer {} of slot {} is read but was not written",
                                               to_index(buffer), slot));
  return memory.get();
}

std::byte* StoreMemory::write(BufferId buffer, Slot slot) {
  RESHARD_CHECK(plan_.buffer(buffer).role() != BufferRole::Source,
                fmt::format("the source of slot {} is written", slot));
  const std::shared_ptr<std::byte>& memory = memory_[at(buffer, slot)];
  return memory ? memory.get() : allocate(buffer, slot);
}

void StoreMemory::release(BufferId buffer, Slot slot) {
  std::shared_ptr<std::byte>& memory = memory_[at(buffer, slot)];
  // Lent memory has no owner and was not counted.
  if (memory.use_count() == 1) live_bytes_ -= size_bytes(buffer, slot);
  if (memory.use_count() > 0) count(slot, -size_bytes(buffer, slot));
  memory.reset();
}

Shape StoreMemory::shape(const Place& place, const DimVector& extents) const {
  const auto& [slot, buffer, lo] = place;
  RESHARD_CHECK(to_index(buffer) < plan_.buffers.size() && to_index(slot) < plan_.slot_count() &&
                    plan_.buffer(buffer).exists(slot),
                fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
  Shape whole = plan_.buffer(buffer).shape(slot);
  bool inside = lo.size() == whole.size();
  for (int d = 0; d < whole.size(); ++d)
    inside = inside && lo[d] >= 0 && lo[d] + extents[d] <= whole[d];
  RESHARD_CHECK(inside,
                fmt::format("box {} lies outside buffer {} [{}] of slot {}",
                            text(box_at(lo, extents)), to_index(buffer), text(whole), slot));
  return whole;
}

void fill_sources(const Plan& plan, const FillSource& fill, StoreMemory& memory, TensorId tensor) {
  const Request& request = plan.request(tensor);
  const Mesh& mesh = request.source().mesh();
  BufferId source = source_of(tensor);
  IndexVector<std::int32_t, std::int32_t> replicas = first_replicas(request);
  // By first position of a set of replicas: the slot that was filled for the set.
  IndexVector<std::int32_t, Slot> filled(replicas.size(), -1);
  for (auto [slot, position] : slots_of(plan, mesh)) {
    Slot& with = filled[replicas[position]];
    if (with >= 0) {
      memory.share_source(source, slot, with);
      continue;
    }
    with = slot;
    fill(plan.rank_of(slot), memory.allocate_source(source, slot));
  }
}

namespace {

// Calls visit(slot, bytes) for both ends of every message of the step that is packed.
template <class Visit>
void for_each_packed(const Plan& plan, StepId step, Visit&& visit) {
  const auto* exchange = exchange_of(plan.steps[step]);
  if (exchange == nullptr) return;
  for (const ExchangeStep::Message& message : exchange->messages) {
    PackedBytes bytes = packed_bytes(plan, *exchange, message);
    visit(message.source, bytes.sender);
    visit(message.destination, bytes.receiver);
  }
}

}  // namespace

std::int64_t run_steps(const Plan& plan, Forwarding& forwarding, StoreMemory& memory,
                       const StepDone& done, bool as_declared) {
  std::vector<Release> releases =
      releases_of(plan, forwarding.lives(), as_declared && plan.frees_sources);
  std::size_t next = 0;
  auto release_up_to = [&](std::int32_t step) {
    for (; next < releases.size() && releases[next].after_step <= step; ++next)
      memory.release(releases[next].buffer, releases[next].slot);
  };
  std::int64_t before = memory.written_bytes();
  release_up_to(-1);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    auto count = [&](int sign) {
      if (as_declared)
        for_each_packed(plan, id_of<StepId>(s), [&](Slot slot, std::int64_t bytes) {
          memory.count_packed(slot, sign * bytes);
        });
    };
    count(+1);
    forwarding.run(id_of<StepId>(s), memory);
    count(-1);
    release_up_to(static_cast<std::int32_t>(s));
    if (done) done(id_of<StepId>(s));
  }
  return memory.written_bytes() - before;
}

void take_destinations(const Plan& plan, const TakeDestination& take, StoreMemory& memory,
                       TensorId tensor) {
  BufferId destination = destination_of(tensor);
  for (auto [slot, position] : slots_of(plan, plan.request(tensor).destination().mesh())) {
    std::int64_t size = memory.size_bytes(destination, slot);
    // No step writes an empty shard.
    const std::byte* data =
        size == 0 ? memory.write(destination, slot) : memory.read(destination, slot);
    take(plan.rank_of(slot), {data, to_index(size)});
  }
}

class PreparedStore : public PreparedPlan {
 public:
  PreparedStore(Store& store, const Plan& plan)
      : store_(store),
        plan_(plan),
        forwarding_(plan, store.options_.forward),
        memory_(plan, store.options_.poison) {
    debug_check_operations(plan,
                           [this](StepId step, Operations& out) { forwarding_.run(step, out); });
  }

  void fill(const FillSource& fill, TensorId tensor) override {
    fill_sources(plan_, fill, memory_, tensor);
  }

  Timeline run() override {
    Timeline timeline;
    const std::function<std::int64_t()>& now = store_.options_.now_ps;
    StepDone done;
    std::int64_t begin = now ? now() : 0;
    if (now)
      done = [&](StepId step) {
        std::int64_t start = timeline.end_ps;
        timeline.end_ps = now() - begin;
        for (Slot slot : reshard::slots_of(plan_.steps[step]))
          timeline.spans.push_back({OpId{0}, static_cast<std::int32_t>(step), plan_.rank_of(slot),
                                    start, timeline.end_ps});
      };
    store_.bytes_moved_ = run_steps(plan_, forwarding_, memory_, done, store_.options_.as_declared);
    store_.peak_bytes_ = memory_.peak_bytes();
    store_.peaks_ = memory_.peaks();
    return timeline;
  }

  void take(const TakeDestination& take, TensorId tensor) override {
    take_destinations(plan_, take, memory_, tensor);
  }

 private:
  Store& store_;
  const Plan& plan_;
  Forwarding forwarding_;
  StoreMemory memory_;
};

std::int64_t store_bytes(const Plan& plan) {
  Int128 sum = 0;
  for (std::int64_t bytes : count_bytes(plan).peak_per_slot) sum += bytes;
  // All ranks of a large request together may need more than 2^63 bytes.
  return sum > Int128{kMaxBytes} ? kMaxBytes : static_cast<std::int64_t>(sum);
}

std::unique_ptr<PreparedPlan> Store::prepare(const Plan& plan) {
  if (std::int64_t needed = store_bytes(plan); needed > options_.memory_limit_bytes)
    throw InputError(fmt::format("{}: running this plan needs {}, above the memory limit of {}",
                                 name(), bytes_text(needed),
                                 bytes_text(options_.memory_limit_bytes)));
  return std::make_unique<PreparedStore>(*this, plan);
}

}  // namespace reshard::sim
