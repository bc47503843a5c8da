// SPDX-License-Identifier: BSD-3-Clause
#include "backends/cuda/prepared.h"

#include <algorithm>

#include <fmt/core.h>

#include "backends/launch/patience.h"
#include "core/base/errors.h"
#include "core/bytes/block.h"
#include "core/proof/proof.h"

namespace reshard::backends::cuda {
namespace {

// False if the device takes longer than the limit, as one that hangs does.
bool wait_for(Device& device, Event event, std::int64_t limit_s) {
  launch::Patience patience{std::chrono::seconds(limit_s)};
  while (!device.done(event))
    if (!patience.idle()) return false;
  return true;
}

}  // namespace

Prepared::Prepared(Device& device, const Plan& plan, Shards shards, const ExecutorOptions& options)
    : device_(device),
      plan_(plan),
      options_(options),
      shards_(std::move(shards)),
      origin_(device),
      finished_(device) {
  debug_check_operations(
      plan, [&plan](StepId step, Operations& out) { lower(plan, plan.steps[step], out); });
  shards_.allocate(device);
  std::vector<StreamedStep> places =
      assign_streams(steps_before(plan, shards_.temporaries()), options.streams);
  int used = 1;
  for (const StreamedStep& place : places) used = std::max(used, place.stream + 1);
  for (int s = 0; s < used; ++s) streams_.emplace_back(device);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    steps_.push_back({add_step(plan, plan.steps[s], shards_, tables_), std::move(places[s]),
                      EventOwner(device), EventOwner(device)});
  tables_.upload(device, stream(0));
  finish(stream(0), "uploading the tables of the plan");
}

std::int64_t Prepared::largest_bytes(BufferId shard) const {
  std::int64_t most = 0;
  for (Slot slot : shards_.holders(shard)) most = std::max(most, plan_.buffer_bytes(shard, slot));
  return most;
}

void Prepared::finish(Stream stream, const std::string& what) {
  device_.record(finished_.get(), stream);
  if (wait_for(device_, finished_.get(), options_.time_limit_s)) return;
  shards_.abandon();
  tables_.abandon();
  throw BackendError("CUDA", what, fmt::format("not finished within {} s", options_.time_limit_s),
                     -1);
}

void Prepared::fill(const FillSource& fill, TensorId tensor) {
  BufferId source = source_of(tensor);
  Block staging(largest_bytes(source));
  for (Slot slot : shards_.holders(source)) {
    std::span<std::byte> bytes(staging.data(), to_index(plan_.buffer_bytes(source, slot)));
    Rank rank = plan_.rank_of(slot);
    fill(rank, bytes);
    if (bytes.empty()) continue;
    device_.upload(shards_.data(source, slot), bytes, stream(0));
    finish(stream(0), fmt::format("uploading the source shard of rank {}", to_int(rank)));
  }
}

void Prepared::start(const StepRun& step) {
  Stream on = stream(step.place.stream);
  for (std::int32_t before : step.place.waits) device_.wait(on, steps_[to_index(before)].end.get());
  device_.record(step.begin.get(), on);
  for (LaunchTables::Id launch : step.launches) tables_.launch(launch, device_, on);
  device_.record(step.end.get(), on);
}

Timeline Prepared::run() {
  device_.record(origin_.get(), stream(0));
  for (std::size_t s = 1; s < streams_.size(); ++s) device_.wait(streams_[s].get(), origin_.get());
  for (const StepRun& step : steps_) start(step);
  std::vector<const StepRun*> last(streams_.size());
  for (const StepRun& step : steps_) last[to_index(step.place.stream)] = &step;
  for (std::size_t s = 1; s < streams_.size(); ++s)
    if (last[s] != nullptr) device_.wait(stream(0), last[s]->end.get());
  finish(stream(0), "running the steps of the plan");

  Timeline timeline;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    std::int64_t start_ps = device_.elapsed_ps(origin_.get(), steps_[s].begin.get());
    std::int64_t end_ps =
        std::max(start_ps, device_.elapsed_ps(origin_.get(), steps_[s].end.get()));
    timeline.end_ps = std::max(timeline.end_ps, end_ps);
    for (Slot slot : slots_of(plan_.steps[s]))
      timeline.spans.push_back(
          {OpId{0}, static_cast<std::int32_t>(s), plan_.ranks[slot], start_ps, end_ps});
  }
  return timeline;
}

void Prepared::take(const TakeDestination& take, TensorId tensor) {
  BufferId destination = destination_of(tensor);
  Block staging(largest_bytes(destination));
  for (Slot slot : shards_.holders(destination)) {
    std::span<std::byte> bytes(staging.data(), to_index(plan_.buffer_bytes(destination, slot)));
    Rank rank = plan_.rank_of(slot);
    if (!bytes.empty()) {
      device_.download(bytes, shards_.data(destination, slot), stream(0));
      finish(stream(0), fmt::format("downloading the destination shard of rank {}", to_int(rank)));
    }
    take(rank, bytes);
  }
}

}  // namespace reshard::backends::cuda
