// SPDX-License-Identifier: BSD-3-Clause
// What lines take: the choices of each, and of all together.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/layout/request.h"
#include "core/ops/decision_cache.h"
#include "sim/dispatch/dispatched.h"

namespace reshard::sim {

// One line of a trace after the other: how its tensors lie when it is reached, what it may take
// them as, and how they lie then.

enum class DispatchMode : std::uint8_t {
  Torch,  // what PyTorch chooses, by its own costs
  Best    // by the time of our plans over the whole trace; what moves the same way twice moves once
};
std::string_view text(DispatchMode mode);

// What a name stands for.
struct Held {
  TensorSpec spec;
  std::vector<OpPlacements> brought = {};  // Best: copies that it was brought to
  // The line that made it and does not say its sizes, which nothing else knows; 0: they are known.
  std::int64_t unsized_by = 0;
  friend bool operator==(const Held&, const Held&) = default;
};
using HeldOf = std::function<const Held&(ValueId value)>;

struct DispatchLine {
  std::int64_t number;  // in the file
  std::string id;
  std::shared_ptr<const OperatorLine> said;  // not of a tensor
  // Those it writes to: after it their copies do not serve again, and their signs are not known.
  std::vector<ValueId> stale = {};
};

// A line that is done: what it moves, and the values that are new or have one more copy.
struct Taken {
  DispatchedCall call;
  std::vector<std::pair<ValueId, Held>> held;
};

class Choices {
 public:
  // `time_ps`: how long a request takes; only Best asks.
  Choices(std::int32_t devices_per_host, std::function<std::int64_t(const Request&)> time_ps)
      : devices_per_host_(devices_per_host), time_ps_(std::move(time_ps)) {}

  // The call with its tensors as they lie, which must outlive it.
  static OpCall call_of(const OperatorLine& line, const HeldOf& held);
  // Tells meshes apart.
  std::uint64_t number_of(const MeshRef& mesh);

  Decision by_torch(const OpCall& call, const MeshRef& mesh);
  // By time; Decision::all has the few best, cheapest first, the chosen one among them. It is empty
  // where nothing can be chosen.
  Decision by_time(const OpCall& call, const MeshRef& mesh);
  // A `redistribute` line's. Throws InputError where the tensor has not the dims.
  static Decision explicit_one(const OperatorLine& line, const HeldOf& held);

  // How long a redistribution takes, in microseconds; infinite where no plan leads.
  MoveCost time_on(const MeshRef& mesh);

  // What it takes to bring a line's inputs where copies serve again. What no plan does takes
  // kNoPlanPs.
  struct Effort {
    std::int64_t time_ps = 0, moves = 0;
  };
  static constexpr std::int64_t kNoPlanPs = 1'000'000'000'000'000;
  Effort effort(const OperatorLine& line, const HeldOf& held,
                const std::vector<std::optional<OpPlacements>>& wanted);

  // What it takes to make of `from` all that `to` holds.
  std::int64_t catching_up_ps(const Held& from, const Held& to, const MeshRef& mesh);

  // The line by that decision. With `shares`, copies serve again and are kept.
  Taken take(const DispatchLine& line, const HeldOf& held, Decision decision, bool shares);

 private:
  // The least time to bring it, or a copy of it, there.
  std::int64_t bringing_ps(const Held& held, const OpPlacements& to, const MoveCost& time) const;
  const TorchMoves& moves_on(const MeshRef& mesh);
  double time_us(const TensorSpec& from, const OpPlacements& to, const MeshRef& mesh);
  DispatchedMove move(std::int32_t input, ValueId value, const Held& held, const OpPlacements& to,
                      const MeshRef& mesh, bool shares);
  static void give_outputs(const OperatorLine& line, const HeldOf& held, Taken& taken);

  std::int32_t devices_per_host_;
  std::function<std::int64_t(const Request&)> time_ps_;
  std::deque<TorchMoves> meshes_;  // references stay
  // The one asked for last: most traces have one.
  MeshRef last_mesh_;
  const TorchMoves* last_moves_ = nullptr;
  // By mesh, tensor and where it goes; looked up only, never iterated.
  std::unordered_map<SpecKey, double, SpecKeyHash> times_us_;
};

// What every line of a trace takes so that all of them together move for the least time: the
// shortest path over how tensors may lie, line by line, with the few best states kept.
//
// A state is how the values that later lines name lie, copies included. One that another could
// still become in the time that it is ahead, by bringing what it holds to how it lies there, is not
// followed: what is moved early without need is never cheaper than the same move later. On a chain
// with few states the rest has the shortest path itself. Where many values are alive, kStates of
// the states are followed, and after kLag lines the best one's choice holds; so the work grows with
// the length of the trace alone.

inline constexpr std::size_t kStates = 12, kLag = 64;

// `declared`: by ValueId, what lines declare. `file` for messages. Throws InputError
// "FILE:LINE: ..." for a line that can be done in no state.
std::vector<Taken> look_ahead(const std::vector<DispatchLine>& lines,
                              const std::vector<std::optional<Held>>& declared,
                              const std::string& file, Choices& choices);

}  // namespace reshard::sim
