// SPDX-License-Identifier: BSD-3-Clause
// The steps of a pipeline. Hops, or folds, that are alike make a *stage*, whose depth is the number
// of stages that must come before it. There are two ways to lay stages and chunks out as steps:
//
//   by stage   one step for each stage and chunk. It follows the steps that brought what it works
//              on, and, where its stage is paced, itself of some chunks before: else all chunks
//              would set out at once, share the links, and all arrive late. What fills temporaries
//              follows those that emptied the temporaries of four chunks before, so that no more
//              than four are in use, however steps overlap. Steps are listed by chunk + depth, so
//              that what runs them in order has all stages at work.
//   in waves   one step for all stages and chunks of one chunk + depth, for machines that run one
//              step after the other: wave t carries chunk t of the first stages, chunk t - 1 of the
//              second, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/moves/messages.h"
#include "core/plan/plan.h"

namespace reshard {

// What tells a stage apart from others.
struct StageKey {
  enum class Kind : std::uint8_t { In, Fold, Out, Divide } kind;
  std::int32_t after = 0;  // hops inwards and folds: height; else the stage that brought it
  std::int32_t rule = 0;   // hops: of the route
  bool last = false;       // hops outwards: to ranks that pass nothing on; folds: complete
  friend auto operator<=>(const StageKey&, const StageKey&) = default;
};

struct StageLayout {
  std::int32_t chunks = 1;
  int window = 2;  // chunks of a paced stage that are under way at a time
  bool waves = false;
};

class StagedSteps {
 public:
  static constexpr std::int32_t kNoStage = -1;

  // Steps go to `plan`. What is folded has the operator, and what is complete the divisor.
  StagedSteps(Plan& plan, const StageLayout& layout, ReduceOp op, std::int64_t divisor)
      : plan_(plan), layout_(layout), op_(op), divisor_(divisor) {}

  // The stage of the key; what a new one has for depth and pace.
  std::int32_t stage(const StageKey& key, int depth, bool paced);
  int depth(std::int32_t stage) const { return stages_[to_index(stage)].depth; }
  // kNoStage: nothing to wait for. `waiting`: what the producer brought waits in a temporary.
  void follows(std::int32_t stage, std::int32_t producer, bool waiting);

  MessageSorter& messages(std::int32_t stage, std::int32_t chunk) {
    return cell(stage, chunk).messages;
  }
  ReduceStep& fold(std::int32_t stage, std::int32_t chunk) {
    return cell(stage, chunk).folds[stages_[to_index(stage)].key.last ? 1 : 0];
  }

  // Takes what was collected; says of every step which stage, and of which chunk, it is first of
  // all: said(id, key, chunk).
  template <class Said>
  void add_steps(Said&& said) {
    link();
    for (auto& [place, cell] : cells_)
      for (StepId id : add_steps_of(cell)) said(id, stages_[to_index(cell.stage)].key, cell.chunk);
  }

 private:
  // Where a step stands in the list: chunk + depth, then depth and stage; waves have the first
  // alone.
  struct StepKey {
    std::int32_t when;
    int depth;
    std::int32_t stage;
    friend auto operator<=>(const StepKey&, const StepKey&) = default;
  };
  struct Cell {
    std::int32_t stage, chunk;
    MessageSorter messages;
    ReduceStep folds[2];  // on the way, complete
    std::set<StepKey> after = {};
    std::vector<StepId> ids = {};
  };

  struct Stage {
    StageKey key;
    int depth;
    bool paced;
    std::set<std::int32_t> producers = {};
    std::set<std::int32_t> empties = {};  // producers whose temporaries it reads
    std::vector<Cell*> cells = {};        // by chunk, where one is known
  };

  StepKey place(std::int32_t stage, std::int32_t chunk) const;
  Cell& cell(std::int32_t stage, std::int32_t chunk);
  void link();
  std::vector<StepId> add_steps_of(Cell& cell);

  Plan& plan_;
  StageLayout layout_;
  ReduceOp op_;
  std::int64_t divisor_;
  std::map<StageKey, std::int32_t> numbers_;
  std::vector<Stage> stages_;
  std::map<StepKey, Cell> cells_;
};

// Parts ascending by slot, operands in their order.
void sort_parts(ReduceStep& step);

}  // namespace reshard
