// SPDX-License-Identifier: BSD-3-Clause
// The steps of a pipeline. Hops, or folds, of one kind form a *stage*; its depth is the number of
// stages that must come before it. Stages and chunks become steps in one of two ways:
//
//   by stage   one step for each stage and chunk. It follows the steps that produced what it works
//              on, and, if its stage is paced, the stage's own step of some chunks before: without
//              that all chunks would start at once, share the links, and all arrive late. If stages
//              are coupled, it also follows the steps of all other paced stages of as many chunks
//              before, because shared links do not give each stage the rate that it needs to keep
//              up with the others. A step that fills temporaries follows those that emptied the
//              temporaries of four chunks before, so that at most four are in use, however steps
//              overlap. Steps are listed by chunk + depth, so that running them in order keeps all
//              stages busy.
//   in waves   one step for all stages and chunks of one chunk + depth, for machines that run steps
//              one after the other: wave t carries chunk t of the first stages, chunk t - 1 of the
//              second, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/moves/messages.h"
#include "core/plan/plan.h"

namespace reshard {

// What identifies a stage.
struct StageKey {
  enum class Kind : std::uint8_t { In, Fold, Out, Divide } kind;
  std::int32_t after = 0;  // inward hops and folds: height; else the stage before
  std::int32_t rule = 0;   // hops: the rule of the route
  bool last = false;       // outward hops: to ranks that forward nothing; folds: complete
  friend auto operator<=>(const StageKey&, const StageKey&) = default;
};

struct StageLayout {
  std::int32_t chunks = 1;
  int window = 2;  // chunks of a paced stage that are in flight at a time
  bool waves = false;
  bool all_paced = false;  // so that no stage has more than `window` chunks of messages packed
  bool coupled = false;    // no paced stage gets more than `window` chunks ahead of another
};

class StagedSteps {
 public:
  static constexpr std::int32_t kNoStage = -1;

  // Adds steps to `plan`.
  StagedSteps(Plan& plan, const StageLayout& layout) : plan_(plan), layout_(layout) {}

  // The stage with this key. If it is new, it gets this depth and pace.
  std::int32_t stage(const StageKey& key, int depth, bool paced);
  int depth(std::int32_t stage) const { return stages_[to_index(stage)].depth; }
  // `stage` works on what `producer` brought; kNoStage: nothing to wait for. `waiting`: it was
  // brought to a temporary.
  void follows(std::int32_t stage, std::int32_t producer, bool waiting);

  MessageSorter& messages(std::int32_t stage, std::int32_t chunk) {
    return cell(stage, chunk).messages;
  }
  // Complete folds have the divisor, too.
  ReduceStep& fold(std::int32_t stage, std::int32_t chunk, ReduceOp op, std::int64_t divisor) {
    bool complete = stages_[to_index(stage)].key.last;
    ReduceStep& step = cell(stage, chunk).folds[{complete, op, complete ? divisor : 1}];
    step.op = op;
    if (complete) step.divisor = divisor;
    return step;
  }

  // Adds everything collected to the plan and calls report(id, key, chunk) for every step, with the
  // first stage and chunk of the step.
  template <class Report>
  void add_steps(Report&& report) {
    link();
    for (auto& [place, cell] : cells_)
      for (StepId id : add_steps_of(cell))
        report(id, stages_[to_index(cell.stage)].key, cell.chunk);
  }

 private:
  // A step's place in the list: chunk + depth, then depth and stage; waves have only the first.
  struct StepKey {
    std::int32_t when;
    int depth;
    std::int32_t stage;
    friend auto operator<=>(const StepKey&, const StepKey&) = default;
  };
  struct Cell {
    std::int32_t stage, chunk;
    MessageSorter messages;
    std::map<std::tuple<bool, ReduceOp, std::int64_t>, ReduceStep> folds =
        {};  // partial ones first
    std::set<StepKey> after = {};
    std::vector<StepId> ids = {};
  };

  struct Stage {
    StageKey key;
    int depth;
    bool paced;
    std::set<std::int32_t> producers = {};
    std::set<std::int32_t> empties = {};  // producers of temporaries that it reads
    std::vector<Cell*> cells = {};        // by chunk; null if not looked up yet
  };

  StepKey place(std::int32_t stage, std::int32_t chunk) const;
  Cell& cell(std::int32_t stage, std::int32_t chunk);
  void link();
  void couple(std::int32_t stage, std::int32_t chunk, Cell& cell);
  std::vector<StepId> add_steps_of(Cell& cell);

  Plan& plan_;
  StageLayout layout_;
  std::map<StageKey, std::int32_t> numbers_;
  std::vector<Stage> stages_;
  std::map<StepKey, Cell> cells_;
};

}  // namespace reshard
