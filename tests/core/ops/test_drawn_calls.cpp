// SPDX-License-Identifier: BSD-3-Clause
// Decisions about random calls of every operator stay the same: candidates, choice, outputs, steps,
// refusals. Other tests check that they are right; this one that nothing has changed. To accept an
// intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_ops "drawn calls*"
//
// rewrites tests/core/ops/data/drawn_calls.txt; RESHARD_SHOW=mm prints the decisions about the
// calls of one operator, so that the difference can be read before it is accepted.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/ops/decision_cache.h"
#include "core/ops/torch_moves.h"
#include "tests/core/ops/drawn_calls.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kCallsPath = "tests/core/ops/data/drawn_calls.txt";

// Rules of one operator are tried as often as those of hundreds, or nearly.
int calls_of(const Operator& op) {
  if (op.is_view) return 30;
  auto all = all_operators();
  auto alike = std::count_if(all.begin(), all.end(), [&](const Operator& other) {
    return other.rule == op.rule && other.is_stack == op.is_stack;
  });
  return static_cast<int>(std::clamp<std::ptrdiff_t>(450 / alike, 16, 200));
}

std::string words_of(const Decision& decision) {
  std::string out = fmt::format("{} ->", text(decision.wanted));
  for (const auto& output : decision.outputs)
    out += output ? fmt::format(" {}{}", text(*output), output->of_view ? "v" : "") : " -";
  out += fmt::format(" {:.9g}us, {} candidates, {} ties{}", decision.cost_us, decision.candidates,
                     decision.ties, decision.handled ? ", handled" : "");
  for (const OpCollective& each : decision.collectives)
    out += fmt::format(" {} over {} of {}[{}]", each.kind, each.axis, text(each.dtype),
                       text(each.shape));
  if (decision.runner_up_us)
    out += fmt::format("; next {} {:.9g}us", text(decision.runner_up), *decision.runner_up_us);
  if (!decision.corrected.empty()) out += fmt::format("; {}", decision.corrected);
  return out;
}

// Decides calls and keeps what it decided in a cache as well.
class Deciding {
 public:
  std::string answer(Prng& prng, const DrawnCall& drawn) {
    Choosing choosing;
    choosing.ties = prng.pick<Ties>({Ties::Torch, Ties::First, Ties::Fewest});
    choosing.cuts_plainly = prng.one_in(3);
    choosing.list_all = prng.one_in(3);
    const auto& [number, moves] = mesh_of(drawn.mesh);
    auto cost = [&costs = moves](const TensorSpec& from, const OpPlacements& to) {
      return costs.cost_us(from, to);
    };
    const OpCall call = drawn.call();
    try {
      Decision decision = decide(call, moves.sizes(), cost, choosing);
      // Calls that are not alike to the cache would be decided alike, too.
      std::uint64_t asked = number << 8 | to_index(static_cast<int>(choosing.ties)) << 1 |
                            (choosing.cuts_plainly ? 1U : 0U);
      const Decision& kept = cache.of(call, asked, [&] { return decision; });
      if (cache.hit()) CHECK(words_of(kept) == words_of(decision));
      return words_of(decision) + words_around(prng, call, decision, moves);
    } catch (const InputError& error) {
      return fmt::format("refused: {}", error.what());
    }
  }

  DecisionCache cache;

 private:
  // Of the other candidates, and of how the inputs come to lie as they are wanted.
  static std::string words_around(Prng& prng, const OpCall& call, const Decision& decision,
                                  const TorchMoves& moves) {
    std::string out;
    for (const Candidate& each : decision.all)
      out += fmt::format("\n    {} -> {} {:.9g}us", text(each.in), text(each.out), each.cost_us);
    std::vector<const TensorSpec*> inputs = flat_inputs(call);
    if (!decision.all.empty())
      out +=
          fmt::format("\n  taken: {}", words_of(taking(decision, prng.pick(decision.all), inputs)));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !decision.wanted[i]) continue;
      out += fmt::format("\n  input {}:", i);
      for (const OpStep& step : moves.steps(*inputs[i], *decision.wanted[i]))
        out += fmt::format(" {}", text(step));
    }
    return out;
  }

  struct Asked {
    std::uint64_t number;
    TorchMoves moves;
  };
  const Asked& mesh_of(const std::string& mesh) {
    auto at = meshes_.find(mesh);
    if (at != meshes_.end()) return at->second;
    TorchMoves moves(std::make_shared<const Mesh>(parse_mesh(mesh)), 2);
    return meshes_.emplace(mesh, Asked{meshes_.size(), std::move(moves)}).first->second;
  }
  std::map<std::string, Asked> meshes_;
};

// "mm 80 12 3 0c6a40a1": calls, those refused, those that the cache knew, what was decided.
std::string operator_line(const CallDrawer& drawer, const Operator& op) {
  Deciding deciding;
  const char* shown = std::getenv("RESHARD_SHOW");
  Hasher names;
  names.add(op.name);
  Prng prng(names.digest().low);
  Hasher answers;
  const int calls = calls_of(op);
  int refused = 0;
  DrawnCall call;
  for (int i = 0; i < calls; ++i) {
    if (i % 8 == 0) call = drawer.usual(prng, op);
    DrawnCall other = call;
    for (std::int64_t changes = prng.between(1, 3); changes > 0; --changes)
      other = drawer.varied(prng, std::move(other));
    if (op.writes_out && !prng.one_in(4)) other = drawer.written(prng, std::move(other));
    CAPTURE(text(other));
    std::string answer = deciding.answer(prng, other);
    answers.add(answer);
    bool is_refused = answer.starts_with("refused");
    refused += is_refused ? 1 : 0;
    if (!is_refused && prng.one_in(3)) call = std::move(other);
    if (shown && op.name == shown) fmt::print("{}\n  {}\n", text(other), answer);
  }
  return fmt::format("{} {} {} {} {}", op.name, calls, refused, deciding.cache.statistics().hits,
                     answers.digest().hex().substr(0, 8));
}

TEST_CASE("drawn calls are decided as they were") {
  CallDrawer drawer;
  std::span<const Operator> all = all_operators();
  check_lines(kCallsPath, all.size(), [&](std::size_t i) { return operator_line(drawer, all[i]); });
}

}  // namespace
}  // namespace reshard::test
