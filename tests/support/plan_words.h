// SPDX-License-Identifier: BSD-3-Clause
// Random plans of every kind, and their contents as words, for tests that pin them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/schedule/lowering.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_plans.h"

namespace reshard::test {

inline std::string word(std::int64_t value) { return std::to_string(value) + ' '; }
inline std::string word(std::string_view value) { return std::string(value) + ' '; }
template <class T>
std::string words(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += word(static_cast<std::int64_t>(value));
  return out + "] ";
}
inline std::string words(const DimVector& values) { return text(values) + ' '; }
inline std::string words(const Place& place) {
  return word(place.slot) + word(static_cast<std::int64_t>(to_index(place.buffer))) +
         words(place.lo);
}

// Every operation as words, in the order in which they come.
class Words : public Operations {
 public:
  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    out += "copy " + words(from) + words(to) + words(extents);
  }
  void fill(const Place& to, const DimVector& extents) override {
    out += "fill " + words(to) + words(extents);
  }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    out += "fold " + word(text(op)) + word(divisor);
    for (const Place& operand : operands) out += words(operand);
    out += words(to) + words(extents);
  }
  void then() override { out += "then "; }
  void part(std::size_t index) override { out += "part " + word(static_cast<std::int64_t>(index)); }
  std::string out;
};

inline std::optional<Plan> one_plan(Prng& prng, const PlannerInput& input) {
  std::optional<Request> request = draw_request(prng);
  if (!request || element_count(request->shape()) > 60 || request->ranks().size() > 8)
    return std::nullopt;
  if (prng.one_in(2)) return wander(prng, *request, SlowMeaning(*request));
  return any_plan(prng, *request, input);
}

inline Plan drawn_plan(Prng& prng, const PlannerInput& input) {
  std::vector<Plan> parts;
  for (std::int64_t left = prng.one_in(4) ? 2 : 1; left > 0;)
    if (std::optional<Plan> part = one_plan(prng, input)) {
      parts.push_back(std::move(*part));
      --left;
    }
  return parts.size() > 1 ? join(parts) : std::move(parts.front());
}

}  // namespace reshard::test
