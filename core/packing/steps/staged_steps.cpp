// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/staged_steps.h"

#include <algorithm>

namespace reshard {
namespace {

constexpr int kChunksInUse = 4;

}  // namespace

std::int32_t StagedSteps::stage(const StageKey& key, int depth, bool paced) {
  auto [at, is_new] = numbers_.try_emplace(key, static_cast<std::int32_t>(stages_.size()));
  if (is_new) stages_.push_back({key, depth, paced});
  return at->second;
}

void StagedSteps::follows(std::int32_t stage, std::int32_t producer, bool waiting) {
  if (producer == kNoStage) return;
  stages_[to_index(stage)].producers.insert(producer);
  if (waiting) stages_[to_index(stage)].empties.insert(producer);
}

StagedSteps::StepKey StagedSteps::place(std::int32_t stage, std::int32_t chunk) const {
  int depth = stages_[to_index(stage)].depth;
  if (layout_.waves) return {chunk + depth, 0, 0};
  return {chunk + depth, depth, stage};
}

StagedSteps::Cell& StagedSteps::cell(std::int32_t stage, std::int32_t chunk) {
  std::vector<Cell*>& known = stages_[to_index(stage)].cells;
  known.resize(to_index(layout_.chunks), nullptr);
  Cell*& out = known[to_index(chunk)];
  if (out != nullptr) return *out;
  auto [at, is_new] = cells_.try_emplace(
      place(stage, chunk), Cell{stage, chunk, MessageSorter(plan_.dims(), plan_.slot_count())});
  out = &at->second;
  return *out;
}

// Waves need no pacing: each waits for the one before.
void StagedSteps::link() {
  for (std::int32_t stage = 0; to_index(stage) < stages_.size(); ++stage)
    for (std::int32_t chunk = 0; chunk < layout_.chunks; ++chunk) {
      auto at = cells_.find(place(stage, chunk));
      if (at == cells_.end()) continue;
      const Stage& own = stages_[to_index(stage)];
      for (std::int32_t producer : own.producers) at->second.after.insert(place(producer, chunk));
      if (layout_.waves) continue;
      if ((own.paced || layout_.all_paced) && chunk >= layout_.window)
        at->second.after.insert(place(stage, chunk - layout_.window));
      if (layout_.coupled && own.paced) couple(stage, chunk, at->second);
      // A step can follow only what is listed before it, so a stage that reads much later holds
      // more chunks.
      for (std::int32_t producer : own.empties) {
        int later = std::max(kChunksInUse, own.depth - depth(producer) + 1);
        if (auto filling = cells_.find(place(producer, chunk + later)); filling != cells_.end())
          filling->second.after.insert(at->first);
      }
    }
}

void StagedSteps::couple(std::int32_t stage, std::int32_t chunk, Cell& cell) {
  for (std::int32_t other = 0; to_index(other) < stages_.size(); ++other) {
    if (other == stage || !stages_[to_index(other)].paced) continue;
    std::int32_t behind = chunk + depth(stage) - depth(other) - layout_.window;
    if (behind >= 0 && behind < layout_.chunks) cell.after.insert(place(other, behind));
  }
}

std::vector<StepId> StagedSteps::add_steps_of(Cell& cell) {
  std::vector<StepId> after;
  for (const StepKey& place : cell.after)
    if (auto at = cells_.find(place); at != cells_.end())
      after.insert(after.end(), at->second.ids.begin(), at->second.ids.end());
  std::sort(after.begin(), after.end());
  if (!cell.messages.empty()) cell.ids.push_back(plan_.add_step(cell.messages.take(), after));
  for (auto& [key, fold] : cell.folds) {
    if (fold.parts.empty()) continue;
    sort_parts(fold);
    cell.ids.push_back(plan_.add_step(std::move(fold), after));
  }
  return cell.ids;
}

}  // namespace reshard
