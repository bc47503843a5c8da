// SPDX-License-Identifier: BSD-3-Clause
// The placements that an operator wants its inputs in, and those that its outputs have.
//
// A rule has rows per axis; a candidate takes one row per axis. Candidates that a tensor cannot
// have are dropped; the cost of each remaining one is that of redistributing its inputs, and one is
// chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/operator.h"

namespace reshard {

// Cost of redistributing a tensor, in microseconds; infinite where that is not allowed.
using MoveCost = std::function<double(const TensorSpec& from, const OpPlacements& to)>;

// The inputs of a call with lists expanded in order, null for absent ones; absent ones at the end
// are left out.
std::vector<const TensorSpec*> flat_inputs(const OpCall& call);

// A candidate, and the cost of redistributing its inputs.
struct Candidate {
  std::vector<std::optional<OpPlacements>> in, out;
  double cost_us = 0;
};

// A collective along one axis that an operator issues itself.
struct OpCollective {
  std::string_view kind;  // "all_gather", "all_reduce"
  int axis;
  Shape shape;  // of the whole tensor that it works on, which is cut as the first input is
  DType dtype;
};

struct Decision {
  // By flat input; none if it is absent.
  std::vector<std::optional<OpPlacements>> wanted;
  std::vector<std::optional<TensorSpec>> outputs;  // none: not produced
  double cost_us = 0;
  std::int64_t candidates = 1;  // that remained
  std::int64_t ties = 1;        // candidates with the chosen one's cost, including it
  // Made by a handler and not chosen among rows: the handler communicates while it works on the
  // shards.
  bool handled = false;
  std::vector<OpCollective> collectives;  // that the handler issues
  // The cheapest candidate other than the chosen one.
  std::vector<std::optional<OpPlacements>> runner_up;
  std::optional<double> runner_up_us;
  // All that remained, in the order of the search; only if Choosing::list_all.
  std::vector<Candidate> all;
  // Why it was taken from a trace and not decided; empty: it was decided.
  std::string recorded;
  // How PyTorch gives wrong values or fails here, in a sentence; empty: it does not.
  std::string_view corrected;
};

// How ties in cost are resolved.
enum class Ties : std::uint8_t {
  // As PyTorch: the last zero-cost candidate in which nothing moves, else the first of least cost.
  Torch,
  // As PyTorch does for each position of a list: the first of least cost.
  First,
  // The first of least cost in which the fewest inputs move.
  Fewest
};

struct Choosing {
  Ties ties = Ties::Torch;
  bool list_all = false;  // fill Decision::all
  // Inputs may be cut by torch.chunk even if no input is cut that way: a partial may be scattered,
  // a replica sliced. (PyTorch considers only the ways of cutting that occur among the inputs.)
  // Rows that PyTorch lacks are considered too.
  bool cuts_plainly = false;
  // For each present input the placements that it must be wanted in; null: free. Empty: all free.
  std::vector<const OpPlacements*> held = {};
  bool as_torch = false;  // PyTorch's choice, right or wrong
};

// `sizes`: of the mesh's axes. Throws InputError for arguments that do not fit the operator, and
// where there is no candidate.
Decision decide(const OpCall& call, std::span<const std::int32_t> sizes, const MoveCost& cost,
                const Choosing& choosing = {});

// A decision for one of `decision`'s candidates (Decision::all); its own list of candidates is
// empty, and its runner-up is the one chosen before, if another. `inputs`: the call's flat inputs.
Decision taking(const Decision& decision, const Candidate& candidate,
                const std::vector<const TensorSpec*>& inputs);

}  // namespace reshard
