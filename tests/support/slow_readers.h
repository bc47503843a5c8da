// SPDX-License-Identifier: BSD-3-Clause
// The most that one rank's temporaries hold with the worst durations of its steps. In a run every
// step begins as soon as the steps that it waits for have ended, and of the running steps the one
// that frees least ends first. Before that, a run goes as fast as possible to some step: only the
// steps that it waits for have ended; and optionally from there to the largest temporaries,
// wherever more is held then.
//
// A machine can get to each of these runs, so a declared peak below their maximum is wrong.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/plan/step_order.h"
#include "core/schedule/lowering.h"

namespace reshard::test {

class SlowReaders {
 public:
  SlowReaders(const Plan& plan, Slot slot) : bytes_(plan.buffers.size()) {
    StepOrder order(plan);
    std::vector<std::int32_t> steps;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      bool takes_part = false;
      RankStep step;
      for_each_access(plan, plan.steps[s], [&](BufferId buffer, Slot at, bool) {
        takes_part |= at == slot;
        if (at == slot && plan.buffer(buffer).role() == BufferRole::Temporary)
          step.uses.push_back(to_index(buffer));
      });
      if (!takes_part) continue;
      std::sort(step.uses.begin(), step.uses.end());
      step.uses.erase(std::unique(step.uses.begin(), step.uses.end()), step.uses.end());
      for (std::size_t buffer : step.uses) {
        if (bytes_[buffer] == 0) step.begins += plan.buffer_bytes(id_of<BufferId>(buffer), slot);
        bytes_[buffer] = plan.buffer_bytes(id_of<BufferId>(buffer), slot);
      }
      for (std::size_t before = 0; before < steps.size(); ++before)
        if (order.ordered(slot, steps[before], static_cast<std::int32_t>(s)))
          step.waits.push_back(before);
      steps.push_back(static_cast<std::int32_t>(s));
      steps_.push_back(std::move(step));
    }
    greatest_first_.resize(steps_.size());
    std::iota(greatest_first_.begin(), greatest_first_.end(), 0);
    std::stable_sort(greatest_first_.begin(), greatest_first_.end(),
                     [&](std::size_t a, std::size_t b) {
                       return std::pair(-steps_[a].begins, steps_[a].uses) <
                              std::pair(-steps_[b].begins, steps_[b].uses);
                     });
  }

  // The most over all runs.
  std::int64_t most_bytes() const {
    std::int64_t most = 0;
    for (std::size_t first = 0; first < steps_.size(); ++first) {
      Run alone(*this);
      alone.hurry_to(first);
      Run greedy = alone;
      for (std::size_t step : greatest_first_) greedy.hurry_if_more(step);
      most = std::max({most, alone.most_bytes(), greedy.most_bytes()});
    }
    return most;
  }

 private:
  struct RankStep {
    std::vector<std::size_t> waits, uses;  // all steps before it; temporaries
    std::int64_t begins = 0;               // bytes of temporaries that it is the first to use
  };

  class Run {
   public:
    explicit Run(const SlowReaders& rank)
        : rank_(&rank),
          state_(rank.steps_.size(), State::Waits),
          users_(rank.bytes_.size(), 0),
          held_(rank.bytes_.size()) {
      for (const RankStep& step : rank.steps_)
        for (std::size_t buffer : step.uses) ++users_[buffer];
    }

    void hurry_to(std::size_t step) {
      for (std::size_t before : rank_->steps_[step].waits)
        if (state_[before] != State::Ended) {
          begin(before);
          end(before);
        }
      begin(step);
    }
    void hurry_if_more(std::size_t step) {
      if (rank_->steps_[step].begins == 0 || state_[step] == State::Ended) return;
      Run tried = *this;
      tried.hurry_to(step);
      if (tried.bytes_ > bytes_) *this = std::move(tried);
    }

    std::int64_t most_bytes() {
      for (std::int64_t most = 0;;) {
        for (std::size_t s = 0; s < state_.size(); ++s)
          if (state_[s] == State::Waits && may_begin(s)) begin(s);
        most = std::max(most, bytes_);
        std::size_t least = state_.size();
        for (std::size_t s = 0; s < state_.size(); ++s)
          if (state_[s] == State::UnderWay &&
              (least == state_.size() || gives_back(s) < gives_back(least)))
            least = s;
        if (least == state_.size()) return most;
        end(least);
      }
    }

   private:
    enum class State { Waits, UnderWay, Ended };

    bool may_begin(std::size_t step) const {
      const std::vector<std::size_t>& waits = rank_->steps_[step].waits;
      return std::all_of(waits.begin(), waits.end(),
                         [&](std::size_t before) { return state_[before] == State::Ended; });
    }
    void begin(std::size_t step) {
      state_[step] = State::UnderWay;
      for (std::size_t buffer : rank_->steps_[step].uses) {
        if (!held_[buffer]) bytes_ += rank_->bytes_[buffer];
        held_[buffer] = true;
      }
    }
    std::int64_t gives_back(std::size_t step) const {
      std::int64_t bytes = 0;
      for (std::size_t buffer : rank_->steps_[step].uses)
        if (users_[buffer] == 1) bytes += rank_->bytes_[buffer];
      return bytes;
    }
    void end(std::size_t step) {
      state_[step] = State::Ended;
      bytes_ -= gives_back(step);
      for (std::size_t buffer : rank_->steps_[step].uses) --users_[buffer];
    }

    const SlowReaders* rank_;
    std::vector<State> state_;         // by step
    std::vector<std::int32_t> users_;  // by temporary: its users that have not ended
    std::vector<bool> held_;           // by temporary: now or before
    std::int64_t bytes_ = 0;
  };

  std::vector<RankStep> steps_;
  std::vector<std::int64_t> bytes_;          // by buffer; temporaries only
  std::vector<std::size_t> greatest_first_;  // steps, by the size of what they use
};

// The most bytes that `slot`'s temporaries hold.
inline std::int64_t held_by_slow_readers(const Plan& plan, Slot slot) {
  return SlowReaders(plan, slot).most_bytes();
}

}  // namespace reshard::test
