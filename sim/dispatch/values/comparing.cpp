// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/values/comparing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/operators/dtype_limits.h"

namespace reshard::sim {
namespace {

// Spacing of the coarsest of the call's floating dtypes, since redistributed inputs are rounded to
// theirs; 0 for integers.
double coarsest_spacing(const DispatchedCall& call, DType dtype) {
  double out = spacing_of(dtype);
  if (out == 0) return out;
  for (const auto& input : call.in)
    if (input) out = std::max(out, spacing_of(input->meta.dtype));
  return out;
}

}  // namespace

void Comparing::compare(const DispatchedCall& call, std::size_t output, const Array& expected,
                        const Sharded& found, std::int64_t folded) {
  std::string what = fmt::format("output {}", output);
  std::optional<Array> whole = put_together(call, what, found);
  if (!whole) return;
  if (on_output_) on_output_(call, output, *whole);
  if (whole->shape == expected.shape) report_.elements_compared += element_count(expected.shape);
  agree(call, what, expected, *whole, found, folded);
}

std::optional<Array> Comparing::brought(const DispatchedCall& call, std::size_t input,
                                        const Array& expected, const Sharded& found) {
  std::string what = fmt::format("input {} as redistributed", input);
  std::optional<Array> whole = put_together(call, what, found);
  if (whole && !agree(call, what, expected, *whole, found, 1)) whole.reset();
  return whole;
}

bool Comparing::agree(const DispatchedCall& call, const std::string& what, const Array& expected,
                      const Array& whole, const Sharded& found, std::int64_t folded) {
  if (whole.shape != expected.shape) {
    find(call, fmt::format("{} is [{}], not [{}]", what, text(whole.shape), text(expected.shape)));
    return false;
  }
  std::vector<double> a = values<double>(expected), b = values<double>(whole);
  double largest = 0;
  for (double value : a)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  double eps = coarsest_spacing(call, expected.dtype) * static_cast<double>(16 + folded);
  std::optional<std::vector<bool>> endless;  // computed when needed
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                std::abs(a[i] - b[i]) <= eps * (std::abs(a[i]) + largest);
    if (same) continue;
    if (std::isinf(a[i]) && std::isnan(b[i])) {
      if (!endless) endless = endless_addends(found);
      if (i < endless->size() && (*endless)[i]) {
        ++report_.elements_cancelled;
        continue;
      }
    }
    auto element = static_cast<std::int64_t>(i);
    find(call, fmt::format("element [{}] of {} ({}) is {} on rank {}, not {}",
                           text(index_of(element, expected.shape)), what, text(found.spec), b[i],
                           to_int(holder_of(found, element)), a[i]));
    return false;
  }
  return true;
}

std::optional<Array> Comparing::put_together(const DispatchedCall& call, const std::string& what,
                                             const Sharded& found) {
  Whole whole = assemble(found);
  if (!whole.differ) return std::move(whole.array);
  find(call, fmt::format("{} on rank {} differs from its copies", what, to_int(*whole.differ)));
  return std::nullopt;
}

void Comparing::find(const DispatchedCall& call, const std::string& what) {
  report_.findings.push_back({{call.line},
                              fmt::format("{}:{}: {}: {}", trace_.file, call.line,
                                          call.op ? call.op->name : "redistribute", what)});
}

}  // namespace reshard::sim
