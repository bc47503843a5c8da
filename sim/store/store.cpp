// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/store.h"

#include <algorithm>
#include <vector>

#include "core/layout/replicas.h"

namespace reshard::sim {
namespace {

// Temporaries in the order in which they may be freed.
struct Release {
  std::int32_t after_step;
  BufferId buffer;
  Slot slot;
};

std::vector<Release> releases_of(const Plan& plan, const Lives& lives) {
  std::vector<Release> out;
  std::size_t first = 2 * plan.tensors.size();
  if (plan.buffers.size() == first) return out;
  for (std::size_t b = first; b < plan.buffers.size(); ++b)
    for (std::size_t slot = 0; slot < plan.slot_count(); ++slot) {
      std::int32_t step = lives.end[b * plan.slot_count() + slot];
      if (step >= 0)
        out.push_back({step, BufferId{static_cast<std::int32_t>(b)}, static_cast<Slot>(slot)});
    }
  std::stable_sort(out.begin(), out.end(),
                   [](const Release& a, const Release& b) { return a.after_step < b.after_step; });
  return out;
}

// (slot, position) of the ranks of a mesh, ascending by rank.
std::vector<std::pair<Slot, std::int32_t>> slots_of(const Plan& plan, const Mesh& mesh) {
  std::vector<std::pair<Slot, std::int32_t>> out;
  out.reserve(static_cast<std::size_t>(mesh.size()));
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    out.emplace_back(plan.slot_of(mesh.rank_at(position)), position);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void fill_sources(const Plan& plan, const FillSource& fill, StoreMemory& memory, TensorId tensor) {
  const Request& request = plan.request(tensor);
  const Mesh& mesh = request.source().mesh();
  BufferId source = source_of(tensor);
  std::vector<std::int32_t> replicas = first_replicas(request);
  // By mesh position: the slot that was filled for its set of replicas.
  std::vector<Slot> filled(replicas.size(), -1);
  for (auto [slot, position] : slots_of(plan, mesh)) {
    Slot& with = filled[static_cast<std::size_t>(replicas[static_cast<std::size_t>(position)])];
    if (with >= 0) {
      memory.share_source(source, slot, with);
      continue;
    }
    with = slot;
    fill(plan.ranks[static_cast<std::size_t>(slot)], memory.allocate_source(source, slot));
  }
}

std::int64_t run_steps(const Plan& plan, Forwarding& forwarding, StoreMemory& memory,
                       const StepDone& done) {
  std::vector<Release> releases = releases_of(plan, forwarding.lives());
  std::size_t next = 0;
  std::int64_t before = memory.written_bytes();
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    forwarding.run(StepId{static_cast<std::int32_t>(s)}, memory);
    for (; next < releases.size() && static_cast<std::size_t>(releases[next].after_step) == s;
         ++next)
      memory.release(releases[next].buffer, releases[next].slot);
    if (done) done(StepId{static_cast<std::int32_t>(s)});
  }
  return memory.written_bytes() - before;
}

void take_destinations(const Plan& plan, const TakeDestination& take, StoreMemory& memory,
                       TensorId tensor) {
  BufferId destination = destination_of(tensor);
  for (auto [slot, position] : slots_of(plan, plan.request(tensor).destination().mesh())) {
    std::int64_t size = memory.size_bytes(destination, slot);
    // An empty shard is written by no step.
    const std::byte* data =
        size == 0 ? memory.write(destination, slot) : memory.read(destination, slot);
    take(plan.ranks[static_cast<std::size_t>(slot)], {data, static_cast<std::size_t>(size)});
  }
}

class PreparedStore : public PreparedPlan {
 public:
  PreparedStore(Store& store, const Plan& plan)
      : store_(store),
        plan_(plan),
        forwarding_(plan, store.options_.forward),
        memory_(plan, store.options_.poison) {}

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
        for (Slot slot : reshard::slots_of(plan_.steps[to_index(step)]))
          timeline.spans.push_back({OpId{0}, static_cast<std::int32_t>(step),
                                    plan_.ranks[static_cast<std::size_t>(slot)], start,
                                    timeline.end_ps});
      };
    store_.bytes_moved_ = run_steps(plan_, forwarding_, memory_, done);
    store_.peak_bytes_ = memory_.peak_bytes();
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

std::unique_ptr<PreparedPlan> Store::prepare(const Plan& plan) {
  return std::make_unique<PreparedStore>(*this, plan);
}

}  // namespace reshard::sim
