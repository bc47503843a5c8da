// SPDX-License-Identifier: BSD-3-Clause
// The proof over operations refutes operations that do something other than their plan says.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/forwarding.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Hands on operations, but for one, which it leaves out or moves by one element.
class Faulty : public Operations {
 public:
  enum class Fault : std::uint8_t { Lost, Shifted, Operands, Divided };
  Faulty(Fault fault, int at) : fault_(fault), left_(at) {}
  void pass_to(Operations& out) { out_ = &out; }
  bool hit() const { return left_ < 0; }

  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    bool here = left_-- == 0;
    if (here && fault_ == Fault::Lost) return;
    Place source = from;
    if (here && fault_ == Fault::Shifted) source.lo[0] += source.lo[0] > 0 ? -1 : 1;
    out_->copy(source, to, extents);
  }
  void fill(const Place& to, const DimVector& extents) override { out_->fill(to, extents); }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    bool here = left_-- == 0;
    if (here && fault_ == Fault::Lost) return;
    if (here && fault_ == Fault::Operands) operands = operands.subspan(1);
    out_->fold(op, here && fault_ == Fault::Divided ? 2 : divisor, operands, to, extents);
  }
  void then() override { out_->then(); }

 private:
  Fault fault_;
  int left_;
  Operations* out_ = nullptr;
};

Plan planned(const char* from, const char* to) {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Topology topology = star(4);
  PlannerInput input;
  input.topology = &topology;
  return find_planner("rule").make(
      Request(parse_layout("8,8", "f32", mesh, from), parse_layout("8,8", "f32", mesh, to)), input);
}

}  // namespace

TEST_CASE("a step reads what it wrote itself only after a then") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("1"));
  Plan plan(Request(parse_layout("4", "f32", mesh, "R"), parse_layout("4", "f32", mesh, "R")),
            "hand");
  BufferId halfway = plan.add_temporary();
  plan.buffer(halfway).set_shape(0, {4});
  plan.add_step(CopyStep{{}, MoveList(1)}, {});
  auto refuted = [&](bool apart) {
    return check_operations(plan,
                            [&](StepId, Operations& out) {
                              out.copy({0, kSourceBuffer, {0}}, {0, halfway, {0}}, {4});
                              if (apart) out.then();
                              out.copy({0, halfway, {0}}, {0, kDestinationBuffer, {0}}, {4});
                            })
        .has_value();
  };
  CHECK(!refuted(true));
  CHECK(refuted(false));
}

TEST_CASE("operations that differ from their plan in one place are refuted") {
  using Fault = Faulty::Fault;
  int broken = 0;
  for (auto [from, to] : {std::pair{"S(0)S(1)", "S(1)S(0)"}, std::pair{"P(sum)S(0)", "RS(0)"},
                          std::pair{"P(sum)R", "S(1)R"}, std::pair{"S(1)R", "RS(0)"}}) {
    Plan plan = planned(from, to);
    for (bool forwards : {false, true}) {
      Forwarding forwarding(plan, forwards);
      CAPTURE(from, to, forwards);
      CHECK(!check_operations(plan,
                              [&](StepId step, Operations& out) { forwarding.run(step, out); }));
      for (Fault fault : {Fault::Lost, Fault::Shifted, Fault::Operands, Fault::Divided})
        for (int at = 0;; ++at) {
          Faulty faulty(fault, at);
          bool refuted = check_operations(plan, [&](StepId step, Operations& out) {
                           faulty.pass_to(out);
                           forwarding.run(step, faulty);
                         }).has_value();
          if (!faulty.hit()) break;
          CAPTURE(static_cast<int>(fault), at);
          // Nothing that is forwarded can be lost; a plan also gathers what nobody reads.
          if (fault == Fault::Lost && forwards) CHECK(refuted);
          broken += refuted;
        }
    }
  }
  CHECK(broken > 150);
}

TEST_CASE("debug builds refuse to run operations that differ from a proved plan, and no others") {
  Plan plan = planned("S(0)S(1)", "S(1)S(0)");
  Forwarding forwarding(plan, true);
  RunStep right = [&](StepId step, Operations& out) { forwarding.run(step, out); };
  Faulty faulty(Faulty::Fault::Lost, 0);
  RunStep wrong = [&](StepId step, Operations& out) {
    faulty.pass_to(out);
    forwarding.run(step, faulty);
  };
  CHECK_NOTHROW(debug_check_operations(plan, right));
#ifdef NDEBUG
  CHECK_NOTHROW(debug_check_operations(plan, wrong));
  CHECK(!faulty.hit());
#else
  CHECK_THROWS_AS(debug_check_operations(plan, wrong), CheckFailure);
#endif
}
