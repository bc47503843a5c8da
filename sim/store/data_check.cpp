// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/data_check.h"

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/pattern/pattern.h"
#include "core/schedule/accounting.h"
#include "sim/store/store.h"

namespace reshard::sim {
namespace {

// Checks destination shards as they come, ascending by rank. A rank that must hold what an earlier
// one holds is compared with that one, byte for byte.
class DestinationCheck {
 public:
  explicit DestinationCheck(const Request& request)
      : request_(request), pattern_(request), layout_(request.destination()) {}

  const Pattern& pattern() const { return pattern_; }

  void operator()(Rank rank, std::span<const std::byte> bytes) {
    std::int32_t position = layout_.mesh().position_of(rank).value();
    std::vector<std::int64_t> addends = request_.addends_wanted(position), key = addends;
    key.push_back(request_.zero_coordinate(position));
    MeshCoordinate coordinate = layout_.mesh().coordinate(position);
    for (int dim = 0; dim < layout_.dims(); ++dim) key.push_back(layout_.piece_of(dim, coordinate));
    auto [first, is_new] = checked_.try_emplace(std::move(key), bytes);
    bool equal = !is_new && first->second.size() == bytes.size() &&
                 std::memcmp(first->second.data(), bytes.data(), bytes.size()) == 0;
    if (!equal) check(rank, position, addends, bytes);
    hasher_.add(bytes);
    elements_ += static_cast<std::int64_t>(bytes.size()) / size_bytes(request_.dtype());
  }

  std::int64_t elements() const { return elements_; }
  std::optional<Digest> digest() const {
    return elements_ == 0 ? std::nullopt : std::optional(hasher_.digest());
  }

 private:
  void check(Rank rank, std::int32_t position, const std::vector<std::int64_t>& addends,
             std::span<const std::byte> bytes) const {
    std::optional<PatternMismatch> wrong = pattern_.check(layout_, position, addends, bytes);
    if (!wrong) return;
    int digits = static_cast<int>(size_bytes(request_.dtype())) * 2;
    throw CheckFailure(
        fmt::format("data of {}: rank {} holds a wrong value at global index [{}]: expected "
                    "{:#0{}x}, found {:#0{}x} ({} of its elements are wrong)",
                    request_.text(), to_int(rank), text(index_at(wrong->index, request_.shape())),
                    wrong->expected, digits + 2, wrong->found, digits + 2, wrong->count));
  }

  const Request& request_;
  Pattern pattern_;
  const Layout& layout_;
  std::map<std::vector<std::int64_t>, std::span<const std::byte>> checked_;
  Hasher hasher_;
  std::int64_t elements_ = 0;
};

DataReport move(const Plan& plan) {
  const Request& request = plan.request();
  DestinationCheck check(request);
  Store store;
  store.run(
      plan,
      [&](Rank rank, std::span<std::byte> bytes) {
        std::int32_t position = request.source().mesh().position_of(rank).value();
        check.pattern().fill(request.source(), position, request.addend_of(position), bytes);
      },
      [&](Rank rank, std::span<const std::byte> bytes) { check(rank, bytes); });
  return {true, true, request.shape(), check.elements(), check.digest(), store.bytes_moved(), {}};
}

// Halvings after which `bytes` are within the budget, were they to shrink in proportion.
int halvings_for(std::int64_t bytes, std::int64_t budget_bytes) {
  int halvings = 0;
  while (halvings < 62 && bytes >> halvings > budget_bytes) ++halvings;
  return halvings;
}

// Plans for smaller and smaller tensors until one is within the budget or none is smaller.
std::shared_ptr<const Plan> within(std::int64_t budget_bytes, std::shared_ptr<const Plan> plan,
                                   const MakePlan& replan) {
  for (std::int64_t bytes = store_bytes(*plan); bytes > budget_bytes; bytes = store_bytes(*plan)) {
    Request smaller = shrunk(plan->request(), halvings_for(bytes, budget_bytes));
    if (smaller.shape() == plan->request().shape()) return plan;
    plan = replan(smaller);
  }
  return plan;
}

}  // namespace

std::int64_t store_bytes(const Plan& plan) {
  Int128 sum = 0;
  for (std::int64_t bytes : count_bytes(plan).peak_per_slot) sum += bytes;
  // All ranks of a large request together may need more than 2^63 bytes.
  return sum > Int128{kMaxBytes} ? kMaxBytes : static_cast<std::int64_t>(sum);
}

DataReport move_and_check(const Request& request, std::shared_ptr<const Plan> plan,
                          const MakePlan& replan, std::int64_t budget_bytes,
                          std::int64_t memory_limit_bytes) {
  plan = within(budget_bytes, std::move(plan), replan);
  std::int64_t needed = store_bytes(*plan);
  if (needed > memory_limit_bytes) {
    std::string advice = "even the smallest tensor of these layouts does not fit";
    std::shared_ptr<const Plan> fitting = within(memory_limit_bytes, plan, replan);
    if (std::int64_t fits = store_bytes(*fitting); fits <= memory_limit_bytes)
      advice = fmt::format("--data-budget {} would do, with shape {}", fits,
                           text(fitting->request().shape()));
    throw InputError(fmt::format("data of {}: moving it needs {}, above the memory limit of {}; {}",
                                 request.text(), bytes_text(needed), bytes_text(memory_limit_bytes),
                                 advice));
  }
  DataReport report = move(*plan);
  report.full_size = report.shape == request.shape();
  return report;
}

}  // namespace reshard::sim
