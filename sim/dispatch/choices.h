// SPDX-License-Identifier: BSD-3-Clause
// The choices of placements for the lines of a trace: for each line, and for all together.
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

// Lines are processed one after another: the placements of a line's tensors when it is reached, the
// placements in which it can take them, and their placements afterwards.

enum class DispatchMode : std::uint8_t {
  Torch,  // what PyTorch chooses, by its own costs
  Best    // by the time of our plans over the whole trace; an equal move happens once
};
std::string_view text(DispatchMode mode);

// The state of a named tensor.
struct Held {
  TensorSpec spec;
  std::vector<OpPlacements> brought = {};  // Best: its copies, by their placements
  // The line that made it without stating its sizes, which are then unknown; 0: they are known.
  std::int64_t unsized_by = 0;
  friend bool operator==(const Held&, const Held&) = default;
};
using HeldOf = std::function<const Held&(ValueId value)>;

struct DispatchLine {
  std::int64_t number;  // in the file
  std::string id;
  std::shared_ptr<const OperatorLine> op_line;  // not the declaration of a tensor
  // Values that share memory with what the line writes to. After it their copies are not reused,
  // and their signs are unknown.
  std::vector<ValueId> stale = {};
};

// A processed line: what it moves, and the values that are new or have one more copy.
struct Taken {
  DispatchedCall call;
  std::vector<std::pair<ValueId, Held>> held;
};

class Choices {
 public:
  // `time_ps`: the duration of a request; only used by Best.
  Choices(std::int32_t devices_per_host, std::function<std::int64_t(const Request&)> time_ps)
      : devices_per_host_(devices_per_host), time_ps_(std::move(time_ps)) {}

  // The call with its tensors in their present placements, which must outlive it.
  static OpCall call_of(const OperatorLine& line, const HeldOf& held);
  // A number that identifies the mesh.
  std::uint64_t number_of(const MeshRef& mesh);

  Decision by_torch(const OpCall& call, const MeshRef& mesh);
  // By time. Decision::all has the few best candidates, cheapest first, including the chosen one;
  // it is empty if there is no choice.
  Decision by_time(const OpCall& call, const MeshRef& mesh);
  // The decision of a `redistribute` line. Throws InputError if the tensor lacks the dims.
  static Decision explicit_one(const OperatorLine& line, const HeldOf& held);

  // Duration of a redistribution in microseconds; infinite if no plan does it.
  MoveCost time_on(const MeshRef& mesh);

  // The cost of redistributing a line's inputs if copies are reused. A move that no plan does costs
  // kNoPlanPs.
  struct Effort {
    std::int64_t time_ps = 0, moves = 0;
  };
  static constexpr std::int64_t kNoPlanPs = 1'000'000'000'000'000;
  Effort effort(const OperatorLine& line, const HeldOf& held,
                const std::vector<std::optional<OpPlacements>>& wanted);

  // The time to derive from `from` everything that `to` holds.
  std::int64_t catching_up_ps(const Held& from, const Held& to, const MeshRef& mesh);

  // Processes the line by that decision. With `shares`, copies are kept and reused.
  Taken take(const DispatchLine& line, const HeldOf& held, Decision decision, bool shares);

 private:
  // The least time to redistribute it, or a copy of it, to `to`.
  std::int64_t bringing_ps(const Held& held, const OpPlacements& to, const MoveCost& time) const;
  const TorchMoves& moves_on(const MeshRef& mesh);
  double time_us(const TensorSpec& from, const OpPlacements& to, const MeshRef& mesh);
  DispatchedMove move(std::int32_t input, ValueId value, const Held& held, const OpPlacements& to,
                      const MeshRef& mesh, bool shares);
  static void give_outputs(const OperatorLine& line, const HeldOf& held, Taken& taken);

  std::int32_t devices_per_host_;
  std::function<std::int64_t(const Request&)> time_ps_;
  std::deque<TorchMoves> meshes_;  // references stay valid
  // The one used last: most traces have only one.
  MeshRef last_mesh_;
  const TorchMoves* last_moves_ = nullptr;
  // By mesh, tensor and target placements; only looked up, never iterated.
  std::unordered_map<SpecKey, double, SpecKeyHash> times_us_;
};

// Choices for every line of a trace such that all moves together take the least time: the shortest
// path over the placements of tensors, line by line, with the few best states kept.
//
// A state is the placements of the values that later lines name, copies included. A state is
// dropped if a faster one can still become it, by redistributing what it holds, within its lead: a
// move made early without need is never cheaper than the same move later. On a chain with few
// states the rest contains the shortest path. If many values are alive, only kStates states are
// followed, and after kLag lines the choice of the best one is final, so the work is linear in the
// length of the trace.

inline constexpr std::size_t kStates = 12, kLag = 64;

// `declared`: by ValueId, the values that lines declare. `file` is for messages. Throws InputError
// "FILE:LINE: ..." for a line that cannot be processed in any state.
std::vector<Taken> look_ahead(const std::vector<DispatchLine>& lines,
                              const std::vector<std::optional<Held>>& declared,
                              const std::string& file, Choices& choices);

}  // namespace reshard::sim
