// SPDX-License-Identifier: BSD-3-Clause
// Correct plans broken in one place at random: the proof refutes exactly those that the slow proof
// finds wrong. What it says about them, naming the step and the part, stays the same. To accept an
// intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_sweep "broken plans*"
//
// rewrites tests/sweep/data/refutations-*.txt: the first sentence of each form in full, then
// digests of all; read the difference before you accept it.
#include <catch2/catch.hpp>

#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_plans.h"
#include "tests/support/part.h"
#include "tests/support/pinned.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr int kBreaksPerPlan = 20;
constexpr std::int64_t kMostElements = 800;

struct Tally {
  std::int64_t plans = 0, broken = 0, refuted = 0;
  std::map<std::string, std::array<std::int64_t, 2>> by_break;  // right, wrong
  std::map<std::string, std::int64_t> kinds;                    // plans that have a step of a kind
};

std::int64_t elements(const Plan& plan) {
  std::int64_t out = 0;
  for (const Buffer& buffer : plan.buffers)
    for (std::size_t s = 0; s < plan.slot_count(); ++s)
      out += buffer.elements(static_cast<Slot>(s));
  return out;
}

// What the proof says of one plan after another, against what it said.
class Verdicts {
 public:
  // Without a name nothing is known.
  explicit Verdicts(const char* name = nullptr) {
    if (name != nullptr) pinned_.emplace(fmt::format("tests/sweep/data/{}.txt", name), 100);
  }

  void add(const ProofResult& result) {
    if (!pinned_) return;
    std::string text;
    if (result.proved())
      for (std::int64_t bytes : result.padding_bytes) text += fmt::format("{} ", bytes);
    else
      text = sentence(*result.refutation);
    std::string form;
    for (char c : text)
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) form += c;
    if (!result.proved() && forms_.insert(form).second && pinned_->lines() < kForms)
      pinned_->add_line(fmt::format("{}: {}", pinned_->number(), text));
    pinned_->add(text);
  }
  void finish() const { pinned_->finish(); }

 private:
  static constexpr std::size_t kForms = 120;

  static std::string sentence(const Refutation& refutation) {
    return fmt::format(
        "{} {} {}", refutation.step ? fmt::format("{}", to_index(*refutation.step)) : "-",
        refutation.part ? fmt::format("{}", *refutation.part) : "-", refutation.what);
  }

  std::optional<Pinned> pinned_;
  std::set<std::string> forms_;
};

// What the two say of one plan must agree; returns whether it is wrong.
bool refuted(const SlowMeanings& meaning, const Plan& plan, const std::string& what,
             Verdicts& verdicts) {
  ProofResult result = check_plan(plan);
  verdicts.add(result);
  const std::optional<Refutation>& refutation = result.refutation;
  std::string fault = slow_fault(meaning, plan);
  if (refutation.has_value() != !fault.empty())
    FAIL(what << ": the proof says '" << (refutation ? refutation->what : "proved")
              << "', the execution '" << (fault.empty() ? "right" : fault) << "'");
  return refutation.has_value();
}

void break_often(Prng& prng, const SlowMeanings& meaning, const Plan& plan, const std::string& what,
                 Tally& tally, Verdicts& verdicts) {
  if (refuted(meaning, plan, what, verdicts)) FAIL(what << ": wrong before it is broken");
  ++tally.plans;
  std::map<std::string, bool> kinds;
  for (const Step& step : plan.steps) kinds[std::string(kind_text(step))] = true;
  for (const auto& [kind, there] : kinds) tally.kinds[kind] += there;
  for (int i = 0; i < kBreaksPerPlan; ++i) {
    Plan broken = plan;
    std::string field = break_plan(prng, broken);
    bool wrong =
        refuted(meaning, broken, what + " break " + std::to_string(i) + " of " + field, verdicts);
    ++tally.broken;
    tally.refuted += wrong;
    ++tally.by_break[field][wrong];
  }
}

// Enough of each kind, each break and both verdicts.
void check_reach(const Tally& tally) {
  for (const char* kind : {"copy", "fill", "exchange", "reduce", "all_gather", "reduce_scatter",
                           "all_reduce", "all_to_all"}) {
    INFO(kind);
    CHECK(tally.kinds.count(kind) == 1);
    if (tally.kinds.count(kind) == 1) CHECK(tally.kinds.at(kind) >= 60 / kOneOf);
  }
  for (const auto& [field, verdicts] : tally.by_break) {
    INFO(field << ": " << verdicts[0] << " right, " << verdicts[1] << " wrong");
    CHECK(verdicts[1] >= 10 / kOneOf);
  }
  CHECK(tally.refuted * 10 > tally.broken * 5);
  CHECK(tally.refuted < tally.broken);
}

// Plans by any planner, of requests that are drawn with the seeds from `seed` on.
void break_planned(std::uint64_t seed, std::int64_t breaks,
                   const std::function<std::optional<Request>(Prng&)>& draw, Tally& tally) {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  Verdicts verdicts;
  for (; tally.broken < breaks; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw(prng);
    if (!request) continue;
    Plan plan = any_plan(prng, *request, input);
    if (elements(plan) > kMostElements) continue;
    break_often(prng, {SlowMeaning(*request)}, plan,
                fmt::format("seed {}: {} by {}", seed, request->text(), plan.planner), tally,
                verdicts);
  }
}

// Of a drawn request; none where it is large or the draw leads nowhere.
std::optional<Plan> drawn(Prng& prng, int least_dims, std::int64_t most_elements,
                          std::size_t most_ranks) {
  std::optional<Request> request = draw_request(prng);
  if (!request || request->shape().size() < least_dims || request->shape().size() > 3)
    return std::nullopt;
  if (element_count(request->shape()) > most_elements || request->ranks().size() > most_ranks)
    return std::nullopt;
  return wander(prng, *request, SlowMeaning(*request));
}

}  // namespace

TEST_CASE("broken plans: 120,000 of the planners' plans, each refuted if and only if it is wrong") {
  Tally tally;
  break_planned(500'000, 120'000 / kOneOf, draw_request, tally);
  check_reach(tally);
}

TEST_CASE("broken plans: 20,000 of explicit boxes, each refuted if and only if it is wrong") {
  Tally tally;
  break_planned(
      1'700'000, 20'000 / kOneOf, [](Prng& prng) { return draw_request_with_boxes(prng); }, tally);
  CHECK(tally.refuted * 10 > tally.broken * 5);
  CHECK(tally.refuted < tally.broken);
}

TEST_CASE("broken plans: 80,000 of drawn 2-d and 3-d plans, each refuted if and only if wrong") {
  Tally tally;
  Verdicts verdicts("refutations-drawn");
  for (std::uint64_t seed = 900'000; tally.broken < 80'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::optional<Plan> plan = drawn(prng, 2, 60, 8);
    if (!plan) continue;
    break_often(prng, {SlowMeaning(plan->request())}, *plan,
                fmt::format("seed {}: {}", seed, requests_text(*plan)), tally, verdicts);
  }
  check_reach(tally);
  verdicts.finish();
}

TEST_CASE("broken plans: 40,000 of two tensors or three, each refuted if and only if wrong") {
  Tally tally;
  Verdicts verdicts("refutations-joined");
  for (std::uint64_t seed = 1'300'000; tally.broken < 40'000 / kOneOf; ++seed) {
    Prng prng(seed);
    std::vector<Plan> parts;
    for (std::int64_t left = prng.between(2, 3); left > 0;)
      if (std::optional<Plan> part = drawn(prng, 0, 24, 6)) {
        parts.push_back(std::move(*part));
        --left;
      }
    Plan plan = join(parts);
    SlowMeanings meanings;
    for (const Request& request : plan.tensors) meanings.emplace_back(request, plan.dims());
    break_often(prng, meanings, plan, fmt::format("seed {}: {}", seed, requests_text(plan)), tally,
                verdicts);
  }
  check_reach(tally);
  verdicts.finish();
}
