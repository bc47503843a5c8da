// SPDX-License-Identifier: BSD-3-Clause
// Which placements an operator's inputs are wanted in, and which its outputs have.
//
// Per axis a rule has rows; a candidate takes one row per axis. Candidates that a tensor cannot lie
// in fall out; each of the others costs what its inputs' redistributions cost, and one is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/operator.h"

namespace reshard {

// What it costs to bring a tensor from where it lies: microseconds, infinite where it must not be.
using MoveCost = std::function<double(const TensorSpec& from, const OpPlacements& to)>;

// The inputs of a call, lists in order, absent ones null, those at the end left out.
std::vector<const TensorSpec*> flat_inputs(const OpCall& call);

// A candidate and what its inputs' redistributions cost.
struct Candidate {
  std::vector<std::optional<OpPlacements>> in, out;
  double cost_us = 0;
};

// A collective that an operator does itself, along one axis, on shards of so many elements.
struct OpCollective {
  std::string_view kind;  // "all_gather", "all_reduce"
  int axis;
  Shape shape;  // of the whole tensor that it works on, cut as the first input
  DType dtype;
};

struct Decision {
  // By flat input; none where it is absent.
  std::vector<std::optional<OpPlacements>> wanted;
  std::vector<std::optional<TensorSpec>> outputs;  // none: not made
  double cost_us = 0;
  std::int64_t candidates = 1;  // that were left
  std::int64_t ties = 1;        // of the chosen one's cost, with it
  // Not chosen among rows but done by a handler, which works on shards as no rank could alone.
  bool handled = false;
  std::vector<OpCollective> collectives;  // of the handler
  // The cheapest other candidate.
  std::vector<std::optional<OpPlacements>> runner_up;
  std::optional<double> runner_up_us;
  // All that were left, in the order of the search; where they were asked for.
  std::vector<Candidate> all;
  // Why it was taken as a trace says it and not decided; empty: it was decided.
  std::string recorded;
  // Where PyTorch gives wrong values or fails: a sentence that says how. Empty: it does not.
  std::string_view corrected;
};

// How equal costs are told apart.
enum class Ties : std::uint8_t {
  // PyTorch's: of those without cost the last in which nothing moves, else the first of least cost.
  Torch,
  // PyTorch's for the positions of lists: the first of least cost.
  First,
  // The first of least cost in which least moves.
  Fewest
};

struct Choosing {
  Ties ties = Ties::Torch;
  bool list_all = false;  // fill Decision::all
  // Inputs may be cut by torch.chunk though none of them is (PyTorch asks only for ways of cutting
  // that it finds among them): a partial may be scattered, a replica sliced. Rows that PyTorch
  // lacks are looked at, too.
  bool cuts_plainly = false;
  // By input that is there: how it must be wanted, null where that is free. Empty: all are.
  std::vector<const OpPlacements*> held = {};
  bool as_torch = false;  // what PyTorch chooses, right or wrong
};

// `sizes`: of the mesh's axes. Throws InputError for arguments that do not fit the operator, and
// where there is no candidate.
Decision decide(const OpCall& call, std::span<const std::int32_t> sizes, const MoveCost& cost,
                const Choosing& choosing = {});

// The decision for one of its candidates (Decision::all), which are left out; the one that was
// chosen is its runner-up. `inputs`: the call's flat ones.
Decision taking(const Decision& decision, const Candidate& candidate,
                const std::vector<const TensorSpec*>& inputs);

}  // namespace reshard
